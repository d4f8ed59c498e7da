/* SPDX-License-Identifier: MIT
 *
 * Arranges the longest chain of a run by kind of time, step, node and kernel. Adds how far each of
 * them is from being on that chain (slack) and what could be gained.
 */
#include "report/views/views.h"
#include "report/base/compare.h"
#include "report/base/alloc.h"
#include "report/analysis/critical_path/critical_path_walk.h"
#include "report/analysis/critical_path/path_input.h"
#include "report/analysis/step_idle.h"
#include "report/table/computed_row.h"
#include <assert.h>
#include <stdlib.h>
#include <string.h>

/* Limit of nodes, and of kernels and copies, whose gain is computed. All take one pass over the
 * graph. */
#define GAINS_MAX 16u

/* Time on the path. */
struct path_sum {
	uint64_t ns[PATH_KIND_COUNT], total_ns, segments;
};

/* The calls and GPU operations of one node or of one name. */
struct path_entry {
	struct path_sum on;
	struct percentiles slacks;
	uint64_t slack_min_ns, count;
	uint64_t gain_ns;
	uint8_t selection; /* 1 + that of the gain; 0: none */
	bool has_slack, has_gain;
};

struct path_entries {
	struct path_entry *of;
	size_t room;
};

/* Of the steps up to one: when the last of them begins, and ends. */
struct step_reach {
	uint64_t begin_ns, end_ns;
};

/* A step that no other one overlaps, of which the last piece of the path was a part. */
struct near_step {
	uint64_t begin_ns, end_ns; /* both 0: none */
	size_t index;
	bool is_steady; /* its time is divided by the verdict */
};

/* The gains of kinds: of GPU work, then of all GPU work and all calls. */
enum { GAIN_ALL = PATH_MEMSET + 1, KIND_GAINS };

struct critical_path {
	struct process *process;
	struct critical_path_graph *path;
	struct range_log *ranges;
	struct percentiles_budget budget;
	struct path_sum all;
	struct path_sum kinds[PATH_KIND_COUNT];
	/* by kind: in the time that the verdict divides, as `diagnose` has it */
	struct path_sum steady, steady_kinds[PATH_KIND_COUNT];
	struct step_idle counted;
	struct path_sum *steps;        /* by index */
	struct step_reach *step_reach; /* by index */
	bool steps_apart;              /* no two steps overlap */
	struct near_step near;
	/* by kind; of all, and of what overlaps the steady-state steps */
	uint64_t kind_gains[KIND_GAINS], steady_gains[KIND_GAINS];
	struct path_entries nodes_by_id; /* by node; 0: no range */
	struct path_entries gpu_work;    /* by string id of the name */
	/* time on the path that is shown, but was launched outside of what is shown */
	struct path_sum elsewhere;
	size_t step_count;
	const struct counted_interval *intervals;
	size_t interval, interval_count; /* interval: how many may begin before the next segment */
	bool is_partial;
};

static struct path_entry *path_entry_at(struct path_entries *entries, uint32_t index)
{
	ARRAY_GROW(entries->of, entries->room, (size_t)index + 1);
	return &entries->of[index];
}

static void path_sum_add(struct path_sum *sum, enum path_kind kind, uint64_t ns)
{
	sum->ns[kind] += ns;
	sum->total_ns += ns;
	sum->segments++;
}

static bool is_in_near_step(const struct critical_path *critical, uint64_t from_ns, uint64_t to_ns)
{
	return from_ns >= critical->near.begin_ns && to_ns <= critical->near.end_ns;
}

/* Returns how much of an interval is in steady-state steps, of which there must be some. */
static uint64_t steady_ns(const struct critical_path *critical, uint64_t from_ns, uint64_t to_ns)
{
	if (!is_in_near_step(critical, from_ns, to_ns))
		return step_idle_counted(&critical->counted, from_ns, to_ns);
	return critical->near.is_steady ? to_ns - from_ns : 0;
}

/* Adds the part of a piece that is in steady-state steps or, without steps, while GPUs have
 * work. */
static void add_to_steady(
	struct critical_path *critical, enum path_kind kind, uint64_t from_ns, uint64_t to_ns)
{
	const uint64_t ns = critical->counted.steps
				    ? steady_ns(critical, from_ns, to_ns)
				    : step_idle_counted(&critical->counted,
					      max_u64(from_ns, critical->path->work_begin_ns),
					      min_u64(to_ns, critical->path->work_end_ns));

	if (!ns)
		return;
	path_sum_add(&critical->steady, kind, ns);
	path_sum_add(&critical->steady_kinds[kind], kind, ns);
}

/* When a step is, on the GPU if the host is far ahead of it. */
static struct counted_interval step_window(const struct step *step)
{
	return step->window_end_ns > step->window_begin_ns
		       ? (struct counted_interval){ step->window_begin_ns, step->window_end_ns }
		       : (struct counted_interval){ step->begin_ns, step->end_ns };
}

static void find_step_reach(struct critical_path *critical)
{
	const struct step *steps = critical->step_count ? critical->process->steps->steps : NULL;
	struct step_reach reach = { .begin_ns = 0 };

	critical->step_reach = xcalloc((critical->step_count + 1) * sizeof *critical->step_reach);
	critical->steps_apart = true;
	for (size_t i = 0; i < critical->step_count; i++) {
		critical->steps_apart &= step_window(&steps[i]).begin_ns >= reach.end_ns;
		reach.begin_ns = max_u64(reach.begin_ns, step_window(&steps[i]).begin_ns);
		reach.end_ns = max_u64(reach.end_ns, step_window(&steps[i]).end_ns);
		critical->step_reach[i] = reach;
	}
}

/* The first step that ends after `at_ns`. */
static size_t first_step_after(const struct critical_path *critical, uint64_t at_ns)
{
	size_t low = 0, high = critical->step_count;

	while (low < high) {
		const size_t middle = low + (high - low) / 2;

		if (critical->step_reach[middle].end_ns <= at_ns)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

/* Notes the step that an interval is a part of, for the next ones. */
static void note_near_step(
	struct critical_path *critical, size_t index, uint64_t from_ns, uint64_t to_ns)
{
	const struct step *step = &critical->process->steps->steps[index];
	const struct counted_interval window = step_window(step);

	if (!critical->steps_apart || from_ns < window.begin_ns || to_ns > window.end_ns)
		return;
	critical->near = (struct near_step){ .begin_ns = window.begin_ns,
		.end_ns = window.end_ns,
		.index = index,
		.is_steady = step->kind == STEP_USUAL &&
			     step->window_end_ns > step->window_begin_ns };
}

/* Adds a piece of the path to the steps that it overlaps. Steps do not overlap each other (those of
 * several threads may, and are not examined). */
static void add_to_steps(
	struct critical_path *critical, enum path_kind kind, uint64_t from_ns, uint64_t to_ns)
{
	const struct step *steps = critical->step_count ? critical->process->steps->steps : NULL;

	if (is_in_near_step(critical, from_ns, to_ns)) {
		path_sum_add(&critical->steps[critical->near.index], kind, to_ns - from_ns);
		return;
	}
	for (size_t i = first_step_after(critical, from_ns);
		i < critical->step_count && critical->step_reach[i].begin_ns < to_ns; i++) {
		const uint64_t begin = max_u64(step_window(&steps[i]).begin_ns, from_ns),
			       end = min_u64(step_window(&steps[i]).end_ns, to_ns);

		if (end <= begin)
			continue;
		path_sum_add(&critical->steps[i], kind, end - begin);
		note_near_step(critical, i, from_ns, to_ns);
	}
}

static void charge(struct critical_path *critical, struct path_sum *owner, enum path_kind kind,
	uint64_t from_ns, uint64_t to_ns)
{
	path_sum_add(&critical->all, kind, to_ns - from_ns);
	path_sum_add(&critical->kinds[kind], kind, to_ns - from_ns);
	path_sum_add(owner, kind, to_ns - from_ns);
	add_to_steps(critical, kind, from_ns, to_ns);
	add_to_steady(critical, kind, from_ns, to_ns);
}

/* Adds time of a thread between calls to a node. A callback of range_log_within(). */
static void add_host_time(void *context, uint32_t node, uint64_t from_ns, uint64_t to_ns)
{
	struct critical_path *critical = context;

	charge(critical, &path_entry_at(&critical->nodes_by_id, node)->on, PATH_HOST, from_ns,
		to_ns);
}

/* Returns what the time of the segment is. Calls that copy are apart: host memory that is pageable
 * makes them long. */
static enum path_kind kind_of_segment(
	const struct path_segment *segment, const struct path_node *node)
{
	return segment->kind == PATH_CALL && node->kind == ACTIVITY_COPY_CALL &&
			       !node->copies_on_device
		       ? PATH_COPY_CALL
		       : (enum path_kind)segment->kind;
}

static void add_interval(struct critical_path *critical, const struct path_segment *segment,
	uint64_t from_ns, uint64_t to_ns)
{
	const struct path_node *node = path_node(critical->path, segment->node);
	const enum path_kind kind = kind_of_segment(segment, node);

	if (segment->kind == PATH_HOST) {
		range_log_within(critical->ranges,
			critical_path_graph_tid(critical->path, segment->node),
			critical_path_graph_tid(critical->path, segment->before), from_ns, to_ns,
			add_host_time, critical);
		return;
	}
	charge(critical,
		node->counts ? &path_entry_at(&critical->nodes_by_id, node->owner)->on
			     : &critical->elsewhere,
		kind, from_ns, to_ns);
	if (path_is_work(node) && node->counts)
		path_sum_add(
			&path_entry_at(&critical->gpu_work, node->name)->on, kind, to_ns - from_ns);
}

/* Adds the part of a segment that is inside the intervals that count, the last one first. A
 * callback of critical_path_graph_walk(). */
static void add_path_segment(void *context, const struct path_segment *segment)
{
	struct critical_path *critical = context;
	const struct counted_interval *intervals = critical->intervals;

	if (!critical->is_partial) {
		add_interval(critical, segment, segment->begin_ns, segment->end_ns);
		return;
	}
	while (critical->interval && intervals[critical->interval - 1].begin_ns >= segment->end_ns)
		critical->interval--;
	for (size_t i = critical->interval; i && intervals[i - 1].end_ns > segment->begin_ns; i--) {
		const uint64_t from = max_u64(intervals[i - 1].begin_ns, segment->begin_ns),
			       to = min_u64(intervals[i - 1].end_ns, segment->end_ns);

		if (to > from)
			add_interval(critical, segment, from, to);
	}
}

static void charge_unknown(struct critical_path *critical, uint64_t from_ns, uint64_t to_ns)
{
	if (to_ns <= from_ns)
		return;
	charge(critical, &path_entry_at(&critical->nodes_by_id, 0)->on, PATH_UNKNOWN, from_ns,
		to_ns);
}

/* Adds the parts of intervals before the first call and after the last one as unknown time. */
static void add_unknown_ends(struct critical_path *critical)
{
	const struct critical_path_graph *path = critical->path;

	for (size_t i = 0; critical->is_partial && i < critical->interval_count; i++) {
		const struct counted_interval interval = critical->intervals[i];

		charge_unknown(
			critical, interval.begin_ns, min_u64(interval.end_ns, path->begin_ns));
		charge_unknown(critical, max_u64(interval.begin_ns, path->end_ns), interval.end_ns);
	}
}

static void add_slack(struct critical_path *critical, struct path_entry *of, uint64_t slack)
{
	if (!of->has_slack || slack < of->slack_min_ns)
		of->slack_min_ns = slack;
	of->has_slack = true;
	percentiles_add(&of->slacks, slack, &critical->budget);
}

/* Adds the slack of one node of the graph. Calls that wait have none, because their time is that of
 * the work they wait for. A callback of critical_path_graph_gains(). */
static void add_node_slack(void *context, const struct path_node *node, uint64_t slack_ns)
{
	struct critical_path *critical = context;
	struct path_entry *owner;

	if (!node->counts)
		return;
	owner = path_entry_at(&critical->nodes_by_id, node->owner);
	owner->count++;
	if (node->kind == ACTIVITY_WAIT)
		return;
	add_slack(critical, owner, slack_ns);
	if (!path_is_work(node))
		return;
	path_entry_at(&critical->gpu_work, node->name)->count++;
	add_slack(critical, &critical->gpu_work.of[node->name], slack_ns);
}

static uint64_t path_gpu_ns(const struct path_sum *sum)
{
	return sum->ns[PATH_KERNEL] + sum->ns[PATH_COMMUNICATION] + sum->ns[PATH_COPY] +
	       sum->ns[PATH_MEMSET];
}

/* Returns the time that would leave the path if the GPU work took no time and the calls returned at
 * once. */
static uint64_t avoidable_ns(const struct path_sum *sum)
{
	return path_gpu_ns(sum) + sum->ns[PATH_CALL] + sum->ns[PATH_COPY_CALL] + sum->ns[PATH_SYNC];
}

/* The selections of one pass: kinds, kinds in the steady-state steps, entries. */
enum {
	STEADY_SELECTIONS = KIND_GAINS,
	ENTRY_SELECTIONS = 2 * KIND_GAINS,
	SELECTIONS_MAX = ENTRY_SELECTIONS + 2 * GAINS_MAX
};

static_assert(SELECTIONS_MAX <= PATH_GAINS_MAX, "all gains take one pass");

/* Chooses the entries whose gain is computed: the GAINS_MAX entries with the most avoidable time on
 * the path. */
static void choose_gains(struct path_entries *entries, unsigned *selections)
{
	for (unsigned chosen = 0; chosen < GAINS_MAX; chosen++) {
		uint32_t most = PATH_NONE;

		for (uint32_t i = 0; i < entries->room; i++)
			if (!entries->of[i].has_gain && avoidable_ns(&entries->of[i].on) &&
				(most == PATH_NONE || avoidable_ns(&entries->of[i].on) >
							      avoidable_ns(&entries->of[most].on)))
				most = i;
		if (most == PATH_NONE)
			return;
		entries->of[most].has_gain = true;
		entries->of[most].selection = (uint8_t)++ * selections;
	}
}

static uint64_t mask_of_entry(const struct path_entries *entries, uint32_t index)
{
	return index < entries->room && entries->of[index].selection
		       ? UINT64_C(1) << (entries->of[index].selection - 1)
		       : 0;
}

/* Returns whether some of a node's time is in steady-state steps, of which there must be some. */
static bool is_steady_node(struct critical_path *critical, const struct path_node *node)
{
	size_t step;

	if (!is_in_near_step(critical, node->begin_ns, node->end_ns)) {
		step = first_step_after(critical, node->begin_ns);
		if (step < critical->step_count)
			note_near_step(critical, step, node->begin_ns, node->end_ns);
	}
	return steady_ns(critical, node->begin_ns, node->end_ns);
}

/* Returns a mask of the selections that a node of the graph is in. */
static uint64_t mask_of_node(const struct path_node *node, void *context)
{
	struct critical_path *critical = context;
	uint64_t mask = UINT64_C(1) << GAIN_ALL;

	if (!node->counts)
		return 0;
	if (path_is_work(node))
		mask |= UINT64_C(1) << path_kind_of_work(node);
	if (!critical->counted.steps || is_steady_node(critical, node))
		mask |= mask << STEADY_SELECTIONS;
	mask |= mask_of_entry(&critical->nodes_by_id, node->owner);
	if (path_is_work(node))
		mask |= mask_of_entry(&critical->gpu_work, node->name);
	return mask;
}

/* The gain of an entry without avoidable time on the path is 0. */
static void set_entry_gains(struct path_entries *entries, const uint64_t *gains)
{
	for (size_t i = 0; i < entries->room; i++) {
		struct path_entry *of = &entries->of[i];

		if (of->selection)
			of->gain_ns = gains[of->selection - 1];
		else
			of->has_gain = of->has_slack && !avoidable_ns(&of->on);
	}
}

static void compute_gains(struct critical_path *critical)
{
	struct path_selection selection = { .count = ENTRY_SELECTIONS,
		.mask = mask_of_node,
		.slack = add_node_slack,
		.context = critical };
	uint64_t gains[SELECTIONS_MAX];

	choose_gains(&critical->nodes_by_id, &selection.count);
	choose_gains(&critical->gpu_work, &selection.count);
	critical_path_graph_gains(critical->path, 0, &selection, gains);
	memcpy(critical->kind_gains, gains, sizeof critical->kind_gains);
	memcpy(critical->steady_gains, gains + STEADY_SELECTIONS, sizeof critical->steady_gains);
	set_entry_gains(&critical->nodes_by_id, gains);
	set_entry_gains(&critical->gpu_work, gains);
}

static void sum_path(struct critical_path *critical)
{
	const struct profile_options *options = &critical->process->profile->options;
	const struct steps *steps = critical->process->steps;
	const struct critical_path_visitor visitor = { .context = critical,
		.segment = add_path_segment };

	critical->is_partial = options->steps || options->windows;
	critical->interval_count = activities_counted_intervals(
		critical->path->activities, &critical->intervals);
	critical->step_count = steps && !steps_overlap(steps) ? steps->count : 0;
	critical->steps = xcalloc((critical->step_count + 1) * sizeof *critical->steps);
	critical->interval = critical->interval_count;
	critical->counted = step_idle_begin(critical->process);
	find_step_reach(critical);
	critical_path_graph_walk(critical->path, &visitor);
	compute_gains(critical);
	critical_path_graph_drop(critical->path);
	add_unknown_ends(critical);
}

static void set_time_cells(
	struct computed_row *computed, const struct path_sum *sum, uint64_t whole_ns)
{
	computed_row_set_unsigned(computed, "path_ns", sum->total_ns);
	computed_row_set_share(computed, "share", sum->total_ns, whole_ns);
	computed_row_set_unsigned(computed, "path_gpu_ns", path_gpu_ns(sum));
	computed_row_set_unsigned(computed, "path_host_ns",
		sum->ns[PATH_HOST] + sum->ns[PATH_CALL] + sum->ns[PATH_COPY_CALL]);
	computed_row_set_unsigned(
		computed, "path_launch_ns", sum->ns[PATH_LAUNCH] + sum->ns[PATH_HANDOVER]);
	computed_row_set_unsigned(
		computed, "path_wait_ns", sum->ns[PATH_EVENT] + sum->ns[PATH_UNEXPLAINED]);
	computed_row_set_unsigned(computed, "path_sync_ns", sum->ns[PATH_SYNC]);
	computed_row_set_unsigned(computed, "path_unknown_ns", sum->ns[PATH_UNKNOWN]);
	computed_row_set_unsigned(computed, "path_segments", sum->segments);
}

/* Returns the time on the path that GPU work spent before it began. */
static uint64_t path_before_ns(const struct path_sum *sum)
{
	return sum->ns[PATH_LAUNCH] + sum->ns[PATH_HANDOVER] + sum->ns[PATH_EVENT] +
	       sum->ns[PATH_UNEXPLAINED] + sum->ns[PATH_UNKNOWN];
}

static void set_entry_cells(struct computed_row *computed, struct path_entry *of)
{
	computed_row_set_unsigned(computed, "calls", of->count);
	if (of->has_slack) {
		computed_row_set_unsigned(computed, "slack_min_ns", of->slack_min_ns);
		computed_row_set_unsigned(
			computed, "slack_p50_ns", percentiles_get(&of->slacks, 500));
	}
	if (of->has_gain)
		computed_row_set_unsigned(computed, "gain_ns", of->gain_ns);
}

/* Sets by how much the run gets shorter if all GPU work of a kind, or that in the steady-state
 * steps, takes no time: of kernels the verdict has that figure. No row of a part of that work has
 * more. Other kinds have none. */
static void set_gain_of_kind(
	struct computed_row *computed, const uint64_t *gains, enum path_kind kind)
{
	if (kind <= PATH_MEMSET)
		computed_row_set_unsigned(computed, "gain_ns", gains[kind]);
}

static void add_total_row(
	const struct options *options, struct critical_path *critical, struct rows *rows)
{
	const struct path_counts *counts = &critical->path->counts;
	struct computed_row *computed = computed_row_new(critical->process, 0, "path");
	const uint32_t head = (uint32_t)rows->count;

	computed_row_format_name(computed, "critical path");
	set_time_cells(computed, &critical->all, critical->all.total_ns);
	computed_row_set_unsigned(computed, "gain_ns", critical->kind_gains[GAIN_ALL]);
	computed_row_set_unsigned(computed, "waits", counts->waits);
	computed_row_set_unsigned(computed, "waits_unknown", counts->waits_unknown);
	computed_row_set_unsigned(computed, "stream_waits", counts->stream_waits);
	computed_row_set_unsigned(computed, "stream_waits_unknown", counts->stream_waits_unknown);
	computed_row_set_unsigned(computed, "default_waits", counts->default_waits);
	computed_row_set_unsigned(computed, "untimed", counts->untimed);
	rows_add(rows, &computed->row);
	for (int kind = 0; kind < PATH_KIND_COUNT; kind++) {
		if (!critical->kinds[kind].total_ns)
			continue;
		computed = computed_row_new(critical->process, 0, "part");
		computed_row_format_name(computed, "%s", path_kind_name((enum path_kind)kind));
		set_time_cells(computed, &critical->kinds[kind], critical->all.total_ns);
		set_gain_of_kind(computed, critical->kind_gains, (enum path_kind)kind);
		computed_row_add(rows, computed, head);
	}
	rows_finish_level(options, critical->process, rows, head + 1, 1, UINT32_MAX);
}

/* Adds the rows of the time that the verdict divides, if that is not the whole path. */
static void add_steady_rows(
	const struct options *options, struct critical_path *critical, struct rows *rows)
{
	const size_t steps = critical->counted.steps;
	struct computed_row *computed;
	const uint32_t head = (uint32_t)rows->count;

	if (critical->is_partial || !critical->steady.total_ns ||
		critical->steady.total_ns == critical->all.total_ns)
		return;
	computed = computed_row_new(critical->process, 0, "steady");
	if (steps == 1)
		computed_row_format_name(computed, "in 1 step");
	else if (steps)
		computed_row_format_name(computed, "in %zu steady-state steps", steps);
	else
		computed_row_format_name(computed, "from the first GPU operation to the last");
	set_time_cells(computed, &critical->steady, critical->steady.total_ns);
	rows_add(rows, &computed->row);
	for (int kind = 0; kind < PATH_KIND_COUNT; kind++) {
		if (!critical->steady_kinds[kind].total_ns)
			continue;
		computed = computed_row_new(critical->process, 0, "steady part");
		computed_row_format_name(computed, "%s", path_kind_name((enum path_kind)kind));
		set_time_cells(computed, &critical->steady_kinds[kind], critical->steady.total_ns);
		set_gain_of_kind(computed, critical->steady_gains, (enum path_kind)kind);
		computed_row_add(rows, computed, head);
	}
	rows_finish_level(options, critical->process, rows, head + 1, 1, UINT32_MAX);
}

static void add_step_row_of(
	struct critical_path *critical, struct rows *rows, uint64_t number, size_t i, uint32_t head)
{
	struct computed_row *computed = computed_row_new(critical->process, 0, "step");

	computed_row_format_name(computed, "step %llu", (unsigned long long)number);
	computed_row_set_unsigned(computed, "step", number);
	set_time_cells(computed, &critical->steps[i], critical->all.total_ns);
	computed_row_add(rows, computed, head);
}

static void add_step_rows(
	const struct options *options, struct critical_path *critical, struct rows *rows)
{
	const struct steps *steps = critical->process->steps;
	uint32_t head = NO_ROW;

	for (size_t i = 0; i < critical->step_count; i++) {
		if (!critical->steps[i].total_ns)
			continue;
		if (head == NO_ROW)
			head = computed_row_add_heading(critical->process, rows, "steps", "steps");
		add_step_row_of(critical, rows, steps->steps[i].number, i, head);
	}
	if (head != NO_ROW)
		rows_finish_level(options, critical->process, rows, head + 1, 1, view_top(options));
}

static void add_node_row(
	struct critical_path *critical, struct rows *rows, uint32_t node, uint32_t head)
{
	struct computed_row *computed = computed_row_new(critical->process, node, "place");

	if (!node)
		computed_row_format_name(computed, "(no range)");
	set_time_cells(computed, &critical->nodes_by_id.of[node].on, critical->all.total_ns);
	if (node)
		computed_row_set_unsigned(computed, "path_before_ns",
			path_before_ns(&critical->nodes_by_id.of[node].on));
	set_entry_cells(computed, &critical->nodes_by_id.of[node]);
	computed_row_add(rows, computed, head);
}

static void add_elsewhere_row(struct critical_path *critical, struct rows *rows, uint32_t head)
{
	struct computed_row *computed = computed_row_new(critical->process, 0, "place");

	computed_row_format_name(computed, "(launched in no step shown)");
	set_time_cells(computed, &critical->elsewhere, critical->all.total_ns);
	computed_row_add(rows, computed, head);
}

static void add_node_rows(
	const struct options *options, struct critical_path *critical, struct rows *rows)
{
	const uint32_t head = computed_row_add_heading(
		critical->process, rows, "call paths", "places");

	for (uint32_t node = 0; node < critical->nodes_by_id.room; node++) {
		const struct path_entry *of = &critical->nodes_by_id.of[node];

		if (of->count || of->on.total_ns)
			add_node_row(critical, rows, node, head);
	}
	if (critical->elsewhere.total_ns)
		add_elsewhere_row(critical, rows, head);
	rows_finish_level(options, critical->process, rows, head + 1, 1, view_top(options));
}

/* Sets the time of the operations themselves. What they waited before is apart, so that a fast
 * kernel that waited does not look slow. */
static void set_work_cells(const struct critical_path *critical, struct computed_row *computed,
	const struct path_sum *on)
{
	const uint64_t own_ns = path_gpu_ns(on);

	computed_row_set_unsigned(computed, "path_ns", own_ns);
	computed_row_set_share(computed, "share", own_ns, critical->all.total_ns);
	computed_row_set_unsigned(computed, "path_gpu_ns", own_ns);
	computed_row_set_unsigned(computed, "path_before_ns", path_before_ns(on));
}

static void add_gpu_work_row(
	struct critical_path *critical, struct rows *rows, uint32_t name, uint32_t head)
{
	const struct string_view text = string_table_get(critical->process->texts, name);
	struct computed_row *computed = computed_row_new(critical->process, 0, "work");

	computed_row_set_name(computed, text.bytes, text.length);
	set_work_cells(critical, computed, &critical->gpu_work.of[name].on);
	set_entry_cells(computed, &critical->gpu_work.of[name]);
	computed_row_add(rows, computed, head);
}

static void add_gpu_work_rows(
	const struct options *options, struct critical_path *critical, struct rows *rows)
{
	uint32_t head = NO_ROW;

	for (uint32_t name = 0; name < critical->gpu_work.room; name++) {
		if (!critical->gpu_work.of[name].count)
			continue;
		if (head == NO_ROW)
			head = computed_row_add_heading(
				critical->process, rows, "kernels and copies", "kernels");
		add_gpu_work_row(critical, rows, name, head);
	}
	if (head != NO_ROW)
		rows_finish_level(options, critical->process, rows, head + 1, 1, view_top(options));
}

static void critical_report_free(struct critical_path *critical)
{
	for (size_t i = 0; i < critical->nodes_by_id.room; i++)
		percentiles_free(&critical->nodes_by_id.of[i].slacks);
	for (size_t i = 0; i < critical->gpu_work.room; i++)
		percentiles_free(&critical->gpu_work.of[i].slacks);
	free(critical->nodes_by_id.of);
	free(critical->gpu_work.of);
	free(critical->steps);
	free(critical->step_reach);
	range_log_free(critical->ranges);
	critical_path_graph_free(critical->path);
	free(critical);
}

void critical_path_read_in(const struct options *options, struct shared_pass *pass)
{
	(void)options;
	if (pass->process->timeline)
		path_input_read_in(pass);
}

void arrange_critical_path(
	const struct options *options, struct process *process, struct rows *rows)
{
	struct critical_path *critical = xcalloc(sizeof *critical);
	struct path_input input;

	critical->process = process;
	input = path_input_take(process);
	critical->ranges = input.ranges;
	critical->path = critical_path_graph_read_from(process, input.activities);
	if (critical->path->last != PATH_NONE) {
		sum_path(critical);
		add_total_row(options, critical, rows);
		add_steady_rows(options, critical, rows);
		add_step_rows(options, critical, rows);
		add_node_rows(options, critical, rows);
		add_gpu_work_rows(options, critical, rows);
	}
	critical_report_free(critical);
}
