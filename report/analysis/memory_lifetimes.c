/* SPDX-License-Identifier: MIT
 *
 * Blocks that are freed add to the sums of their sites at once. Blocks that are held at the end are
 * those that are freed after it, and those that are still allocated when the pass is over.
 */
#include "report/analysis/memory_lifetimes.h"
#include "report/analysis/allocation_sites.h"
#include "report/base/alloc.h"
#include "report/base/compare.h"
#include "report/run/call_stack.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char lifetimes_key; /* of process_attach() */

/* What a site has freed so far, and who allocates there. */
struct site_life {
	struct lifetime_sum freed[MEMORY_ACROSS_MORE + 1], early;
	uint64_t across_max, replaced_bytes;
	uint32_t trace_node, last_trace_node, module, api;
	bool several_modules, of_allocator;
};

/* Blocks that are held at the end. `step`: 0 is before the first step. */
struct left_blocks {
	uint32_t path; /* first the site, then its path */
	uint64_t step;
	struct lifetime_sum sum;
};

struct lifetimes_reader {
	struct process *process;
	struct memory_lifetimes *made;
	struct late_steps late;
	uint64_t end_serial; /* of the last mark of the end */
	struct site_life *sites;
	size_t site_count, site_room;
	struct left_blocks *left;
	size_t left_count, left_room;
	struct lifetime_sum (*octaves)[LIFETIME_OCTAVES]; /* by level */
	size_t octave_room;
	/* The last allocation of device memory. If a tensor has its address, PyTorch's allocator
	 * made it. */
	uint64_t device_address;
	uint32_t device_site;
};

/* ---- steps ---- */

/* Returns 0 before the first step, else the number of the step from 1. */
static uint64_t step_at(const struct memory_lifetimes *made, uint64_t at_ns)
{
	size_t low = 0, high = made->count;

	if (at_ns < made->begin_ns)
		return 0;
	while (low < high) {
		const size_t middle = low + (high - low) / 2;

		if (made->ends[middle] < at_ns)
			low = middle + 1;
		else
			high = middle;
	}
	return low < made->count ? low + 1 : made->count;
}

static void set_step_ends(struct memory_lifetimes *made, const struct steps *steps)
{
	made->begin_ns = UINT64_MAX;
	for (size_t i = 0; i < steps->count; i++) {
		made->begin_ns = min_u64(made->begin_ns, steps->steps[i].begin_ns);
		made->ends[i] = min_u64(steps->steps[i].end_ns, made->end_ns);
	}
	qsort(made->ends, made->count, sizeof *made->ends, compare_u64);
}

static void divide_run(struct memory_lifetimes *made, uint64_t first_ns)
{
	const uint64_t whole_ns = made->end_ns > first_ns ? made->end_ns - first_ns : 0;

	for (size_t i = 0; i < made->count; i++)
		made->ends[i] = first_ns + whole_ns / made->count * (i + 1);
	made->ends[made->count - 1] = made->end_ns;
}

static struct memory_lifetimes *new_lifetimes(const struct process *process)
{
	const struct memory_owners *memory = process->profile->memory;
	struct memory_lifetimes *made = xcalloc(sizeof *made);

	made->has_steps = process->steps && process->steps->count;
	made->count = made->has_steps ? process->steps->count : LIFETIME_PARTS;
	made->ends = xcalloc(made->count * sizeof *made->ends);
	made->end_ns = memory->end_ns;
	made->is_partial = process->windows && process->windows->count > 1;
	if (made->has_steps)
		set_step_ends(made, process->steps);
	else
		divide_run(made, memory->first_ns);
	return made;
}

/* ---- the pass ---- */

static enum memory_lifetime freed_class(uint64_t across)
{
	return across > 2 ? MEMORY_ACROSS_MORE : (enum memory_lifetime)across;
}

static void add_block(struct lifetime_sum *sum, uint64_t bytes)
{
	sum->blocks++;
	sum->bytes += bytes;
}

static void add_left(
	struct lifetimes_reader *reader, uint32_t site, uint64_t since_ns, uint64_t bytes)
{
	*ARRAY_ADD(reader->left, reader->left_room, reader->left_count) = (struct left_blocks){
		site, step_at(reader->made, since_ns), { 1, bytes }
	};
}

static unsigned octave_of(uint64_t ns)
{
	return ns ? 63u - (unsigned)__builtin_clzll(ns) : 0;
}

static void add_freed(struct lifetimes_reader *reader, const struct observed_memory *memory)
{
	const struct memory_change *change = memory->change;
	const struct memory_lifetimes *made = reader->made;
	const uint64_t bytes = change->freed_bytes, from = step_at(made, change->freed_since_ns),
		       to = step_at(made, memory->at_ns), across = to - from,
		       half = reader->late.half + 1;
	struct site_life *site = &reader->sites[change->freed_site];
	const uint32_t level = memory->memory->sites[change->freed_site].level;

	if (from == 0 && to > 0)
		add_block(&site->early, bytes);
	else
		add_block(&site->freed[freed_class(across)], bytes);
	site->across_max = max_u64(site->across_max, from ? across : 0);
	/* A gradient or a batch that outlives the middle by a step or two replaces nothing. */
	if (from < half && to >= half && across > 2)
		site->replaced_bytes += bytes;
	if (made->has_steps)
		return;
	ARRAY_GROW(reader->octaves, reader->octave_room, (size_t)level + 1);
	add_block(
		&reader->octaves[level][octave_of(memory->at_ns - change->freed_since_ns)], bytes);
}

/* Returns the innermost module around a node of the trace; 0: none. */
static uint32_t module_around(struct trace_reader *reader, uint32_t node)
{
	while (node && reader_node(reader, node)->kind != TRACE_NODE_MODULE)
		node = reader_node(reader, node)->parent;
	return node;
}

/* Returns whether two modules have the same name in modules of the same names. A module has a node
 * in each step that is a range of the program. */
static bool is_same_module(struct trace_reader *reader, uint32_t one, uint32_t other)
{
	while (one != other) {
		const struct trace_node_info *left = reader_node(reader, one),
					     *right = reader_node(reader, other);

		if (!one || !other || left->name != right->name || left->detail != right->detail)
			return false;
		one = module_around(reader, left->parent);
		other = module_around(reader, right->parent);
	}
	return true;
}

static void note_owner(struct lifetimes_reader *reader, struct site_life *site,
	const struct observed_memory *memory)
{
	const bool first = !site->last_trace_node;
	uint32_t module;

	site->api = memory->api;
	if (!memory->trace_node || memory->trace_node == site->last_trace_node)
		return;
	site->last_trace_node = memory->trace_node;
	module = module_around(reader->process->reader, memory->trace_node);
	if (first) {
		site->trace_node = memory->trace_node;
		site->module = module;
	}
	site->several_modules |= !is_same_module(reader->process->reader, module, site->module);
}

static void note_allocator(struct lifetimes_reader *reader, const struct observed_memory *memory)
{
	const struct memory_change *change = memory->change;

	if (memory_is_device(change->kind)) {
		reader->device_address = memory->address;
		reader->device_site = change->site;
	} else if (change->kind == MEMORY_TENSOR && memory->address == reader->device_address &&
		   reader->device_site < reader->site_count) {
		reader->sites[reader->device_site].of_allocator = true;
	}
}

static void restart_lifetimes(void *context)
{
	struct lifetimes_reader *reader = context;

	if (reader->site_count)
		memset(reader->sites, 0, reader->site_count * sizeof *reader->sites);
	if (reader->octave_room)
		memset(reader->octaves, 0, reader->octave_room * sizeof *reader->octaves);
	reader->left_count = 0;
	reader->device_address = 0;
}

static void observe_lifetimes(void *context, const struct observed_memory *memory)
{
	struct lifetimes_reader *reader = context;
	const struct memory_change *change = memory->change;
	/* no mark of the end follows */
	const bool is_after_end = memory->memory->end_serial == reader->end_serial;

	if (memory->memory->site_count > reader->site_count) {
		ARRAY_GROW(reader->sites, reader->site_room, memory->memory->site_count);
		reader->site_count = memory->memory->site_count;
	}
	if (change->freed_bytes && !is_after_end)
		add_freed(reader, memory);
	else if (change->freed_bytes && change->freed_since_ns <= reader->made->end_ns)
		add_left(reader, change->freed_site, change->freed_since_ns, change->freed_bytes);
	if (!change->allocated_bytes || is_after_end)
		return;
	note_owner(reader, &reader->sites[change->site], memory);
	note_allocator(reader, memory);
}

static void visit_live(void *context, const struct live_allocation *allocation)
{
	struct lifetimes_reader *reader = context;

	if (allocation->since_ns <= reader->made->end_ns && allocation->bytes)
		add_left(reader, allocation->site, allocation->since_ns, allocation->bytes);
}

/* ---- call paths ---- */

/* Returns the text of the program's innermost line of Python in a stack; 0: there is none. */
static uint32_t python_line(struct process *process, uint32_t stack)
{
	const uint32_t own = stack && reader_python_stack(process->reader, stack)
				     ? call_stack_own_frame(process, stack, 0)
				     : 0;
	char line[512];
	size_t length;

	if (!stack || !reader_python_stack(process->reader, stack) ||
		own >= call_stack_frames(process, stack))
		return 0;
	length = call_stack_frame(process, stack, own, true, line, sizeof line);
	return string_table_intern(process->texts, line, length);
}

/* Returns the index of the path with the same identity as `key`, which is added if it is new. */
static uint32_t find_path(struct memory_lifetimes *made, size_t *room, struct hash_index *index,
	const uint32_t *path_nodes, const struct memory_path *key)
{
	const uint32_t place = path_nodes[key->node];
	const uint64_t hash = hash_u64(hash_u64((uint64_t)place << 32 | key->line) ^
				       ((uint64_t)key->device << 8 | key->kind));
	struct hash_slot *slot;

	hash_index_reserve(index);
	for (slot = hash_index_first(index, hash); slot->number;
		slot = hash_index_next(index, slot)) {
		const struct memory_path *path = &made->paths[slot->number - 1];

		if (path_nodes[path->node] == place && path->line == key->line &&
			path->kind == key->kind && path->device == key->device)
			return slot->number - 1;
	}
	*ARRAY_ADD(made->paths, *room, made->path_count) = *key;
	hash_index_add(index, slot, hash, (uint32_t)made->path_count);
	return (uint32_t)made->path_count - 1;
}

static void merge_site(struct trace_reader *reader, struct memory_path *path,
	const struct site_life *site, uint32_t node)
{
	for (int class = 0; class <= MEMORY_ACROSS_MORE; class ++) {
		path->lived[class].blocks += site->freed[class].blocks;
		path->lived[class].bytes += site->freed[class].bytes;
	}
	path->lived[MEMORY_ONCE].blocks += site->early.blocks;
	path->lived[MEMORY_ONCE].bytes += site->early.bytes;
	path->once_freed_bytes += site->early.bytes;
	path->across_max = max_u64(path->across_max, site->across_max);
	path->replaced_bytes += site->replaced_bytes;
	path->of_allocator |= site->of_allocator;
	path->omits_steps |= path->node != node;
	if (!path->trace_node)
		path->trace_node = site->trace_node;
	if (site->several_modules ||
		(site->trace_node && !is_same_module(reader, site->module, path->module)))
		path->module = 0;
}

/* Returns whether the site reserves device memory by cuMemCreate, as PyTorch's allocator does for
 * expandable segments. The handle is no address, so no tensor has it. */
static bool is_of_cached_allocator(
	const struct lifetimes_reader *reader, const struct memory_owners *memory, uint32_t site)
{
	const struct memory_level *level = &memory->levels[memory->sites[site].level];
	const struct trace_text api = reader_name(reader->process->reader, reader->sites[site].api);

	return memory_is_device(level->kind) && memory_owners_tensors(memory, level->device) &&
	       api.length == 11 && !memcmp(api.bytes, "cuMemCreate", 11);
}

static void merge_sites_to_paths(struct lifetimes_reader *reader, const struct profile *pass)
{
	struct memory_lifetimes *made = reader->made;
	uint32_t *path_nodes = nodes_by_call_path(reader->process->profile->tree);
	struct hash_index index = { .count = 0 };
	size_t room = 0;

	made->site_count = pass->memory->site_count;
	made->path_of_site = xcalloc((made->site_count + 1) * sizeof *made->path_of_site);
	ARRAY_GROW(reader->sites, reader->site_room, made->site_count + 1);
	for (uint32_t i = 0; i < made->site_count; i++) {
		const struct memory_site *site = &pass->memory->sites[i];
		const struct memory_path key = { .kind = pass->memory->levels[site->level].kind,
			.device = pass->memory->levels[site->level].device,
			.node = site->node,
			.stack = site->stack,
			.line = python_line(reader->process, site->stack),
			.trace_node = reader->sites[i].trace_node,
			.module = reader->sites[i].module,
			.api = reader->sites[i].api };

		reader->sites[i].of_allocator |= is_of_cached_allocator(reader, pass->memory, i);
		made->path_of_site[i] = find_path(made, &room, &index, path_nodes, &key);
		merge_site(reader->process->reader, &made->paths[made->path_of_site[i]],
			&reader->sites[i], site->node);
	}
	hash_index_free(&index);
	free(path_nodes);
}

/* ---- what is held at the end ---- */

COMPARE_BY_TWO(by_path_and_step, struct left_blocks, path, step)

/* Gives each path the site, and so the node and the stack, that left most. */
static void name_paths_by_largest(struct lifetimes_reader *reader, const struct profile *pass)
{
	struct memory_lifetimes *made = reader->made;
	uint64_t *of_site = xcalloc((made->site_count + 1) * sizeof *of_site),
		 *most = xcalloc((made->path_count + 1) * sizeof *most);

	for (size_t i = 0; i < reader->left_count; i++)
		of_site[reader->left[i].path] += reader->left[i].sum.bytes;
	for (uint32_t i = 0; i < made->site_count; i++) {
		struct memory_path *path = &made->paths[made->path_of_site[i]];

		if (of_site[i] <= most[made->path_of_site[i]])
			continue;
		most[made->path_of_site[i]] = of_site[i];
		path->node = pass->memory->sites[i].node;
		path->stack = pass->memory->sites[i].stack;
	}
	free(of_site);
	free(most);
}

/* Tests the growth of one path, and divides what it left into classes. `left`: sorted by step. */
static void finish_path(const struct lifetimes_reader *reader, struct memory_path *path,
	const struct left_blocks *left, size_t count, struct left_by_step *steps)
{
	const struct memory_lifetimes *made = reader->made;

	memset(steps, 0, made->count * sizeof *steps);
	for (size_t i = 0; i < count; i++) {
		if (!left[i].step)
			continue;
		steps[left[i].step - 1].bytes += left[i].sum.bytes;
		steps[left[i].step - 1].blocks += left[i].sum.blocks;
	}
	path->growth = memory_growth_test(steps, made->count, path->replaced_bytes);
	if (path->of_allocator)
		path->growth.grows = false;
	for (size_t i = 0; i < count; i++) {
		const enum memory_lifetime class = !left[i].step        ? MEMORY_ONCE
						   : path->growth.grows ? MEMORY_GROWING
						   : left[i].step <= reader->late.from
							   ? MEMORY_ONCE
							   : MEMORY_AT_END;

		path->lived[class].blocks += left[i].sum.blocks;
		path->lived[class].bytes += left[i].sum.bytes;
	}
}

static void finish_paths(struct lifetimes_reader *reader)
{
	struct memory_lifetimes *made = reader->made;
	struct left_by_step *steps = xcalloc((made->count + 1) * sizeof *steps);
	size_t at = 0, from;

	for (size_t i = 0; i < reader->left_count; i++)
		reader->left[i].path = made->path_of_site[reader->left[i].path];
	if (reader->left_count)
		qsort(reader->left, reader->left_count, sizeof *reader->left, by_path_and_step);
	for (uint32_t i = 0; i < made->path_count; i++) {
		for (from = at; at < reader->left_count && reader->left[at].path == i;)
			at++;
		/* a pass over all steps is not needed for a path that left nothing */
		if (at > from)
			finish_path(reader, &made->paths[i], reader->left + from, at - from, steps);
	}
	free(steps);
}

/* ---- kinds of memory ---- */

static struct memory_held *find_held(
	struct memory_lifetimes *made, size_t *room, uint32_t kind, uint32_t device)
{
	struct memory_held *held;

	for (size_t i = 0; i < made->held_count; i++)
		if (made->held[i].kind == kind && made->held[i].device == device)
			return &made->held[i];
	held = ARRAY_ADD(made->held, *room, made->held_count);
	held->kind = kind;
	held->device = device;
	return held;
}

/* Tests the growth of all paths of one kind of memory together. */
static void test_held(
	const struct lifetimes_reader *reader, struct memory_held *held, struct left_by_step *steps)
{
	const struct memory_lifetimes *made = reader->made;
	uint64_t replaced = 0;

	memset(steps, 0, made->count * sizeof *steps);
	for (size_t i = 0; i < made->path_count; i++)
		if (made->paths[i].kind == held->kind && made->paths[i].device == held->device &&
			!made->paths[i].of_allocator)
			replaced += made->paths[i].replaced_bytes;
	for (size_t i = 0; i < reader->left_count; i++) {
		const struct memory_path *path = &made->paths[reader->left[i].path];

		if (path->kind != held->kind || path->device != held->device ||
			path->of_allocator || !reader->left[i].step)
			continue;
		steps[reader->left[i].step - 1].bytes += reader->left[i].sum.bytes;
		steps[reader->left[i].step - 1].blocks += reader->left[i].sum.blocks;
	}
	held->growth = memory_growth_test(steps, made->count, replaced);
}

/* Orders tensors first, then by kind and device. */
static int by_kind(const void *a, const void *b)
{
	const struct memory_held *left = a, *right = b;

	if (left->kind != right->kind)
		return left->kind == MEMORY_TENSOR    ? -1
		       : right->kind == MEMORY_TENSOR ? 1
						      : COMPARE(left->kind, right->kind);
	return COMPARE(left->device, right->device);
}

static void finish_held(struct lifetimes_reader *reader, const struct profile *pass)
{
	struct memory_lifetimes *made = reader->made;
	struct left_by_step *steps = xcalloc((made->count + 1) * sizeof *steps);
	size_t room = 0;

	for (size_t i = 0; i < made->path_count; i++) {
		const struct memory_path *path = &made->paths[i];
		struct memory_held *held = find_held(made, &room, path->kind, path->device);

		for (int class = 0; class < MEMORY_LIFETIMES; class ++) {
			held->lived[class].blocks += path->lived[class].blocks;
			held->lived[class].bytes += path->lived[class].bytes;
		}
		held->once_freed_bytes += path->once_freed_bytes;
		held->across_max = max_u64(held->across_max, path->across_max);
	}
	for (uint32_t i = 0; i < pass->memory->level_count && i < reader->octave_room; i++)
		memcpy(find_held(made, &room, pass->memory->levels[i].kind,
			       pass->memory->levels[i].device)
				->octaves,
			reader->octaves[i], sizeof *reader->octaves);
	for (size_t i = 0; i < made->held_count; i++)
		test_held(reader, &made->held[i], steps);
	if (made->held_count)
		qsort(made->held, made->held_count, sizeof *made->held, by_kind);
	free(steps);
}

/* ---- the result ---- */

static void release_lifetimes(void *data)
{
	struct memory_lifetimes *made = data;

	free(made->paths);
	free(made->held);
	free(made->path_of_site);
	free(made->ends);
	free(made);
}

/* At the end of the pass. */
static void keep_lifetimes(void *context, const struct profile *pass)
{
	struct lifetimes_reader *reader = context;

	memory_owners_each_live(pass->memory, visit_live, reader);
	merge_sites_to_paths(reader, pass);
	name_paths_by_largest(reader, pass);
	finish_paths(reader);
	finish_held(reader, pass);
	process_attach(reader->process, &lifetimes_key, reader->made, release_lifetimes);
	free(reader->sites);
	free(reader->left);
	free(reader->octaves);
	free(reader);
}

static void release_nothing(void *data)
{
	(void)data;
}

void memory_lifetimes_read_in(struct shared_pass *pass)
{
	static struct memory_lifetimes none = { .count = 0 };
	struct process *process = pass->process;
	struct lifetimes_reader *reader;

	if (process_attached(process, &lifetimes_key))
		return;
	if (!process->profile->memory->level_count) {
		process_attach(process, &lifetimes_key, &none, release_nothing);
		return;
	}
	reader = xcalloc(sizeof *reader);
	reader->process = process;
	reader->made = new_lifetimes(process);
	reader->end_serial = process->profile->memory->end_serial;
	reader->late = late_steps_of(reader->made->count);
	shared_pass_add(pass,
		&(const struct profile_observer){ .context = reader,
			.restart = restart_lifetimes,
			.memory = observe_lifetimes },
		keep_lifetimes);
}

const struct memory_lifetimes *memory_lifetimes_of(struct process *process)
{
	struct shared_pass pass = { .process = process };

	memory_lifetimes_read_in(&pass);
	shared_pass_run(&pass);
	return process_attached(process, &lifetimes_key);
}

enum memory_lifetime memory_lifetimes_class(const struct memory_lifetimes *lifetimes, uint32_t site,
	uint64_t since_ns, uint64_t freed_ns, uint64_t *across)
{
	const uint64_t from = step_at(lifetimes, since_ns);

	*across = 0;
	if (freed_ns <= lifetimes->end_ns) {
		*across = step_at(lifetimes, freed_ns) - from;
		return !from && *across ? MEMORY_ONCE : freed_class(*across);
	}
	if (from && lifetimes->paths[lifetimes->path_of_site[site]].growth.grows)
		return MEMORY_GROWING;
	return from <= late_steps_of(lifetimes->count).from ? MEMORY_ONCE : MEMORY_AT_END;
}

struct lifetime_sum memory_held_total(const struct memory_held *held)
{
	struct lifetime_sum total = { .blocks = 0 };

	for (int class = 0; class < MEMORY_LIFETIMES; class ++) {
		total.blocks += held->lived[class].blocks;
		total.bytes += held->lived[class].bytes;
	}
	return total;
}

void memory_lifetime_name(
	enum memory_lifetime class, uint64_t across_max, bool has_steps, char *out, size_t room)
{
	static const char *const names[] = { "temporary", "across 1 step", "across 2 steps", "",
		"growing", "once", "at end" };
	static const char *const names_of_parts[] = { "temporary", "across 1 part",
		"across 2 parts", "", "growing", "once", "at end" };
	const char *what = has_steps ? "steps" : "parts";

	if (class != MEMORY_ACROSS_MORE)
		snprintf(out, room, "%s", has_steps ? names[class] : names_of_parts[class]);
	else if (across_max > 3)
		snprintf(out, room, "across 3 to %llu %s", (unsigned long long)across_max, what);
	else
		snprintf(out, room, "across 3 %s", what);
}
