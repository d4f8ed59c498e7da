// The timeline, a component: steps, GPUs, streams, host threads and memory on one time axis.
(() => {
	'use strict';
	const {element, number, percent} = pperf;
	const AXIS = 22, STEPS = 18, GPU = 36, STREAM = 22, LEVEL = 14, MEMORY = 84, GAP = 6;
	const RANK = 30, COLLECTIVES = 10, STREAMS_SHOWN = 8, THREADS_SHOWN = 2, NARROWEST_NS = 50, DETAIL = 2;
	const CAUSES = ['launch-bound', 'host-bound', 'launch latency', 'synchronisation', 'copy calls', 'gap between kernels', 'data loading', 'compilation', 'first calls',
		'allocation', 'event wait', 'unexplained wait'];
	const PART_TITLES = {wait: 'waits for another rank', transfer: 'transfers', unmatched: 'without a match'};
	const CATEGORY_COLOURS = 10, OWNER_COLOURS = 8;

	// ---- colours: a canvas cannot read custom properties with light-dark() ----

	const probe = element('span', {hidden: ''});
	document.body.append(probe);
	let colours = new Map();
	const colour = name => {
		if (!colours.has(name)) {
			probe.style.color = 'var(--' + name + ')';
			colours.set(name, getComputedStyle(probe).color);
		}
		return colours.get(name);
	};

	const causeClass = name => {
		const at = CAUSES.indexOf(name);
		return name === 'busy' ? 'busy' : name === 'exposed communication' ? 'exposed' : name === 'unrecorded' ? 'idle-unrecorded' : at < 0 ? 'idle-other' : 'idle-' + at;
	};

	pperf.causeClass = causeClass;
	// In stacks of a rank: busy, exposed communication, then the causes of idle time in their order.
	const rankOrder = name => name === 'busy' ? 0 : name === 'exposed communication' ? 1 : CAUSES.includes(name) ? 2 + CAUSES.indexOf(name) : 2 + CAUSES.length;
	pperf.rankOrder = rankOrder;

	// Categories have colours by their time over all streams of the scenes, which are shown together;
	// those beyond the palette are grey. Returns [name, time] by time.
	const rankCategories = scenes => {
		const categories = new Map();
		for (const lane of scenes.flatMap(scene => scene.facts))
			if (lane.kind === 'stream')
				for (const one of lane.series)
					categories.set(one.name, (categories.get(one.name) || 0) + one.total);
		return [...categories].sort((a, b) => b[1] - a[1] || (a[0] < b[0] ? -1 : 1));
	};

	const readSteps = table => {
		const column = key => table.columns.find(one => one.key === key);
		const start = column('start_ns'), duration = column('duration_ns'), outlier = column('outlier');
		if (!start || !duration)
			return [];
		return table.label.map((label, i) => ({label, state: column('state')?.text[i], outlier: outlier ? outlier.text[i] : '', row: i,
			begin: start.value[i], duration: duration.value[i], text: duration.text[i]})).filter((step, i) => table.kind[i] === 'step' && step.begin !== null);
	};

	// Reads runs that are shown together: each is {data, scene, steps, usual, ranked, categoryClass}.
	pperf.readRuns = all => {
		const runs = all.map(data => ({data, scene: pperf.readScene(data), steps: data.tables ? readSteps(data.tables.steps) : []}));
		const order = new Map(rankCategories(runs.map(run => run.scene)).map(([name], i) => [name, i]));
		for (const run of runs) {
			run.usual = run.steps.filter(step => step.state === 'usual');
			run.ranked = rankCategories([run.scene]).sort((a, b) => order.get(a[0]) - order.get(b[0]));
			run.categoryClass = name => order.get(name) < CATEGORY_COLOURS ? 'category-' + order.get(name) : 'category-other';
		}
		return runs;
	};

	// Returns a step of the axis: 1, 2 or 5 times a power of ten, at least `least`.
	const roundUp = least => {
		const power = 10 ** Math.floor(Math.log10(Math.max(1, least)));
		return [1, 2, 5, 10].map(factor => factor * power).find(value => value >= least);
	};
	const tickText = (time, step) => {
		const [unit, name] = time >= 1e9 || step >= 1e8 ? [1e9, 's'] : time >= 1e6 || step >= 1e5 ? [1e6, 'ms'] : time >= 1e3 ? [1e3, 'µs'] : [1, 'ns'];
		const decimals = Math.max(0, Math.ceil(Math.log10(unit / step) - 1e-9));
		return (time / unit).toFixed(decimals) + ' ' + name;
	};

	class Timeline {
		// `options`: `key` of the interval in the address, `prefix` of ids, `title`, `selected` (the
		// index of a rank), `lanes` (how many are shown of a kind), `ranks` (which are shown), and for one of two: `beside` (the other's scene), `extent`, `first` (interval),
		// and a function `shown` that is called when the interval changes.
		constructor(run, options) {
			Object.assign(this, run, {options: options || {}, spans: new Map(), more: false});
			this.printing = false;
			this.stateKey = this.options.key || 't';
			// Two timelines that are compared have the same extent, so that one may end before it.
			this.extent = this.options.extent || this.scene.end;
			this.build();
			this.restore();
		}

		// ---- the interval ----

		restore() {
			const [from, to] = (pperf.recall(this.stateKey) || '').split('-').map(Number);
			this.interval = this.first();
			if (to > from && from >= 0 && from < this.extent)
				this.interval = this.clamped(from, to);
		}

		// The usual steps if they are a small part of the run, else the run.
		first() {
			if (this.scene.facts.some(lane => lane.kind === 'rank' && lane.series.length))
				return this.activeTime();
			const around = this.usualSteps();
			return this.options.first || (around && around[1] - around[0] < this.scene.end / 8 ? around : [0, this.extent]);
		}

		usualSteps() {
			if (!this.usual.length)
				return null;
			const end = Math.max(...this.usual.map(step => step.begin + step.duration)), begin = this.usual[0].begin;
			return this.clamped(begin - (end - begin) * .01, end + (end - begin) * .01);
		}

		clamped(from, to) {
			const width = Math.min(this.extent, Math.max(to - from, NARROWEST_NS)), begin = Math.max(0, Math.min(from, this.extent - width));
			return [begin, begin + width];
		}

		show(from, to) {
			this.interval = this.clamped(from, to);
			this.options.shown?.(this);
			this.keep();
		}

		// Shows an interval of another timeline that is beside this one.
		follow(from, to) {
			this.interval = [from, to];
			this.keep();
		}

		keep() {
			const first = this.first();
			pperf.remember(this.stateKey, this.interval.every((time, i) => time === first[i]) ? null : this.interval.map(Math.round).join('-'));
			this.draw();
		}

		showWindow(one) {
			const margin = (one.end - one.begin) * .03;
			this.show(one.begin - margin, one.end + margin);
			this.box.scrollIntoView({block: 'nearest'});
		}

		zoom(factor, at) {
			const [from, to] = this.interval, middle = at ?? (from + to) / 2;
			this.show(middle - (middle - from) * factor, middle + (to - middle) * factor);
		}

		pan(share) {
			const [from, to] = this.interval, by = (to - from) * share;
			this.show(from + by, to + by);
		}

		// ---- elements ----

		build() {
			const prefix = this.options.prefix || '', title = this.options.title || 'Timeline';
			const button = (id, title, name, action) => element('button', {type: 'button', id: prefix + id, 'aria-label': name, click: action}, title);
			const window = kind => this.scene.windows.find(one => one.kinds.includes(kind));
			const shortcut = (id, title, one) => one ? button(id, title, 'Show: ' + title, () => this.showWindow(one)) : null;
			const around = this.usualSteps();
			this.label = element('span', {class: 'note', id: prefix + 'interval', role: 'status'});
			this.canvas = element('canvas', {'aria-hidden': 'true'});
			this.cross = element('div', {class: 'cross', hidden: ''});
			this.brush = element('div', {class: 'brush', hidden: ''});
			this.box = element('div', {id: prefix + 'timeline', class: 'timeline', tabindex: 0, role: 'application',
				'aria-label': title + '. Plus and minus zoom, left and right arrows move, 0 shows the whole run. The tables below have its figures.',
				mousemove: event => this.hover(event), mouseleave: () => this.leave(), mousedown: event => this.press(event),
				keydown: event => this.key(event)}, this.canvas, this.cross, this.brush);
			this.box.addEventListener('wheel', event => this.wheel(event), {passive: false});
			this.legend = element('div', {class: 'legends'});
			this.element = element('section', {class: 'card', 'aria-label': title},
				element('div', {class: 'bar'}, element('h2', null, title), this.label, element('span', {class: 'grow'}),
					[shortcut('worst', 'Worst step', window('worst step')), around ? button('usual', 'Steady-state steps', 'Show: steady-state steps', () => this.show(...around)) : null,
						shortcut('peak', 'Memory peak', window('memory peak')), this.moreButton(),
						button('out', '−', 'Zoom out', () => this.zoom(2)), button('in', '+', 'Zoom in', () => this.zoom(.5)),
						button('whole', 'Whole run', 'Show the whole run', () => this.show(0, this.extent))]),
				this.box, this.legend);
			addEventListener('mouseup', event => this.release(event));
		}

		// A button that shows the other lanes; draw() writes how many they are.
		moreButton() {
			if (this.scene.facts.length === this.shownLanes().length)
				return null;
			this.others = element('button', {type: 'button', id: (this.options.prefix || '') + 'lanes', 'aria-expanded': 'false', click: () => {
				this.more = !this.more;
				this.others.setAttribute('aria-expanded', String(this.more));
				this.draw();
			}});
			return this.others;
		}

		nameMoreButton() {
			const [what, lanes] = this.options.ranks ? ['ranks', 2] : ['lanes', 1], hidden = (this.scene.facts.length - this.shownLanes().length) / lanes;
			if (this.others)
				this.others.textContent = this.more ? 'Fewer ' + what : '+' + hidden + ' ' + what;
		}

		shownLanes() {
			const seen = {stream: 0, thread: 0}, most = {stream: STREAMS_SHOWN, thread: THREADS_SHOWN, ...this.options.lanes};
			return this.scene.facts.map((lane, i) => i).filter(i => {
				const {kind, series} = this.scene.facts[i];
				if (kind === 'rank' || kind === 'collectives')
					return this.more || this.options.ranks.has(i >> 1);
				if ((kind === 'stream' || kind === 'thread') && !series.length)
					return false;
				return kind === 'gpu' || this.more || seen[kind]++ < most[kind];
			});
		}

		// ---- layout: rows from top to bottom ----

		layout() {
			const rows = [{kind: 'axis', height: AXIS}];
			if (this.steps.length)
				rows.push({kind: 'steps', height: STEPS, label: 'steps'});
			for (const index of this.shownLanes()) {
				const lane = this.scene.facts[index];
				const fixed = {gpu: GPU, stream: STREAM, rank: RANK, collectives: COLLECTIVES};
				rows.push({kind: lane.kind, height: fixed[lane.kind] || LEVEL * Math.max(1, ...lane.series.map(one => one.name + 1)), label: lane.label, index, lane});
			}
			this.scene.whole.memories.forEach((memory, index) => rows.push({kind: 'memory', height: MEMORY, index, memory,
				label: memory.device === null ? 'memory' : 'memory, GPU ' + memory.device}));
			let y = 0;
			for (const row of rows) {
				row.y = y;
				y += row.height + (row.kind === 'axis' ? 0 : row.kind === 'rank' ? 1 : row.kind === 'collectives' ? 2 * GAP : GAP);
			}
			this.rows = rows;
			return y;
		}

		draw() {
			const width = this.box.clientWidth || 1340, height = this.layout(), ratio = this.printing ? 3 : devicePixelRatio || 1;
			this.left = width < 700 ? 84 : 116;
			this.width = width - this.left - 2;
			Object.assign(this.canvas, {width: Math.round(width * ratio), height: Math.round(height * ratio)});
			this.canvas.style.width = width + 'px';
			this.canvas.style.height = height + 'px';
			colours = new Map();
			const pen = this.pen = this.canvas.getContext('2d');
			pen.setTransform(ratio, 0, 0, ratio, 0, 0);
			this.family = getComputedStyle(document.body).fontFamily;
			pen.textBaseline = 'middle';
			[this.from, this.to] = this.interval;
			this.scale = this.width / (this.to - this.from);
			for (const row of this.rows)
				this.drawRow(row);
			const whole = this.to - this.from >= this.extent;
			this.label.textContent = whole ? 'the whole run, ' + number(this.scene.end, 'time') + '; drag to zoom'
				: number(Math.round(this.to - this.from), 'time') + ' of ' + number(this.scene.end, 'time') + ', from ' + number(Math.round(this.from), 'time');
			this.drawLegends();
			this.nameMoreButton();
		}

		x(time) {
			return this.left + (time - this.from) * this.scale;
		}

		fill(name, x, y, width, height) {
			this.pen.fillStyle = colour(name);
			this.pen.fillRect(x, y, width, height);
		}

		write(text, x, y, name, size = 11, align = 'left', isBold = false) {
			const {pen} = this;
			pen.font = (isBold ? '600 ' : '') + size + 'px ' + this.family;
			pen.textAlign = align;
			pen.fillStyle = colour(name);
			pen.fillText(text, x, y);
		}

		// Fills a part of a row from one time to another, with a text if it fits.
		block(row, begin, end, name, text, ink, y = row.y, height = row.height) {
			const x = Math.max(this.left, this.x(begin)), right = Math.min(this.left + this.width, this.x(end)), width = right - x;
			this.fill(name, x, y, Math.max(.7, width - (width > 3 ? .8 : 0)), height);
			const fitted = text && width > 24 ? pperf.fitText(text, width - 8, 11) : '';
			if (fitted)
				this.write(fitted, x + 4, y + height / 2 + .5, ink);
		}

		drawRow(row) {
			if (row.label)
				this.write(pperf.fitText(row.label, this.left - 10, 11), this.left - 8, row.y + Math.min(row.height, 26) / 2, this.isSelected(row) ? 'ink' : 'soft', 11, 'right', this.isSelected(row));
			if (row.kind !== 'axis')
				this.fill('lane', this.left, row.y, this.width, row.height);
			this['draw_' + row.kind](row);
		}

		isSelected(row) {
			return row.kind === 'rank' && row.index === 2 * this.options.selected;
		}

		draw_axis() {
			const step = roundUp((this.to - this.from) / Math.max(2, Math.floor(this.width / 130))), bottom = this.rows[this.rows.length - 1];
			for (let time = Math.ceil(this.from / step) * step; time <= this.to; time += step) {
				const text = tickText(time, step), half = pperf.textWidth(text, 11) / 2;
				this.write(text, Math.max(this.left + half, Math.min(this.left + this.width - half, this.x(time))), AXIS / 2 - 1, 'soft', 11, 'center');
				this.fill('line-strong', this.x(time), AXIS - 5, 1, 5);
			}
			this.bottom = bottom.y + bottom.height;
		}

		draw_steps(row) {
			for (const step of this.steps) {
				const end = step.begin + step.duration;
				if (end < this.from || step.begin > this.to)
					continue;
				const name = step.outlier === 'slow' ? 'step-outlier' : step.state === 'usual' ? 'step-usual' : 'step-other';
				this.block(row, step.begin, end, name, step.label + ' · ' + step.text, 'frame-ink');
			}
		}

		// Adds up the time of each kind by pixel. Events that are wide enough are left to `wide`.
		pixels(row, source, wide) {
			const size = Math.ceil(this.width), kinds = new Map();
			this.scene.visit(source, this.from, this.to, (begin, end, ns, kind, i) => {
				if (i >= 0 && wide && (end - begin) * this.scale >= DETAIL) {
					wide(begin, end, kind, i);
					return;
				}
				if (!kinds.has(kind))
					kinds.set(kind, new Float64Array(size));
				this.scene.spread(kinds.get(kind), this.from, this.scale, begin, end, ns);
			});
			return kinds;
		}

		// Draws stacks: the share of each kind in the time of each pixel.
		stack(row, kinds, order, nameOf, lanes = 1) {
			const size = Math.ceil(this.width), perNs = row.height * this.scale / lanes;
			for (let i = 0; i < size; i++) {
				let bottom = row.y + row.height;
				for (const kind of order) {
					const ns = kinds.get(kind)?.[i];
					if (!ns)
						continue;
					const height = Math.min(bottom - row.y, Math.max(1, ns * perNs));
					this.fill(nameOf(kind), this.left + i, bottom - height, 1, height);
					bottom -= height;
				}
			}
		}

		// The time in which the GPU had work, from its first operation to its last.
		gpuSpan(row) {
			if (!this.spans.has(row.index))
				this.spans.set(row.index, this.readGpuSpan(row));
			return this.spans.get(row.index);
		}

		readGpuSpan(row) {
			let begin = Infinity, end = 0;
			for (let i = 0; i < this.scene.facts.length; i++) {
				const {kind, device} = this.scene.facts[i], lane = this.scene.whole.lanes[i];
				if (device !== row.lane.device || kind !== 'stream')
					continue;
				if (lane.events) {
					begin = Math.min(begin, lane.events.begin[0]);
					end = lane.events.begin.reduce((most, at, k) => Math.max(most, at + lane.events.duration[k]), end);
				} else {
					for (const series of lane.series || []) {
						begin = Math.min(begin, this.scene.whole.origin + series.at[0] * this.scene.whole.width);
						end = Math.max(end, this.scene.whole.origin + (series.at[series.at.length - 1] + 1) * this.scene.whole.width);
					}
				}
			}
			return [begin, Math.min(end, this.scene.end)];
		}

		draw_gpu(row) {
			const source = this.scene.source(row.index, this.from, this.to), names = row.lane.series.map(one => one.name);
			const kinds = this.pixels(row, source, null), busy = names.indexOf('busy');
			if (source.events) {
				// The lane has its gaps as events: what is between them is busy time.
				const [begin, end] = this.gpuSpan(row), pixels = new Float64Array(Math.ceil(this.width));
				if (end > begin)
					this.scene.spread(pixels, this.from, this.scale, begin, end, end - begin);
				for (const gaps of kinds.values())
					gaps.forEach((ns, i) => { pixels[i] = Math.max(0, pixels[i] - ns); });
				// Rounding leaves parts of nanoseconds.
				kinds.set(busy, pixels.map(ns => ns * this.scale < .002 ? 0 : ns));
			}
			this.stack(row, kinds, [busy, ...names.map((name, i) => i).filter(i => i !== busy)], kind => causeClass(names[kind]));
		}

		// ---- ranks: all GPUs of one, and its collectives ----

		draw_rank(row) {
			const source = this.scene.source(row.index, this.from, this.to), names = row.lane.series.map(one => one.name);
			const order = names.map((name, i) => i).sort((a, b) => rankOrder(names[a]) - rankOrder(names[b]));
			this.stack(row, this.pixels(row, source, null), order, kind => causeClass(names[kind]), row.lane.gpus || 1);
			if (this.isSelected(row))
				this.fill('accent', this.left - 4, row.y, 3, row.height + 1 + COLLECTIVES);
		}

		draw_collectives(row) {
			const source = this.scene.source(row.index, this.from, this.to), names = row.lane.series.map(one => one.name), wide = [];
			const nameOf = kind => 'collective-' + names[kind];
			const kinds = this.pixels(row, source, (begin, end, kind) => wide.push([begin, end, kind]));
			this.stack(row, kinds, names.map((name, i) => i), nameOf);
			for (const [begin, end, kind] of wide)
				this.block(row, begin, end, nameOf(kind));
		}

		// The time in which the ranks' GPUs or collectives did something.
		activeTime() {
			let begin = Infinity, end = 0;
			const {origin, width, lanes} = this.scene.whole;
			for (const {at} of lanes.flatMap(lane => lane.series || [])) {
				begin = Math.min(begin, origin + at[0] * width);
				end = Math.max(end, origin + (at[at.length - 1] + 1) * width);
			}
			return this.clamped(begin - (end - begin) * .02, end + (end - begin) * .02);
		}

		draw_stream(row) {
			const source = this.scene.source(row.index, this.from, this.to), names = row.lane.series.map(one => one.name), wide = [];
			const nameOf = kind => this.categoryClass(names[kind]);
			const kinds = this.pixels(row, source, (begin, end, kind, i) => wide.push([begin, end, kind, i]));
			this.stack(row, kinds, names.map((name, i) => i), nameOf);
			for (const [begin, end, kind, i] of wide)
				this.block(row, begin, end, nameOf(kind), this.scene.strings[source.events.name[i]] || this.scene.nodeName(source.events.node[i]), 'dark-ink');
		}

		draw_thread(row) {
			const source = this.scene.source(row.index, this.from, this.to);
			if (source.events)
				this.drawRanges(row, source.events);
			else
				this.drawDominants(row, source);
		}

		// A range that is narrower than a pixel is drawn if the pixel is free: the first one is as good as another.
		drawRanges(row, events) {
			const drawn = [];
			this.scene.visit({events}, this.from, this.to, (begin, end, ns, level, i) => {
				const x = Math.floor(this.x(begin)), width = ns * this.scale;
				if (width < 1 && drawn[level] === x)
					return;
				drawn[level] = x;
				this.block(row, begin, end, 'frame-' + this.scene.nodeKind(events.node[i]), this.scene.strings[events.name[i]] || this.scene.nodeName(events.node[i]),
					'frame-ink', row.y + level * LEVEL, LEVEL - 1);
			});
		}

		drawDominants(row, {span, dominants}) {
			const {pen} = this;
			for (const {level, at, node, ns} of dominants || [])
				for (let i = 0; i < at.length; i++) {
					const begin = span.origin + at[i] * span.width;
					if (begin > this.to || begin + span.width < this.from)
						continue;
					pen.globalAlpha = Math.max(.25, Math.min(1, ns[i] / span.width));
					this.fill('frame-' + this.scene.nodeKind(node[i]), Math.max(this.left, this.x(begin)), row.y + level * LEVEL,
						Math.max(1, Math.min(this.left + this.width, this.x(begin + span.width)) - Math.max(this.left, this.x(begin))), LEVEL - 1);
				}
			pen.globalAlpha = 1;
		}

		// ---- memory ----

		// Returns by pixel the index in memory.at of the column with the highest level; -1: none.
		memoryColumns({span, memory}) {
			const size = Math.ceil(this.width), found = new Int32Array(size).fill(-1);
			for (let i = 0; i < memory.at.length; i++) {
				const begin = span.origin + memory.at[i] * span.width;
				const end = i + 1 < memory.at.length ? span.origin + memory.at[i + 1] * span.width : span.end;
				const low = Math.max(0, Math.floor((begin - this.from) * this.scale)), high = Math.min(size - 1, Math.ceil((end - this.from) * this.scale) - 1);
				for (let x = low; x <= high; x++)
					if (found[x] < 0 || memory.level[i] > memory.level[found[x]])
						found[x] = i;
			}
			return found;
		}

		draw_memory(row) {
			const source = this.scene.memory(row.index, this.from, this.to), {memory} = source, found = this.memoryColumns(source);
			const same = [row.memory, this.options.beside?.whole.memories.find(one => one.device === row.memory.device)].filter(Boolean);
			const most = Math.max(...same.flatMap(one => [one.peak_bytes, ...(one.reserved_max || one.reserved || [0])]), 1);
			const height = bytes => bytes / (most * 1.06) * row.height, base = row.y + row.height;
			const layers = [[memory.before, 'owner-before'], ...memory.owner.map((bytes, i) => [bytes, 'owner-' + i % OWNER_COLOURS]), [memory.others, 'owner-others']];
			for (let x = 0; x < found.length; x++) {
				let y = base;
				if (found[x] < 0)
					continue;
				for (const [bytes, name] of layers) {
					const part = height(bytes[found[x]]);
					if (part > 0)
						this.fill(name, this.left + x, y -= part, 1, part);
				}
			}
			this.drawReserved(row, memory, found, bytes => base - height(bytes));
			this.drawPeak(row, base - height(row.memory.peak_bytes));
			this.write(number(most, 'bytes'), this.left - 8, base - height(most) < row.y + 22 ? row.y + 32 : base - height(most), 'soft', 11, 'right');
			this.write('0', this.left - 8, base - 5, 'soft', 11, 'right');
		}

		drawReserved(row, memory, found, yOf) {
			const {pen} = this;
			if (!memory.reserved || row.memory.of !== 'tensors' || !memory.reserved.some(Boolean))
				return;
			pen.strokeStyle = colour('ink');
			pen.setLineDash([4, 3]);
			pen.beginPath();
			let isDown = false;
			found.forEach((column, x) => {
				if (column < 0 || !memory.reserved[column]) {
					isDown = false;
					return;
				}
				const y = Math.round(yOf(memory.reserved[column])) + .5;
				if (isDown)
					pen.lineTo(this.left + x, y);
				else
					pen.moveTo(this.left + x, y);
				pen.lineTo(this.left + x + 1, y);
				isDown = true;
			});
			pen.stroke();
			pen.setLineDash([]);
		}

		drawPeak(row, y) {
			const x = this.x(row.memory.peak_ns);
			if (x < this.left || x > this.left + this.width || !row.memory.peak_bytes)
				return;
			const text = 'peak ' + number(row.memory.peak_bytes, 'bytes') + ' at ' + number(row.memory.peak_ns, 'time');
			const width = pperf.textWidth(text, 11) + 10, isLeft = x + width > this.left + this.width, at = isLeft ? x - width - 3 : x + 3;
			this.fill('peak', x - .5, row.y, 1.5, row.height);
			this.fill('card', at, row.y + row.height - 22, width, 17);
			this.write(text, at + 5, row.y + row.height - 13, 'peak');
		}

		// ---- legends: figures of the whole run ----

		drawLegends() {
			const entry = (name, title, value) => element('span', null, element('i', {class: name}), title, ' ', element('b', null, value));
			const line = (title, entries) => entries.length ? element('div', {class: 'legend'}, element('span', {class: 'lane-name'}, title), element('div', {class: 'entries'}, entries.flat().filter(Boolean))) : null;
			const gpus = new Map();
			for (const lane of this.scene.facts)
				if (lane.kind === 'gpu' || lane.kind === 'rank')
					for (const one of lane.series)
						gpus.set(one.name, (gpus.get(one.name) || 0) + one.total);
			const sum = this.ranked.reduce((all, [, total]) => all + total, 0);
			const causes = [...gpus].sort((a, b) => Math.min(rankOrder(a[0]), 2) - Math.min(rankOrder(b[0]), 2) || b[1] - a[1]);
			const parts = new Map();
			for (const one of this.scene.facts.flatMap(lane => lane.kind === 'collectives' ? lane.series : []))
				parts.set(one.name, (parts.get(one.name) || 0) + one.total);
			const rest = this.ranked.slice(CATEGORY_COLOURS).reduce((all, [, total]) => all + total, 0);
			const kinds = [...new Set(this.shownKinds())].sort((a, b) => a - b);
			const lines = [
				line(parts.size ? 'GPUs' : 'GPU', causes.map(([name, total], i) => [rankOrder(name) > 1 && (!i || rankOrder(causes[i - 1][0]) < 2) ? element('span', null, 'idle:') : null,
					entry(causeClass(name), name, number(total, 'time'))])),
				line('Collectives', ['wait', 'transfer', 'unmatched'].filter(name => parts.has(name)).map(name => entry('collective-' + name, PART_TITLES[name], number(parts.get(name), 'time')))),
				line('Streams', [...this.ranked.slice(0, CATEGORY_COLOURS).map(([name, total]) => entry(this.categoryClass(name), name, percent(total, sum))),
					...(rest ? [entry('category-other', this.ranked.length - CATEGORY_COLOURS + ' others', percent(rest, sum))] : [])]),
				line('Threads', kinds.map(kind => entry('k' + kind, pperf.kinds[kind], ''))),
				...this.scene.whole.memories.map(memory => line(memory.of === 'tensors' ? 'Tensors' : 'Memory', this.ownerEntries(memory, entry)))];
			this.legend.replaceChildren(...lines.filter(Boolean), element('p', {class: 'note'}, parts.size ? 'Figures are of all ranks and the whole run.' : 'Figures are of the whole run; of memory, at its peak.'));
		}

		shownKinds() {
			const kinds = [];
			this.scene.facts.forEach((lane, i) => {
				if (lane.kind !== 'thread')
					return;
				const {events, dominants} = this.scene.whole.lanes[i];
				for (const nodes of events ? [events.node] : (dominants || []).map(one => one.node))
					for (const node of nodes)
						kinds[this.scene.nodeKind(node)] = this.scene.nodeKind(node);
			});
			return kinds.filter(kind => kind !== undefined);
		}

		// The end of an owner's path.
		ownerTitle(owner) {
			if (!this.scene.nodePath(owner.node))
				return 'the rest';
			const path = this.scene.nodePath(owner.node).split(' / ');
			// The first one is often the step of the peak, and the owner is the same in all steps.
			return (path.length > 1 ? '… / ' : '') + path.slice(path.length > 1 ? Math.max(1, path.length - 2) : 0).join(' / ') + (owner.remainder ? ' (the rest of it)' : '');
		}

		ownerEntries(memory, entry) {
			const entries = memory.owners.map((owner, i) => entry('owner-' + i % OWNER_COLOURS, this.ownerTitle(owner), number(owner.at_peak_bytes, 'bytes')));
			if (memory.others_at_peak_bytes)
				entries.push(entry('owner-others', 'others', number(memory.others_at_peak_bytes, 'bytes')));
			if (memory.before_at_peak_bytes)
				entries.push(entry('owner-before', 'held before the trace began', number(memory.before_at_peak_bytes, 'bytes')));
			if (memory.of === 'tensors' && memory.reserved?.some(Boolean))
				entries.push(element('span', null, element('i', {class: 'dashed'}), 'reserved by the allocator'));
			return entries;
		}

		// ---- pointer ----

		timeAt(event) {
			const x = event.clientX - this.box.getBoundingClientRect().left - this.left;
			return this.from + Math.max(0, Math.min(this.width, x)) / this.scale;
		}

		press(event) {
			if (event.button !== 0)
				return;
			this.pressed = this.timeAt(event);
			this.box.focus({preventScroll: true});
			event.preventDefault();
		}

		release(event) {
			if (this.pressed === undefined)
				return;
			const from = Math.min(this.pressed, this.timeAt(event)), to = Math.max(this.pressed, this.timeAt(event));
			this.pressed = undefined;
			this.brush.hidden = true;
			if ((to - from) * this.scale > 4)
				this.show(from, to);
		}

		wheel(event) {
			if (!event.ctrlKey)
				return;
			event.preventDefault();
			this.zoom(event.deltaY > 0 ? 1.25 : .8, this.timeAt(event));
		}

		key(event) {
			const actions = {'+': () => this.zoom(.5), '=': () => this.zoom(.5), '-': () => this.zoom(2), ArrowLeft: () => this.pan(-.25), ArrowRight: () => this.pan(.25),
				0: () => this.show(0, this.extent), Escape: () => this.show(...this.first())};
			if (event.ctrlKey || event.metaKey || event.altKey || !Object.hasOwn(actions, event.key))
				return;
			event.preventDefault();
			actions[event.key]();
			pperf.announce(this.label.textContent);
		}

		leave() {
			this.cross.hidden = true;
			pperf.hideTip();
		}

		hover(event) {
			const box = this.box.getBoundingClientRect(), x = event.clientX - box.left, y = event.clientY - box.top;
			if (x < this.left || x > this.left + this.width) {
				this.leave();
				return;
			}
			const time = this.timeAt(event);
			this.cross.hidden = false;
			this.cross.style.left = x + 'px';
			if (this.pressed !== undefined) {
				const from = this.x(Math.min(time, this.pressed)), to = this.x(Math.max(time, this.pressed));
				this.brush.hidden = to - from < 3;
				this.brush.style.left = from + 'px';
				this.brush.style.width = to - from + 'px';
			}
			const row = this.rows.find(one => y >= one.y && y < one.y + one.height);
			const tip = row && this['tip_' + row.kind] && this['tip_' + row.kind](row, time, y - row.y);
			if (tip)
				pperf.showTip(event, ...tip);
			else
				pperf.hideTip();
		}

		// ---- what is at a point: [title, pairs, more] ----

		tip_steps(row, time) {
			const step = this.steps.find(one => time >= one.begin && time < one.begin + one.duration);
			return step && [step.label, [['duration', step.text], ['begin', number(step.begin, 'time')]], ''];
		}

		// Returns the index of the event at a time, or the nearest one within 2 pixels.
		eventAt(events, time, kind) {
			let best = -1, distance = 2 / this.scale;
			for (let i = 0; i < events.begin.length && events.begin[i] <= time + distance; i++) {
				const end = events.begin[i] + events.duration[i], away = time < events.begin[i] ? events.begin[i] - time : Math.max(0, time - end);
				if ((kind === undefined || events.kind[i] === kind) && away <= distance) {
					best = i;
					distance = away;
				}
			}
			return best;
		}

		tip_gpu(row, time) {
			const source = this.scene.source(row.index, this.from, this.to), names = row.lane.series.map(one => one.name);
			if (!source.events)
				return this.columnTip(row, source, time, names, 'idle: ');
			const {events} = source, at = this.eventAt(events, time);
			const [begin, end] = this.gpuSpan(row);
			if (at < 0 || time < events.begin[at] || time > events.begin[at] + events.duration[at])
				return time >= begin && time <= end ? [row.label + ' is busy', [], ''] : null;
			const pairs = [['idle for', number(events.duration[at], 'time')], ['begin', number(events.begin[at], 'time')]];
			if (events.name[at])
				pairs.push(['ended by', this.scene.strings[events.name[at]]]);
			return ['idle: ' + names[events.kind[at]], pairs, this.scene.nodePath(events.node[at])];
		}

		tip_rank(row, time) {
			return this.columnTip(row, this.scene.source(row.index, this.from, this.to), time, row.lane.series.map(one => one.name), 'idle: ');
		}

		tip_collectives(row, time) {
			const source = this.scene.source(row.index, this.from, this.to), names = row.lane.series.map(one => one.name);
			if (!source.events)
				return this.columnTip(row, source, time, names.map(name => PART_TITLES[name]), '');
			const {events} = source, at = this.eventAt(events, time);
			return at < 0 ? null : [this.scene.strings[events.name[at]], [[PART_TITLES[names[events.kind[at]]], number(events.duration[at], 'time')],
				['begin', number(events.begin[at], 'time')]], ''];
		}

		tip_stream(row, time) {
			const source = this.scene.source(row.index, this.from, this.to), names = row.lane.series.map(one => one.name);
			if (!source.events)
				return this.columnTip(row, source, time, names, '');
			const {events} = source, at = this.eventAt(events, time);
			return at < 0 ? null : [this.scene.strings[events.name[at]] || this.scene.nodeName(events.node[at]), [['duration', number(events.duration[at], 'time')],
				['category', names[events.kind[at]]], ['begin', number(events.begin[at], 'time')]], this.scene.nodePath(events.node[at])];
		}

		tip_thread(row, time, y) {
			const level = Math.floor(y / LEVEL), source = this.scene.source(row.index, this.from, this.to);
			if (source.events) {
				const at = this.eventAt(source.events, time, level);
				return at < 0 ? null : [this.scene.strings[source.events.name[at]] || this.scene.nodeName(source.events.node[at]),
					[['duration', number(source.events.duration[at], 'time')], ['begin', number(source.events.begin[at], 'time')]], this.scene.nodePath(source.events.node[at])];
			}
			const one = (source.dominants || []).find(dominant => dominant.level === level), column = Math.floor((time - source.span.origin) / source.span.width);
			const at = one ? one.at.indexOf(column) : -1;
			return at < 0 ? null : [this.scene.nodeName(one.node[at]) || 'several ranges', [['at least', number(one.ns[at], 'time')], ['of', number(source.span.width, 'time')]],
				this.scene.nodePath(one.node[at])];
		}

		columnTip(row, {span, series}, time, names, prefix) {
			const column = Math.floor((time - span.origin) / span.width), pairs = [];
			for (const one of series) {
				const at = one.at.indexOf(column);
				if (at >= 0 && one.ns[at])
					pairs.push([(names[one.kind] === 'busy' || names[one.kind] === 'exposed communication' ? '' : prefix) + names[one.kind], number(one.ns[at], 'time')]);
			}
			return pairs.length ? [row.label + ', ' + number(span.width, 'time') + ' from ' + number(span.origin + column * span.width, 'time'), pairs, ''] : null;
		}

		tip_memory(row, time) {
			const source = this.scene.memory(row.index, this.from, this.to), {memory} = source;
			const x = Math.min(Math.ceil(this.width) - 1, Math.floor((time - this.from) * this.scale)), at = this.memoryColumns(source)[x];
			if (at < 0)
				return null;
			const pairs = [[memory.of, number(memory.level[at], 'bytes')], ['moment', number(memory.at_ns[at], 'time')]];
			memory.owners.forEach((owner, i) => pairs.push([this.ownerTitle(owner), number(memory.owner[i][at], 'bytes')]));
			if (memory.others[at])
				pairs.push(['others', number(memory.others[at], 'bytes')]);
			if (memory.before[at])
				pairs.push(['held before the trace began', number(memory.before[at], 'bytes')]);
			if (memory.reserved?.[at])
				pairs.push(['reserved', number(memory.reserved[at], 'bytes')]);
			return [memory.of === 'tensors' ? 'Tensor memory' : 'Device memory', pairs, ''];
		}
	}

	pperf.timeline = (run, options) => new Timeline(run, options);
})();
