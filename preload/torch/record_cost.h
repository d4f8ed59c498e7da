/* SPDX-License-Identifier: MIT
 * Measures at the end of the program what recording an event of PyTorch costs on this machine, for
 * META cost.event_ns.
 */
#ifndef PPERF_PRELOAD_RECORD_COST_H
#define PPERF_PRELOAD_RECORD_COST_H

struct python_object;

/* `measure`: a Python function that takes `switch`, a function that turns PyTorch's callbacks on or
 * off for this thread, runs operators with and without them, and returns the nanoseconds that they
 * add to all. It returns None if it cannot. The records of these operators are removed. Writes
 * nothing where this thread records nothing. Takes less than a millisecond. With the GIL. */
void record_cost_measure(struct python_object *measure);

#endif
