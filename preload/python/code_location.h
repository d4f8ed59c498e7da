/* SPDX-License-Identifier: MIT
 * python_place.h: a place in Python code, by the code object and the instruction in it: which function, file and
 * line.
 *
 * Texts are looked at where a place is seen for the first time; later it is found in a table of fixed size. A code
 * object's memory may be another's later, so what is found is checked each time: against its version, which no two
 * of them share (3.12 on), or against where its parts lie, how long they are and a part of what they say. Threads:
 * any, between stream_hold or stream_enter and stream_leave. No lock, no malloc.
 */
#ifndef PPERF_PRELOAD_PYTHON_CODE_LOCATION_H
#define PPERF_PRELOAD_PYTHON_CODE_LOCATION_H

#include "collector/trace_format.h"
#include "preload/python/layout.h"

struct python_location {
	struct trace_python_frame frame;
	bool user_code; /* of the program's own files: python_own.h */
};

/* Memory for the table: once, before the first place. Without it each is looked at each time. */
void python_location_prepare(void);

/* offset: of the instruction, in bytes of code. false: `code` is no code object. The code object must be running,
 * so that it stays. */
bool python_locate(const struct python_layout *layout, uintptr_t code, int64_t offset,
	struct python_location *location);

/* A code object's parts, and a line of it. */
struct python_code {
	uintptr_t file, name, lines;
	uint32_t line, version;
};
bool python_code_read(
	const struct python_layout *layout, uintptr_t code, struct python_code *parts);
uint32_t python_code_line(
	const struct python_layout *layout, const struct python_code *parts, int64_t offset);

#endif
