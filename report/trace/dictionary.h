/* SPDX-License-Identifier: MIT
 * Holds the dictionary of a trace in memory: names, nodes, and all other records that are referred
 * to by id.
 *
 * The writer assigns ids consecutively, so a file cannot hold ids far beyond the number of records
 * that fit into it. An id of (file bytes / 16) + 1024 or more is damage. The tables therefore take
 * at most twice the size of the file.
 */
#ifndef PPERF_REPORT_TRACE_DICTIONARY_H
#define PPERF_REPORT_TRACE_DICTIONARY_H

#include "report/trace/trace_blocks.h"

struct dictionary_name {
	const char *bytes; /* NULL: no such id */
	uint32_t length;
};

struct record_list {
	const struct trace_head **records;
	uint32_t count;
};

struct trace_dictionary {
	struct block_payload *payloads; /* names and records point into these */
	uint32_t payload_count;
	struct dictionary_name *names; /* by id */
	uint32_t name_end;             /* all ids are below it */
	struct trace_node_info *nodes; /* by id, followed by the node for unknown ids */
	uint32_t node_end;             /* all ids are below it; index of the node for unknown ids */
	/* Records by kind. META: the last record of each key, in file order. STACK, PYTHON_STACK,
	 * COUNTER, FRAME, PYTHON_FRAME and SOURCE are sorted by dictionary_record_id(), the other
	 * dictionary kinds are in file order. NAME and NODE are not kept here, and have a count
	 * of 0. */
	struct record_list lists[TRACE_KINDS];
};

/* Reads all dictionary blocks into `dictionary`, which is overwritten. Returns false with errno
 * if a read fails. */
bool dictionary_read(struct trace_dictionary *dictionary, const struct trace_blocks *blocks,
	struct read_warnings *warnings);
/* Returns the id by which `record` is looked up. SOURCE: its node. STACK, PYTHON_STACK, COUNTER,
 * FRAME, PYTHON_FRAME: the 32-bit number after the head. A kind with its id elsewhere needs a case
 * of its own. */
uint32_t dictionary_record_id(const struct trace_head *record);
void dictionary_free(struct trace_dictionary *dictionary);

#endif
