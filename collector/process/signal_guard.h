/* SPDX-License-Identifier: MIT
 * quiet.h: a piece of our work that holds a lock or asks the system, in the middle of the program's.
 *
 * None of the program's signal handlers runs in between: it might call exit or siglongjmp, or wait for another thread (to stop the others is how
 * garbage collectors do it), and our lock would be held for ever. The thread is not cancelled in between either: open, fallocate and
 * pwritev are places where that happens, and there was none before we came. errno stays. Signals that a fault raises are delivered as ever.
 *
 *	quiet_begin(&quiet);
 *	pthread_mutex_lock(...);
 *	...
 *	quiet_end(&quiet);
 *
 * Two system calls, so never in a hot path. May be nested: a piece within another makes one, which asks whether that is still open. A handler of the program's
 * may have left it, after a fault, by siglongjmp.
 */
#ifndef PPERF_COLLECTOR_PROCESS_SIGNAL_GUARD_H
#define PPERF_COLLECTOR_PROCESS_SIGNAL_GUARD_H

#include <signal.h>
#include <stdbool.h>

struct signal_guard { /* what was before */
	sigset_t signals;
	int cancel, error;
	bool nested; /* within another piece, which holds all back already */
};

/* Is the calling thread within such a piece? */
bool signal_guard_is_active(void);

void signal_guard_begin(struct signal_guard *guard);
void signal_guard_end(const struct signal_guard *guard);

#endif
