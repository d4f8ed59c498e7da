/* SPDX-License-Identifier: MIT
 *
 * Divides the time before the first GPU operation, by what the thread that launched it was in:
 * ranges, with the CUDA calls inside them, CUDA calls outside of ranges, and the rest. Of ranges
 * that contain each other, the outermost one that ended before counts; of calls, the outermost.
 */
#include "report/base/alloc.h"
#include "report/base/compare.h"
#include "report/diagnose/diagnosis_internal.h"
#include <stdlib.h>
#include <string.h>

#define STARTUP_LISTED 2u /* ranges, and as many CUDA calls in each, and outside of them */
/* Thousandths of the time: ranges, and CUDA calls outside of ranges, with less are in the rest. */
#define STARTUP_PART_MIN 10u

/* A range that ended before the first GPU operation, outside of which none is known yet. */
struct startup_range {
	uint64_t begin_ns, end_ns;
	uint32_t name;
};

/* Appends to the evidence of a finding. */
#define ADD_STARTUP(text, ...)                                        \
	finding_set_text((text)->evidence + strlen((text)->evidence), \
		sizeof(text)->evidence - strlen((text)->evidence), __VA_ARGS__)

struct startup_sum {
	uint64_t ns;
	uint32_t name; /* text */
};

/* A part of the time, and the CUDA calls in it. */
struct startup_part {
	uint64_t ns;
	uint32_t name;             /* text, of a range that is listed */
	struct startup_sum *calls; /* by text */
	size_t call_room;
};

struct startup {
	struct diagnosis *diagnosis;
	uint64_t first_ns; /* begin of the first GPU operation */
	uint32_t tid;      /* that launched it */
	uint32_t stream;   /* of that thread in the trace */
	/* In the order of time. They do not overlap. */
	struct startup_range *ranges;
	size_t range_count, range_room;
	/* The ranges with the most time, by name. `listed`: how many there are. */
	struct startup_part largest[STARTUP_LISTED];
	size_t listed;
	struct startup_part others, outside; /* other ranges; CUDA calls outside of ranges */
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
	struct activities *activities = activities_read_without_launches(process);
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
}

static int longest_first(const void *a, const void *b)
{
	const struct startup_sum *left = a, *right = b;

	return left->ns != right->ns ? COMPARE(right->ns, left->ns)
				     : COMPARE(left->name, right->name);
}

static bool is_worth_listing(const struct startup *startup, uint64_t ns)
{
	return diagnose_is_share(ns, startup->first_ns, LIMIT_STARTUP);
}

/* Divides the ranges into those with the most time, by name, and the others. */
static void sum_ranges(struct startup *startup)
{
	struct startup_sum *sums = NULL;
	uint64_t until_ns = 0;
	size_t room = 0;

	for (size_t i = 0; i < startup->range_count; i++) {
		struct startup_range *range = &startup->ranges[i];

		range->begin_ns = max_u64(range->begin_ns, until_ns);
		range->end_ns = until_ns = max_u64(range->end_ns, range->begin_ns);
		add_sum(&sums, &room, range->name, range->end_ns - range->begin_ns);
	}
	if (room)
		qsort(sums, room, sizeof *sums, longest_first);
	for (size_t i = 0; i < room; i++)
		if (i < STARTUP_LISTED &&
			diagnose_is_share(sums[i].ns, startup->first_ns, STARTUP_PART_MIN))
			startup->largest[startup->listed++] = (struct startup_part){
				.ns = sums[i].ns, .name = sums[i].name
			};
		else
			startup->others.ns += sums[i].ns;
	free(sums);
}

static struct startup_part *part_of_range(struct startup *startup, uint32_t name)
{
	for (size_t i = 0; i < startup->listed; i++)
		if (startup->largest[i].name == name)
			return &startup->largest[i];
	return &startup->others;
}

/* Adds a call to the ranges that contain it, and to what is outside of them. `*at`: index of the
 * first range that may end after the call begins. */
static void add_startup_call(
	struct startup *startup, size_t *at, uint32_t name, uint64_t from_ns, uint64_t to_ns)
{
	while (*at < startup->range_count && startup->ranges[*at].end_ns <= from_ns)
		++*at;
	for (size_t i = *at; from_ns < to_ns; i++) {
		const struct startup_range *range = &startup->ranges[i];
		const bool is_last = i >= startup->range_count || range->begin_ns >= to_ns;
		const uint64_t before_ns = is_last ? to_ns : max_u64(range->begin_ns, from_ns);
		struct startup_part *part;

		startup->outside.ns += before_ns - from_ns;
		add_sum(&startup->outside.calls, &startup->outside.call_room, name,
			before_ns - from_ns);
		if (is_last)
			return;
		part = part_of_range(startup, range->name);
		from_ns = min_u64(range->end_ns, to_ns);
		add_sum(&part->calls, &part->call_room, name, from_ns - before_ns);
	}
}

/* Reads the CUDA calls of the thread, recorded by pperf or CUPTI. A call inside another one is a
 * part of that, and so is the second record of a call that both have. */
static void read_calls(struct startup *startup)
{
	struct activities *activities = activities_read_without_launches(
		startup->diagnosis->process);
	const struct activity *one;
	uint64_t until_ns = 0;
	size_t at = 0;

	for (activities_rewind(activities);
		(one = activities_first(activities)) && one->begin_ns < startup->first_ns;
		activities_next(activities)) {
		const uint64_t end_ns = min_u64(one->end_ns, startup->first_ns);

		if ((!activity_is_call(one) && one->kind != ACTIVITY_API) ||
			one->tid != startup->tid || !one->name || end_ns <= until_ns)
			continue;
		add_startup_call(startup, &at, one->name, max_u64(one->begin_ns, until_ns), end_ns);
		until_ns = end_ns;
	}
	activities_free(activities);
}

/* Appends a part with the CUDA calls in it that are worth it. */
static void add_part(const struct startup *startup, struct finding *text, const char *before,
	const char *name, const struct startup_part *part)
{
	struct diagnosis *diagnosis = startup->diagnosis;
	bool has_calls = false;

	ADD_STARTUP(text, "%s%s %s", before, name, diagnose_time(diagnosis, part->ns));
	if (part->call_room)
		qsort(part->calls, part->call_room, sizeof *part->calls, longest_first);
	for (size_t i = 0; i < part->call_room && i < STARTUP_LISTED; i++) {
		if (!is_worth_listing(startup, part->calls[i].ns))
			break;
		ADD_STARTUP(text, "%s%s %s", has_calls ? ", " : " (of it ",
			diagnose_name(diagnosis, part->calls[i].name),
			diagnose_time(diagnosis, part->calls[i].ns));
		has_calls = true;
	}
	if (has_calls)
		ADD_STARTUP(text, ")");
}

static void list_startup(struct startup *startup, struct finding *text)
{
	struct diagnosis *diagnosis = startup->diagnosis;
	const struct startup_part *const rest[] = { &startup->others, &startup->outside };
	const char *before = ": ";
	uint64_t listed_ns = 0;

	ADD_STARTUP(text, "; before the first GPU operation %s",
		diagnose_time(diagnosis, startup->first_ns));
	for (size_t i = 0; i < startup->listed; i++, before = ", ") {
		add_part(startup, text, before, diagnose_name(diagnosis, startup->largest[i].name),
			&startup->largest[i]);
		listed_ns += startup->largest[i].ns;
	}
	for (size_t i = 0; i < 2; i++) {
		if (!diagnose_is_share(rest[i]->ns, startup->first_ns, STARTUP_PART_MIN))
			continue;
		add_part(startup, text, before,
			i                 ? "CUDA calls in no range"
			: startup->listed ? "other ranges"
					  : "ranges",
			rest[i]);
		listed_ns += rest[i]->ns;
		before = ", ";
	}
	if (listed_ns && listed_ns < startup->first_ns)
		ADD_STARTUP(text, ", elsewhere %s",
			diagnose_time(diagnosis, startup->first_ns - listed_ns));
}

static void free_startup(struct startup *startup)
{
	for (size_t i = 0; i < startup->listed; i++)
		free(startup->largest[i].calls);
	free(startup->others.calls);
	free(startup->outside.calls);
	free(startup->ranges);
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
	sum_ranges(&startup);
	read_calls(&startup);
	list_startup(&startup, text);
	free_startup(&startup);
}
