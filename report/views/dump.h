/* SPDX-License-Identifier: MIT
 * dump.h: every record of a trace, one a line, by time, ties by stream; dictionary records show up as the names
 * that they give.
 *
 * t_ns is when a call returned (its duration_ns lies before), when GPU work began, when anything else happened.
 * What the reader concluded, not the program recorded, has kinds of its own: resumed, unended, left_open, gap
 * (trace_reader.h).
 */
#ifndef PPERF_DUMP_H
#define PPERF_DUMP_H

struct options;

/* The view `dump`: files, format, output and strict of the options. Returns the exit status. */
int dump_view(const struct options *options);

#endif
