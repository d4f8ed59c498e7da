/* SPDX-License-Identifier: MIT
 * The life of the sampler's thread. What it does at each tick is in tick.c.
 */
#include "collector/sample/sampler.h"

#include "collector/file/dictionary.h"
#include "collector/process/clock.h"
#include "collector/process/fork_wiped_memory.h"
#include "collector/process/own_threads.h"
#include "collector/process/signal_guard.h"
#include "collector/sample/perf_source.h"
#include "collector/sample/process_memory.h"
#include "collector/sample/tick.h"

#include <errno.h>
#include <linux/futex.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

/* A thread that forks waits at most so long for the sampler. Longer only if the sampler itself
 * waits for a lock of libc that this thread has. */
#define FORK_LIMIT_NS 50000000L
#define STACK_BYTES ((size_t)512 << 10) /* untouched pages take no memory */

struct sampler_settings sampler_settings;

/* Allocated by fork_wiped_alloc: a forked child has no sampler. */
static struct sampler {
	pthread_mutex_t lock; /* for the start and the end of the thread */
	pthread_t thread;
	bool runs;
	uint32_t ending;      /* atomic; 1: the thread shall end. It is woken by this futex. */
	pthread_mutex_t work; /* held while the sampler is at work */
	bool held;            /* `work` is held by a thread that forks */
} * sampler;

static bool is_forked;

static bool is_ending(void)
{
	return __atomic_load_n(&sampler->ending, __ATOMIC_ACQUIRE);
}

/* Sleeps until the time. Returns false if the thread shall end. */
static bool sleep_until(uint64_t until_ns)
{
	const struct timespec until = { (time_t)(until_ns / 1000000000),
		(long)(until_ns % 1000000000) };

	while (!is_ending() && (!syscall(SYS_futex, &sampler->ending, FUTEX_WAIT_BITSET_PRIVATE, 0,
					&until, NULL, FUTEX_BITSET_MATCH_ANY) ||
				       errno == EINTR))
		;
	return !is_ending();
}

static bool work(bool (*step)(void))
{
	bool done;

	pthread_mutex_lock(&sampler->work);
	done = step();
	pthread_mutex_unlock(&sampler->work);
	return done;
}

/* Sleeps until the time, and reads samples as they arrive. Returns false if the thread shall
 * end. */
static bool sample_until(uint64_t until_ns)
{
	while (clock_monotonic_ns() < until_ns && !is_ending() && perf_source_wait(until_ns))
		work(tick_read_rings);
	return sleep_until(until_ns);
}

/* All signals are blocked in this thread. The guarded section never ends, so those within it need
 * no system calls. */
static void *run_sampler(void *unused)
{
	struct signal_guard guard;

	(void)unused;
	signal_guard_begin(&guard);
	prctl(PR_SET_NAME, "pperf");
	own_thread_begin();
	process_memory_begin();
	if (work(tick_begin))
		while (sample_until(tick_next_ns()))
			work(tick);
	work(tick_finish);
	own_thread_end();
	return NULL;
}

/* Returns 0 or an errno. */
static int create_thread(void)
{
	pthread_attr_t attributes;
	int failed = pthread_attr_init(&attributes);

	if (failed)
		return failed;
	pthread_attr_setstacksize(&attributes, STACK_BYTES);
	failed = pthread_create(&sampler->thread, &attributes, run_sampler, NULL);
	pthread_attr_destroy(&attributes);
	/* A program with much thread-local data needs a larger stack than that. */
	if (failed)
		failed = pthread_create(&sampler->thread, NULL, run_sampler, NULL);
	return failed;
}

static void state_no_thread(int failed)
{
	char text[160];

	snprintf(text, sizeof text, "off: the sampler's thread could not be created (%d)", failed);
	meta_set("source.cpu_samples", text);
}

static void start_locked(void)
{
	int failed;

	if (sampler->runs)
		return;
	__atomic_store_n(&sampler->ending, 0, __ATOMIC_RELEASE);
	failed = create_thread();
	sampler->runs = !failed;
	if (failed)
		state_no_thread(failed);
}

void sampler_configure(const struct sampler_settings *settings)
{
	sampler_settings = *settings;
	if (settings->hz)
		sampler = fork_wiped_alloc(sizeof *sampler);
}

void sampler_start(void)
{
	sigset_t all, before;
	const int saved = errno;

	if (!sampler)
		return;
	sigfillset(&all);
	/* The thread inherits the mask, so the program's signals are never delivered to it. */
	pthread_sigmask(SIG_SETMASK, &all, &before);
	pthread_mutex_lock(&sampler->lock);
	start_locked();
	pthread_mutex_unlock(&sampler->lock);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	errno = saved;
}

/* Returns CLOCK_REALTIME in `ns` nanoseconds. */
static struct timespec time_in(long ns)
{
	struct timespec until;

	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_nsec += ns % 1000000000;
	until.tv_sec += ns / 1000000000 + until.tv_nsec / 1000000000;
	until.tv_nsec %= 1000000000;
	return until;
}

bool sampler_stop(unsigned limit_ms)
{
	struct timespec until;
	bool runs;

	if (!sampler)
		return true;
	pthread_mutex_lock(&sampler->lock);
	runs = sampler->runs;
	__atomic_store_n(&sampler->ending, 1, __ATOMIC_RELEASE);
	if (runs)
		syscall(SYS_futex, &sampler->ending, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
	pthread_mutex_unlock(&sampler->lock);
	if (!runs)
		return true;
	until = time_in(limit_ms * 1000000L);
	if (pthread_timedjoin_np(sampler->thread, NULL, &until))
		return false;
	sampler->runs = false;
	return true;
}

bool sampler_runs(void)
{
	return sampler && sampler->runs;
}

void sampler_fork_prepare(void)
{
	const int saved = errno;
	struct timespec until;

	if (!sampler || !sampler->runs)
		return;
	until = time_in(FORK_LIMIT_NS);
	sampler->held = !pthread_mutex_timedlock(&sampler->work, &until);
	errno = saved;
}

void sampler_fork_parent(void)
{
	if (!sampler || !sampler->held)
		return;
	sampler->held = false;
	pthread_mutex_unlock(&sampler->work);
}

void sampler_forked(void)
{
	is_forked = true;
}

bool sampler_is_forked(void)
{
	return is_forked;
}
