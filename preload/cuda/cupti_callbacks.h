/* SPDX-License-Identifier: MIT
 * cuda_callbacks.h: the CUDA calls that symbols do not show, told by CUPTI: those of a static
 * runtime, of libraries that carry their own, of the driver's API; and the correlation ids of all
 * of them.
 *
 * CUPTI is started by InitializeInjection, which the driver calls inside cuInit when
 * CUDA_INJECTION64_PATH names this library. Where that variable belongs to somebody else, the first
 * interposed call starts it.
 */
#ifndef PPERF_PRELOAD_CUDA_CUPTI_CALLBACKS_H
#define PPERF_PRELOAD_CUDA_CUPTI_CALLBACKS_H

#include <stdbool.h>
#include <stdint.h>

/* Settings, by the constructor; without it nothing starts. wanted: false leaves CUPTI alone.
 * setting: the value of PPERF_CUPTI, kept: with a slash it is the path of the libcupti to use.
 * yields: to another client of CUPTI's. buffer_bytes: PPERF_CUPTI_BUFFERS, 0 for the default. by_driver: CUDA_INJECTION64_PATH names this
 * library. */
void cupti_callbacks_configure(
	bool wanted, const char *setting, bool hands_over, uint64_t buffer_bytes, bool by_driver);

/* Starts CUPTI if the driver is not going to. Called before an interposed call goes on to CUDA,
 * never inside one, and never between stream_enter and stream_leave. Cheap once that is settled.
 * Keeps errno. */
void cupti_callbacks_start_if_needed(void);

/* Starts CUPTI, whoever else would: another client of CUPTI's is about to call it. Keeps errno. */
void cupti_callbacks_start(void);

/* CUPTI's id of the executable graph that the present call of this thread launches; 0: not known. */
uint32_t cupti_callbacks_graph_id(void);

#endif
