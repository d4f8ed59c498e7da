/* SPDX-License-Identifier: MIT
 * The list of the threads that are sampled, with their CPU clocks: all threads of the process but
 * pperf's own. The list is that of /proc/self/task. Only the sampler's thread calls.
 */
#ifndef PPERF_COLLECTOR_SAMPLE_SAMPLED_THREADS_H
#define PPERF_COLLECTOR_SAMPLE_SAMPLED_THREADS_H

#include <stdbool.h>
#include <stdint.h>

struct stream;

/* Threads beyond this number are not sampled; their CPU time is counted as lost. */
#define SAMPLED_THREADS_MAX 32768u

struct sampled_thread {
	uint32_t tid;
	uint32_t name;               /* name id; 0: not read yet */
	bool listed;                 /* found by the last listing */
	bool began;                  /* it has begun while the sampler ran */
	uint64_t cpu_ns;             /* its CPU clock at the last look */
	uint64_t sampled_ns;         /* of cpu_ns: what samples represent, or what they need not */
	uint64_t waited_ns;          /* it could run, but no core was free; 0: not known */
	uint64_t stated_ns;          /* cpu_ns of the last SAMPLED_THREAD record */
	uint64_t stated_at;          /* CLOCK_MONOTONIC of that record, in ns; 0: there is none */
	struct stream *stream;       /* NULL: it had none when that was looked up last */
	uint64_t python;             /* for the reader of Python frames; 0 at first */
	/* Of wall_samples.h: how long it was blocked or waited, as samples say, and where it is. */
	struct {
		uint64_t began_ns; /* CLOCK_MONOTONIC when it was first seen; 0: not yet */
		uint64_t began_cpu_ns, began_waited_ns;
		uint64_t blocked_ns, waited_ns;
		uint64_t seen_cpu_ns; /* its CPU clock at the last look */
		uint64_t taken, pc;
		uint32_t node, native, python;
		uint32_t clock; /* of wait_clock.h */
		uint8_t flags;
	} wall;
	void *events;         /* its ring of perf_source.h; NULL: it has none */
	uint8_t short_stacks; /* its samples whose copy of the stack was too small */
	bool ring_was_full;   /* samples may have been lost that are not counted yet */
};

/* Called with a thread that was found or that has ended, before it leaves the list. */
typedef void thread_observer(struct sampled_thread *thread);

/* Prepares the list. `found`, `ended`: called by sampled_threads_update. Returns false if there is
 * no memory. */
bool sampled_threads_setup(thread_observer *found, thread_observer *ended);

/* Finds new threads and drops those that have ended, if their number has changed or `must`. Cheap
 * if it has not: 0.6 us. Returns false if the threads cannot be listed; the list has the main
 * thread then. */
bool sampled_threads_update(bool must);

/* Returns the threads; their number in `count`. Valid until the next update. */
struct sampled_thread *sampled_threads(uint32_t *count);

/* Returns the thread with this kernel id; NULL: it is not in the list. Valid until the next
 * update. */
struct sampled_thread *sampled_threads_find(uint32_t tid);

/* Reads the clock of a thread. Returns false if the thread has ended. */
bool sampled_thread_look(struct sampled_thread *thread);

/* Returns the CPU time, in nanoseconds, of the process since the list was set up that no look at a
 * thread has seen: of threads that began and ended between two looks, and the ends of others. The
 * time of pperf's own threads is left out. Call it right after a look at all threads. */
uint64_t sampled_threads_unseen_ns(void);

#endif
