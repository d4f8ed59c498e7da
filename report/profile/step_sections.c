/* SPDX-License-Identifier: MIT */
#include "report/profile/step_sections.h"
#include "report/base/alloc.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ROOTS_MOST 32u /* nodes that stand for sections, each of which places every place of the trace */

enum section { BEFORE, STEP, WARM_UP, UNFINISHED, CAPTURE, BETWEEN, AFTER, SECTION_COUNT };

static const struct {
	const char *name;
	enum node_kind kind;
	bool is_step;
} kinds[] = {
	[BEFORE] = { "(before first step)", NODE_SECTION, false },
	[STEP] = { "step", NODE_STEP, true },
	[WARM_UP] = { "step (warm-up)", NODE_STEP, true },
	[UNFINISHED] = { "step (unfinished)", NODE_STEP, true },
	[CAPTURE] = { "step (capture)", NODE_STEP, true },
	[BETWEEN] = { "(between steps)", NODE_SECTION, false },
	[AFTER] = { "(after last step)", NODE_SECTION, false },
};

struct sections {
	const struct steps *steps;
	uint8_t *above; /* by place: names_keep_above */
	enum section now;
	size_t step;           /* the one that it is in, or the next one */
	uint32_t roots[ROOTS_MOST], first[SECTION_COUNT];
	unsigned root_count;
};

/* Ranges around steps stand above, and steps that are ranges are what they are. */
static void find_above(struct fold *fold, struct sections *sections)
{
	const struct steps *steps = sections->steps;

	sections->above = need(reader_nodes(fold->reader));
	for (size_t i = 0; i < steps->count; i++) {
		uint32_t place = steps->steps[i].place;

		if (steps->own_ranges) {
			sections->above[place] = NAMES_ITSELF;
			place = reader_place(fold->reader, place)->parent;
		}
		for (; place && !sections->above[place]; place = reader_place(fold->reader, place)->parent)
			sections->above[place] = NAMES_ABOVE;
	}
	/* what is below texts without an id has no place that is known beforehand */
	for (uint32_t id = 1; id < reader_nodes(fold->reader); id++)
		if (sections->above[id] && fold->state->nodes[id] == NAMES_OPEN)
			sections->above[id] = 0;
	names_keep_above(fold->names, sections->above);
}

static bool in_own_range(const struct sections *sections)
{
	return sections->steps->own_ranges && kinds[sections->now].is_step;
}

/* Other threads' ranges stand below `root` from now on. There may be many roots where nothing is folded: then below
 * the first of its kind. */
static void go_below(struct fold *fold, struct sections *sections, uint32_t root)
{
	bool known = root == 0;

	for (unsigned i = 0; i < sections->root_count; i++)
		known |= sections->roots[i] == root;
	if (!known && sections->root_count == ROOTS_MOST)
		root = sections->first[sections->now];
	else if (!known)
		sections->roots[sections->root_count++] = root;
	if (!sections->first[sections->now])
		sections->first[sections->now] = root;
	fold_go_below(fold, root);
}

/* How many of the thread's open ranges stand above. */
static uint32_t depth_above(const struct sections *sections, const struct thread *thread)
{
	uint32_t depth = thread ? thread->depth : 0;

	while (depth > 0 && sections->above[thread->frames[depth - 1].place] != NAMES_ABOVE)
		depth--;
	return depth;
}

/* Room in the thread's row for a section. What is open above that depth reaches over from the one before: it lies in
 * the new one from here on, and its time so far stays with what is around both. */
static void insert(struct thread *thread, uint32_t depth, uint32_t node, uint64_t begin_ns, uint32_t number)
{
	const uint32_t inner = thread->depth++ - depth;
	uint64_t before = 0;

	grow(&thread->frames, &thread->room, thread->depth, sizeof *thread->frames);
	grow(&thread->more, &thread->more_room, thread->depth, sizeof *thread->more);
	if (inner)
		before = begin_ns - thread->frames[depth].begin_ns;
	if (depth > 0)
		thread->frames[depth - 1].child_ns += before;
	memmove(&thread->frames[depth + 1], &thread->frames[depth], inner * sizeof *thread->frames);
	memmove(&thread->more[depth + 1], &thread->more[depth], inner * sizeof *thread->more);
	thread->frames[depth] = (struct frame){ .node = node, .begin_ns = begin_ns, .child_ns = 0 - before };
	thread->more[depth] = (struct frame_more){ .section = number, .outside = true };
	thread->inserted = depth;
}

static void give_number(const struct sections *sections, struct frame_more *more)
{
	if (!kinds[sections->now].is_step)
		return;
	more->label = need(32);
	more->label_bytes = (uint32_t)snprintf(
		more->label, 32, "step %llu", (unsigned long long)sections->steps->steps[sections->step].number);
}

static void open_section(struct fold *fold, uint64_t begin_ns)
{
	struct sections *sections = fold->state->sections;
	struct thread *thread = fold->state->section_thread;
	const char *name = kinds[sections->now].name;
	const uint32_t depth = depth_above(sections, thread),
		       node = tree_child(fold->tree, depth && thread ? thread->frames[depth - 1].node : 0,
			       text_id(fold->texts, name, strlen(name)), 0, kinds[sections->now].kind);
	uint64_t before;

	if (fold->state->counting && begin_ns < fold->state->window_begin_ns)
		begin_ns = fold->state->window_begin_ns;
	fold->tree->nodes[node].outside = sections->now != STEP;
	fold->state->section++;
	go_below(fold, sections, node);
	if (!thread)
		return;
	insert(thread, depth, node, begin_ns, fold->state->section);
	before = thread->frames[depth].child_ns;
	fold_rebase(fold, &thread->frames[depth], &thread->more[depth]);
	thread->frames[depth].child_ns = before;
	give_number(sections, &thread->more[depth]);
	fold_keep_wanted(fold, thread, depth);
}

static void close_section(struct fold *fold, uint64_t end_ns)
{
	struct sections *sections = fold->state->sections;
	struct thread *thread = fold->state->section_thread;
	const uint32_t depth = thread ? thread->inserted : NOT_INSERTED;

	if (depth == NOT_INSERTED)
		return;
	thread->inserted = NOT_INSERTED;
	if (end_ns <= thread->frames[depth].begin_ns && !kinds[sections->now].is_step && depth + 1 == thread->depth)
		fold_forget(fold, thread, depth);
	else
		fold_close_frame(fold, thread, depth, end_ns);
}

static void enter(struct fold *fold, uint64_t begin_ns)
{
	struct sections *sections = fold->state->sections;
	const uint32_t *plain = names_nodes_below(fold->names, 0);
	uint32_t own;

	fold->state->section_own = NOT_INSERTED;
	if (!in_own_range(sections)) {
		open_section(fold, begin_ns);
		return;
	}
	fold->state->section++;
	own = plain[sections->steps->steps[sections->step].place];
	if (fold->state->section_thread)
		fold->state->section_own = fold->state->section_thread->depth;
	go_below(fold, sections, own == NAMES_OPEN ? 0 : own);
}

static enum section section_of(const struct sections *sections, bool inside)
{
	static const enum section of_steps[] = {
		[STEP_USUAL] = STEP, [STEP_WARM_UP] = WARM_UP, [STEP_UNFINISHED] = UNFINISHED,
		[STEP_CAPTURE] = CAPTURE
	};

	if (inside)
		return of_steps[sections->steps->steps[sections->step].kind];
	if (sections->step == 0)
		return BEFORE;
	return sections->step < sections->steps->count ? BETWEEN : AFTER;
}

/* When what is in force is over. */
static uint64_t edge_of(const struct sections *sections)
{
	const struct step *step = &sections->steps->steps[sections->step];

	if (sections->step == sections->steps->count)
		return UINT64_MAX;
	if (!kinds[sections->now].is_step)
		return step->begin_ns;
	return sections->now == UNFINISHED && sections->step + 1 == sections->steps->count ? UINT64_MAX : step->end_ns;
}

static void cross(struct fold *fold)
{
	struct sections *sections = fold->state->sections;
	const uint64_t edge_ns = fold->state->edge_ns;
	bool inside;

	if (fold->state->now_ns < edge_ns)
		fold->state->now_ns = edge_ns;
	close_section(fold, edge_ns);
	if (kinds[sections->now].is_step) {
		fold_step_over(fold);
		sections->step++;
	}
	inside = sections->step < sections->steps->count && sections->steps->steps[sections->step].begin_ns <= edge_ns;
	sections->now = section_of(sections, inside);
	if (inside && sections->now != WARM_UP)
		fold_window_warm(fold);
	if (inside)
		fold_step_comes(fold, sections->steps->steps[sections->step].number);
	enter(fold, edge_ns);
	fold->state->edge_ns = edge_of(sections);
}

/* At the very moment of an edge what closes belongs before it, and on the thread of the steps what lies inside of the
 * section, too. */
static bool lies_beyond(const struct fold *fold, const struct trace_event *event)
{
	const struct sections *sections = fold->state->sections;
	const struct thread *thread = fold->state->section_thread;

	if (event->time_ns != fold->state->edge_ns)
		return event->time_ns > fold->state->edge_ns;
	if (event->kind == EVENT_POP || event->kind == EVENT_UNENDED || event->kind == EVENT_LEFT_OPEN)
		return false;
	if (!thread || event->stream->user != thread || !kinds[sections->now].is_step)
		return true;
	return event->depth <= (thread->inserted != NOT_INSERTED ? thread->inserted : fold->state->section_own);
}

void sections_go_on(struct fold *fold, const struct trace_event *event)
{
	fold_thread(fold, event); /* it may be the one with the steps, and begin with one */
	while (lies_beyond(fold, event))
		cross(fold);
}

void sections_begin(struct fold *fold)
{
	struct sections *sections = need(sizeof *sections);

	fold->state->sections = sections;
	fold->state->rich = true;
	sections->steps = fold->options.found;
	find_above(fold, sections);
	enter(fold, 0);
	fold->state->edge_ns = edge_of(sections);
}

void sections_free(struct sections *sections)
{
	if (sections)
		free(sections->above);
	free(sections);
}

void sections_meet(struct fold *fold, struct thread *thread)
{
	struct sections *sections = fold->state->sections;

	if (!sections || thread->stream != sections->steps->stream)
		return;
	fold->state->section_thread = thread;
	if (in_own_range(sections))
		fold->state->section_own = 0;
	else
		open_section(fold, sections->now == BEFORE ? 0 : fold->state->now_ns);
}

void sections_part(struct fold *fold, struct thread *thread, uint64_t now_ns)
{
	struct sections *sections = fold->state->sections;

	if (!sections || thread != fold->state->section_thread)
		return;
	fold->state->now_ns = now_ns;
	close_section(fold, now_ns);
	fold->state->section_thread = NULL;
}

bool sections_make_way_on(struct fold *fold, struct thread *thread, uint32_t index, uint32_t place, uint64_t now_ns)
{
	const struct sections *sections = fold->state->sections;

	if (kinds[sections->now].is_step || thread->inserted == NOT_INSERTED ||
		thread->inserted + 1 != thread->depth)
		return false;
	if (place ? sections->above[place] != NAMES_ABOVE : index > thread->inserted)
		return false;
	close_section(fold, now_ns);
	return true;
}

void sections_come_back(struct fold *fold, uint64_t now_ns)
{
	open_section(fold, now_ns);
}
