/* SPDX-License-Identifier: MIT */
#include "collector/process/signal_guard.h"

#include <errno.h>
#include <pthread.h>

/* The piece of work that this thread is in. */
static __thread struct {
	bool begun;
	int witness; /* a signal that it holds back and that was not before; 0: there was none */
	int cancel;  /* as it was before */
} open_piece __attribute__((tls_model("initial-exec")));

/* It ends without quiet_end when a handler of the program's leaves it by siglongjmp, after a fault: then the mask is again what it was. One that is left by a
 * longjmp which brings no mask back goes on: nobody else holds the signals back, and nobody lets them come. */
bool quiet_is_open(void)
{
	sigset_t now;

	if (!open_piece.begun || !open_piece.witness)
		return open_piece.begun;
	pthread_sigmask(SIG_BLOCK, NULL, &now);
	return sigismember(&now, open_piece.witness) == 1;
}

static int signal_between(const sigset_t *held, const sigset_t *before)
{
	for (int number = 1; number < SIGRTMIN; number++)
		if (number != SIGKILL && number != SIGSTOP && sigismember(held, number) == 1 && !sigismember(before, number))
			return number;
	return 0;
}

void quiet_begin(struct quiet *quiet)
{
	static const int faults[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS, SIGABRT};
	sigset_t most;

	quiet->error = errno;
	quiet->nested = quiet_is_open();
	if (quiet->nested)
		return;
	sigfillset(&most);
	for (unsigned i = 0; i < sizeof faults / sizeof faults[0]; i++)
		sigdelset(&most, faults[i]);
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &quiet->cancel);
	pthread_sigmask(SIG_BLOCK, &most, &quiet->signals);
	if (open_piece.begun) /* and was left: what it has disabled nobody has enabled */
		quiet->cancel = open_piece.cancel;
	open_piece.cancel = quiet->cancel;
	open_piece.witness = signal_between(&most, &quiet->signals);
	open_piece.begun = true; /* not before: a handler would take its own work for a part of this */
}

void quiet_end(const struct quiet *quiet)
{
	if (!quiet->nested) {
		open_piece.begun = false;
		pthread_sigmask(SIG_SETMASK, &quiet->signals, NULL);
		pthread_setcancelstate(quiet->cancel, NULL);
	}
	errno = quiet->error;
}
