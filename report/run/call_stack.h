/* SPDX-License-Identifier: MIT
 * Gives the text of call stacks, native (functions, from the program's files) and of Python
 * (file, line, function).
 *
 * Also gives the source line where a trace node was first entered.
 */
#ifndef PPERF_REPORT_RUN_CALL_STACK_H
#define PPERF_REPORT_RUN_CALL_STACK_H

#include "report/run/process.h"

/* Bytes that hold any frame's text; longer texts are cut. */
#define CALL_STACK_TEXT DEMANGLE_OUTPUT

/* Returns the number of frames of `stack`, the id of a native, a Python or a mixed stack. A mixed
 * one has those of Python, then the native ones. 0: there is no such stack. */
uint32_t call_stack_frames(const struct process *process, uint32_t stack);

/* Writes frame `index` (0: the innermost) to `out`: a function, demangled by --demangle, or
 * `file:line function`. `index` must be less than call_stack_frames. `is_short`: the shortest
 * form, and only the last part of the file's path. The text may hold any bytes and is
 * terminated. Returns its length. */
size_t call_stack_frame(struct process *process, uint32_t stack, uint32_t index, bool is_short,
	char *out, size_t room);

/* Returns the index of the innermost frame from `from` on that is the user's own code, and not that
 * of Python, PyTorch or another library. Returns the number of frames if there is none. */
uint32_t call_stack_own_frame(const struct process *process, uint32_t stack, uint32_t from);

/* Returns whether a file of Python code is not the program's own: that of an installed package, of
 * Python itself, or generated code. */
bool call_stack_is_library_file(struct trace_text file);

#define CALL_STACK_SHOWN 4u

/* Chooses the frames that tell one allocation site of `node` from another. If no module is in the
 * node's path, these are the two innermost ones of a Python package that is neither PyTorch nor
 * Python's own (the model's code). Then come the two innermost ones of the user's own code. Without
 * any, the innermost frame. Writes their indexes to `shown`, and returns their number. */
uint32_t call_stack_shown_frames(const struct process *process, uint32_t node, uint32_t stack,
	uint32_t shown[CALL_STACK_SHOWN]);

/* Writes the `file:line function` from which a trace node was first entered: the column and the
 * JSON key `source`. Returns the length, 0: not known. */
size_t call_stack_source(
	const struct process *process, uint32_t trace_node, bool is_short, char *out, size_t room);

#endif
