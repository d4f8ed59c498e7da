/* SPDX-License-Identifier: MIT
 * Calls the functions of a C or C++ program that return the current values of its metrics
 * (pperf_metric_callback), at the begin and the end of each range that the program reports to
 * pperf. Adds up what callbacks cost, also those of Python.
 */
#ifndef PPERF_PRELOAD_USER_CALLBACKS_H
#define PPERF_PRELOAD_USER_CALLBACKS_H

#include <stdbool.h>
#include <stdint.h>

/* Sets the callback of a metric in place of an earlier one, or removes it if `call` is NULL. If the
 * table of callbacks is full it is not set, and META warning.metric_callbacks says so. */
void user_callback_set(unsigned metric, double (*call)(void *context), void *context);

extern uint32_t user_callback_count; /* slots in use */
void user_callbacks_call_all(void);

/* Calls every callback and records the values, unless one is running on this thread. Called before
 * a range opens and before it closes. */
static inline void user_callbacks_call(void)
{
	if (__builtin_expect(__atomic_load_n(&user_callback_count, __ATOMIC_RELAXED) != 0, 0))
		user_callbacks_call_all();
}

/* Adds a call of the callback of `metric` that took `ns`. If calls take more than 1 ms in the mean,
 * META cost.metric.NAME has their number and their sum. It is written at each power of two of
 * calls, and at the end, so a killed process has at least half of the calls in it. `name`: of the
 * metric; must stay valid. */
void user_callback_add_cost(unsigned metric, const char *name, uint64_t ns);

/* Writes the META of user_callback_add_cost. Called at the end of the process. */
void user_callbacks_finish(void);

#endif
