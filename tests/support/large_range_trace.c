/* SPDX-License-Identifier: MIT */
#include "tests/support/large_range_trace.h"
#include "report/base/error.h"
#include "tests/support/block_writer.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum {
	DEPTH = RANGE_TRACE_DEPTH,
	CHAINS = RANGE_TRACE_CHAINS,
	NAMES = CHAINS + DEPTH,
	SLOTS = 1 << 17
};
#define FIRST_STAMP 1000u
/* The optional node around all others. The last name is its name. */
#define OUTERMOST (CHAINS * DEPTH + 1)

/* Generates the same events for the trace and for the reference, one after the other. */
struct source {
	uint64_t stamp;
	uint32_t chain, step;
};

static struct range_event next_event(struct source *source)
{
	struct range_event event;

	source->stamp += 20 + ((source->stamp * 2654435761u) >> 28 & 31);
	event = (struct range_event){ .stamp = source->stamp,
		.id = source->step < DEPTH ? source->chain + source->step + 1 : 0 };
	if (++source->step == 2 * DEPTH) {
		source->step = 0;
		source->chain = source->chain + 1 < CHAINS ? source->chain + 1 : 0;
	}
	return event;
}

enum { PAGE = 4096 };

struct range_event *range_trace_events(size_t count)
{
	const size_t size = (count * sizeof(struct range_event) + PAGE - 1) / PAGE * PAGE;
	struct range_event *events = aligned_alloc(PAGE, size);
	struct source source = { .stamp = FIRST_STAMP };

	if (!events)
		fatal(STATUS_UNREADABLE, "no memory");
	madvise(events, size, MADV_DONTFORK);
	for (size_t i = 0; i < count; i++)
		events[i] = next_event(&source);
	return events;
}

/* ---- the reference ---- */

struct reference_node {
	uint32_t id, parent;
	uint64_t count, sum, self, least, most;
};

struct reference {
	struct reference_node *nodes;
	struct {
		uint64_t key;
		uint32_t node;
	} * slots;
	uint32_t count;
	uint64_t begin[64], inner[64];
	uint32_t stack[64], depth;
};

static uint32_t child(struct reference *reference, uint32_t parent, uint32_t id)
{
	const uint64_t key = (uint64_t)(parent + 1) << 32 | id;
	size_t i = key * 0x9e3779b97f4a7c15u >> 40 & (SLOTS - 1);

	for (;; i = (i + 1) & (SLOTS - 1)) {
		if (reference->slots[i].key == key)
			return reference->slots[i].node;
		if (!reference->slots[i].key) {
			reference->slots[i].key = key;
			reference->slots[i].node = reference->count;
			reference->nodes[reference->count] = (struct reference_node){
				.id = id, .parent = parent, .least = UINT64_MAX
			};
			return reference->count++;
		}
	}
}

static inline void count_event(struct reference *reference, const struct range_event *event)
{
	struct reference_node *node;
	uint64_t duration;

	if (event->id) {
		const uint32_t entered = child(
			reference, reference->stack[reference->depth], event->id);

		reference->depth++;
		reference->stack[reference->depth] = entered;
		reference->begin[reference->depth] = event->stamp;
		reference->inner[reference->depth] = 0;
		return;
	}
	node = &reference->nodes[reference->stack[reference->depth]];
	duration = event->stamp - reference->begin[reference->depth];
	node->count++;
	node->sum += duration;
	node->self += duration - reference->inner[reference->depth];
	if (duration < node->least)
		node->least = duration;
	if (duration > node->most)
		node->most = duration;
	reference->inner[--reference->depth] += duration;
}

uint64_t range_trace_reference(const struct range_event *events, size_t count)
{
	struct reference reference = { .nodes = calloc(65536, sizeof *reference.nodes),
		.slots = calloc(SLOTS, sizeof *reference.slots),
		.count = 1 };
	uint64_t calls = 0;

	if (!reference.nodes || !reference.slots)
		fatal(STATUS_UNREADABLE, "no memory");
	for (size_t i = 0; i < count; i++)
		count_event(&reference, &events[i]);
	for (uint32_t i = 1; i < reference.count; i++)
		calls += reference.nodes[i].count;
	free(reference.nodes);
	free(reference.slots);
	return calls;
}

/* ---- the trace ---- */

static void put_name(struct block_writer *writer, uint32_t id, const char *text)
{
	struct trace_name *record = block_writer_record(
		writer, TRACE_NAME, sizeof *record + strlen(text));

	record->name = id;
	record->bytes = (uint32_t)strlen(text);
	memcpy(record + 1, text, strlen(text));
}

static void put_node(struct block_writer *writer, uint32_t id, uint32_t parent, uint32_t name)
{
	struct trace_node *record = block_writer_record(writer, TRACE_NODE, sizeof *record);

	record->head.node = id;
	record->parent = parent;
	record->name = name;
	record->kind = TRACE_NODE_RANGE;
	if (writer->used > BLOCK_WRITER_PAYLOAD - 64)
		block_writer_seal(writer, TRACE_DICT, 0);
}

/* Returns a node's id. A parent's id is below those of its children, so with an outermost node all
 * others follow it. */
static uint32_t node_of(uint32_t chain, uint32_t depth, int outermost)
{
	return chain * DEPTH + depth + 1 + (outermost != 0);
}

static void put_dictionary(struct block_writer *writer, int outermost)
{
	char text[32];

	for (uint32_t name = 1; name <= NAMES; name++) {
		snprintf(text, sizeof text, "range_%u_of_many", name);
		put_name(writer, name, text);
	}
	put_name(writer, NAMES + 1, "whole_program");
	block_writer_seal(writer, TRACE_DICT, 0);
	if (outermost)
		put_node(writer, 1, 0, NAMES + 1);
	for (uint32_t chain = 0; chain < CHAINS; chain++)
		for (uint32_t depth = 0; depth < DEPTH; depth++) {
			const uint32_t node = node_of(chain, depth, outermost);

			put_node(
				writer, node, depth ? node - 1 : outermost != 0, chain + depth + 1);
		}
	block_writer_seal(writer, TRACE_DICT, 0);
}

static void put_word(struct block_writer *writer, uint32_t word)
{
	memcpy(writer->payload + writer->used, &word, sizeof word);
	writer->used += sizeof word;
}

/* Begins a payload: a CLOCK record, and an OPEN record of the outermost range if there is one. */
static void begin_payload(struct block_writer *writer, uint64_t stamp, int outermost)
{
	struct trace_open *open;

	block_writer_begin(writer, stamp);
	if (!outermost)
		return;
	open = block_writer_record(writer, TRACE_OPEN, sizeof *open);
	open->head.node = 1;
	open->begin_stamp = FIRST_STAMP;
}

/* Writes the events. Payloads end between two chains, where no further OPEN record is needed. */
static void put_events(struct block_writer *writer, size_t count, int outermost)
{
	struct source source = { .stamp = FIRST_STAMP };
	uint64_t last = source.stamp;

	block_writer_begin(writer, source.stamp);
	if (outermost)
		put_word(writer, 1 | 1u << 16);
	for (size_t i = 0; i < count; i++) {
		const uint32_t node = node_of(source.chain, source.step, outermost);
		const struct range_event event = next_event(&source);

		put_word(writer,
			(uint32_t)(event.stamp - last) << 2 | (event.id ? 1 | node << 16 : 2));
		last = event.stamp;
		if (source.step == 0 && writer->used > BLOCK_WRITER_PAYLOAD - 128) {
			block_writer_seal(writer, TRACE_CHUNK, 1);
			begin_payload(writer, event.stamp, outermost);
		}
	}
	if (outermost)
		put_word(writer, 2);
	block_writer_seal(writer, TRACE_CHUNK, 1);
}

uint64_t range_trace_write(const char *path, size_t count, int outermost)
{
	struct block_writer *writer = block_writer_open(path);

	put_dictionary(writer, outermost);
	put_events(writer, count, outermost);
	return block_writer_close(writer, 1);
}
