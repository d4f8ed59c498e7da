/* SPDX-License-Identifier: MIT
 *
 * Says what the program did before the first GPU operation: the thread that launched it was in
 * these ranges and CUDA calls. Of ranges that contain each other, the outermost one that ended
 * before counts.
 */
#include "report/base/alloc.h"
#include "report/base/compare.h"
#include "report/diagnose/diagnosis_internal.h"
#include <stdlib.h>
#include <string.h>

#define STARTUP_LISTED 2u /* ranges, and as many functions */

/* A range that ended before the first GPU operation, outside of which none is known yet. */
struct startup_range {
	uint64_t begin_ns, end_ns;
	uint32_t name;
};

struct startup_sum {
	uint64_t ns, count;
	uint32_t name; /* text */
};

struct startup {
	struct diagnosis *diagnosis;
	uint64_t first_ns; /* begin of the first GPU operation */
	uint32_t tid;      /* that launched it */
	uint32_t stream;   /* of that thread in the trace */
	struct startup_range *ranges;
	size_t range_count, range_room;
	struct startup_sum *calls; /* by text */
	size_t call_room;
};

static uint32_t stream_of_thread(const struct trace_reader *reader, uint32_t tid)
{
	for (uint32_t i = 0; i < reader_stream_count(reader); i++)
		if (reader_stream(reader, i)->tid == tid)
			return reader_stream(reader, i)->stream;
	return UINT32_MAX;
}

/* Finds the first GPU operation whose launch is known. Returns false if there is none. */
static bool find_first_work(struct startup *startup)
{
	struct process *process = startup->diagnosis->process;
	struct activities *activities = activities_read(process);
	const struct activity *one;

	for (activities_rewind(activities); (one = activities_first(activities));
		activities_next(activities))
		if (activity_is_work(one) && one->timed) {
			startup->first_ns = one->begin_ns;
			startup->tid = one->has_call ? one->tid : 0;
			break;
		}
	activities_free(activities);
	startup->stream = stream_of_thread(process->reader, startup->tid);
	return startup->tid;
}

static void restart_startup(void *context)
{
	((struct startup *)context)->range_count = 0;
}

static void add_startup_range(void *context, const struct observed_instance *instance)
{
	struct startup *startup = context;
	const struct tree *tree = startup->diagnosis->profile->tree;

	if (!instance->trace_node || instance->stream != startup->stream ||
		instance->end_ns > startup->first_ns || instance->node >= tree->count)
		return;
	while (startup->range_count &&
		startup->ranges[startup->range_count - 1].begin_ns >= instance->begin_ns)
		startup->range_count--;
	*ARRAY_ADD(startup->ranges, startup->range_room,
		startup->range_count) = (struct startup_range){ .begin_ns = instance->begin_ns,
		.end_ns = instance->end_ns,
		.name = tree->nodes[instance->node].name };
}

static void read_ranges(struct startup *startup)
{
	const struct profile_observer observer = {
		.context = startup, .restart = restart_startup, .closed = add_startup_range
	};
	const struct process *process = startup->diagnosis->process;
	const struct profile_options options = profile_options_for_observer(
		process->profile, &observer);

	profile_free(profile_build(process->reader, process->texts, &options));
}

static void add_sum(struct startup_sum **sums, size_t *room, uint32_t name, uint64_t ns)
{
	struct startup_sum *sum;

	array_grow_zeroed(sums, room, (size_t)name + 1, sizeof **sums);
	sum = &(*sums)[name];
	sum->name = name;
	sum->ns += ns;
	sum->count++;
}

static void read_calls(struct startup *startup)
{
	struct activities *activities = activities_read(startup->diagnosis->process);
	const struct activity *one;

	for (activities_rewind(activities);
		(one = activities_first(activities)) && one->begin_ns < startup->first_ns;
		activities_next(activities))
		if (activity_is_call(one) && one->tid == startup->tid && one->name)
			add_sum(&startup->calls, &startup->call_room, one->name,
				min_u64(one->end_ns, startup->first_ns) - one->begin_ns);
	activities_free(activities);
}

static int longest_first(const void *a, const void *b)
{
	const struct startup_sum *left = a, *right = b;

	return left->ns != right->ns ? COMPARE(right->ns, left->ns)
				     : COMPARE(left->name, right->name);
}

/* Appends the largest sums that are worth it. Returns what they sum to. */
static uint64_t list_sums(const struct startup *startup, struct startup_sum *sums, size_t room,
	char *text, size_t bytes)
{
	struct diagnosis *diagnosis = startup->diagnosis;
	uint64_t listed_ns = 0;

	qsort(sums, room, sizeof *sums, longest_first);
	for (size_t i = 0; i < room && i < STARTUP_LISTED; i++) {
		const size_t used = strlen(text);

		if (!diagnose_is_share(sums[i].ns, startup->first_ns, LIMIT_STARTUP))
			break;
		finding_set_text(text + used, bytes - used, "%s%s %s", i ? ", " : "",
			diagnose_name(diagnosis, sums[i].name),
			diagnose_time(diagnosis, sums[i].ns));
		listed_ns += sums[i].ns;
	}
	return listed_ns;
}

static void list_startup(struct startup *startup, struct finding *text)
{
	struct diagnosis *diagnosis = startup->diagnosis;
	struct startup_sum *ranges = NULL;
	char in_ranges[256] = "", in_calls[256] = "";
	const size_t used = strlen(text->evidence);
	size_t room = 0;
	uint64_t listed_ns = 0;

	for (size_t i = 0; i < startup->range_count; i++)
		add_sum(&ranges, &room, startup->ranges[i].name,
			startup->ranges[i].end_ns - startup->ranges[i].begin_ns);
	if (room)
		listed_ns = list_sums(startup, ranges, room, in_ranges, sizeof in_ranges);
	if (startup->call_room)
		list_sums(startup, startup->calls, startup->call_room, in_calls, sizeof in_calls);
	free(ranges);
	finding_set_text(text->evidence + used, sizeof text->evidence - used,
		"; before the first GPU operation %s%s%s%s%s%s%s",
		diagnose_time(diagnosis, startup->first_ns), *in_ranges ? ": " : "", in_ranges,
		*in_ranges ? ", elsewhere " : "",
		*in_ranges ? diagnose_time(diagnosis,
				     startup->first_ns - min_u64(listed_ns, startup->first_ns))
			   : "",
		*in_calls ? "; CUDA calls in that time: " : "", in_calls);
}

void diagnose_list_startup(struct diagnosis *diagnosis, struct finding *text)
{
	const struct diagnose_facts *facts = &diagnosis->facts;
	const uint64_t before_ns = facts->steady_to_ns - facts->whole_ns;
	struct startup startup = { .diagnosis = diagnosis };

	if (diagnosis->process->profile->options.steps || diagnosis->process->windows ||
		before_ns < LIMIT_STARTUP_NS ||
		!diagnose_is_share(before_ns, facts->run_ns, LIMIT_STARTUP) ||
		!find_first_work(&startup))
		return;
	read_ranges(&startup);
	read_calls(&startup);
	list_startup(&startup, text);
	free(startup.ranges);
	free(startup.calls);
}
