/* SPDX-License-Identifier: MIT
 * Builds traces byte by byte, for tests of everything that reads them. Shares no code with the
 * library that writes real traces.
 *
 *	struct trace_builder *builder = builder_new();
 *
 *	build_push(builder, 1, 100, "step");
 *	build_push(builder, 1, 110, "layer");
 *	build_pop(builder, 1, 150);
 *	build_seal(builder, 1, SEAL_WHOLE);
 *	build_pop(builder, 1, 200);
 *	builder_write(builder, "trace.bin");
 *	builder_free(builder);
 *
 * Times (`at`) are ticks since the trace's start; ticks are nanoseconds (TRACE_CLOCK_MONOTONIC)
 * unless the header is changed. Streams are numbers from 1 and come into being when first named;
 * their thread id is 1000 + stream. Names and nodes get their ids as they are used. Each payload
 * begins with its CLOCK and OPEN records, as the format requires. A payload that is not sealed at
 * the end becomes a slot. The file has the header, the dictionary, slots, then chunks in the order
 * of sealing. If a function is used wrongly or memory runs out, it prints a sentence and aborts.
 */
#ifndef PPERF_TESTS_SUPPORT_TRACE_BUILDER_H
#define PPERF_TESTS_SUPPORT_TRACE_BUILDER_H

#include "collector/trace_format.h"
#include <stddef.h>

#define BUILDER_START 1000000000u                  /* header.start.raw and .monotonic_ns */
#define BUILDER_START_UNIX_NS 1700000000000000000u /* header.start.realtime_ns */

struct trace_builder;

struct trace_builder *builder_new(void);
void builder_free(struct trace_builder *builder);

/* Returns the header that will be written; it may be changed. It starts with pid 100, run id 1 and
 * TRACE_ENDED. header.end and header.streams are filled at the end if they are 0. */
struct trace_header *builder_header(struct trace_builder *builder);

/* Returns the whole file so far, valid until the next call. More may be built afterwards. */
const unsigned char *builder_bytes(struct trace_builder *builder, size_t *bytes);
void builder_write(struct trace_builder *builder, const char *path);

/* Functions that build the dictionary. */

/* Returns the id of a name. Equal texts have the same id; NULL has the id 0. */
uint32_t build_name(struct trace_builder *builder, const char *text);
uint32_t build_name_bytes(struct trace_builder *builder, const void *text, size_t bytes);
uint32_t build_node(struct trace_builder *builder, uint32_t parent, const char *name,
	const char *domain, enum trace_node_kind kind);
/* Builds a node with a link (a node or 0) and a detail (a text or NULL) of struct trace_node. */
uint32_t build_linked_node(struct trace_builder *builder, uint32_t parent, const char *name,
	enum trace_node_kind kind, uint32_t link, const char *detail);
void build_meta(struct trace_builder *builder, const char *key, const char *value);
/* Builds any dictionary record of `size` bytes, which are rounded up to a multiple of 8. The head
 * has size and kind, the rest is zero. Returns the record, valid until the next call. */
void *build_dictionary(struct trace_builder *builder, enum trace_kind kind, size_t size);
/* Ends the current dictionary block. The next record begins another one. */
void build_dictionary_seal(struct trace_builder *builder);

/* Functions that build ranges. build_push() finds or adds `name` below the innermost open range of
 * the stream. Pushes return the node. */
uint32_t build_push(struct trace_builder *builder, uint32_t stream, uint64_t at, const char *name);
uint32_t build_push_node(
	struct trace_builder *builder, uint32_t stream, uint64_t at, uint32_t node);
void build_pop(struct trace_builder *builder, uint32_t stream, uint64_t at);
void build_pop_at(struct trace_builder *builder, uint32_t stream, uint64_t at, uint32_t index);
/* A pop of the program for which no range is open. */
void build_pop_without_push(struct trace_builder *builder, uint32_t stream, uint64_t at);
/* Builds a PUSH with attributes, to be filled like build_record(). The range is open afterwards. */
struct trace_range *build_push_record(
	struct trace_builder *builder, uint32_t stream, uint64_t at, uint32_t node, size_t size);

/* Builds any other record of a stream. `size` includes the struct and the texts after it. The head
 * is filled (node: the innermost open range), and the stamp if the kind is TIMED. The rest is zero.
 * Returns the record, valid until the next call. */
void *build_record(struct trace_builder *builder, uint32_t stream, enum trace_kind kind,
	size_t size, uint64_t at);
/* Builds a correct CLOCK record in the middle of a payload. */
void build_clock_record(struct trace_builder *builder, uint32_t stream, uint64_t at);
/* Appends bytes unchanged, records or not. */
void build_raw(struct trace_builder *builder, uint32_t stream, const void *bytes, size_t count);

/* Adds, among the chunks, a block that belongs to no stream. Its type is TRACE_TOTALS, whose
 * payload is an array of struct trace_total, or an unknown one. */
void build_block(struct trace_builder *builder, uint32_t type, const void *payload, size_t bytes);

/* Replaces the whole payload of the stream. No CLOCK or OPEN record is put before it. */
void build_payload(struct trace_builder *builder, uint32_t stream, uint64_t at, const void *bytes,
	size_t count);

/* How the payload of a stream is sealed. The next payload begins with the next record. */
enum seal_kind {
	SEAL_WHOLE,
	SEAL_TORN,    /* the chunk has a wrong crc */
	SEAL_MISSING, /* the payload is left out of the file */
	SEAL_HOLE,    /* its space is reserved and stays zero */
	SEAL_TWICE,   /* the chunk is written twice */
	/* The slot still has the payload, too, as when the process dies between writing the chunk
	 * and emptying the slot. */
	SEAL_AND_SLOT,
	SEAL_TORN_SLOT, /* the chunk is torn, and the slot still has the payload */
};
void build_seal(struct trace_builder *builder, uint32_t stream, enum seal_kind how);
/* Counts events that could not be recorded, in the stream's head from now on. */
void build_lost(struct trace_builder *builder, uint32_t stream, uint64_t events);
/* Shifts CLOCK_REALTIME of every later CLOCK record, and of header.last, by `ns`, as if the
 * system's clock had been set. header.start stays. */
void build_step_realtime(struct trace_builder *builder, int64_t ns);
/* Makes ticks those of a time stamp counter: `ticks` of them in `ns` nanoseconds. Call it before
 * anything is built. */
void build_tsc(struct trace_builder *builder, uint64_t ns, uint64_t ticks);
/* Shifts CLOCK_MONOTONIC of the next CLOCK record alone by `ns`: a damaged sample. */
void build_wrong_clock(struct trace_builder *builder, int64_t ns);

#endif
