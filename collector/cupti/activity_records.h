/* SPDX-License-Identifier: MIT
 * Converts CUPTI's buffers of activity records to records of the trace.
 *
 * Everything that CUPTI's records point to is copied, because it is valid only until the buffer is
 * released. Records that are not written are counted: those that CUPTI dropped, those that could
 * not be read, and those of unknown kinds.
 */
#ifndef PPERF_COLLECTOR_CUPTI_ACTIVITY_RECORDS_H
#define PPERF_COLLECTOR_CUPTI_ACTIVITY_RECORDS_H

#include <stddef.h>
#include <stdint.h>

struct cupti_library;

/* Writes a GPU_BATCH and the records in the first `valid` bytes of `buffer` to the calling thread's
 * stream. `dropped` is the number of records that CUPTI reports as lost. Called by CUPTI's threads
 * and by threads that flush. errno is preserved. */
void activity_records_read(
	const struct cupti_library *cupti, uint8_t *buffer, size_t valid, uint64_t dropped);

#endif
