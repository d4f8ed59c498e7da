/* SPDX-License-Identifier: MIT */
#include "preload/python/peer_start.h"

#include "collector/file/dictionary.h"
#include "collector/process/clock.h"
#include "collector/process/dynamic_linker.h"
#include "preload/python/frames.h"
#include "preload/python/peer_frames.h"
#include "preload/python/python.h"

#include <stdatomic.h>
#include <stdio.h>

/* Between two looks for a Python: at the start of the process, and later. */
#define EARLY_NS UINT64_C(20000000)
#define EARLY_LOOKS 250u
#define LATE_NS UINT64_C(1000000000)

/* NOT_FOUND: there is no Python, or the test has to be requested again. */
static enum start_state { NOT_FOUND, QUEUED, DONE } _Atomic state;
static atomic_bool found;

/* Returns whether the main thread has a trace or profile function. Before 3.11 they cannot be
 * hidden from the test. */
static bool is_traced(void)
{
	static const char *const names[] = { "gettrace", "getprofile" };
	bool traced = false;

	for (unsigned i = 0; i < 2 && !traced; i++) {
		struct python_object *get = python.PySys_GetObject(names[i]),
				     *function = get ? python.PyObject_CallObject(get, NULL) : NULL;

		traced = function != python.none;
		python_release(function);
	}
	python.PyErr_Clear();
	return traced;
}

/* Runs the test hidden from trace and profile functions. Returns false if that is not possible
 * now. */
static bool start_frames(void)
{
	void *thread;

	if (!python.PyThreadState_Get || !python.PyThreadState_EnterTracing ||
		!python.PyThreadState_LeaveTracing) {
		if (is_traced())
			return false;
		python_frames_start();
		return true;
	}
	thread = python.PyThreadState_Get();
	python.PyThreadState_EnterTracing(thread);
	python_frames_start();
	python.PyThreadState_LeaveTracing(thread);
	return true;
}

static void state_trouble(const char *trouble)
{
	char text[200];

	snprintf(text, sizeof text,
		"CPU samples have no Python frames: %s. Samples are attributed to ranges.",
		trouble);
	meta_set("warning.sample_python", text);
}

static void prepare(const struct python_layout *layout)
{
	const char *trouble = peer_frames_prepare(layout);

	if (trouble)
		state_trouble(trouble);
}

/* Called by Python with the GIL held. It may have finished by now. */
static int on_main_thread(void *unused)
{
	(void)unused;
	if (!python.Py_IsInitialized() || !start_frames()) {
		atomic_store(&state, NOT_FOUND);
		return 0;
	}
	if (!python_frames_layout()) {
		peer_frames_stop();
		state_trouble("the test of its frames has failed (see source.python_stacks)");
	} else if (!peer_frames_are_read()) {
		prepare(python_frames_layout());
	}
	atomic_store(&state, DONE);
	return 0;
}

/* Before 3.13 a pending call waits for the next garbage collection or change of threads: the
 * interpreter does not notice calls that other threads add. Until then frames are read by the table
 * of the version, without the test. */
static void start_untested(void)
{
	static struct python_layout layout;

	if (python.minor < 13 && !peer_frames_are_read() &&
		!python_layout_of(&layout, python.Py_GetVersion(), NULL))
		prepare(&layout);
}

static bool look_is_due(void)
{
	static uint64_t due_ns;
	static unsigned looks;
	const uint64_t now_ns = clock_monotonic_ns();

	if (now_ns < due_ns)
		return false;
	due_ns = now_ns + (looks++ < EARLY_LOOKS ? EARLY_NS : LATE_NS);
	return true;
}

/* Looks for one function first, because most processes have no Python. */
static bool find_python(void)
{
	if (atomic_load(&found))
		return true;
	if (!quiet_dlsym(RTLD_DEFAULT, "Py_IsInitialized") || !python_find())
		return false;
	atomic_store(&found, true);
	return true;
}

bool peer_start_poll(void)
{
	const enum start_state now = atomic_load(&state);

	if (now == DONE || now == QUEUED || !look_is_due())
		return now == DONE;
	if (!find_python() || !python.Py_IsInitialized())
		return false;
	if (python.free_threaded) {
		state_trouble("frames of free-threaded Python are not supported");
		atomic_store(&state, DONE);
		return true;
	}
	start_untested();
	atomic_store(&state, QUEUED);
	if (python.Py_AddPendingCall(on_main_thread, NULL))
		atomic_store(&state, NOT_FOUND);
	return false;
}

static int run_later(void *function)
{
	void (*call)(void);

	*(void **)&call = function;
	call();
	return 0;
}

bool python_call_later(void (*function)(void))
{
	void *address;

	*(void (**)(void)) & address = function;
	return atomic_load(&found) && python.Py_IsInitialized() &&
	       !python.Py_AddPendingCall(run_later, address);
}

bool peer_start_is_waiting(void)
{
	return atomic_load(&found) && atomic_load(&state) != DONE && !peer_frames_are_read();
}

bool python_warns_of_threads(void)
{
	return atomic_load(&found) && python.minor >= 12;
}
