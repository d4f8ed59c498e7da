/* SPDX-License-Identifier: MIT */
#include "collector/process/signal_guard.h"

#include <errno.h>
#include <pthread.h>

/* The piece of work that this thread is in. */
static __thread struct {
	bool active;
	int probe_signal; /* a signal that it holds back and that was not before; 0: there was none */
	int cancel;       /* as it was before */
} active_section __attribute__((tls_model("initial-exec")));

/* It ends without quiet_end when a handler of the program's leaves it by siglongjmp, after a fault: then the mask is again what it was. One that is left by a
 * longjmp which brings no mask back goes on: nobody else holds the signals back, and nobody lets them come. */
bool signal_guard_is_active(void)
{
	sigset_t now;

	if (!active_section.active || !active_section.probe_signal)
		return active_section.active;
	pthread_sigmask(SIG_BLOCK, NULL, &now);
	return sigismember(&now, active_section.probe_signal) == 1;
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
	static const int faults[] = { SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS, SIGABRT };
	sigset_t blockable;

	guard->error = errno;
	guard->nested = signal_guard_is_active();
	if (guard->nested)
		return;
	sigfillset(&blockable);
	for (unsigned i = 0; i < sizeof faults / sizeof faults[0]; i++)
		sigdelset(&blockable, faults[i]);
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &guard->cancel);
	pthread_sigmask(SIG_BLOCK, &blockable, &guard->signals);
	if (active_section.active) /* and was left: what it has disabled nobody has enabled */
		guard->cancel = active_section.cancel;
	active_section.cancel = guard->cancel;
	active_section.probe_signal = newly_blocked_signal(&blockable, &guard->signals);
	active_section.active =
		true; /* not before: a handler would take its own work for a part of this */
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
