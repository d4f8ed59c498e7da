/* SPDX-License-Identifier: MIT
 * Finds the function, file and line of a place in Python code, given by a code object and an
 * instruction in it.
 *
 * The texts are read when a location is first seen. Later the location is found in a table of fixed
 * size. The memory of a code object may later belong to another one, so each entry that is found is
 * verified. From 3.12 on this compares the code object's version, which is unique. Before, it
 * compares the addresses and lengths of the parts and a sample of their content.
 *
 * Threads: any, between stream_enter or stream_enter_dictionary_only and stream_leave. No lock, no
 * malloc.
 */
#ifndef PPERF_PRELOAD_PYTHON_CODE_LOCATION_H
#define PPERF_PRELOAD_PYTHON_CODE_LOCATION_H

#include "collector/trace_format.h"
#include "preload/python/layout.h"

struct python_location {
	struct trace_python_frame frame;
	bool user_code; /* in a file of the program's own (user_code.h) */
	bool was_read;  /* its texts were read: it was not in the table */
	/* Of the program's own code: the id of a Python stack of this frame. */
	uint32_t stack;
};

/* Allocates the table; called once, before the first location. Without it every location is read
 * each time. */
void python_location_prepare(void);

/* Finds the location of an instruction. `offset`: of the instruction in the code, in bytes. Returns
 * false if `code` is no code object. The code object must be running, so that it stays valid. */
bool python_locate(const struct python_layout *layout, uintptr_t code, int64_t offset,
	struct python_location *location);

/* Returns whether the code object is in a file of the program's own (user_code.h). Quicker than
 * python_locate, because only the file's name is needed. As there, `code` must be running. */
bool python_code_is_user(const struct python_layout *layout, uintptr_t code);

/* The parts of a code object: the addresses of its file, name and line table, its first line and
 * its version. 0: it has no version. */
struct python_code {
	uintptr_t file, name, lines;
	uint32_t line, version;
};

/* Reads the parts of a code object. Returns false if `code` is none. */
bool python_code_read(
	const struct python_layout *layout, uintptr_t code, struct python_code *parts);

/* Returns the line of the instruction at `offset`; 0 if it has none. */
uint32_t python_code_line(
	const struct python_layout *layout, const struct python_code *parts, int64_t offset);

#endif
