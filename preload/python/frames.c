/* SPDX-License-Identifier: MIT */
#include "preload/python/frames.h"

#include "collector/file/dictionary.h"
#include "collector/process/fork_wiped_memory.h"
#include "collector/sample/frame_tree.h"
#include "collector/stream/stream.h"
#include "preload/python/python.h"
#include "preload/python/frame_selftest.h"
#include "preload/python/frame_walk.h"
#include "preload/python/safe_read.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

/* Frames that are read for a stack, those of the interpreter included. */
#define STACK_SEARCH_MAX 512u
/* Frames of a sample, which has all of them or none. */
#define SAMPLE_FRAMES_MAX 256u
/* Frames that are searched for one of the program's own. */
#define USER_SEARCH_MAX 512u

enum python_stack_setting python_stack_mode;
int64_t python_stack_min_bytes = INT64_MAX;
static struct python_layout layout; /* valid once `available` is true */
static _Atomic bool available, tried;
/* One bit per node: its source is recorded, or was found missing. */
static _Atomic uint8_t *recorded_nodes;

bool python_frames_configure(const char *stacks)
{
	static const struct {
		char name[8];
		enum python_stack_setting mode;
		int64_t min_bytes;
	} settings[] = { { "own", PYTHON_STACKS_OWN, OWN_LINE_BYTES },
		{ "alloc", PYTHON_STACKS_ALLOC, 1 }, { "launch", PYTHON_STACKS_LAUNCH, 1 },
		{ "off", PYTHON_STACKS_OFF, INT64_MAX } };
	const size_t count = sizeof settings / sizeof settings[0];
	size_t i = 0;

	while (stacks && i < count && strcmp(stacks, settings[i].name))
		i++;
	python_stack_mode = settings[i % count].mode;
	python_stack_min_bytes = settings[i % count].min_bytes;
	return i < count;
}

const struct python_layout *python_frames_layout(void)
{
	return atomic_load_explicit(&available, memory_order_acquire) ? &layout : NULL;
}

static uintptr_t first_frame(void)
{
	if (!atomic_load_explicit(&available, memory_order_acquire))
		return 0;
	return python_frame_first(&layout, (uintptr_t)python.PyGILState_GetThisThreadState());
}

uint32_t python_stack_capture(void)
{
	struct trace_python_frame frames[STACK_FRAMES_MAX];
	struct python_location location;
	struct python_frame frame;
	uint32_t count = 0;
	int saved = errno;
	uintptr_t at = first_frame();

	for (unsigned i = 0; at && i < STACK_SEARCH_MAX && count < STACK_FRAMES_MAX;
		i++, at = frame.previous) {
		if (!python_frame_read(&layout, at, &frame))
			break;
		if (frame.code && python_locate(&layout, frame.code, frame.offset, &location))
			frames[count++] = location.frame;
	}
	errno = saved;
	return python_stack_id(frames, count);
}

/* Reads all frames. Returns their number; 0: there are none, or too many, or one cannot be read. */
static uint32_t read_all_frames(struct trace_python_frame frames[SAMPLE_FRAMES_MAX])
{
	struct python_location location;
	struct python_frame frame;
	uint32_t count = 0;

	for (uintptr_t at = first_frame(); at; at = frame.previous) {
		if (!python_frame_read(&layout, at, &frame))
			return 0;
		if (!frame.code) {
			if (count)
				frames[count - 1].reserved |= frame.is_entry;
			continue;
		}
		if (count == SAMPLE_FRAMES_MAX ||
			!python_locate(&layout, frame.code, frame.offset, &location))
			return 0;
		frames[count] = location.frame;
		frames[count++].reserved = frame.is_entry;
	}
	return count;
}

uint32_t python_sample_frames(void)
{
	struct trace_python_frame frames[SAMPLE_FRAMES_MAX];
	const int saved = errno;
	const uint32_t count = read_all_frames(frames),
		       id = count ? frame_python_id_at_once(frames, count) : 0;

	errno = saved;
	return id;
}

static bool find_user_frame(struct python_location *location)
{
	struct python_frame frame;
	uintptr_t at = first_frame();

	for (unsigned i = 0; at && i < USER_SEARCH_MAX; i++, at = frame.previous) {
		if (!python_frame_read(&layout, at, &frame))
			return false;
		if (frame.code && python_code_is_user(&layout, frame.code))
			return python_locate(&layout, frame.code, frame.offset, location);
	}
	return false;
}

uint32_t python_own_line_capture(bool *first)
{
	struct python_location location = { .was_read = false };
	int saved = errno;
	const bool found = find_user_frame(&location);

	errno = saved;
	*first = location.was_read;
	return found ? location.stack : 0;
}

static __attribute__((noinline)) void write_source(uint32_t node)
{
	struct trace_source record = { { sizeof record, TRACE_SOURCE, 0, node }, { 0, 0, 0, 0 } };
	struct python_location location;

	if (!stream_enter_dictionary_only())
		return;
	if (find_user_frame(&location)) {
		record.at = location.frame;
		dictionary_put(&record.head, 1);
	}
	stream_leave();
}

void python_source_record(uint32_t node)
{
	const uint8_t bit = (uint8_t)(1u << node % 8);
	int saved;

	if (!node || node > NODE_BUDGET ||
		!atomic_load_explicit(&available, memory_order_acquire) || !recorded_nodes)
		return;
	if (__builtin_expect(
		    atomic_load_explicit(&recorded_nodes[node / 8], memory_order_relaxed) & bit, 1))
		return;
	if (atomic_fetch_or_explicit(&recorded_nodes[node / 8], bit, memory_order_relaxed) & bit)
		return;
	saved = errno;
	write_source(node);
	errno = saved;
}

static enum python_trouble selftest_layout(struct python_layout *l)
{
	enum python_trouble trouble;

	if (!python_find() || !python.code_type)
		return PYTHON_TROUBLE_NO_PYTHON;
	if (python.free_threaded)
		return PYTHON_TROUBLE_FREE_THREADED;
	if (!safe_read_open())
		return PYTHON_TROUBLE_NO_MEMORY_FILE;
	trouble = python_layout_of(l, python.Py_GetVersion(), python.runtime);
	if (!trouble)
		trouble = python_frame_selftest(l);
	if (!trouble)
		safe_read_trust();
	safe_read_close();
	return trouble;
}

void python_frames_start(void)
{
	enum python_trouble trouble;
	char state[256];
	int saved = errno;

	if (atomic_exchange(&tried, true))
		return;
	trouble = selftest_layout(&layout);
	if (!trouble) {
		python_location_prepare();
		recorded_nodes = fork_kept_alloc(NODE_BUDGET / 8 + 1);
		atomic_store_explicit(&available, true, memory_order_release);
	}
	snprintf(state, sizeof state, trouble ? "off: %s (%d)" : "on", python_trouble_text(trouble),
		(int)trouble);
	meta_set("source.python_stacks", state);
	errno = saved;
}
