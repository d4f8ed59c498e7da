/* SPDX-License-Identifier: MIT
 *
 * Prints where a process spent its time in given stretches, for `pperf ranks`, which finds from
 * parts before which collectives a rank was late. The first line of the file of --stretches is
 * `process RUN PID START`: the run id in hexadecimal, the process id, and CLOCK_REALTIME at the
 * start of the trace. A trace of another process is refused. Then come lines of three numbers:
 * which list the stretch is of, from 0, and its begin and end in nanoseconds since the start of the
 * trace. The stretches of a list are in order. The output is CSV, with a row for each node that has
 * time.
 */
#ifndef PPERF_REPORT_PART_PART_STRETCHES_H
#define PPERF_REPORT_PART_PART_STRETCHES_H

struct options;

int part_stretches(const struct options *options);

#endif
