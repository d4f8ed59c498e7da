/* SPDX-License-Identifier: MIT
 * Builds Python call stacks from either form in a file. The forms are calls of functions on a
 * thread (`python_function`), and a text per operator (`Call stack`, until 2022). A stack is
 * written to the trace when the first event uses it. Equal stacks are written once.
 */
#ifndef PPERF_REPORT_IMPORT_CONVERT_PYTHON_STACKS_H
#define PPERF_REPORT_IMPORT_CONVERT_PYTHON_STACKS_H

#include "report/base/hash_index.h"
#include "report/import/convert/event_rows.h"
#include "report/trace/trace_writer.h"

#define PYTHON_FRAMES_MAX 128u /* the innermost frames of a stack that are kept */

struct conversion;

/* A tree of calls, each below its caller, so that stacks share their outer frames. Initialise it
 * with zeros. */
struct imported_stacks {
	struct python_call {
		uint32_t caller; /* its row; 0: none */
		uint32_t name;   /* a text: `FILE(LINE): FUNCTION` */
		uint32_t id;     /* id of the stack whose innermost call this is; 0: not written */
	} * calls;               /* row 0 is unused */
	size_t count, room;
	struct hash_index index; /* of rows, by caller and name */
	uint32_t written;        /* stacks so far */
	uint32_t *by_text;       /* by text of a `Call stack`: the row of its innermost call */
	size_t by_text_room;
};

/* The Python functions open on a thread, at increasing times. Set `next` and `end`, and the rest
 * to zero. */
struct python_cursor {
	size_t next, end; /* index in conversion.python_calls, and its end */
	struct python_open_call {
		int64_t end;
		uint32_t name, call; /* call: its row; 0: not determined yet */
	} * open;
	size_t depth, room;
};

/* Returns the id of the stack at `time`, or 0 if no function is open. `time` must not decrease
 * from call to call. */
uint32_t python_cursor_stack(
	struct conversion *conversion, struct python_cursor *cursor, int64_t time);
/* Returns the id of the stack in a text `FILE(LINE): FUNCTION;...`, innermost first, or 0 if it
 * is empty. */
uint32_t python_stack_of_text(struct conversion *conversion, uint32_t text);
void imported_stacks_free(struct imported_stacks *stacks);

/* Splits `torch/nn/functional.py(12): linear` into its parts. A text of another form is all
 * function. Addresses in the names of built-in methods are removed. */
struct python_function_name {
	struct string_view function, file;
	uint32_t line;
	bool address_removed; /* an address and the `>` after it are not in `function` */
};
struct python_function_name python_function_name_parse(struct string_view text);

#endif
