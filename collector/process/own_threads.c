/* SPDX-License-Identifier: MIT */
#include "collector/process/own_threads.h"

#include "collector/process/fork_wiped_memory.h"
#include "collector/process/thread_clock.h"

#include <stddef.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Allocated by fork_wiped_alloc. All members are atomic. */
static struct own_threads {
	uint32_t tids[OWN_THREADS_MAX]; /* 0: free */
	uint64_t ended_ns;              /* CPU time of those that ended */
} * own;

static struct own_threads *own_threads(void)
{
	struct own_threads *there = __atomic_load_n(&own, __ATOMIC_ACQUIRE), *fresh;

	if (there || !(fresh = fork_wiped_alloc(sizeof *fresh)))
		return there;
	return __atomic_compare_exchange_n(
		       &own, &there, fresh, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)
		       ? fresh
		       : there;
}

static bool replace_tid(uint32_t was, uint32_t is)
{
	struct own_threads *threads = own_threads();
	uint32_t expected;

	for (unsigned i = 0; threads && i < OWN_THREADS_MAX; i++) {
		expected = was;
		if (__atomic_compare_exchange_n(&threads->tids[i], &expected, is, false,
			    __ATOMIC_RELAXED, __ATOMIC_RELAXED))
			return true;
	}
	return false;
}

void own_thread_begin(void)
{
	replace_tid(0, (uint32_t)syscall(SYS_gettid));
}

void own_thread_end(void)
{
	const uint32_t tid = (uint32_t)syscall(SYS_gettid);
	uint64_t cpu_ns;

	if (replace_tid(tid, 0) && thread_cpu_ns(tid, &cpu_ns))
		__atomic_fetch_add(&own->ended_ns, cpu_ns, __ATOMIC_RELAXED);
}

bool own_thread_is(uint32_t tid)
{
	const struct own_threads *threads = __atomic_load_n(&own, __ATOMIC_ACQUIRE);

	for (unsigned i = 0; threads && i < OWN_THREADS_MAX; i++)
		if (__atomic_load_n(&threads->tids[i], __ATOMIC_RELAXED) == tid)
			return true;
	return false;
}

uint64_t own_threads_cpu_ns(void)
{
	const struct own_threads *threads = __atomic_load_n(&own, __ATOMIC_ACQUIRE);
	uint64_t sum, cpu_ns;

	if (!threads)
		return 0;
	sum = __atomic_load_n(&threads->ended_ns, __ATOMIC_RELAXED);
	for (unsigned i = 0; i < OWN_THREADS_MAX; i++) {
		const uint32_t tid = __atomic_load_n(&threads->tids[i], __ATOMIC_RELAXED);

		if (tid && thread_cpu_ns(tid, &cpu_ns))
			sum += cpu_ns;
	}
	return sum;
}
