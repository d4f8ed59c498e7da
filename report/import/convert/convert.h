/* SPDX-License-Identifier: MIT
 * Converts the rows of event_rows.h to a trace in pperf's format. The files of this folder:
 *
 *	convert.c		the trace as a whole
 *	row_order.c		rows sorted by thread and time
 *	node_dictionary.c	names and nodes
 *	trace_metadata.c	META records and devices
 *	thread_events.c		the events of one thread
 *	backward_links.c	from backward functions to their operators
 *	name_words.c		the words that the names of both share
 *	cuda_calls.c		calls and their correlation ids
 *	match_without_ids.c	GPU work without correlation ids
 *	unrecorded_launches.c	calls without a GPU record
 *	graph_captures.c	graph launches, and another file with their captures
 *	python_stacks.c		Python call stacks
 *	allocator_events.c	memory events
 *	gpu_events.c		GPU work
 *	device_numbers.c	GPUs of the records and described GPUs
 */
#ifndef PPERF_REPORT_IMPORT_CONVERT_CONVERT_H
#define PPERF_REPORT_IMPORT_CONVERT_CONVERT_H

#include "report/base/compare.h"
#include "report/base/hash_index.h"
#include "report/import/convert/event_rows.h"
#include "report/import/convert/python_stacks.h"
#include "report/trace/trace_writer.h"

/* Writes a trace of `imported` to the empty file `fd`. Sorts the rows, which must not be used
 * afterwards. Returns false with errno if writing failed. */
bool convert_rows(struct event_rows *imported, int fd);

/* Gives the only described GPU the number of the only one that has records, if they differ. In any
 * other case warns of GPUs that have records and no description. Notes both as metadata. Called
 * with all rows of a file, before convert_rows and before they are split by process. */
void match_device_numbers(struct event_rows *imported);

/* Everything below is shared by the files of this folder only. */

/* Moves modules without a thread to the thread with most operators. */
void convert_find_module_threads(struct event_rows *imported);

struct converted_node_key {
	uint32_t parent, name, link, kind, domain, detail;
};

/* The call that issued the GPU work of a correlation id. */
struct correlation_owner {
	uint64_t correlation;
	uint32_t call;      /* its row + 1; 0: not in the file */
	uint16_t work;      /* bits 1 << enum imported_gpu_kind */
	uint16_t copy_kind; /* of its last copy: enum trace_copy_kind */
};

struct conversion {
	struct event_rows *imported;
	struct trace_writer *writer;
	int64_t first, last; /* times of the first and last event, on the file's axis */
	uint32_t *names;     /* by text: name id in the trace; 0: none yet */
	size_t name_room;
	struct hash_index nodes;              /* the trace's nodes, by node_keys */
	struct converted_node_key *node_keys; /* by node */
	size_t node_key_room;
	uint32_t *order; /* ranges by thread, then start, the longer first */
	/* By thread: begin of its part of `order`; one more entry at the end. */
	size_t *thread_begin;
	/* Like `order`: calls, memory events, instant events, CPU samples and Python calls. */
	uint32_t *calls, *memories, *instants, *samples, *python_calls;
	size_t *call_begin, *memory_begin, *instant_begin, *sample_begin, *python_call_begin;
	uint32_t *range_nodes; /* by range: its node; 0: none yet */
	uint32_t *links; /* by range: the forward operator of a backward function, + 1; 0: none */
	struct imported_stacks stacks;
	struct correlation_owner *owners; /* hash table */
	size_t owner_slots;
	struct conversion_call_name {
		enum trace_kind kind; /* 0: not determined yet */
		uint32_t sync;
	} * call_names; /* by text */
	size_t call_name_room;
	struct conversion_counts {
		uint64_t too_deep;    /* ranges left out because too many were open */
		uint64_t overlapping; /* ranges that end after an enclosing one */
		/* calls that the file contains a second time, inside themselves */
		uint64_t duplicates;
		uint64_t outside_samples; /* CPU samples before the first event or after the last */
	} counts;
	struct conversion_cpu_memory {
		uint64_t allocs, frees, alloc_bytes, free_bytes;
		uint64_t peak; /* largest total that the allocator reported; 0: not reported */
	} cpu;
};

uint32_t convert_name(struct conversion *conversion, uint32_t text);
/* Returns the trace node of `range` below `parent`. Writes it to the dictionary if it is new.
 * `link`: node of the forward operator, or 0. */
uint32_t convert_node(struct conversion *conversion, uint32_t parent,
	const struct imported_range *range, uint32_t link);
/* Returns the text of a domain's name. `domain`: its row + 1; 0: the default domain. */
uint32_t convert_domain_name(const struct event_rows *imported, uint32_t domain);

/* Sorts row numbers. Skips sorting if they are already in order, as is common in files. */
void sort_row_numbers(uint32_t *rows, size_t count,
	int (*compare)(const void *, const void *, void *), void *context);

/* Defines a comparator for sort_row_numbers, whose `context` is the array of rows: ascending by
 * `member`, then by row. */
#define COMPARE_ROWS_BY(name, type, member)                                               \
	static int name(const void *a, const void *b, void *context)                      \
	{                                                                                 \
		const type *rows = context;                                               \
		const uint32_t left = *(const uint32_t *)a, right = *(const uint32_t *)b; \
		const int order = COMPARE(rows[left].member, rows[right].member);         \
                                                                                          \
		return order ? order : COMPARE(left, right);                              \
	}

/* Fills order, calls, memories, instants, samples and python_calls, and their begin arrays. */
void convert_sort_rows(struct conversion *conversion);

/* Writes META records and devices. Called last, because it reports counts of the conversion.
 * `levels_computed`: result of convert_prepare_memory. */
void convert_metadata(struct conversion *conversion, uint32_t pid, bool levels_computed);

/* Drops the CPU's allocator events. If some of the others lack the allocator's totals, computes
 * them for all, and finds the allocation of each free. Returns whether it did that. */
bool convert_prepare_memory(struct conversion *conversion);

/* Writes the GPU events as a stream of their own. */
void convert_gpu_events(struct conversion *conversion);

/* Returns the record kind of a call, judged by its name alone. TRACE_SYNC means that it issues
 * no GPU work. */
enum trace_kind cuda_call_kind(struct string_view name);
/* Assigns GPU work without a correlation id to calls with the same External id. */
void match_calls_without_ids(struct event_rows *imported);
/* Fills conversion->owners. */
void convert_find_owners(struct conversion *conversion);
/* Returns the owner of `correlation`, or NULL if no GPU work has this id. */
struct correlation_owner *convert_owner(const struct conversion *conversion, uint64_t correlation);
/* Returns the enum trace_copy_kind in the name of a GPU copy, of NVIDIA and of AMD, such as
 * `Memcpy HtoD (Pageable -> Device)`. */
uint32_t convert_copy_kind(struct string_view name);
/* The node and the call stack of a call, by their ids in the trace. */
struct call_location {
	uint32_t node, stack;
};
/* Returns the record kind of a call by the text of its name, as cuda_call_kind. Sets `sync` to its
 * enum trace_sync_type, or 0. */
enum trace_kind convert_call_kind(struct conversion *conversion, uint32_t text, uint32_t *sync);
/* Sets `flags` of the calls that have no GPU record for a known reason. Needs
 * conversion->owners. */
void convert_find_unrecorded_launches(struct conversion *conversion);
/* Writes the record of row `call`, which returns at `end`. `inner`: it is inside another call. */
void convert_call(struct conversion *conversion, uint32_t call, struct call_location location,
	uint64_t end, bool inner);

/* Sets the kind of backward functions, and their links. */
void convert_find_backward_links(struct conversion *conversion);

/* Writes the events of a thread as a stream. */
void convert_thread(struct conversion *conversion, uint32_t thread);

#endif
