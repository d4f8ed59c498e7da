// What a page shows of one run: verdict, findings, timeline, flame graph, memory, idle time, steps,
// kernels. pperf.runParts(run) makes the parts of a run (pperf.readRuns).
(() => {
	'use strict';
	const {element, number, percent, count, card, sentence} = pperf;
	const LISTED = 4, OWNERS = 8;

	const cell = (table, key, row) => pperf.column(table, key)?.text[row] ?? '';
	const value = (table, key, row) => pperf.column(table, key)?.value[row] ?? null;

	// The parts of a run, as functions that make elements.
	const cardsOf = run => {
		const {data, scene, steps} = run, {tables, verdict} = data;

		// ---- verdict ----

		const topic = name => verdict.sentences.find(one => one.topic === name)?.text;
		const stepRow = name => tables.steps.label.findIndex((label, row) => tables.steps.kind[row] === 'summary' && label.startsWith(name));

		function figures() {
			const found = [], {usual_steps: inSteps, run} = verdict, of = inSteps.busy_ns + inSteps.idle_ns ? inSteps : run;
			if (of.busy_ns + of.idle_ns)
				found.push(['GPU busy', percent(of.busy_ns, of.busy_ns + of.idle_ns), of === inSteps ? 'in steady-state steps' : 'of its span']);
			const median = stepRow('median'), usual = steps.filter(step => step.state === 'usual').sort((a, b) => a.duration - b.duration);
			if (median >= 0 && usual.length)
				found.push(['Step, median', cell(tables.steps, 'duration_ns', median), usual[0].text + ' – ' + usual[usual.length - 1].text]);
			else
				found.push(['Duration', number(data.head[0].duration, 'time'), 'of the recording']);
			const causes = idleCauses();
			if (causes.length)
				found.push(['GPU idle, in all', number(run.idle_ns, 'time'), percent(causes[0].total, run.idle_ns) + ' ' + causes[0].name]);
			const [memory] = [...data.scene.whole.memory].sort((a, b) => b.peak_bytes - a.peak_bytes);
			if (memory && memory.peak_bytes)
				found.push(['Memory peak', number(memory.peak_bytes, 'bytes'), 'of ' + memory.of]);
			return found;
		}

		// Idle time of all GPUs by cause, the largest first.
		function idleCauses() {
			const causes = new Map();
			for (const lane of data.scene.whole.lanes)
				if (lane.kind === 'gpu')
					for (const {name, total_ns: total, count: gaps} of lane.series || [])
						if (name !== 'busy') {
							const one = causes.get(name) || {name, total: 0, gaps: 0};
							causes.set(name, {name, total: one.total + total, gaps: one.gaps + gaps});
						}
			return [...causes.values()].sort((a, b) => b.total - a.total);
		}

		// What the figures rest on.
		const evidence = () => [['Steps: ', 'steps'], ['Coverage: ', 'coverage']].filter(([, name]) => topic(name))
			.map(([title, name]) => title + topic(name) + '.').join(' ');

		function verdictCard(id = 'verdict', title = 'Verdict') {
			const bound = topic('verdict'), rest = [topic('gpu time'), evidence()].filter(Boolean);
			return card(id, title, verdict.confidence ? 'confidence: ' + verdict.confidence : '',
				bound ? element('p', {class: 'lead'}, sentence(bound)) : null,
				topic('evidence') ? element('p', {class: 'note'}, sentence(topic('evidence'))) : null,
				topic('next') ? element('p', {class: 'next'}, sentence(topic('next'))) : null,
				element('div', {class: 'figures'}, figures().map(([title, amount, note]) => element('div', null, element('span', {class: 'note'}, title),
					element('b', null, amount), element('span', {class: 'note'}, note)))),
				rest.map(text => element('p', {class: 'note'}, sentence(text))));
		}

		// ---- findings ----

		const frameOf = path => {
			const {folded, each} = data.flame.shapes, shape = folded || each;
			let parent = -1;
			for (const name of path || []) {
				parent = shape ? shape.name.findIndex((text, i) => shape.parent[i] === parent && pperf.text(text) === name) : -1;
				if (parent < 0)
					return -1;
			}
			return parent;
		};

		function finding(one, index, timeline, graph) {
			const [, bound, amount, share] = one.cost.match(/^(\D*)(.*?)(?: \((.*)\).*)?$/);
			const window = scene.windows.find(each => each.findings.includes(index)), frame = frameOf(one.path);
			const show = element('span', {class: 'shows'},
				window ? element('button', {type: 'button', class: 'to-time', click: () => timeline.showWindow(window)}, 'Show in the timeline') : null,
				frame >= 0 ? element('button', {type: 'button', class: 'to-frame', click: () => { showFrame(graph, frame); }}, 'Show in the flame graph') : null);
			return element('li', null, element('div', {class: 'cost'}, element('b', null, amount || '–'), element('span', {class: 'note'}, bound ? bound.trim() : '')),
				element('details', null, element('summary', null, sentence(one.finding), share ? element('span', {class: 'note'}, ' ' + share) : null),
					element('p', {class: 'note'}, sentence(one.evidence)), element('p', null, sentence(one.next)),
					element('p', null, element('code', null, one.command)), show));
		}

		function showFrame(graph, frame) {
			const metric = data.flame.metrics.find(one => one.shapes.includes('folded') || one.shapes.includes('each'));
			if (!metric)
				return;
			if (graph.shape !== (data.flame.shapes.folded ? 'folded' : 'each'))
				graph.show(metric, metric.shapes[0]);
			graph.select(frame);
			graph.element.scrollIntoView({block: 'start'});
		}

		function findingsCard(timeline, graph) {
			const {findings, found} = data;
			return card('findings', 'What to look at first', findings.length ? 'what each costs; they may overlap and are no sum' : '',
				findings.length ? element('ul', {class: 'findings'}, findings.map((one, i) => finding(one, i, timeline, graph)))
					: element('p', null, 'No rule found anything. The view diagnose says what was checked.'),
				found > findings.length ? element('p', {class: 'note'}, count(found - findings.length) + ' more: ', element('code', null, data.commands.tree.replace(' tree ', ' diagnose '))) : null);
		}

		// ---- memory at the peak, causes of idle time ----

		function listed(entries) {
			const most = Math.max(...entries.map(entry => entry.value), 1);
			return element('div', {class: 'listed'}, entries.map(({text, note, title, place, value: amount, name}) => [element('span', {class: 'amount'}, element('b', null, text), note ? element('span', {class: 'note'}, note) : null),
				pperf.meter(amount / most, name), element('span', null, title, place ? element('div', {class: 'note'}, place) : null)]));
		}

		function memoryCard() {
			const table = tables.memory, first = table.depth.findIndex((depth, row) => depth === 0 && value(table, 'at_peak_bytes', row) > 0);
			if (first < 0)
				return null;
			const next = table.depth.findIndex((depth, row) => row > first && depth === 0), rows = [];
			for (let row = first + 1; row < (next < 0 ? table.rows : next); row++)
				if (table.depth[row] === 1 && value(table, 'at_peak_bytes', row) > 0)
					rows.push(row);
			const shown = rows.slice(0, OWNERS), peak = value(table, 'at_peak_bytes', first);
			const rest = peak - shown.reduce((sum, row) => sum + value(table, 'at_peak_bytes', row), 0);
			const entries = shown.map((row, i) => ({text: cell(table, 'at_peak_bytes', row), value: value(table, 'at_peak_bytes', row),
				note: percent(value(table, 'at_peak_bytes', row), peak), title: table.label[row], name: 'neutral', row: i}));
			if (rest > 0)
				entries.push({text: number(rest, 'bytes'), value: rest, note: percent(rest, peak), title: 'others', name: 'neutral'});
			return card('owners', 'Who held the peak', table.label[first] + ': ' + cell(table, 'at_peak_bytes', first) +
				(cell(table, 'peak_ns', first) ? ' at ' + cell(table, 'peak_ns', first) : ''), topic('memory') ? element('p', {class: 'note'}, sentence(topic('memory'))) : null, listed(entries), element('p', null, element('code', null, data.commands.memory)));
		}

		function idleCard() {
			const table = tables.idle, entries = [];
			let shown = 0;
			for (let row = 0; row < table.rows; row++) {
				if (table.kind[row] === 'cause')
					shown = 0;
				else if (table.kind[row] !== 'place' || shown++ >= LISTED)
					continue;
				const isCause = table.kind[row] === 'cause', gaps = value(table, 'gaps', row);
				entries.push(element('tr', {class: isCause ? 'cause' : null}, element('td', {class: 'left name'}, isCause ? element('i', {class: 'swatch ' + pperf.causeClass(table.label[row])}) : null, table.label[row]),
					element('td', null, cell(table, 'gap_ns', row)), element('td', null, cell(table, 'share', row)), element('td', null, gaps === null ? '' : cell(table, 'gaps', row)),
					element('td', null, cell(table, 'gap_max_ns', row))));
			}
			if (!entries.length)
				return null;
			const head = ['by cause and place', 'idle', 'of idle', 'gaps', 'longest'].map((title, i) => element('th', {scope: 'col', class: i ? null : 'left'}, title));
			return card('idle', 'Why the GPU had nothing to do', '', element('div', {class: 'scroll', tabindex: 0, role: 'region', 'aria-label': 'Idle time by cause'},
				element('table', null, element('thead', null, element('tr', null, head)), element('tbody', null, entries))),
			element('p', null, element('code', null, data.commands.tree.replace(' tree ', ' idle '))));
		}

		// ---- steps, kernels ----

		function stepsCard(timeline) {
			if (!steps.length)
				return null;
			const show = step => timeline.showWindow({begin: step.begin, end: step.begin + step.duration});
			const bars = pperf.stepBars(tables.steps, steps, show);
			const table = pperf.sortedTable(tables.steps, ['state', 'outlier', 'start_ns', 'duration_ns', 'busy_ns', 'idle_ns', 'gaps', 'kernels', 'allocated_peak_bytes', 'reserved_peak_bytes'],
				{id: 'step-table', name: 'Steps', title: 'step'});
			const made = card('steps', 'Steps', 'height: duration; dark: GPU busy; the line is the median of steady-state steps', bars, table.element);
			made.bars = bars;
			return made;
		}

		const shownOf = table => table.left_out ? 'the first ' + count(table.rows) + ' of ' + count(table.rows + table.left_out) : '';

		// Adds an input to the head of a card, which filters its table. `what`: what a row is.
		function addFilter(made, sorted, what, by) {
			const input = element('input', {type: 'search', id: what + '-filter', size: 28, placeholder: 'Filter: ' + by, 'aria-label': 'Filter ' + what + 's by ' + by,
				input: () => sorted.filter(input.value)});
			made.firstChild.append(element('span', {class: 'grow'}), sorted.status, input);
			input.value = pperf.recall(what + '-table') || '';
			if (input.value)
				sorted.filter(input.value);
			return made;
		}

		function kernelsCard() {
			const table = tables.kernels;
			if (!table.rows)
				return null;
			const of = new Map(), groups = tables.categories;
			let category = '';
			groups.label.forEach((label, row) => {
				if (groups.depth[row] === 0)
					category = label;
				else if (!of.has(label))
					of.set(label, category);
			});
			const categoryOf = row => of.get(table.label[row]) || '';
			const sorted = pperf.sortedTable(table, ['gpu_total_ns', 'share', 'calls', 'p50_ns', 'p95_ns', 'max_ns', 'grid', 'block', 'registers', 'occupancy_theoretical', 'occupancy_limit'],
				{id: 'kernel-table', name: 'Kernels', title: 'kernel, and where most of it was launched', sort: 'gpu_total_ns', bar: 'share', also: categoryOf,
					barClass: row => run.categoryClass(categoryOf(row)),
					mark: row => element('i', {class: 'swatch ' + run.categoryClass(categoryOf(row)), title: categoryOf(row)})});
			return addFilter(card('kernels', 'Kernels', shownOf(table), sorted.element), sorted, 'kernel', 'name, category or place');
		}

		// ---- functions of CPU samples ----

		function functionsCard() {
			const table = tables.functions;
			if (!table || !table.rows)
				return null;
			const sorted = pperf.sortedTable(table, ['cpu_sampled_ns', 'cpu_sampled_error_ns', 'cpu_sampled_share', 'cpu_sampled_total_ns', 'samples', 'waits_for_core_ns', 'blocked_ns'],
				{id: 'function-table', name: 'Functions', title: 'function and its library or file', sort: 'cpu_sampled_ns', bar: 'cpu_sampled_share'});
			const made = card('functions', 'Functions by CPU samples', shownOf(table), sorted.element,
				element('p', null, element('code', null, data.commands.tree.replace(' tree ', ' table --by function '))));
			return addFilter(made, sorted, 'function', 'name, library or file');
		}

		return {verdictCard, findingsCard, memoryCard, idleCard, stepsCard, kernelsCard, functionsCard};
	};
	pperf.cardsOf = cardsOf;

	pperf.runParts = run => {
		const {data} = run, {verdictCard, findingsCard, memoryCard, idleCard, stepsCard, kernelsCard, functionsCard} = cardsOf(run);
		pperf.strings = data.strings;
		pperf.kinds = data.flame.kinds;
		const timeline = pperf.timeline(run), graph = pperf.flameGraph(data);
		// A trace of CPU samples alone has nothing on the time axis.
		timeline.element.hidden = !run.scene.facts.length;
		const stepCard = stepsCard(timeline), map = pperf.memoryMap(data), pair = [memoryCard(), idleCard()].filter(Boolean);
		const elements = [element('div', {class: 'two'}, verdictCard(), findingsCard(timeline, graph)), timeline.element, graph.element,
			...(pair.length ? [element('div', {class: pair.length > 1 ? 'two' : ''}, pair)] : []), ...[map?.element, stepCard, functionsCard(), kernelsCard()].filter(Boolean)];
		const draw = () => {
			timeline.draw();
			graph.draw();
			stepCard?.bars.draw();
			map?.draw();
		};
		return {timeline, graph, map, elements, draw};
	};

	// Draws a page when its size or theme changes, and for print. `parts`: returns {timelines, graph, draw}.
	pperf.keepDrawn = parts => {
		let waiting = 0, theme = '';
		const print = isPrinting => {
			for (const timeline of parts().timelines)
				timeline.printing = isPrinting;
			parts().draw();
		};
		parts().draw();
		addEventListener('themechange', () => parts().timelines.forEach(timeline => timeline.draw()));
		addEventListener('resize', () => {
			cancelAnimationFrame(waiting);
			waiting = requestAnimationFrame(() => parts().draw());
		});
		addEventListener('beforeprint', () => {
			theme = document.documentElement.dataset.theme || '';
			document.documentElement.dataset.theme = 'light';
			print(true);
		});
		addEventListener('afterprint', () => {
			if (theme)
				document.documentElement.dataset.theme = theme;
			else
				delete document.documentElement.dataset.theme;
			print(false);
		});
		addEventListener('keydown', event => {
			if (event.key === '/' && parts().graph && document.activeElement?.tagName !== 'INPUT') {
				event.preventDefault();
				parts().graph.input.focus();
				parts().graph.input.select();
			}
		});
		document.documentElement.dataset.ready = 'true';
	};
})();
