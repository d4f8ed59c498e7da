/* SPDX-License-Identifier: MIT
 * bench_memory.c: what the map of device memory costs, for 10 million tensors of 64 threads. A
 * tensor is freed by any thread, and addresses are used again and again. Compares one pass over the
 * trace with the map (memory_segments.h) to the same pass without it. Processor time, in turns;
 * exits with 1 if a gate is missed.
 */
#include "report/analysis/memory_segments.h"
#include "report/base/error.h"
#include "tests/support/block_writer.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

enum { ROUNDS = 3, THREADS = 64, SEGMENTS = 512, SLOTS = 256 };
#define ALLOCATIONS 10000000u
#define SLOT_BYTES 8192u /* a tensor has at most this; segments have SLOTS of them */
#define SEGMENT_BYTES ((uint64_t)SLOTS * SLOT_BYTES)
#define BASE UINT64_C(0x7f0000000000)
#define SPAN (THREADS * 1024u) /* events that are written by one chunk of each thread */
#define TIME_GATE 3.0
#define BYTES_GATE (UINT64_C(64) << 20)

struct tensor_event {
	uint64_t stamp, block;
	uint32_t thread;
	bool frees;
};

/* The program: which slots have a tensor, and of how many units. */
static uint16_t units_of_slot[SEGMENTS * SLOTS];
static uint64_t noise = 1;

static uint32_t draw(uint32_t limit)
{
	noise = noise * 6364136223846793005u + 1442695040888963407u;
	return (uint32_t)((noise >> 33) % limit);
}

static struct tensor_event next_event(uint64_t stamp, uint32_t *allocations)
{
	const uint32_t slot = draw(SEGMENTS * SLOTS);
	const uint64_t address = BASE + (uint64_t)slot * SLOT_BYTES;
	struct tensor_event event = { .stamp = stamp, .thread = draw(THREADS) };

	event.frees = units_of_slot[slot] != 0;
	if (!event.frees) {
		units_of_slot[slot] = (uint16_t)(1 + draw(SLOT_BYTES / TRACE_TENSOR_UNIT));
		++*allocations;
	}
	event.block = address / TRACE_TENSOR_UNIT | (uint64_t)units_of_slot[slot]
							    << TRACE_TENSOR_BYTES_BIT;
	if (event.frees)
		units_of_slot[slot] = 0;
	return event;
}

/* Writes the chunk of one thread. `events`: of all threads, by time. */
static void write_thread(struct block_writer *writer, const struct tensor_event *events,
	size_t count, uint32_t thread)
{
	block_writer_begin(writer, events[0].stamp);
	for (size_t i = 0; i < count; i++) {
		struct trace_tensor_next *record;

		if (events[i].thread != thread)
			continue;
		record = block_writer_record(writer, TRACE_TENSOR_NEXT, sizeof *record);
		record->stamp = events[i].stamp;
		record->block = events[i].block;
		record->head.flags = events[i].frees ? TRACE_TENSOR_FREED : 0;
	}
	block_writer_seal(writer, TRACE_CHUNK, thread + 1);
}

static void write_segments(struct block_writer *writer)
{
	block_writer_begin(writer, 1000);
	for (uint32_t i = 0; i < SEGMENTS; i++) {
		struct trace_memory *record = block_writer_record(
			writer, TRACE_ALLOC, sizeof *record);

		record->call.stamp = 1000 + i;
		record->address = BASE + i * SEGMENT_BYTES;
		record->bytes = SEGMENT_BYTES;
		record->memory_kind = TRACE_MEMORY_DEVICE;
	}
	block_writer_seal(writer, TRACE_CHUNK, THREADS + 1);
}

static void write_trace(const char *path)
{
	struct block_writer *writer = block_writer_open(path);
	struct tensor_event *events = calloc(SPAN, sizeof *events);
	uint32_t allocations = 0;
	uint64_t stamp = 10000;

	if (!events)
		fatal(STATUS_UNREADABLE, "out of memory");
	block_writer_seal(writer, TRACE_DICT, 0);
	write_segments(writer);
	while (allocations < ALLOCATIONS) {
		for (uint32_t i = 0; i < SPAN; i++, stamp += 100)
			events[i] = next_event(stamp, &allocations);
		for (uint32_t thread = 0; thread < THREADS; thread++)
			write_thread(writer, events, SPAN, thread);
	}
	block_writer_close(writer, THREADS + 1);
	free(events);
}

struct map_cost {
	struct memory_segments *map;
	size_t bytes;
	uint64_t blocks;
};

static void observe_change(void *context, const struct observed_memory *seen)
{
	struct map_cost *cost = context;
	size_t bytes;

	memory_segments_change(cost->map, seen);
	bytes = memory_segments_bytes(cost->map);
	if (bytes > cost->bytes)
		cost->bytes = bytes;
	cost->blocks += seen->change->allocated_bytes && seen->event->kind == TRACE_TENSOR;
}

static void restart(void *context)
{
	memory_segments_restart(((struct map_cost *)context)->map);
}

struct sums {
	uint64_t segments, tensors, gaps;
};

static void sum_segment(void *context, const struct segment_parts *parts)
{
	struct sums *sums = context;

	sums->segments += parts->segment->bytes;
	sums->tensors += parts->in_blocks;
	sums->gaps += parts->in_gaps;
}

/* The map must end with what the program holds. */
static void check_map(const struct memory_segments *map)
{
	struct sums sums = { .segments = 0 };
	uint64_t held = 0;

	for (uint32_t i = 0; i < SEGMENTS * SLOTS; i++)
		held += (uint64_t)units_of_slot[i] * TRACE_TENSOR_UNIT;
	memory_segments_visit(
		map, 0, &(struct segment_visitor){ .context = &sums, .segment = sum_segment });
	if (sums.segments != SEGMENTS * SEGMENT_BYTES || sums.tensors != held ||
		sums.tensors + sums.gaps != sums.segments)
		fatal(STATUS_UNREADABLE, "the map lost count");
}

static double cpu_seconds(void)
{
	struct timespec now;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
	return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

/* Returns the seconds of a pass. `cost` NULL: without the map. */
static double pass_seconds(const char *path, struct map_cost *cost)
{
	const struct profile_observer observer = { .context = cost,
		.restart = cost ? restart : NULL,
		.memory = cost ? observe_change : NULL };
	const struct profile_options options = { .device = -1,
		.metric = METRIC_CPU,
		.observer = &observer,
		.no_timeline = true,
		.no_owners_and_delays = true,
		.no_percentiles = true };
	struct string_table *texts = string_table_new();
	char error[READER_ERROR_BYTES];
	struct trace_reader *reader = reader_open(path, error);
	const double start = cpu_seconds();
	double seconds;

	if (!reader)
		fatal(STATUS_UNREADABLE, "%s", error);
	if (cost)
		cost->map = memory_segments_new();
	profile_free(profile_build(reader, texts, &options));
	seconds = cpu_seconds() - start;
	if (!reader_integrity(reader)->complete)
		fatal(STATUS_UNREADABLE, "the trace that was made is not whole");
	if (cost) {
		check_map(cost->map);
		memory_segments_free(cost->map);
	}
	reader_close(reader);
	string_table_free(texts);
	return seconds;
}

static int by_value(const void *a, const void *b)
{
	const double left = *(const double *)a, right = *(const double *)b;

	return (left > right) - (left < right);
}

int main(void)
{
	const char *path = "bench-memory.bin";
	double ratios[ROUNDS], with = 0, without = 0;
	struct map_cost cost = { .bytes = 0 };
	bool missed;

	write_trace(path);
	for (int round = 0; round < ROUNDS; round++) {
		cost.blocks = 0;
		without = pass_seconds(path, NULL);
		with = pass_seconds(path, &cost);
		ratios[round] = with / without;
	}
	unlink(path);
	qsort(ratios, ROUNDS, sizeof *ratios, by_value);
	missed = ratios[ROUNDS / 2] > TIME_GATE || cost.bytes > BYTES_GATE ||
		 cost.blocks < ALLOCATIONS;
	printf("%-6s %-52s %8.3f times the pass without it (at most %g)  %.1f MB (at most %.1f); "
	       "%llu tensors, %.2f s against %.2f s\n",
		missed ? "MISSED" : "ok", "map of segments", ratios[ROUNDS / 2], TIME_GATE,
		(double)cost.bytes / 1e6, (double)BYTES_GATE / 1e6, (unsigned long long)cost.blocks,
		with, without);
	return missed;
}
