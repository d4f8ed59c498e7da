/* SPDX-License-Identifier: MIT
 * A group in the log: of each edge, how far its point is before the one that it leads to; then how
 * far the group's point is after that of the group before it, with the number of edges in the two
 * lowest bits. Most groups are of one edge, from the point with the number before.
 */
#include "report/analysis/critical_path/edge_groups.h"

#include "report/base/alloc.h"
#include "report/base/number_log.h"

#include <stdlib.h>

/* The two lowest bits. */
enum group_kind {
	GROUP_FROM_BEFORE, /* one edge, from the point with the number before: it is not stored */
	GROUP_OF_ONE,
	GROUP_OF_TWO,
	GROUP_OF_MORE, /* the number of edges is stored, too */
};

struct edge_groups {
	struct number_log *log;
	struct edge_group open; /* the group that is added; no edges: none yet */
	uint32_t last_to;       /* the point of the last group in the log */
};

struct edge_groups *edge_groups_new(void)
{
	struct edge_groups *groups = xcalloc(sizeof *groups);

	groups->log = number_log_new("dependencies");
	return groups;
}

void edge_group_free(struct edge_group *group)
{
	free(group->from);
	*group = (struct edge_group){ .from = NULL };
}

void edge_groups_free(struct edge_groups *groups)
{
	if (!groups)
		return;
	number_log_free(groups->log);
	edge_group_free(&groups->open);
	free(groups);
}

static enum group_kind kind_of_group(const struct edge_group *group)
{
	if (group->count == 1)
		return group->to - group->from[0] == 1 ? GROUP_FROM_BEFORE : GROUP_OF_ONE;
	return group->count == 2 ? GROUP_OF_TWO : GROUP_OF_MORE;
}

static void write_open_group(struct edge_groups *groups)
{
	struct edge_group *open = &groups->open;
	const enum group_kind kind = kind_of_group(open);

	if (!open->count)
		return;
	for (size_t i = 0; i < open->count && kind != GROUP_FROM_BEFORE; i++)
		number_log_add(
			groups->log, number_of_difference((int64_t)open->to - open->from[i]));
	if (kind == GROUP_OF_MORE)
		number_log_add(groups->log, open->count);
	number_log_add(
		groups->log, number_of_difference((int64_t)open->to - groups->last_to) << 2 | kind);
	groups->last_to = open->to;
	open->count = 0;
}

void edge_groups_add(struct edge_groups *groups, uint32_t from, uint32_t to, uint64_t at_ns)
{
	struct edge_group *open = &groups->open;

	if (open->to != to)
		write_open_group(groups);
	open->to = to;
	*ARRAY_ADD(open->from, open->room, open->count) = from;
	if (open->count > 1 && at_ns <= open->latest_ns)
		return;
	open->latest_ns = at_ns;
	open->from[open->count - 1] = open->from[0];
	open->from[0] = from;
}

struct edge_group edge_groups_last(struct edge_groups *groups)
{
	write_open_group(groups);
	number_log_rewind(groups->log, false);
	return (struct edge_group){ .next_to = groups->last_to };
}

bool edge_groups_back(struct edge_groups *groups, struct edge_group *group)
{
	struct number_log *log = groups->log;
	enum group_kind kind;
	uint64_t code;

	if (!number_log_left(log))
		return false;
	code = number_log_back(log);
	kind = code & 3;
	group->to = group->next_to;
	group->next_to = (uint32_t)(group->to - (uint64_t)difference_of_number(code >> 2));
	group->count = kind == GROUP_OF_MORE ? number_log_back(log) : kind == GROUP_OF_TWO ? 2 : 1;
	ARRAY_GROW(group->from, group->room, group->count);
	if (kind == GROUP_FROM_BEFORE) {
		group->from[0] = group->to - 1;
		return true;
	}
	for (size_t i = group->count; i-- > 0;)
		group->from[i] = (uint32_t)(group->to -
					    (uint64_t)difference_of_number(number_log_back(log)));
	return true;
}
