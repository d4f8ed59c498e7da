/* SPDX-License-Identifier: MIT
 *
 * Lists the idle time of each GPU by cause and node: that of the call that blocked the thread, or
 * else that which launched the work at the end of the gap. The longest parts of gaps with one cause
 * have rows of their own. Sums in the steady-state steps are those of the verdict and the findings,
 * and of long gaps there is what the launching thread did meanwhile.
 */
#include "report/views/idle.h"
#include "report/base/compare.h"
#include "report/base/alloc.h"
#include "report/base/heap.h"
#include "report/analysis/first_wait.h"
#include "report/analysis/host_events.h"
#include "report/analysis/host_in_gaps.h"
#include "report/analysis/step_idle.h"
#include "report/table/computed_row.h"
#include "report/views/idle_functions.h"
#include "report/text/format_number.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LONGEST_DEFAULT 10u /* gaps with a row of their own, without --top */
#define LONGEST_MAX 65536u
#define FUNCTIONS_DEFAULT 3u /* sampled functions with a row of their own, without --top */
/* What the host did in launch-bound parts of STEP_IDLE_LONG_NS or more is read in a pass of its
 * own, if they are one in LONG_GAPS_SHARE of the idle time. */
#define LONG_GAPS_SHARE 20u

#define NEGLIGIBLE_NS 1000u /* text leaves out shorter gaps */

struct gap_sum {
	uint64_t count, total_ns, longest_ns;
};

/* The gaps of one cause, by node. */
struct cause_gap_sums {
	struct gap_sum all;
	struct gap_sum *of;
	size_t room;
};

struct idle_device {
	uint32_t device;
	struct gap_sum all;
	struct cause_gap_sums causes[IDLE_CAUSES];
};

/* A part of a gap with a row of its own. */
struct long_gap {
	struct gap_part gap;
	uint64_t length_ns;
	struct activity ended_by;
};

struct idle_report {
	struct process *process;
	struct idle_device devices[TIMELINE_DEVICES];
	struct long_gap *longest; /* a heap, the shortest gap on top */
	size_t device_count, long_count, long_room, long_max;
	uint64_t total_ns;
	bool is_text;
	struct step_idle steps;
	struct host_in_gaps *host;
	struct first_wait first_waits[TIMELINE_DEVICES];
	size_t first_wait_count;
};

/* Returns true if `a` is longer than `b`, or equally long and earlier. */
static bool is_longer(const struct long_gap *a, const struct long_gap *b)
{
	if (a->length_ns != b->length_ns)
		return a->length_ns > b->length_ns;
	if (a->gap.begin_ns != b->gap.begin_ns)
		return a->gap.begin_ns < b->gap.begin_ns;
	return a->ended_by.arrival < b->ended_by.arrival;
}

static bool is_shorter(const struct long_gap *a, const struct long_gap *b)
{
	return is_longer(b, a);
}

DEFINE_HEAP(longest, struct long_gap, is_shorter)

static void keep_if_long(struct idle_report *idle, const struct long_gap *one)
{
	if (idle->long_count < idle->long_max) {
		ARRAY_GROW(idle->longest, idle->long_room, idle->long_count + 1);
		longest_up(idle->longest, idle->long_count++, *one);
	} else if (idle->long_max && is_longer(one, &idle->longest[0])) {
		longest_down(idle->longest, idle->long_count, *one);
	}
}

static void count_gap(struct gap_sum *gaps, uint64_t length_ns)
{
	gaps->count++;
	gaps->total_ns += length_ns;
	if (length_ns > gaps->longest_ns)
		gaps->longest_ns = length_ns;
}

/* Returns true if not all of a part is idle time: GPU work may be missing from the trace there. */
static bool has_unknown_time(const struct idle_part *part)
{
	const uint64_t whole_ns = part->part.end_ns - part->part.begin_ns;

	return part->length_ns < whole_ns - whole_ns / 1000;
}

void idle_report_add(void *context, const struct idle_part *part)
{
	struct idle_report *idle = context;
	const struct activity *work = part->ended_by;
	const uint32_t node = idle_part_node(&part->part, work);
	struct idle_device *device = device_slot(
		idle->devices, &idle->device_count, sizeof *idle->devices, work->device);
	struct cause_gap_sums *owners =
		&device->causes[idle_cause(part->part.cause, part->length_ns)];

	ARRAY_GROW(owners->of, owners->room, (size_t)node + 1);
	count_gap(&owners->of[node], part->length_ns);
	count_gap(&owners->all, part->length_ns);
	if (part->gap_ns)
		count_gap(&device->all, part->gap_ns);
	idle->total_ns += part->length_ns;
	step_idle_add(&idle->steps, part);
	if (part->part.cause == GAP_LAUNCH && part->length_ns >= STEP_IDLE_LONG_NS &&
		work->has_call && !has_unknown_time(part))
		host_in_gaps_add(idle->host, work->tid, part->part.begin_ns, part->part.end_ns);
	keep_if_long(
		idle, &(struct long_gap){
			      .gap = part->part, .length_ns = part->length_ns, .ended_by = *work });
}

/* Makes a row for each device, also for one that was never idle. */
static void find_devices(struct idle_report *idle)
{
	const struct timeline_device *devices;
	const size_t count = timeline_devices(idle->process->profile->timeline, &devices);

	for (size_t i = 0; i < count; i++)
		device_slot(idle->devices, &idle->device_count, sizeof *idle->devices,
			devices[i].device);
}

static bool is_partial(const struct idle_report *idle)
{
	const struct profile_options *options = &idle->process->profile->options;

	return options->steps || options->windows;
}

/* Returns the time of all GPUs from the first operation of each to its last. 0: unknown. */
static uint64_t span_of_devices(const struct idle_report *idle)
{
	const struct profile_totals *totals = &idle->process->profile->totals;

	return is_partial(idle)
		       ? 0
		       : totals->gpu_busy_ns + totals->gpu_idle_ns + totals->gpu_unknown_ns;
}

/* Text has one share of time for each cause: of the steady-state steps, if there are any. */
static void set_shares(const struct idle_report *idle, struct computed_row *computed, uint64_t ns)
{
	computed_row_set_share(computed, "share", min_u64(ns, idle->total_ns), idle->total_ns);
	if (!idle->is_text || !idle->steps.steps)
		computed_row_set_share(computed, "time_share", ns, span_of_devices(idle));
}

static void set_gap_cells(
	const struct idle_report *idle, struct computed_row *computed, const struct gap_sum *gaps)
{
	computed_row_set_unsigned(computed, "gap_ns", gaps->total_ns);
	set_shares(idle, computed, gaps->total_ns);
	computed_row_set_unsigned(computed, "gaps", gaps->count);
	computed_row_set_unsigned(computed, "gap_max_ns", gaps->longest_ns);
}

static struct computed_row *gap_row(const struct idle_report *idle, uint32_t node, const char *kind,
	uint32_t device, const struct gap_sum *gaps)
{
	struct computed_row *computed = computed_row_new(idle->process, node, kind);

	computed_row_set_unsigned(computed, "device", device);
	set_gap_cells(idle, computed, gaps);
	return computed;
}

/* Returns true if a share is printed as 0.0 %. */
static bool is_no_share(uint64_t ns, uint64_t whole_ns)
{
	return whole_ns && (long double)ns * 2000 < (long double)whole_ns;
}

/* Returns true if text leaves out idle time: it would be printed as 0.0 % of all idle time, and so
 * of all time, or is below --min-percent and shorter than NEGLIGIBLE_NS. */
static bool is_negligible(
	const struct options *options, const struct idle_report *idle, uint64_t ns)
{
	const double percent = idle->is_text ? view_min_percent(options) : 0;

	return percent > 0 &&
	       (is_no_share(ns, idle->total_ns) ||
		       (ns < NEGLIGIBLE_NS && (double)ns * 100 < (double)idle->total_ns * percent));
}

static void add_cause_rows(const struct options *options, struct idle_report *idle,
	struct rows *rows, const struct idle_device *device, unsigned cause, uint32_t parent)
{
	const struct cause_gap_sums *owners = &device->causes[cause];
	struct computed_row *computed = gap_row(idle, 0, "cause", device->device, &owners->all);
	uint32_t own;

	computed_row_format_name(computed, "%s", idle_cause_name(cause));
	computed_row_set_string(computed, "cause", idle_cause_name(cause));
	own = computed_row_add(rows, computed, parent);
	for (uint32_t node = 0; node < owners->room; node++) {
		if (!owners->of[node].count)
			continue;
		if (is_negligible(options, idle, owners->of[node].total_ns)) {
			rows->hidden_by_percent++;
			continue;
		}
		computed = gap_row(idle, node, "place", device->device, &owners->of[node]);
		computed_row_set_string(computed, "cause", idle_cause_name(cause));
		computed_row_add(rows, computed, own);
	}
	rows_finish_level(options, idle->process, rows, own + 1, 2, view_top(options));
}

/* Returns the cause with the most idle time of those not yet listed. */
static unsigned largest_cause(const struct idle_device *device, const bool *listed)
{
	int most = -1;

	for (int cause = 0; cause < (int)IDLE_CAUSES; cause++)
		if (!listed[cause] && (most < 0 || device->causes[cause].all.total_ns >
							   device->causes[most].all.total_ns))
			most = cause;
	return (unsigned)most;
}

/* Returns the unknown time of a device. 0 with --steps, where only the total is known. */
static uint64_t unknown_time_of(const struct idle_report *idle, uint32_t device)
{
	const struct profile *profile = idle->process->profile;
	const struct timeline_device *devices;
	const size_t count = timeline_devices(profile->timeline, &devices);

	for (size_t i = 0; i < count && !profile->options.steps && !profile->options.windows; i++)
		if (devices[i].device == device)
			return devices[i].unknown_ns;
	return 0;
}

/* Adds a row of the time in which it is unknown whether the device was busy. It is no idle time, so
 * it has no part in the gaps. */
static void add_unknown_row(struct idle_report *idle, struct rows *rows, uint32_t device,
	uint64_t unknown_ns, uint32_t parent)
{
	struct computed_row *computed = computed_row_new(idle->process, 0, "unknown");

	computed_row_format_name(computed, "unknown (busy or idle)");
	computed_row_set_unsigned(computed, "device", device);
	computed_row_set_unsigned(computed, "unknown_ns", unknown_ns);
	if (!idle->is_text || !idle->steps.steps)
		computed_row_set_share(computed, "time_share", unknown_ns, span_of_devices(idle));
	computed_row_add(rows, computed, parent);
}

/* Adds a row of the time for which the first operation of the device waited after its launch. It is
 * before the span of the device, so it has no part in the gaps. */
static void add_first_wait_row(
	struct idle_report *idle, struct rows *rows, uint32_t device, uint32_t parent)
{
	for (size_t i = 0; i < idle->first_wait_count; i++) {
		const struct first_wait *wait = &idle->first_waits[i];
		struct computed_row *computed;

		if (wait->work.device != device)
			continue;
		computed = computed_row_new(idle->process, wait->work.owner, "before");
		computed_row_format_name(
			computed, "before the first operation, after its launch (busy or idle)");
		computed->launch_stack = wait->work.stack;
		computed_row_set_unsigned(computed, "device", device);
		computed_row_set_unsigned(
			computed, "unknown_ns", wait->work.begin_ns - wait->begin_ns);
		computed_row_set_unsigned(computed, "start_ns", wait->begin_ns);
		computed_row_set_unsigned(computed, "thread", wait->work.tid);
		computed_row_set_unsigned(computed, "stream", wait->work.stream);
		computed_row_add(rows, computed, parent);
	}
}

static void add_idle_device(const struct options *options, struct idle_report *idle,
	struct rows *rows, const struct idle_device *device)
{
	struct computed_row *computed = gap_row(idle, 0, "device", device->device, &device->all);
	const uint32_t parent = (uint32_t)rows->count;
	const uint64_t unknown_ns = unknown_time_of(idle, device->device);
	bool listed[IDLE_CAUSES] = { false };

	computed_row_format_name(computed, "device %u", device->device);
	if (unknown_ns)
		computed_row_set_unsigned(computed, "unknown_ns", unknown_ns);
	computed_row_add(rows, computed, NO_ROW);
	for (int pass = 0; pass < (int)IDLE_CAUSES && options->depth > 1; pass++) {
		const unsigned most = largest_cause(device, listed);

		listed[most] = true;
		if (device->causes[most].all.count)
			add_cause_rows(options, idle, rows, device, most, parent);
	}
	if (unknown_ns && options->depth > 1)
		add_unknown_row(idle, rows, device->device, unknown_ns, parent);
	if (options->depth > 1)
		add_first_wait_row(idle, rows, device->device, parent);
}

/* Adds a row of the sums in steps. `gaps` 0: their number is not counted. */
static uint32_t add_step_row(const struct idle_report *idle, struct rows *rows, const char *kind,
	const char *name, uint64_t ns, uint64_t gaps, uint32_t parent)
{
	const struct step_idle *steps = &idle->steps;
	struct computed_row *computed = computed_row_new(idle->process, 0, kind);

	computed_row_format_name(computed, "%s", name);
	computed_row_set_unsigned(computed, "gap_ns", ns);
	computed_row_set_share(computed, "time_share", ns,
		steps->steps ? steps->steps_ns * steps->devices : span_of_devices(idle));
	if (gaps)
		computed_row_set_unsigned(computed, "gaps", gaps);
	return computed_row_add(rows, computed, parent);
}

static void add_step_part(const struct idle_report *idle, struct rows *rows, const char *name,
	uint64_t ns, uint64_t gaps, uint32_t parent)
{
	if (ns)
		add_step_row(idle, rows, "part", name, ns, gaps, parent);
}

/* Returns the time of a cause in steps. Launch latency is part of the first cause, as the finding
 * about it has both. */
static uint64_t class_ns(const struct step_idle *steps, enum gap_cause cause)
{
	return cause == GAP_LATENCY ? 0
				    : steps->ns[cause] + steps->ends_ns[cause] +
					      (cause == GAP_LAUNCH ? steps->ns[GAP_LATENCY] : 0);
}

/* Returns the cause with the most time in steps of those not yet listed. */
static enum gap_cause largest_class(const struct step_idle *steps, const bool *listed)
{
	int most = -1;

	for (int cause = 0; cause < GAP_CAUSE_COUNT; cause++)
		if (!listed[cause] && (most < 0 || class_ns(steps, (enum gap_cause)cause) >
							   class_ns(steps, (enum gap_cause)most)))
			most = cause;
	return (enum gap_cause)most;
}

/* Adds the row of a cause, with the parts of it: gaps, and time of steps without work. */
static void add_step_class(const struct idle_report *idle, const struct options *options,
	struct rows *rows, enum gap_cause cause, uint32_t parent)
{
	const struct step_idle *steps = &idle->steps;
	const bool late = cause == GAP_LAUNCH;
	const uint64_t latency_ns = late ? steps->ns[GAP_LATENCY] : 0, ns = class_ns(steps, cause),
		       host_ns = late ? steps->long_launch_ns : 0,
		       host_gaps = late ? steps->long_launch_gaps : 0;
	uint32_t own;

	if (!ns)
		return;
	own = add_step_row(idle, rows, "class", late ? STEP_IDLE_LATE_NAME : gap_cause_name(cause),
		ns, 0, parent);
	if ((!late && !steps->ends_ns[cause]) || options->depth <= 2)
		return;
	add_step_part(idle, rows, late ? gap_cause_name(cause) : "between operations",
		steps->ns[cause] - host_ns, steps->gaps[cause] - host_gaps, own);
	add_step_part(idle, rows, IDLE_HOST_NAME, host_ns, host_gaps, own);
	add_step_part(
		idle, rows, gap_cause_name(GAP_LATENCY), latency_ns, steps->gaps[GAP_LATENCY], own);
	add_step_part(idle, rows, "before the first operation or after the last",
		steps->ends_ns[cause], 0, own);
}

/* Adds the sums that the verdict and the findings of `diagnose` name. */
static void add_step_sums(
	const struct options *options, const struct idle_report *idle, struct rows *rows)
{
	const struct step_idle *steps = &idle->steps;
	char name[128] = "from the first operation to the last", time[FORMAT_NUMBER_BYTES];
	bool listed[GAP_CAUSE_COUNT] = { false };
	uint64_t whole_ns = 0;
	uint32_t parent;

	for (int cause = 0; cause < GAP_CAUSE_COUNT; cause++)
		whole_ns += steps->ns[cause] + steps->ends_ns[cause];
	if (!whole_ns)
		return;
	format_with_unit(time, UNIT_TIME,
		clamp_to_i64((long double)steps->steps_ns * steps->devices), false,
		options->style.ascii);
	if (steps->steps == 1)
		snprintf(name, sizeof name, "in 1 step, %s", time);
	else if (steps->steps)
		snprintf(name, sizeof name, "in %zu steady-state steps, %s", steps->steps, time);
	parent = add_step_row(idle, rows, "steps", name, whole_ns, 0, NO_ROW);
	for (int pass = 0; pass < GAP_CAUSE_COUNT && options->depth > 1; pass++) {
		const enum gap_cause most = largest_class(steps, listed);

		listed[most] = true;
		add_step_class(idle, options, rows, most, parent);
	}
}

static void add_host_row(
	const struct idle_report *idle, struct rows *rows, uint32_t node, const struct gap_sum *sum)
{
	struct computed_row *computed = computed_row_new(idle->process, node, "host");

	if (!node)
		computed_row_format_name(computed, "(in no recorded range or call)");
	computed_row_set_unsigned(computed, "gap_ns", sum->total_ns);
	set_shares(idle, computed, sum->total_ns);
	if (node < idle->host->room)
		idle_set_samples(computed, idle->host, idle->host->nodes[node].samples);
	computed_row_add(rows, computed, NO_ROW);
}

/* Moves the rows of `host` below the row `parent`, each with the functions that were sampled in
 * it. */
static void add_host_rows(const struct options *options, const struct idle_report *idle,
	struct rows *host, struct rows *rows, uint32_t parent)
{
	const uint32_t top = options->top ? options->top : FUNCTIONS_DEFAULT;

	for (size_t i = 0; i < host->count; i++) {
		const uint32_t own = computed_row_add(
			rows, (struct computed_row *)host->rows[i].of.computed, parent);

		if (options->depth > 2)
			idle_add_functions(rows, idle->host, host->rows[i].node, top, own);
	}
	rows->hidden_by_percent += host->hidden_by_percent;
	rows->hidden_by_depth += host->hidden_by_depth;
	rows->hidden_by_top += host->hidden_by_top;
	free(host->rows);
}

/* Adds what the launching threads did in long gaps. */
static void add_host_in_gaps(
	const struct options *options, struct idle_report *idle, struct rows *rows)
{
	struct host_in_gaps *host = idle->host;
	const struct gap_sum all = { host->gaps, host->total_ns, host->longest_ns };
	struct rows level = { .count = 0 };
	struct computed_row *computed;
	uint32_t parent;

	if (host->total_ns < idle->total_ns / LONG_GAPS_SHARE || !host->gaps || is_partial(idle))
		return;
	host_in_gaps_read(host);
	computed = computed_row_new(idle->process, 0, "meanwhile");
	computed_row_format_name(computed, IDLE_HOST_NAME ": the thread was in");
	set_gap_cells(idle, computed, &all);
	idle_set_samples(computed, host, host->samples);
	parent = computed_row_add(rows, computed, NO_ROW);
	if (options->depth <= 1)
		return;
	for (uint32_t node = 1; node < host->room; node++)
		if (host->nodes[node].self_ns)
			add_host_row(idle, &level, node,
				&(struct gap_sum){ .total_ns = host->nodes[node].self_ns });
	if (host->total_ns > host->covered_ns)
		add_host_row(idle, &level, 0,
			&(struct gap_sum){ .total_ns = host->total_ns - host->covered_ns });
	rows_finish_level(options, idle->process, &level, 0, 1, view_top(options));
	add_host_rows(options, idle, &level, rows, parent);
}

static int longest_first(const void *a, const void *b)
{
	return is_longer(a, b) ? -1 : 1;
}

static void set_gap_names(struct computed_row *computed, const struct long_gap *one)
{
	const struct string_table *texts = computed->row.process->texts;
	const struct string_view work = string_table_get(texts, one->ended_by.name),
				 call = string_table_get(texts, one->gap.blocked_by),
				 host = string_table_get(texts, one->gap.host_call);

	computed_row_set_text(computed, "ended_by", work.bytes, work.length);
	if (one->gap.blocked_by)
		computed_row_set_text(computed, "blocked_by", call.bytes, call.length);
	if (one->gap.host_call)
		computed_row_set_text(computed, "host_call", host.bytes, host.length);
}

static uint32_t name_of_node(const struct idle_report *idle, uint32_t node)
{
	return idle->process->profile->tree->nodes[node].name;
}

static struct computed_row *long_gap_row(const struct idle_report *idle, const struct long_gap *one)
{
	struct computed_row *computed = computed_row_new(
		idle->process, idle_part_node(&one->gap, &one->ended_by), "gap");

	computed->next_operation = one->ended_by.name;
	computed->launch_stack = one->ended_by.stack;
	if (one->gap.blocked_owner &&
		one->gap.blocked_by != name_of_node(idle, one->gap.blocked_owner))
		computed->last_call = one->gap.blocked_by;
	computed_row_set_string(
		computed, "cause", idle_cause_name(idle_cause(one->gap.cause, one->length_ns)));
	computed_row_set_unsigned(computed, "device", one->ended_by.device);
	computed_row_set_unsigned(computed, "gap_ns", one->length_ns);
	set_shares(idle, computed, one->length_ns);
	computed_row_set_unsigned(computed, "start_ns", one->gap.begin_ns);
	if (one->ended_by.has_call)
		computed_row_set_unsigned(computed, "thread", one->ended_by.tid);
	set_gap_names(computed, one);
	if (one->gap.event)
		computed_row_set_string(
			computed, "waits_for", gap_event_name((enum gap_event)one->gap.event));
	computed_row_set_unsigned(computed, "stream", one->ended_by.stream);
	return computed;
}

/* Returns true if text has no row for a gap. The longest one has a row, and so has each that the
 * user requested. */
static bool is_gap_left_out(
	const struct options *options, const struct idle_report *idle, size_t number)
{
	const uint64_t ns = idle->longest[number].length_ns;

	return number && !options->top &&
	       (is_negligible(options, idle, ns) ||
		       (idle->is_text && view_min_percent(options) > 0 &&
			       is_no_share(ns, span_of_devices(idle))));
}

static void add_longest_gaps(
	const struct options *options, struct idle_report *idle, struct rows *rows)
{
	const uint32_t parent = computed_row_add_heading(
		idle->process, rows, "longest parts", "gaps");

	qsort(idle->longest, idle->long_count, sizeof *idle->longest, longest_first);
	for (size_t i = 0; i < idle->long_count && options->depth > 1; i++)
		if (is_gap_left_out(options, idle, i))
			rows->hidden_by_percent++;
		else
			computed_row_add(rows, long_gap_row(idle, &idle->longest[i]), parent);
}

void idle_report_free(struct idle_report *idle)
{
	for (size_t i = 0; i < idle->device_count; i++)
		for (unsigned cause = 0; cause < IDLE_CAUSES; cause++)
			free(idle->devices[i].causes[cause].of);
	free(idle->longest);
	host_in_gaps_free(idle->host);
	free(idle);
}

static size_t longest_gaps_wanted(const struct options *options)
{
	return options->top ? min_u64(options->top, LONGEST_MAX) : LONGEST_DEFAULT;
}

/* Reads the activities, among which first calls are found, too, and what the host did meanwhile. */
static void read_idle(struct process *process)
{
	struct shared_pass pass = { .process = process };

	host_events_keep_in(&pass);
	activities_keep_without_launches_in(&pass);
	shared_pass_run(&pass);
}

void idle_read_in(const struct options *options, struct shared_pass *pass)
{
	(void)options;
	if (!pass->process->timeline)
		return;
	host_events_keep_in(pass);
	activities_keep_without_launches_in(pass);
}

struct idle_report *idle_report_begin(
	const struct options *options, struct process *process, struct activities *activities)
{
	struct idle_report *idle = xcalloc(sizeof *idle);

	idle->process = process;
	idle->is_text = options->format == FORMAT_TEXT;
	idle->long_max = longest_gaps_wanted(options);
	idle->steps = step_idle_begin(process);
	idle->host = host_in_gaps_new(process);
	find_devices(idle);
	idle->first_wait_count = first_waits_find(process, activities, idle->first_waits);
	return idle;
}

struct activity_visitor idle_report_ends(struct idle_report *idle)
{
	return step_idle_ends_begin(&idle->steps, idle->process);
}

void idle_report_add_rows(
	const struct options *options, struct idle_report *idle, struct rows *rows)
{
	qsort(idle->devices, idle->device_count, sizeof *idle->devices, compare_u32);
	for (size_t i = 0; i < idle->device_count; i++)
		add_idle_device(options, idle, rows, &idle->devices[i]);
	add_step_sums(options, idle, rows);
	add_host_in_gaps(options, idle, rows);
	if (idle->long_count)
		add_longest_gaps(options, idle, rows);
}

void arrange_idle(const struct options *options, struct process *process, struct rows *rows)
{
	struct activity_visitor visitors[2];
	struct activities *activities;
	struct idle_report *idle;

	read_idle(process);
	activities = activities_read_without_launches(process);
	idle = idle_report_begin(options, process, activities);
	visitors[0] = idle_parts_begin(process, activities, idle_report_add, idle);
	visitors[1] = idle_report_ends(idle);
	activities_visit(activities, visitors, 2);
	idle_report_add_rows(options, idle, rows);
	idle_report_free(idle);
}
