/* SPDX-License-Identifier: MIT
 * trace_file.h: the file of this process: made at the first need, given out in blocks, written by sealing. Threads: any.
 * Nothing here prints, sets errno or raises a signal in the host; what cannot be written is counted in the header (trace_lose).
 */
#ifndef PPERF_COLLECTOR_FILE_TRACE_FILE_H
#define PPERF_COLLECTOR_FILE_TRACE_FILE_H

#include "collector/trace_format.h"
#include <stdbool.h>

struct trace_settings {
	uint64_t limit_bytes; /* PPERF_MAX */
	uint64_t run_id;
	bool skip_forked;     /* PPERF_CHILDREN=none: a child made by fork records nothing */
	uint8_t build_id[20]; /* of this library; zeros if it has none */
	char output
		[4096]; /* absolute; only %p (pid), %n (counter) and %% are still to be filled in */
};

/* A file begins with room for its header, a first block of names and a thread's first slot, which are made in one go. */
#define TRACE_FIRST_DICT (8u << 10)
#define TRACE_FIRST_SLOT (8u << 10)

/* Keeps the pointer; creates nothing. Through stream_configure. */
void trace_configure(const struct trace_settings *settings);

/* The header of this process's file, which is made if there is none yet. NULL: there is none and will be none (not configured, no
 * permission, no room): everything is then quietly dropped. */
struct trace_header *trace_open(void);

/* The same without making one. */
struct trace_header *trace_header(void);

/* Before the process ends, so that no half of a file is left: if another thread is just making the file, waits for it, a second at most; where there is
 * none yet, none is made any more. */
void trace_finish_opening(void);

/* The path of this process's file; "" if it has none. */
const char *trace_path(void);

/* Why there will be no file: errno, 0 if nothing was refused; and where it should have been. */
int trace_open_error(void);
const char *trace_output(void);

/* A block of `bytes` (a multiple of the page), zeroed and really there; *offset is its place in the file. magic, type, extent and head_crc are
 * filled. Not inherited by a forked child. NULL: no room, *reason says why. */
struct trace_block *trace_map_block(
	enum trace_block_type type, uint64_t bytes, uint64_t *offset, enum trace_loss *reason);

/* Writes `slot`'s head and used payload to the end of the file as a chunk, in one write. false: it could not, *reason says why. */
bool trace_seal(const struct trace_block *slot, enum trace_loss *reason);

/* There is a file, and its blocks are not mapped but memory of our own (TRACE_TAIL_AT_RISK). */
bool trace_tail_at_risk(void);

/* Brings such a block to the file. */
void trace_write_back(const struct trace_block *block, uint64_t offset);

/* Can the file's pages be mapped without a SIGBUS ever? Replaced by tests. */
extern bool (*trace_may_map)(int fd);

void trace_lose(enum trace_loss reason, uint64_t events);

/* Notes the last clock and TRACE_ENDED. At a clean end only. */
void trace_end(void);

#endif
