/* SPDX-License-Identifier: MIT
 * arrange_api.c: the calls to CUDA by name: how many, how long, how many failed. Of a name that both the call records and
 * CUPTI's have, those are taken of which there are more: they are the same calls.
 */
#include "report/views/views.h"
#include "report/analysis/activities.h"
#include "report/base/alloc.h"
#include "report/table/computed_row.h"
#include <stdlib.h>
#include <string.h>

/* The calls of one name, as one kind of record has them. */
struct calls {
	struct samples samples;
	uint64_t count, failed, captured, total_ns, min_ns, max_ns;
	uint64_t longest_begin_ns;
	uint32_t longest_owner;
	uint8_t kind; /* enum activity_kind, of the first */
};

struct api {
	struct calls *recorded, *told; /* by text */
	size_t recorded_room, told_room;
	struct samples_budget budget;
};

static struct calls *calls_of(struct api *api, const struct activity *call)
{
	const bool recorded = activity_is_call(call);
	struct calls **of = recorded ? &api->recorded : &api->told;

	grow(of, recorded ? &api->recorded_room : &api->told_room, (size_t)call->name + 1, sizeof **of);
	return &(*of)[call->name];
}

static void add(struct api *api, const struct activity *call)
{
	struct calls *calls = calls_of(api, call);

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
	samples_add(&calls->samples, call->duration_ns, &api->budget);
}

static const char *kind_name(const struct calls *calls)
{
	switch (calls->kind) {
	case ACTIVITY_LAUNCH:
	case ACTIVITY_GRAPH_LAUNCH:
		return "launch";
	case ACTIVITY_COPY_CALL:
		return "copy";
	case ACTIVITY_SET_CALL:
		return "set";
	case ACTIVITY_ALLOC:
	case ACTIVITY_FREE:
		return "alloc";
	case ACTIVITY_WAIT:
		return "sync";
	case ACTIVITY_EVENT_RECORD:
	case ACTIVITY_STREAM_WAIT:
		return "event";
	default:
		return "api";
	}
}

static struct tally *tell(
	struct process *process, uint32_t name, struct calls *calls, uint64_t whole_ns, bool recorded)
{
	struct tally *tally = tally_new(process, calls->longest_owner);
	const struct text text = text_of(process->texts, name);

	if (text.length)
		tally_name(tally, text.bytes, text.length);
	else
		tally_name_format(tally, "(not named)");
	tally_words(tally, "kind", kind_name(calls));
	tally_words(tally, "timed_by", recorded ? "record" : "cupti");
	tally_unsigned(tally, "calls", calls->count);
	tally_unsigned(tally, "failed", calls->failed);
	tally_unsigned(tally, "captured", calls->captured);
	tally_unsigned(tally, "cpu_total_ns", calls->total_ns);
	tally_share(tally, "share", calls->total_ns, whole_ns);
	tally_share(tally, "wall_share", calls->total_ns, process->fold->totals.wall_ns);
	tally_unsigned(tally, "mean_ns", calls->total_ns / calls->count);
	tally_unsigned(tally, "min_ns", calls->min_ns);
	tally_unsigned(tally, "p50_ns", samples_percentile(&calls->samples, 500));
	tally_unsigned(tally, "p95_ns", samples_percentile(&calls->samples, 950));
	tally_unsigned(tally, "max_ns", calls->max_ns);
	tally_unsigned(tally, "start_ns", calls->longest_begin_ns);
	return tally;
}

/* Those that are shown of a name; NULL: there are none. */
static struct calls *shown(const struct api *api, uint32_t name, bool *recorded)
{
	struct calls *own = name < api->recorded_room ? &api->recorded[name] : NULL,
		     *told = name < api->told_room ? &api->told[name] : NULL;

	*recorded = own && own->count && (!told || own->count >= told->count);
	return *recorded ? own : told && told->count ? told : NULL;
}

static void add_rows(const struct options *options, struct process *process, struct rows *rows, const struct api *api)
{
	const size_t first = rows->count,
		     names = api->recorded_room > api->told_room ? api->recorded_room : api->told_room;
	const struct column *sort = view_sort(options, process);
	uint64_t whole_ns = 0;
	struct calls *calls;
	bool recorded;

	for (uint32_t name = 0; name < names; name++)
		if ((calls = shown(api, name, &recorded)))
			whole_ns += calls->total_ns;
	for (uint32_t name = 0; name < names; name++)
		if ((calls = shown(api, name, &recorded)))
			rows_add(rows, &tell(process, name, calls, whole_ns, recorded)->row);
	rows_sort(rows->rows + first, rows->count - first, sort);
	rows_prune(rows, first, sort, view_min_percent(options), view_top(options));
}

static void arrange(const struct options *options, struct process *process, struct rows *rows)
{
	struct activities *activities = activities_read(process);
	struct api api = { .recorded = NULL };
	const struct activity *one;

	for (activities_rewind(activities); (one = activities_first(activities)); activities_next(activities))
		if ((activity_is_call(one) && one->counts) ||
			(one->kind == ACTIVITY_API && activities_count_at(activities, one->begin_ns)))
			add(&api, one);
	add_rows(options, process, rows, &api);
	for (size_t i = 0; i < api.recorded_room; i++)
		samples_free(&api.recorded[i].samples);
	for (size_t i = 0; i < api.told_room; i++)
		samples_free(&api.told[i].samples);
	free(api.recorded);
	free(api.told);
	activities_free(activities);
}

void arrange_api(const struct options *options, struct processes *processes, struct rows *rows)
{
	for (size_t i = 0; i < processes->shown; i++)
		arrange(options, &processes->all[i], rows);
}
