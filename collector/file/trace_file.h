/* SPDX-License-Identifier: MIT
 * Owns the trace file of this process. It is created at the first event, divided into blocks, and
 * written by sealing slots. Any thread may call.
 *
 * Nothing here prints, sets errno or raises a signal in the program. What cannot be written is
 * counted in the header (trace_lose).
 */
#ifndef PPERF_COLLECTOR_FILE_TRACE_FILE_H
#define PPERF_COLLECTOR_FILE_TRACE_FILE_H

#include "collector/trace_format.h"
#include <stdbool.h>

struct trace_settings {
	uint64_t limit_bytes; /* PPERF_MAX */
	uint64_t ring_bytes;  /* PPERF_RING; 0: chunks are never overwritten */
	uint64_t run_id;
	bool skip_forked;     /* PPERF_CHILDREN=none: a child made by fork records nothing */
	uint8_t build_id[20]; /* of this library; zeros if it has none */
	/* Absolute path. Only %p (pid), %n (counter) and %% are still to be expanded. */
	char output[4096];
};

/* A file begins with its header, a first dictionary block and a first slot, which are allocated in
 * one call. */
#define TRACE_FIRST_DICT (8u << 10)
#define TRACE_FIRST_SLOT (8u << 10)

/* Stores the pointer `settings`, and creates no file. Called by stream_configure(). */
void trace_configure(const struct trace_settings *settings);

/* Returns the header of this process's file, creating the file if needed. NULL: there is no file
 * and there will be none (not configured, no permission, no space). All events are then dropped
 * silently. */
struct trace_header *trace_open(void);

/* The same for a thread of pperf that needs the file often. It gets a table of descriptors of its
 * own (private_files.h) with the file, if that is possible. If it creates the file, the program has
 * no descriptor of it before one of its own threads needs one. Only one thread at a time may have
 * such a table. */
struct trace_header *trace_open_private(void);

/* Returns the header, or NULL if there is no file yet. Creates none. */
struct trace_header *trace_header(void);

/* Prevents a half-made file at the end of the process. If another thread is creating the file,
 * waits for it, at most one second. If there is no file yet, none can be created afterwards. */
void trace_finish_opening(void);

/* Returns the path of this process's file, "" if it has none. */
const char *trace_path(void);

/* Returns the errno because of which there is no file, or 0. */
int trace_open_error(void);
/* Returns the configured path of the file, before expansion. */
const char *trace_output(void);

/* Allocates a zeroed block of `bytes` (a multiple of the page size) with its pages present, and
 * stores its file offset in `offset`. magic, type, extent and head_crc are set. A forked child does
 * not inherit it. Returns NULL if there is no space, with the reason in `reason`. */
struct trace_block *trace_map_block(
	enum trace_block_type type, uint64_t bytes, uint64_t *offset, enum trace_loss *reason);

/* Writes the head and used payload of `slot` to the end of the file, or into the ring, as a chunk.
 * Returns false on failure, with the reason in `reason`. */
bool trace_seal(const struct trace_block *slot, enum trace_loss *reason);

/* Returns whether there is a file that is not mapped: its blocks are private memory, and what is
 * not written yet is lost if the process is killed (TRACE_TAIL_AT_RISK). */
bool trace_tail_at_risk(void);

/* Writes such a block to the file at `offset`. */
void trace_write_back(const struct trace_block *block, uint64_t offset);

/* Whether the pages of `fd` can be mapped without ever raising SIGBUS. Tests replace it. */
extern bool (*trace_may_map)(int fd);

/* Adds `events` to the number of events that were lost for `reason`, in the trace's header. Works
 * before there is a file, too. */
void trace_lose(enum trace_loss reason, uint64_t events);

/* Stores the last clock sample and TRACE_ENDED. Called at a clean end only. */
void trace_end(void);

#endif
