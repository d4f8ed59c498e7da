/* SPDX-License-Identifier: MIT */
#include "collector/cupti/client_clock.h"

#include <string.h>
#include <time.h>

#define CLOCK_TRIES 5

uint64_t client_clock_cupti_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* Takes the shortest of several samples, because the thread may be preempted between two reads. */
struct clock_pair client_clock_pair(cupti_clock clock)
{
	struct clock_pair best = { 0, 0 };
	uint64_t shortest = UINT64_MAX;

	for (int i = 0; clock && i < CLOCK_TRIES; i++) {
		uint64_t before = client_clock_cupti_ns(), theirs = clock(),
			 after = client_clock_cupti_ns();

		if (after - before < shortest) {
			shortest = after - before;
			best = (struct clock_pair){ before + (after - before) / 2, theirs };
		}
	}
	return best;
}

static uint64_t convert_time(
	uint64_t time, const struct clock_pair *from, const struct clock_pair *to)
{
	const double ticks = (double)(int64_t)(to->client - from->client),
		     ns = (double)(int64_t)(to->cupti - from->cupti);

	if (ns <= 0)
		return from->client + (time - from->cupti);
	return from->client +
	       (uint64_t)(int64_t)((double)(int64_t)(time - from->cupti) * (ticks / ns));
}

/* The offsets of a record's times, ended by 0. Layouts have only grown at their end. */
static const uint16_t time_offsets[][6] = {
	[CUPTI_MEMCPY] = { offsetof(struct cupti_memcpy, start),
		offsetof(struct cupti_memcpy, end) },
	[CUPTI_MEMSET] = { offsetof(struct cupti_memset, start),
		offsetof(struct cupti_memset, end) },
	[CUPTI_KERNEL] = { offsetof(struct cupti_kernel, start), offsetof(struct cupti_kernel, end),
		offsetof(struct cupti_kernel, completed), offsetof(struct cupti_kernel, queued),
		offsetof(struct cupti_kernel, submitted) },
	[CUPTI_DRIVER_CALL] = { offsetof(struct cupti_api, start),
		offsetof(struct cupti_api, end) },
	[CUPTI_RUNTIME_CALL] = { offsetof(struct cupti_api, start),
		offsetof(struct cupti_api, end) },
	[CUPTI_CONCURRENT_KERNEL] = { offsetof(struct cupti_kernel, start),
		offsetof(struct cupti_kernel, end), offsetof(struct cupti_kernel, completed),
		offsetof(struct cupti_kernel, queued), offsetof(struct cupti_kernel, submitted) },
	[CUPTI_OVERHEAD] = { offsetof(struct cupti_overhead, start),
		offsetof(struct cupti_overhead, end) },
	[CUPTI_MEMCPY_PEER] = { offsetof(struct cupti_memcpy_peer, start),
		offsetof(struct cupti_memcpy_peer, end) },
	[CUPTI_CUDA_EVENT] = { offsetof(struct cupti_event, device_time) },
	[CUPTI_SYNCHRONIZATION] = { offsetof(struct cupti_synchronization, start),
		offsetof(struct cupti_synchronization, end) },
	[CUPTI_MEMORY] = { offsetof(struct cupti_memory, time) },
	[CUPTI_GRAPH_TRACE] = { 8, 16 },
	[CUPTI_MARKER] = { 8 },
	[CUPTI_ENVIRONMENT] = { 8 },
	[CUPTI_UNIFIED_MEMORY] = { 16, 24 },
	[CUPTI_OPENMP] = { 16, 24 },
	[CUPTI_INTERNAL_LAUNCH] = { offsetof(struct cupti_api, start),
		offsetof(struct cupti_api, end) },
	[CUPTI_MEMORY_POOL] = { 56 },
	[CUPTI_JIT] = { 16, 24 },
	[CUPTI_DEVICE_GRAPH_TRACE] = { 8, 16 },
	[CUPTI_MEMORY_DECOMPRESSION] = { 48, 56 },
};

void client_clock_convert(
	uint8_t *record, size_t bytes, const struct clock_pair *from, const struct clock_pair *to)
{
	uint32_t kind;
	uint64_t time;

	memcpy(&kind, record, sizeof kind);
	for (size_t i = 0;
		kind < sizeof time_offsets / sizeof *time_offsets && i < 6 && time_offsets[kind][i];
		i++) {
		/* An older release does not have this member. */
		if (time_offsets[kind][i] + sizeof time > bytes)
			continue;
		memcpy(&time, record + time_offsets[kind][i], sizeof time);
		time = time ? convert_time(time, from, to) : 0; /* 0: unknown */
		memcpy(record + time_offsets[kind][i], &time, sizeof time);
	}
}

size_t client_record_correlation_offset(uint32_t kind)
{
	static const uint8_t offsets[] = {
		[CUPTI_MEMCPY] = offsetof(struct cupti_memcpy, correlation),
		[CUPTI_MEMSET] = offsetof(struct cupti_memset, correlation),
		[CUPTI_KERNEL] = offsetof(struct cupti_kernel, correlation),
		[CUPTI_CONCURRENT_KERNEL] = offsetof(struct cupti_kernel, correlation),
		[CUPTI_MEMCPY_PEER] = offsetof(struct cupti_memcpy_peer, correlation),
		[CUPTI_CUDA_EVENT] = offsetof(struct cupti_event, correlation),
		[CUPTI_MEMORY] = offsetof(struct cupti_memory, correlation),
		[CUPTI_GRAPH_TRACE] = 4,
	};

	return kind < sizeof offsets ? offsets[kind] : 0;
}

size_t client_record_id_offset(uint32_t kind)
{
	switch (kind) {
	case CUPTI_OVERHEAD:
		return offsetof(struct cupti_overhead, correlation);
	case CUPTI_SYNCHRONIZATION:
		return offsetof(struct cupti_synchronization, correlation);
	case CUPTI_EXTERNAL_CORRELATION:
		return offsetof(struct cupti_external, correlation);
	default:
		return client_record_correlation_offset(kind);
	}
}

size_t client_record_time_offset(uint32_t kind)
{
	return kind < sizeof time_offsets / sizeof *time_offsets ? time_offsets[kind][0] : 0;
}
