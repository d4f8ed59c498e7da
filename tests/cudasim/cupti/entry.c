/*
 * What every exported function of the simulated CUPTI checks first.
 */
#include "cupti/parts.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static atomic_bool forked;
static atomic_bool detached;
static _Thread_local int in_buffer_callback;

static void forget_parent(void)
{
	forked = true;
}

__attribute__((constructor)) static void watch_forks(void)
{
	pthread_atfork(NULL, NULL, forget_parent);
}

bool entry_forked(void)
{
	return forked;
}

void entry_detach(void)
{
	detached = true;
}

bool entry_detached(void)
{
	return detached;
}

void entry_in_buffer_callback(int step)
{
	in_buffer_callback += step;
}

void entry_pure(const char *function)
{
	int log = switches()->log;

	if (log >= 0)
		dprintf(log, "%d %d %s\n", (int)getpid(), (int)gettid(), function);
}

CUptiResult entry(const char *function)
{
	entry_pure(function);
	if (in_buffer_callback) {
		fprintf(stderr,
			"simulated CUPTI: %s called from a buffer callback, where the real "
			"library holds its locks\n",
			function);
		abort();
	}
	if (switches()->refuse)
		return (CUptiResult)switches()->refuse;
	if (detached)
		return CUPTI_ERROR_NOT_INITIALIZED;
	if (forked || sim_device_count() == 0)
		return CUPTI_ERROR_UNKNOWN;
	return CUPTI_SUCCESS;
}
