/* SPDX-License-Identifier: MIT
 * signals COUNT: ranges on the main thread, and a mark from a signal handler that interrupts them
 * wherever they are, until the handler ran COUNT times. Prints the number of marks and of ranges.
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/time.h>
#include <nvtx3/nvToolsExt.h>

static volatile sig_atomic_t marks;

static void handler(int signal_number)
{
	int saved = errno;

	(void)signal_number;
	nvtxMarkA("from a signal handler");
	marks++;
	errno = saved;
}

int main(int count, char **arguments)
{
	struct itimerval often = { { 0, 50 }, { 0, 50 } }, never = { 0 };
	struct sigaction action = { .sa_handler = handler, .sa_flags = SA_RESTART };
	int wanted = count > 1 ? atoi(arguments[1]) : 100;
	long ranges = 0;

	nvtxInitialize(NULL);
	if (sigaction(SIGALRM, &action, NULL) || setitimer(ITIMER_REAL, &often, NULL))
		return 2;
	for (; marks < wanted; ranges++) {
		nvtxRangePushA("interrupted");
		nvtxRangePop();
	}
	setitimer(ITIMER_REAL, &never, NULL);
	printf("%d %ld\n", (int)marks, ranges);
	return 0;
}
