/* SPDX-License-Identifier: MIT */
#include "report/profile/kept_profile.h"
#include "report/base/alloc.h"
#include "report/profile/kept_profile_parts.h"
#include "report/profile/module_group.h"
#include "report/profile/node_names_state.h"
#include <assert.h>
#include <stdlib.h>
#include <string.h>

static_assert(sizeof(struct profile) == 1016, "write and read a new member of the profile");
static_assert(sizeof(struct profile_totals) == 296, "check a new member of the totals");
static_assert(sizeof(struct launch_config) == 184, "write and read a new member");
static_assert(sizeof(struct sampled_thread) == 64, "check a new member");
static_assert(sizeof(struct placed_samples) == 48, "check a new member");

/* ---- launch configurations ---- */

static void write_kernels(const struct launch_configs *kernels, struct value_writer *writer)
{
	value_write_u64(writer, kernels->count);
	for (uint32_t i = 0; i < kernels->count; i++) {
		struct launch_config kept = kernels->kernels[i];

		memset(&kept.samples, 0, sizeof kept.samples);
		value_write(writer, &kept, sizeof kept);
		percentiles_write(&kernels->kernels[i].samples, writer);
	}
}

static struct launch_configs *read_kernels(
	struct tree *tree, uint32_t texts, struct value_reader *reader)
{
	struct launch_configs *kernels = launch_configs_new();
	const uint64_t count = value_read_below(reader, LAUNCH_CONFIGS_MAX + 1);

	for (; kernels->count < count && !reader->failed; kernels->count++) {
		struct launch_config *kernel;

		ARRAY_GROW(kernels->kernels, kernels->room, (size_t)kernels->count + 1);
		kernel = &kernels->kernels[kernels->count];
		value_read(reader, kernel, sizeof *kernel);
		memset(&kernel->samples, 0, sizeof kernel->samples);
		percentiles_read(&kernel->samples, reader, &tree->budget);
		value_check(reader,
			kernel->node < tree->count && kernel->name < texts && kernel->calls);
	}
	return kernels;
}

/* ---- names ---- */

static void write_names(const struct node_names *names, struct value_writer *writer)
{
	const struct module_group *group = names->module_group;

	value_write_u64(writer, names->others);
	value_write_array(writer, names->communication, names->communication_room, 1);
	value_write_array(writer, group->all + 1, group->count - 1, sizeof *group->all);
}

/* The maps from the trace's ids are empty. Names are looked up again when they are needed. */
static struct node_names *read_names(const struct profile *profile, struct value_reader *reader)
{
	const struct profile_options *options = &profile->options;
	struct node_names *names = node_names_new(profile->reader, profile->texts, profile->tree,
		!options->no_fold, options->demangle, options->categories);
	struct module_group *group = names->module_group;
	struct module_instance *instances;
	uint64_t count;

	names->others = value_read_u64(reader);
	names->communication = value_read_array(reader, &count, UINT32_MAX, 1);
	names->communication_room = (size_t)count;
	instances = value_read_array(reader, &count, UINT32_MAX - 1, sizeof *instances);
	ARRAY_GROW(group->all, group->room, (size_t)count + 1);
	memcpy(group->all + 1, instances, (size_t)count * sizeof *instances);
	group->count = (uint32_t)count + 1;
	group->summed = true;
	free(instances);
	return names;
}

/* ---- places of samples ---- */

static void write_places(const struct sample_places *places, struct value_writer *writer)
{
	value_write_u64(writer, places != NULL);
	if (!places)
		return;
	value_write_array(writer, places->all, places->count, sizeof *places->all);
	value_write_array(writer, places->counted, places->counted_count, sizeof *places->counted);
}

/* The tree and the threads were read before. Ids of frames and names need no check. */
static struct sample_places *read_places(const struct profile *profile, struct value_reader *reader)
{
	struct sample_places *places;
	uint64_t count;

	if (!value_read_below(reader, 1))
		return NULL;
	places = sample_places_new(NULL);
	places->all = value_read_array(reader, &count, UINT32_MAX, sizeof *places->all);
	places->count = places->room = (size_t)count;
	places->counted = value_read_array(reader, &count, UINT32_MAX, sizeof *places->counted);
	places->counted_count = places->counted_room = (size_t)count;
	for (size_t i = 0; i < places->counted_count && !reader->failed; i++) {
		const struct sample_place *place;

		if (!value_check(reader, places->counted[i] < places->count))
			break;
		place = &places->all[places->counted[i]].place;
		value_check(reader, place->node && place->node < profile->tree->count &&
					    place->thread < profile->sampled_thread_count);
	}
	return places;
}

/* ---- the profile ---- */

static void write_numbers(const struct profile *profile, struct value_writer *writer)
{
	value_write_u64(writer, profile->options.metric);
	value_write_u64(writer, (uint64_t)profile->options.allocated_at_start);
	value_write_u64(writer, profile->options.knows_allocated_at_start);
	value_write(writer, &profile->counts, sizeof profile->counts);
	value_write(writer, &profile->totals, sizeof profile->totals);
	value_write(writer, &profile->sampled, sizeof profile->sampled);
	value_write_u64(writer, profile->only_samples);
	value_write_u64(writer, profile->counter_found);
	value_write_u64(writer, profile->has_steps);
	value_write_u64(writer, profile->unattributed);
	value_write_u64(writer, profile->async_ranges);
	value_write_u64(writer, profile->counter_unit);
}

/* The metric is the one that was requested, or one that a pass picks. */
static void read_metric(struct profile *profile, struct value_reader *reader)
{
	const enum metric metric = (enum metric)value_read_below(reader, METRIC_COUNT - 1);
	const struct profile_options *wanted = &profile->options;

	value_check(reader, wanted->pick_metric ? metric == METRIC_GPU || metric == METRIC_CPU
						: metric == wanted->metric);
	profile->options.metric = metric;
}

/* The tree was read before. */
static void read_numbers(struct profile *profile, struct value_reader *reader)
{
	const uint64_t last = profile->tree->count - 1;

	read_metric(profile, reader);
	profile->options.allocated_at_start = (int64_t)value_read_u64(reader);
	profile->options.knows_allocated_at_start = value_read_below(reader, 1);
	value_read(reader, &profile->counts, sizeof profile->counts);
	value_read(reader, &profile->totals, sizeof profile->totals);
	value_check(reader, value_is_bool(&profile->totals.has_tensors));
	value_read(reader, &profile->sampled, sizeof profile->sampled);
	profile->only_samples = value_read_below(reader, 1);
	profile->counter_found = value_read_below(reader, 1);
	profile->has_steps = value_read_below(reader, 1);
	profile->unattributed = (uint32_t)value_read_below(reader, last);
	profile->async_ranges = (uint32_t)value_read_below(reader, last);
	profile->counter_unit = (uint32_t)value_read_below(
		reader, string_table_count(profile->texts) - 1);
}

/* The arrays of the profile, and the members with their lengths. */
#define PROFILE_ARRAYS(X)                        \
	X(apis, api_count)                       \
	X(threads, thread_count)                 \
	X(sampled_threads, sampled_thread_count) \
	X(oom_ranges, oom_range_count)           \
	X(oom_threads, oom_thread_count)

static void read_arrays(struct profile *profile, struct value_reader *reader)
{
	uint64_t count;

#define X(array, number)                                                                       \
	profile->array = value_read_array(reader, &count, UINT32_MAX, sizeof *profile->array); \
	profile->number = (__typeof__(profile->number))count;
	PROFILE_ARRAYS(X)
#undef X
	profile->thread_room = profile->thread_count;
	profile->sampled_thread_room = profile->sampled_thread_count;
	for (size_t i = 0; i < profile->sampled_thread_count; i++)
		value_check(reader, value_is_bool(&profile->sampled_threads[i].has_clock));
	for (uint32_t i = 0; i < profile->oom_thread_count; i++)
		value_check(
			reader, profile->oom_threads[i].first_open <= profile->oom_range_count &&
					profile->oom_threads[i].open <=
						profile->oom_range_count -
							profile->oom_threads[i].first_open);
}

void profile_write(const struct profile *profile, struct value_writer *writer)
{
	tree_write(profile->tree, writer);
	write_numbers(profile, writer);
	write_kernels(profile->kernels, writer);
	write_names(profile->names, writer);
#define X(array, number) \
	value_write_array(writer, profile->array, profile->number, sizeof *profile->array);
	PROFILE_ARRAYS(X)
#undef X
	write_places(profile->sample_places, writer);
	memory_write(profile->memory, writer);
}

struct profile *profile_read(struct trace_reader *reader, struct string_table *texts,
	const struct profile_options *options, struct value_reader *from)
{
	struct profile *profile = xcalloc(sizeof *profile);

	profile->options = *options;
	profile->reader = reader;
	profile->texts = texts;
	profile->tree = tree_read(string_table_count(texts), from);
	read_numbers(profile, from);
	profile->kernels = read_kernels(profile->tree, string_table_count(texts), from);
	profile->names = read_names(profile, from);
	read_arrays(profile, from);
	profile->sample_places = read_places(profile, from);
	profile->memory = memory_read(profile, from);
	return profile;
}
