/* SPDX-License-Identifier: MIT
 * bench_samples.c [keep]: what the views of CPU samples cost, for a million samples of 8 threads in
 * 40,000 different stacks, half of them in ranges. The reference of a view is the same view, or the
 * one nearest to it, of as many ranges (large_range_trace.h). Processor time of whole processes, in
 * turns, the least of the rounds; exits with 1 if a gate is missed. `keep`: only writes the traces.
 */
#include "tests/support/block_writer.h"
#include "tests/support/large_range_trace.h"
#include "tests/support/view_cost.h"

#include <libgen.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { ROUNDS = 7, THREADS = 8, FUNCTIONS = 2000, STACKS = 40000, PYTHON_STACKS = 5000 };
#define SAMPLES 1000000u
#define PERIOD_NS 10000000u /* 100 Hz of each thread */
#define RANGES "bench-ranges.bin"
#define TRACE "bench-samples.bin"

/* What is measured, its reference, and the gate: a sixth above what was measured. */
static const struct {
	const char *of_samples[VIEW_WORDS], *of_ranges[VIEW_WORDS];
	double most;
} views[] = {
	{ { "kernels" }, { "kernels" }, 2.5 }, /* one profile pass */
	{ { "table", "--by", "function" }, { "table" }, 7 },
	{ { "tree", "--functions" }, { "tree" }, 12.5 },
	{ { "summary" }, { "summary" }, 3 },
};
enum { VIEWS = sizeof views / sizeof *views };

static uint64_t noise = 1;

static uint32_t draw(uint32_t limit)
{
	noise = noise * 6364136223846793005u + 1442695040888963407u;
	return (uint32_t)((noise >> 33) % limit);
}

/* Draws a few stacks much more often than the others, as programs have them. */
static uint32_t draw_often(uint32_t limit)
{
	const uint64_t part = draw(1u << 20), power = part * part >> 20;

	return (uint32_t)((power * power >> 20) * limit >> 20);
}

static void keep_room(struct block_writer *writer)
{
	if (writer->used > BLOCK_WRITER_PAYLOAD - 64)
		block_writer_seal(writer, TRACE_DICT, 0);
}

static void put_name(struct block_writer *writer, uint32_t id)
{
	char text[32];
	const int length = snprintf(text, sizeof text, "function_%u", id);
	struct trace_name *record = block_writer_record(
		writer, TRACE_NAME, sizeof *record + (size_t)length);

	record->name = id;
	record->bytes = (uint32_t)length;
	memcpy(record + 1, text, (size_t)length);
	keep_room(writer);
}

/* The ids of native frames, then those of Python frames. A parent's id is lower. */
static void put_frames(struct block_writer *writer)
{
	for (uint32_t id = 1; id <= STACKS; id++) {
		struct trace_frame *frame = block_writer_record(writer, TRACE_FRAME, sizeof *frame);

		frame->frame = id;
		frame->parent = id - 1 - draw(id < 4 ? id : id / 4);
		frame->address = 0x7f0000000000 + draw(FUNCTIONS * 4) * 64;
		keep_room(writer);
	}
	for (uint32_t id = 1; id <= PYTHON_STACKS; id++) {
		struct trace_python_node *frame = block_writer_record(
			writer, TRACE_PYTHON_FRAME, sizeof *frame);

		frame->frame = STACKS + id;
		frame->parent = id < 4 ? 0 : STACKS + id - 1 - draw(id / 3 + 1);
		frame->at = (struct trace_python_frame){ .function = 1 + draw(FUNCTIONS),
			.file = 1 + draw(FUNCTIONS / 10),
			.line = id };
		keep_room(writer);
	}
}

static void put_dictionary(struct block_writer *writer)
{
	struct trace_node *node;

	for (uint32_t id = 1; id <= FUNCTIONS; id++)
		put_name(writer, id);
	put_frames(writer);
	node = block_writer_record(writer, TRACE_NODE, sizeof *node);
	node->head.node = node->name = 1;
	node->kind = TRACE_NODE_RANGE;
	block_writer_seal(writer, TRACE_DICT, 0);
}

/* Half of the threads have a range open for the whole run. */
static void put_range(struct block_writer *writer, uint32_t thread, uint64_t end)
{
	const uint32_t words[2] = { 1 | 1u << 16, 2 };

	block_writer_begin(writer, 1000);
	memcpy(writer->payload + writer->used, &words[0], sizeof *words);
	writer->used += sizeof *words;
	block_writer_seal(writer, TRACE_CHUNK, thread);
	block_writer_begin(writer, end);
	((struct trace_open *)block_writer_record(writer, TRACE_OPEN, sizeof(struct trace_open)))
		->head.node = 1;
	memcpy(writer->payload + writer->used, &words[1], sizeof *words);
	writer->used += sizeof *words;
	block_writer_seal(writer, TRACE_CHUNK, thread);
}

/* A batch of samples of all threads is written a while after they were taken. */
static void put_samples(struct block_writer *writer)
{
	uint64_t written = PERIOD_NS;

	block_writer_begin(writer, written);
	for (uint32_t i = 0; i < SAMPLES; i++) {
		struct trace_sample *sample = block_writer_record(
			writer, TRACE_SAMPLE, sizeof *sample);
		const uint32_t stack = draw_often(STACKS) / THREADS * THREADS + i % THREADS;

		sample->stamp = written += i % THREADS ? 2000 : PERIOD_NS - 2000 * (THREADS - 1);
		sample->ago = draw(20000);
		sample->tid = 1 + i % THREADS;
		sample->pc = 0x7f0000000000 + (stack % FUNCTIONS) * 64;
		sample->native = 1 + stack;
		sample->python = STACKS + 1 + stack % PYTHON_STACKS;
		sample->state = TRACE_SAMPLE_ON_CPU;
		sample->weight = PERIOD_NS / TRACE_SAMPLE_WEIGHT_NS;
		if (writer->used > BLOCK_WRITER_PAYLOAD - sizeof *sample - 64) {
			block_writer_seal(writer, TRACE_CHUNK, THREADS + 1);
			block_writer_begin(writer, written);
		}
	}
	block_writer_seal(writer, TRACE_CHUNK, THREADS + 1);
	for (uint32_t thread = 1; thread <= THREADS / 2; thread++)
		put_range(writer, thread, written);
}

static void write_trace(void)
{
	struct block_writer *writer = block_writer_open(TRACE);

	put_dictionary(writer);
	put_samples(writer);
	block_writer_close(writer, THREADS + 1);
}

static double run(const char *report, const char *const words[VIEW_WORDS], const char *trace)
{
	struct view_cost cost;

	if (!view_run(report, words, trace, &cost)) {
		printf("MISSED %s of %s: it failed\n", words[0], trace);
		exit(1);
	}
	return cost.seconds;
}

static int print_ratio(int view, const double *seconds, const double *reference)
{
	const double of_samples = view_minimum(seconds, ROUNDS),
		     of_ranges = view_minimum(reference, ROUNDS), ratio = of_samples / of_ranges;
	const char *const *words = views[view].of_samples;

	printf("%-6s %-8s %-4s %-12s %5.2f x %s of as many ranges (at most %g)  %.3f s against "
	       "%.3f s\n",
		ratio > views[view].most ? "MISSED" : "ok", words[0], words[1] ? words[1] : "",
		words[2] ? words[2] : "", ratio, views[view].of_ranges[0], views[view].most,
		of_samples, of_ranges);
	return ratio > views[view].most;
}

int main(int argc, char **argv)
{
	double reference[VIEWS][ROUNDS], seconds[VIEWS][ROUNDS];
	char report[4096];
	int missed = 0;

	snprintf(report, sizeof report, "%s/../../pperf-report", dirname(argv[0]));
	write_trace();
	range_trace_write(RANGES, 2 * (size_t)SAMPLES, 0);
	if (argc > 1)
		return 0;
	for (int round = 0; round < ROUNDS; round++)
		for (int i = 0; i < VIEWS; i++) {
			reference[i][round] = run(report, views[i].of_ranges, RANGES);
			seconds[i][round] = run(report, views[i].of_samples, TRACE);
		}
	unlink(RANGES);
	unlink(TRACE);
	for (int i = 0; i < VIEWS; i++)
		missed += print_ratio(i, seconds[i], reference[i]);
	return missed != 0;
}
