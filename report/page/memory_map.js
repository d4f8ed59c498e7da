// The map of device memory: what was reserved over time, and at chosen moments each segment with the
// blocks and gaps in it. pperf.memoryMap(data) makes its card, or null. Options of one of two maps:
// `key` of the moment in the address, `prefix` of ids, `title`, `scale` (the maps whose bars have one
// scale), `first` (names of moments, of which the latest is shown first), `shown` (called with a moment that was chosen).
(() => {
	'use strict';
	const {element, number, count} = pperf;
	const HEIGHT = 72, ROWS = 12, BAR = 14, NARROWEST = .4;
	const LAYERS = [['used', 'in tensors'], ['gap', 'gaps between tensors'], ['empty', 'empty segments'], ['unknown', 'not known']];
	const FILLS = {empty: 'empty', unknown: 'unknown'};

	const cell = (table, key, row) => pperf.column(table, key)?.text[row] ?? '';
	const value = (table, key, row) => pperf.column(table, key)?.value[row] ?? 0;

	// The parts of reserved memory of a row of `memory --over-time`; they add up to it.
	const layersOf = (table, row) => {
		const gaps = value(table, 'free_inside_bytes', row), empty = value(table, 'empty_bytes', row), unknown = value(table, 'unknown_bytes', row);
		return {used: Math.max(0, value(table, 'reserved_bytes', row) - gaps - unknown), gap: gaps - empty, empty, unknown};
	};

	const mostReserved = data => Math.max(0, ...pperf.column(data.memory_map.memory_history, 'reserved_bytes').value);
	const largestSegment = ({memory_map: {memory_map: table}}) => Math.max(0, ...table.kind.map((kind, row) => kind === 'segment' ? value(table, 'bytes', row) : 0));

	class MemoryMap {
		constructor(data, options) {
			Object.assign(this, data.memory_map, {all: false, end: data.scene.whole.end_ns, options});
			this.history = data.memory_map.memory_history;
			this.table = data.memory_map.memory_map;
			this.devices = [...new Set(pperf.column(this.table, 'device').value.filter(one => one !== null))];
			this.readMoments();
			const wanted = Number(pperf.recall(options.key) ?? -1);
			this.chosen = this.list[wanted] ? wanted : Math.max(0, ...options.first.map(name => this.list.findIndex(one => one.name.startsWith(name))));
			this.build();
		}

		// Each moment with the rows of its segments, as the view has them: most free memory first.
		readMoments() {
			this.list = [];
			this.table.kind.forEach((kind, row) => {
				if (kind === 'moment') {
					const label = this.table.label[row], name = this.devices.length > 1 ? label : label.replace(/, device \d+$/, '');
					this.list.push({row, name, at: value(this.table, 'at_ns', row), device: value(this.table, 'device', row), segments: [], parts: this.moments[this.list.length]});
				} else if (kind === 'segment') {
					this.list[this.list.length - 1].segments.push(row);
				}
			});
			this.most = Math.max(1, ...this.options.scale.map(mostReserved));
			this.largest = this.options.scale.length > 1 ? Math.max(1, ...this.options.scale.map(largestSegment)) : 0;
		}

		build() {
			const title = one => one.name === 'time' || one.name.startsWith('time,') ? cell(this.table, 'at_ns', one.row) + one.name.slice(4) : one.name;
			this.choices = element('div', {class: 'choice', role: 'group', 'aria-label': 'Moment'}, this.list.map((one, i) => element('button', {type: 'button', 'data-moment': i, click: () => this.choose(i)}, title(one))));
			this.charts = element('div', {id: this.options.prefix + 'map-history'});
			this.facts = element('p', {class: 'note', role: 'status'});
			this.body = element('tbody');
			this.more = element('button', {type: 'button', click: () => { this.all = true; this.fill(); }});
			const heads = [['size', ''], ['from the begin of the segment to its end', 'left wide'], ['in use', ''], ['tensors', ''], ['largest gap', ''], ['held by', 'left']];
			this.rows = element('div', {class: 'scroll', tabindex: 0, role: 'region', 'aria-label': 'Segments'}, element('table', {id: this.options.prefix + 'segment-table', class: 'segment-table'},
				element('thead', null, element('tr', null, heads.map(([text, name]) => element('th', {scope: 'col', class: name || null}, text)))), this.body));
			this.legend = element('div', {class: 'legend'}, LAYERS.filter(([name]) => this.history.label.some((label, row) => layersOf(this.history, row)[name] > 0))
				.map(([name, text]) => element('span', null, element('i', {class: 'map-' + name}), text)));
			this.element = pperf.card(this.options.prefix + 'memory-map', this.options.title, 'what was reserved, and how tensors fill it; a click chooses the moment', this.charts, this.legend,
				element('div', {class: 'bar moments'}, this.choices), this.facts, this.rows, this.more, element('p', null, element('code', null, this.command)));
			this.element.classList.add('memory-map');
			this.fill();
		}

		choose(i) {
			this.all = false;
			this.show(i);
			pperf.announce(this.facts.textContent);
			this.options.shown(this.list[i]);
		}

		show(i) {
			this.chosen = i;
			pperf.remember(this.options.key, String(i));
			this.fill();
			this.draw();
		}

		// Shows the moment of this name, if there is one: the peak, or where memory ran out.
		follow(name) {
			const i = this.list.findIndex(one => one.name === name && !one.name.startsWith('time'));
			if (i >= 0)
				this.show(i);
		}

		// ---- over time ----

		draw() {
			this.charts.replaceChildren(...this.devices.map(device => this.chart(device)));
		}

		chart(device) {
			const width = this.charts.clientWidth || 1300, left = 116 > width / 5 ? 84 : 116, room = width - left - 2, {history} = this;
			const rows = history.label.map((label, row) => row).filter(row => value(history, 'device', row) === device), x = at => left + at / this.end * room;
			const peak = rows.reduce((a, b) => value(history, 'reserved_bytes', b) > value(history, 'reserved_bytes', a) ? b : a, rows[0]);
			const svg = element('svg', {class: 'map-chart', width, height: HEIGHT + 16, viewBox: '0 0 ' + width + ' ' + (HEIGHT + 16), role: 'img', 'aria-label': 'Reserved memory over time; the table below has its figures.',
				click: event => this.chooseAt(device, (event.clientX - svg.getBoundingClientRect().x - left) / room * this.end),
				mousemove: event => this.tipAt(event, rows, (event.clientX - svg.getBoundingClientRect().x - left) / room * this.end), mouseleave: pperf.hideTip});
			svg.append(element('rect', {class: 'lane-back', x: left, y: 0, width: room, height: HEIGHT}));
			rows.forEach((row, i) => {
				const begin = x(value(history, 'at_ns', row)), end = i + 1 < rows.length ? x(value(history, 'at_ns', rows[i + 1])) : x(this.end), layers = layersOf(history, row);
				let y = HEIGHT;
				for (const [name] of LAYERS) {
					const height = layers[name] / this.most * (HEIGHT - 4);
					if (height > .2)
						svg.append(element('rect', {class: 'map-' + name, x: begin.toFixed(2), y: (y -= height).toFixed(2), width: Math.max(.5, end - begin + .05).toFixed(2), height: height.toFixed(2)}));
				}
			});
			svg.append(element('text', {class: 'soft', x: left - 8, y: 12, 'text-anchor': 'end'}, this.devices.length > 1 ? 'GPU ' + device : 'reserved'),
				element('text', {class: 'soft', x: left - 8, y: 26, 'text-anchor': 'end'}, cell(history, 'reserved_bytes', peak)),
				element('text', {class: 'soft', x: left - 8, y: HEIGHT, 'text-anchor': 'end'}, '0'));
			this.list.forEach((one, i) => {
				if (one.device === device)
					svg.append(element('line', {class: i === this.chosen ? 'moment chosen' : 'moment', x1: x(one.at).toFixed(1), x2: x(one.at).toFixed(1), y1: 0, y2: HEIGHT + 2}));
			});
			svg.append(this.momentText(device, x, left, width));
			return svg;
		}

		momentText(device, x, left, width) {
			const one = this.list[this.chosen];
			if (!one || one.device !== device)
				return '';
			const text = cell(this.table, 'at_ns', one.row), half = pperf.textWidth(text, 11) / 2;
			return element('text', {class: 'chosen', x: Math.max(left + half, Math.min(width - half - 2, x(one.at))).toFixed(1), y: HEIGHT + 13, 'text-anchor': 'middle'}, text);
		}

		chooseAt(device, at) {
			const found = this.list.map((one, i) => [one.device === device ? Math.abs(one.at - at) : Infinity, i]).sort((a, b) => a[0] - b[0])[0];
			if (found && found[0] < Infinity)
				this.choose(found[1]);
		}

		tipAt(event, rows, at) {
			const {history} = this, before = rows.filter(row => value(history, 'at_ns', row) <= at), row = before[before.length - 1];
			if (row === undefined || at > this.end) {
				pperf.hideTip();
				return;
			}
			const layers = layersOf(history, row);
			pperf.showTip(event, cell(history, 'reserved_bytes', row) + ' reserved at ' + cell(history, 'at_ns', row), [...LAYERS.filter(([name]) => layers[name]).map(([name, text]) => [text, number(layers[name], 'bytes')]),
				...[['fragmentation', 'fragmentation'], ['largest gap', 'largest_gap_bytes'], ['segments', 'segments']].map(([text, key]) => [text, cell(history, key, row)]).filter(pair => pair[1])], '');
		}

		// ---- the segments of a moment ----

		fill() {
			const one = this.list[this.chosen];
			this.choices.querySelectorAll('button').forEach((button, i) => button.setAttribute('aria-pressed', String(i === this.chosen)));
			if (!one)
				return;
			const {table} = this, fact = (key, text) => cell(table, key, one.row) ? cell(table, key, one.row) + ' ' + text : '';
			this.facts.replaceChildren([fact('reserved_bytes', 'reserved'), 'in ' + cell(table, 'segments', one.row) + ' segments', fact('tensor_bytes', 'in tensors'), fact('free_inside_bytes', 'free inside the segments'),
				cell(table, 'fragmentation', one.row) ? 'fragmentation ' + cell(table, 'fragmentation', one.row) : '', cell(table, 'requested_bytes', one.row) ? 'requested: ' + cell(table, 'requested_bytes', one.row) : '',
				value(table, 'segments', one.row) > one.segments.length ? 'below: the ' + count(one.segments.length) + ' with most free memory' : ''].filter(Boolean).join(' · '));
			const shown = this.all ? one.segments : one.segments.slice(0, ROWS), most = this.largest || Math.max(1, ...one.segments.map(row => value(table, 'bytes', row)));
			this.body.replaceChildren(...shown.map(row => this.segment(one, row, most)));
			this.more.hidden = shown.length === one.segments.length;
			this.more.textContent = 'All ' + count(one.segments.length) + ' segments of this page';
		}

		segment(one, row, most) {
			const {table} = this, fill = cell(table, 'fill', row), bytes = value(table, 'bytes', row), at = one.parts.address.indexOf(value(table, 'address', row));
			const blocks = at < 0 ? null : one.parts.blocks[at], used = blocks ? (blocks.cells || blocks.bytes).reduce((sum, part) => sum + part, 0) : 0;
			const held = cell(table, 'holder', row), line = cell(table, 'line', row);
			return element('tr', {'data-row': row}, element('td', null, cell(table, 'bytes', row)), element('td', {class: 'left'}, this.picture(row, bytes, most, blocks, FILLS[fill] || 'gap')),
				element('td', null, FILLS[fill] ? fill : blocks ? pperf.percent(used, bytes) : fill), element('td', null, cell(table, 'tensors', row)), element('td', null, cell(table, 'largest_gap_bytes', row)),
				element('td', {class: 'left name'}, held ? [cell(table, 'holder_bytes', row) + ' ', held] : '', element('div', {class: 'note'}, 'allocated at ' + cell(table, 'since_ns', row), line ? ' in ' + line : '')));
		}

		// A bar as long as the segment is large, with its blocks; what is between them is a gap.
		picture(row, bytes, most, blocks, back) {
			const {table} = this, scale = 1000 / most, svg = element('svg', {class: 'segment', viewBox: '0 0 1000 ' + BAR, preserveAspectRatio: 'none', role: 'img',
				'aria-label': 'Segment of ' + cell(table, 'bytes', row) + ': ' + cell(table, 'fill', row) + ', largest gap ' + (cell(table, 'largest_gap_bytes', row) || '0 B'),
				mousemove: event => this.tipSegment(event, svg, row, bytes, most, blocks), mouseleave: pperf.hideTip});
			svg.append(element('rect', {class: 'map-' + back, x: 0, y: 0, width: (bytes * scale).toFixed(2), height: BAR}));
			let begin = 0;
			// Of many blocks, each cell is filled as far as it is occupied.
			(blocks?.cells || []).forEach((occupied, i, {length}) => {
				const height = Math.min(1, occupied / bytes * length) * BAR;
				if (occupied)
					svg.append(element('rect', {class: 'map-used', x: (i / length * bytes * scale).toFixed(2), y: (BAR - height).toFixed(2), width: (bytes * scale / length).toFixed(2), height: height.toFixed(2)}));
			});
			(blocks?.begin || []).forEach((distance, i) => {
				begin += distance;
				const width = blocks.bytes[i] * scale;
				svg.append(element('rect', {class: 'map-used', x: (begin * scale).toFixed(2), y: 0, width: Math.max(NARROWEST, width - (width > 4 ? .8 : 0)).toFixed(2), height: BAR}));
				begin += blocks.bytes[i];
			});
			return svg;
		}

		tipSegment(event, svg, row, bytes, most, blocks) {
			const {table} = this, box = svg.getBoundingClientRect(), at = (event.clientX - box.x) / box.width * most;
			if (at > bytes) {
				pperf.hideTip();
				return;
			}
			if (blocks?.cells) {
				const {length} = blocks.cells, cellAt = Math.min(length - 1, Math.floor(at / bytes * length));
				pperf.showTip(event, number(blocks.cells[cellAt], 'bytes') + ' of ' + number(Math.round(bytes / length), 'bytes') + ' here are in use', [['at', number(Math.round(cellAt / length * bytes), 'bytes')], ['of', cell(table, 'bytes', row)]],
					'There are too many tensors to draw each one.');
				return;
			}
			let begin = 0;
			for (let i = 0; blocks && i < blocks.begin.length; i++) {
				if (at < begin + blocks.begin[i]) {
					pperf.showTip(event, 'gap of ' + number(blocks.begin[i], 'bytes'), [['at', number(begin, 'bytes')], ['of', cell(table, 'bytes', row)]], '');
					return;
				}
				begin += blocks.begin[i];
				if (at < begin + blocks.bytes[i]) {
					pperf.showTip(event, (blocks.count[i] > 1 ? count(blocks.count[i]) + ' tensors of ' : 'tensor of ') + number(blocks.bytes[i], 'bytes'), [['since', number(blocks.since_ns[i], 'time')], ['at', number(begin, 'bytes')]],
						this.holders[blocks.holder[i]]);
					return;
				}
				begin += blocks.bytes[i];
			}
			const fill = cell(table, 'fill', row);
			pperf.showTip(event, fill === 'unknown' ? 'what is in it is not known' : fill === 'empty' ? 'an empty segment' : 'gap of ' + number(bytes - begin, 'bytes'),
				[['of', cell(table, 'bytes', row)], ...(cell(table, 'emptied_ns', row) ? [['empty since', cell(table, 'emptied_ns', row)]] : [])], '');
		}
	}

	pperf.memoryMap = (data, options) => data.memory_map
		? new MemoryMap(data, {key: 'map', prefix: '', title: 'Memory map', scale: [data], first: ['out of memory', 'peak'], shown: () => {}, ...options}) : null;
})();
