/* SPDX-License-Identifier: MIT
 * Records the CUDA calls that interposed symbols do not see, through CUPTI's callbacks. These are
 * calls of a static runtime, of libraries with a runtime of their own, and of the driver API. Also
 * provides the correlation ids of all calls.
 *
 * CUPTI is started by InitializeInjection, which the driver calls inside cuInit if
 * CUDA_INJECTION64_PATH names this library. If another tool uses that variable, the first
 * interposed call starts CUPTI.
 */
#ifndef PPERF_PRELOAD_CUDA_CUPTI_CALLBACKS_H
#define PPERF_PRELOAD_CUDA_CUPTI_CALLBACKS_H

#include "collector/cupti/session.h"

#include <stdbool.h>
#include <stdint.h>

/* Stores the settings. Called by the constructor; without it nothing starts.
 *
 *   wanted        false: CUPTI is not used
 *   setting       the value of PPERF_CUPTI; if it has a slash, the path of the libcupti to use. The
 *                 pointer is kept.
 *   hands_over    CUPTI is left to a second client while that is active
 *   buffer_bytes  PPERF_CUPTI_BUFFERS; 0: the default
 *   by_driver     CUDA_INJECTION64_PATH names this library
 */
void cupti_callbacks_configure(
	bool wanted, const char *setting, bool hands_over, uint64_t buffer_bytes, bool by_driver);

/* Stores how launches of CUDA graphs are recorded (PPERF_GRAPHS). `nodes_per_s` is the limit for
 * CUPTI_GRAPHS_AUTO; 0: the default. Called by the constructor. */
void cupti_callbacks_set_graphs(enum cupti_graphs graphs, uint64_t nodes_per_s);

/* Starts CUPTI unless the driver is going to. Called before an interposed call enters CUDA, never
 * inside one, and never between stream_enter and stream_leave. Cheap once CUPTI has been started.
 * Keeps errno. */
void cupti_callbacks_start_if_needed(void);

/* Starts CUPTI in any case, because a second client is about to call it. Keeps errno. */
void cupti_callbacks_start(void);

/* Returns CUPTI's id of the executable graph that the current call of this thread launches; 0 if it
 * is unknown. */
uint32_t cupti_callbacks_graph_id(void);

#endif
