/* SPDX-License-Identifier: MIT
 * arrange_critical_path.c: the longest chain of a run, by what it is made of, by step, by place and by kernel; how far
 * what is not on it is from being on it; and what could be gained.
 */
#include "report/views/views.h"
#include "report/base/alloc.h"
#include "report/analysis/critical_path/critical_path_walk.h"
#include "report/analysis/critical_path/range_at.h"
#include "report/table/computed_row.h"
#include <stdlib.h>
#include <string.h>

#define GAINS 16u /* places, and kernels and copies, whose gain is reckoned: each takes a pass over the graph */

/* Time on the path. */
struct path_sum {
	uint64_t ns[PATH_KIND_COUNT], total_ns, segments;
};

/* The calls and the work of one place, or of one name. */
struct path_member {
	struct path_sum on;
	struct samples slacks;
	uint64_t slack_min_ns, count;
	uint64_t gain_ns;
	bool has_slack, has_gain;
};

struct path_members {
	struct path_member *of;
	size_t room;
};

struct critical_path {
	struct process *process;
	struct path *path;
	struct path_places *ranges;
	struct samples_budget budget;
	struct path_sum all;
	struct path_sum kinds[PATH_KIND_COUNT];
	struct path_sum *steps;       /* by index */
	struct path_members places;   /* by node; 0: no range */
	struct path_members works;    /* by text */
	struct path_sum elsewhere;    /* on the path in what is shown, but asked for outside of it */
	size_t step, step_count;      /* step: the first that may not be over */
	const struct activity_window *windows;
	size_t window, window_count;
	bool of_parts;
	/* the segment at hand */
	const struct path_segment *segment;
};

static struct path_member *member(struct path_members *members, uint32_t index)
{
	grow(&members->of, &members->room, (size_t)index + 1, sizeof *members->of);
	return &members->of[index];
}

static void add(struct path_sum *sum, enum path_kind kind, uint64_t ns)
{
	sum->ns[kind] += ns;
	sum->total_ns += ns;
	sum->segments++;
}

/* Steps do not overlap, and time only goes on. */
static void add_to_steps(struct critical_path *critical, enum path_kind kind, uint64_t from_ns, uint64_t to_ns)
{
	const struct steps *steps = critical->process->steps;

	while (critical->step < critical->step_count && steps->steps[critical->step].end_ns <= from_ns)
		critical->step++;
	for (size_t i = critical->step; i < critical->step_count && steps->steps[i].begin_ns < to_ns; i++) {
		const uint64_t begin = steps->steps[i].begin_ns > from_ns ? steps->steps[i].begin_ns : from_ns,
			       end = steps->steps[i].end_ns < to_ns ? steps->steps[i].end_ns : to_ns;

		if (end > begin)
			add(&critical->steps[i], kind, end - begin);
	}
}

static void charge(
	struct critical_path *critical, struct path_sum *place, enum path_kind kind, uint64_t from_ns, uint64_t to_ns)
{
	add(&critical->all, kind, to_ns - from_ns);
	add(&critical->kinds[kind], kind, to_ns - from_ns);
	add(place, kind, to_ns - from_ns);
	add_to_steps(critical, kind, from_ns, to_ns);
}

/* Time of a thread between calls. */
static void add_host(void *context, uint32_t node, uint64_t from_ns, uint64_t to_ns)
{
	struct critical_path *critical = context;

	charge(critical, &member(&critical->places, node)->on, PATH_HOST, from_ns, to_ns);
}

static void add_piece(struct critical_path *critical, uint64_t from_ns, uint64_t to_ns)
{
	const struct path_segment *segment = critical->segment;
	const struct path_node *node = path_node(critical->path, segment->node);
	const uint32_t thread = node->thread;

	if (segment->kind == PATH_HOST) {
		path_places_within(critical->ranges, (uint32_t)critical->path->threads.lanes[thread].stream, from_ns, to_ns,
			add_host, critical);
		return;
	}
	charge(critical, node->counts ? &member(&critical->places, node->owner)->on : &critical->elsewhere, segment->kind,
		from_ns, to_ns);
	if (path_is_work(node) && node->counts)
		add(&member(&critical->works, node->name)->on, segment->kind, to_ns - from_ns);
}

/* Of all that counts, the part in the segment. */
static void add_segment(struct critical_path *critical, const struct path_segment *segment)
{
	critical->segment = segment;
	if (!critical->of_parts) {
		add_piece(critical, segment->begin_ns, segment->end_ns);
		return;
	}
	while (critical->window < critical->window_count && critical->windows[critical->window].end_ns <= segment->begin_ns)
		critical->window++;
	for (size_t i = critical->window; i < critical->window_count && critical->windows[i].begin_ns < segment->end_ns; i++) {
		const struct activity_window *window = &critical->windows[i];
		const uint64_t from = window->begin_ns > segment->begin_ns ? window->begin_ns : segment->begin_ns,
			       to = window->end_ns < segment->end_ns ? window->end_ns : segment->end_ns;

		if (to > from)
			add_piece(critical, from, to);
	}
}

/* Steps that began before the first call, or ended after the last one: nothing is known of that part. */
static void add_uncovered(struct critical_path *critical)
{
	const struct path *path = critical->path;

	for (size_t i = 0; critical->of_parts && i < critical->window_count; i++) {
		const struct activity_window window = critical->windows[i];
		const uint64_t before = window.end_ns < path->begin_ns ? window.end_ns : path->begin_ns,
			       after = window.begin_ns > path->end_ns ? window.begin_ns : path->end_ns;

		if (before > window.begin_ns) {
			critical->step = 0;
			charge(critical, &member(&critical->places, 0)->on, PATH_UNKNOWN, window.begin_ns, before);
		}
		if (window.end_ns > after) {
			critical->step = 0;
			charge(critical, &member(&critical->places, 0)->on, PATH_UNKNOWN, after, window.end_ns);
		}
	}
}

static void add_slack(struct critical_path *critical, struct path_member *of, uint64_t slack)
{
	if (!of->has_slack || slack < of->slack_min_ns)
		of->slack_min_ns = slack;
	of->has_slack = true;
	samples_add(&of->slacks, slack, &critical->budget);
}

/* What waits has none: its time is that of others. */
static void add_node(struct critical_path *critical, uint32_t number)
{
	const struct path_node *node = path_node(critical->path, number);
	struct path_member *place;

	if (!node->counts)
		return;
	place = member(&critical->places, node->owner);
	place->count++;
	if (node->kind == ACTIVITY_WAIT)
		return;
	add_slack(critical, place, path_slack(critical->path, number));
	if (!path_is_work(node))
		return;
	member(&critical->works, node->name)->count++;
	add_slack(critical, &critical->works.of[node->name], path_slack(critical->path, number));
}

static uint64_t gpu_ns(const struct path_sum *sum)
{
	return sum->ns[PATH_KERNEL] + sum->ns[PATH_COMMUNICATION] + sum->ns[PATH_COPY] + sum->ns[PATH_SET];
}

static bool of_place(const struct path_node *node, void *context)
{
	return node->counts && node->owner == *(const uint32_t *)context;
}

static bool of_name(const struct path_node *node, void *context)
{
	return node->counts && path_is_work(node) && node->name == *(const uint32_t *)context;
}

/* What of it on the path would not be there if its work took no time and its calls returned at once. */
static uint64_t avoidable_ns(const struct path_sum *sum)
{
	return gpu_ns(sum) + sum->ns[PATH_CALL] + sum->ns[PATH_SYNC];
}

/* What has none of that on the path cannot be gained by; of the others, those with most of it are reckoned. */
static void reckon_gains(struct critical_path *critical, struct path_members *members,
	bool (*chosen)(const struct path_node *node, void *context))
{
	for (size_t i = 0; i < members->room; i++)
		members->of[i].has_gain = members->of[i].has_slack && !avoidable_ns(&members->of[i].on);
	for (unsigned turn = 0; turn < GAINS; turn++) {
		uint32_t most = PATH_NONE;

		for (uint32_t i = 0; i < members->room; i++)
			if (!members->of[i].has_gain && avoidable_ns(&members->of[i].on) &&
				(most == PATH_NONE || avoidable_ns(&members->of[i].on) > avoidable_ns(&members->of[most].on)))
				most = i;
		if (most == PATH_NONE)
			return;
		members->of[most].gain_ns = path_gain(critical->path, chosen, &most);
		members->of[most].has_gain = true;
	}
}

static void run(struct critical_path *critical)
{
	const struct fold_options *options = &critical->process->fold->options;
	const struct steps *steps = critical->process->steps;

	critical->of_parts = options->steps || options->windows;
	critical->window_count = activities_windows(critical->path->activities, &critical->windows);
	critical->step_count = steps ? steps->count : 0;
	critical->steps = need((critical->step_count + 1) * sizeof *critical->steps);
	for (size_t i = 0; i < critical->path->segments.count; i++)
		add_segment(critical, path_segment(critical->path, i));
	add_uncovered(critical);
	for (uint32_t i = 0; i < critical->path->nodes.count; i++)
		add_node(critical, i);
	reckon_gains(critical, &critical->places, of_place);
	reckon_gains(critical, &critical->works, of_name);
}

static void tell(struct tally *tally, const struct path_sum *sum, uint64_t whole_ns)
{
	tally_unsigned(tally, "path_ns", sum->total_ns);
	tally_share(tally, "share", sum->total_ns, whole_ns);
	tally_unsigned(tally, "path_gpu_ns", gpu_ns(sum));
	tally_unsigned(tally, "path_host_ns", sum->ns[PATH_HOST] + sum->ns[PATH_CALL]);
	tally_unsigned(tally, "path_launch_ns", sum->ns[PATH_LAUNCH] + sum->ns[PATH_HANDOVER]);
	tally_unsigned(tally, "path_sync_ns", sum->ns[PATH_SYNC]);
	tally_unsigned(tally, "path_unknown_ns", sum->ns[PATH_UNKNOWN]);
	tally_unsigned(tally, "path_segments", sum->segments);
}

static void tell_member(struct critical_path *critical, struct tally *tally, struct path_member *of)
{
	tell(tally, &of->on, critical->all.total_ns);
	tally_unsigned(tally, "calls", of->count);
	if (of->has_slack) {
		tally_unsigned(tally, "slack_min_ns", of->slack_min_ns);
		tally_unsigned(tally, "slack_p50_ns", samples_percentile(&of->slacks, 500));
	}
	if (of->has_gain)
		tally_unsigned(tally, "gain_ns", of->gain_ns);
}

static void add_whole(const struct options *options, struct critical_path *critical, struct rows *rows)
{
	const struct path_counts *counts = &critical->path->counts;
	struct tally *tally = tally_new(critical->process, 0);
	const uint32_t head = (uint32_t)rows->count;

	tally_name_format(tally, "critical path");
	tally_words(tally, "kind", "path");
	tell(tally, &critical->all, critical->all.total_ns);
	tally_unsigned(tally, "waits", counts->waits);
	tally_unsigned(tally, "waits_unknown", counts->waits_unknown);
	tally_unsigned(tally, "stream_waits", counts->stream_waits);
	tally_unsigned(tally, "stream_waits_unknown", counts->stream_waits_unknown);
	tally_unsigned(tally, "default_waits", counts->default_waits);
	tally_unsigned(tally, "untimed", counts->untimed);
	rows_add(rows, &tally->row);
	for (int kind = 0; kind < PATH_KIND_COUNT; kind++) {
		if (!critical->kinds[kind].total_ns)
			continue;
		tally = tally_new(critical->process, 0);
		tally_name_format(tally, "%s", path_kind_name((enum path_kind)kind));
		tally_words(tally, "kind", "part");
		tell(tally, &critical->kinds[kind], critical->all.total_ns);
		tally_add(rows, tally, head);
	}
	rows_end(options, critical->process, rows, head + 1, 1, UINT32_MAX);
}

static void add_steps(const struct options *options, struct critical_path *critical, struct rows *rows)
{
	const struct steps *steps = critical->process->steps;
	uint32_t head = NO_ROW;

	for (size_t i = 0; i < critical->step_count; i++) {
		struct tally *tally;

		if (!critical->steps[i].total_ns)
			continue;
		if (head == NO_ROW)
			head = tally_head(critical->process, rows, "steps", "steps");
		tally = tally_new(critical->process, 0);
		tally_name_format(tally, "step %llu", (unsigned long long)steps->steps[i].number);
		tally_words(tally, "kind", "step");
		tally_unsigned(tally, "step", steps->steps[i].number);
		tell(tally, &critical->steps[i], critical->all.total_ns);
		tally_add(rows, tally, head);
	}
	if (head != NO_ROW)
		rows_end(options, critical->process, rows, head + 1, 1, view_top(options));
}

static void add_places(const struct options *options, struct critical_path *critical, struct rows *rows)
{
	const uint32_t head = tally_head(critical->process, rows, "places", "places");
	struct tally *tally;

	for (uint32_t node = 0; node < critical->places.room; node++) {
		struct path_member *of = &critical->places.of[node];

		if (!of->count && !of->on.total_ns)
			continue;
		tally = tally_new(critical->process, node);
		if (!node)
			tally_name_format(tally, "(no range)");
		tally_words(tally, "kind", "place");
		tell_member(critical, tally, of);
		tally_add(rows, tally, head);
	}
	if (critical->elsewhere.total_ns) {
		tally = tally_new(critical->process, 0);
		tally_name_format(tally, "(asked for in no step that is shown)");
		tally_words(tally, "kind", "place");
		tell(tally, &critical->elsewhere, critical->all.total_ns);
		tally_add(rows, tally, head);
	}
	rows_end(options, critical->process, rows, head + 1, 1, view_top(options));
}

static void add_works(const struct options *options, struct critical_path *critical, struct rows *rows)
{
	uint32_t head = NO_ROW;

	for (uint32_t name = 0; name < critical->works.room; name++) {
		const struct text text = text_of(critical->process->texts, name);
		struct tally *tally;

		if (!critical->works.of[name].count)
			continue;
		if (head == NO_ROW)
			head = tally_head(critical->process, rows, "kernels and copies", "kernels");
		tally = tally_new(critical->process, 0);
		tally_name(tally, text.bytes, text.length);
		tally_words(tally, "kind", "work");
		tell_member(critical, tally, &critical->works.of[name]);
		tally_add(rows, tally, head);
	}
	if (head != NO_ROW)
		rows_end(options, critical->process, rows, head + 1, 1, view_top(options));
}

static void let_go(struct critical_path *critical)
{
	for (size_t i = 0; i < critical->places.room; i++)
		samples_free(&critical->places.of[i].slacks);
	for (size_t i = 0; i < critical->works.room; i++)
		samples_free(&critical->works.of[i].slacks);
	free(critical->places.of);
	free(critical->works.of);
	free(critical->steps);
	if (critical->ranges)
		path_places_free(critical->ranges);
	path_free(critical->path);
	free(critical);
}

static void arrange(const struct options *options, struct process *process, struct rows *rows)
{
	struct critical_path *critical = need(sizeof *critical);

	critical->process = process;
	critical->path = path_read(process);
	if (critical->path->last != PATH_NONE) {
		critical->ranges = path_places_read(process);
		run(critical);
		add_whole(options, critical, rows);
		add_steps(options, critical, rows);
		add_places(options, critical, rows);
		add_works(options, critical, rows);
	}
	let_go(critical);
}

void arrange_critical_path(const struct options *options, struct processes *processes, struct rows *rows)
{
	for (size_t i = 0; i < processes->shown; i++)
		arrange(options, &processes->all[i], rows);
}
