/* SPDX-License-Identifier: MIT */
#include "quiet.h"

#include <errno.h>
#include <pthread.h>

void quiet_begin(struct quiet *quiet)
{
	static const int faults[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS, SIGABRT};
	sigset_t most;

	quiet->error = errno;
	sigfillset(&most);
	for (unsigned i = 0; i < sizeof faults / sizeof faults[0]; i++)
		sigdelset(&most, faults[i]);
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &quiet->cancel);
	pthread_sigmask(SIG_BLOCK, &most, &quiet->signals);
}

void quiet_end(const struct quiet *quiet)
{
	pthread_sigmask(SIG_SETMASK, &quiet->signals, NULL);
	pthread_setcancelstate(quiet->cancel, NULL);
	errno = quiet->error;
}
