// The page of the view `flame`: head and flame graph.
(() => {
	'use strict';
	const graph = pperf.graph = pperf.flameGraph(), main = document.getElementById('main');
	main.replaceChildren(...pperf.writeHead('flame'), graph.element);
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
