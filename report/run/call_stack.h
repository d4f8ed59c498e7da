/* SPDX-License-Identifier: MIT
 * call_stack.h: who called, as text: the frames of a native stack (functions, from the program's files) or of one
 * of Python (file, line, function), and where in the program's own files a place was first entered.
 */
#ifndef PPERF_REPORT_RUN_CALL_STACK_H
#define PPERF_REPORT_RUN_CALL_STACK_H

#include "report/run/process.h"

#define CALL_STACK_TEXT \
	DEMANGLE_OUTPUT /* bytes in which any frame's text fits, or what it is cut to */

/* How many frames it has, 0: there is no such stack. */
uint32_t call_stack_frames(const struct process *process, uint32_t stack);

/* A frame below that number, innermost 0: a function as --demangle wants it, or `file:line function`. is_short: in
 * their shortest form, and of the file only the last part of its path. Any bytes, terminated; returns how many. */
size_t call_stack_frame(struct process *process, uint32_t stack, uint32_t index, bool is_short,
	char *out, size_t room);

/* `file:line function` of a place of the trace. 0: not known. */
size_t call_stack_source(
	const struct process *process, uint32_t trace_node, bool is_short, char *out, size_t room);

#endif
