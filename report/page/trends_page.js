// The page of a history of nights, of `pperf history html`: what changed since when, the time of the
// job and of a place by night, all places with their nights.
(() => {
	'use strict';
	const {element, number, count, data, card, sentence} = pperf, {nights, places, changes, accepted} = data;
	const DAY = 86400000, HEIGHT = 190, LEFT = 74, TOP = 16, BOTTOM = 22, ROWS = 40;

	const dayOf = night => Date.parse(night + 'T00:00:00Z') / DAY;
	const days = nights.map(one => dayOf(one.night)), gaps = days.slice(1).map((day, i) => day - days[i]).sort((a, b) => a - b);
	const usualGap = gaps.length ? gaps[gaps.length >> 1] : 1;
	const signed = percent => (percent > 0 ? '+' : '') + percent.toFixed(1) + ' %';
	const timed = ns => ns === null ? '-' : number(ns, 'time');
	const chosenPlace = index => Number.isInteger(index) && index >= 0 && index < places.length ? index : 0;

	// ---- lines over the nights ----

	// Returns the path of a line, broken where nights are missing.
	const lineOf = (values, x, y) => {
		let path = '', last = -1;
		values.forEach((value, night) => {
			if (value === null)
				return;
			path += (last >= 0 && days[night] - days[last] <= 1.5 * usualGap ? 'L' : 'M') + x(night).toFixed(1) + ' ' + y(value).toFixed(1);
			last = night;
		});
		return path;
	};
	const rangeOf = values => {
		const known = values.filter(value => value !== null), least = Math.min(...known), most = Math.max(...known);
		const room = Math.max((most - least) * .1, most * .01, 1);
		return known.length ? [Math.max(0, least - room), most + room] : [0, 1];
	};
	const diamond = (x, y, size) => 'M' + x + ' ' + (y - size) + 'L' + (x + size) + ' ' + y + 'L' + x + ' ' + (y + size) + 'L' + (x - size) + ' ' + y + 'Z';

	function spark(index) {
		const place = places[index], [low, high] = rangeOf(place.values), width = 120, height = 20;
		const x = night => 2 + (days.length > 1 ? (days[night] - days[0]) / (days[days.length - 1] - days[0]) : .5) * (width - 4);
		const y = value => height - 2 - (value - low) / (high - low) * (height - 4);
		return element('svg', {class: 'spark', viewBox: '0 0 ' + width + ' ' + height, width, height, 'aria-hidden': 'true'},
			element('path', {class: 'trend-line', d: lineOf(place.values, x, y)}),
			place.slow.map(night => element('rect', {class: 'trend-slow', x: (x(night) - 1).toFixed(1), y: (y(place.values[night]) - 1).toFixed(1), width: 2.4, height: 2.4})));
	}

	const showButton = index => element('button', {type: 'button', class: 'to-place', 'data-place': index, 'aria-label': 'Show the nights of ' + places[index].path,
		click: () => select(index, true)}, spark(index));

	// ---- one place by night ----

	const box = element('div', {id: 'nights-chart'}), name = element('span', {class: 'note', id: 'chosen'});
	let selected = chosenPlace(Number(pperf.recall('place') ?? 0));

	function nightTip(event, night) {
		const place = places[selected], one = nights[night], before = place.before[night] ?? null;
		pperf.showTip(event, one.night, [[selected ? 'per rank and step' : 'a step', timed(place.values[night])], ...(before === null ? [] : [['median of the nights before', timed(before)]]),
			['processes', count(one.processes)], ['wall time', timed(one.wall_ns)]], place.slow.includes(night) ? 'Slower than the nights before.' : '');
	}

	function draw() {
		const place = places[selected], width = Math.max(box.clientWidth || 900, 200), whole = [...place.values, ...place.before], [low, high] = rangeOf(whole);
		const span = Math.max(1, days[days.length - 1] - days[0]), right = width - 14;
		const x = night => days.length > 1 ? LEFT + (days[night] - days[0]) / span * (right - LEFT) : (LEFT + right) / 2;
		const y = value => HEIGHT - BOTTOM - (value - low) / (high - low) * (HEIGHT - BOTTOM - TOP);
		const svg = element('svg', {width, height: HEIGHT, viewBox: '0 0 ' + width + ' ' + HEIGHT, role: 'img',
			'aria-label': place.path + ': ' + count(nights.length) + ' nights from ' + nights[0].night + ' to ' + nights[nights.length - 1].night + '; the tables have the figures.'});
		for (const part of [0, .5, 1]) {
			const value = low + (high - low) * part, at = y(value).toFixed(1);
			svg.append(element('line', {class: 'grid', x1: LEFT, x2: right, y1: at, y2: at}), element('text', {class: 'axis end', x: LEFT - 8, y: Number(at) + 4}, number(Math.round(value), 'time')));
		}
		let free = 0;
		nights.forEach((one, night) => {
			const wide = pperf.textWidth(one.night, 11) / 2 + 6, at = Math.max(LEFT + wide - 6, Math.min(right - wide + 12, x(night)));
			const isLast = night === nights.length - 1, last = right - 2 * wide;
			if (at - wide >= free && (isLast || at + wide <= last)) {
				svg.append(element('text', {class: 'axis middle', x: at.toFixed(1), y: HEIGHT - 5}, one.night));
				free = at + wide + 20;
			}
		});
		for (const one of accepted.filter(mark => !selected || mark.path === null || mark.path === place.path)) {
			const night = nights.findIndex(other => other.night === one.night);
			if (night < 0)
				continue;
			const at = x(night), isLeft = at + pperf.textWidth('accepted', 11) + 8 > right;
			svg.append(element('line', {class: 'trend-accepted', x1: at, x2: at, y1: TOP - 12, y2: HEIGHT - BOTTOM}),
				element('text', {class: 'axis accepted' + (isLeft ? ' end' : ''), x: (at + (isLeft ? -4 : 4)).toFixed(1), y: TOP - 5}, 'accepted'));
		}
		svg.append(element('path', {class: 'trend-before', d: lineOf(place.before, x, y)}), element('path', {class: 'trend-line', d: lineOf(place.values, x, y)}));
		place.values.forEach((value, night) => {
			if (value === null)
				return;
			const at = Number(x(night).toFixed(1)), up = Number(y(value).toFixed(1)), isSlow = place.slow.includes(night), step = (right - LEFT) / Math.max(1, nights.length);
			svg.append(element('g', {'data-night': night, mousemove: event => nightTip(event, night), mouseleave: pperf.hideTip},
				element('rect', {class: 'hidden-bar', x: (at - Math.max(3, step / 2)).toFixed(1), y: TOP, width: Math.max(6, step).toFixed(1), height: HEIGHT - TOP - BOTTOM}),
				element('path', {class: isSlow ? 'trend-slow' : 'trend-dot', d: diamond(at, up, isSlow ? 5 : 2.2)})));
		});
		box.replaceChildren(svg);
	}

	function select(index, isMove) {
		selected = chosenPlace(index);
		pperf.remember('place', selected ? String(selected) : null);
		name.textContent = places[selected].path + (selected ? ', ' + data.value_name : '');
		draw();
		if (!isMove)
			return;
		pperf.announce(places[selected].path + ' is shown');
		document.getElementById('nights').scrollIntoView({block: 'nearest'});
	}

	const legend = () => element('div', {class: 'legend'}, [['trend-line', 'a night'], ['trend-slow', 'slower than the nights before'], ['trend-before', 'median of the nights before'],
		...(accepted.length ? [['trend-accepted', 'accepted as the new normal']] : [])].map(([kind, title]) =>
		element('span', null, element('svg', {class: 'key', viewBox: '0 0 18 10', width: 18, height: 10, 'aria-hidden': 'true'},
			kind === 'trend-slow' ? element('path', {class: kind, d: diamond(9, 5, 4.5)}) : element('path', {class: kind, d: 'M0 5L18 5'})), title)));

	const nightRows = () => element('table', {id: 'night-table'}, element('thead', null, element('tr', null, ['night', 'a step', 'median before', 'wall time', 'GPU busy, all ranks', 'processes', 'damaged', 'slower places'].map((title, i) =>
		element('th', {scope: 'col', class: i ? null : 'left'}, title)))), element('tbody', null, nights.map(one => element('tr', null, element('td', {class: 'left'}, one.night),
		[timed(one.step_ns), timed(one.before_ns), timed(one.wall_ns), timed(one.gpu_busy_ns), count(one.processes), count(one.damaged), count(one.slower)].map(text => element('td', null, text))))));

	const nightsCard = () => {
		const made = card('nights', 'Time by night', null, box, legend(), element('details', {class: 'figures-of'}, element('summary', null, 'Figures of all ' + count(nights.length) + ' nights'),
			element('div', {class: 'scroll', tabindex: 0, role: 'region', 'aria-label': 'Nights'}, nightRows())));
		made.firstChild.append(name, element('span', {class: 'grow'}), element('button', {type: 'button', id: 'show-steps', click: () => select(0, true)}, places[0].path === data.step_name ? 'A step of the job' : places[0].path));
		return made;
	};

	// ---- what changed ----

	const STATES = 'As before: not slower by 3 % and by 3 robust deviations; accepted: slower, and accepted in the newest night; no baseline: in too few nights before';
	const ENDS = {open: 'still slower', accepted: 'accepted', over: 'over'};

	function changesCard() {
		if (!changes.length)
			return null;
		const heads = ['place, and where in it', 'since', 'until', 'now', 'nights', 'before', 'after', 'change', 'p'], body = element('tbody');
		const more = element('button', {type: 'button', click: () => fill(changes.length)}, 'All ' + count(changes.length) + ' changes');
		const fill = most => {
			body.replaceChildren(...changes.slice(0, most).map((one, i) => element('tr', {'data-change': i, class: one.end === 'open' ? 'open' : null},
				element('td', {class: 'left name'}, one.place >= 0 ? showButton(one.place) : null, one.path, one.in === one.path ? null : element('div', {class: 'note'}, 'most of it in ' + one.in)),
				[one.since, one.until, ENDS[one.end]].map(text => element('td', {class: 'left'}, text)),
				[count(one.nights), timed(one.before_ns), timed(one.after_ns), signed(one.percent), one.p === null ? '-' : one.p < .0001 ? '< 0.0001' : one.p.toFixed(4)].map(text => element('td', null, text)))));
			more.hidden = most >= changes.length;
		};
		fill(ROWS);
		return card('changes', 'What became slower', 'the newest first', element('div', {class: 'scroll', tabindex: 0, role: 'region', 'aria-label': 'What became slower'},
			element('table', {id: 'changes-table'}, element('thead', null, element('tr', null, heads.map((title, i) => element('th', {scope: 'col', class: i < 4 ? 'left' : null}, title)))), body)), more);
	}

	// ---- accepted, renamed, new and gone ----

	const listed = (id, title, note, rows) => rows.length ? card(id, title, note, element('ul', {class: 'plain listed-nights'}, rows.map(row => element('li', null, row)))) : null;
	const eventCards = () => [listed('accepted', 'Accepted', 'as the new normal', accepted.map(one => [element('b', null, one.night), ' ' + (one.path ?? 'all places')])),
		listed('renamed', 'Renamed', 'continued under the new name', data.renamed.map(one => [element('b', null, one.night), ' ' + one.from + ' → ' + one.to])),
		listed('come', 'New and gone', 'in the newest night', [...data.new.map(one => [element('b', null, 'new'), ' ' + one.path + ', ' + timed(one.ns)]), ...data.gone.map(one => [element('b', null, 'gone'), ' ' + one.path + ', ' + timed(one.ns)])])].filter(Boolean);

	// ---- all places ----

	function placesCard() {
		const column = (key, title, help, text) => ({key, title, help, value: places.map(one => one[key]), text: places.map(one => one[key] === null ? '-' : text(one[key]))});
		const table = {rows: places.length, label: places.map(one => one.path), columns: [column('value_ns', 'newest', 'In the newest night', timed), column('before_ns', 'median before', 'Of the baseline', timed),
			column('percent', 'change', 'Of the newest night, from the median of its baseline', signed), {key: 'state', title: 'state', help: STATES, left: true, value: [], text: places.map(one => one.state)}]};
		const sorted = pperf.sortedTable(table, ['value_ns', 'before_ns', 'percent', 'state'], {id: 'places', name: 'Places', title: 'place, and its nights', sort: 'value_ns', mark: showButton});
		const input = element('input', {type: 'search', id: 'place-filter', size: 28, placeholder: 'Search: name or /expression/', 'aria-label': 'Search places by name', input: () => sorted.filter(input.value)});
		const made = card('all-places', 'Places', data.value_name + (data.left_out ? '; the ' + count(places.length) + ' with most time of ' + count(places.length + data.left_out) : ''), sorted.element);
		made.firstChild.append(element('span', {class: 'grow'}), sorted.status, input);
		input.value = pperf.recall('places') || '';
		if (input.value)
			sorted.filter(input.value);
		addEventListener('keydown', event => {
			if (event.key === '/' && document.activeElement?.tagName !== 'INPUT') {
				event.preventDefault();
				input.focus();
			}
		});
		return made;
	}

	// ---- the page ----

	document.title = data.job + ' - pperf';
	const open = changes.filter(one => one.end === 'open').length;
	const verdict = open ? ['warn', 'slower'] : data.compared ? ['good', 'no regression'] : ['warn', data.nights_before < data.nights_needed ? 'too few nights' : 'nothing compared'];
	document.getElementById('head').append(element('h1', null, data.job), element('span', {class: 'badge ' + verdict[0]}, verdict[1]),
		...(data.simulated ? [element('span', {class: 'badge warn'}, 'simulated GPU: its times are no measurements')] : []), pperf.pageTools());
	pperf.writeFoot('Written by pperf history html. Its values are those of pperf history trends -f json. The page loads nothing from a network.');
	const events = eventCards();
	document.getElementById('main').replaceChildren(element('section', {class: 'card', id: 'verdict', 'aria-label': 'Verdict'}, data.sentences.map((text, i) => element('p', {class: i ? 'note' : 'lead'}, sentence(text)))),
		nightsCard(), ...[changesCard()].filter(Boolean), ...(events.length ? [element('div', {class: events.length > 1 ? 'two' : ''}, events)] : []), placesCard());
	select(selected, false);
	addEventListener('resize', draw);
	addEventListener('beforeprint', draw);
	addEventListener('afterprint', draw);
	document.documentElement.dataset.ready = 'true';
})();
