/* SPDX-License-Identifier: MIT
 *
 * The view `part` writes what of traces can be merged with other traces, as tables. It reads one
 * trace after the other, in the memory that one needs.
 *
 * Traces are written in tasks of at most PART_TASK_BYTES, or of one trace. A task has one file per
 * table, and a manifest, which is written last. A trace that a manifest lists is not read again,
 * unless its size or its time of change is another one. So a run that was interrupted is repeated,
 * and does what is missing.
 *
 * With --share, each of several processes takes a part of the traces, by size. Which one it is, and
 * how many there are, is in the environment of Slurm, Open MPI, PMI or a Kubernetes Indexed Job.
 */
#ifndef PPERF_REPORT_PART_PART_H
#define PPERF_REPORT_PART_PART_H

struct options;

#define PART_TASK_BYTES (UINT64_C(2) << 30)

int part_view(const struct options *options);

#endif
