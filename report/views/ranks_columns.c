/* SPDX-License-Identifier: MIT
 * rank_columns.c: see rank_columns.h.
 */
#include "report/views/ranks_columns.h"

#define RANK_COLUMNS(X)                                                                           \
	X(wait_ns, "wait", UNIT_TIME, sums->matched, sums->wait_ns,                               \
		"from where its own part of a collective begins to where the last rank's does, "  \
		"at most to its own end; all together")                                           \
	X(transfer_ns, "transfer", UNIT_TIME, sums->matched, sums->transfer_ns,                   \
		"the rest of its time in collectives")                                            \
	X(last, "last in", UNIT_COUNT, sums->matched, sums->last,                                 \
		"collectives in which it came last, by more than the clocks' residual")           \
	X(late_median_ns, "late by", UNIT_TIME, sums->last, sums->late_median_ns,                 \
		"where it was last: by how much after the one before it, in the median")          \
	X(gpu_exposed_communication_ns, "exposed", UNIT_TIME, gpu,                                \
		totals->gpu_exposed_communication_ns, "its GPUs communicate and compute nothing") \
	X(gpu_busy_ns, "gpu busy", UNIT_TIME, gpu, totals->gpu_busy_ns,                           \
		"its GPUs have something to do")                                                  \
	X(wall_ns, "wall", UNIT_TIME, true, totals->wall_ns, "from its trace's begin to its end") \
	X(gpu_computation_ns, "compute", UNIT_TIME, gpu, totals->gpu_computation_ns,              \
		"its GPUs run kernels that are not communication, or sets")                       \
	X(gpu_communication_ns, "communic.", UNIT_TIME, gpu, totals->gpu_communication_ns,        \
		"its GPUs run kernels of NCCL or RCCL")                                           \
	X(matched, "matched", UNIT_COUNT, true, sums->matched,                                    \
		"its collectives that match those of other ranks")                                \
	X(unmatched, "unmatched", UNIT_COUNT, true, sums->unmatched,                              \
		"its collectives that match nothing")                                             \
	X(unmatched_ns, "unmatched", UNIT_TIME, true, sums->unmatched_ns, "time in these")        \
	X(late_ns, "late, all", UNIT_TIME, sums->matched, sums->late_ns,                          \
		"where it was last: by how much, altogether")                                     \
	X(decided, "decided", UNIT_COUNT, true, sums->decided,                                    \
		"matched ones in which somebody was last by more than the residual")              \
	X(pairs, "send/recv", UNIT_COUNT, true, rank->collectives.pairs,                          \
		"its sends and receives of nobody knows whom, which are not compared")            \
	X(untimed, "untimed", UNIT_COUNT, true, rank->collectives.untimed,                        \
		"its collectives without times")                                                  \
	X(residual_ns, "residual", UNIT_TIME, fit->moments, fit->residual_ns,                     \
		"how far ends of collectives are apart on the aligned clocks, in the median")     \
	X(residual_most_ns, "residual<=", UNIT_TIME, fit->moments, fit->residual_max_ns,          \
		"the same of the worst")                                                          \
	X(offset_ns, "offset", UNIT_TIME, fit->moments, (uint64_t)fit->offset_ns,                 \
		"the clock that it is laid over, less its own")

const struct rank_column rank_columns[] = {
#define X(key, title, unit, known, value, help) { #key, title, unit, help },
	RANK_COLUMNS(X)
#undef X
};

#define X(key, title, unit, known, value, help) +1
static_assert(RANK_COLUMN_COUNT == 0 RANK_COLUMNS(X), "the header's count");
#undef X

bool rank_column_value(const struct rank_process *rank, size_t column, int64_t *value)
{
	const struct rank_sums *sums = &rank->sums;
	const struct profile_totals *totals = &rank->process->profile->totals;
	const struct theil_sen_fit *fit = &rank->fit;
	const bool gpu = rank->process->profile->timeline != NULL;
	size_t at = 0;

#define X(key, title, unit, known, what, help) \
	if (column == at++) {                  \
		*value = (int64_t)(what);      \
		return (known);                \
	}
	RANK_COLUMNS(X)
#undef X
	return false;
}
