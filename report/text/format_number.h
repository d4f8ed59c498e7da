/* SPDX-License-Identifier: MIT
 * number.h: figures as people read them, computed from exact integers and rounded half to even. Nothing here depends
 * on a locale.
 */
#ifndef PPERF_REPORT_TEXT_FORMAT_NUMBER_H
#define PPERF_REPORT_TEXT_FORMAT_NUMBER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define FORMAT_NUMBER_BYTES \
	64 /* room for any number written here, terminated: what every `out` below must have */

enum unit {
	UNIT_COUNT,
	UNIT_TIME, /* ns */
	UNIT_BYTES,
	UNIT_PERCENT, /* a share, 0 to 1 */
	UNIT_RATIO,
	UNIT_FLOPS,
	UNIT_FLOP_RATE, /* a second */
	UNIT_BYTE_RATE, /* a second */
	UNIT_TEXT,      /* not a figure */
	UNIT_USER,      /* of a program's own counter: as it is */
};

/* A unit to show figures in: `divisor` of the base unit. */
struct scale {
	uint64_t divisor;
	const char *name; /* "ms", "GB"; "us" rather than "µs" where `ascii` was asked for */
};

/* The largest unit that is not larger than `largest` (an absolute value). iec: KiB, MiB ... for bytes. */
struct scale scale_for(enum unit unit, uint64_t largest, bool iec, bool ascii);

/* The whole part, of a figure that may be anything, as quotients and products of what a file says: 0 below 0 and of what is
 * no number, UINT64_MAX where it is larger than that. */
uint64_t clamp_to_u64(long double value);

/* The same of a figure that may be below 0. */
int64_t clamp_to_i64(long double value);

/* Sums and differences of levels that a file says: the nearest there is. */
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

/* value / divisor with so many decimals (at most 9). Returns the length. */
size_t format_fixed(char *out, int64_t value, uint64_t divisor, unsigned decimals);
size_t format_unsigned(char *out, uint64_t value, uint64_t divisor, unsigned decimals);
/* The same of a figure that is no integer. */
size_t format_real(char *out, long double value, unsigned decimals);

/* part / whole as `64.2 %`, `100 %`. A whole of 0 is 0 %. */
size_t format_percent(char *out, int64_t part, int64_t whole);

/* With its own unit: `12.31 ms`, `532 ns`, `8.78 GB`; counts with commas: `1,234`. */
size_t format_with_unit(char *out, enum unit unit, int64_t value, bool iec, bool ascii);

#endif
