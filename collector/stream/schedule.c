/* SPDX-License-Identifier: MIT
 * schedule.c: see schedule.h. What is known of the steps is kept under a flag that nobody waits for.
 */
#include "collector/stream/schedule.h"

#include "collector/stream/stream_state.h"
#include "collector/stream/recording_switch.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#define MARKER_MOST 256u

bool schedule_wanted, schedule_marks;

/* What steps are told by; a greater one is believed. */
enum sign { SIGN_NONE, SIGN_MODEL, SIGN_OPTIMIZER, SIGN_PROFILER, SIGN_MARKER, SIGNS };

static struct schedule plan;
static char marker[MARKER_MOST];
static void (*told)(bool recorded);

static atomic_flag at_work = ATOMIC_FLAG_INIT;
static enum sign believed;         /* from here on under at_work */
static uint64_t ended[SIGNS];      /* steps, by each sign */
static enum sign waits_for_key;    /* a range of that sign is about to open */
static enum sign open_sign;        /* and one is open */
static _Atomic uint64_t open_key;  /* 0: none is; read without the flag */
static bool stepped, batches, models; /* an optimizer has stepped since the last batch; there are batches; a model was called */
static uint64_t model_nodes;
static bool recording;
static uint32_t cycle;
static uint64_t present; /* the step that has begun */

/* ---- what is to be recorded ---- */

static bool take_field(const char **text, struct schedule *schedule)
{
	const struct {
		const char *name;
		uint32_t *value;
	} fields[] = {{"skip_first:", &schedule->skip_first}, {"wait:", &schedule->wait}, {"warmup:", &schedule->warmup},
		      {"active:", &schedule->active}, {"repeat:", &schedule->repeat}};
	uint64_t number = 0;

	for (size_t i = 0; i < sizeof fields / sizeof fields[0]; i++) {
		const char *at = *text + strlen(fields[i].name);

		if (strncmp(*text, fields[i].name, strlen(fields[i].name)) || *at < '0' || *at > '9')
			continue;
		for (; *at >= '0' && *at <= '9' && number <= 1000000000; at++)
			number = number * 10 + (uint64_t)(*at - '0');
		*fields[i].value = (uint32_t)number;
		*text = at;
		return number <= 1000000000;
	}
	return false;
}

bool schedule_parse(const char *text, struct schedule *schedule)
{
	*schedule = (struct schedule){.active = 0};
	while (take_field(&text, schedule)) {
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
	struct schedule_phase phase = {.recorded = false};
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

/* ---- the recording windows ---- */

static void turn(bool shut)
{
	window_set(shut);
	stream_window_turned(shut);
}

static void put_window(enum trace_window_edge edge, uint64_t step, uint32_t cycle_number, uint32_t warmup)
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

void window_begin(uint64_t step, uint32_t cycle_number, uint32_t warmup)
{
	window_new_span();
	put_window(TRACE_WINDOW_BEGINS, step, cycle_number, warmup);
	turn(false);
}

void window_end(uint64_t step, uint32_t cycle_number)
{
	turn(true);
	put_window(TRACE_WINDOW_ENDS, step, cycle_number, 0);
}

void window_step(uint64_t step, uint32_t cycle_number)
{
	put_window(TRACE_WINDOW_STEP, step, cycle_number, 0);
}

void schedule_configure(const struct schedule *schedule, const char *step_marker, void (*turned)(bool))
{
	schedule_wanted = schedule != NULL;
	if (!schedule)
		return;
	plan = *schedule;
	told = turned;
	snprintf(marker, sizeof marker, "%s", step_marker ? step_marker : "");
	schedule_marks = *marker;
	recording = schedule_phase(&plan, 0).recorded;
	window_use(recording);
}

/* ---- turning ---- */

/* Step number `step` begins, or may begin. A cycle that follows another without a pause has a window of its own. */
static void go_to(uint64_t step)
{
	const struct schedule_phase phase = schedule_phase(&plan, step);

	window_steps(step);
	if (recording && phase.recorded && phase.cycle == cycle && step != present)
		window_step(step, cycle);
	present = step;
	if (recording && (!phase.recorded || phase.cycle != cycle)) {
		window_end(step, cycle);
		recording = false;
		if (told && !phase.recorded)
			told(false);
	}
	if (!recording && phase.recorded) {
		cycle = phase.cycle;
		recording = true;
		window_begin(step, cycle, phase.warmup);
		if (told)
			told(true);
	}
}

/* A step has ended, and the next one may be far. */
static void rest(uint64_t step)
{
	window_steps(step);
	if (recording && !schedule_phase(&plan, step).recorded)
		go_to(step);
}

/* false: somebody else is at it. */
static bool take(void)
{
	return !atomic_flag_test_and_set_explicit(&at_work, memory_order_acquire);
}

static void leave(void)
{
	atomic_flag_clear_explicit(&at_work, memory_order_release);
}

/* false: the same, or steps are told by something better. */
static bool enter(enum sign sign)
{
	if (!take())
		return false;
	if (sign >= believed)
		return true;
	leave();
	return false;
}

void schedule_forked(void)
{
	leave();
}

/* ---- signs ---- */

static bool is_number(const char *text)
{
	return strspn(text, "0123456789 #:=/-_.,()[]") == strlen(text);
}

static bool begins_with(const char *text, const char *word)
{
	return !strncmp(text, word, strlen(word));
}

static enum sign sign_of(const char *text)
{
	if (schedule_marks)
		return begins_with(text, marker) && is_number(text + strlen(marker)) ? SIGN_MARKER : SIGN_NONE;
	if (begins_with(text, "ProfilerStep#"))
		return SIGN_PROFILER;
	return begins_with(text, "Optimizer.step#") ? SIGN_OPTIMIZER : SIGN_NONE;
}

static void batch_begins(void)
{
	if (schedule_marks || !enter(SIGN_OPTIMIZER))
		return;
	batches = true;
	if (stepped)
		go_to(++ended[SIGN_OPTIMIZER]);
	stepped = false;
	leave();
}

bool schedule_begins(const char *text)
{
	enum sign sign = text ? sign_of(text) : SIGN_NONE;
	int saved = errno;

	if (sign == SIGN_NONE) {
		if (text && begins_with(text, "enumerate(DataLoader)#"))
			batch_begins();
		errno = saved;
		return false;
	}
	if (!enter(sign))
		return false;
	if (open_sign) { /* one lies in another */
		leave();
		return false;
	}
	waits_for_key = sign;
	if (sign != SIGN_OPTIMIZER) {
		believed = sign;
		go_to(ended[sign]);
	}
	leave();
	errno = saved;
	return true;
}

void schedule_is_open(uint64_t key)
{
	if (!take())
		return;
	if (waits_for_key && !open_sign) {
		open_sign = waits_for_key;
		atomic_store_explicit(&open_key, key, memory_order_relaxed);
	}
	waits_for_key = SIGN_NONE;
	leave();
}

static void step_ended(enum sign sign)
{
	if (sign == SIGN_OPTIMIZER) {
		believed = believed > sign ? believed : sign;
		stepped = true;
		if (batches || believed > sign)
			return;
		go_to(++ended[sign]);
	} else {
		rest(++ended[sign]);
	}
}

void schedule_ended(uint64_t key)
{
	enum sign sign;
	int saved = errno;

	if (key != atomic_load_explicit(&open_key, memory_order_relaxed) || !take())
		return;
	sign = open_sign;
	open_sign = SIGN_NONE;
	atomic_store_explicit(&open_key, 0, memory_order_relaxed);
	if (sign)
		step_ended(sign);
	leave();
	errno = saved;
}

void schedule_model_begins(uint64_t nodes)
{
	int saved = errno;

	if (schedule_marks || !enter(SIGN_MODEL))
		return;
	if (models && nodes == model_nodes) {
		believed = SIGN_MODEL;
		go_to(++ended[SIGN_MODEL]);
	}
	models = true;
	model_nodes = nodes;
	leave();
	errno = saved;
}

uint64_t schedule_key(uint32_t domain, int level)
{
	return (uint64_t)stream_tid() << 32 | (((uint64_t)domain << 12 ^ (uint32_t)level) & 0xFFFFFFFF) | UINT64_C(1) << 63;
}
