/* SPDX-License-Identifier: MIT
 * python_layout.h: where the fields of a thread, a frame and a code object lie in the memory of a CPython
 * interpreter, from 3.9 to 3.14.
 *
 * A table for each minor version, of 64-bit builds without Py_TRACE_REFS. From 3.13 on the interpreter tells where
 * its fields are (the beginning of _PyRuntime): what it says is taken, the table only fills in what it does not
 * say. Nothing of this is trusted before python_check.h has tried it.
 */
#ifndef PPERF_PRELOAD_PYTHON_LAYOUT_H
#define PPERF_PRELOAD_PYTHON_LAYOUT_H

#include "preload/python/line_table.h"
#include <stdint.h>

/* Why there are no frames; the texts are in the trace, behind `off: `. */
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
	uint16_t
		thread_frame; /* in the thread's state: its innermost frame, or with a cframe that */
	uint16_t cframe_frame;   /* and in the cframe: the frame */
	uint16_t frame_previous; /* the frame that called */
	uint16_t frame_code;
	uint16_t frame_at; /* a pointer to the instruction, or with at_is_index an int */
	uint16_t
		frame_owner; /* a byte; from owner_end on the frame is none of Python code. 0: there is none */
	uint16_t code_file, code_name, code_line, code_lines;
	uint16_t
		code_version; /* 4 bytes that no other code object has, if not 0. 0: there are none */
	uint16_t code_bytes; /* the first instruction; 0 with at_is_index */
	uint16_t text_ascii; /* of a str: the characters, if all are ASCII */
	uint16_t text_other; /* else */
	uint8_t owner_end;
	uint8_t at_scale; /* the index, times this, is the offset in bytes */
	bool has_cframe, at_is_index, has_offsets, name_is_qualified;
	enum python_line_format lines;
};

/* The same in every version: of any object, of a str, of bytes. */
#define PYTHON_TYPE 8
#define PYTHON_STR_LENGTH 16
#define PYTHON_STR_STATE 32
#define PYTHON_BYTES_SIZE 16
#define PYTHON_BYTES_DATA 32

/* version: as Py_GetVersion gives it. runtime: _PyRuntime, NULL if it is not exported; read by peek
 * (python_peek.h). */
enum python_trouble python_layout_of(
	struct python_layout *layout, const char *version, const void *runtime);

#endif
