/* SPDX-License-Identifier: MIT */
#include "preload/sampling.h"

#include "collector/file/dictionary.h"
#include "collector/process/signal_frame.h"
#include "collector/sample/sampler.h"
#include "collector/stream/frame_request.h"
#include "preload/python/frames.h"
#include "preload/python/peer_frames.h"
#include "preload/python/peer_start.h"
#include "preload/python/peer_threads.h"

#include <errno.h>
#include <sched.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define END_LIMIT_MS 250u
#define FORK_LIMIT_MS 50u
#define YIELDS_MAX 1000u /* while the kernel removes a thread that has ended */

static bool is_on, starts_in_children;

/* What the thread that forks does, from before the fork until after it. */
static __thread struct {
	bool single;   /* the program has no other thread */
	bool deferred; /* Python starts the sampler again, here and in the child */
	bool stopped;  /* the sampler's thread was ended for the fork */
	bool in_signal_handler;
} forking __attribute__((tls_model("initial-exec")));

/* Returns the number of threads of this process, those of pperf included; 0: unknown. */
static unsigned count_threads(void)
{
	struct stat task;

	return stat("/proc/self/task", &task) || task.st_nlink < 3 ? 0
								   : (unsigned)task.st_nlink - 2;
}

void sampling_start(const struct pperf_settings *settings)
{
	static const struct sampler_hooks with_python = { .read_python = peer_frames_read,
		.find_python_threads = peer_frames_find_threads,
		.prepare_python = peer_start_poll };

	is_on = settings->sampling.hz != 0;
	starts_in_children = is_on && !settings->trace.skip_forked;
	sampler_configure(&settings->sampling);
	if (settings->python) {
		sampler_set_hooks(&with_python);
		frame_request_set_reader(python_sample_frames);
	}
	if (is_on)
		peer_threads_note_main();
	sampler_start();
}

/* Ends the sampler's thread, so that the process has one thread while it forks. */
static void stop_for_fork(void)
{
	forking.stopped = sampler_stop(FORK_LIMIT_MS);
	for (unsigned i = 0; forking.stopped && i < YIELDS_MAX && count_threads() > 1; i++)
		sched_yield();
}

void sampling_fork_prepare(void)
{
	const int saved = errno;

	if (!is_on)
		return;
	forking.stopped = false;
	forking.single = count_threads() <= 1 + (unsigned)sampler_runs();
	forking.in_signal_handler = forking.single && signal_frame_is_below();
	/* In the child of another thread Python would wait for the call for ever when it ends. */
	forking.deferred = !forking.in_signal_handler && syscall(SYS_gettid) == getpid() &&
			   python_call_later(sampler_start);
	if (forking.deferred && forking.single && python_warns_of_threads())
		stop_for_fork();
	else
		sampler_fork_prepare();
	errno = saved;
}

void sampling_fork_parent(void)
{
	if (is_on && !forking.stopped)
		sampler_fork_parent();
}

void sampling_fork_child(void)
{
	if (!is_on)
		return;
	sampler_forked();
	if (!starts_in_children || forking.deferred)
		return;
	if (forking.single && !forking.in_signal_handler)
		sampler_start();
	else
		meta_set("source.cpu_samples",
			"off: the process was forked by a program with threads, where a new thread "
			"may be started only by Python (0)");
}

void sampling_end(void)
{
	if (is_on)
		sampler_stop(END_LIMIT_MS);
}
