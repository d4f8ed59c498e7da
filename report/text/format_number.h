/* SPDX-License-Identifier: MIT
 * Formats numbers for people. Results are computed from exact integers and rounded half to even.
 * Nothing depends on a locale.
 */
#ifndef PPERF_REPORT_TEXT_FORMAT_NUMBER_H
#define PPERF_REPORT_TEXT_FORMAT_NUMBER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Bytes of each `out` below: enough for any formatted number and its terminator. */
#define FORMAT_NUMBER_BYTES 64

enum unit {
	UNIT_COUNT,
	UNIT_ID,   /* of a process, thread, stream ...; printed without separators */
	UNIT_TIME, /* ns */
	UNIT_BYTES,
	UNIT_PERCENT, /* a share, 0 to 1 */
	UNIT_RATIO,
	UNIT_FLOPS,
	UNIT_FLOP_RATE, /* per second */
	UNIT_BYTE_RATE, /* per second */
	UNIT_TEXT,      /* not a number */
	UNIT_USER,      /* of a counter of the program; printed unchanged */
};

/* A unit for output, of `divisor` base units. */
struct scale {
	uint64_t divisor;
	const char *name; /* "ms", "GB"; "us" instead of "µs" if `ascii` is set */
};

/* Returns the largest unit that does not exceed `largest` (an absolute value). `iec`: bytes are
 * scaled to KiB, MiB and so on. */
struct scale scale_for(enum unit unit, uint64_t largest, bool iec, bool ascii);

/* Returns the integer part of `value`, clamped to the range of uint64_t. NaN becomes 0. For
 * quotients and products of figures in a file, which may be anything. */
uint64_t clamp_to_u64(long double value);

/* Returns the integer part of `value`, clamped to the range of int64_t. NaN becomes 0. */
int64_t clamp_to_i64(long double value);

/* Sums and differences of figures in a file, clamped to the range of int64_t. */
static inline int64_t saturating_add(int64_t a, int64_t b)
{
	int64_t sum;

	return __builtin_add_overflow(a, b, &sum) ? (a < 0 ? INT64_MIN : INT64_MAX) : sum;
}
static inline int64_t saturating_subtract(int64_t a, int64_t b)
{
	int64_t difference;

	return __builtin_sub_overflow(a, b, &difference) ? (a < 0 ? INT64_MIN : INT64_MAX)
							 : difference;
}

/* Writes value / divisor with `decimals` decimals (at most 9). Returns the length. */
size_t format_fixed(char *out, int64_t value, uint64_t divisor, unsigned decimals);
size_t format_unsigned(char *out, uint64_t value, uint64_t divisor, unsigned decimals);
/* Writes a real number with `decimals` decimals. Returns the length. */
size_t format_real(char *out, long double value, unsigned decimals);

/* Writes part / whole as `64.2 %` or `100 %`. If `whole` is 0, writes `0 %`. */
size_t format_percent(char *out, int64_t part, int64_t whole);

/* Writes `value` in the best unit: `12.31 ms`, `532 ns`, `8.78 GB`. Counts get commas: `1,234`. */
size_t format_with_unit(char *out, enum unit unit, int64_t value, bool iec, bool ascii);

#endif
