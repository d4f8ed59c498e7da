/* SPDX-License-Identifier: MIT
 * kineto_trace.h: from Kineto's rows to a trace of our own. kineto_trace.c (all of it), kineto_order.c (rows by thread and
 * time), kineto_places.c (the dictionary), kineto_facts.c (what is known of the run and the file), kineto_thread.c (one
 * thread), kineto_links.c (what ran backward for what), kineto_calls.c (which calls make a GPU work), kineto_enclosure.c
 * (work without ids), kineto_python.c (stacks), kineto_memory.c, kineto_gpu.c.
 */
#ifndef PPERF_REPORT_IMPORT_CONVERT_CONVERT_H
#define PPERF_REPORT_IMPORT_CONVERT_CONVERT_H

#include "report/import/convert/event_rows.h"
#include "report/import/convert/python_stacks.h"
#include "report/trace/trace_writer.h"

/* Writes the trace into an empty file. False: errno. The rows are put in order, and are of no further use. */
bool kineto_write(struct kineto *kineto, int fd);

/* ---- between those files ---- */

struct node_slot {
	uint32_t parent, name, link, kind, domain, detail, node;
};

/* The call that a correlation id belongs to, and what the GPU did for it. */
struct kineto_owner {
	uint64_t correlation;
	uint32_t call; /* its row + 1; 0: the file does not have it */
	uint32_t work; /* bits, 1 << enum kineto_work */
};

struct kineto_build {
	struct kineto *kineto;
	struct trace_writer *writer;
	int64_t first, last;      /* times of the file */
	uint32_t *names;          /* by text: the trace's name, 0: none so far */
	size_t name_room;
	struct node_slot *nodes;  /* hash table of places */
	size_t node_slots, node_count;
	uint32_t *order;          /* ranges by thread, then start, the longer first */
	size_t *thread_begin;     /* by thread: where its part of `order` begins; one more behind the last */
	uint32_t *calls, *memories, *moments, *frames; /* the same of calls, of memory events, of moments, of Python's calls */
	size_t *call_begin, *memory_begin, *moment_begin, *frame_begin;
	uint32_t *placed;         /* by range: its node, 0: not yet */
	uint32_t *links;          /* by range: the range that it runs backward for + 1 */
	struct python_stacks stacks;
	struct kineto_owner *owners; /* hash table */
	size_t owner_slots;
	struct kineto_call_name {
		enum trace_kind kind; /* 0: not asked for yet */
		uint32_t sync;
	} * call_names; /* by text */
	size_t call_name_room;
	struct kineto_counts {
		uint64_t too_deep;    /* ranges that are left out: too many were open */
		uint64_t overlapping; /* ranges that end after one around them */
		uint64_t twice;       /* calls that the file has a second time, in themselves */
	} counts;
	struct kineto_cpu_memory {
		uint64_t allocs, frees, alloc_bytes, free_bytes;
		uint64_t peak; /* of what the allocator said that it had given; 0: it did not say */
	} cpu;
};

uint32_t kineto_name(struct kineto_build *build, uint32_t text);
/* Of a range, with that parent and link. */
uint32_t kineto_node(struct kineto_build *build, uint32_t parent, const struct kineto_range *range, uint32_t link);
/* The text of a domain by its row + 1. */
uint32_t kineto_domain(const struct kineto *kineto, uint32_t domain);

/* Sorts rows by their numbers, unless they are in order, as files often are. */
void kineto_order(uint32_t *rows, size_t count, int (*compare)(const void *, const void *, void *), void *context);

/* Fills order, calls, memories, moments, frames. */
void kineto_sort_rows(struct kineto_build *build);

/* After all else, of which it tells. added: of the memory, something is added up. */
void kineto_facts_write(struct kineto_build *build, uint32_t pid, bool added);

/* Of memory events, by time. Drops those of the CPU. True: something had to be added up that the file does not say. */
int kineto_by_time(const void *a, const void *b, void *memories);
bool kineto_memory_prepare(struct kineto_build *build);

/* Writes the GPU's events as a stream of their own. */
void kineto_gpu_write(struct kineto_build *build);

/* The record that a call becomes, by its name alone: TRACE_SYNC where it makes no GPU work. */
enum trace_kind kineto_call_kind(struct text name);
/* Finds the calls of work without a correlation id, where External ids lead to some. */
void kineto_enclose(struct kineto *kineto);
/* Fills owners. */
void kineto_calls_own(struct kineto_build *build);
/* NULL: nothing on a GPU has this id. */
struct kineto_owner *kineto_owner_of(const struct kineto_build *build, uint64_t correlation);
/* Where a call was made. */
struct kineto_place {
	uint32_t node, stack;
};
/* Writes the record of a call that returns at `end`. inner: it lies in another call. */
void kineto_call_write(
	struct kineto_build *build, uint32_t call, struct kineto_place place, uint64_t end, bool inner);

/* Sets kind and links of what runs backward. */
void kineto_links_find(struct kineto_build *build);

/* Writes a thread's events as a stream. */
void kineto_thread_write(struct kineto_build *build, uint32_t thread);

#endif
