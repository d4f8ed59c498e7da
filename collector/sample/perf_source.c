/* SPDX-License-Identifier: MIT */
#include "collector/sample/perf_source.h"

#include "collector/file/dictionary.h"
#include "collector/file/loaded_objects.h"
#include "collector/file/trace_file.h"
#include "collector/process/clock.h"
#include "collector/process/dynamic_linker.h"
#include "collector/process/fork_wiped_memory.h"
#include "collector/sample/blocked_thread.h"
#include "collector/sample/frame_tree.h"
#include "collector/sample/function_parts.h"
#include "collector/sample/perf_ring.h"
#include "collector/sample/process_memory.h"
#include "collector/sample/python_check.h"
#include "collector/sample/sampler.h"
#include "collector/stream/stream.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>

#define WAIT_MS_MAX 10u   /* the sampler's thread looks at least so often whether it shall end */
#define RATE_NS 1000000.0 /* after so long, the clock's rate is known */
/* With so many samples in a ring, some may have had no room. What was lost is known only when the
 * next sample has room. */
#define RING_IS_FULL 3u
/* A thread with so many samples whose copy of the stack was too small gets the largest copies. */
#define SHORT_STACKS 4u

/* Allocated by fork_wiped_alloc: a forked child has no rings. */
static struct perf_source {
	uint64_t period_ns;
	struct unwinder *unwinder;
	sampler_python_reader *read_python;
	struct trace_clock began;
	uint32_t refused; /* threads without a ring */
	bool on, can_wait;
	struct unwind_stack stack;
	struct later_stack later;
} * source;

/* ---- what META says ---- */

static void state_source(const char *text)
{
	const struct meta facts[] = { { "source.cpu_samples", text },
		{ "sample.source", source && source->on ? "perf" : "clock" } };

	meta_set_all(facts, sizeof facts / sizeof facts[0]);
}

/* Returns what a user can do about an error of perf_event_open. */
static const char *advice(int error)
{
	switch (error) {
	case EPERM:
	case EACCES:
		return "a seccomp filter or kernel.perf_event_paranoid above 2 forbids it; "
		       "CAP_PERFMON "
		       "(docker run --cap-add PERFMON) permits it";
	case ENOBUFS:
		return "the user's processes may lock no more memory for rings; raise "
		       "RLIMIT_MEMLOCK or kernel.perf_event_mlock_kb";
	case EMFILE:
	case ENFILE:
		return "the process may open no more files; raise RLIMIT_NOFILE";
	case ENOMEM:
		return "there is no memory for the rings";
	default:
		return "this kernel does not have it";
	}
}

static void state_refused(const char *call, int error)
{
	char text[320];

	snprintf(text, sizeof text,
		"partial: no native frames of threads on a core: %s was refused (%s): %s", call,
		perf_ring_error_name(error), advice(error));
	state_source(text);
}

/* Says why one thread has no ring, the first time. */
static void state_thread_refused(int error)
{
	char text[320];

	if (source->refused++)
		return;
	snprintf(text, sizeof text, "partial: some threads have no native frames: %s (%s)",
		advice(error), perf_ring_error_name(error));
	state_source(text);
}

/* ---- begin and end ---- */

static void try_rings(void)
{
	int error = process_memory_error();

	if (error) {
		state_refused("process_vm_readv", error);
		return;
	}
	source->unwinder = unwinder_open();
	if (!source->unwinder) {
		state_source("partial: no native frames: there is no memory for them");
		return;
	}
	if (sampler_settings.no_perf) {
		state_source("partial: no native frames of threads on a core: PPERF_SAMPLE_KIND is "
			     "clock");
		return;
	}
	error = perf_rings_begin(source->period_ns, sampler_settings.stack_bytes);
	source->on = !error;
	if (error)
		state_refused(error == ENOBUFS ? "a ring" : "perf_event_open", error);
	else
		state_source("on");
}

/* Looks up the interpreter's function. A thread of the program that loads a library makes this
 * wait, 0.16 s for PyTorch, so it is done when samples begin. */
static void *find_interpreter(void)
{
	static void *entry;

	if (!entry)
		entry = quiet_dlsym(RTLD_DEFAULT, "_PyEval_EvalFrameDefault");
	return entry;
}

void perf_source_begin(uint64_t period_ns, sampler_python_reader *read_python)
{
	if (!source)
		source = fork_wiped_alloc(sizeof *source);
	if (!source)
		return;
	if (!source->period_ns) {
		source->period_ns = period_ns;
		source->read_python = read_python;
		if (sampler_settings.stack_bytes)
			try_rings();
		else
			state_source("partial: no native frames: PPERF_SAMPLE_STACK is 0");
	}
	source->can_wait = source->on && perf_rings_can_wait();
	find_interpreter();
}

void perf_source_set_period(uint64_t period_ns)
{
	if (!perf_source_is_on())
		return;
	source->period_ns = period_ns;
	perf_rings_set_period(period_ns);
}

bool perf_source_is_on(void)
{
	return source && source->on;
}

static int open_ring(struct sampled_thread *thread, uint32_t stack_bytes)
{
	struct perf_ring *ring;
	const int error = perf_ring_open(&ring, thread->tid, stack_bytes);

	if (!error)
		thread->events = ring;
	return error;
}

void perf_source_open(struct sampled_thread *thread)
{
	const bool wants_large = thread->short_stacks >= SHORT_STACKS;
	int error;

	if (!perf_source_is_on() || thread->events)
		return;
	if (wants_large && !open_ring(thread, SAMPLER_STACK_MAX))
		return;
	error = open_ring(thread, sampler_settings.stack_bytes);
	if (error && error != ESRCH) /* ESRCH: it has ended */
		state_thread_refused(error);
}

void perf_source_close(struct sampled_thread *thread)
{
	perf_ring_close(thread->events);
	thread->events = NULL;
}

/* ---- samples ---- */

/* Returns the time in ticks of the trace's clock. */
static uint64_t ticks_at(uint64_t monotonic_ns, const struct trace_clock *now)
{
	const double elapsed_ns = (double)(now->monotonic_ns - source->began.monotonic_ns),
		     ticks = (double)(now->raw - source->began.raw),
		     ago_ns = (double)now->monotonic_ns - (double)monotonic_ns;

	if (ago_ns <= 0 || elapsed_ns < RATE_NS)
		return now->raw;
	return now->raw - (uint64_t)(ago_ns * ticks / elapsed_ns);
}

/* Gives ids to the frames that are in source->stack. */
static void name_frames(struct sample *sample)
{
	const struct unwind_stack *stack = &source->stack;
	const uint32_t callers = stack->frames - 1,
		       id = frame_native_id(0, stack->address + 1, callers);

	sample->pc = stack->address[0];
	sample->native = id;
	sample->flags |= (stack->guessed ? TRACE_SAMPLE_GUESSED : 0) |
			 (stack->cut || (!id && callers) ? TRACE_SAMPLE_CUT : 0);
}

/* Returns the code of the interpreter's function, or NULL if it is not known. A second part of it
 * is written to the trace. */
static const struct function_parts *interpreter_parts(void)
{
	static struct function_parts parts;
	static bool is_known;
	const struct code_range *second = &parts.all[1];
	void *entry;
	char text[48];

	if (is_known)
		return &parts;
	entry = find_interpreter();
	if (!entry || !function_parts_find(source->unwinder, (uint64_t)(uintptr_t)entry, &parts))
		return NULL;
	is_known = true;
	if (second->end) {
		snprintf(text, sizeof text, "%#" PRIx64 "-%#" PRIx64, second->begin, second->end);
		meta_set("python.eval_part", text);
	}
	return &parts;
}

/* Reads the Python frames of the thread, as soon as possible, because it runs on. */
static void read_python(struct sample *sample, const struct perf_sample *taken)
{
	if (!source->read_python)
		return;
	source->read_python(sample);
	if (sample->python && taken->has_registers)
		later_stack_copy(&source->later, &taken->start);
}

/* Copies what the walk needs beyond the sample's copy of the stack, before the Python frames are
 * read. */
static void begin_native(struct sampled_thread *thread, const struct perf_sample *taken)
{
	if (taken->has_registers && unwinder_begin(source->unwinder, &taken->start) &&
		thread->short_stacks < SHORT_STACKS)
		thread->short_stacks++;
}

static void read_native(struct sample *sample)
{
	const struct function_parts *interpreter;

	unwinder_walk(source->unwinder, &source->stack);
	name_frames(sample);
	if (!sample->python || source->stack.cut)
		return;
	interpreter = interpreter_parts();
	if (interpreter)
		python_check(sample, interpreter, &source->stack, &source->later);
}

static void write_sample(struct sampled_thread *thread, const struct perf_sample *taken,
	const struct trace_clock *now)
{
	struct sample sample = { .thread = thread,
		.taken = ticks_at(taken->taken_ns, now),
		.weight_ns = source->period_ns,
		.state = TRACE_SAMPLE_ON_CPU };

	sample_request_frames(thread);
	if (!thread->stated_at)
		sample_write_thread(thread, thread->sampled_ns, true);
	begin_native(thread, taken);
	read_python(&sample, taken);
	if (taken->has_registers)
		read_native(&sample);
	sample_write(&sample);
	thread->sampled_ns += source->period_ns;
}

/* Counts samples that the kernel had no room for. */
static void lose(struct sampled_thread *thread, uint64_t samples)
{
	if (!samples)
		return;
	trace_lose(TRACE_LOST_SAMPLES, samples);
	thread->sampled_ns += samples * source->period_ns;
}

/* Learns which objects are loaded, and writes them to the trace. */
static void update_objects(void)
{
	static uint64_t changes;

	if (!unwinder_update(source->unwinder) && changes)
		return;
	changes++;
	/* A call with addresses that were not seen before writes all new objects. */
	loaded_objects_record(&changes, 1);
}

void perf_source_read(struct sampled_thread *thread)
{
	struct perf_sample taken = { .next = 0 };
	struct trace_clock now;
	const uint8_t were_short = thread->short_stacks;
	uint32_t count = 0;

	if (!thread->events)
		return;
	while (perf_ring_read(thread->events, &taken)) {
		lose(thread, taken.lost);
		if (!taken.is_sample)
			continue;
		if (!stream_enter()) {
			lose(thread, 1);
			continue;
		}
		if (!count++) {
			update_objects();
			now = clock_sample();
			/* The clock is chosen when the file is opened. */
			if (!source->began.monotonic_ns)
				source->began = now;
		}
		write_sample(thread, &taken, &now);
		stream_leave();
	}
	thread->ring_was_full = count >= RING_IS_FULL;
	if (thread->short_stacks == SHORT_STACKS && were_short < SHORT_STACKS) {
		perf_source_close(thread);
		perf_source_open(thread);
	}
}

/* The thread's next sample is due within a period, and one may be on its way. So only what is
 * beyond two periods is certainly not sampled. */
void perf_source_write_kernel_time(struct sampled_thread *thread)
{
	const uint64_t period_ns = source->period_ns;
	struct sample sample = { .thread = thread, .state = TRACE_SAMPLE_KERNEL };

	if (!thread->events || thread->ring_was_full ||
		thread->cpu_ns < thread->sampled_ns + 2 * period_ns || !stream_enter())
		return;
	sample.taken = clock_now();
	sample.weight_ns = ((thread->cpu_ns - thread->sampled_ns) / period_ns - 1) * period_ns;
	if (!thread->stated_at)
		sample_write_thread(thread, thread->sampled_ns, true);
	sample_read_node(&sample);
	if (source->read_python)
		source->read_python(&sample);
	sample_write(&sample);
	thread->sampled_ns += sample.weight_ns;
	stream_leave();
}

void perf_source_read_blocked(struct sample *sample)
{
	if (!source || !source->unwinder)
		return;
	update_objects();
	if (blocked_thread_walk(source->unwinder, sample->thread->tid, &source->stack))
		name_frames(sample);
}

bool perf_source_can_wait(void)
{
	return perf_source_is_on() && source->can_wait;
}

bool perf_source_wait(uint64_t until_ns)
{
	const uint64_t now_ns = clock_monotonic_ns();
	uint64_t left_ms = until_ns > now_ns ? (until_ns - now_ns + 999999) / 1000000 : 0;

	if (!perf_source_can_wait())
		return false;
	source->can_wait = perf_rings_wait(left_ms < WAIT_MS_MAX ? (unsigned)left_ms : WAIT_MS_MAX);
	return source->can_wait;
}
