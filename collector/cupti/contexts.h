/* SPDX-License-Identifier: MIT
 * Looks up the contexts that CUPTI has reported, and describes them in the trace's dictionary.
 */
#ifndef PPERF_COLLECTOR_CUPTI_CONTEXTS_H
#define PPERF_COLLECTOR_CUPTI_CONTEXTS_H

#include <stdint.h>

/* Writes the context into the dictionary. `null_stream` is the id of its default stream, UINT32_MAX
 * if unknown. Called between stream_enter and stream_leave. */
void cupti_write_context(uint32_t context, uint32_t device, uint32_t null_stream);

#endif
