/* SPDX-License-Identifier: MIT
 *
 * Compares the collectives of a process that are equal: of one kernel and of one size. What one of
 * them takes longer than the fastest equal one is not transfer. It waited for other ranks, or the
 * network was shared with others.
 *
 * And it says how the time of one kind of collective depends on the size. A line through the times
 * divides them into a part that does not grow with the size (latency, or a wait that is the same
 * each time), and a part that does (transfer).
 *
 * Memory: 40 bytes for each collective whose size is known, and 16 for each in the line.
 */
#ifndef PPERF_REPORT_ANALYSIS_COLLECTIVE_RATES_H
#define PPERF_REPORT_ANALYSIS_COLLECTIVE_RATES_H

#include "report/analysis/activities.h"
#include "report/analysis/collective_sizes.h"

/* The line needs sizes that differ by this factor. Through two sizes there always is a line: of so
 * few it needs a larger one. */
#define COLLECTIVE_SIZES_FACTOR 2u
#define COLLECTIVE_SIZES_MIN 3u
#define COLLECTIVE_TWO_SIZES_FACTOR 16u
/* A collective that begins at most this long after another one ended waited for it: the stream of
 * communication is saturated there. */
#define COLLECTIVE_FOLLOWS_NS 100000u
/* Percent of the time: a part with more is most of it, and one with less than the rest is not worth
 * a judgement. */
#define COLLECTIVE_MOST 60u
#define COLLECTIVE_LITTLE 30u
/* Percent of the median time: where half of the times are further from the line, the size does not
 * decide the time. */
#define COLLECTIVE_SPREAD_MAX 25u
/* The latency of a collective is assumed to be at most this, for each other rank: a ring passes it
 * twice, and a hop through a fast network takes well below 30 us. And where the number of ranks is
 * not known. */
#define COLLECTIVE_LATENCY_RANK_NS 60000u
#define COLLECTIVE_LATENCY_NS 1000000u

/* What the times of collectives of different sizes consist of. */
enum collective_limit {
	LINE_NONE,     /* too few of them, or of one size */
	LINE_VARIES,   /* the times differ by something else than the size */
	LINE_LATENCY,  /* mostly a fixed part that may be latency */
	LINE_WAIT,     /* mostly a fixed part that is longer than latency may be */
	LINE_TRANSFER, /* mostly a part that grows with the size */
	LINE_BOTH,     /* neither part is most of the time */
	LINE_UNSURE,   /* a line through two sizes that are near each other: no judgement */
};

/* The collectives of one operation among one number of ranks; of unknown operations those of one
 * kernel. */
struct collective_line {
	enum collective_limit limit;
	enum sized_operation operation;
	uint32_t ranks; /* 0: not known */
	uint64_t count, sizes, min_bytes, max_bytes, ns;
	/* The part of `ns` that does not grow with the size, and that of one collective. */
	uint64_t fixed_ns, fixed_each_ns;
	uint64_t latency_max_ns; /* assumed */
	double bytes_per_s;      /* of the part that grows; 0: it does not grow */
};

struct collective_rates {
	/* Of all collectives whose size is known: bytes of one rank, and the sum of their GPU
	 * time. */
	uint64_t count, bytes, ns;
	/* Time of collectives beyond that of the fastest equal one. */
	uint64_t excess_ns;
	/* The collective with most time beyond the fastest equal one. 0: none has an equal one. */
	uint64_t slowest_ns, fastest_ns, slowest_bytes;
	/* The collectives with the largest messages: their number, and how many of them begin when
	 * another collective of the GPU ends (COLLECTIVE_FOLLOWS_NS), or while it runs. */
	uint64_t largest_bytes, largest, largest_following;
	struct collective_line line; /* of those with the most time */
};

/* Lists the collectives. The visitor receives the activities of a process. */
struct collective_list;

struct collective_list *collective_list_new(void);
struct activity_visitor collective_list_visitor(struct collective_list *list);
void collective_list_free(struct collective_list *list); /* `list` may be NULL */
/* Compares the listed collectives. Sorts the list. */
struct collective_rates collective_rates_of(struct collective_list *list);

#endif
