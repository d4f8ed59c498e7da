// The page of the view `html` of one run.
(() => {
	'use strict';
	const [run] = pperf.readRuns([pperf.data]), parts = pperf.runParts(run);

	Object.assign(pperf, {scene: run.scene, steps: run.steps, chart: parts.timeline, graph: parts.graph, map: parts.map});
	document.getElementById('main').replaceChildren(...pperf.writeHead('html'), ...parts.elements);
	pperf.keepDrawn(() => ({timelines: [parts.timeline], graph: parts.graph, draw: parts.draw}));
})();
