/* SPDX-License-Identifier: MIT */
#include "report/analysis/ranks/rank_hang.h"
#include "report/analysis/ranks/rank_end.h"
#include "report/base/alloc.h"
#include <stdlib.h>

/* Returns how many collectives of the group the member requested, counted from instance 0. Returns
 * false if that is not known. */
static bool requested_by(
	const struct ranks *ranks, const struct rank_communicator *member, int64_t *requested)
{
	const struct rank_process *rank = &ranks->all[member->rank];
	const struct rank_input *input = rank->input;
	const uint64_t count =
		input->end ? input->end->requested[member->communicator]
			   : rank->collectives->communicators[member->communicator].count;

	*requested = (int64_t)count - member->shift;
	return input->status == RANK_INPUT_OK;
}

/* Returns the lowest number of requests; sets `most` to the highest one, and `running` if a process
 * with the highest one did not end. */
static int64_t lowest_request(const struct ranks *ranks, const struct collective_group *group,
	int64_t *most, bool *running)
{
	int64_t lowest = INT64_MAX, requested;

	*most = INT64_MIN;
	*running = false;
	for (size_t m = 0; m < group->count; m++) {
		if (!requested_by(ranks, &group->members[m], &requested))
			continue;
		if (requested > *most) {
			*most = requested;
			*running = false;
		}
		*running |= requested == *most && !ranks->all[group->members[m].rank].input->ended;
		lowest = requested < lowest ? requested : lowest;
	}
	return lowest;
}

static void examine_group(struct rank_hangs *hangs, const struct ranks *ranks, uint32_t index)
{
	const struct collective_group *group = &ranks->groups[index];
	struct rank_hang *hang;
	int64_t most, requested;
	bool running;
	const int64_t lowest = lowest_request(ranks, group, &most, &running);

	if (group->count < 2 || lowest >= most || !running)
		return;
	hang = ARRAY_ADD(hangs->all, hangs->room, hangs->count);
	*hang = (struct rank_hang){ .group = index,
		.instance = lowest,
		.number = (uint64_t)(lowest - group->begin) + 1,
		.waiting = xcalloc(group->count * sizeof *hang->waiting),
		.absent = xcalloc(group->count * sizeof *hang->absent) };
	for (size_t m = 0; m < group->count; m++) {
		const uint32_t rank = group->members[m].rank;

		if (!requested_by(ranks, &group->members[m], &requested))
			continue;
		if (requested > lowest) {
			hang->waiting[hang->waiting_count++] = rank;
			hangs->waits[rank] = true;
		} else {
			hang->absent[hang->absent_count++] = rank;
		}
	}
}

static int by_cause(const void *a, const void *b)
{
	const struct rank_hang *left = a, *right = b;

	if (left->is_cause != right->is_cause)
		return left->is_cause ? -1 : 1;
	if (left->waiting_count != right->waiting_count)
		return left->waiting_count > right->waiting_count ? -1 : 1;
	return (left->group > right->group) - (left->group < right->group);
}

static int64_t aligned_time(const struct ranks *ranks, uint32_t rank, uint64_t since_start_ns)
{
	return ranks_time(
		ranks, rank, (int64_t)(ranks->all[rank].process->start_unix_ns + since_start_ns));
}

uint64_t rank_hang_open_ns(const struct rank_hangs *hangs, const struct ranks *ranks, uint32_t rank,
	const struct end_thread *thread)
{
	const int64_t begin_ns = aligned_time(ranks, rank, thread->begin_ns),
		      own_end_ns = aligned_time(ranks, rank, ranks->all[rank].process->wall_ns),
		      end_ns = ranks->all[rank].aligned && hangs->latest_ns > own_end_ns
				       ? hangs->latest_ns
				       : own_end_ns;

	return end_ns > begin_ns ? (uint64_t)(end_ns - begin_ns) : 0;
}

static int64_t latest_event(const struct ranks *ranks)
{
	int64_t latest_ns = INT64_MIN;

	for (uint32_t i = 0; i < ranks->count; i++) {
		const int64_t end_ns = aligned_time(ranks, i, ranks->all[i].process->wall_ns);

		if (ranks->all[i].aligned && end_ns > latest_ns)
			latest_ns = end_ns;
	}
	return latest_ns;
}

void rank_hangs_find(struct rank_hangs *hangs, const struct ranks *ranks)
{
	bool running = false;

	*hangs = (struct rank_hangs){ .waits = xcalloc(ranks->count + 1),
		.latest_ns = latest_event(ranks) };
	for (size_t i = 0; i < ranks->count; i++)
		running |= !ranks->all[i].input->ended;
	for (uint32_t i = 0; i < ranks->group_count && running; i++)
		examine_group(hangs, ranks, i);
	for (size_t i = 0; i < hangs->count; i++)
		for (size_t k = 0; k < hangs->all[i].absent_count; k++)
			hangs->all[i].is_cause |= !hangs->waits[hangs->all[i].absent[k]];
	if (hangs->count)
		qsort(hangs->all, hangs->count, sizeof *hangs->all, by_cause);
}

void rank_hangs_free(struct rank_hangs *hangs)
{
	for (size_t i = 0; i < hangs->count; i++) {
		free(hangs->all[i].waiting);
		free(hangs->all[i].absent);
	}
	free(hangs->all);
	free(hangs->waits);
	*hangs = (struct rank_hangs){ .count = 0 };
}
