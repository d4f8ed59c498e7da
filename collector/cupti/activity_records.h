/* SPDX-License-Identifier: MIT
 * gpu_activity.h: from CUPTI's buffers of activity records to records of the trace.
 *
 * Everything that CUPTI's records point to is copied here: it is only good until the buffer is
 * given back. Nothing of a buffer is lost without being counted: what CUPTI dropped, what could not
 * be read, what nobody asked for.
 */
#ifndef PPERF_COLLECTOR_CUPTI_ACTIVITY_RECORDS_H
#define PPERF_COLLECTOR_CUPTI_ACTIVITY_RECORDS_H

#include <stddef.h>
#include <stdint.h>

struct cupti_library;

/* Writes a GPU_BATCH and what is in the first `valid` bytes of `buffer` to the calling thread's
 * stream. dropped: records that CUPTI says it lost. Called by CUPTI's threads and by those that
 * flush. Keeps errno. */
void activity_records_read(
	const struct cupti_library *cupti, uint8_t *buffer, size_t valid, uint64_t dropped);

/* A module is about to be unloaded: the names that records point to may go, and are read with care
 * from now on. Nobody reads one otherwise any more when this comes back. */
void activity_records_module_unloads(void);

#endif
