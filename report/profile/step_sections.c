/* SPDX-License-Identifier: MIT */
#include "report/profile/step_sections.h"
#include "report/base/alloc.h"
#include "report/base/compare.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Limit on the tree nodes used as roots of sections. For each root, all trace nodes are mapped
 * again. */
#define ROOTS_MAX 32u

enum step_section {
	SECTION_BEFORE,
	SECTION_STEP,
	SECTION_WARM_UP,
	SECTION_UNFINISHED,
	SECTION_CAPTURE,
	SECTION_AT_EDGE,
	SECTION_BETWEEN,
	SECTION_AFTER,
	SECTION_NO_STEPS,
	SECTION_COUNT
};

static const struct {
	const char *name;
	enum node_kind kind;
	bool is_step;
} kinds[] = {
	[SECTION_BEFORE] = { "(before first step)", NODE_SECTION, false },
	[SECTION_STEP] = { "step", NODE_STEP, true },
	[SECTION_WARM_UP] = { "step (warm-up)", NODE_STEP, true },
	[SECTION_UNFINISHED] = { "step (unfinished)", NODE_STEP, true },
	[SECTION_CAPTURE] = { "step (capture)", NODE_STEP, true },
	[SECTION_AT_EDGE] = { "step (recording edge)", NODE_STEP, true },
	[SECTION_BETWEEN] = { "(between steps)", NODE_SECTION, false },
	[SECTION_AFTER] = { "(after last step)", NODE_SECTION, false },
	[SECTION_NO_STEPS] = { STEP_SECTION_NO_STEPS, NODE_SECTION, false },
};

/* The sections of the thread of the steps. If several threads have steps, each has a track, and
 * all threads without steps share one. The members from `thread` on are valid while the track is
 * not the current one. The current one's are in profile_state. */
struct section_track {
	const struct steps_thread *steps_thread; /* NULL: it has all steps, or none */
	size_t step, count; /* step: index of the present step, or of the next one */
	enum step_section now;
	uint32_t root;
	struct profile_thread *thread;
	uint32_t step_frame, section;
	uint64_t end_ns;
};

/* Begin or end of a step. */
struct step_edge {
	uint64_t at_ns, order;
	struct section_track *track;
};

struct step_sections {
	const struct steps *steps;
	uint8_t *above;           /* by trace node: node_names_keep_above */
	struct section_track *at; /* current track */
	struct section_track *tracks;
	uint32_t last_section; /* number of the section made last, on any track */
	uint32_t roots[ROOTS_MAX], first[SECTION_COUNT];
	unsigned root_count;
	/* Of all tracks by time, if there are several. */
	struct step_edge *edges;
	size_t edge, edge_count;
};

static const struct step *track_step(
	const struct step_sections *sections, const struct section_track *track, size_t index)
{
	return track->steps_thread ? sections->steps->by_thread[track->steps_thread->first + index]
				   : &sections->steps->steps[index];
}

static const struct step *present_step(const struct step_sections *sections)
{
	return track_step(sections, sections->at, sections->at->step);
}

/* Marks the ranges around steps, which stay above sections, and the ranges that are steps
 * themselves. */
static void find_nodes_above(struct profile *profile, struct step_sections *sections)
{
	const struct steps *steps = sections->steps;

	sections->above = xcalloc(reader_node_count(profile->reader));
	for (size_t i = 0; i < steps->count; i++) {
		uint32_t trace_node = steps->steps[i].trace_node;

		if (steps->own_ranges) {
			sections->above[trace_node] = NODE_IS_ROOT;
			trace_node = reader_node(profile->reader, trace_node)->parent;
		}
		for (; trace_node && !sections->above[trace_node];
			trace_node = reader_node(profile->reader, trace_node)->parent)
			sections->above[trace_node] = NODE_ABOVE_ROOT;
	}
	/* nodes below texts without an id are not known in advance */
	for (uint32_t id = 1; id < reader_node_count(profile->reader); id++)
		if (sections->above[id] && profile->state->nodes[id] == NODE_UNRESOLVED)
			sections->above[id] = 0;
	node_names_keep_above(profile->names, sections->above);
}

static bool is_own_range(const struct step_sections *sections)
{
	return sections->steps->own_ranges && kinds[sections->at->now].is_step;
}

/* Puts later ranges of other threads below `root`. Without label patterns there may be many
 * roots. Then the first root of this kind of section is used. */
static void set_section_root(struct profile *profile, struct step_sections *sections, uint32_t root)
{
	bool known = root == 0;

	for (unsigned i = 0; i < sections->root_count; i++)
		known |= sections->roots[i] == root;
	if (!known && sections->root_count == ROOTS_MAX)
		root = sections->first[sections->at->now];
	else if (!known)
		sections->roots[sections->root_count++] = root;
	if (!sections->first[sections->at->now])
		sections->first[sections->at->now] = root;
	sections->at->root = root;
	profile_set_root(profile, root);
}

/* Returns the number of open ranges of `thread` that stay above sections. */
static uint32_t frames_above(
	const struct step_sections *sections, const struct profile_thread *thread)
{
	uint32_t depth = thread ? thread->depth : 0;

	while (depth > 0 &&
		sections->above[thread->frames[depth - 1].trace_node] != NODE_ABOVE_ROOT)
		depth--;
	return depth;
}

/* Inserts a frame for a section at index `depth`. The frames from there on began in the previous
 * section. From now on they are inside the new frame. Their time so far stays with the frame around
 * both sections. */
static void insert_section_frame(struct profile_thread *thread, uint32_t depth, uint32_t node,
	uint64_t begin_ns, uint32_t number)
{
	const uint32_t inner = thread->depth++ - depth;
	uint64_t before = 0;

	ARRAY_GROW(thread->frames, thread->room, thread->depth);
	ARRAY_GROW(thread->details, thread->details_room, thread->depth);
	if (inner)
		before = begin_ns - thread->frames[depth].begin_ns;
	if (depth > 0)
		thread->frames[depth - 1].child_ns += before;
	memmove(&thread->frames[depth + 1], &thread->frames[depth], inner * sizeof *thread->frames);
	memmove(&thread->details[depth + 1], &thread->details[depth],
		inner * sizeof *thread->details);
	thread->frames[depth] = (struct open_range){
		.node = node, .begin_ns = begin_ns, .child_ns = 0 - before
	};
	thread->details[depth] = (struct open_range_details){ .section = number,
		.encloses_section = true };
	thread->section_frame = depth;
}

static void label_section(const struct step_sections *sections, struct open_range_details *details)
{
	if (!kinds[sections->at->now].is_step)
		return;
	details->label = xcalloc(32);
	details->label_bytes = (uint32_t)snprintf(details->label, 32, "step %llu",
		(unsigned long long)present_step(sections)->number);
}

static void open_section(struct profile *profile, uint64_t begin_ns)
{
	struct step_sections *sections = profile->state->sections;
	struct profile_thread *thread = profile->state->sections_thread;
	const char *name = kinds[sections->at->now].name;
	const uint32_t depth = frames_above(sections, thread),
		       node = tree_child(profile->tree,
			       depth && thread ? thread->frames[depth - 1].node : 0,
			       string_table_intern(profile->texts, name, strlen(name)), 0,
			       kinds[sections->at->now].kind);
	uint64_t before;

	if (profile->state->counting && begin_ns < profile->state->counting_begin_ns)
		begin_ns = profile->state->counting_begin_ns;
	profile->tree->nodes[node].outside = sections->at->now != SECTION_STEP;
	profile->state->section = ++sections->last_section;
	set_section_root(profile, sections, node);
	if (!thread)
		return;
	insert_section_frame(thread, depth, node, begin_ns, profile->state->section);
	before = thread->frames[depth].child_ns;
	profile_restart_frame(profile, &thread->frames[depth], &thread->details[depth]);
	thread->frames[depth].child_ns = before;
	label_section(sections, &thread->details[depth]);
	profile_track_target_children(profile, thread, depth);
}

static void close_section(struct profile *profile, uint64_t end_ns)
{
	struct step_sections *sections = profile->state->sections;
	struct profile_thread *thread = profile->state->sections_thread;
	const uint32_t depth = thread ? thread->section_frame : NO_SECTION_FRAME;

	if (depth == NO_SECTION_FRAME)
		return;
	thread->section_frame = NO_SECTION_FRAME;
	if (end_ns <= thread->frames[depth].begin_ns && !kinds[sections->at->now].is_step &&
		depth + 1 == thread->depth)
		profile_discard_frame(profile, thread, depth);
	else
		profile_remove_frame(profile, thread, depth, end_ns);
}

static void enter_section(struct profile *profile, uint64_t begin_ns)
{
	struct step_sections *sections = profile->state->sections;
	const uint32_t *plain = node_names_nodes(profile->names, 0);
	uint32_t own;

	profile->state->step_frame = NO_SECTION_FRAME;
	if (!is_own_range(sections)) {
		open_section(profile, begin_ns);
		return;
	}
	profile->state->section = ++sections->last_section;
	own = plain[present_step(sections)->trace_node];
	if (profile->state->sections_thread)
		profile->state->step_frame = profile->state->sections_thread->depth;
	set_section_root(profile, sections, own == NODE_UNRESOLVED ? 0 : own);
}

static enum step_section next_section(const struct step_sections *sections, bool in_step)
{
	static const enum step_section of_steps[] = { [STEP_USUAL] = SECTION_STEP,
		[STEP_WARM_UP] = SECTION_WARM_UP,
		[STEP_UNFINISHED] = SECTION_UNFINISHED,
		[STEP_CAPTURE] = SECTION_CAPTURE,
		[STEP_AT_EDGE] = SECTION_AT_EDGE };
	const struct section_track *track = sections->at;

	if (!track->count)
		return SECTION_NO_STEPS;
	if (in_step)
		return of_steps[present_step(sections)->kind];
	if (track->step == 0)
		return SECTION_BEFORE;
	return track->step < track->count ? SECTION_BETWEEN : SECTION_AFTER;
}

/* Returns the end of the current section. */
static uint64_t next_edge_ns(const struct step_sections *sections)
{
	const struct section_track *track = sections->at;

	if (track->step == track->count)
		return UINT64_MAX;
	if (!kinds[track->now].is_step)
		return present_step(sections)->begin_ns;
	return track->now == SECTION_UNFINISHED && track->step + 1 == track->count
		       ? UINT64_MAX
		       : present_step(sections)->end_ns;
}

static void cross_edge(struct profile *profile)
{
	struct step_sections *sections = profile->state->sections;
	struct section_track *track = sections->at;
	const uint64_t section_end_ns = track->end_ns;
	bool inside;

	if (profile->state->now_ns < section_end_ns)
		profile->state->now_ns = section_end_ns;
	close_section(profile, section_end_ns);
	if (kinds[track->now].is_step)
		profile_step_end(profile, track_step(sections, track, track->step++)->number);
	inside = track->step < track->count && present_step(sections)->begin_ns <= section_end_ns;
	track->now = next_section(sections, inside);
	if (inside && track->now != SECTION_WARM_UP)
		profile_warm_up_end(profile);
	if (inside)
		profile_step_begin(profile, present_step(sections)->number);
	enter_section(profile, section_end_ns);
	track->end_ns = next_edge_ns(sections);
}

/* Returns whether `event` is beyond the end of the current section. At exactly that time, events
 * that close ranges still belong to the section, and so does all that is inside a step on the
 * steps' thread. */
static bool is_beyond_edge(const struct profile *profile, const struct trace_event *event)
{
	const struct step_sections *sections = profile->state->sections;
	const struct profile_thread *thread = profile->state->sections_thread;

	if (event->time_ns != sections->at->end_ns)
		return event->time_ns > sections->at->end_ns;
	if (event->kind == EVENT_POP || event->kind == EVENT_UNENDED ||
		event->kind == EVENT_LEFT_OPEN)
		return false;
	if (!thread || event->stream->user != thread || !kinds[sections->at->now].is_step)
		return true;
	return event->depth <= (thread->section_frame != NO_SECTION_FRAME
					       ? thread->section_frame
					       : profile->state->step_frame);
}

/* Makes `track` the current one. */
static void switch_track(struct profile *profile, struct section_track *track)
{
	struct profile_state *state = profile->state;
	struct section_track *before = state->sections->at;

	if (track == before)
		return;
	before->thread = state->sections_thread;
	before->step_frame = state->step_frame;
	before->section = state->section;
	state->sections->at = track;
	state->sections_thread = track->thread;
	state->step_frame = track->step_frame;
	state->section = track->section;
	profile_set_root(profile, track->root);
}

/* Moves all tracks to the time of `event`, and makes the track of its thread the current one. */
static void advance_tracks(struct profile *profile, const struct trace_event *event)
{
	struct step_sections *sections = profile->state->sections;

	for (; sections->edge < sections->edge_count &&
		sections->edges[sections->edge].at_ns < event->time_ns;
		sections->edge++) {
		const struct step_edge *edge = &sections->edges[sections->edge];

		switch_track(profile, edge->track);
		while (edge->track->end_ns <= edge->at_ns)
			cross_edge(profile);
	}
	/* a thread that begins is in its first section from now on */
	if (profile->state->now_ns < event->time_ns)
		profile->state->now_ns = event->time_ns;
	switch_track(profile, profile_thread_of(profile, event)->track);
}

void step_sections_advance(struct profile *profile, const struct trace_event *event)
{
	struct step_sections *sections = profile->state->sections;

	/* The thread may be the one with the steps, and may begin with a step. */
	if (sections->edges)
		advance_tracks(profile, event);
	else
		profile_thread_of(profile, event);
	while (is_beyond_edge(profile, event))
		cross_edge(profile);
	if (!sections->edges)
		profile->state->section_end_ns = sections->at->end_ns;
}

COMPARE_BY_TWO(by_time, struct step_edge, at_ns, order)

/* Makes a track for each thread with steps, then the one of all other threads. */
static void make_tracks(struct step_sections *sections)
{
	const struct steps *steps = sections->steps;
	const size_t count = steps->thread_count;

	sections->tracks = xcalloc((count + 1) * sizeof *sections->tracks);
	sections->edges = xcalloc((2 * steps->count + 1) * sizeof *sections->edges);
	for (size_t i = 0; i <= count; i++)
		sections->tracks[i].step_frame = NO_SECTION_FRAME;
	for (size_t i = 0; i < count; i++) {
		const struct steps_thread *thread = &steps->threads[i];

		sections->tracks[i].steps_thread = thread;
		sections->tracks[i].count = thread->count;
		for (size_t at = thread->first; at < thread->first + thread->count; at++) {
			const struct step *step = steps->by_thread[at];
			const uint64_t order = 2 * (uint64_t)(step - steps->steps);

			sections->edges[sections->edge_count++] = (struct step_edge){
				step->begin_ns, order, &sections->tracks[i]
			};
			sections->edges[sections->edge_count++] = (struct step_edge){ step->end_ns,
				order + 1, &sections->tracks[i] };
		}
	}
	qsort(sections->edges, sections->edge_count, sizeof *sections->edges, by_time);
}

/* Puts each track into its first section. */
static void enter_first_sections(struct profile *profile)
{
	struct step_sections *sections = profile->state->sections;
	const size_t count = steps_overlap(sections->steps) ? sections->steps->thread_count : 0;

	profile->state->step_frame = NO_SECTION_FRAME;
	for (size_t i = 0; i <= count; i++) {
		if (i > 0)
			switch_track(profile, &sections->tracks[i]);
		sections->at->now = next_section(sections, false);
		enter_section(profile, 0);
		sections->at->end_ns = next_edge_ns(sections);
	}
	/* With several tracks, each event may need another one than the event before. */
	profile->state->section_end_ns = count ? 0 : sections->at->end_ns;
}

void step_sections_begin(struct profile *profile)
{
	struct step_sections *sections = xcalloc(sizeof *sections);

	profile->state->sections = sections;
	profile->state->tracks_instances = true;
	sections->steps = profile->options.found_steps;
	if (steps_overlap(sections->steps)) {
		make_tracks(sections);
	} else {
		sections->tracks = xcalloc(sizeof *sections->tracks);
		sections->tracks[0].count = sections->steps->count;
	}
	sections->at = &sections->tracks[0];
	find_nodes_above(profile, sections);
	enter_first_sections(profile);
}

void step_sections_free(struct step_sections *sections)
{
	if (!sections)
		return;
	free(sections->above);
	free(sections->tracks);
	free(sections->edges);
	free(sections);
}

/* Finds the track of a thread. Returns false if the thread has no steps. */
static bool find_track(struct profile *profile, struct profile_thread *thread)
{
	struct step_sections *sections = profile->state->sections;
	const struct steps *steps = sections->steps;
	const struct steps_thread *found;

	if (!sections->edges) {
		thread->track = &sections->tracks[0];
		return thread->stream == steps->stream;
	}
	found = steps_find_steps_thread(steps, thread->of->tid);
	thread->track =
		&sections->tracks[found ? (size_t)(found - steps->threads) : steps->thread_count];
	return found;
}

void step_sections_thread_begin(struct profile *profile, struct profile_thread *thread)
{
	struct step_sections *sections = profile->state->sections;

	if (!sections || !find_track(profile, thread))
		return;
	switch_track(profile, thread->track);
	profile->state->sections_thread = thread;
	if (is_own_range(sections))
		profile->state->step_frame = 0;
	else
		open_section(profile, sections->at->now == SECTION_BEFORE && !sections->edges
					      ? 0
					      : profile->state->now_ns);
}

void step_sections_thread_end(
	struct profile *profile, struct profile_thread *thread, uint64_t now_ns)
{
	struct step_sections *sections = profile->state->sections;

	if (!sections)
		return;
	switch_track(profile, thread->track);
	if (thread != profile->state->sections_thread)
		return;
	profile->state->now_ns = now_ns;
	close_section(profile, now_ns);
	profile->state->sections_thread = NULL;
}

bool step_sections_suspend_slow(struct profile *profile, struct profile_thread *thread,
	uint32_t index, uint32_t trace_node, uint64_t now_ns)
{
	const struct step_sections *sections = profile->state->sections;

	if (kinds[sections->at->now].is_step || thread->section_frame == NO_SECTION_FRAME ||
		thread->section_frame + 1 != thread->depth)
		return false;
	if (trace_node ? sections->above[trace_node] != NODE_ABOVE_ROOT
		       : index > thread->section_frame)
		return false;
	close_section(profile, now_ns);
	return true;
}

void step_sections_resume(struct profile *profile, uint64_t now_ns)
{
	open_section(profile, now_ns);
}
