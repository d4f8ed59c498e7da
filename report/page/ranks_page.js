// The page of the view `html` of several ranks: what each did on one clock, who waited for whom, and
// the parts of one rank.
(() => {
	'use strict';
	const {element, number, count, data, card, sentence} = pperf, {ranks, runs} = data;
	const BARS = 10, LANES = 16;

	const [overview] = pperf.readRuns([{scene: ranks.scene}]);
	const labels = ranks.table.label, lanes = overview.scene.facts;
	const late = new Set(ranks.stragglers.map(one => one.rank));
	// Ranks by number; of many, the stragglers first.
	const inOrder = most => {
		const all = ranks.all.map((one, rank) => rank);
		return all.length > most ? [...all.filter(rank => late.has(rank)), ...all.filter(rank => !late.has(rank))] : all;
	};

	// ---- what the ranks waited for ----

	function waitCard() {
		const lead = ranks.stragglers.map(one => element('p', {class: 'lead'}, sentence(one.text)));
		const clocks = ranks.all.filter(one => one.clock);
		return card('verdict', 'Stragglers', count(ranks.all.length) + ' ranks', lead.length ? lead : element('p', {class: 'lead'}, sentence(ranks.no_straggler)),
			element('p', {class: 'note'}, ranks.alignment + '.'), element('p', {class: 'note'}, ranks.matched + '.'),
			element('details', null, element('summary', null, 'How well the clocks are aligned, and the text view'), element('ul', {class: 'plain note'}, clocks.map(one => element('li', null, one.clock))),
				element('p', null, element('code', null, data.commands.ranks))));
	}

	// ---- a bar for each rank ----

	const partsOf = rank => [...lanes[2 * rank].series].sort((a, b) => pperf.rankOrder(a.name) - pperf.rankOrder(b.name));
	const idleOf = rank => partsOf(rank).reduce((sum, part) => sum + (pperf.rankOrder(part.name) > 1 ? part.total : 0), 0);
	const longest = Math.max(1, ...ranks.all.map((one, rank) => partsOf(rank).reduce((sum, part) => sum + part.total, 0)));

	function bar(rank) {
		let x = 0;
		const made = element('svg', {class: 'share-bar', viewBox: '0 0 1000 14', preserveAspectRatio: 'none', role: 'img',
			'aria-label': partsOf(rank).map(part => part.name + ' ' + number(part.total, 'time')).join(', '),
			mousemove: event => pperf.showTip(event, labels[rank], partsOf(rank).map(part => [(pperf.rankOrder(part.name) > 1 ? 'idle: ' : '') + part.name, number(part.total, 'time')]), ''),
			mouseleave: pperf.hideTip});
		for (const part of partsOf(rank)) {
			const width = part.total / longest * 1000;
			made.append(element('rect', {class: pperf.causeClass(part.name), x: x.toFixed(2), y: 0, width: width.toFixed(2), height: 14}));
			x += width;
		}
		return made;
	}

	const COLUMNS = ['gpu_busy_ns', 'gpu_exposed_communication_ns', 'wait_ns', 'transfer_ns', 'last'];

	function barsCard() {
		const columns = COLUMNS.map(key => pperf.column(ranks.table, key));
		const head = ['rank', 'its GPUs', 'idle', ...columns.map(column => column.title)];
		const help = ['', 'busy, exposed communication, idle by cause', 'time without GPU work', ...columns.map(column => column.help)];
		const body = element('tbody'), more = element('button', {type: 'button', click: () => { fill(ranks.all.length); }}, 'All ' + count(ranks.all.length) + ' ranks');
		const fill = shown => {
			body.replaceChildren(...inOrder(BARS).slice(0, shown).map(rank => element('tr', {'data-rank': rank, class: late.has(rank) ? 'late' : null},
				element('td', {class: 'left'}, element('button', {type: 'button', class: 'to-rank', click: () => select(rank, true)}, labels[rank]), late.has(rank) ? element('span', {class: 'note'}, ' straggler') : null),
				element('td', {class: 'left'}, bar(rank)), element('td', null, lanes[2 * rank].series.length ? number(idleOf(rank), 'time') : '-'), columns.map(column => element('td', null, column.text[rank])))));
			more.hidden = shown >= ranks.all.length;
		};
		fill(BARS);
		return card('rank-bars', 'Ranks', 'busy, exposed communication and idle time of each; a click shows the rank below', element('div', {class: 'scroll', tabindex: 0, role: 'region', 'aria-label': 'Ranks'},
			element('table', {id: 'rank-table'}, element('thead', null, element('tr', null, head.map((title, i) => element('th', {scope: 'col', class: i < 2 ? 'left' : null, title: help[i]}, title)))), body)), more);
	}

	// ---- collectives ----

	function collectivesCard() {
		if (!ranks.collectives.rows)
			return null;
		const table = pperf.sortedTable(ranks.collectives, ['wait_ns', 'transfer_ns', 'calls', 'last'], {id: 'collective-table', name: 'Collectives', title: 'collective, and where it was launched',
			sort: 'wait_ns', bar: 'wait_ns', barClass: () => 'collective-wait'});
		return card('collectives', 'Collectives that wait for a rank', ranks.collectives.left_out ? 'the first ' + count(ranks.collectives.rows) + ' of ' + count(ranks.collectives.rows + ranks.collectives.left_out) : '', table.element);
	}

	// ---- the parts of one rank ----

	const chosen = element('div', {id: 'rank', class: 'parts'}), choices = element('div', {class: 'choice', role: 'group', 'aria-label': 'Rank whose parts are shown'});
	let selected = -1, parts = null;

	function chooserCard() {
		return element('section', {class: 'card', id: 'chooser', 'aria-label': 'One rank'}, element('div', {class: 'bar'}, element('h2', null, 'One rank'), choices), chosenFacts);
	}

	const chosenFacts = element('div', {id: 'rank-facts'});
	const describe = rank => {
		const one = ranks.all[rank], trace = data.head[rank];
		return [element('p', null, element('b', null, labels[rank]), ' · ' + trace.file + ' · ' + pperf.describeTrace({...trace, rank: null})),
			one.clock ? element('p', {class: 'note'}, 'Clock: ' + one.clock + '. ', parts ? 'The axis below is that of its own trace.' : '') : null,
			one.left_out ? element('p', {class: 'note left-out'}, one.left_out + ' A page of its own has them: ', element('code', null, one.command)) : null].filter(Boolean);
	};

	function select(rank, isMove) {
		if (isMove && selected >= 0)
			for (const key of ['t', 'zoom', 'm', 'shape', 'kernel-table', 'function-table'])
				pperf.remember(key, null);
		selected = rank;
		pperf.remember('rank', String(rank) === String(first) ? null : String(rank));
		pperf.hideTip();
		parts = runs[rank] ? pperf.runParts(pperf.readRuns([runs[rank]])[0]) : null;
		Object.assign(pperf, {chart: parts?.timeline, graph: parts?.graph});
		choices.replaceChildren(...ranks.all.map((one, i) => element('button', {type: 'button', 'aria-pressed': String(i === rank), 'data-rank': i, click: () => select(i, true)}, String(labels[i]).replace('rank ', ''), late.has(i) ? ' (straggler)' : '')));
		chosenFacts.replaceChildren(...describe(rank));
		chosen.replaceChildren(...(parts ? parts.elements : []));
		if (!isMove)
			return;
		timeline.options.selected = rank;
		timeline.options.ranks.add(rank);
		draw();
		pperf.announce(labels[rank] + ' is shown');
		choices.querySelector('[aria-pressed="true"]').focus({preventScroll: true});
		document.getElementById('chooser').scrollIntoView({block: 'start'});
	}

	// ---- the page ----

	const timeline = pperf.ranksChart = pperf.timeline(overview, {key: 'r', prefix: 'ranks-', title: 'GPUs and collectives on one clock', ranks: new Set(inOrder(LANES).slice(0, LANES))});
	const withParts = runs.map((run, rank) => run ? rank : -1).filter(rank => rank >= 0);
	const first = [...late].find(rank => runs[rank]) ?? withParts[0] ?? 0;
	const recalled = Number(pperf.recall('rank') ?? first);
	const draw = () => {
		timeline.draw();
		parts?.draw();
	};
	select(Number.isInteger(recalled) && recalled >= 0 && recalled < ranks.all.length ? recalled : first, false);
	timeline.options.selected = selected;
	timeline.options.ranks.add(selected);
	document.getElementById('main').replaceChildren(...pperf.writeHead('html'), element('div', {class: 'two of-ranks'}, waitCard(), barsCard()), timeline.element, ...[collectivesCard()].filter(Boolean), chooserCard(), chosen);
	pperf.keepDrawn(() => ({timelines: [timeline, parts?.timeline].filter(Boolean), graph: parts?.graph, draw}));
})();
