/* SPDX-License-Identifier: MIT
 * Defers signals and thread cancellation while pperf holds a lock or makes system calls.
 *
 * None of the program's signal handlers runs inside a guarded section. A handler may call exit or
 * siglongjmp, or wait for another thread, as garbage collectors do to stop the others. Our lock
 * would then be held for ever. The thread is not cancelled inside the section either. open,
 * fallocate and pwritev are cancellation points, and the program had none there without pperf.
 * errno is preserved. Signals raised by faults are delivered as usual.
 *
 *	signal_guard_begin(&guard);
 *	pthread_mutex_lock(...);
 *	...
 *	signal_guard_end(&guard);
 *
 * A section costs two system calls, so it is never used in the hot path. Sections nest. An inner
 * section makes one system call, which checks that the outer one is still active. A handler of the
 * program may have left the outer one by siglongjmp after a fault.
 */
#ifndef PPERF_COLLECTOR_PROCESS_SIGNAL_GUARD_H
#define PPERF_COLLECTOR_PROCESS_SIGNAL_GUARD_H

#include <signal.h>
#include <stdbool.h>

struct signal_guard { /* the state before the section, for signal_guard_end */
	sigset_t signals;
	int cancel, error;
	bool nested; /* inside another section, which defers everything already */
};

/* Whether the calling thread is inside a guarded section. */
bool signal_guard_is_active(void);

void signal_guard_begin(struct signal_guard *guard);
void signal_guard_end(const struct signal_guard *guard);

#endif
