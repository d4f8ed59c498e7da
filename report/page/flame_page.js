// The page of the view `flame`: head and flame graph.
(() => {
	'use strict';
	const {element, number, count} = pperf, {head} = pperf.data;

	const badge = (name, title) => element('span', {class: 'badge ' + name}, title);

	function describe(trace) {
		const devices = [...new Set(trace.devices.map(device => device.name))];
		const gpus = !devices.length ? 'no GPU' : (trace.devices.length > 1 ? trace.devices.length + ' × ' : '') + devices.join(', ');
		return [trace.command, trace.rank === null ? '' : 'rank ' + trace.rank, trace.processes > 1 ? count(trace.processes) + ' processes' : '',
			gpus, number(trace.duration, 'time')].filter(Boolean).join(' · ');
	}

	function badges() {
		const complete = head.every(trace => trace.complete);
		return [head.some(trace => trace.simulated) ? badge('warn', 'simulated GPU: its times are no measurements') : null,
			head.some(trace => trace.imported) ? badge('', 'imported') : null,
			complete ? badge('good', 'complete') : badge('warn', 'data are missing')];
	}

	document.getElementById('head').append(
		element('h1', null, head.map(trace => trace.file).join(' → ')),
		...badges().filter(Boolean),
		element('span', {class: 'tools'},
			element('button', {type: 'button', id: 'theme', click: pperf.switchTheme}, 'Light / dark'),
			element('button', {type: 'button', id: 'print', click: () => print()}, 'Print')));

	const graph = pperf.graph = pperf.flameGraph(), main = document.getElementById('main');
	const notes = element('div', {class: 'note'}, head.map(trace => element('p', null, (head.length > 1 ? trace.file + ': ' : '') + describe(trace))));
	const warnings = head.flatMap(trace => trace.warnings);
	main.replaceChildren(notes);
	if (warnings.length)
		main.append(element('ul', {class: 'warnings'}, warnings.map(warning => element('li', null, warning))));
	main.append(graph.element);
	document.body.insertBefore(element('footer', null, 'Written by pperf-report flame. Its values are those of the text views ' +
		'(pperf-report --legend explains them). The page loads nothing from a network.'), document.getElementById('tip'));
	graph.draw();

	addEventListener('keydown', event => {
		if (event.key === '/' && document.activeElement?.tagName !== 'INPUT') {
			event.preventDefault();
			graph.input.focus();
			graph.input.select();
		}
	});
	let waiting = 0;
	addEventListener('resize', () => {
		cancelAnimationFrame(waiting);
		waiting = requestAnimationFrame(() => graph.draw());
	});
	addEventListener('beforeprint', () => graph.draw());
	addEventListener('afterprint', () => graph.draw());
	document.documentElement.dataset.ready = 'true';
})();
