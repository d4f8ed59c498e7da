/* SPDX-License-Identifier: MIT
 * python_text.h: the characters of a Python str, read where they lie (python_peek.h). No Python function is called
 * and no GIL needed: a str does not change.
 */
#ifndef PPERF_PRELOAD_PYTHON_STR_H
#define PPERF_PRELOAD_PYTHON_STR_H

#include "preload/python/layout.h"

#define PYTHON_STR_ROOM 1024u

/* Its UTF-8, not terminated: where it lies, or in `room`, and then cut to that many bytes. What Python has for
 * undecodable bytes of a file's name are these bytes again. NULL: `text` is no str. */
const char *python_str(const struct python_layout *layout, uintptr_t text,
	char room[PYTHON_STR_ROOM], size_t *bytes);

/* Where its characters lie, 1, 2 or 4 bytes each. 0: it is no str. */
uintptr_t python_str_data(const struct python_layout *layout, uintptr_t text, uint64_t *length,
	unsigned *width, bool *ascii);

#endif
