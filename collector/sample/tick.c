/* SPDX-License-Identifier: MIT */
#include "collector/sample/tick.h"

#include "collector/file/dictionary.h"
#include "collector/file/trace_file.h"
#include "collector/process/clock.h"
#include "collector/process/fork_wiped_memory.h"
#include "collector/process/own_threads.h"
#include "collector/process/thread_clock.h"
#include "collector/sample/brake.h"
#include "collector/sample/perf_source.h"
#include "collector/sample/sampler.h"
#include "collector/sample/wait_clock.h"
#include "collector/sample/wall_samples.h"
#include "collector/stream/control.h"
#include "collector/stream/recording_switch.h"
#include "collector/stream/stream.h"

#include <stdio.h>
#include <time.h>
#include <unistd.h>

#define SECOND_NS UINT64_C(1000000000)
#define UPDATE_NS UINT64_C(10000000)  /* between two looks for new threads */
#define CONTROL_NS UINT64_C(50000000) /* between two looks for requests of `pperf ctl` */
#define RINGS_NS UINT64_C(50000000)   /* between two looks at the clocks of threads with a ring */
#define STATE_NS UINT64_C(250000000)  /* between two records of the clocks */
/* A process that has no file gets one for its samples when it has used so much CPU time. Shells and
 * other programs that only start the profiled one use less, and leave no file. */
#define FILE_NS UINT64_C(50000000)
/* A sample is written when a thread has used this part of a period; sooner only at the end. */
#define SMALL_PART 8u

/* Allocated by fork_wiped_alloc. All times are CLOCK_MONOTONIC in ns. */
static struct ticker {
	uint64_t next_ns, period_ns;
	uint64_t update_ns, control_ns, state_ns, rings_ns; /* when that is due */
	uint64_t own_cpu_ns; /* of this thread, at the last SELF record */
	struct brake brake;
	uint64_t longest_ns; /* the longest period so far for which the brake is the reason */
	uint64_t lost;       /* samples of unseen CPU time, counted so far */
	uint64_t random;
	struct trace_clock began;
	bool looks; /* at threads; not before there is a file */
	bool paused, python_is_prepared, all_have_rings;
	bool look_at_rings; /* at the clocks of threads with a ring too, in this tick */
} * ticker;

static const struct sampler_hooks no_hooks, *hooks = &no_hooks;

void sampler_set_hooks(const struct sampler_hooks *used)
{
	hooks = used;
}

/* ---- one thread ---- */

static void take_sample(struct sampled_thread *thread)
{
	struct sample sample = { .thread = thread,
		.taken = clock_now(),
		.weight_ns = thread->cpu_ns - thread->sampled_ns,
		.state = TRACE_SAMPLE_ON_CPU };

	sample_read_node(&sample);
	if (!thread->stated_at)
		sample_write_thread(thread, thread->sampled_ns, true);
	if (hooks->read_python)
		hooks->read_python(&sample);
	sample_write(&sample);
	/* What is too little for the unit of weights is left to the next sample. */
	thread->sampled_ns = thread->cpu_ns - sample.weight_ns % TRACE_SAMPLE_WEIGHT_NS;
}

/* Reads the frames of a thread for a sample of its wall time. */
static void read_frames(struct sample *sample, bool is_running)
{
	if (!is_running)
		perf_source_read_blocked(sample);
	if (hooks->read_python)
		hooks->read_python(sample);
}

/* Whether the whole time of the thread is sampled. Other threads do not belong to the work that the
 * user sees: a pool of a library, or the threads of a driver. */
static bool has_wall_samples(const struct sampled_thread *thread)
{
	return sampler_settings.wall &&
	       (thread->stream || thread->python || thread->tid == (uint32_t)getpid());
}

/* Whether a thread with a ring needs more than the samples that are in it. `last`: these are its
 * last samples for now. */
static bool needs_more(struct sampled_thread *thread, bool wall, bool last)
{
	perf_source_read(thread);
	if (!wall && !last && !ticker->look_at_rings)
		return false;
	if (!sampled_thread_look(thread))
		return false;
	perf_source_write_kernel_time(thread);
	return wall || last;
}

/* Looks at a thread, and samples it if it has used at least `least_ns`. */
static void look_at(struct sampled_thread *thread, uint64_t least_ns)
{
	const bool wall = has_wall_samples(thread), last = least_ns == TRACE_SAMPLE_WEIGHT_NS;

	if (perf_source_has(thread) ? !needs_more(thread, wall, last)
				    : !sampled_thread_look(thread))
		return;
	if (!wall && thread->cpu_ns < thread->sampled_ns + least_ns)
		return;
	if (!stream_enter()) {
		trace_lose(TRACE_LOST_SAMPLES, 1);
		return;
	}
	if (wall)
		wall_samples_look(thread, clock_monotonic_ns(), least_ns, last, read_frames);
	else
		take_sample(thread);
	stream_leave();
}

static void look_at_all(uint64_t least_ns)
{
	uint32_t count;
	struct sampled_thread *threads = sampled_threads(&count);

	if (sampler_settings.wall && hooks->find_python_threads)
		hooks->find_python_threads();
	ticker->all_have_rings = perf_source_can_wait() && !sampler_settings.wall;
	for (uint32_t i = 0; i < count; i++) {
		look_at(&threads[i], least_ns);
		ticker->all_have_rings &= perf_source_has(&threads[i]);
	}
}

/* Samples what a new thread has done so far by its clock, because its ring begins now. */
static void on_found(struct sampled_thread *thread)
{
	if (!perf_source_is_on() || ticker->paused)
		return;
	look_at(thread, ticker->period_ns / SMALL_PART);
	thread->sampled_ns = thread->cpu_ns;
	perf_source_open(thread);
}

/* Writes the last record of a thread, if it has any. */
static void state_thread(struct sampled_thread *thread)
{
	if (!thread->stated_at || thread->stated_ns == thread->sampled_ns || !stream_enter())
		return;
	sample_write_thread(thread, thread->sampled_ns, false);
	stream_leave();
}

static void on_ended(struct sampled_thread *thread)
{
	perf_source_read(thread);
	perf_source_close(thread);
	if (thread->sampled_ns > thread->cpu_ns)
		thread->cpu_ns = thread->sampled_ns;
	if (thread->wall.began_ns && stream_enter()) {
		wall_samples_end(thread, clock_monotonic_ns());
		stream_leave();
	}
	state_thread(thread);
}

/* ---- four times a second ---- */

/* Counts CPU time that no look has seen as lost samples. */
static void count_unseen(void)
{
	const uint64_t lost = sampled_threads_unseen_ns() * sampler_settings.hz / SECOND_NS;

	if (lost <= ticker->lost)
		return;
	trace_lose(TRACE_LOST_SAMPLES, lost - ticker->lost);
	ticker->lost = lost;
}

/* Returns `ns` in ticks of the trace's clock, by its rate since the first call. There is a file,
 * because the clock is chosen when that is made. */
static uint64_t ticks_of(uint64_t ns)
{
	if (!ticker->began.raw)
		ticker->began = clock_sample();

	const struct trace_clock now = clock_sample();
	const double elapsed_ns = (double)(now.monotonic_ns - ticker->began.monotonic_ns),
		     ticks = (double)(now.raw - ticker->began.raw);

	return elapsed_ns > 0 ? (uint64_t)((double)ns * ticks / elapsed_ns) : 0;
}

static void state_own_cost(void)
{
	uint64_t now_ns;

	if (!cpu_clock_ns(CLOCK_THREAD_CPUTIME_ID, &now_ns) || !stream_enter())
		return;
	sample_write_self(ticks_of(now_ns - ticker->own_cpu_ns));
	ticker->own_cpu_ns = now_ns;
	stream_leave();
}

/* Opens the rings of the threads that have none. */
static void open_rings(void)
{
	uint32_t count;
	struct sampled_thread *threads = sampled_threads(&count);

	for (uint32_t i = 0; i < count && !ticker->paused; i++)
		perf_source_open(&threads[i]);
}

/* Opens the rings again, with the period that holds now. */
static void change_rings(void)
{
	uint32_t count;
	struct sampled_thread *threads = sampled_threads(&count);

	if (!perf_source_is_on())
		return;
	for (uint32_t i = 0; i < count; i++) {
		perf_source_read(&threads[i]);
		perf_source_close(&threads[i]);
	}
	perf_source_set_period(ticker->period_ns);
	open_rings();
}

static void state_slower(void)
{
	char text[200];

	snprintf(text, sizeof text,
		"The sampler took more than 2 %% of the process's CPU time, and so it took only "
		"%.3g samples a second of each thread for some time, instead of %u.",
		1e9 / (double)ticker->period_ns, sampler_settings.hz);
	meta_set("warning.sampler", text);
}

/* Halves or doubles the rate by what the sampler costs. */
static void brake(void)
{
	struct sampler_cost now = { clock_monotonic_ns(), 0, process_cpu_ns() };
	enum brake_verdict verdict;

	if (!cpu_clock_ns(CLOCK_THREAD_CPUTIME_ID, &now.own_ns))
		return;
	verdict = brake_judge(&ticker->brake, &now);
	if (verdict == BRAKE_SLOWER && ticker->period_ns < SECOND_NS) {
		ticker->period_ns *= 2;
		change_rings();
		if (ticker->period_ns > ticker->longest_ns) {
			ticker->longest_ns = ticker->period_ns;
			state_slower();
		}
	} else if (verdict == BRAKE_FASTER && ticker->period_ns > SECOND_NS / sampler_settings.hz) {
		ticker->period_ns /= 2;
		change_rings();
	}
}

/* Writes the clocks of all threads, what was lost and what it has cost. */
static void state_all(void)
{
	uint32_t count;
	struct sampled_thread *threads = sampled_threads(&count);

	count_unseen();
	brake();
	if (!trace_header())
		return;
	for (uint32_t i = 0; i < count; i++)
		state_thread(&threads[i]);
	state_own_cost();
}

/* ---- PPERF_SCHEDULE ---- */

/* Whether the samples would be the first records of the process, and are not worth a file. */
static bool is_file_needed_first(void)
{
	if (trace_header())
		return false;
	return process_cpu_ns() < FILE_NS ||
	       (sampler_settings.children_need_file && sampler_is_forked());
}

/* Whether no samples are to be taken now. */
static bool is_paused(void)
{
	return recording_is_paused() || is_file_needed_first();
}

/* Sets that what the threads have used so far needs no samples. */
static void skip_cpu_time(void)
{
	uint32_t count;
	struct sampled_thread *threads = sampled_threads(&count);

	for (uint32_t i = 0; i < count; i++) {
		struct sampled_thread *thread = &threads[i];

		if (!sampled_thread_look(thread))
			continue;
		thread->sampled_ns = thread->cpu_ns;
		perf_source_open(thread);
		if (thread->stated_at && stream_enter()) {
			wall_samples_end(thread, clock_monotonic_ns());
			sample_write_thread(thread, thread->sampled_ns, true);
			stream_leave();
		}
	}
}

static void close_rings(void)
{
	uint32_t count;
	struct sampled_thread *threads = sampled_threads(&count);

	for (uint32_t i = 0; i < count; i++)
		perf_source_close(&threads[i]);
}

/* The descriptors of this thread end with it, but its list of threads may be used again. */
static void close_wait_clocks(void)
{
	uint32_t count;
	struct sampled_thread *threads = sampled_threads(&count);

	for (uint32_t i = 0; i < count; i++) {
		wait_clock_close(threads[i].wall.clock);
		threads[i].wall.clock = 0;
	}
}

/* Follows the recording switch. Returns whether samples are to be taken. */
static bool follow_switch(void)
{
	const bool paused = is_paused();

	if (paused && !ticker->paused) {
		sampled_threads_update(true);
		look_at_all(TRACE_SAMPLE_WEIGHT_NS);
		state_all();
		close_rings();
	} else if (!paused && ticker->paused) {
		sampled_threads_update(true);
		skip_cpu_time();
	}
	ticker->paused = paused;
	return !paused;
}

/* ---- the ticks ---- */

static void state_source(void)
{
	char hz[16];
	const struct meta facts[] = { { "sample.hz", hz },
		{ "sample.clock", sampler_settings.wall ? "wall" : "cpu" } };

	snprintf(hz, sizeof hz, "%u", sampler_settings.hz);
	meta_set_all(facts, sizeof facts / sizeof facts[0]);
}

static void state_no_memory(void)
{
	meta_set("source.cpu_samples", "off: there is no memory for the list of threads (0)");
}

static void set_up(void)
{
	ticker->period_ns = SECOND_NS / sampler_settings.hz;
	ticker->random = clock_now() | 1;
	ticker->next_ns = ticker->state_ns = clock_monotonic_ns();
	ticker->own_cpu_ns = 0;
	ticker->brake = (struct brake){ .window = { 0 } };
	ticker->looks = ticker->paused = false;
}

bool tick_begin(void)
{
	if (!ticker) {
		ticker = fork_wiped_alloc(sizeof *ticker);
		state_source();
	}
	if (ticker)
		set_up();
	else
		state_no_memory();
	return ticker != NULL;
}

/* Begins to look at threads, if it is time for the first samples. All descriptors that are opened
 * from now on are this thread's own. Returns whether threads are looked at. */
static bool begin_to_look(void)
{
	if (ticker->looks)
		return true;
	if (is_paused() || !trace_open_private())
		return false;
	wait_clocks_begin();
	if (!sampled_threads_setup(on_found, on_ended)) {
		state_no_memory();
		return false;
	}
	perf_source_begin(ticker->period_ns, hooks->read_python);
	open_rings();
	ticker->looks = true;
	return true;
}

/* Returns a random number below `limit`. */
static uint64_t random_below(uint64_t limit)
{
	ticker->random ^= ticker->random << 13;
	ticker->random ^= ticker->random >> 7;
	ticker->random ^= ticker->random << 17;
	return ticker->random % limit;
}

/* The ticks are a period apart in the mean. Their distance varies by a quarter, so that they do not
 * follow a loop of the program. Samples in rings need no ticks. */
uint64_t tick_next_ns(void)
{
	const uint64_t now_ns = clock_monotonic_ns();
	uint64_t period_ns = ticker->period_ns;

	if (ticker->all_have_rings && period_ns < UPDATE_NS)
		period_ns = UPDATE_NS;
	ticker->next_ns += period_ns - period_ns / 8 + random_below(period_ns / 4 + 1);
	if (ticker->next_ns < now_ns)
		ticker->next_ns = now_ns + period_ns / 2;
	return ticker->next_ns;
}

/* Whether the time has come. Sets the next one. */
static bool is_due(uint64_t *due_ns, uint64_t now_ns, uint64_t interval_ns)
{
	if (now_ns < *due_ns)
		return false;
	*due_ns = now_ns + interval_ns;
	return true;
}

bool tick(void)
{
	const uint64_t now_ns = clock_monotonic_ns();
	bool state_due;

	if (is_due(&ticker->control_ns, now_ns, CONTROL_NS))
		control_poll();
	if (!ticker->python_is_prepared)
		ticker->python_is_prepared = !hooks->prepare_python || hooks->prepare_python();
	if (!begin_to_look() || !follow_switch())
		return true;
	if (is_due(&ticker->update_ns, now_ns, UPDATE_NS))
		sampled_threads_update(false);
	/* The clocks that state_all() compares with that of the process must be those of now. */
	state_due = is_due(&ticker->state_ns, now_ns, STATE_NS);
	ticker->look_at_rings = is_due(&ticker->rings_ns, now_ns, RINGS_NS) || state_due;
	look_at_all(ticker->period_ns / SMALL_PART);
	if (state_due)
		state_all();
	return true;
}

bool tick_read_rings(void)
{
	uint32_t count;
	struct sampled_thread *threads = sampled_threads(&count);

	for (uint32_t i = 0; i < count; i++)
		perf_source_read(&threads[i]);
	return true;
}

bool tick_finish(void)
{
	if (!ticker || !ticker->looks)
		return true;
	sampled_threads_update(false);
	if (!is_paused())
		look_at_all(TRACE_SAMPLE_WEIGHT_NS);
	state_all();
	close_rings();
	close_wait_clocks();
	return true;
}
