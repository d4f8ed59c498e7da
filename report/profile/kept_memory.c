/* SPDX-License-Identifier: MIT */
#include "report/base/alloc.h"
#include "report/profile/kept_profile_parts.h"
#include <assert.h>
#include <stdlib.h>

static_assert(sizeof(struct memory_owners) == 240, "write and read a new member of the owners");
static_assert(sizeof(struct memory_level) == 488, "check a new member of a level");
static_assert(sizeof(struct memory_site) == 176, "check a new member of a site");
static_assert(sizeof(struct memory_oom) == 120, "check a new member");
static_assert(sizeof(struct failed_allocation) == 120, "check a new member");
static_assert(sizeof(struct device_sample) == 112, "write and read a new member of a sample");

/* The members of struct memory_owners that are no arrays. */
#define OWNER_NUMBERS(X)               \
	X(unrepeated_from)             \
	X(counts.unknown_frees)        \
	X(counts.replaced)             \
	X(counts.null_frees)           \
	X(counts.failed_frees)         \
	X(counts.tensors)              \
	X(counts.ooms)                 \
	X(counts.failed_allocations)   \
	X(counts.unknown_tensor_frees) \
	X(counts.tensor_differences)   \
	X(end_serial)                  \
	X(end_ns)                      \
	X(first_ns)                    \
	X(active_serial)

static void write_fullest(const struct device_sample *sample, struct value_writer *writer)
{
	struct device_sample kept = *sample;

	kept.held = NULL;
	value_write(writer, &kept, sizeof kept);
	value_write_array(writer, sample->held, sample->held_count, sizeof *sample->held);
}

void memory_write(const struct memory_owners *memory, struct value_writer *writer)
{
#define X(member) value_write_u64(writer, memory->member);
	OWNER_NUMBERS(X)
#undef X
	value_write_u64(writer, memory->resumed);
	value_write_array(writer, memory->levels, memory->level_count, sizeof *memory->levels);
	value_write_array(writer, memory->sites, memory->site_count, sizeof *memory->sites);
	value_write_array(writer, memory->failed, memory->failed_count, sizeof *memory->failed);
	value_write_array(writer, memory->ooms, memory->oom_count, sizeof *memory->ooms);
	value_write_array(writer, memory->devices, memory->device_count, sizeof *memory->devices);
	value_write_u64(writer, memory->fullest_count);
	for (uint32_t i = 0; i < memory->fullest_count; i++)
		write_fullest(&memory->fullest[i], writer);
}

/* Whether `count` elements from `first` on are among `all`. */
static bool is_part(uint64_t first, uint64_t count, uint64_t all)
{
	return first <= all && count <= all - first;
}

static bool is_good_level(const struct memory_level *level, uint32_t nodes)
{
	return level->kind <= MEMORY_TENSOR && level->pool.peak_node < nodes &&
	       value_is_bool(&level->pool.unknown);
}

static bool is_good_site(
	const struct memory_owners *memory, const struct memory_site *site, uint32_t nodes)
{
	return site->level < memory->level_count && site->node < nodes && site->path < nodes &&
	       value_is_bool(&site->is_pool) && value_is_bool(&site->is_several) &&
	       value_is_bool(&site->omits_sections) && value_is_bool(&site->omits_steps);
}

static bool is_good_failure(
	const struct profile *profile, const struct failed_allocation *failed, uint32_t nodes)
{
	return failed->kind <= MEMORY_TENSOR && failed->node < nodes &&
	       value_is_bool(&failed->succeeded_later) &&
	       is_part(failed->first_open, failed->open, profile->oom_range_count) &&
	       is_part(failed->first_thread, failed->threads, profile->oom_thread_count);
}

static bool is_good_oom(const struct profile *profile, const struct memory_owners *memory,
	const struct memory_oom *oom, uint32_t nodes)
{
	return oom->node < nodes && value_is_bool(&oom->gaps.known) &&
	       is_part(oom->first_open, oom->open, profile->oom_range_count) &&
	       is_part(oom->first_thread, oom->threads, profile->oom_thread_count) &&
	       is_part(oom->first_failed, oom->failed, memory->failed_count);
}

/* Whether no range and no thread is kept twice: each failure appends its own. */
static bool are_failures_distinct(const struct profile *profile, const struct memory_owners *memory)
{
	uint64_t ranges = 0, threads = 0;

	for (uint32_t i = 0; i < profile->oom_thread_count; i++)
		ranges += profile->oom_threads[i].open;
	for (uint32_t i = 0; i < memory->failed_count; i++) {
		ranges += memory->failed[i].open;
		threads += memory->failed[i].threads;
	}
	for (uint32_t i = 0; i < memory->oom_count; i++) {
		ranges += memory->ooms[i].open;
		threads += memory->ooms[i].threads;
	}
	return ranges <= profile->oom_range_count && threads <= profile->oom_thread_count;
}

static bool is_good_memory(const struct profile *profile, const struct memory_owners *memory)
{
	const uint32_t nodes = profile->tree->count;
	bool good = memory->unrepeated_from <= memory->failed_count &&
		    are_failures_distinct(profile, memory);

	for (uint32_t i = 0; i < memory->level_count; i++)
		good &= is_good_level(&memory->levels[i], nodes);
	for (uint32_t i = 0; i < memory->site_count; i++)
		good &= is_good_site(memory, &memory->sites[i], nodes);
	for (uint32_t i = 0; i < memory->failed_count; i++)
		good &= is_good_failure(profile, &memory->failed[i], nodes);
	for (uint32_t i = 0; i < memory->oom_count; i++)
		good &= is_good_oom(profile, memory, &memory->ooms[i], nodes);
	for (uint32_t i = 0; i < memory->fullest_count; i++)
		good &= memory->fullest[i].held_count <= memory->site_count;
	return good;
}

/* Reads an array of at most `max` elements into a member that memory_owners_free frees. */
#define READ_ARRAY(array, number, max)                                              \
	do {                                                                        \
		uint64_t found;                                                     \
                                                                                    \
		free(array);                                                        \
		(array) = value_read_array(reader, &found, (max), sizeof *(array)); \
		(number) = (uint32_t)found;                                         \
	} while (0)

static void read_fullest(struct memory_owners *memory, struct value_reader *reader)
{
	const uint64_t count = value_read_below(reader, reader->left / sizeof *memory->fullest);

	memory->fullest = xcalloc((size_t)(count + 1) * sizeof *memory->fullest);
	for (; memory->fullest_count < count && !reader->failed; memory->fullest_count++) {
		struct device_sample *sample = &memory->fullest[memory->fullest_count];

		value_read(reader, sample, sizeof *sample);
		sample->held = NULL;
		READ_ARRAY(sample->held, sample->held_count, UINT32_MAX - 1);
	}
}

struct memory_owners *memory_read(const struct profile *profile, struct value_reader *reader)
{
	struct memory_owners *memory = memory_owners_new();

#define X(member) memory->member = (__typeof__(memory->member))value_read_u64(reader);
	OWNER_NUMBERS(X)
#undef X
	memory->resumed = value_read_below(reader, 1);
	READ_ARRAY(memory->levels, memory->level_count, UINT32_MAX - 1);
	READ_ARRAY(memory->sites, memory->site_count, UINT32_MAX - 1);
	READ_ARRAY(memory->failed, memory->failed_count, MEMORY_OOMS_MAX);
	READ_ARRAY(memory->ooms, memory->oom_count, MEMORY_OOMS_MAX);
	READ_ARRAY(memory->devices, memory->device_count, UINT32_MAX - 1);
	read_fullest(memory, reader);
	value_check(reader, is_good_memory(profile, memory));
	return memory;
}
