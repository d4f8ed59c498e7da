/* SPDX-License-Identifier: MIT */
#include "preload/user/callbacks.h"

#include "collector/file/dictionary.h"
#include "collector/process/clock.h"
#include "collector/process/fork_wiped_memory.h"
#include "collector/stream/recording_switch.h"
#include "preload/user/interface.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define CALLBACKS_MAX 64u
#define COSTS_MAX 256u /* metrics whose callbacks are timed */
#define SLOW_CALLBACK_NS 1000000u
#define NAME_BYTES 200u /* of a metric's name in a META key */

struct callback {
	unsigned metric;
	double (*call)(void *context);
	void *context;
};

/* A callback is replaced as a whole. The earlier one is not freed, because another thread may be in
 * it. */
static struct callback *callbacks[CALLBACKS_MAX];
uint32_t user_callback_count;

/* Sums by metric. A row is free while `metric` is 0. */
static struct callback_cost {
	unsigned metric;
	uint64_t calls, ns;
	char name[NAME_BYTES];
} costs[COSTS_MAX];

static __thread bool calling __attribute__((tls_model("initial-exec")));

/* ---- the cost ---- */

static struct callback_cost *cost_row(unsigned metric, const char *name)
{
	unsigned free_row;

	for (uint32_t i = 0; i < COSTS_MAX; i++) {
		free_row = 0;
		if (__atomic_load_n(&costs[i].metric, __ATOMIC_ACQUIRE) == metric)
			return &costs[i];
		if (__atomic_compare_exchange_n(&costs[i].metric, &free_row, metric, false,
			    __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)) {
			snprintf(costs[i].name, sizeof costs[i].name, "%s", name);
			return &costs[i];
		}
		if (free_row == metric)
			return &costs[i];
	}
	return NULL;
}

static void write_cost(const struct callback_cost *cost)
{
	const uint64_t calls = __atomic_load_n(&cost->calls, __ATOMIC_RELAXED),
		       ns = __atomic_load_n(&cost->ns, __ATOMIC_RELAXED);
	char key[NAME_BYTES + 16], value[48];

	if (!calls || ns / calls < SLOW_CALLBACK_NS)
		return;
	snprintf(key, sizeof key, "cost.metric.%s", cost->name);
	snprintf(value, sizeof value, "%llu %llu", (unsigned long long)calls,
		(unsigned long long)ns);
	meta_set(key, value);
}

void user_callback_add_cost(unsigned metric, const char *name, uint64_t ns)
{
	struct callback_cost *cost = cost_row(metric, name);
	uint64_t calls;

	if (!cost)
		return;
	__atomic_fetch_add(&cost->ns, ns, __ATOMIC_RELAXED);
	calls = __atomic_add_fetch(&cost->calls, 1, __ATOMIC_RELAXED);
	if (!(calls & (calls - 1)))
		write_cost(cost);
}

void user_callbacks_finish(void)
{
	for (uint32_t i = 0; i < COSTS_MAX && costs[i].metric; i++)
		write_cost(&costs[i]);
}

/* ---- the callbacks ---- */

static void call_and_record(const struct callback *callback)
{
	const uint64_t begin = clock_monotonic_ns();
	const double value = callback->call(callback->context);

	user_callback_add_cost(
		callback->metric, user_metric_name(callback->metric), clock_monotonic_ns() - begin);
	user_metric_push(callback->metric, value);
}

void user_callbacks_call_all(void)
{
	const uint32_t count = __atomic_load_n(&user_callback_count, __ATOMIC_ACQUIRE);
	const int saved = errno;

	if (calling || recording_is_paused())
		return;
	calling = true;
	for (uint32_t i = 0; i < count && i < CALLBACKS_MAX; i++) {
		const struct callback *callback = __atomic_load_n(&callbacks[i], __ATOMIC_ACQUIRE);

		if (callback && callback->call)
			call_and_record(callback);
	}
	calling = false;
	errno = saved;
}

/* Returns the slot of a metric's callback, or a new one; NULL if there is none left. */
static struct callback **callback_slot(unsigned metric)
{
	const uint32_t count = __atomic_load_n(&user_callback_count, __ATOMIC_ACQUIRE);
	uint32_t slot;

	for (uint32_t i = 0; i < count && i < CALLBACKS_MAX; i++) {
		const struct callback *callback = __atomic_load_n(&callbacks[i], __ATOMIC_ACQUIRE);

		if (callback && callback->metric == metric)
			return &callbacks[i];
	}
	slot = __atomic_fetch_add(&user_callback_count, 1, __ATOMIC_ACQ_REL);
	if (slot < CALLBACKS_MAX)
		return &callbacks[slot];
	__atomic_store_n(&user_callback_count, CALLBACKS_MAX, __ATOMIC_RELEASE);
	return NULL;
}

void user_callback_set(unsigned metric, double (*call)(void *context), void *context)
{
	const int saved = errno;
	struct callback *callback = fork_kept_alloc(sizeof *callback), **slot;

	slot = callback ? callback_slot(metric) : NULL;
	if (slot) {
		*callback = (struct callback){ metric, call, context };
		__atomic_store_n(slot, callback, __ATOMIC_RELEASE);
	} else {
		fork_kept_free(callback, sizeof *callback);
		meta_set("warning.metric_callbacks",
			"more than 64 metrics have a callback; the later ones are not recorded");
	}
	errno = saved;
}
