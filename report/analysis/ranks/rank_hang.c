/* SPDX-License-Identifier: MIT */
#include "report/analysis/ranks/rank_hang.h"
#include "report/analysis/ranks/rank_end.h"
#include "report/base/alloc.h"
#include "report/base/compare.h"
#include <stdlib.h>
#include <string.h>

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

struct rank_hang *rank_hangs_add(struct rank_hangs *hangs, struct trace_text name, uint64_t number)
{
	struct rank_hang *hang = ARRAY_ADD(hangs->all, hangs->room, hangs->count);

	*hang = (struct rank_hang){ .number = number, .from = UINT32_MAX, .to = UINT32_MAX };
	if (name.known) {
		hang->communicator = xcalloc((size_t)name.length + 1);
		memcpy(hang->communicator, name.bytes, name.length);
	}
	return hang;
}

void rank_hang_add_waiting(struct rank_hangs *hangs, struct rank_hang *hang, uint32_t rank)
{
	*ARRAY_ADD(hang->waiting, hang->waiting_room, hang->waiting_count) = rank;
	hangs->waits[rank] = true;
}

void rank_hang_add_absent(struct rank_hang *hang, const struct ranks *ranks, uint32_t rank)
{
	*ARRAY_ADD(hang->absent, hang->absent_room, hang->absent_count) = (struct absent_rank){
		ranks->all[rank].number, rank, ranks->all[rank].input
	};
}

static bool has_key(const struct ranks *ranks, const struct collective_group *group)
{
	const struct rank_communicator *first = &group->members[0];

	return ranks->all[first->rank].collectives->communicators[first->communicator].key != 0;
}

static void examine_group(struct rank_hangs *hangs, const struct ranks *ranks, uint32_t index)
{
	const struct collective_group *group = &ranks->groups[index];
	struct rank_hang *hang;
	int64_t most, requested;
	bool running;
	const int64_t lowest = lowest_request(ranks, group, &most, &running);

	if (group->count < 2 || has_key(ranks, group) || lowest >= most || !running)
		return;
	hang = rank_hangs_add(
		hangs, ranks_group_name(ranks, index), (uint64_t)(lowest - group->begin) + 1);
	for (size_t m = 0; m < group->count; m++) {
		const uint32_t rank = group->members[m].rank;

		if (!requested_by(ranks, &group->members[m], &requested))
			continue;
		if (requested > lowest)
			rank_hang_add_waiting(hangs, hang, rank);
		else
			rank_hang_add_absent(hang, ranks, rank);
	}
}

static int by_cause(const void *a, const void *b)
{
	const struct rank_hang *left = a, *right = b;

	if (left->is_cause != right->is_cause)
		return left->is_cause ? -1 : 1;
	if (left->waiting_count != right->waiting_count)
		return left->waiting_count > right->waiting_count ? -1 : 1;
	if (left->waiting_count && left->waiting[0] != right->waiting[0])
		return left->waiting[0] < right->waiting[0] ? -1 : 1;
	return strcmp(left->communicator ? left->communicator : "",
		right->communicator ? right->communicator : "");
}

static int64_t aligned_time(const struct ranks *ranks, uint32_t rank, uint64_t since_start_ns)
{
	return ranks_time(
		ranks, rank, (int64_t)(ranks->all[rank].process->start_unix_ns + since_start_ns));
}

bool rank_hang_waits_elsewhere(const struct rank_hangs *hangs, const struct absent_rank *absent)
{
	return absent->rank != UINT32_MAX && hangs->waits[absent->rank];
}

uint64_t rank_hang_open_ns(const struct rank_hangs *hangs, const struct ranks *ranks,
	const struct absent_rank *absent, uint64_t begin_ns)
{
	const uint64_t own_ns = absent->input->process.wall_ns > begin_ns
					? absent->input->process.wall_ns - begin_ns
					: 0;
	int64_t open_ns;

	if (absent->rank == UINT32_MAX || !ranks->all[absent->rank].aligned)
		return own_ns;
	open_ns = hangs->latest_ns - aligned_time(ranks, absent->rank, begin_ns);
	return open_ns > 0 ? max_u64((uint64_t)open_ns, own_ns) : own_ns;
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
	if (running)
		rank_hangs_find_by_requests(hangs, ranks);
	for (size_t i = 0; i < hangs->count; i++)
		for (size_t k = 0; k < hangs->all[i].absent_count; k++)
			hangs->all[i].is_cause |= !rank_hang_waits_elsewhere(
				hangs, &hangs->all[i].absent[k]);
	if (hangs->count)
		qsort(hangs->all, hangs->count, sizeof *hangs->all, by_cause);
}

void rank_hangs_free(struct rank_hangs *hangs)
{
	for (size_t i = 0; i < hangs->count; i++) {
		free(hangs->all[i].communicator);
		free(hangs->all[i].waiting);
		free(hangs->all[i].absent);
	}
	free(hangs->all);
	free(hangs->waits);
	*hangs = (struct rank_hangs){ .count = 0 };
}
