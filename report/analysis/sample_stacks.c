/* SPDX-License-Identifier: MIT
 *
 * The stack of two innermost frames, native and Python, is that of two frames further out and a
 * frame or two more. So it is made from theirs. About one in KEPT_OF is kept for those that come
 * later: looking up the frames from there on costs less than keeping all.
 */
#include "report/analysis/sample_stacks.h"
#include "report/base/alloc.h"
#include <stdlib.h>

#define KEPT_OF 8u

/* A native frame and a Python frame that were innermost together, 0: none, and their stack. */
struct known_stack {
	uint32_t native, python, stack;
};

struct stack_maker {
	struct sample_cells *cells;
	struct sample_stacks *stacks;
	enum sample_frames which;
	struct hash_index index; /* of the frames of stacks */
	struct known_stack *known;
	size_t known_count, known_room;
	struct hash_index known_index;
	struct known_stack *path; /* what is to be made next, the innermost first */
	size_t path_room;
	bool has_deeper; /* frames were left out */
};

static bool is_same_frame(const struct stack_frame *a, const struct stack_frame *b)
{
	return a->caller == b->caller && a->frame.function == b->frame.function &&
	       a->frame.line == b->frame.line;
}

/* Returns the number of a frame that `caller` called. What pperf's own Python code called is shown
 * as one frame with it. */
static uint32_t add_frame(struct stack_maker *maker, uint32_t caller, struct sample_frame frame)
{
	struct sample_stacks *stacks = maker->stacks;
	const struct stack_frame wanted = { caller, stacks->all[caller].depth + 1, frame };
	const uint64_t hash = hash_u64(
		hash_u64((uint64_t)caller << 32 | frame.function) ^ frame.line);
	struct hash_slot *slot;

	if (sample_function_is_pperf(&maker->cells->functions, stacks->all[caller].frame.function))
		return caller;
	hash_index_reserve(&maker->index);
	for (slot = hash_index_first(&maker->index, hash); slot->number;
		slot = hash_index_next(&maker->index, slot))
		if (is_same_frame(&stacks->all[slot->number], &wanted))
			return slot->number;
	array_grow(&stacks->all, &stacks->room, stacks->count + 1, sizeof *stacks->all);
	stacks->all[stacks->count++] = wanted;
	hash_index_add(&maker->index, slot, hash, (uint32_t)stacks->count - 1);
	return (uint32_t)stacks->count - 1;
}

/* ---- what is known ---- */

static uint64_t hash_of_two(uint32_t native, uint32_t python)
{
	return hash_u64((uint64_t)native << 32 | python);
}

static bool is_kept(uint32_t native, uint32_t python)
{
	return (native ^ python) % KEPT_OF == 0;
}

/* Returns the number of the entry of the two frames, or 0. */
static uint32_t find_known(const struct stack_maker *maker, uint32_t native, uint32_t python)
{
	struct hash_slot *slot;

	if (!is_kept(native, python))
		return 0;
	slot = hash_index_first(&maker->known_index, hash_of_two(native, python));
	while (slot->number && (maker->known[slot->number - 1].native != native ||
				       maker->known[slot->number - 1].python != python))
		slot = hash_index_next(&maker->known_index, slot);
	return slot->number;
}

static void keep_known(struct stack_maker *maker, const struct known_stack *known)
{
	const uint64_t hash = hash_of_two(known->native, known->python);
	struct hash_slot *slot;

	if (!is_kept(known->native, known->python))
		return;
	hash_index_reserve(&maker->known_index);
	slot = hash_index_first(&maker->known_index, hash);
	while (slot->number)
		slot = hash_index_next(&maker->known_index, slot);
	*ARRAY_ADD(maker->known, maker->known_room, maker->known_count) = *known;
	hash_index_add(&maker->known_index, slot, hash, (uint32_t)maker->known_count);
}

/* ---- stacks of two frames ---- */

static const struct known_frame *frame_of(const struct stack_maker *maker, uint32_t number)
{
	return &maker->cells->functions.frames[number];
}

/* What a stack adds to another one. */
struct stack_step {
	uint32_t native, python; /* the innermost frames of the other one */
	bool adds_native, adds_python;
};

/* Returns how the stack of two frames is made. Where they fit together, a native frame that runs
 * Python code is above its Python frames. Where not, the Python frames alone are above the native
 * ones that the last such frame called. */
static struct stack_step step_of(const struct stack_maker *maker, uint32_t native, uint32_t python)
{
	const struct known_frame *inner = frame_of(maker, native),
				 *script = frame_of(maker, python);

	if (!native)
		return (struct stack_step){ 0, script->parent, false, true };
	if (!python || inner->eval != native)
		return (struct stack_step){ inner->parent, python, true, false };
	if (inner->evals != script->entries)
		return (struct stack_step){ 0, python, false, false };
	if (script->entry != python)
		return (struct stack_step){ native, script->parent, false, true };
	return (struct stack_step){ inner->parent, script->parent, true, true };
}

static bool is_shown(const struct stack_maker *maker, uint32_t native)
{
	const struct known_frame *frame = frame_of(maker, native);

	return maker->which != SAMPLE_FRAMES_MERGED ||
	       !maker->cells->functions.all[frame->frame.function].is_interpreter;
}

static uint32_t add_inner(
	struct stack_maker *maker, uint32_t stack, const struct known_stack *inner)
{
	const struct stack_step step = step_of(maker, inner->native, inner->python);

	if (step.adds_native && is_shown(maker, inner->native))
		stack = add_frame(maker, stack, frame_of(maker, inner->native)->frame);
	if (step.adds_python)
		stack = add_frame(maker, stack, frame_of(maker, inner->python)->frame);
	return stack;
}

/* Returns the stack of two frames; 0: it is empty. It may be too deep for recursion. */
static uint32_t stack_of(struct stack_maker *maker, uint32_t native, uint32_t python)
{
	size_t count = 0;
	uint32_t stack = 0;

	while (native || python) {
		const uint32_t known = find_known(maker, native, python);
		struct stack_step step;

		if (known) {
			stack = maker->known[known - 1].stack;
			break;
		}
		*ARRAY_ADD(maker->path, maker->path_room,
			count) = (struct known_stack){ .native = native, .python = python };
		step = step_of(maker, native, python);
		native = step.native;
		python = step.python;
	}
	while (count) {
		struct known_stack *inner = &maker->path[--count];

		inner->stack = stack = add_inner(maker, stack, inner);
		keep_known(maker, inner);
	}
	return stack;
}

/* ---- stacks of cells ---- */

/* Returns the stack of native frames without Python frames: the interpreter's own only with
 * SAMPLE_FRAMES_ALL, or if the thread was in it. */
static uint32_t native_stack(struct stack_maker *maker, uint32_t native)
{
	const struct known_frame *frame = frame_of(maker, native);

	return native ? add_frame(maker, stack_of(maker, frame->parent, 0), frame->frame) : 0;
}

static uint32_t add_state(struct stack_maker *maker, uint32_t stack, const struct sample_cell *cell)
{
	struct sample_functions *functions = &maker->cells->functions;
	const char *name = cell->state == TRACE_SAMPLE_KERNEL           ? "(kernel)"
			   : cell->state == TRACE_SAMPLE_WAITS_FOR_CORE ? "(waits for a core)"
			   : cell->state == TRACE_SAMPLE_BLOCKED        ? "(blocked)"
			   : stack                                      ? NULL
									: "(no frames)";

	return name ? add_frame(maker, stack,
			      (struct sample_frame){
				      .function = sample_function_state(functions, name) })
		    : stack;
}

/* Keeps the outermost frames and the innermost one. */
static uint32_t limit_depth(struct stack_maker *maker, uint32_t stack)
{
	const struct sample_stacks *stacks = maker->stacks;
	const struct sample_frame innermost = stacks->all[stack].frame;

	if (stacks->all[stack].depth <= SAMPLE_STACK_MAX)
		return stack;
	maker->has_deeper = true;
	stack = stack_frame_at(stacks, stack, SAMPLE_STACK_MAX - 2);
	stack = add_frame(maker, stack,
		(struct sample_frame){
			.function = sample_function_state(&maker->cells->functions, "(deeper)") });
	return add_frame(maker, stack, innermost);
}

static uint32_t stack_of_cell(struct stack_maker *maker, const struct sample_cell *cell)
{
	const uint32_t native = maker->which == SAMPLE_FRAMES_PYTHON ? 0 : cell->innermost,
		       python = maker->which == SAMPLE_FRAMES_NATIVE ? 0 : cell->python;
	const uint32_t stack = python ? stack_of(maker, native, python)
				      : native_stack(maker, native);

	return limit_depth(maker, add_state(maker, stack, cell));
}

/* Removes the frames that no stack has, since they were too deep. */
static void remove_unused(struct stack_maker *maker)
{
	struct sample_stacks *stacks = maker->stacks;
	const struct sample_stacks all = *stacks;
	uint32_t *number_of = xcalloc(all.count * sizeof *number_of), path[SAMPLE_STACK_MAX];

	stacks->all = xcalloc(all.count * sizeof *stacks->all);
	stacks->count = 1;
	for (size_t i = 0; i < maker->cells->count; i++) {
		uint32_t count = 0;

		for (uint32_t at = all.of_cell[i]; at && !number_of[at]; at = all.all[at].caller)
			path[count++] = at;
		while (count) {
			const uint32_t at = path[--count];

			number_of[at] = (uint32_t)stacks->count;
			stacks->all[stacks->count] = all.all[at];
			stacks->all[stacks->count++].caller = number_of[all.all[at].caller];
		}
		stacks->of_cell[i] = number_of[all.of_cell[i]];
	}
	free(number_of);
	free(all.all);
}

static void release_stacks(void *data)
{
	struct sample_stacks *stacks = data;

	free(stacks->all);
	free(stacks->of_cell);
	free(stacks);
}

static struct sample_stacks *make_stacks(struct sample_cells *cells, enum sample_frames which)
{
	struct sample_stacks *stacks = xcalloc(sizeof *stacks);
	struct stack_maker maker = { .cells = cells, .stacks = stacks, .which = which };

	ARRAY_ADD(stacks->all, stacks->room, stacks->count);
	hash_index_reserve(&maker.known_index);
	stacks->of_cell = xcalloc((cells->count + 1) * sizeof *stacks->of_cell);
	for (size_t i = 0; i < cells->count; i++)
		stacks->of_cell[i] = stack_of_cell(&maker, &cells->cells[i]);
	if (maker.has_deeper)
		remove_unused(&maker);
	hash_index_free(&maker.index);
	hash_index_free(&maker.known_index);
	free(maker.known);
	free(maker.path);
	return stacks;
}

const struct sample_stacks *sample_stacks_of(struct sample_cells *cells, enum sample_frames which)
{
	static const char keys[SAMPLE_FRAMES_KINDS];
	struct sample_stacks *stacks = process_attached(cells->process, &keys[which]);

	if (stacks)
		return stacks;
	stacks = make_stacks(cells, which);
	process_attach(cells->process, &keys[which], stacks, release_stacks);
	return stacks;
}
