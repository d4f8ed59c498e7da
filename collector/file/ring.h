/* SPDX-License-Identifier: MIT
 * Places chunks in the ring of PPERF_RING: in segments of the file, of which the oldest is used
 * again when the ring has reached its size. What is overwritten is counted in the header first.
 *
 * Segments are added one by one. If the disk is full or PPERF_MAX is reached, the ring stays as
 * small as it is then.
 *
 * Any thread may call, under the signal guard.
 */
#ifndef PPERF_COLLECTOR_FILE_RING_H
#define PPERF_COLLECTOR_FILE_RING_H

#include "collector/trace_format.h"
#include <stdbool.h>

#define RING_BYTES_MIN (1u << 20)

/* How the ring accesses the trace file. All return as the functions of trace_file.c do. */
struct ring_file {
	/* Reserves file space. Returns its offset, or 0 if PPERF_MAX is reached. */
	uint64_t (*reserve)(uint64_t bytes);
	/* Allocates disk space for it. Returns false, and releases the space, if there is none. */
	bool (*allocate)(uint64_t offset, uint64_t bytes);
	bool (*write)(const void *bytes, size_t count, uint64_t offset);
	struct trace_header *(*header)(void);
};

/* Allocates the state. `bytes`: size of the ring, at least RING_BYTES_MIN. Called once. */
bool ring_setup(uint64_t bytes, const struct ring_file *access);

/* Whether there is a ring: ring_setup was called. */
bool ring_is_used(void);

/* Writes a chunk. `head` has type and extent of a chunk, crc included. `stamp`: not before the
 * stamp of any of its records. Returns false on failure, with the reason in `reason`. */
bool ring_write(const struct trace_block *head, const void *payload, uint64_t stamp,
	enum trace_loss *reason);

/* Whether it is time to restate which memory is held. */
bool ring_wants_restatement(void);

/* Stops the ring: once a further quarter of it was written (`at_once`: now), nothing is overwritten
 * any more, and ring_write fails when the current segment is full. Only the first stop counts until
 * ring_restart. */
void ring_stop(enum trace_stop why, bool at_once, uint64_t value, uint64_t median);
/* Goes on. The window begins anew if records were refused meanwhile. */
void ring_restart(void);
/* Counts the calls of ring_restart that had an effect, for threads whose writes failed before. */
uint32_t ring_restarts(void);

/* Notes that this was restated, between the records RESTATES with `stamp` and RESTATED, of `bytes`
 * bytes. */
void ring_note_restated(uint64_t stamp, uint64_t bytes);

#endif
