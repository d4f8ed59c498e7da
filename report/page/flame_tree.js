// The trees of a flame graph: sums, order, search. Frames are numbers; parents precede children.
(() => {
	'use strict';
	const totalsOf = (parent, own) => {
		const totals = Float64Array.from(own);
		for (let i = totals.length - 1; i >= 0; i--)
			if (parent[i] >= 0)
				totals[parent[i]] += totals[i];
		return totals;
	};
	const sum = (frames, values) => frames.reduce((all, frame) => all + values[frame], 0);

	// The frames of what the program did outside of its steps, and all below them.
	pperf.outsideFrames = frames => {
		const outside = new Uint8Array(frames.parent.length);
		for (const frame of frames.outside)
			outside[frame] = 1;
		frames.parent.forEach((parent, frame) => { outside[frame] |= parent >= 0 ? outside[parent] : 0; });
		return outside;
	};

	// Prepares the frames of one shape for one metric, without those that `left` marks. In a differential graph the width of a frame
	// is made of the wider side of each frame, so that frames of one side are drawn, too.
	pperf.flameTree = (frames, all, sides, left) => {
		const keep = own => left ? own.map((value, i) => left[i] ? 0 : value) : own;
		const values = {own: keep(all.own), before: sides === 2 ? keep(all.before) : null};
		const count = frames.parent.length, parent = frames.parent;
		const wide = sides === 2 ? values.own.map((own, i) => Math.max(own, values.before[i])) : values.own;
		const tree = {frames, own: values.own, totals: totalsOf(parent, values.own), widths: totalsOf(parent, wide),
			children: Array.from({length: count}, () => []), roots: []};
		tree.before = sides === 2 ? totalsOf(parent, values.before) : null;
		for (let i = 0; i < count; i++)
			(parent[i] < 0 ? tree.roots : tree.children[parent[i]]).push(i);
		for (const list of [tree.roots, ...tree.children])
			list.sort((a, b) => tree.widths[b] - tree.widths[a] || a - b);
		tree.total = sum(tree.roots, tree.totals);
		tree.totalBefore = tree.before && sum(tree.roots, tree.before);
		tree.width = sum(tree.roots, tree.widths);
		if (sides === 2) {
			tree.change = tree.totals.map((total, i) => total - tree.before[i]);
			tree.largestChange = tree.change.reduce((most, change) => Math.max(most, Math.abs(change)), 0);
			tree.ownChange = values.own.map((own, i) => own - values.before[i]);
		}
		return tree;
	};

	pperf.flamePath = (tree, frame) => {
		const path = [];
		for (; frame >= 0; frame = tree.frames.parent[frame])
			path.unshift(frame);
		return path;
	};

	// Returns a test of names for a text, or /a regular expression/. null: not a valid one.
	pperf.nameTest = query => {
		const expression = query.match(/^\/(.+?)\/?$/);
		if (!expression) {
			const wanted = query.toLowerCase();
			return name => name.toLowerCase().includes(wanted);
		}
		try {
			const pattern = new RegExp(expression[1], 'i');
			return name => pattern.test(name);
		} catch {
			return null;
		}
	};

	// Finds frames by label. `sum` counts what is below several matches once.
	pperf.flameSearch = (tree, test) => {
		const found = {hits: new Uint8Array(tree.totals.length), list: [], sum: 0};
		const within = new Uint8Array(tree.totals.length), known = new Map();
		for (let i = 0; i < found.hits.length; i++) {
			const parent = tree.frames.parent[i], label = tree.frames.label[i];
			if (!known.has(label))
				known.set(label, test(pperf.text(label)));
			within[i] = parent >= 0 && (within[parent] || found.hits[parent]);
			if (!known.get(label) || !(tree.widths[i] > 0))
				continue;
			found.hits[i] = 1;
			found.list.push(i);
			if (!within[i])
				found.sum += tree.totals[i];
		}
		found.list.sort((a, b) => tree.widths[b] - tree.widths[a] || a - b);
		return found;
	};
})();
