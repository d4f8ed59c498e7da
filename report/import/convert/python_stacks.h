/* SPDX-License-Identifier: MIT
 * kineto_python.h: the call stacks of Python that a file has, in either of its two ways: calls of functions on a thread
 * (`python_function`), or a text with each operator (`Call stack`, until 2022). A stack becomes a record when something
 * of ours has it; equal ones are one.
 */
#ifndef PPERF_REPORT_IMPORT_CONVERT_PYTHON_STACKS_H
#define PPERF_REPORT_IMPORT_CONVERT_PYTHON_STACKS_H

#include "report/base/hash_index.h"
#include "report/import/convert/event_rows.h"
#include "report/trace/trace_writer.h"

#define PYTHON_FRAMES_MAX 128u /* of a stack, the innermost */

struct conversion;

/* Calls, each below its caller: a tree, so that stacks share what is around them. Zeroed: empty. */
struct imported_stacks {
	struct python_call {
		uint32_t caller; /* its row, 0: none */
		uint32_t name;   /* a text: `FILE(LINE): FUNCTION` */
		uint32_t id;     /* of the stack that it is the innermost call of; 0: not written */
	} * calls;               /* row 0 is none */
	size_t count, room;
	struct hash_index index; /* of rows, by caller and name */
	uint32_t written;        /* stacks so far */
	uint32_t *by_text;       /* by text of a `Call stack`: the row of its innermost call */
	size_t by_text_room;
};

/* The functions that are open on a thread, at ever later moments. Zeroed but for begin and end: at its beginning. */
struct python_cursor {
	size_t next, end; /* of build->frames */
	struct python_open_call {
		int64_t end;
		uint32_t name, call; /* call: its row, 0: not looked up yet */
	} * open;
	size_t depth, room;
};

/* The id of the stack of that thread at that moment; 0: no function is open. */
uint32_t python_cursor_stack(
	struct conversion *conversion, struct python_cursor *cursor, int64_t time);
/* Of a text `FILE(LINE): FUNCTION;...`, innermost first; 0: it has none. */
uint32_t python_stack_of_text(struct conversion *conversion, uint32_t text);
void imported_stacks_free(struct imported_stacks *stacks);

/* `torch/nn/functional.py(12): linear` in parts; of what has no such form all is the function. Addresses in the names of
 * built-in methods are left out. */
struct python_function_name {
	struct string_view function, file;
	uint32_t line;
	bool address_removed; /* an address and the `>` behind it are not in `function` */
};
struct python_function_name python_function_name_parse(struct string_view text);

#endif
