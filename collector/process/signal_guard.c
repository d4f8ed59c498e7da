/* SPDX-License-Identifier: MIT */
#include "collector/process/signal_guard.h"

#include <errno.h>
#include <pthread.h>

/* The guarded section that this thread is in. */
static __thread struct {
	bool active;
	int probe_signal; /* blocked by this section and not before it; 0: no such signal */
	int cancel;       /* cancellation state before the section */
} active_section __attribute__((tls_model("initial-exec")));

/* A section ends without signal_guard_end() if a handler of the program leaves it by siglongjmp,
 * after a fault. The signal mask is then what it was before, and the probe signal shows that. A
 * section that is left by a plain longjmp, which restores no mask, counts as active: its signals
 * are still blocked, and nothing unblocks them. */
bool signal_guard_is_active(void)
{
	sigset_t now;

	if (!active_section.active || !active_section.probe_signal)
		return active_section.active;
	pthread_sigmask(SIG_BLOCK, NULL, &now);
	return sigismember(&now, active_section.probe_signal) == 1;
}

/* All signals but those that a fault of pperf's own raises. */
static void fill_blockable(sigset_t *signals)
{
	static const int faults[] = { SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS, SIGABRT };

	sigfillset(signals);
	for (unsigned i = 0; i < sizeof faults / sizeof faults[0]; i++)
		sigdelset(signals, faults[i]);
}

static int newly_blocked_signal(const sigset_t *blocked, const sigset_t *before)
{
	for (int number = 1; number < SIGRTMIN; number++)
		if (number != SIGKILL && number != SIGSTOP && sigismember(blocked, number) == 1 &&
			!sigismember(before, number))
			return number;
	return 0;
}

void signal_guard_begin(struct signal_guard *guard)
{
	sigset_t blockable;

	guard->error = errno;
	guard->nested = signal_guard_is_active();
	if (guard->nested)
		return;
	fill_blockable(&blockable);
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &guard->cancel);
	pthread_sigmask(SIG_BLOCK, &blockable, &guard->signals);
	/* A section that was left by siglongjmp has disabled cancellation, and nothing has enabled
	 * it again. The state from before that section is the one to restore. */
	if (active_section.active)
		guard->cancel = active_section.cancel;
	active_section.cancel = guard->cancel;
	active_section.probe_signal = newly_blocked_signal(&blockable, &guard->signals);
	/* Set only once signals are blocked: a handler would take its own work for a part of this
	 * section. */
	active_section.active = true;
}

void signal_guard_end(const struct signal_guard *guard)
{
	if (!guard->nested) {
		active_section.active = false;
		pthread_sigmask(SIG_SETMASK, &guard->signals, NULL);
		pthread_setcancelstate(guard->cancel, NULL);
	}
	errno = guard->error;
}
