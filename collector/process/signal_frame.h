/* SPDX-License-Identifier: MIT
 * Says whether the caller runs inside a signal handler of the program. A handler may have
 * interrupted malloc, and then nothing that allocates memory may be called.
 */
#ifndef PPERF_COLLECTOR_PROCESS_SIGNAL_FRAME_H
#define PPERF_COLLECTOR_PROCESS_SIGNAL_FRAME_H

#include <stdbool.h>

/* Returns true if the calling thread may be inside a signal handler: the return address that the
 * kernel puts on the stack of a handler is on it. Returns false if no signal has a handler. It
 * takes some tens of microseconds and allocates no memory. errno is preserved. */
bool signal_frame_is_below(void);

#endif
