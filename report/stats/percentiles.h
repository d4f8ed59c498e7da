/* SPDX-License-Identifier: MIT
 * samples.h: the durations of a node's instances, for their percentiles. Exact up to SAMPLES_EXACT values; from then
 * on a histogram of 64 steps an octave: a percentile is then the middle of its step, at most 0.8 % off. A percentile
 * is the value at rank ceil(p * count) ("nearest rank").
 *
 * Memory: 4 bytes a value while exact (8 once one does not fit 32 bits), later 1 KiB and 256 bytes for each octave in
 * which there is a value. The exact values of all nodes together take at most SAMPLES_BYTES: beyond that a node that
 * needs more room turns into a histogram early, and another pass over the trace must make it exact again
 * (fold_refine).
 */
#ifndef PPERF_REPORT_STATS_PERCENTILES_H
#define PPERF_REPORT_STATS_PERCENTILES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PERCENTILES_EXACT_MAX 4096u
#define PERCENTILES_BYTES_MAX (12u << 20)
#define PERCENTILES_PENDING_MAX \
	64u /* values gathered before they are put into a histogram: one visit of its memory for many */
#define PERCENTILES_OCTAVES 59 /* the first holds the values below 64, each its own step */

struct histogram {
	uint32_t *octaves[PERCENTILES_OCTAVES]; /* 64 counts each, full at UINT32_MAX; NULL: none */
};

struct percentiles {
	union {
		uint32_t *narrow;
		uint64_t *wide;
	} values; /* in the order of arrival until a percentile is asked for; `room` of them fit, `used` are there */
	struct histogram *
		histogram; /* NULL: `values` are all; else those of them that are still to be put into it */
	uint16_t used, room;
	bool is_wide, is_disabled; /* off: nothing is kept */
};

/* What all exact values take. */
struct percentiles_budget {
	size_t bytes;
	uint64_t early; /* nodes that became a histogram for want of room */
};

void percentiles_add_slow(
	struct percentiles *samples, uint64_t value, struct percentiles_budget *budget);

static inline void percentiles_add(
	struct percentiles *samples, uint64_t value, struct percentiles_budget *budget)
{
	if (__builtin_expect(
		    samples->used < samples->room && value <= UINT32_MAX && !samples->is_wide, 1))
		samples->values.narrow[samples->used++] = (uint32_t)value;
	else
		percentiles_add_slow(samples, value, budget);
}

/* All of `from` too. */
void percentiles_merge(struct percentiles *samples, const struct percentiles *from,
	struct percentiles_budget *budget);

/* The value at `per_mille` thousandths; 0 if there are none. */
uint64_t percentiles_get(struct percentiles *samples, unsigned per_mille);
bool percentiles_are_exact(const struct percentiles *samples);
void percentiles_free(struct percentiles *samples);

#endif
