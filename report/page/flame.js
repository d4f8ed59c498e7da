// The flame graph, a component that a page includes: pperf.flameGraph() returns its element.
(() => {
	'use strict';
	const {element, number, percent, count, text} = pperf;
	const ROW = 21, NARROWEST = .6, LEVELS = 4, LISTED = 12;
	const SHAPES = {folded: 'layers folded', each: 'each layer', stack: 'by call stack',
		functions: 'by path', python: 'Python', native: 'native', all: 'all frames'};
	const SCOPES = {steps: 'steps', all: 'whole run'};
	const TREE_VIEWS = new Set(['tree']);

	const quoted = word => /^[\w@%+=:,./*#-]+$/.test(word) ? word : "'" + word.replace(/'/g, "'\\''") + "'";

	class FlameGraph {
		constructor(data, commands, changed) {
			this.data = data;
			this.commands = commands;
			this.changed = new Set(changed);
			this.trees = new Map();
			this.zoom = this.selected = -1;
			this.found = null;
			this.drawn = new Map();
			this.build();
			this.restore();
		}

		// ---- state ----

		restore() {
			const {metrics} = this.data;
			const byKey = key => metrics.find(metric => metric.key === key);
			this.metric = byKey(pperf.recall('m')) || byKey(this.data.metric) || metrics[0];
			const shape = pperf.recall('shape') || this.data.shape;
			this.shape = this.metric && this.metric.shapes.includes(shape) ? shape : this.metric && this.metric.shapes[0];
			this.input.value = pperf.recall('q') || '';
			const zoom = Number(pperf.recall('zoom') ?? -1);
			if (this.metric && Number.isInteger(zoom) && zoom >= 0 && zoom < this.data.shapes[this.shape].parent.length)
				this.zoom = this.selected = zoom;
			const scope = pperf.recall('scope');
			this.scopeChosen = Object.hasOwn(SCOPES, scope ?? '') ? scope : null;
			this.includeFrame(this.zoom);
			this.refresh();
		}

		// The frames of the current shape with the values of a metric, of the steps or the whole run.
		treeOf(metric, scope = 'all') {
			const key = this.shape + ' ' + metric.number + ' ' + scope;
			if (!this.trees.has(key)) {
				const frames = this.data.shapes[this.shape];
				this.trees.set(key, pperf.flameTree(frames, frames.values[metric.number], this.data.sides,
					scope === 'steps' ? pperf.outsideFrames(frames) : null));
			}
			return this.trees.get(key);
		}

		get tree() {
			return this.treeOf(this.metric, this.scope);
		}

		// Whether the metric has values both in the steps and outside of them.
		get hasScopes() {
			const inSteps = this.treeOf(this.metric, 'steps').width;
			return inSteps > 0 && inSteps < this.treeOf(this.metric).width;
		}

		// Where time outside of the steps is longer than the steps, they would be too narrow to be
		// seen: then the graph opens with the steps alone. Memory is held from before the steps.
		get scope() {
			if (!this.hasScopes)
				return 'all';
			const isSmall = this.metric.unit === 'time' && this.treeOf(this.metric, 'steps').width < this.treeOf(this.metric).width / 2;
			return this.scopeChosen ?? (isSmall ? 'steps' : 'all');
		}

		setScope(scope) {
			this.scopeChosen = scope;
			pperf.remember('scope', scope);
			this.zoomTo(-1, true);
			this.refresh();
		}

		// Shows the whole run if a frame is not in the steps.
		includeFrame(frame) {
			if (frame >= 0 && this.metric && this.scope === 'steps' && !(this.tree.widths[frame] > 0) && this.treeOf(this.metric).widths[frame] > 0) {
				this.scopeChosen = 'all';
				pperf.remember('scope', 'all');
				return true;
			}
			return false;
		}

		show(metric, shape) {
			const moved = shape !== this.shape || !this.data.shapes[shape].values[metric.number];
			this.metric = metric;
			this.shape = shape;
			pperf.remember('m', metric.key === this.data.metric ? null : metric.key);
			pperf.remember('shape', shape === this.data.shape ? null : shape);
			if (moved)
				this.zoomTo(-1, true);
			this.includeFrame(this.zoom);
			this.refresh();
		}

		setMetric(metric) {
			this.show(metric, metric.shapes.includes(this.shape) ? this.shape : metric.shapes[0]);
		}

		zoomTo(frame, quiet) {
			this.zoom = this.selected = frame;
			pperf.remember('zoom', frame < 0 ? null : frame);
			if (!quiet)
				this.draw();
		}

		reset() {
			this.input.value = '';
			this.zoomTo(-1, true);
			this.find();
			this.draw();
		}

		// ---- what is around the picture ----

		build() {
			this.metricChoice = element('span', {class: 'choice', role: 'group', 'aria-label': 'Metric', id: 'metric'});
			this.shapeChoice = element('span', {class: 'choice', role: 'group', 'aria-label': 'Frames', id: 'shape'});
			this.scopeChoice = element('span', {class: 'choice', role: 'group', 'aria-label': 'Part of the run', id: 'scope'});
			this.input = element('input', {type: 'search', id: 'search', size: 24, placeholder: 'Search: text or /regex/',
				'aria-label': 'Search names: a text or a regular expression between slashes',
				input: () => this.search(), keydown: event => this.searchKey(event)});
			this.result = element('span', {class: 'note', id: 'found', role: 'status'});
			this.note = element('p', {class: 'note', id: 'note'});
			this.box = element('div', {class: 'flame', id: 'flame', tabindex: 0, role: 'tree',
				'aria-label': 'Flame graph. Arrow keys move, Enter zooms, Escape goes up, 0 shows all, slash searches.',
				click: event => this.click(event), mousemove: event => this.hover(event), mouseleave: pperf.hideTip,
				keydown: event => this.key(event)});
			this.legend = element('div', {class: 'legend', id: 'legend'});
			this.details = element('div', {class: 'details', id: 'details'});
			this.element = element('section', {class: 'card', 'aria-label': 'Flame graph'},
				element('div', {class: 'bar'}, element('h2', null, this.data.sides === 2 ? 'What changed' : 'Flame graph'),
					this.metricChoice, this.shapeChoice, element('span', {class: 'grow'}), this.result, this.input,
					element('button', {type: 'button', id: 'reset', click: () => this.reset()}, 'Reset')),
				element('div', {class: 'bar'}, this.scopeChoice, this.note), this.box, this.legend, this.details);
		}

		fillChoice(choice, entries, current, pick) {
			choice.hidden = entries.length < 2;
			choice.replaceChildren(...entries.map(([key, title, value]) => element('button', {type: 'button', 'data-key': key,
				'aria-pressed': String(value === current), click: () => pick(value)}, title)));
		}

		refresh() {
			if (!this.metric) {
				this.note.textContent = 'The trace has no time and no memory to draw.';
				return;
			}
			this.fillChoice(this.metricChoice, this.data.metrics.map(metric => [metric.key, metric.title, metric]), this.metric,
				metric => this.setMetric(metric));
			this.fillChoice(this.shapeChoice, this.metric.shapes.map(shape => [shape, SHAPES[shape], shape]), this.shape,
				shape => this.show(this.metric, shape));
			this.fillChoice(this.scopeChoice, this.hasScopes ? Object.entries(SCOPES).map(([key, title]) => [key, title, key]) : [], this.scope,
				scope => this.setScope(scope));
			this.note.textContent = this.summary();
			this.find();
			this.draw();
		}

		value(amount) {
			const unit = this.metric.unit_name;
			return number(amount, this.metric.unit) + (unit ? ' ' + unit : '');
		}

		change(amount) {
			return (amount > 0 ? '+' : '') + this.value(amount);
		}

		summary() {
			const {tree, metric} = this;
			if (this.data.sides === 2)
				return metric.title + ' ' + this.value(tree.totalBefore) + ' → ' + this.value(tree.total) + ', ' + this.change(tree.total - tree.totalBefore) +
					': ' + metric.note + '. The width of a frame is the wider side; its colour is the change.';
			const all = this.treeOf(metric).total, part = tree.total < all ? ' in steps, of ' + this.value(all) : '';
			return metric.title + ' ' + this.value(tree.total) + part + ': ' + metric.note + '.' +
				(this.data.more_stacks && (metric.is_memory || metric.key === 'gpu') ? ' With --by stack the page has native call stacks, too.' : '');
		}

		// ---- search ----

		// A search changes no frame but how it is marked, so nothing is drawn again.
		search() {
			this.find();
			for (const [frame, group] of this.drawn)
				this.mark(group, frame);
		}

		find() {
			const query = this.input.value;
			pperf.remember('q', query);
			this.found = null;
			this.result.textContent = '';
			const test = query && this.metric ? pperf.nameTest(query) : null;
			if (query && !test)
				this.result.textContent = 'no valid regular expression';
			if (test) {
				this.found = pperf.flameSearch(this.tree, test);
				this.result.textContent = count(this.found.list.length) + ' found, ' + this.value(this.found.sum) + ' (' +
					percent(this.found.sum, this.tree.total) + ')';
			}
		}

		mark(group, frame) {
			const isHit = this.found !== null && this.found.hits[frame] === 1;
			group.classList.toggle('hit', isHit);
			group.classList.toggle('dim', this.found !== null && !isHit);
		}

		searchKey(event) {
			if (event.key === 'Enter') {
				event.preventDefault();
				this.nextHit(event.shiftKey ? -1 : 1);
			} else if (event.key === 'Escape') {
				event.preventDefault();
				this.input.value = '';
				this.search();
				this.box.focus();
			}
		}

		nextHit(step) {
			const list = this.found ? this.found.list : [];
			if (!list.length)
				return;
			const at = list.indexOf(this.selected);
			this.select(list[at < 0 ? (step > 0 ? 0 : list.length - 1) : (at + step + list.length) % list.length]);
		}

		// ---- picture ----

		colour(frame) {
			const {tree} = this;
			if (this.data.sides === 1)
				return 'k' + tree.frames.kind[frame];
			const change = tree.change[frame];
			if (!change)
				return 'same';
			// The root of a change, so that changes of leaves are seen beside those of the whole.
			return (change > 0 ? 'up' : 'down') + Math.min(LEVELS, Math.ceil(Math.sqrt(Math.abs(change) / tree.largestChange) * LEVELS));
		}

		label(frame) {
			return text(this.tree.frames.label[frame]);
		}

		share(frame) {
			return this.data.sides === 2 ? this.change(this.tree.change[frame]) : percent(this.tree.totals[frame], this.tree.total);
		}

		spoken(frame) {
			const {tree} = this;
			return this.label(frame) + ', ' + (tree.before ? this.value(tree.before[frame]) + ' to ' : '') + this.value(tree.totals[frame]) +
				', ' + this.share(frame);
		}

		classes(frame, above) {
			return [above ? 'above' : '', frame === this.selected ? 'selected' : ''].filter(Boolean).join(' ') || null;
		}

		drawFrame(svg, frame, x, width, depth, above) {
			const share = this.share(frame), shareWidth = pperf.textWidth(share, 11) + 10, y = depth * ROW;
			const withShare = width > shareWidth + 70 && !above;
			const label = pperf.fitText(this.label(frame), width - 8 - (withShare ? shareWidth : 0), 12);
			const group = element('g', {id: 'f' + frame, 'data-frame': frame, role: 'treeitem', 'aria-level': depth + 1,
				'aria-label': this.spoken(frame), 'aria-selected': String(frame === this.selected), class: this.classes(frame, above)},
			element('rect', {x: x.toFixed(2), y, width: Math.max(NARROWEST, width).toFixed(2), height: ROW, rx: 2, class: this.colour(frame)}),
			label ? element('text', {x: (x + 4).toFixed(1), y: y + 15}, label) : null,
			withShare ? element('text', {class: 'share', x: (x + width - 5).toFixed(1), y: y + 15}, share) : null);
			this.mark(group, frame);
			svg.append(group);
			this.drawn.set(frame, group);
			this.kinds.add(this.tree.frames.kind[frame]);
			this.deepest = Math.max(this.deepest, depth);
		}

		// Frames are drawn level by level: a trace may be deeper than a browser's stack.
		drawLevels(svg, frames, scale, depth) {
			let level = [], x = 0;
			for (const frame of frames) {
				level.push([frame, x]);
				x += this.tree.widths[frame] * scale;
			}
			for (; level.length; depth++) {
				const next = [];
				for (const [frame, left] of level) {
					const width = this.tree.widths[frame] * scale;
					if (width < NARROWEST) {
						this.tooNarrow += width > 0;
						continue;
					}
					this.drawFrame(svg, frame, left, width, depth, false);
					let at = left;
					for (const child of this.tree.children[frame]) {
						next.push([child, at]);
						at += this.tree.widths[child] * scale;
					}
				}
				level = next;
			}
		}

		draw() {
			if (!this.metric)
				return;
			const {tree} = this, width = this.box.clientWidth || 1340, svg = element('svg', null);
			const above = this.zoom >= 0 ? pperf.flamePath(tree, tree.frames.parent[this.zoom]) : [];
			const whole = this.zoom >= 0 ? tree.widths[this.zoom] : tree.width;
			pperf.hideTip();
			this.drawn.clear();
			this.kinds = new Set();
			this.deepest = this.tooNarrow = 0;
			above.forEach((frame, depth) => this.drawFrame(svg, frame, 0, width, depth, true));
			this.drawLevels(svg, this.zoom >= 0 ? [this.zoom] : tree.roots, whole > 0 ? width / whole : 0, above.length);
			const height = (this.deepest + 1) * ROW;
			svg.setAttribute('height', height);
			svg.setAttribute('viewBox', '0 0 ' + width + ' ' + height);
			this.box.replaceChildren(svg);
			if (this.selected >= 0 && this.drawn.has(this.selected))
				this.box.setAttribute('aria-activedescendant', 'f' + this.selected);
			else
				this.box.removeAttribute('aria-activedescendant');
			this.drawLegend();
			this.drawDetails();
		}

		drawLegend() {
			const entry = (name, title) => element('span', null, element('i', {class: name}), title);
			const entries = this.data.sides === 2
				? [entry('down4', 'less'), entry('down2', 'a little less'), entry('same', 'the same'), entry('up2', 'a little more'), entry('up4', 'more'),
					element('span', null, 'strongest colour: ' + this.value(this.tree.largestChange))]
				: [...this.kinds].sort((a, b) => a - b).map(kind => entry('k' + kind, this.data.kinds[kind]));
			if (this.tooNarrow)
				entries.push(element('span', {id: 'narrow'}, count(this.tooNarrow) + ' too narrow to draw'));
			this.legend.replaceChildren(...entries);
		}

		// ---- facts about a frame ----

		// What the tree has beside the metrics. `cpu` is the text views' time of a range: without a
		// backward pass that is drawn below it, and with ranges that are drawn elsewhere.
		cells(frame) {
			const {frames} = this.tree, pairs = [];
			const cell = (key, title, unit) => {
				if (frames[key] && frames[key][frame])
					pairs.push([title, unit ? number(frames[key][frame], unit) : count(frames[key][frame])]);
			};
			cell('calls', 'calls');
			if (this.cpuTotal(frame) !== frames.cpu?.[frame])
				cell('cpu', 'time of its calls, as in tree', 'time');
			cell('median', 'median call', 'time');
			cell('longest', 'longest call', 'time');
			cell('latency', 'launch latency, median', 'time');
			return pairs;
		}

		cpuTotal(frame) {
			const metric = this.data.metrics.find(one => one.key === 'cpu');
			return metric && this.tree.frames.values[metric.number] ? this.treeOf(metric).totals[frame] : 0;
		}

		otherMetrics(frame) {
			const {frames} = this.tree, pairs = [];
			if (this.data.sides === 2)
				return pairs;
			for (const metric of this.data.metrics) {
				if (metric === this.metric || !frames.values[metric.number])
					continue;
				const value = this.treeOf(metric).totals[frame];
				if (value)
					pairs.push([metric.title, number(value, metric.unit) + (metric.unit_name ? ' ' + metric.unit_name : '')]);
			}
			return pairs;
		}

		frameFacts(frame) {
			const {tree} = this, parent = tree.frames.parent[frame];
			if (this.data.sides === 2)
				return [['before', this.value(tree.before[frame])], ['after', this.value(tree.totals[frame])],
					['change', this.change(tree.change[frame])], ...(tree.before[frame] ? [['of before', percent(tree.change[frame], tree.before[frame])]] : []),
					...(tree.ownChange[frame] && tree.children[frame].length ? [['change of its own', this.change(tree.ownChange[frame])]] : [])];
			const pairs = [[this.metric.title, this.value(tree.totals[frame]) + ' (' + percent(tree.totals[frame], tree.total) + ')']];
			if (tree.own[frame] && tree.children[frame].length)
				pairs.push(['of its own', this.value(tree.own[frame])]);
			if (parent >= 0)
				pairs.push(['of the frame above', percent(tree.totals[frame], tree.totals[parent])]);
			return [...pairs, ...this.otherMetrics(frame), ...this.cells(frame)];
		}

		pathText(frame) {
			return pperf.flamePath(this.tree, frame).map(at => text(this.tree.frames.name[at])).join(' / ');
		}

		// The command of the text view. A name that the page shows in another form cannot be typed.
		command(frame) {
			const {frames} = this.tree, path = pperf.flamePath(this.tree, frame);
			if (this.data.sides === 2)
				return this.commands.diff + ' -m ' + quoted(this.metric.key);
			if (this.metric.view === 'tree --functions')
				return this.commands.tree.replace(' tree ', ['python', 'native', 'all'].includes(this.shape) ? ' flame --by ' + this.shape + ' ' : ' tree --functions ');
			let command = this.commands[this.metric.view] || this.commands.tree;
			if (this.metric.is_counter)
				command += ' -m ' + quoted(this.metric.key);
			if (!TREE_VIEWS.has(this.metric.view) || this.shape === 'stack')
				return command;
			if (this.metric.key !== 'idle')
				command += ' -m ' + this.metric.key;
			if (this.shape === 'each' && this.data.shapes.folded)
				command += ' --no-fold';
			if (path.some(at => this.changed.has(frames.name[at]) || this.data.kinds[frames.kind[at]].startsWith('small')))
				return command;
			return command + ' --focus ' + quoted(path.map(at => text(frames.name[at]).replace(/[\\/]/g, '\\$&')).join('/'));
		}

		drawDetails() {
			const frame = this.selected >= 0 ? this.selected : this.zoom;
			if (frame < 0) {
				this.details.replaceChildren(...this.overview());
				return;
			}
			const parent = this.tree.frames.parent[frame];
			this.details.replaceChildren(element('div', null, element('b', null, this.label(frame)),
				parent >= 0 ? element('div', {class: 'note'}, 'in ' + this.pathText(parent)) : null),
			pperf.facts(this.frameFacts(frame), 'facts'), element('div', null, element('code', null, this.command(frame))));
		}

		// What is below the picture while no frame is selected: the frames with the largest values of
		// their own, or changes of their own. Own values are in no other frame, so each counts once.
		overview() {
			const {tree} = this, isDiff = this.data.sides === 2, values = isDiff ? tree.ownChange : tree.own;
			const order = values.map((value, frame) => frame).filter(frame => values[frame])
				.sort((a, b) => Math.abs(values[b]) - Math.abs(values[a]) || a - b).slice(0, LISTED);
			const note = element('p', {class: 'note'}, (isDiff ? 'Largest changes' : 'Largest frames') + ' by what is in no frame below them. ',
				element('span', {class: 'hint'}, 'Click a frame to zoom; arrow keys move, Enter zooms, Escape goes up, 0 shows all, / searches.'));
			if (!order.length)
				return [note, isDiff ? element('p', null, 'Nothing changed.') : null].filter(Boolean);
			return [note, element('div', {class: 'largest', id: 'largest'}, order.map(frame =>
				element('button', {type: 'button', 'data-frame': frame, click: () => this.select(frame)},
					...(isDiff ? this.changeCells(frame) : this.valueCells(frame)), element('span', null, this.pathText(frame)))))];
		}

		valueCells(frame) {
			const own = this.tree.own[frame];
			return [element('span', {class: 'amount'}, this.value(own)), element('span', {class: 'amount'}, percent(own, this.tree.total))];
		}

		changeCells(frame) {
			const {tree} = this, change = tree.ownChange[frame], after = tree.own[frame], before = after - change;
			return [element('span', {class: 'amount ' + (change > 0 ? 'increase' : 'decrease')}, this.change(change)),
				element('span', null, !before ? 'new, ' + this.value(after) : !after ? 'gone, was ' + this.value(before)
					: this.value(before) + ' → ' + this.value(after))];
		}

		// ---- pointer and keys ----

		target(event) {
			const group = event.target.closest('g[data-frame]');
			return group ? Number(group.dataset.frame) : -1;
		}

		click(event) {
			const frame = this.target(event);
			if (frame < 0)
				return;
			this.zoomTo(frame === this.zoom ? this.tree.frames.parent[frame] : frame);
			this.box.focus({preventScroll: true});
		}

		hover(event) {
			const frame = this.target(event);
			if (frame < 0) {
				pperf.hideTip();
				return;
			}
			const parent = this.tree.frames.parent[frame];
			pperf.showTip(event, this.label(frame), this.frameFacts(frame), parent >= 0 ? 'in ' + this.pathText(parent) : '');
		}

		// Selects a frame, and zooms out or in until it is wide enough to be drawn.
		select(frame) {
			if (this.includeFrame(frame))
				this.refresh();
			const {tree} = this;
			this.selected = frame;
			const scale = zoom => this.box.clientWidth / (zoom >= 0 ? tree.widths[zoom] : tree.width);
			const path = pperf.flamePath(tree, frame);
			const isVisible = zoom => (zoom < 0 || path.includes(zoom) || pperf.flamePath(tree, zoom).includes(frame)) &&
				tree.widths[frame] * scale(zoom) >= 2;
			if (!isVisible(this.zoom)) {
				this.zoom = isVisible(-1) ? -1 : path.find(at => tree.widths[frame] * scale(at) >= 20) ?? frame;
				pperf.remember('zoom', this.zoom < 0 ? null : this.zoom);
			}
			this.draw();
			pperf.announce(this.spoken(frame));
			document.getElementById('f' + frame)?.scrollIntoView({block: 'nearest'});
		}

		// Keeps siblings without a width out of reach.
		siblings(frame) {
			const parent = frame >= 0 ? this.tree.frames.parent[frame] : -1;
			return (parent >= 0 ? this.tree.children[parent] : this.tree.roots).filter(at => this.tree.widths[at] > 0);
		}

		move(step) {
			const row = this.siblings(this.selected), to = row[row.indexOf(this.selected) + step];
			if (to !== undefined)
				this.select(to);
		}

		moveDown() {
			const down = this.selected >= 0 ? this.tree.children[this.selected] : this.zoom >= 0 ? [this.zoom] : this.tree.roots;
			if (down.length && this.tree.widths[down[0]] > 0)
				this.select(down[0]);
		}

		moveUp() {
			const parent = this.selected >= 0 ? this.tree.frames.parent[this.selected] : -1;
			if (parent >= 0)
				this.select(parent);
		}

		escape() {
			const {zoom} = this;
			if (zoom < 0) {
				this.zoomTo(-1);
				return;
			}
			this.zoomTo(this.tree.frames.parent[zoom], true);
			this.selected = zoom;
			this.draw();
		}

		key(event) {
			const actions = {
				ArrowDown: () => this.moveDown(), ArrowUp: () => this.moveUp(), ArrowRight: () => this.move(1), ArrowLeft: () => this.move(-1),
				Home: () => this.select(this.siblings(-1)[0]), Enter: () => this.selected >= 0 && this.zoomTo(this.selected),
				' ': () => this.selected >= 0 && this.zoomTo(this.selected), Escape: () => this.escape(), 0: () => this.zoomTo(-1),
				n: () => this.nextHit(1), N: () => this.nextHit(-1),
			};
			if (!this.metric || event.ctrlKey || event.metaKey || event.altKey || !Object.hasOwn(actions, event.key))
				return;
			event.preventDefault();
			actions[event.key]();
		}
	}

	pperf.flameGraph = (data = pperf.data) => new FlameGraph(data.flame, data.commands, data.changed);
})();
