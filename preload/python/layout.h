/* SPDX-License-Identifier: MIT
 * Says where the fields of a thread state, a frame and a code object are in the memory of a CPython
 * interpreter, 3.9 to 3.15.
 *
 * There is a table for each minor version, of 64-bit builds without Py_TRACE_REFS. From 3.13 on the
 * interpreter publishes offsets of its fields, at the beginning of _PyRuntime. They replace those
 * of the table, which then only supplies the rest. None of this is trusted before the test of
 * frame_selftest.h.
 */
#ifndef PPERF_PRELOAD_PYTHON_LAYOUT_H
#define PPERF_PRELOAD_PYTHON_LAYOUT_H

#include "preload/python/line_table.h"
#include <stdint.h>

/* Why there are no frames; the texts are in the trace, after `off: `. */
#define PYTHON_TROUBLES(X)                                                                    \
	X(NONE, "")                                                                           \
	X(NO_PYTHON, "the interpreter does not export the symbols needed to read its frames") \
	X(UNKNOWN_VERSION, "the frame layout of this Python version is not known")            \
	X(FREE_THREADED, "frames of free-threaded Python are not supported")                  \
	X(OTHER_OFFSETS, "the interpreter's own table of offsets is not as expected")         \
	X(NO_MEMORY_FILE, "/proc/self/mem cannot be read, so frames cannot be tested safely") \
	X(NOT_RUN, "the self-test in Python did not run")                                     \
	X(OTHER_FRAMES, "the self-test read other frames than Python reports")

enum python_trouble {
#define X(name, text) PYTHON_TROUBLE_##name,
	PYTHON_TROUBLES(X)
#undef X
};
const char *python_trouble_text(enum python_trouble trouble);

/* Offsets in bytes. */
struct python_layout {
	/* In the thread state: the address of its innermost frame; with has_cframe, of its
	 * cframe. */
	uint16_t thread_frame;
	uint16_t cframe_frame;   /* in the cframe: the frame */
	uint16_t frame_previous; /* the calling frame */
	uint16_t frame_code;
	/* A pointer to the instruction; with instruction_is_index an int. */
	uint16_t frame_instruction;
	/* A byte; from owner_end on the frame is not of Python code. 0: no such field. */
	uint16_t frame_owner;
	uint16_t code_file, code_name, code_line, code_lines;
	/* 4 bytes that are unique to a code object, unless 0. Offset 0: no such field. */
	uint16_t code_version;
	uint16_t code_bytes; /* the first instruction; 0 with instruction_is_index */
	uint16_t str_ascii;  /* of a str: its characters, if all are ASCII */
	uint16_t str_other;  /* of a str: its characters otherwise */
	uint8_t owner_end;
	uint8_t index_scale; /* the index times this is the offset in bytes */
	bool has_cframe, instruction_is_index, has_offsets, name_is_qualified;
	enum python_line_format lines;
};

/* Offsets that are the same in every version: of any object, of a str, of a bytes object. */
#define PYTHON_TYPE 8
#define PYTHON_STR_LENGTH 16
#define PYTHON_STR_STATE 32
#define PYTHON_BYTES_SIZE 16
#define PYTHON_BYTES_DATA 32

/* Fills `layout`. `version`: what Py_GetVersion returns. `runtime`: the address of _PyRuntime, NULL
 * if it is not exported; read by safe_read. Returns why frames cannot be read, or
 * PYTHON_TROUBLE_NONE. */
enum python_trouble python_layout_of(
	struct python_layout *layout, const char *version, const void *runtime);

#endif
