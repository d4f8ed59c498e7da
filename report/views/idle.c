/* SPDX-License-Identifier: MIT
 *
 * Lists the idle time of each GPU by cause and node: that of the call that blocked the thread, or
 * else that which launched the work at the end of the gap. The longest parts of gaps with one cause
 * have rows of their own.
 */
#include "report/views/views.h"
#include "report/base/compare.h"
#include "report/base/alloc.h"
#include "report/base/heap.h"
#include "report/analysis/idle_parts.h"
#include "report/table/computed_row.h"
#include <stdlib.h>
#include <string.h>

#define LONGEST_DEFAULT 10u /* gaps with a row of their own, without --top */
#define LONGEST_MAX 65536u

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
	struct cause_gap_sums causes[GAP_CAUSE_COUNT];
};

/* A part of a gap with a row of its own. */
struct long_gap {
	struct gap_part gap;
	uint64_t length_ns;
	struct activity ended_by;
};

struct idle_report {
	struct process *process;
	struct activities *activities;
	struct idle_device devices[TIMELINE_DEVICES];
	struct long_gap *longest; /* a heap, the shortest gap on top */
	size_t device_count, long_count, long_room, long_max;
	uint64_t total_ns;
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

/* The node of a part of a gap. The work that ended the gap did not cause a wait before its launch:
 * the call did. */
static uint32_t part_node(const struct gap_part *part, const struct activity *work)
{
	return part->blocked_owner ? part->blocked_owner : work->owner;
}

static void add_idle_part(void *context, const struct idle_part *part)
{
	struct idle_report *idle = context;
	const struct activity *work = part->ended_by;
	const uint32_t node = part_node(&part->part, work);
	struct idle_device *device = device_slot(
		idle->devices, &idle->device_count, sizeof *idle->devices, work->device);
	struct cause_gap_sums *owners = &device->causes[part->part.cause];

	ARRAY_GROW(owners->of, owners->room, (size_t)node + 1);
	count_gap(&owners->of[node], part->length_ns);
	count_gap(&owners->all, part->length_ns);
	if (part->gap_ns)
		count_gap(&device->all, part->gap_ns);
	idle->total_ns += part->length_ns;
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

static void set_gap_cells(
	struct computed_row *computed, const struct gap_sum *gaps, uint64_t whole_ns)
{
	computed_row_set_unsigned(computed, "gap_ns", gaps->total_ns);
	computed_row_set_share(computed, "share", gaps->total_ns, whole_ns);
	computed_row_set_unsigned(computed, "gaps", gaps->count);
	computed_row_set_unsigned(computed, "gap_max_ns", gaps->longest_ns);
}

static struct computed_row *gap_row(const struct idle_report *idle, uint32_t node, const char *kind,
	uint32_t device, const struct gap_sum *gaps)
{
	struct computed_row *computed = computed_row_new(idle->process, node, kind);

	computed_row_set_unsigned(computed, "device", device);
	set_gap_cells(computed, gaps, idle->total_ns);
	return computed;
}

static void add_cause_rows(const struct options *options, struct idle_report *idle,
	struct rows *rows, const struct idle_device *device, enum gap_cause cause, uint32_t parent)
{
	const struct cause_gap_sums *owners = &device->causes[cause];
	struct computed_row *computed = gap_row(idle, 0, "cause", device->device, &owners->all);
	uint32_t own;

	computed_row_format_name(computed, "%s", gap_cause_name(cause));
	computed_row_set_string(computed, "cause", gap_cause_name(cause));
	own = computed_row_add(rows, computed, parent);
	for (uint32_t node = 0; node < owners->room; node++) {
		if (!owners->of[node].count)
			continue;
		computed = gap_row(idle, node, "place", device->device, &owners->of[node]);
		computed_row_set_string(computed, "cause", gap_cause_name(cause));
		computed_row_add(rows, computed, own);
	}
	rows_finish_level(options, idle->process, rows, own + 1, 2, view_top(options));
}

/* Returns the cause with the most idle time of those not yet listed. */
static enum gap_cause largest_cause(const struct idle_device *device, const bool *listed)
{
	int most = -1;

	for (int cause = 0; cause < GAP_CAUSE_COUNT; cause++)
		if (!listed[cause] && (most < 0 || device->causes[cause].all.total_ns >
							   device->causes[most].all.total_ns))
			most = cause;
	return (enum gap_cause)most;
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

static void add_idle_device(const struct options *options, struct idle_report *idle,
	struct rows *rows, const struct idle_device *device)
{
	struct computed_row *computed = gap_row(idle, 0, "device", device->device, &device->all);
	const uint32_t parent = (uint32_t)rows->count;
	const uint64_t unknown_ns = unknown_time_of(idle, device->device);
	bool listed[GAP_CAUSE_COUNT] = { false };

	computed_row_format_name(computed, "device %u", device->device);
	if (unknown_ns)
		computed_row_set_unsigned(computed, "unknown_ns", unknown_ns);
	computed_row_add(rows, computed, NO_ROW);
	for (int pass = 0; pass < GAP_CAUSE_COUNT && options->depth > 1; pass++) {
		const enum gap_cause most = largest_cause(device, listed);

		listed[most] = true;
		if (device->causes[most].all.count)
			add_cause_rows(options, idle, rows, device, most, parent);
	}
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

static struct computed_row *long_gap_row(const struct idle_report *idle, const struct long_gap *one)
{
	struct computed_row *computed = computed_row_new(
		idle->process, part_node(&one->gap, &one->ended_by), "gap");

	computed_row_set_string(computed, "cause", gap_cause_name(one->gap.cause));
	computed_row_set_unsigned(computed, "device", one->ended_by.device);
	computed_row_set_unsigned(computed, "gap_ns", one->length_ns);
	computed_row_set_share(computed, "share", one->length_ns, idle->total_ns);
	computed_row_set_unsigned(computed, "start_ns", one->gap.begin_ns);
	if (one->ended_by.has_call)
		computed_row_set_unsigned(computed, "thread", one->ended_by.tid);
	set_gap_names(computed, one);
	return computed;
}

static void add_longest_gaps(
	const struct options *options, struct idle_report *idle, struct rows *rows)
{
	const uint32_t parent = computed_row_add_heading(idle->process, rows, "longest", "gaps");

	qsort(idle->longest, idle->long_count, sizeof *idle->longest, longest_first);
	for (size_t i = 0; i < idle->long_count && options->depth > 1; i++)
		computed_row_add(rows, long_gap_row(idle, &idle->longest[i]), parent);
}

static void idle_report_free(struct idle_report *idle)
{
	for (size_t i = 0; i < idle->device_count; i++)
		for (int cause = 0; cause < GAP_CAUSE_COUNT; cause++)
			free(idle->devices[i].causes[cause].of);
	free(idle->longest);
	activities_free(idle->activities);
	free(idle);
}

static size_t longest_gaps_wanted(const struct options *options)
{
	return options->top ? min_u64(options->top, LONGEST_MAX) : LONGEST_DEFAULT;
}

void arrange_idle(const struct options *options, struct process *process, struct rows *rows)
{
	struct idle_report *idle = xcalloc(sizeof *idle);

	idle->process = process;
	idle->long_max = longest_gaps_wanted(options);
	idle->activities = activities_read(process);
	find_devices(idle);
	idle_parts_visit(process, idle->activities, add_idle_part, idle);
	qsort(idle->devices, idle->device_count, sizeof *idle->devices, compare_u32);
	for (size_t i = 0; i < idle->device_count; i++)
		add_idle_device(options, idle, rows, &idle->devices[i]);
	if (idle->long_count)
		add_longest_gaps(options, idle, rows);
	idle_report_free(idle);
}
