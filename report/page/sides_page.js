// The page of the view `html` of two traces: before and after.
(() => {
	'use strict';
	const {element, count, data, card, sentence} = pperf, {diff} = data;
	const NAMES = ['Before', 'After'];

	const runs = pperf.readRuns(data.sides), cards = runs.map(pperf.cardsOf);
	pperf.kinds = data.flame.kinds;

	// ---- what changed ----

	function changeCard() {
		return card('change', diff.by_steps ? 'A step, before and after' : 'The run, before and after', 'metric: ' + diff.metric,
			element('p', {class: 'lead'}, diff.whole + '.'), element('p', null, diff.result + '.'), diff.runs ? element('p', {class: 'note'}, diff.runs + '.') : null,
			element('details', null, element('summary', null, 'How it was compared, and the text view'), element('p', {class: 'note'}, diff.compared + '.'), element('p', {class: 'note'}, diff.method + '.'),
				element('p', null, element('code', null, data.commands.diff))));
	}

	function tableCard() {
		const {table} = diff;
		if (!table.rows)
			return card('changes', 'Changes', '', element('p', null, 'No call path has a row in the view diff.'));
		const sorted = pperf.sortedTable(table, ['before', 'after', 'delta', 'relative', 'p', 'remarks'], {id: 'change-table', name: 'Changes', title: 'call path', sort: 'delta',
			mark: row => table.significant[row] ? element('span', {class: 'badge significant'}, 'significant') : null});
		const input = element('input', {type: 'search', id: 'change-filter', size: 28, placeholder: 'Filter: name or path', 'aria-label': 'Filter changes by name or path', input: () => sorted.filter(input.value)});
		const made = card('changes', 'Changes', table.left_out ? count(table.left_out) + ' more are in the text view' : 'rows that are not marked are not significant', sorted.element);
		made.firstChild.append(element('span', {class: 'grow'}), sorted.status, input);
		input.value = pperf.recall('change-table') || '';
		if (input.value)
			sorted.filter(input.value);
		return made;
	}

	// ---- two timelines on one scale ----

	// Where a run is laid beside the other: the first steady-state step, or the begin.
	const anchored = runs.every(run => run.usual.length), anchors = runs.map(run => anchored ? run.usual[0].begin : 0);
	const extent = Math.max(...runs.map((run, side) => run.scene.end + Math.max(...anchors) - anchors[side]));
	const lengths = runs.map(run => anchored ? Math.max(...run.usual.map(step => step.begin + step.duration)) - run.usual[0].begin : run.scene.end);
	const width = anchored && Math.max(...lengths) < extent / 8 ? Math.max(...lengths) * 1.02 : extent;
	const firstOf = side => width < extent ? [anchors[side] - width * .01, anchors[side] + width * .99] : [0, extent];

	const other = one => timelines.find(each => each !== one);
	const timelines = runs.map((run, side) => pperf.timeline(run, {key: side ? 't2' : 't', prefix: NAMES[side].toLowerCase() + '-', title: NAMES[side], extent, first: firstOf(side), beside: runs[1 - side].scene, lanes: {stream: 3, thread: 1},
		shown: one => other(one).follow(...one.interval.map(time => time + anchors[1 - side] - anchors[side]))}));

	// ---- the maps of memory, on one scale ----

	const withMaps = data.sides.filter(side => side.memory_map);
	const ranOut = side => side.memory_map.memory_map.label.some(label => label.startsWith('out of memory'));
	const first = withMaps.every(ranOut) ? ['out of memory'] : ['peak'];
	const maps = data.sides.map((side, i) => pperf.memoryMap(side, {key: i ? 'map2' : 'map', prefix: NAMES[i].toLowerCase() + '-', title: 'Memory map: ' + NAMES[i].toLowerCase(), scale: withMaps, first,
		shown: moment => maps[1 - i]?.follow(moment.name)}));

	// ---- the page ----

	const graph = pperf.flameGraph(), draw = () => {
		timelines.forEach(timeline => timeline.draw());
		graph.draw();
		maps.forEach(map => map?.draw());
	};
	Object.assign(pperf, {charts: timelines, graph, maps});
	const verdicts = cards.map((of, side) => {
		const made = of.verdictCard('verdict-' + NAMES[side].toLowerCase(), NAMES[side] + ': ' + data.head[side].file);
		made.classList.add('verdict');
		return made;
	});
	document.getElementById('main').replaceChildren(...pperf.writeHead('html'), changeCard(), element('div', {class: 'two'}, verdicts), graph.element, tableCard(), ...timelines.map(timeline => timeline.element),
		element('div', {class: withMaps.length > 1 ? 'two maps' : ''}, ...maps.filter(Boolean).map(map => map.element)));
	pperf.keepDrawn(() => ({timelines, graph, draw}));
})();
