/* SPDX-License-Identifier: MIT
 *
 * Writes the memory of a process as a snapshot of torch.cuda.memory, the pickle that
 * https://pytorch.org/memory_viz draws (memory --snapshot FILE).
 */
#ifndef PPERF_REPORT_VIEWS_MEMORY_SNAPSHOT_H
#define PPERF_REPORT_VIEWS_MEMORY_SNAPSHOT_H

#include "report/run/process.h"

/* Writes options->snapshot: the segments and tensors at the end (memory_end_ns), and all events up
 * to it. Frames are the Python stack where one was recorded, then the call path. A gap is an
 * inactive block. Memory of cuMemCreate that is not mapped has no address and is left out. The
 * trace does not have pools and requested sizes: requested sizes are those of the tensors. Ends the
 * program if the file cannot be written. One pass over the trace for each device, and two more. */
void memory_snapshot_write(const struct options *options, struct process *process);

#endif
