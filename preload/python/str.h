/* SPDX-License-Identifier: MIT
 * Reads the characters of a Python str from memory (safe_read.h). Calls no Python function and
 * needs no GIL, because a str does not change.
 */
#ifndef PPERF_PRELOAD_PYTHON_STR_H
#define PPERF_PRELOAD_PYTHON_STR_H

#include "preload/python/layout.h"

#define PYTHON_STR_ROOM 1024u

/* Returns the text as UTF-8, not terminated: its own characters, or a copy in `room`, which may be
 * cut. Surrogates that Python uses for undecodable bytes of file names become these bytes again.
 * NULL: `text` is no str. */
const char *python_str(const struct python_layout *layout, uintptr_t text,
	char room[PYTHON_STR_ROOM], size_t *bytes);

/* Returns the address of the characters, each `width` (1, 2 or 4) bytes wide. 0: `text` is no
 * str. */
uintptr_t python_str_data(const struct python_layout *layout, uintptr_t text, uint64_t *length,
	unsigned *width, bool *ascii);

/* Decodes the state of a str, the 4 bytes at PYTHON_STR_STATE: how wide its characters are (1, 2 or
 * 4 bytes) and whether all are ASCII. Returns false if it is no str that this module reads. */
bool python_str_state(uint32_t state, unsigned *width, bool *ascii);

/* Writes characters as UTF-8, cut if they are too many. Returns the bytes written. */
size_t python_str_encode(
	char room[PYTHON_STR_ROOM], const void *data, unsigned width, uint64_t length);

#endif
