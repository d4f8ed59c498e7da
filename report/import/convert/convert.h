/* SPDX-License-Identifier: MIT
 * kineto_trace.h: from Kineto's rows to a trace of our own. kineto_trace.c (all of it), kineto_order.c (rows by thread and
 * time), kineto_places.c (the dictionary), kineto_facts.c (what is known of the run and the file), kineto_thread.c (one
 * thread), kineto_links.c (what ran backward for what), kineto_calls.c (which calls make a GPU work), kineto_enclosure.c
 * (work without ids), kineto_python.c (stacks), kineto_memory.c, kineto_gpu.c.
 */
#ifndef PPERF_REPORT_IMPORT_CONVERT_CONVERT_H
#define PPERF_REPORT_IMPORT_CONVERT_CONVERT_H

#include "report/base/hash_index.h"
#include "report/import/convert/event_rows.h"
#include "report/import/convert/python_stacks.h"
#include "report/trace/trace_writer.h"

/* Writes the trace into an empty file. False: errno. The rows are put in order, and are of no further use. */
bool convert_rows(struct event_rows *imported, int fd);

/* ---- between those files ---- */

struct node_key {
	uint32_t parent, name, link, kind, domain, detail;
};

/* The call that a correlation id belongs to, and what the GPU did for it. */
struct correlation_owner {
	uint64_t correlation;
	uint32_t call; /* its row + 1; 0: the file does not have it */
	uint32_t work; /* bits, 1 << enum kineto_work */
};

struct conversion {
	struct event_rows *imported;
	struct trace_writer *writer;
	int64_t first, last; /* times of the file */
	uint32_t *names;     /* by text: the trace's name, 0: none so far */
	size_t name_room;
	struct hash_index nodes;    /* the trace's nodes, by node_keys */
	struct node_key *node_keys; /* by node */
	size_t node_key_room;
	uint32_t *order;      /* ranges by thread, then start, the longer first */
	size_t *thread_begin; /* by thread: where its part of `order` begins; one more behind the last */
	uint32_t *calls, *memories, *instants,
		*frames; /* the same of calls, of memory events, of moments, of Python's calls */
	size_t *call_begin, *memory_begin, *instant_begin, *frame_begin;
	uint32_t *range_nodes; /* by range: its node, 0: not yet */
	uint32_t *links;       /* by range: the range that it runs backward for + 1 */
	struct imported_stacks stacks;
	struct correlation_owner *owners; /* hash table */
	size_t owner_slots;
	struct conversion_call_name {
		enum trace_kind kind; /* 0: not asked for yet */
		uint32_t sync;
	} * call_names; /* by text */
	size_t call_name_room;
	struct conversion_counts {
		uint64_t too_deep;    /* ranges that are left out: too many were open */
		uint64_t overlapping; /* ranges that end after one around them */
		uint64_t duplicates;  /* calls that the file has a second time, in themselves */
	} counts;
	struct conversion_cpu_memory {
		uint64_t allocs, frees, alloc_bytes, free_bytes;
		uint64_t peak; /* of what the allocator said that it had given; 0: it did not say */
	} cpu;
};

uint32_t convert_name(struct conversion *conversion, uint32_t text);
/* Of a range, with that parent and link. */
uint32_t convert_node(struct conversion *conversion, uint32_t parent,
	const struct imported_range *range, uint32_t link);
/* The text of a domain by its row + 1. */
uint32_t convert_domain_name(const struct event_rows *imported, uint32_t domain);

/* Sorts rows by their numbers, unless they are in order, as files often are. */
void sort_row_numbers(uint32_t *rows, size_t count,
	int (*compare)(const void *, const void *, void *), void *context);

/* Fills order, calls, memories, moments, frames. */
void convert_sort_rows(struct conversion *conversion);

/* After all else, of which it tells. added: of the memory, something is added up. */
void convert_metadata(struct conversion *conversion, uint32_t pid, bool added);

/* Of memory events, by time. Drops those of the CPU. True: something had to be added up that the file does not say. */
int compare_memory_times(const void *a, const void *b, void *memories);
bool convert_prepare_memory(struct conversion *conversion);

/* Writes the GPU's events as a stream of their own. */
void convert_gpu_events(struct conversion *conversion);

/* The record that a call becomes, by its name alone: TRACE_SYNC where it makes no GPU work. */
enum trace_kind cuda_call_kind(struct string_view name);
/* Finds the calls of work without a correlation id, where External ids lead to some. */
void match_calls_without_ids(struct event_rows *imported);
/* Fills owners. */
void convert_find_owners(struct conversion *conversion);
/* NULL: nothing on a GPU has this id. */
struct correlation_owner *convert_owner(const struct conversion *conversion, uint64_t correlation);
/* Where a call was made. */
struct call_location {
	uint32_t node, stack;
};
/* Writes the record of a call that returns at `end`. inner: it lies in another call. */
void convert_call(struct conversion *conversion, uint32_t call, struct call_location place,
	uint64_t end, bool inner);

/* Sets kind and links of what runs backward. */
void convert_find_backward_links(struct conversion *conversion);

/* Writes a thread's events as a stream. */
void convert_thread(struct conversion *conversion, uint32_t thread);

#endif
