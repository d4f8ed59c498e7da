// The data of a timeline: lanes of events or columns, memory, places. Times are nanoseconds since
// the start of the trace.
(() => {
	'use strict';
	const added = list => {
		let sum = 0;
		return Float64Array.from(list, difference => sum += difference);
	};

	// Reads the scene of a run: {scene, node_kinds}, as in README.md.
	pperf.readScene = data => {
		const {scene} = data;

		// ---- places in the call tree ----

		const {nodes} = scene, nodeIndex = new Map(nodes.id.map((id, i) => [id, i]));
		const nodePath = id => {
			const names = [];
			for (let i = nodeIndex.get(id); i !== undefined; i = nodeIndex.get(nodes.parent[i]))
				names.unshift(scene.strings[nodes.name[i]]);
			return names.join(' / ');
		};
		const nodeName = id => nodeIndex.has(id) ? scene.strings[nodes.name[nodeIndex.get(id)]] : '';
		const nodeKind = id => data.node_kinds ? data.node_kinds.charCodeAt(id) - 97 || 0 : 0;

		// ---- spans: the run, and windows with finer columns ----

		const readEvents = (events, kindOf) => events && {begin: added(events.begin_ns), duration: events.duration_ns,
			kind: events.kind.map(kind => kindOf(events.kinds[kind])), node: events.node, name: events.name};
		const readSeries = (series, kindOf) => ({kind: kindOf(series.name ?? series.level), at: added(series.at), ns: series.ns, counts: series.counts});

		const readLane = (lane, kindOf) => ({events: readEvents(lane.events, kindOf), series: lane.series && lane.series.map(series => readSeries(series, kindOf)),
			dominants: lane.dominants && lane.dominants.map(one => ({level: one.level, at: added(one.at), node: one.node, ns: one.ns}))});

		const readMemory = memory => ({...memory, at: added(memory.at), at_ns: added(memory.at_ns)});

		const readSpan = (span, kinds) => ({origin: span.origin_ns, end: span.end_ns, width: span.width_ns, columns: span.columns,
			lanes: span.lanes.map((lane, i) => readLane(lane, kinds[i])), memories: span.memory.map(readMemory)});

		// Kinds of a lane are numbers in the order of its series in the run. Levels of a thread are numbers.
		const facts = scene.whole.lanes.map(lane => ({kind: lane.kind, label: lane.label, device: lane.device, gpus: lane.gpus, isRest: !!lane.rest,
			seen: lane.events_seen, series: (lane.series || []).map(series => ({name: series.name ?? series.level, total: series.total_ns, count: series.count}))}));
		const kindsOf = facts.map(lane => {
			const number = new Map(lane.series.map((series, i) => [series.name, i]));
			return name => lane.kind === 'thread' ? Number(name) : number.get(name) ?? -1;
		});
		const whole = readSpan(scene.whole, kindsOf);
		const windows = scene.windows.map(one => ({begin: one.begin_ns, end: one.end_ns, kinds: one.kinds, findings: one.findings || [], step: one.step,
			span: readSpan(one.span, kindsOf)})).sort((a, b) => (a.end - a.begin) - (b.end - b.begin));

		const containing = (from, to) => windows.filter(one => one.begin <= from && to <= one.end);

		// Returns the finest data of a lane for an interval: {events}, or {span, series, dominants}.
		const source = (index, from, to) => {
			const of = whole.lanes[index];
			if (of.events)
				return {events: of.events};
			for (const {span} of containing(from, to)) {
				const lane = span.lanes[index];
				if (lane.events)
					return {events: lane.events};
				if (lane.series && lane.series.length)
					return {span, series: lane.series, dominants: lane.dominants};
			}
			return {span: whole, series: of.series || [], dominants: of.dominants};
		};

		const memory = (index, from, to) => {
			const found = containing(from, to).find(one => one.span.memories[index] && one.span.width < whole.width);
			const span = found ? found.span : whole;
			return {span, memory: span.memories[index]};
		};

		// Calls visit(begin, end, ns, kind) for each event or column that overlaps the interval.
		const visit = ({events, span, series}, from, to, visitor) => {
			if (events) {
				for (let i = 0; i < events.begin.length && events.begin[i] < to; i++) {
					const end = events.begin[i] + events.duration[i];
					if (end >= from)
						visitor(events.begin[i], end, events.duration[i], events.kind[i], i);
				}
				return;
			}
			for (const one of series)
				for (let i = 0; i < one.at.length; i++) {
					const begin = span.origin + one.at[i] * span.width;
					if (begin < to && begin + span.width > from && one.ns[i])
						visitor(begin, begin + span.width, one.ns[i], one.kind, -1);
				}
		};

		// Adds the time from `begin` to `end` to the pixels that it overlaps, with `ns` in all.
		const spread = (pixels, from, scale, begin, end, ns) => {
			const first = (begin - from) * scale, last = (end - from) * scale, length = last - first;
			const low = Math.max(0, Math.floor(first)), high = Math.min(pixels.length - 1, Math.floor(last));
			if (length <= 0) {
				if (low === high)
					pixels[low] += ns;
				return;
			}
			for (let i = low; i <= high; i++)
				pixels[i] += ns * Math.max(0, Math.min(last, i + 1) - Math.max(first, i)) / length;
		};

		return {facts, whole, windows, source, memory, visit, spread, end: scene.whole.end_ns, strings: scene.strings, nodePath, nodeName, nodeKind};
	};
})();
