/* SPDX-License-Identifier: MIT */
#include "report/analysis/stayed_segments.h"
#include "report/analysis/memory_segments.h"
#include "report/base/compare.h"

struct stayed_pass {
	struct memory_segments *map;
	const struct instance *root;
	struct stayed_segments stayed;
	uint64_t first_ns, last_ns; /* first allocated, last emptied */
};

static void observe_change(void *context, const struct observed_memory *seen)
{
	memory_segments_change(((struct stayed_pass *)context)->map, seen);
}

static void observe_map(void *context, const struct observed_mapping *seen)
{
	memory_segments_map(((struct stayed_pass *)context)->map, seen);
}

static void observe_mark(void *context, const struct trace_event *event)
{
	memory_segments_mark(((struct stayed_pass *)context)->map, event);
}

static void restart_stayed(void *context)
{
	memory_segments_restart(((struct stayed_pass *)context)->map);
}

static void check_segment(void *context, const struct segment_parts *parts)
{
	struct stayed_pass *pass = context;
	struct stayed_segments *stayed = &pass->stayed;
	const struct memory_segment *segment = parts->segment;

	if (segment->since_ns < pass->root->begin_ns || segment->since_ns > pass->root->end_ns)
		return;
	if (!parts->has_blocks_known) {
		stayed->unknown++;
		stayed->unknown_bytes += segment->bytes;
	} else if (parts->blocks || segment->emptied_ns > pass->root->end_ns) {
		stayed->used_later++;
		stayed->used_later_bytes += segment->bytes;
	} else {
		pass->first_ns = stayed->count ? min_u64(pass->first_ns, segment->since_ns)
					       : segment->since_ns;
		pass->last_ns = max_u64(pass->last_ns, segment->emptied_ns);
		stayed->count++;
		stayed->bytes += segment->bytes;
		stayed->tensors += segment->occupied_most;
	}
}

/* Returns the innermost instance of `kind` from `root` down that is open from first_ns to last_ns.
 * NULL: there is none. */
static const struct instance *innermost_around(
	const struct stayed_pass *pass, const struct tree *tree, enum node_kind kind)
{
	const struct instance *found = NULL, *at = pass->root;

	while (at) {
		if (tree->nodes[at->node].kind == kind && at->form == INSTANCE_ONE)
			found = at;
		at = at->children;
		while (at && (at->form != INSTANCE_ONE || at->begin_ns > pass->first_ns ||
				     at->end_ns < pass->last_ns))
			at = at->next;
	}
	return found;
}

static void find_range(struct stayed_pass *pass, const struct tree *tree)
{
	pass->stayed.range = innermost_around(pass, tree, NODE_RANGE);
	if (!pass->stayed.range)
		pass->stayed.range = innermost_around(pass, tree, NODE_MODULE);
	if (!pass->stayed.range)
		pass->stayed.range = pass->root;
}

struct stayed_segments stayed_segments_find(struct process *process, const struct instance *root)
{
	struct stayed_pass pass = { .map = memory_segments_new(), .root = root };
	const struct profile_observer observer = { .context = &pass,
		.restart = restart_stayed,
		.memory = observe_change,
		.mapping = observe_map,
		.memory_mark = observe_mark };
	const struct profile_options options = profile_options_for_observer(
		process->profile, &observer);
	const struct segment_visitor visitor = { .context = &pass, .segment = check_segment };

	profile_free(profile_build(process->reader, process->texts, &options));
	memory_segments_visit(pass.map, process->profile->totals.level_device, &visitor);
	memory_segments_free(pass.map);
	find_range(&pass, process->critical->tree);
	return pass.stayed;
}
