/* SPDX-License-Identifier: MIT
 *
 * Groups CUDA calls by name: count, time and failures. A name may be in pperf's call records and in
 * CUPTI's. Both describe the same calls, so only the more numerous ones are shown.
 */
#include "report/views/views.h"
#include "report/analysis/activities.h"
#include "report/base/alloc.h"
#include "report/table/computed_row.h"
#include <stdlib.h>
#include <string.h>

/* The calls of one name, from one kind of record. */
struct api_calls {
	struct percentiles samples;
	uint64_t count, failed, captured, total_ns, min_ns, max_ns;
	uint64_t longest_begin_ns;
	uint32_t longest_owner;
	uint8_t kind; /* enum activity_kind of the first call */
};

struct api_summary {
	struct api_calls *recorded, *reported; /* by string id of the name */
	size_t recorded_room, reported_room;
	struct percentiles_budget budget;
};

static struct api_calls *api_calls_of(struct api_summary *api, const struct activity *call)
{
	const bool recorded = activity_is_call(call);
	struct api_calls **of = recorded ? &api->recorded : &api->reported;

	array_grow_zeroed(of, recorded ? &api->recorded_room : &api->reported_room,
		(size_t)call->name + 1, sizeof **of);
	return &(*of)[call->name];
}

static void count_api_call(struct api_summary *api, const struct activity *call)
{
	struct api_calls *calls = api_calls_of(api, call);

	if (!calls->count++)
		calls->kind = call->kind;
	calls->failed += call->result != 0;
	calls->captured += call->captured;
	calls->total_ns += call->duration_ns;
	if (calls->count == 1 || call->duration_ns < calls->min_ns)
		calls->min_ns = call->duration_ns;
	if (calls->count == 1 || call->duration_ns > calls->max_ns) {
		calls->max_ns = call->duration_ns;
		calls->longest_begin_ns = call->begin_ns;
		calls->longest_owner = call->owner;
	}
	percentiles_add(&calls->samples, call->duration_ns, &api->budget);
}

static const char *call_kind_name(const struct api_calls *calls)
{
	static const char *const names[ACTIVITY_KINDS] = { [ACTIVITY_LAUNCH] = "launch",
		[ACTIVITY_GRAPH_LAUNCH] = "launch",
		[ACTIVITY_COPY_CALL] = "copy",
		[ACTIVITY_MEMSET_CALL] = "set",
		[ACTIVITY_ALLOC] = "alloc",
		[ACTIVITY_FREE] = "alloc",
		[ACTIVITY_WAIT] = "sync",
		[ACTIVITY_EVENT_RECORD] = "event",
		[ACTIVITY_STREAM_WAIT] = "event" };

	return names[calls->kind] ? names[calls->kind] : "api";
}

static struct computed_row *api_row(struct process *process, uint32_t name, struct api_calls *calls,
	uint64_t whole_ns, bool recorded)
{
	struct computed_row *computed = computed_row_new(
		process, calls->longest_owner, call_kind_name(calls));
	const struct string_view text = string_table_get(process->texts, name);

	if (text.length)
		computed_row_set_name(computed, text.bytes, text.length);
	else
		computed_row_format_name(computed, "(not named)");
	computed_row_set_string(computed, "timed_by", recorded ? "record" : "cupti");
	computed_row_set_unsigned(computed, "calls", calls->count);
	computed_row_set_unsigned(computed, "failed", calls->failed);
	computed_row_set_unsigned(computed, "captured", calls->captured);
	computed_row_set_unsigned(computed, "cpu_total_ns", calls->total_ns);
	computed_row_set_share(computed, "share", calls->total_ns, whole_ns);
	computed_row_set_share(
		computed, "wall_share", calls->total_ns, process->profile->totals.wall_ns);
	computed_row_set_unsigned(computed, "mean_ns", calls->total_ns / calls->count);
	computed_row_set_unsigned(computed, "min_ns", calls->min_ns);
	computed_row_set_unsigned(computed, "p50_ns", percentiles_get(&calls->samples, 500));
	computed_row_set_unsigned(computed, "p95_ns", percentiles_get(&calls->samples, 950));
	computed_row_set_unsigned(computed, "max_ns", calls->max_ns);
	computed_row_set_unsigned(computed, "start_ns", calls->longest_begin_ns);
	return computed;
}

/* Returns the calls that are shown for the string id `name`, or NULL if there are none. Sets
 * `recorded` if they are from pperf's call records. */
static struct api_calls *shown_calls(const struct api_summary *api, uint32_t name, bool *recorded)
{
	struct api_calls *own = name < api->recorded_room ? &api->recorded[name] : NULL,
			 *reported = name < api->reported_room ? &api->reported[name] : NULL;

	*recorded = own && own->count && (!reported || own->count >= reported->count);
	return *recorded ? own : reported && reported->count ? reported : NULL;
}

static void add_api_rows(const struct options *options, struct process *process, struct rows *rows,
	const struct api_summary *api)
{
	const size_t first = rows->count, names = api->recorded_room > api->reported_room
							  ? api->recorded_room
							  : api->reported_room;
	const struct column *sort = view_sort(options, process);
	uint64_t whole_ns = 0;
	struct api_calls *calls;
	bool recorded;

	for (uint32_t name = 0; name < names; name++)
		if ((calls = shown_calls(api, name, &recorded)))
			whole_ns += calls->total_ns;
	for (uint32_t name = 0; name < names; name++)
		if ((calls = shown_calls(api, name, &recorded)))
			rows_add(rows, &api_row(process, name, calls, whole_ns, recorded)->row);
	rows_sort(rows->rows + first, rows->count - first, sort);
	rows_prune(rows, first, sort, view_min_percent(options), view_top(options));
}

void arrange_api(const struct options *options, struct process *process, struct rows *rows)
{
	struct activities *activities = activities_read(process);
	struct api_summary api = { .recorded = NULL };
	const struct activity *one;

	for (activities_rewind(activities); (one = activities_first(activities));
		activities_next(activities))
		if ((activity_is_call(one) && one->counts) ||
			(one->kind == ACTIVITY_API &&
				activities_count_at(activities, one->begin_ns)))
			count_api_call(&api, one);
	add_api_rows(options, process, rows, &api);
	for (size_t i = 0; i < api.recorded_room; i++)
		percentiles_free(&api.recorded[i].samples);
	for (size_t i = 0; i < api.reported_room; i++)
		percentiles_free(&api.reported[i].samples);
	free(api.recorded);
	free(api.reported);
	activities_free(activities);
}
