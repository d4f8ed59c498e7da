// Tables of a page, and the bars of steps. Each cell is a text that C has formatted.
(() => {
	'use strict';
	const {element, count} = pperf;
	const ROWS = 40, BARS = 200;

	const column = (table, key) => table.columns.find(one => one.key === key);
	const pathOf = (table, row) => table.path && table.path[row].length ? table.path[row].join(' / ') : '';
	pperf.column = column;

	// Makes a bar of a share from 0 to 1.
	pperf.meter = (share, name) => element('svg', {class: 'meter', viewBox: '0 0 100 8', preserveAspectRatio: 'none', 'aria-hidden': 'true'},
		element('rect', {class: 'meter-back', width: 100, height: 8}), element('rect', {class: name, width: Math.max(.5, Math.min(1, share) * 100).toFixed(1), height: 8}));

	// A table that sorts by its heads and filters by name and place. `keys`: the columns shown.
	class SortedTable {
		constructor(table, keys, options) {
			Object.assign(this, {table, options, all: false, query: '', down: true});
			this.columns = keys.map(key => column(table, key)).filter(Boolean);
			this.sort = this.columns.find(one => one.key === options.sort) || null;
			this.most = options.bar ? Math.max(...(column(table, options.bar)?.value || [1])) : 1;
			this.body = element('tbody');
			this.head = element('tr');
			this.more = element('button', {type: 'button', click: () => { this.all = true; this.fill(); }});
			this.status = element('span', {class: 'note', role: 'status'});
			this.element = element('div', null, element('div', {class: 'scroll', tabindex: 0, role: 'region', 'aria-label': options.name},
				element('table', {id: options.id}, element('thead', null, this.head), this.body)), this.more);
			this.fill();
		}

		filter(query) {
			this.query = query;
			pperf.remember(this.options.id, query);
			this.fill();
		}

		sortBy(key) {
			this.down = this.sort?.key === key ? !this.down : true;
			this.sort = key === 'label' ? {key, text: this.table.label, value: [], left: true} : column(this.table, key);
			if (this.sort.left)
				this.down = !this.down;
			this.fill();
		}

		order() {
			const test = this.query && pperf.nameTest(this.query), {table, sort} = this;
			const rows = table.label.map((label, row) => row).filter(row => this.options.rows ? this.options.rows(row) : true)
				.filter(row => !test || test(table.label[row]) || test(pathOf(table, row)) || test(this.options.also ? this.options.also(row) : ''));
			if (!sort)
				return rows;
			const sign = this.down ? 1 : -1;
			return rows.sort((a, b) => {
				const x = sort.value[a] ?? null, y = sort.value[b] ?? null;
				if (x !== null && y !== null)
					return sign * (y - x) || a - b;
				const s = sort.text[a], t = sort.text[b];
				return sign * (s < t ? 1 : s > t ? -1 : 0) || a - b;
			});
		}

		headCell(key, title, help, left) {
			const isSorted = this.sort?.key === key;
			return element('th', {scope: 'col', class: left ? 'left' : null, 'aria-sort': isSorted ? (this.down ? 'descending' : 'ascending') : null},
				element('button', {type: 'button', title: help, 'data-key': key, click: () => this.sortBy(key)}, title + (isSorted ? (this.down ? ' ↓' : ' ↑') : '')));
		}

		fill() {
			const rows = this.order(), shown = this.all || this.query ? rows : rows.slice(0, ROWS);
			const focused = document.activeElement?.dataset?.key;
			this.head.replaceChildren(this.headCell('label', this.options.title, null, true),
				...this.columns.map(one => this.headCell(one.key, one.title, one.help, one.left)));
			if (focused)
				this.head.querySelector('[data-key="' + focused + '"]')?.focus();
			this.body.replaceChildren(...shown.map(row => this.row(row)));
			this.more.hidden = shown.length === rows.length;
			this.more.textContent = 'All ' + count(rows.length) + ' rows';
			this.status.textContent = this.query ? count(rows.length) + ' of ' + count(this.table.rows) : '';
		}

		row(row) {
			const {table, options} = this, path = pathOf(table, row);
			return element('tr', {'data-row': row}, element('td', {class: 'left name'}, options.mark ? options.mark(row) : null, table.label[row],
				path && path !== table.label[row] ? element('div', {class: 'note'}, path) : null),
			this.columns.map(one => element('td', {class: one.left ? 'left' : null}, one.text[row],
				one.key === options.bar ? pperf.meter((one.value[row] || 0) / this.most, options.barClass ? options.barClass(row) : 'busy') : null)));
		}
	}
	pperf.sortedTable = (table, keys, options) => new SortedTable(table, keys, options);

	// ---- steps: a bar each ----

	// Returns at most BARS groups of neighbouring steps, each drawn as its longest step.
	const grouped = steps => {
		const size = Math.ceil(steps.length / BARS), groups = [];
		for (let i = 0; i < steps.length; i += size)
			groups.push(steps.slice(i, i + size));
		return groups;
	};

	pperf.stepBars = (table, steps, show) => {
		const busy = column(table, 'busy_ns'), height = 130;
		const box = element('div', {class: 'bars', id: 'bars'});
		const usual = steps.filter(step => step.state === 'usual'), groups = grouped(steps);
		const most = Math.max(...(usual.length ? usual : steps).map(step => step.duration), 1) * 1.3;
		const median = table.label.findIndex((label, row) => table.kind[row] === 'summary' && label.startsWith('median'));
		const medianNs = median >= 0 ? column(table, 'duration_ns').value[median] : null;

		const bar = (group, i, width) => {
			const step = group.reduce((a, b) => b.duration > a.duration ? b : a), least = group.reduce((a, b) => b.duration < a.duration ? b : a);
			const isCut = step.duration > most, tall = Math.min(1, step.duration / most) * height, x = i * width;
			const busyNs = busy ? Math.min(busy.value[step.row] || 0, step.duration) : 0, dark = Math.min(tall, busyNs / most * height);
			const name = step.outlier === 'slow' ? 'step-outlier' : step.state === 'usual' ? 'step-usual' : 'step-other';
			const title = group.length > 1 ? group[0].label + ' to ' + group[group.length - 1].label : step.label;
			const pairs = [[group.length > 1 ? 'longest, ' + step.label : 'duration', step.text], ...(group.length > 1 ? [['shortest, ' + least.label, least.text]] : []),
				...(busy ? [['GPU busy', busy.text[step.row]]] : [])];
			return element('g', {'data-step': step.row, click: () => show(step), mousemove: event => pperf.showTip(event, title, pairs, 'Click shows it in the timeline.'),
				mouseleave: pperf.hideTip},
			element('rect', {class: 'hidden-bar', x: x.toFixed(1), y: 0, width: width.toFixed(1), height: height + 20}),
			element('rect', {class: name, x: (x + width * .08).toFixed(1), y: (height + 20 - tall).toFixed(1), width: (width * .84).toFixed(1), height: tall.toFixed(1)}),
			dark ? element('rect', {class: 'busy', x: (x + width * .08).toFixed(1), y: (height + 20 - dark).toFixed(1), width: (width * .84).toFixed(1), height: dark.toFixed(1)}) : null,
			isCut ? element('text', {x: (x + width * .08).toFixed(1), y: 14, class: 'cut'}, pperf.fitText('↑ ' + step.text, Math.max(width, 72), 11)) : null);
		};

		box.draw = () => {
			const whole = box.clientWidth || 700, width = Math.min(120, whole / groups.length), svg = element('svg', {height: height + 22, viewBox: '0 0 ' + whole + ' ' + (height + 22),
				role: 'img', 'aria-label': 'Duration of each step; the table has the figures.'});
			svg.append(...groups.map((group, i) => bar(group, i, width)));
			if (medianNs) {
				const y = (height + 20 - medianNs / most * height).toFixed(1);
				svg.append(element('line', {class: 'median', x1: 0, x2: whole, y1: y, y2: y}));
			}
			box.replaceChildren(svg);
		};
		return box;
	};
})();
