/* SPDX-License-Identifier: MIT
 * trace_file.h: the file of this process: created at the first need, given out in blocks, written by sealing. Threads: any.
 * Nothing here prints, sets errno or raises a signal in the host; what cannot be written is counted in the header (trace_lose).
 */
#ifndef PPERF_TRACE_FILE_H
#define PPERF_TRACE_FILE_H

#include "trace_format.h"
#include <stdbool.h>

struct trace_settings {
	char output[4096];    /* absolute path, already expanded but for %p and %n, which are per process */
	uint64_t limit_bytes; /* PPERF_MAX */
	uint64_t run_id;
	uint64_t run_start_ns; /* CLOCK_REALTIME: when the run began; an older file of the name is not of this run */
	bool enabled;
};

/* Once, before any thread records; keeps a copy. Creates nothing. */
void trace_configure(const struct trace_settings *settings);

/* The mapped header, the file being made if there is none yet. NULL: there is no file and there will be none (disabled, no
 * permission, no room): everything is then quietly dropped. Not async-signal-safe at its first call. */
struct trace_header *trace_open(void);

/* True once this process has a file. */
bool trace_is_open(void);

/* The path of this process's file, "" if it has none. */
const char *trace_path(void);

/* A block of `bytes` (a multiple of the page) mapped from the file, zeroed, really there; *offset is where. Its head is filled but
 * for stream, tid, base_stamp. NULL: no room (counted by the caller). Not inherited by a forked child. */
struct trace_block *trace_map_block(enum trace_block_type type, uint64_t bytes, uint64_t *offset);

/* Writes `slot` (head and used payload) to the end of the file as a chunk. 0, or the enum trace_loss + 1 that says why not. */
int trace_seal(const struct trace_block *slot);

/* Brings a block that cannot be mapped (TRACE_TAIL_AT_RISK) to the file; nothing to do for a mapped one. */
void trace_write_back(const struct trace_block *block, uint64_t offset);

void trace_lose(enum trace_loss reason, uint64_t events);

/* Notes the last clock and TRACE_ENDED. At a clean end only. */
void trace_end(void);

/* In a forked child: forget the file; the next trace_open makes one of its own. */
void trace_forget(void);

#endif
