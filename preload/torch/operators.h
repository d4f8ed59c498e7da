/* SPDX-License-Identifier: MIT
 * Records PyTorch's operators, autograd nodes and record_function ranges on every thread. It
 * uses the callbacks that PyTorch has for profilers (at::addGlobalCallback). Those of
 * record_function stay for the life of the process.
 */
#ifndef PPERF_PRELOAD_TORCH_OPERATORS_H
#define PPERF_PRELOAD_TORCH_OPERATORS_H

#include <stdbool.h>
#include <stdint.h>

/* Called by the constructor. `what`: PPERF_OPS (NULL: events); `shapes`: PPERF_SHAPES.
 * `in_children`: a forked child creates a trace file even if it records nothing but operators.
 * Returns false if `what` is not a valid value, which then means events. */
bool torch_ops_configure(const char *what, bool shapes, bool in_children);

/* Registers the callbacks once libtorch_cpu is loaded, and writes META source.torch_ops. May be
 * called repeatedly and from any thread, outside stream_enter. Returns false if the callbacks
 * are not registered or PPERF_OPS=off. */
bool torch_ops_start(void);

/* Turns the recording of operators on or off by adding or removing their callbacks. The ranges
 * of record_function are not affected. May be called repeatedly and from any thread. */
void torch_ops_record(bool on);

/* Whether each operator leaves records now: not only counted, switched off or paused. */
bool torch_ops_are_events(void);

/* Returns how many autograd nodes the calling thread has created so far, or 0 if PyTorch has no
 * function for it. */
uint64_t torch_ops_nodes(void);

/* Returns whether the innermost open range of the calling thread is a backward function. */
bool torch_ops_in_backward(void);

/* Called in a forked child. */
void torch_ops_forked(void);

/* Writes META torch.unlinked at the end of the process: the number of autograd nodes whose
 * operator is unknown. */
void torch_ops_finish(void);

#endif
