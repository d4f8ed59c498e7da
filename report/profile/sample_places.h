/* SPDX-License-Identifier: MIT
 *
 * Adds up samples by where they were taken, in the ids of the trace. What the ids stand for is
 * looked up once for each place (report/analysis/sample_cells.h), not for each sample.
 *
 * A thread that is in an operator reads its Python frames itself when the operator ends. That
 * record comes after the samples for which it holds, so samples in ranges wait for it:
 * SAMPLES_PENDING of each thread at most.
 *
 * Memory follows the number of different stacks, not of samples: 52 bytes for each, and 32 during
 * the pass.
 */
#ifndef PPERF_REPORT_PROFILE_SAMPLE_PLACES_H
#define PPERF_REPORT_PROFILE_SAMPLE_PLACES_H

#include "report/profile/call_tree.h"
#include "report/trace/trace_reader.h"

#define SAMPLES_PENDING 4096u

/* Where a sample was taken. */
struct sample_place {
	uint64_t pc;             /* of the innermost instruction; 0: not known */
	uint32_t native, python; /* ids of frames of the trace; 0: none */
	uint32_t node;           /* of the process's tree; never 0 if a sample counts */
	uint32_t thread;         /* index in profile.sampled_threads */
	uint16_t flags;          /* enum trace_sample_flag, without HAS_NODE */
	uint16_t state;          /* enum trace_sample_state */
	uint32_t is_named;       /* 1: of CPU_SAMPLE, whose function and module are in `pc` */
};

/* The samples of a place. */
struct placed_samples {
	struct sample_place place;
	uint64_t samples, ns; /* ns: the time that they stand for */
};

/* Receives each sample that counts: the index of its place and when it was taken. Samples in ranges
 * come late, so they are not in the order of their times. */
struct sample_visitor {
	void (*visit)(void *context, uint32_t place, uint64_t ns, uint64_t at_ns);
	void *context;
};

struct sample_places {
	/* In the order in which they were seen. Two passes over a trace make the same ones. Those
	 * where no sample counts in the end are among them. */
	struct placed_samples *all;
	size_t count, room;
	uint32_t *counted; /* indices of those where samples count, by when the first one did */
	size_t counted_count, counted_room;
	struct hash_index index;              /* private, as the rest */
	const struct sample_visitor *visitor; /* NULL: none */
	struct pending_samples *pending;      /* by thread */
	size_t pending_count, pending_room;
	uint32_t *depths; /* by id of a frame: its callers and itself; 0: not counted so far */
	uint32_t python;  /* of the last SAMPLE_PYTHON */
};

struct sample_places *sample_places_new(const struct sample_visitor *visitor);
void sample_places_free(struct sample_places *places); /* NULL is allowed */

/* Adds a sample that counts. `node`: the one that owns it. `waits`: in a range, so that a
 * SAMPLE_PYTHON may follow. */
void sample_places_add(struct sample_places *places, const struct trace_event *event, uint32_t node,
	uint32_t thread, bool waits);
/* Gives samples of a thread the Python frames of a SAMPLE_PYTHON. */
void sample_places_set_python(struct sample_places *places, struct trace_reader *reader,
	const struct trace_sample_python *record, uint32_t thread);
/* Counts the samples that still wait. Nothing may be added afterwards. */
void sample_places_finish(struct sample_places *places);

/* Returns the function and the module of a place that is named: name ids. */
static inline uint32_t sample_place_function(const struct sample_place *place)
{
	return (uint32_t)(place->pc >> 32);
}
static inline uint32_t sample_place_module(const struct sample_place *place)
{
	return (uint32_t)place->pc;
}
/* Returns what the samples of the place add up to. */
static inline struct sample_sums sample_sums_of(uint32_t state, uint64_t samples, uint64_t ns)
{
	const bool waits = state == TRACE_SAMPLE_WAITS_FOR_CORE,
		   blocked = state == TRACE_SAMPLE_BLOCKED, used = !waits && !blocked;

	return (struct sample_sums){ .samples = used ? samples : 0,
		.cpu_ns = used ? ns : 0,
		.waits_ns = waits ? ns : 0,
		.blocked_ns = blocked ? ns : 0 };
}
static inline struct sample_sums placed_sums(const struct placed_samples *placed)
{
	return sample_sums_of(placed->place.state, placed->samples, placed->ns);
}

#endif
