/* SPDX-License-Identifier: MIT */
#include "quiet.h"

#include <errno.h>
#include <pthread.h>
#include <stdint.h>

/* Where on its stack this thread's piece of work began; NULL: it is in none. */
static __thread const void *begun __attribute__((tls_model("initial-exec")));

/* A piece that was left by a longjmp (after a fault, by a handler of the program's) is forgotten as soon as the stack is in use again where it stood. What
 * runs on another stack may take itself for the outermost, which costs the calls and no more. */
static bool is_nested(const struct quiet *quiet)
{
	return begun && (uintptr_t)quiet < (uintptr_t)begun;
}

void quiet_begin(struct quiet *quiet)
{
	static const int faults[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS, SIGABRT};
	sigset_t most;

	quiet->error = errno;
	quiet->nested = is_nested(quiet);
	if (quiet->nested)
		return;
	sigfillset(&most);
	for (unsigned i = 0; i < sizeof faults / sizeof faults[0]; i++)
		sigdelset(&most, faults[i]);
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &quiet->cancel);
	pthread_sigmask(SIG_BLOCK, &most, &quiet->signals);
	begun = quiet; /* not before: a handler would take its own work for a part of this */
}

void quiet_end(const struct quiet *quiet)
{
	if (!quiet->nested) {
		begun = NULL;
		pthread_sigmask(SIG_SETMASK, &quiet->signals, NULL);
		pthread_setcancelstate(quiet->cancel, NULL);
	}
	errno = quiet->error;
}
