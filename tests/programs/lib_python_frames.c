/* SPDX-License-Identifier: MIT
 * lib_python_frames.c: the reading of Python's frames for test_python_frames.py, without the rest
 * of the library. What would go into a trace's dictionary is taken by the linker's --wrap and
 * handed out as text.
 */
#include "collector/file/dictionary.h"
#include "collector/stream/stream.h"
#include "collector/file/trace_file.h"
#include "preload/python/python.h"
#include "preload/python/frame_selftest.h"
#include "preload/python/frames.h"
#include "preload/python/safe_read.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

static char state[256];
static _Thread_local char *text; /* where this thread's stack goes */
static _Thread_local size_t room, used;
static _Thread_local struct trace_python_frame source;
static _Thread_local uint32_t source_node;

uint32_t __wrap_python_stack_id(const struct trace_python_frame *frames, uint32_t count);
void __wrap_dictionary_put(const struct trace_head *record, int inherit);
void __wrap_meta_set(const char *key, const char *value);
const char *frames_start(const char *stacks);
int frames_here(char *into, size_t bytes);
int frames_source(uint32_t node, char *into, size_t bytes);
int frames_trial(int field, int by);
int frames_call(int (*callback)(void));
double frames_cost(int times);
int frames_of_a_thread_of_c(void);

static void put(const struct trace_python_frame *frame)
{
	size_t file_bytes = 0, function_bytes = 0;
	const char *file = frame->file ? name_text(frame->file, &file_bytes) : "";
	const char *function = frame->function ? name_text(frame->function, &function_bytes) : "";

	if (used < room)
		used += (size_t)snprintf(
			text + used, room - used, "%u\t%s\t%s\n", frame->line, file, function);
}

/* The whole stack comes last; before it come single frames of the program's own code. */
uint32_t __wrap_python_stack_id(const struct trace_python_frame *frames, uint32_t count)
{
	used = 0;
	for (uint32_t i = 0; i < count && text; i++)
		put(&frames[i]);
	return count;
}

void __wrap_dictionary_put(const struct trace_head *record, int inherit)
{
	(void)inherit;
	source = ((const struct trace_source *)(const void *)record)->at;
	source_node = record->node;
}

void __wrap_meta_set(const char *key, const char *value)
{
	if (!strcmp(key, "source.python_stacks"))
		snprintf(state, sizeof state, "%s", value);
}

/* What the trace would say. */
const char *frames_start(const char *stacks)
{
	static struct trace_settings settings = { .output = "/nowhere/trace.bin" };

	stream_configure(&settings);
	python_frames_configure(stacks);
	python_frames_start();
	return state;
}

/* The trial with a field of the layout that is wrong by so many bytes. What it says (enum
 * python_trouble); -1: no such field. Before frames_start. */
int frames_trial(int field, int by)
{
	static const size_t fields[] = {
#define FIELD(name) offsetof(struct python_layout, name)
		FIELD(thread_frame),
		FIELD(cframe_frame),
		FIELD(frame_previous),
		FIELD(frame_code),
		FIELD(frame_instruction),
		FIELD(frame_owner),
		FIELD(code_file),
		FIELD(code_name),
		FIELD(code_line),
		FIELD(code_lines),
		FIELD(code_bytes),
		FIELD(str_ascii),
		FIELD(str_other),
#undef FIELD
	};
	struct python_layout layout;
	uint16_t offset;
	int trouble;

	if (field < 0 || (size_t)field >= sizeof fields / sizeof fields[0] || !python_find() ||
		!safe_read_open())
		return -1;
	trouble = (int)python_layout_of(&layout, python.Py_GetVersion(), python.runtime);
	memcpy(&offset, (char *)&layout + fields[field], sizeof offset);
	if (by && !offset && fields[field] != offsetof(struct python_layout, frame_code))
		trouble = -2; /* this version has no such field */
	offset = (uint16_t)(offset + by);
	memcpy((char *)&layout + fields[field], &offset, sizeof offset);
	if (!trouble)
		trouble = (int)python_frame_selftest(&layout);
	safe_read_close();
	return trouble;
}

/* The calling thread's stack as text: how many frames. */
int frames_here(char *into, size_t bytes)
{
	uint32_t count;

	if (!stream_enter_dictionary_only())
		return -1;
	text = into;
	room = bytes;
	used = 0;
	*into = '\0';
	count = python_stack_capture();
	text = NULL;
	stream_leave();
	return (int)count;
}

/* Whether a source was noted for the node, which nobody has entered before. */
int frames_source(uint32_t node, char *into, size_t bytes)
{
	source_node = 0;
	python_source_record(node);
	if (!source_node)
		return 0;
	text = into;
	room = bytes;
	used = 0;
	put(&source);
	text = NULL;
	return source_node == node;
}

/* A function of C between two of Python. */
int frames_call(int (*callback)(void))
{
	return callback();
}

/* Nanoseconds a stack. */
double frames_cost(int times)
{
	struct timespec begin, end;

	if (!stream_enter_dictionary_only())
		return -1;
	clock_gettime(CLOCK_MONOTONIC, &begin);
	for (int i = 0; i < times; i++)
		python_stack_capture();
	clock_gettime(CLOCK_MONOTONIC, &end);
	stream_leave();
	return ((double)(end.tv_sec - begin.tv_sec) * 1e9 + (double)(end.tv_nsec - begin.tv_nsec)) /
	       times;
}

static void *look_around(void *frames)
{
	char into[64];

	*(int *)frames = frames_here(into, sizeof into);
	return NULL;
}

int frames_of_a_thread_of_c(void)
{
	pthread_t thread;
	int frames = -1;

	if (!pthread_create(&thread, NULL, look_around, &frames))
		pthread_join(thread, NULL);
	return frames;
}
