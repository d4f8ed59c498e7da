/* SPDX-License-Identifier: MIT */
#include "collector/sample/wall_samples.h"

#include "collector/process/clock.h"
#include "collector/sample/wait_clock.h"

#include <string.h>

#define BLOCKED_MAX_NS UINT64_C(1000000000) /* of one sample */

/* Sets where the thread is. */
static void read_place(struct sampled_thread *thread, bool is_running, sample_frame_reader *read)
{
	struct sample sample = { .thread = thread, .taken = clock_now() };

	sample_read_node(&sample);
	read(&sample, is_running);
	thread->wall.taken = sample.taken;
	thread->wall.pc = sample.pc;
	thread->wall.node = sample.node;
	thread->wall.native = sample.native;
	thread->wall.python = sample.python;
	thread->wall.flags = sample.flags;
}

static void write_state(struct sampled_thread *thread, enum trace_sample_state state,
	uint64_t weight_ns, uint64_t *sampled_ns)
{
	const struct sample sample = { .thread = thread,
		.taken = thread->wall.taken,
		.weight_ns = weight_ns,
		.state = state,
		.flags = thread->wall.flags,
		.node = thread->wall.node,
		.native = thread->wall.native,
		.python = thread->wall.python,
		.pc = thread->wall.pc };

	if (!thread->stated_at)
		sample_write_thread(thread, thread->sampled_ns, true);
	sample_write(&sample);
	*sampled_ns += weight_ns - weight_ns % TRACE_SAMPLE_WEIGHT_NS;
}

/* Returns how long the thread has been blocked so far, and no sample says so. */
static uint64_t blocked_ns(const struct sampled_thread *thread, uint64_t now_ns)
{
	const uint64_t whole = now_ns - thread->wall.began_ns,
		       rest = thread->cpu_ns - thread->wall.began_cpu_ns + thread->waited_ns -
			      thread->wall.began_waited_ns + thread->wall.blocked_ns;

	return whole > rest ? whole - rest : 0;
}

static void write_blocked(struct sampled_thread *thread, uint64_t now_ns, uint64_t least_ns)
{
	const uint64_t blocked = blocked_ns(thread, now_ns);

	if (blocked >= least_ns && blocked)
		write_state(thread, TRACE_SAMPLE_BLOCKED, blocked, &thread->wall.blocked_ns);
}

static void begin_thread(struct sampled_thread *thread, uint64_t now_ns)
{
	thread->wall.clock = wait_clock_open(thread->tid);
	if (!wait_clock_read(thread->wall.clock, &thread->waited_ns))
		thread->waited_ns = 0;
	/* CPU time that no sample has yet is of the time before. */
	thread->wall.began_ns = now_ns - (thread->cpu_ns - thread->sampled_ns);
	thread->wall.began_cpu_ns = thread->sampled_ns;
	thread->wall.began_waited_ns = thread->wall.waited_ns = thread->waited_ns;
	thread->wall.seen_cpu_ns = thread->cpu_ns;
}

void wall_samples_look(struct sampled_thread *thread, uint64_t now_ns, uint64_t least_ns, bool must,
	sample_frame_reader *read_frames)
{
	const bool is_new = !thread->wall.began_ns,
		   ran = !is_new && thread->cpu_ns != thread->wall.seen_cpu_ns;
	uint64_t waited_ns, cpu_ns;

	if (is_new)
		begin_thread(thread, now_ns);
	if (wait_clock_read(thread->wall.clock, &waited_ns) && waited_ns > thread->waited_ns)
		thread->waited_ns = waited_ns;
	if (ran || must || blocked_ns(thread, now_ns) >= BLOCKED_MAX_NS)
		write_blocked(thread, now_ns, must ? TRACE_SAMPLE_WEIGHT_NS : least_ns);
	if (is_new || ran)
		read_place(thread, ran, read_frames);
	else if (must || blocked_ns(thread, now_ns) == 0)
		thread->wall.taken = clock_now();
	cpu_ns = thread->cpu_ns > thread->sampled_ns ? thread->cpu_ns - thread->sampled_ns : 0;
	/* A thread with a ring has samples of its CPU time there. */
	if (cpu_ns >= least_ns && (!thread->events || must))
		write_state(thread, TRACE_SAMPLE_ON_CPU, cpu_ns, &thread->sampled_ns);
	waited_ns = thread->waited_ns - thread->wall.waited_ns;
	if (waited_ns >= least_ns)
		write_state(
			thread, TRACE_SAMPLE_WAITS_FOR_CORE, waited_ns, &thread->wall.waited_ns);
	thread->wall.seen_cpu_ns = thread->cpu_ns;
}

void wall_samples_end(struct sampled_thread *thread, uint64_t now_ns)
{
	if (thread->wall.began_ns)
		write_blocked(thread, now_ns, TRACE_SAMPLE_WEIGHT_NS);
	wait_clock_close(thread->wall.clock);
	memset(&thread->wall, 0, sizeof thread->wall);
}
