/* SPDX-License-Identifier: MIT
 * Answers the requests of `pperf ctl` (struct trace_control), which another process writes to the
 * mapped header. A request is untrusted input.
 */
#ifndef PPERF_COLLECTOR_STREAM_CONTROL_H
#define PPERF_COLLECTOR_STREAM_CONTROL_H

#include <stdbool.h>

/* Answers a request, if there is one. Called now and then by a thread of pperf. Outside of
 * stream_enter. */
void control_poll(void);

/* Does so on a thread that has just sealed its slot, within its signal guard. Returns true if a
 * record was written. */
struct stream;
bool control_poll_sealed(struct stream *s);

#endif
