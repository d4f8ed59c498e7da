// Formats numbers as report/text/format_number.c does: from exact integers, rounded half to even.
// tests/report/page/numbers.tsv has cases that both must pass.
(() => {
	'use strict';
	const SCALES = {
		time: [[1000000000n, 's'], [1000000n, 'ms'], [1000n, 'µs'], [1n, 'ns']],
		bytes: [[1000000000000n, 'TB'], [1000000000n, 'GB'], [1000000n, 'MB'], [1000n, 'kB'], [1n, 'B']],
		iec: [[1n << 40n, 'TiB'], [1n << 30n, 'GiB'], [1n << 20n, 'MiB'], [1n << 10n, 'KiB'], [1n, 'B']],
	};
	const size = value => value < 0n ? -value : value;

	// Returns part / whole, rounded half to even.
	const divided = (part, whole) => {
		const quotient = part / whole, rest = part % whole * 2n;
		return rest > whole || (rest === whole && quotient % 2n) ? quotient + 1n : quotient;
	};
	const grouped = digits => digits.replace(/\B(?=(\d{3})+$)/g, ',');

	const scaled = (value, scales) => {
		const scale = scales.find(entry => entry[0] === 1n || entry[0] <= size(value));
		if (scale[0] === 1n)
			return value + ' ' + scale[1];
		const digits = String(divided(size(value) * 100n, scale[0])).padStart(3, '0');
		return (value < 0n ? '-' : '') + digits.slice(0, -2) + '.' + digits.slice(-2) + ' ' + scale[1];
	};

	// A counter of the program may have any value.
	const plain = value => Number.isInteger(value) ? (value < 0 ? '-' : '') + grouped(String(Math.abs(value)))
		: String(Number(value.toPrecision(6)));
	const known = new Map();

	// `unit`: time (ns), bytes or number. Bytes are scaled by 1024 if the page says so.
	pperf.number = (value, unit) => {
		const key = unit + value;
		if (unit === 'number')
			return plain(value);
		if (!known.has(key))
			known.set(key, scaled(BigInt(Math.round(value)), SCALES[unit === 'bytes' && pperf.data.iec ? 'iec' : unit]));
		return known.get(key);
	};
	pperf.count = value => grouped(String(value));
	pperf.percent = (part, whole) => {
		if (!whole)
			return '0 %';
		const exact = Number.isInteger(part) && Number.isInteger(whole);
		const share = exact ? divided(size(BigInt(part)) * 1000n, size(BigInt(whole))) : BigInt(Math.round(Math.abs(part / whole) * 1000));
		const sign = part !== 0 && (part < 0) !== (whole < 0) ? '-' : '';
		return share === 1000n ? sign + '100 %' : sign + share / 10n + '.' + share % 10n + ' %';
	};
})();
