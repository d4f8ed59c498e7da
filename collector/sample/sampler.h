/* SPDX-License-Identifier: MIT
 * Samples the CPU time of the process's threads (PPERF_SAMPLE). A thread of pperf, the sampler,
 * wakes at each tick and looks at the others. No thread is interrupted, and no signal is used.
 *
 * The weight of a sample is the CPU time that its thread has used since its last sample. So the
 * weights of a thread add up to its CPU time, however late the sampler wakes.
 */
#ifndef PPERF_COLLECTOR_SAMPLE_SAMPLER_H
#define PPERF_COLLECTOR_SAMPLE_SAMPLER_H

#include "collector/sample/samples.h"

#define SAMPLER_HZ_MAX 1000u
#define SAMPLER_STACK_MAX 65528u
#define SAMPLER_STACK_DEFAULT 16384u

/* Reads the frames of a thread that runs Python. Sets python and flags of the sample. */
typedef void sampler_python_reader(struct sample *sample);

struct sampler_settings {
	uint32_t hz;          /* PPERF_SAMPLE; 0: off */
	bool wall;            /* PPERF_SAMPLE_CLOCK=wall */
	bool no_perf;         /* PPERF_SAMPLE_KIND=clock */
	uint32_t stack_bytes; /* PPERF_SAMPLE_STACK; 0: no native frames */
	/* A forked child is sampled once it has a file, and gets none for its samples alone. */
	bool children_need_file;
};

/* Called by the constructor, once. Without it, or with hz 0, nothing below does anything. */
void sampler_configure(const struct sampler_settings *settings);
extern struct sampler_settings sampler_settings;

/* What the sampler calls of the rest of the library. */
struct sampler_hooks {
	sampler_python_reader *read_python;
	/* Finds out which threads run Python (sampled_thread.python). Called often. */
	void (*find_python_threads)(void);
	/* Called at each tick, until it returns true. */
	bool (*prepare_python)(void);
};

/* Sets the hooks, which stay valid. Called by the constructor, before sampler_start(). */
void sampler_set_hooks(const struct sampler_hooks *hooks);

/* Creates the sampler's thread, unless it exists. Called by a thread of the program, where it may
 * allocate memory. */
void sampler_start(void);

/* Ends the sampler's thread, which takes the last samples, and waits for that at most `limit_ms`.
 * Returns whether the thread has ended. sampler_start() starts it again. */
bool sampler_stop(unsigned limit_ms);

/* Whether the sampler's thread exists. */
bool sampler_runs(void);

/* Called around a fork, on the thread that forks. Between the first two calls the sampler is not
 * at work, so that it holds no lock of libc in the child. The child has no sampler until
 * sampler_start(). */
void sampler_fork_prepare(void);
void sampler_fork_parent(void);
void sampler_forked(void);

/* Whether this process was forked without executing a program. */
bool sampler_is_forked(void);

#endif
