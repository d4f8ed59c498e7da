/* SPDX-License-Identifier: MIT
 * Collects the durations of a node's instances and returns their percentiles.
 *
 * They are exact up to PERCENTILES_EXACT_MAX values. More values go into a histogram of 64 steps
 * per octave. A percentile is then the middle of its step, which is at most 0.8 % off. A
 * percentile is the value at rank ceil(p * count) ("nearest rank").
 *
 * An exact value takes 4 bytes, or 8 once one value of the node exceeds 32 bits. A histogram
 * takes 1 KiB, and 256 bytes for each octave in use. The exact values of all nodes with more than
 * PERCENTILES_SMALL_BYTES of them take at most PERCENTILES_BYTES_MAX. Beyond that, a node that
 * needs more room moves its values to a temporary file, which all nodes share. Threads: one.
 */
#ifndef PPERF_REPORT_STATS_PERCENTILES_H
#define PPERF_REPORT_STATS_PERCENTILES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PERCENTILES_EXACT_MAX 4096u
#define PERCENTILES_BYTES_MAX (12u << 20)
/* Arrays of this many bytes are not counted: a histogram would take no less. */
#define PERCENTILES_SMALL_BYTES 256u
/* Values that are collected before they go into a histogram, to visit its memory less often. */
#define PERCENTILES_PENDING_MAX 64u
#define PERCENTILES_OCTAVES 59 /* the first has the values below 64, one step each */

struct histogram {
	/* 64 counters each, which saturate at UINT32_MAX; NULL: no values */
	uint32_t *octaves[PERCENTILES_OCTAVES];
};

enum percentiles_form {
	PERCENTILES_VALUES,   /* `values` has all values */
	PERCENTILES_SPILLED,  /* `values` has those that are not in the temporary file */
	PERCENTILES_HISTOGRAM /* `values` has those that are not yet in the histogram */
};

struct percentiles {
	/* `used` values, with room for `room`. In the order of arrival until percentiles_get
	 * sorts them. */
	union {
		uint32_t *narrow;
		uint64_t *wide;
	} values;
	union {
		struct spilled_values *spilled;
		struct histogram *histogram;
	} rest; /* by form */
	uint16_t used, room;
	bool is_wide;
	uint8_t form; /* enum percentiles_form */
};

/* The memory of all exact values. */
struct percentiles_budget {
	size_t bytes;
	uint64_t spills; /* times that values were moved to the file for lack of memory */
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

/* Adds all values of `from`. */
void percentiles_merge(struct percentiles *samples, const struct percentiles *from,
	struct percentiles_budget *budget);

/* Returns the value at `per_mille` / 1000, or 0 if there are no values. */
uint64_t percentiles_get(struct percentiles *samples, unsigned per_mille);
/* Calls `add` with each bucket of the histogram of 64 steps per octave that has values, ascending.
 * Bucket B has the values below 64 that are B, or those from (64 + B % 64) << (B / 64 - 1) on. */
void percentiles_buckets(struct percentiles *samples,
	void (*add)(void *context, unsigned bucket, uint64_t count), void *context);
bool percentiles_are_exact(const struct percentiles *samples);
struct value_writer;
struct value_reader;
/* Writes the values, and reads them into empty percentiles. Exact ones stay exact. */
void percentiles_write(struct percentiles *samples, struct value_writer *writer);
void percentiles_read(struct percentiles *samples, struct value_reader *reader,
	struct percentiles_budget *budget);
void percentiles_free(struct percentiles *samples);

#endif
