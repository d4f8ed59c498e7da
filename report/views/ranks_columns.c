/* SPDX-License-Identifier: MIT */
#include "report/views/ranks_columns.h"
#include <string.h>

#define RANK_COLUMNS(X)                                                                           \
	X(wait_ns, "wait", UNIT_TIME, sums->matched, sums->wait_ns,                               \
		"sum of the waits in collectives: from the start of its own part to that of the " \
		"last rank's, "                                                                   \
		"up to its own end")                                                              \
	X(transfer_ns, "transfer", UNIT_TIME, sums->matched, sums->transfer_ns,                   \
		"the rest of its time in collectives")                                            \
	X(last, "last in", UNIT_COUNT, sums->matched, sums->last,                                 \
		"collectives in which it came last, by more than the clocks' residual")           \
	X(late_median_ns, "late by", UNIT_TIME, sums->last, sums->late_median_ns,                 \
		"median lateness where it was last: behind the rank before it")                   \
	X(gpu_exposed_communication_ns, "exposed", UNIT_TIME, gpu,                                \
		totals->gpu_exposed_communication_ns,                                             \
		"time in which its GPUs communicate and compute nothing")                         \
	X(gpu_busy_ns, "gpu busy", UNIT_TIME, gpu, totals->gpu_busy_ns, "busy time of its GPUs")  \
	X(wall_ns, "wall", UNIT_TIME, true, totals->wall_ns,                                      \
		"time from the start of its trace to the end")                                    \
	X(gpu_computation_ns, "compute", UNIT_TIME, gpu, totals->gpu_computation_ns,              \
		"time in which its GPUs run memsets, or kernels that are not communication")      \
	X(gpu_communication_ns, "communic.", UNIT_TIME, gpu, totals->gpu_communication_ns,        \
		"time in which its GPUs run communication kernels")                               \
	X(matched, "matched", UNIT_COUNT, true, sums->matched,                                    \
		"its collectives that match those of other ranks")                                \
	X(unmatched, "unmatched", UNIT_COUNT, true, sums->unmatched,                              \
		"its collectives without a match")                                                \
	X(unmatched_ns, "unmatched", UNIT_TIME, true, sums->unmatched_ns, "time in these")        \
	X(late_ns, "late total", UNIT_TIME, sums->matched, sums->late_ns,                         \
		"sum of its lateness where it was last")                                          \
	X(decided, "decided", UNIT_COUNT, true, sums->decided,                                    \
		"matched collectives in which one rank was last by more than the residual")       \
	X(pairs, "send/recv", UNIT_COUNT, true, rank->collectives.pairs,                          \
		"its sends and receives with unknown peers, which are not compared")              \
	X(untimed, "untimed", UNIT_COUNT, true, rank->collectives.untimed,                        \
		"its collectives without timestamps")                                             \
	X(residual_ns, "residual", UNIT_TIME, fit->pairs, fit->residual_ns,                       \
		"distance between the ends of collectives on the aligned clocks: median")         \
	X(residual_most_ns, "residual<=", UNIT_TIME, fit->pairs, fit->residual_max_ns,            \
		"distance between the ends of collectives on the aligned clocks: maximum")        \
	X(offset_ns, "offset", UNIT_TIME, fit->pairs, (uint64_t)fit->offset_ns,                   \
		"reference clock minus its own clock")

const struct rank_column rank_columns[] = {
#define X(key, title, unit, known, value, help) { #key, title, unit, help },
	RANK_COLUMNS(X)
#undef X
};

#define X(key, title, unit, known, value, help) +1
static_assert(RANK_COLUMN_COUNT == 0 RANK_COLUMNS(X), "the header's count");
#undef X

const char *rank_column_unknown(const struct rank_process *rank, size_t column)
{
	return !strcmp(rank_columns[column].key, "late_median_ns") && rank->sums.matched
		       ? "never"
		       : "unknown";
}

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
