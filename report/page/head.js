// The head of all pages: the traces, badges, theme and print. pperf.writeHead(view) fills it.
(() => {
	'use strict';
	const {element, number, count} = pperf, {head} = pperf.data;

	pperf.pageTools = () => element('span', {class: 'tools'},
		element('button', {type: 'button', id: 'theme', click: pperf.switchTheme}, 'Light / dark'),
		element('button', {type: 'button', id: 'print', click: () => print()}, 'Print'));
	pperf.writeFoot = text => document.body.insertBefore(element('footer', null, text), document.getElementById('tip'));

	const badge = (name, title) => element('span', {class: 'badge ' + name}, title);

	// The names of GPUs are not in every trace that has GPU work.
	pperf.describeTrace = trace => {
		const devices = [...new Set(trace.devices.map(device => device.name))];
		const gpus = (trace.devices.length > 1 ? trace.devices.length + ' × ' : '') + devices.join(', ');
		return [trace.command, trace.rank === null ? '' : 'rank ' + trace.rank, trace.processes > 1 ? count(trace.processes) + ' processes' : '',
			gpus, number(trace.duration, 'time')].filter(Boolean).join(' · ');
	};

	const badges = () => [head.some(trace => trace.simulated) ? badge('warn', 'simulated GPU: its times are no measurements') : null,
		head.some(trace => trace.imported) ? badge('', 'imported') : null,
		head.every(trace => trace.complete) ? badge('good', 'complete') : badge('warn', 'data are missing')];

	// Of ranks, what they have in common.
	const describeRanks = () => {
		const devices = [...new Set(head.flatMap(trace => trace.devices.map(device => device.name)))], last = head[head.length - 1];
		return element('p', null, [head[0].command, head[0].file + ' to ' + last.file, devices.join(', '),
			number(Math.max(...head.map(trace => trace.duration)), 'time')].filter(Boolean).join(' · '));
	};

	// Returns the elements below the head: descriptions and warnings.
	pperf.writeHead = view => {
		const warnings = head.flatMap(trace => trace.warnings);
		document.getElementById('head').append(
			element('h1', null, pperf.data.ranks ? count(head.length) + ' ranks of one run' : head.map(trace => trace.file).join(' → ')),
			...badges().filter(Boolean),
			pperf.pageTools());
		pperf.writeFoot('Written by pperf-report ' + view + '. Its values are those of the text views (pperf-report --legend explains them). The page loads nothing from a network.');
		return [element('div', {class: 'note'}, pperf.data.ranks ? describeRanks() : head.map(trace => element('p', null, (head.length > 1 ? trace.file + ': ' : '') + pperf.describeTrace(trace)))),
			warnings.length ? element('ul', {class: 'warnings'}, warnings.map(warning => element('li', null, warning))) : null].filter(Boolean);
	};
})();
