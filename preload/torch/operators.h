/* SPDX-License-Identifier: MIT
 * torch_ops.h: PyTorch's operators, autograd nodes and record_function ranges become ranges of the trace, on every thread, by the callbacks that
 * PyTorch itself has for profilers (at::addGlobalCallback). They stay for the life of the process.
 */
#ifndef PPERF_PRELOAD_TORCH_OPERATORS_H
#define PPERF_PRELOAD_TORCH_OPERATORS_H

#include <stdbool.h>
#include <stdint.h>

/* In the constructor. what: PPERF_OPS, NULL for events. shapes: PPERF_SHAPES. in_children: whether operators alone make a forked child a file.
 * false: no such value of PPERF_OPS; then it is events. */
bool torch_ops_configure(const char *what, bool shapes, bool in_children);

/* As soon as libtorch_cpu is in the process: any number of times, from any thread, outside of stream_enter. Says in the trace's facts how it went. false:
 * it is not there, or nothing is wanted of it. */
bool torch_ops_start(void);

/* Whether operators are to be recorded from now on: else PyTorch is asked not to call us for them. Ranges of the program go on. Any number of times, from any
 * thread. */
void torch_ops_record(bool on);

/* How many autograd nodes the calling thread has made so far; 0: PyTorch does not tell. */
uint64_t torch_ops_nodes(void);

/* In a forked child. */
void torch_ops_forked(void);

/* At the end of the process: how many autograd nodes had no operator that we know. */
void torch_ops_finish(void);

#endif
