/* SPDX-License-Identifier: MIT
 * The state of the steps is protected by a flag that no thread waits for: a thread that finds it
 * locked ignores the event.
 */
#include "collector/stream/schedule.h"

#include "collector/stream/stream_state.h"
#include "collector/stream/recording_switch.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#define MARKER_MAX 256u

bool schedule_wanted, schedule_has_marker;

/* What steps are found by. Greater values override smaller ones. */
enum step_evidence {
	EVIDENCE_NONE,
	EVIDENCE_MODEL,
	EVIDENCE_OPTIMIZER,
	EVIDENCE_PROFILER,
	EVIDENCE_MARKER,
	EVIDENCES
};

static struct schedule plan;
static char marker[MARKER_MAX];
static void (*on_recording_changed)(bool recorded);
static void (*on_step_begins)(uint64_t step);

static atomic_flag schedule_lock = ATOMIC_FLAG_INIT;
static enum step_evidence trusted_evidence; /* state from here on is protected by schedule_lock */
static uint64_t steps_ended[EVIDENCES];     /* steps that ended, by each evidence */
static enum step_evidence pending_evidence; /* a range of this evidence is about to open */
static enum step_evidence open_evidence;    /* and one of this evidence is open */
static _Atomic uint64_t open_key;           /* 0: none is open; read without the lock */
static bool has_stepped;                    /* an optimizer has stepped since the last batch */
static bool has_batches;                    /* the program has batches */
static bool model_called;                   /* an outermost module was called */
static uint64_t model_nodes;
static bool recording;
static uint32_t cycle;
static uint64_t current_step; /* the step that has begun */

/* Skips the digits at `*text`. Returns false if their number is too large. */
static bool parse_count(const char **text, uint32_t *value)
{
	uint64_t number = 0;

	for (; **text >= '0' && **text <= '9' && number <= 1000000000; ++*text)
		number = number * 10 + (uint64_t)(**text - '0');
	*value = (uint32_t)number;
	return number <= 1000000000;
}

static bool parse_field(const char **text, struct schedule *schedule)
{
	const struct {
		const char *name;
		uint32_t *value;
	} fields[] = { { "skip_first:", &schedule->skip_first }, { "wait:", &schedule->wait },
		{ "warmup:", &schedule->warmup }, { "active:", &schedule->active },
		{ "repeat:", &schedule->repeat } };

	for (size_t i = 0; i < sizeof fields / sizeof fields[0]; i++) {
		const char *at = *text + strlen(fields[i].name);

		if (strncmp(*text, fields[i].name, strlen(fields[i].name)) || *at < '0' ||
			*at > '9')
			continue;
		*text = at;
		return parse_count(text, fields[i].value);
	}
	return false;
}

bool schedule_parse(const char *text, struct schedule *schedule)
{
	*schedule = (struct schedule){ .active = 0 };
	while (parse_field(&text, schedule)) {
		if (!*text)
			return schedule->active > 0;
		if (*text++ != ',')
			return false;
	}
	return false;
}

struct schedule_phase schedule_phase(const struct schedule *schedule, uint64_t step)
{
	const uint64_t steps = (uint64_t)schedule->wait + schedule->warmup + schedule->active;
	struct schedule_phase phase = { .recorded = false };
	uint64_t at;

	if (step < schedule->skip_first)
		return phase;
	step -= schedule->skip_first;
	phase.cycle = (uint32_t)(step / steps);
	at = step % steps;
	if ((schedule->repeat && step / steps >= schedule->repeat) || at < schedule->wait)
		return phase;
	phase.recorded = true;
	at -= schedule->wait;
	phase.warmup = at < schedule->warmup ? schedule->warmup - (uint32_t)at : 0;
	return phase;
}

static void set_paused(bool paused)
{
	recording_set_paused(paused);
	stream_recording_changed(paused);
}

static void write_window_record(
	enum trace_window_edge edge, uint64_t step, uint32_t cycle_number, uint32_t warmup)
{
	struct trace_window *record;

	if (!stream_enter())
		return;
	record = stream_record(TRACE_WINDOW, sizeof *record);
	if (record) {
		record->step = step;
		record->edge = edge;
		record->cycle = cycle_number;
		record->warmup = warmup;
		stream_commit();
	}
	stream_leave();
}

void schedule_resume(uint64_t step, uint32_t cycle_number, uint32_t warmup)
{
	recording_new_window();
	write_window_record(TRACE_WINDOW_BEGINS, step, cycle_number, warmup);
	set_paused(false);
}

void schedule_pause(uint64_t step, uint32_t cycle_number)
{
	set_paused(true);
	write_window_record(TRACE_WINDOW_ENDS, step, cycle_number, 0);
}

void schedule_next_step(uint64_t step, uint32_t cycle_number)
{
	write_window_record(TRACE_WINDOW_STEP, step, cycle_number, 0);
}

void schedule_configure(
	const struct schedule *schedule, const char *step_marker, void (*recording_changed)(bool))
{
	schedule_wanted = schedule != NULL;
	if (!schedule)
		return;
	plan = *schedule;
	on_recording_changed = recording_changed;
	snprintf(marker, sizeof marker, "%s", step_marker ? step_marker : "");
	schedule_has_marker = *marker;
	recording = schedule_phase(&plan, 0).recorded;
	recording_use_schedule(recording);
}

void schedule_observe_steps(void (*on_step)(uint64_t step))
{
	on_step_begins = on_step;
}

/* Called when step `step` begins, or may begin. A cycle that follows another without a pause has a
 * recording window of its own. */
static void advance_to_step(uint64_t step)
{
	const struct schedule_phase phase = schedule_phase(&plan, step);

	recording_set_steps_ended(step);
	if (on_step_begins && step != current_step)
		on_step_begins(step);
	if (recording && phase.recorded && phase.cycle == cycle && step != current_step)
		schedule_next_step(step, cycle);
	current_step = step;
	if (recording && (!phase.recorded || phase.cycle != cycle)) {
		schedule_pause(step, cycle);
		recording = false;
		if (on_recording_changed && !phase.recorded)
			on_recording_changed(false);
	}
	if (!recording && phase.recorded) {
		cycle = phase.cycle;
		recording = true;
		schedule_resume(step, cycle, phase.warmup);
		if (on_recording_changed)
			on_recording_changed(true);
	}
}

/* Called when a step has ended. The next one may begin much later, so recording is paused now if
 * the next step is not recorded. */
static void finish_step(uint64_t step)
{
	recording_set_steps_ended(step);
	if (recording && !schedule_phase(&plan, step).recorded)
		advance_to_step(step);
}

/* Returns false if another thread has the lock. */
static bool try_lock_schedule(void)
{
	return !atomic_flag_test_and_set_explicit(&schedule_lock, memory_order_acquire);
}

static void unlock_schedule(void)
{
	atomic_flag_clear_explicit(&schedule_lock, memory_order_release);
}

/* Locks the schedule. Returns false if another thread has the lock, or if steps are found by better
 * evidence. */
static bool lock_for_evidence(enum step_evidence evidence)
{
	if (!try_lock_schedule())
		return false;
	if (evidence >= trusted_evidence)
		return true;
	unlock_schedule();
	return false;
}

void schedule_forked(void)
{
	unlock_schedule();
}

static bool is_step_number(const char *text)
{
	return strspn(text, "0123456789 #:=/-_.,()[]") == strlen(text);
}

static bool name_begins_with(const char *text, const char *word)
{
	return !strncmp(text, word, strlen(word));
}

static enum step_evidence evidence_of(const char *text)
{
	if (schedule_has_marker)
		return name_begins_with(text, marker) && is_step_number(text + strlen(marker))
			       ? EVIDENCE_MARKER
			       : EVIDENCE_NONE;
	if (name_begins_with(text, "ProfilerStep#"))
		return EVIDENCE_PROFILER;
	return name_begins_with(text, "Optimizer.step#") ? EVIDENCE_OPTIMIZER : EVIDENCE_NONE;
}

static void on_batch_begin(void)
{
	if (schedule_has_marker || !lock_for_evidence(EVIDENCE_OPTIMIZER))
		return;
	has_batches = true;
	if (has_stepped)
		advance_to_step(++steps_ended[EVIDENCE_OPTIMIZER]);
	has_stepped = false;
	unlock_schedule();
}

static void note_step_begin(enum step_evidence evidence)
{
	pending_evidence = evidence;
	if (evidence == EVIDENCE_OPTIMIZER)
		return;
	trusted_evidence = evidence;
	advance_to_step(steps_ended[evidence]);
}

bool schedule_range_begins(const char *text)
{
	enum step_evidence evidence = text ? evidence_of(text) : EVIDENCE_NONE;
	int saved = errno;

	if (evidence == EVIDENCE_NONE) {
		if (text && name_begins_with(text, "enumerate(DataLoader)#"))
			on_batch_begin();
		errno = saved;
		return false;
	}
	if (!lock_for_evidence(evidence))
		return false;
	if (open_evidence) { /* a step within a step */
		unlock_schedule();
		return false;
	}
	note_step_begin(evidence);
	unlock_schedule();
	errno = saved;
	return true;
}

void schedule_range_opened(uint64_t key)
{
	if (!try_lock_schedule())
		return;
	if (pending_evidence && !open_evidence) {
		open_evidence = pending_evidence;
		atomic_store_explicit(&open_key, key, memory_order_relaxed);
	}
	pending_evidence = EVIDENCE_NONE;
	unlock_schedule();
}

static void on_step_end(enum step_evidence evidence)
{
	if (evidence == EVIDENCE_OPTIMIZER) {
		trusted_evidence = trusted_evidence > evidence ? trusted_evidence : evidence;
		has_stepped = true;
		if (has_batches || trusted_evidence > evidence)
			return;
		advance_to_step(++steps_ended[evidence]);
	} else {
		finish_step(++steps_ended[evidence]);
	}
}

void schedule_range_ended(uint64_t key)
{
	enum step_evidence evidence;
	int saved = errno;

	if (key != atomic_load_explicit(&open_key, memory_order_relaxed) || !try_lock_schedule())
		return;
	evidence = open_evidence;
	open_evidence = EVIDENCE_NONE;
	atomic_store_explicit(&open_key, 0, memory_order_relaxed);
	if (evidence)
		on_step_end(evidence);
	unlock_schedule();
	errno = saved;
}

void schedule_model_begins(uint64_t nodes)
{
	int saved = errno;

	if (schedule_has_marker || !lock_for_evidence(EVIDENCE_MODEL))
		return;
	if (model_called && nodes == model_nodes) {
		trusted_evidence = EVIDENCE_MODEL;
		advance_to_step(++steps_ended[EVIDENCE_MODEL]);
	}
	model_called = true;
	model_nodes = nodes;
	unlock_schedule();
	errno = saved;
}

uint64_t schedule_key(uint32_t domain, int level)
{
	return (uint64_t)stream_tid() << 32 |
	       (((uint64_t)domain << 12 ^ (uint32_t)level) & 0xFFFFFFFF) | UINT64_C(1) << 63;
}
