// What all scripts of a page share: elements, texts, state in the URL, theme, the tip.
// Scripts are classic scripts that share the object `pperf`. Names of a trace are data: they become
// text nodes and attributes, never markup.
const pperf = {};
(() => {
	'use strict';
	const SVG = 'http://www.w3.org/2000/svg';
	const SVG_TAGS = new Set(['svg', 'g', 'rect', 'text', 'line', 'path', 'title']);

	pperf.data = JSON.parse(document.getElementById('data').textContent);
	// The texts that numbers refer to: those of the page, or of the run that it shows.
	pperf.strings = pperf.data.strings;
	pperf.text = number => pperf.strings[number];

	// Makes an element. `attributes`: null leaves one out; a function listens to that event.
	pperf.element = (tag, attributes, ...children) => {
		const made = SVG_TAGS.has(tag) ? document.createElementNS(SVG, tag) : document.createElement(tag);
		for (const [name, value] of Object.entries(attributes || {})) {
			if (typeof value === 'function')
				made.addEventListener(name, value);
			else if (value !== null && value !== undefined)
				made.setAttribute(name, value);
		}
		made.append(...children.flat(2).filter(child => child !== null && child !== undefined));
		return made;
	};
	const element = pperf.element;

	pperf.card = (id, title, note, ...content) => element('section', {class: 'card', id, 'aria-label': title},
		element('div', {class: 'bar'}, element('h2', null, title), note ? element('span', {class: 'note'}, note) : null), ...content);
	// Names stand between grave accents in the sentences.
	pperf.sentence = text => text.split('`').map((part, i) => i % 2 ? element('code', null, part) : part);

	// ---- state in the URL's fragment, so that a link shows the same picture ----

	const state = new URLSearchParams(location.hash.slice(1));
	pperf.recall = key => state.get(key);
	pperf.remember = (key, value) => {
		if (value === null || value === '')
			state.delete(key);
		else
			state.set(key, value);
		if (location.protocol === 'about:')
			return; // in a frame of a notebook: it has no address
		history.replaceState(null, '', state.size ? '#' + state : location.pathname + location.search);
	};

	// ---- theme ----

	const page = document.documentElement;
	const isTheme = name => name === 'light' || name === 'dark';
	if (isTheme(state.get('theme')))
		page.dataset.theme = state.get('theme');
	pperf.theme = () => page.dataset.theme || (matchMedia('(prefers-color-scheme: dark)').matches ? 'dark' : 'light');
	pperf.switchTheme = () => {
		page.dataset.theme = pperf.theme() === 'dark' ? 'light' : 'dark';
		pperf.remember('theme', page.dataset.theme);
		dispatchEvent(new Event('themechange'));
	};
	matchMedia('(prefers-color-scheme: dark)').addEventListener('change', () => dispatchEvent(new Event('themechange')));

	// ---- the tip at the pointer; the live region for screen readers ----

	const tip = document.getElementById('tip'), live = document.getElementById('live');
	pperf.facts = (pairs, name) => element('dl', {class: name || null}, pairs.map(pair =>
		name ? element('div', null, element('dt', null, pair[0]), element('dd', null, pair[1]))
		     : [element('dt', null, pair[0]), element('dd', null, pair[1])]));
	pperf.showTip = (event, title, pairs, more) => {
		tip.replaceChildren(element('b', null, title), pperf.facts(pairs), element('p', null, more));
		tip.hidden = false;
		const left = Math.min(event.clientX + 14, innerWidth - tip.offsetWidth - 8);
		const below = event.clientY + 16;
		tip.style.left = Math.max(4, left) + 'px';
		tip.style.top = Math.max(4, below + tip.offsetHeight > innerHeight - 6 ? event.clientY - tip.offsetHeight - 10 : below) + 'px';
	};
	pperf.hideTip = () => { tip.hidden = true; };
	pperf.announce = text => { live.textContent = text; };

	// ---- widths of texts ----

	const pen = document.createElement('canvas').getContext('2d'), widths = new Map();
	pperf.textWidth = (text, pixels) => {
		const key = pixels + text;
		if (!widths.has(key)) {
			pen.font = pixels + 'px ' + getComputedStyle(document.body).fontFamily;
			widths.set(key, pen.measureText(text).width);
		}
		return widths.get(key);
	};

	// Cuts the middle, because the end distinguishes names. Returns '' if no 3 characters fit.
	const cutMiddle = (text, fits) => {
		const characters = [...text];
		const cut = kept => {
			const head = Math.ceil(kept * .6);
			return characters.slice(0, head).join('') + '…' + characters.slice(characters.length - (kept - head)).join('');
		};
		let low = 0, high = characters.length - 1;
		while (low < high) {
			const middle = (low + high + 1) >> 1;
			if (fits(cut(middle)))
				low = middle;
			else
				high = middle - 1;
		}
		return low < 3 ? '' : cut(low);
	};

	// Returns the longest form of a label that fits: whole, without launch configuration, without
	// class, without namespaces and templates, only the file of a code location, cut.
	pperf.fitText = (label, width, pixels) => {
		const fits = text => pperf.textWidth(text, pixels) <= width;
		if (width < 14)
			return '';
		let text = label;
		for (const [pattern, by] of [[/ +<<<.*>>>$/, ''], [/ \([\w.:]+\)(?= ×|$)/, ''], [/ ×\d+$/, ''], [/<.*>$/, ''],
			[/^(?:[\w~]+::)+(?=\w)/, ''], [/^.*\/(?=[^/]+:\d+ )/, '']]) {
			if (fits(text))
				return text;
			text = text.replace(pattern, by) || text;
		}
		return fits(text) ? text : cutMiddle(text, fits);
	};
})();
