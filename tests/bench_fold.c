/* SPDX-License-Identifier: MIT
 * bench_fold.c: how fast a trace of nothing but ranges is folded, against the least that could be called a fold of
 * the same events: 16 bytes an event in memory, a stack, a hash table of places, count, total, self, shortest,
 * longest. Processor time, in turns; exits with 1 if the gate is missed.
 *
 * The events: ranges nested 5 deep, 996 chains of names, some 20 to 50 ticks apart; about 5000 places.
 */
#include "report/fatal.h"
#include "report/fold.h"
#include "tests/block_writer.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { DEPTH = 5, CHAINS = 996, NAMES = CHAINS + DEPTH, ROUNDS = 7 };
#define PAIRS 10000000u
#define GATE 0.35

struct event {
	uint64_t stamp;
	uint32_t id, reserved; /* id: of the name; 0 the innermost closes */
};

/* The same events for both, one after the other. */
struct source {
	uint64_t stamp;
	uint32_t chain, step;
};

static struct event next_event(struct source *source)
{
	struct event event;

	source->stamp += 20 + ((source->stamp * 2654435761u) >> 28 & 31);
	event = (struct event){ .stamp = source->stamp,
		.id = source->step < DEPTH ? source->chain + source->step + 1 : 0 };
	if (++source->step == 2 * DEPTH) {
		source->step = 0;
		source->chain = source->chain + 1 < CHAINS ? source->chain + 1 : 0;
	}
	return event;
}

/* The reference. */
struct place {
	uint32_t id, parent;
	uint64_t count, sum, self, least, most;
};

struct reference {
	struct place *places;
	struct {
		uint64_t key;
		uint32_t place;
	} * slots;
	uint32_t count;
	uint64_t begin[64], inner[64];
	uint32_t stack[64], depth;
};

enum { SLOTS = 1 << 17 };

static uint32_t child(struct reference *fold, uint32_t parent, uint32_t id)
{
	const uint64_t key = (uint64_t)(parent + 1) << 32 | id;
	size_t i = key * 0x9e3779b97f4a7c15u >> 40 & (SLOTS - 1);

	for (;; i = (i + 1) & (SLOTS - 1)) {
		if (fold->slots[i].key == key)
			return fold->slots[i].place;
		if (!fold->slots[i].key) {
			fold->slots[i].key = key;
			fold->slots[i].place = fold->count;
			fold->places[fold->count] = (struct place){ .id = id, .parent = parent, .least = UINT64_MAX };
			return fold->count++;
		}
	}
}

static inline void fold_event(struct reference *fold, const struct event *event)
{
	struct place *place;
	uint64_t duration;

	if (event->id) {
		const uint32_t entered = child(fold, fold->stack[fold->depth], event->id);

		fold->depth++;
		fold->stack[fold->depth] = entered;
		fold->begin[fold->depth] = event->stamp;
		fold->inner[fold->depth] = 0;
		return;
	}
	place = &fold->places[fold->stack[fold->depth]];
	duration = event->stamp - fold->begin[fold->depth];
	place->count++;
	place->sum += duration;
	place->self += duration - fold->inner[fold->depth];
	if (duration < place->least)
		place->least = duration;
	if (duration > place->most)
		place->most = duration;
	fold->inner[--fold->depth] += duration;
}

static uint64_t run_reference(const struct event *events, size_t count)
{
	struct reference fold = {
		.places = calloc(65536, sizeof *fold.places), .slots = calloc(SLOTS, sizeof *fold.slots), .count = 1
	};
	uint64_t calls = 0;

	if (!fold.places || !fold.slots)
		fatal(STATUS_UNREADABLE, "no memory");
	for (size_t i = 0; i < count; i++)
		fold_event(&fold, &events[i]);
	for (uint32_t i = 1; i < fold.count; i++)
		calls += fold.places[i].count;
	free(fold.places);
	free(fold.slots);
	return calls;
}

static void put_dictionary(struct block_writer *writer)
{
	char text[32];

	for (uint32_t name = 1; name <= NAMES; name++) {
		const size_t length = (size_t)snprintf(text, sizeof text, "range_%u_of_many", name);
		struct trace_name *record = block_writer_record(writer, TRACE_NAME, sizeof *record + length);

		record->name = name;
		record->bytes = (uint32_t)length;
		memcpy(record + 1, text, length);
	}
	block_writer_seal(writer, TRACE_DICT, 0);
	for (uint32_t node = 1; node <= CHAINS * DEPTH; node++) {
		struct trace_node *record = block_writer_record(writer, TRACE_NODE, sizeof *record);

		record->head.node = node;
		record->parent = (node - 1) % DEPTH ? node - 1 : 0;
		record->name = (node - 1) / DEPTH + (node - 1) % DEPTH + 1;
		record->kind = TRACE_NODE_RANGE;
		if (writer->used > BLOCK_WRITER_PAYLOAD - 64)
			block_writer_seal(writer, TRACE_DICT, 0);
	}
	block_writer_seal(writer, TRACE_DICT, 0);
}

/* Payloads end between two chains, so that no OPEN is needed. */
static void put_events(struct block_writer *writer, size_t count)
{
	struct source source = { .stamp = 1000 };
	uint64_t last = source.stamp;
	uint32_t word;

	block_writer_begin(writer, source.stamp);
	for (size_t i = 0; i < count; i++) {
		const uint32_t node = source.chain * DEPTH + source.step + 1;
		const struct event event = next_event(&source);

		word = (uint32_t)(event.stamp - last) << 2 | (event.id ? 1 : 2);
		if (event.id)
			word |= node << 16;
		memcpy(writer->payload + writer->used, &word, sizeof word);
		writer->used += sizeof word;
		last = event.stamp;
		if (source.step == 0 && writer->used > BLOCK_WRITER_PAYLOAD - 128) {
			block_writer_seal(writer, TRACE_CHUNK, 1);
			block_writer_begin(writer, event.stamp);
		}
	}
	block_writer_seal(writer, TRACE_CHUNK, 1);
}

static uint64_t write_trace(const char *path, size_t count)
{
	struct block_writer *writer = block_writer_open(path);

	put_dictionary(writer);
	put_events(writer, count);
	return block_writer_close(writer, 1);
}

static double cpu_seconds(void)
{
	struct timespec now;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
	return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

/* Opening and finding the blocks included. */
static uint64_t run_ours(const char *path)
{
	const struct fold_options options = { .device = -1, .metric = METRIC_CPU };
	struct texts *texts = texts_new();
	char error[READER_ERROR_BYTES];
	struct trace_reader *reader = reader_open(path, error);
	struct fold *fold;
	uint64_t calls = 0;

	if (!reader)
		fatal(STATUS_UNREADABLE, "%s", error);
	if (steps_find(reader, NULL, NULL)) /* as the tool does: one look at the names */
		fatal(STATUS_UNREADABLE, "the trace that was made has steps");
	fold = fold_run(reader, texts, &options);
	if (!reader_integrity(reader)->complete)
		fatal(STATUS_UNREADABLE, "the trace that was made is not whole");
	for (uint32_t id = 1; id < fold->tree->count; id++)
		calls += fold->tree->nodes[id].calls;
	fold_free(fold);
	reader_close(reader);
	texts_free(texts);
	return calls;
}

static int by_value(const void *a, const void *b)
{
	const double left = *(const double *)a, right = *(const double *)b;

	return (left > right) - (left < right);
}

int main(void)
{
	const size_t count = 2 * (size_t)PAIRS;
	struct event *events = malloc(count * sizeof *events);
	double ours[ROUNDS], reference[ROUNDS], ratios[ROUNDS];
	const char *path = "bench-fold.bin";
	struct source source = { .stamp = 1000 };
	uint64_t bytes;

	if (!events)
		fatal(STATUS_UNREADABLE, "no memory");
	for (size_t i = 0; i < count; i++)
		events[i] = next_event(&source);
	bytes = write_trace(path, count);
	for (int round = 0; round < ROUNDS; round++) {
		double start = cpu_seconds();

		if (run_reference(events, count) != PAIRS)
			fatal(STATUS_UNREADABLE, "the reference lost count");
		reference[round] = cpu_seconds() - start;
		start = cpu_seconds();
		if (run_ours(path) != PAIRS)
			fatal(STATUS_UNREADABLE, "the fold lost count");
		ours[round] = cpu_seconds() - start;
		ratios[round] = reference[round] / ours[round];
	}
	unlink(path);
	free(events);
	qsort(ours, ROUNDS, sizeof *ours, by_value);
	qsort(reference, ROUNDS, sizeof *reference, by_value);
	qsort(ratios, ROUNDS, sizeof *ratios, by_value);
	printf("%-6s %-52s %8.3f of the reference (at least %g)  %.1f million events a second, reference %.1f; %.1f "
	       "bytes a pair\n",
		ratios[ROUNDS / 2] >= GATE ? "ok" : "MISSED", "fold", ratios[ROUNDS / 2], GATE,
		(double)count / ours[ROUNDS / 2] / 1e6, (double)count / reference[ROUNDS / 2] / 1e6,
		(double)bytes / PAIRS);
	return ratios[ROUNDS / 2] < GATE;
}
