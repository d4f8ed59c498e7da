/* SPDX-License-Identifier: MIT */
#include "report/analysis/memory_waste.h"
#include "report/analysis/allocation_sites.h"
#include "report/base/alloc.h"
#include "report/base/compare.h"
#include <stdlib.h>
#include <string.h>

static const char waste_key; /* of process_attach() */

#define KEPT_PARTS 4u /* a segment is kept by tensors that occupy less than 1 / KEPT_PARTS of it */

/* One size of the tensors of one call path. */
struct path_size {
	uint64_t bytes;
	uint32_t path;
};

struct waste_pass {
	struct process *process;
	struct memory_waste *waste;
	struct memory_segments *map;
	struct memory_moment end; /* taken at the end */
	/* By node, of allocation_sites.h. NULL: sizes are by node until the tree is whole. */
	uint32_t *paths;
	uint32_t device; /* UINT32_MAX: not known yet */
	struct path_size *sizes;
	size_t size_count, size_room;
	struct hash_index size_index;
};

/* ---- moments of the run ---- */

static uint64_t time_at(const struct memory_waste *waste, uint64_t part, uint64_t of)
{
	return waste->first_ns + (waste->end_ns - waste->first_ns) / of * part;
}

static bool counts_steps(const struct steps *steps)
{
	return steps && !steps_overlap(steps) && steps->count >= WASTE_STEPS_MIN;
}

/* `memory_end_ns`: as of memory_moments.h, or where the profile is not made yet, what is expected
 * of it. */
static void set_moments(
	struct memory_waste *waste, const struct process *process, uint64_t memory_end_ns)
{
	const struct profile *profile = process->profile;
	const struct steps *steps = process->steps;
	const uint64_t wall_ns = profile->is_new ? UINT64_MAX : profile->totals.wall_ns;

	waste->first_ns = profile->memory->first_ns;
	waste->end_ns = max_u64(waste->first_ns, min_u64(memory_end_ns, wall_ns));
	if (!counts_steps(steps)) {
		waste->warm_ns = time_at(waste, 1, 10);
		waste->early_ns = time_at(waste, 1, 5);
		waste->recent_ns = time_at(waste, 3, 4);
		return;
	}
	waste->warm_ns = steps->steps[0].end_ns;
	waste->early_ns = steps->steps[steps->count / 5].end_ns;
	waste->recent_ns = steps->steps[steps->count * 3 / 4].begin_ns;
}

/* ---- the pass ---- */

/* Adds the size of a tensor to those of its call path. */
static void add_size(struct waste_pass *pass, uint32_t node, uint64_t bytes)
{
	const uint32_t path = pass->paths && pass->paths[node] ? pass->paths[node] : node;
	const uint64_t hash = hash_u64(hash_u64(path) ^ bytes);
	struct hash_slot *slot;

	if (pass->size_count >= WASTE_SIZES_MAX)
		return;
	hash_index_reserve(&pass->size_index);
	for (slot = hash_index_first(&pass->size_index, hash); slot->number;
		slot = hash_index_next(&pass->size_index, slot))
		if (pass->sizes[slot->number - 1].path == path &&
			pass->sizes[slot->number - 1].bytes == bytes)
			return;
	*ARRAY_ADD(
		pass->sizes, pass->size_room, pass->size_count) = (struct path_size){ bytes, path };
	hash_index_add(&pass->size_index, slot, hash, (uint32_t)pass->size_count);
}

static void note_levels(struct waste_pass *pass, uint64_t at_ns)
{
	const struct memory_device *device = memory_segments_device(pass->map, pass->device);
	struct memory_waste *waste = pass->waste;

	if (!device || at_ns > waste->end_ns)
		return;
	if (at_ns <= waste->early_ns) {
		waste->early_reserved = max_u64(waste->early_reserved, device->held);
		waste->early_tensors = max_u64(waste->early_tensors, device->tensors);
	} else {
		waste->late_reserved = max_u64(waste->late_reserved, device->held);
		waste->late_tensors = max_u64(waste->late_tensors, device->tensors);
	}
}

/* Takes the snapshot of the end before the first event that comes after it. */
static void take_end_before(struct waste_pass *pass, uint64_t at_ns)
{
	if (!pass->end.taken && pass->end.at_ns < at_ns)
		memory_moment_take(&pass->end, pass->map, true);
}

/* Finds the device as the profile does: that of the first tensor, or of the first device
 * memory. */
static void find_device(struct waste_pass *pass, const struct observed_memory *seen)
{
	const struct memory_change *change = seen->change;

	if (seen->event->kind == TRACE_TENSOR)
		pass->device = ((const struct trace_tensor *)seen->event->record)->device;
	else if (change->allocated_bytes && memory_is_device(change->kind))
		pass->device = change->device;
	pass->end.device = pass->device;
}

static void observe_change(void *context, const struct observed_memory *seen)
{
	struct waste_pass *pass = context;
	const struct memory_change *change = seen->change;

	if (pass->device == UINT32_MAX)
		find_device(pass, seen);
	take_end_before(pass, seen->event->time_ns);
	memory_segments_change(pass->map, seen);
	note_levels(pass, seen->event->time_ns);
	if (change->kind == MEMORY_TENSOR && change->device == pass->device &&
		change->allocated_bytes >= WASTE_SIZE_MIN)
		add_size(pass, change->node, change->allocated_bytes);
}

static void add_free_parts(void *context, const struct segment_parts *parts)
{
	struct refused_request *refused = context;

	refused->free_inside += parts->in_gaps;
	refused->gaps += parts->gaps;
	refused->largest_gap = max_u64(refused->largest_gap, parts->largest_gap);
	refused->empty += parts->has_blocks_known && !parts->blocks ? parts->in_gaps : 0;
}

/* Checks what was free when a request failed. */
static void check_refusal(struct waste_pass *pass, uint64_t at_ns, uint64_t requested)
{
	struct refused_request refused = { .at_ns = at_ns, .requested = requested };
	const struct segment_visitor visitor = { .context = &refused, .segment = add_free_parts };

	memory_segments_visit(pass->map, pass->device, &visitor);
	if (!requested || refused.free_inside < requested || refused.largest_gap >= requested ||
		refused.empty >= requested)
		return;
	pass->waste->refused = refused;
	pass->waste->refusals++;
}

static void observe_waste_mapping(void *context, const struct observed_mapping *seen)
{
	struct waste_pass *pass = context;

	take_end_before(pass, seen->event->time_ns);
	memory_segments_map(pass->map, seen);
}

static void observe_mark(void *context, const struct trace_event *event)
{
	struct waste_pass *pass = context;

	take_end_before(pass, event->time_ns);
	memory_segments_mark(pass->map, event);
	if (event->kind == TRACE_TENSOR_OOM) {
		const struct trace_tensor *record = event->record;

		if (record->device == pass->device && record->bytes > 0)
			check_refusal(pass, event->time_ns, (uint64_t)record->bytes);
	} else if (event->kind == TRACE_ALLOC) {
		const struct trace_memory *record = event->record;

		if (record->call.device == pass->device && memory_is_device(record->memory_kind) &&
			memory_ran_out(record))
			check_refusal(pass, event->time_ns, record->bytes);
	}
}

static void restart_waste(void *context)
{
	struct waste_pass *pass = context;
	struct memory_waste *waste = pass->waste;

	memory_segments_restart(pass->map);
	hash_index_free(&pass->size_index);
	pass->size_count = 0;
	pass->device = pass->process->profile->totals.level_device;
	memory_moment_free(&pass->end);
	pass->end = (struct memory_moment){
		.kind = MOMENT_END, .at_ns = pass->end.at_ns, .device = pass->device
	};
	waste->refusals = 0;
	waste->early_reserved = waste->early_tensors = 0;
	waste->late_reserved = waste->late_tensors = 0;
}

COMPARE_BY_TWO(by_path_and_bytes, struct path_size, path, bytes)

/* Sorts the sizes, and leaves out those that a path has of several nodes. */
static void sort_sizes(struct waste_pass *pass)
{
	size_t kept = 0;

	if (pass->size_count)
		qsort(pass->sizes, pass->size_count, sizeof *pass->sizes, by_path_and_bytes);
	for (size_t i = 0; i < pass->size_count; i++)
		if (!kept || by_path_and_bytes(&pass->sizes[kept - 1], &pass->sizes[i]))
			pass->sizes[kept++] = pass->sizes[i];
	pass->size_count = kept;
}

static void find_changing_sizes(struct waste_pass *pass)
{
	struct changing_sizes *most = &pass->waste->changing;

	sort_sizes(pass);
	for (size_t i = 0, from = 0; i < pass->size_count; i++) {
		const struct path_size *first = &pass->sizes[from], *last = &pass->sizes[i];

		if (i + 1 < pass->size_count && last[1].path == last->path)
			continue;
		/* Of two paths with as many sizes, the one with larger tensors. */
		if (i + 1 - from > most->sizes ||
			(i + 1 - from == most->sizes && last->bytes > most->largest))
			*most = (struct changing_sizes){ last->path, i + 1 - from, first->bytes,
				last->bytes };
		from = i + 1;
	}
}

/* ---- segments at the end ---- */

/* What one call path has of wasted segments. */
struct path_waste {
	uint32_t path, node, stack;
	uint64_t bytes, since_ns;
};

struct waste_list {
	struct path_waste *parts;
	size_t count, room;
};

COMPARE_BY_TWO(by_waste_path, struct path_waste, path, since_ns)

/* Returns the innermost node that both nodes are in. A child has a higher number than its
 * parent. */
static uint32_t common_node(const struct tree *tree, uint32_t one, uint32_t other)
{
	while (one != other)
		if (one > other)
			one = tree->nodes[one].parent;
		else
			other = tree->nodes[other].parent;
	return one;
}

static uint32_t range_around_all(const struct tree *tree, const struct waste_list *list)
{
	uint32_t node = list->count ? list->parts[0].node : 0;

	for (size_t i = 1; i < list->count; i++)
		node = common_node(tree, node, list->parts[i].node);
	while (node && tree->nodes[node].kind != NODE_RANGE &&
		tree->nodes[node].kind != NODE_MODULE)
		node = tree->nodes[node].parent;
	return node;
}

/* Sets the call path with most bytes, and the range around all. */
static void set_owner(
	struct wasted_segments *wasted, const struct tree *tree, struct waste_list *list)
{
	uint64_t bytes = 0;

	wasted->range = range_around_all(tree, list);

	if (list->count)
		qsort(list->parts, list->count, sizeof *list->parts, by_waste_path);
	for (size_t i = 0, from = 0; i < list->count; i++) {
		bytes += list->parts[i].bytes;
		if (i + 1 < list->count && list->parts[i + 1].path == list->parts[i].path)
			continue;
		if (bytes > wasted->path_bytes) {
			wasted->path_bytes = bytes;
			wasted->path_count = i + 1 - from;
			wasted->node = list->parts[from].node;
			wasted->stack = list->parts[from].stack;
			wasted->since_ns = list->parts[from].since_ns;
		}
		bytes = 0;
		from = i + 1;
	}
	free(list->parts);
}

static void add_part(struct waste_list *list, const uint32_t *paths, uint32_t node, uint32_t stack,
	uint64_t bytes, uint64_t since_ns)
{
	*ARRAY_ADD(list->parts, list->room, list->count) = (struct path_waste){
		paths[node] ? paths[node] : node, node, stack, bytes, since_ns
	};
}

/* Returns the largest tensor of a segment if all of them are small and old enough to keep it, else
 * NULL. A tensor that was allocated together with the segment did not settle in another's. */
static const struct memory_block *keeper_of(
	const struct memory_waste *waste, const struct moment_segment *segment)
{
	const struct memory_block *blocks = &waste->end->blocks[segment->first_block],
				  *largest = blocks;

	if (!segment->block_count || !segment->has_blocks_known ||
		segment->in_blocks > segment->segment.bytes / KEPT_PARTS ||
		segment->segment.half_ns >= waste->recent_ns)
		return NULL;
	for (size_t i = 0; i < segment->block_count; i++) {
		if (blocks[i].since_ns >= waste->recent_ns ||
			blocks[i].serial == segment->segment.serial + 1)
			return NULL;
		largest = blocks[i].bytes > largest->bytes ? &blocks[i] : largest;
	}
	return largest;
}

static bool is_idle(const struct memory_waste *waste, const struct moment_segment *segment)
{
	return segment->has_blocks_known && !segment->block_count &&
	       segment->segment.since_ns > waste->warm_ns &&
	       segment->segment.emptied_ns < waste->recent_ns;
}

static void read_end(struct memory_waste *waste, struct process *process, const uint32_t *paths)
{
	struct waste_list kept = { .count = 0 }, idle = { .count = 0 };

	for (size_t i = 0; waste->end && i < waste->end->segment_count; i++) {
		const struct moment_segment *segment = &waste->end->segments[i];
		const struct memory_block *keeper = keeper_of(waste, segment);

		if (keeper) {
			waste->kept.count++;
			waste->kept.bytes += segment->in_gaps;
			waste->kept.holding += segment->in_blocks;
			add_part(&kept, paths, keeper->node, keeper->stack, segment->in_gaps,
				keeper->since_ns);
		} else if (is_idle(waste, segment)) {
			waste->idle.count++;
			waste->idle.bytes += segment->in_gaps;
			add_part(&idle, paths, segment->segment.node, segment->segment.stack,
				segment->in_gaps, segment->segment.since_ns);
		}
	}
	set_owner(&waste->kept, process->profile->tree, &kept);
	set_owner(&waste->idle, process->profile->tree, &idle);
}

static void release_waste(void *data)
{
	struct memory_waste *waste = data;

	memory_moments_free(&waste->moments);
	free(waste);
}

/* Keeps the snapshot of the end if the device has memory. */
static void keep_end(struct waste_pass *pass)
{
	const struct options options = { .device = pass->device };
	struct memory_waste *waste = pass->waste;

	memory_moments_add(&waste->moments, &options, pass->process, "end", 3);
	if (!waste->moments.count)
		return;
	pass->end.device = pass->device;
	if (!pass->end.taken) {
		if (pass->end.at_ns == UINT64_MAX)
			pass->end.at_ns = pass->process->wall_ns;
		memory_moment_take(&pass->end, pass->map, true);
	}
	pass->end.has_tensors = waste->moments.moments[0].has_tensors;
	waste->moments.moments[0] = pass->end;
	pass->end = (struct memory_moment){ .kind = MOMENT_END };
	waste->end = &waste->moments.moments[0];
}

/* Makes sizes of nodes those of their call paths. */
static void merge_sizes(struct waste_pass *pass)
{
	pass->paths = nodes_by_call_path(pass->process->profile->tree);
	for (size_t i = 0; i < pass->size_count; i++)
		if (pass->paths[pass->sizes[i].path])
			pass->sizes[i].path = pass->paths[pass->sizes[i].path];
}

/* Returns true if the profile is as was expected of it before the pass. */
static bool is_as_expected(const struct waste_pass *pass)
{
	const struct memory_waste *waste = pass->waste;
	struct memory_waste known = { .end = NULL };

	set_moments(&known, pass->process, memory_end_ns(pass->process));
	return pass->end.at_ns == memory_end_ns(pass->process) && known.end_ns == waste->end_ns &&
	       known.early_ns == waste->early_ns &&
	       pass->device == pass->process->profile->totals.level_device &&
	       (pass->paths || pass->size_count < WASTE_SIZES_MAX);
}

static void free_waste_pass(struct waste_pass *pass)
{
	memory_moment_free(&pass->end);
	memory_segments_free(pass->map);
	hash_index_free(&pass->size_index);
	free(pass->sizes);
	free(pass->paths);
	free(pass);
}

/* At the end of the pass. */
static void keep_waste(void *context, const struct profile *profile)
{
	struct waste_pass *pass = context;
	struct memory_waste *waste = pass->waste;

	(void)profile;
	if (pass->device == UINT32_MAX || !is_as_expected(pass)) {
		free(waste);
		free_waste_pass(pass);
		return;
	}
	set_moments(waste, pass->process, memory_end_ns(pass->process));
	if (!pass->paths)
		merge_sizes(pass);
	find_changing_sizes(pass);
	keep_end(pass);
	read_end(waste, pass->process, pass->paths);
	process_attach(pass->process, &waste_key, waste, release_waste);
	free_waste_pass(pass);
}

static void add_waste_pass(struct shared_pass *shared, uint64_t memory_end_ns, uint32_t *paths)
{
	struct process *process = shared->process;
	struct waste_pass *pass = xcalloc_cache_aligned(sizeof *pass);

	*pass = (struct waste_pass){ .process = process,
		.waste = xcalloc_cache_aligned(sizeof *pass->waste),
		.map = memory_segments_new(),
		.end.at_ns = memory_end_ns,
		.paths = paths };
	set_moments(pass->waste, process, memory_end_ns);
	shared_pass_add(shared,
		&(const struct profile_observer){ .context = pass,
			.restart = restart_waste,
			.memory = observe_change,
			.memory_may_be_later = true,
			.mapping = observe_waste_mapping,
			.memory_mark = observe_mark },
		keep_waste);
}

void memory_waste_read_in(struct shared_pass *shared)
{
	struct process *process = shared->process;

	if (process->profile->totals.level_device == UINT32_MAX ||
		process_attached(process, &waste_key))
		return;
	add_waste_pass(shared, memory_end_ns(process), nodes_by_call_path(process->profile->tree));
}

void memory_waste_try_in(struct shared_pass *shared)
{
	const uint64_t steps_end_ns = profile_steps_end_ns(shared->process->steps);

	if (steps_end_ns != UINT64_MAX && counts_steps(shared->process->steps))
		add_waste_pass(shared, steps_end_ns, NULL);
}

const struct memory_waste *memory_waste_of(struct process *process)
{
	struct shared_pass pass = { .process = process };

	memory_waste_read_in(&pass);
	shared_pass_run(&pass);
	return process->profile->totals.level_device == UINT32_MAX
		       ? NULL
		       : process_attached(process, &waste_key);
}
