/* SPDX-License-Identifier: MIT */
#include "preload/user/interface.h"

#include "collector/file/dictionary.h"
#include "collector/stream/ranges.h"
#include "collector/stream/recording_switch.h"
#include "collector/stream/schedule.h"
#include "collector/stream/held_records.h"
#include "collector/stream/stream.h"
#include "preload/user/callbacks.h"
#include "preload/user/python_module.h"

#include <errno.h>
#include <string.h>

#define PPERF_ONLY_TYPES
#include "preload/user/pperf.h"

#define METRICS_MAX 4096u
#define TOO_MANY_METRICS \
	"more than 4096 metrics were registered with pperf; the later ones are not recorded"
#define NO_VALUE 2u /* TRACE_METRIC_NONE: NVTX's reason for a value that is not available */

/* The metric with the id i + 1. `name` and `unit` are name ids. `counter`, the trace's id, is
 * stored last. */
static struct {
	uint32_t name, unit, counter;
} metrics[METRICS_MAX];
static uint32_t metric_count;
static bool configured;

/* ---- ranges and marks ---- */

void user_range_open(const void *object, const char *text)
{
	bool step;

	user_callbacks_call();
	step = schedule_wanted && schedule_has_marker && schedule_range_begins(text);
	range_open(object, text, TRACE_NODE_RANGE, 0, 0);
	if (__builtin_expect(step, 0))
		schedule_range_opened((uintptr_t)object);
}

void user_range_close(const void *object)
{
	user_callbacks_call();
	range_close(object);
	if (__builtin_expect(schedule_has_marker, 0))
		schedule_range_ended((uintptr_t)object);
}

static void interface_range_push(const char *text)
{
	const int saved = errno;
	bool step;
	int level;

	user_callbacks_call();
	if (!text)
		text = "";
	step = schedule_has_marker && schedule_range_begins(text);
	level = range_push_plain(text);
	if (__builtin_expect(step, 0))
		schedule_range_opened(schedule_key(0, level));
	errno = saved;
}

static void interface_range_pop(void)
{
	const int saved = errno;
	int level;

	user_callbacks_call();
	level = range_pop_plain();
	if (__builtin_expect(schedule_has_marker, 0))
		schedule_range_ended(schedule_key(0, level));
	errno = saved;
}

uint64_t user_range_begin(const char *text)
{
	const int saved = errno;
	uint64_t range;

	user_callbacks_call();
	range = range_start(0, text, NULL);
	errno = saved;
	return range;
}

void user_range_end(uint64_t range)
{
	const int saved = errno;

	if (!range)
		return;
	user_callbacks_call();
	range_end(range);
	errno = saved;
}

void user_mark(const char *text)
{
	const int saved = errno;

	range_mark(0, text, NULL);
	errno = saved;
}

/* ---- metrics ---- */

/* Returns the id of a metric that is registered, 0 if it is not. */
static unsigned find_metric(uint32_t name, uint32_t unit)
{
	const uint32_t count = __atomic_load_n(&metric_count, __ATOMIC_ACQUIRE);

	for (uint32_t i = 0; i < count && i < METRICS_MAX; i++)
		if (__atomic_load_n(&metrics[i].counter, __ATOMIC_ACQUIRE) &&
			metrics[i].name == name && metrics[i].unit == unit)
			return i + 1;
	return 0;
}

/* Two threads that register the same metric at once make two counters of one name, which are one
 * metric in the report. */
static unsigned add_metric(uint32_t name, uint32_t unit)
{
	const uint32_t slot = __atomic_fetch_add(&metric_count, 1, __ATOMIC_ACQ_REL);

	if (slot >= METRICS_MAX) {
		__atomic_store_n(&metric_count, METRICS_MAX, __ATOMIC_RELEASE);
		meta_set("warning.metrics", TOO_MANY_METRICS);
		return 0;
	}
	metrics[slot].name = name;
	metrics[slot].unit = unit;
	__atomic_store_n(&metrics[slot].counter, counter_id(name, 0, unit), __ATOMIC_RELEASE);
	return slot + 1;
}

unsigned user_metric(const char *name, const char *unit)
{
	const int saved = errno;
	uint32_t name_number, unit_number;
	unsigned metric;

	name = name ? name : "";
	unit = unit ? unit : "";
	if (!stream_enter_dictionary_only())
		return 0;
	name_number = name_id_always(name, strlen(name));
	unit_number = *unit ? name_id_always(unit, strlen(unit)) : 0;
	metric = find_metric(name_number, unit_number);
	if (!metric)
		metric = add_metric(name_number, unit_number);
	stream_leave();
	errno = saved;
	return metric;
}

void user_metric_push(unsigned metric, double value)
{
	const int saved = errno;
	const bool has_value = value - value == 0; /* neither infinite nor NaN */
	struct trace_metric *record;
	struct signal_guard guard;
	uint32_t counter;

	if (!metric || metric > METRICS_MAX || !stream_enter())
		return;
	counter = __atomic_load_n(&metrics[metric - 1].counter, __ATOMIC_ACQUIRE);
	held_records_lock(&guard);
	record = counter ? stream_record(TRACE_METRIC, sizeof *record) : NULL;
	if (record) {
		record->counter = counter;
		record->type = has_value ? TRACE_METRIC_F64 : TRACE_METRIC_NONE;
		record->value = NO_VALUE;
		if (has_value)
			memcpy(&record->value, &value, sizeof value);
		held_records_set(counter, record);
		stream_commit();
	}
	held_records_unlock(&guard);
	stream_leave();
	errno = saved;
}

const char *user_metric_name(unsigned metric)
{
	const uint32_t name = metric && metric <= METRICS_MAX ? metrics[metric - 1].name : 0;
	size_t bytes;

	return name ? name_text(name, &bytes) : "";
}

/* ---- the interface ---- */

bool user_is_configured(void)
{
	return configured;
}

bool user_is_recorded(void)
{
	return configured && !recording_is_paused();
}

static int interface_enabled(void)
{
	return user_is_recorded();
}

static void interface_metric_callback(unsigned metric, pperf_callback *callback, void *context)
{
	if (metric && metric <= METRICS_MAX)
		user_callback_set(metric, callback, context);
}

__attribute__((visibility("default"))) pperf_interface_function pperf_interface;
const struct pperf_interface *pperf_interface(unsigned version)
{
	static const struct pperf_interface functions = {
		.size = sizeof functions,
		.enabled = interface_enabled,
		.range_push = interface_range_push,
		.range_pop = interface_range_pop,
		.range_begin = user_range_begin,
		.range_end = user_range_end,
		.mark = user_mark,
		.metric = user_metric,
		.metric_push = user_metric_push,
		.metric_callback = interface_metric_callback,
	};

	return version == PPERF_INTERFACE_VERSION && configured ? &functions : NULL;
}

void user_configure(bool python)
{
	configured = true;
	if (python)
		python_module_configure();
}
