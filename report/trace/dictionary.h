/* SPDX-License-Identifier: MIT
 * trace_dictionary.h: what a trace says by number: names, nodes, and the records that stand for themselves. Read
 * whole, kept in memory.
 *
 * The writer gives ids one after another, so a file cannot have ids much beyond the number of records that fit into
 * it: an id above (file bytes / 16) + 1024 is damage. Tables therefore take at most twice the file.
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
	struct block_payload *payloads; /* texts and records lie here */
	uint32_t payload_count;
	struct dictionary_name *names; /* by id */
	uint32_t name_end;             /* ids are below it */
	struct trace_node_info *nodes; /* by id, and the unknown one behind them */
	uint32_t node_end;             /* index of the unknown one */
	/* META: the last of each key; STACK, PYTHON_STACK, COUNTER, SOURCE: by id */
	struct record_list lists[TRACE_KINDS];
};

/* Reads all dictionary blocks. false: errno. */
bool dictionary_read(struct trace_dictionary *dictionary, const struct trace_blocks *blocks,
	struct read_warnings *warnings);
/* Of a STACK, PYTHON_STACK or COUNTER; the place of a SOURCE. */
uint32_t dictionary_record_id(const struct trace_head *record);
void dictionary_free(struct trace_dictionary *dictionary);

#endif
