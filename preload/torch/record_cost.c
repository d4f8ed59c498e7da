/* SPDX-License-Identifier: MIT */
#include "preload/torch/record_cost.h"

#include "collector/file/dictionary.h"
#include "collector/file/trace_file.h"
#include "collector/stream/stream.h"
#include "preload/python/python.h"
#include "preload/torch/libraries.h"
#include "preload/torch/operators.h"

#include <stdio.h>

#define ROOM_BYTES 6144u /* 256 operators, each with an operator in it */
#define ENABLE "_ZN2at20enableRecordFunctionEb"
#define IS_ENABLED "_ZN2at23isRecordFunctionEnabledEv"

static void (*enable_callbacks)(bool on); /* for this thread only */
static bool (*callbacks_are_enabled)(void);

/* Implements `switch(on)`. */
static struct python_object *switch_callbacks(struct python_object *self, struct python_object *on)
{
	(void)self;
	enable_callbacks(python.PyObject_IsTrue(on) == 1);
	return python_none();
}

static struct python_object *call_measure(struct python_object *measure)
{
	static const struct python_function function = { "switch", switch_callbacks,
		PYTHON_ONE_ARGUMENT, NULL };
	struct python_object *arguments = python.PyTuple_New(1), *answer = NULL,
			     *callable = python.PyCFunction_NewEx(&function, NULL, NULL);

	if (arguments && callable && !python.PyTuple_SetItem(arguments, 0, callable))
		answer = python_call_hidden(measure, arguments);
	python_release(arguments);
	python_clear_own_error();
	return answer;
}

static bool can_measure(void)
{
	*(void **)&enable_callbacks = torch_symbol(TORCH_CPU, ENABLE);
	*(void **)&callbacks_are_enabled = torch_symbol(TORCH_CPU, IS_ENABLED);
	return trace_header() && torch_ops_are_events() && enable_callbacks &&
	       callbacks_are_enabled && callbacks_are_enabled();
}

void record_cost_measure(struct python_object *measure)
{
	struct stream_position position;
	struct python_object *answer;
	long long added = 0;
	uint64_t events;
	char text[24];

	if (!can_measure() || !stream_position_save(&position, ROOM_BYTES))
		return;
	answer = call_measure(measure);
	enable_callbacks(true);
	events = stream_position_restore(&position);
	if (answer && answer != python.none)
		added = python.PyLong_AsLongLong(answer);
	python_release(answer);
	python_clear_own_error();
	if (!events || added <= 0)
		return;
	snprintf(text, sizeof text, "%llu", ((unsigned long long)added + events / 2) / events);
	meta_set("cost.event_ns", text);
}
