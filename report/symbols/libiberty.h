/* SPDX-License-Identifier: MIT
 * Decodes one mangled name by libiberty within bounds. This is the only module that uses
 * libiberty; the reasons for that library are in demangle.h. Threads: one at a time. The handler
 * of SIGVTALRM is replaced.
 */
#ifndef PPERF_REPORT_SYMBOLS_LIBIBERTY_H
#define PPERF_REPORT_SYMBOLS_LIBIBERTY_H

#include <stddef.h>

/* PLAIN: no return type, parameters and what follows them. Template arguments stay. */
enum decode_style { DECODE_FULL, DECODE_PLAIN };

enum decode_result {
	DECODE_DONE,
	DECODE_NOT_MANGLED, /* or damaged */
	DECODE_TOO_LONG,    /* longer than `room`, or needs too much stack */
	DECODE_TOO_SLOW,    /* DEMANGLE_TIME_NS passed */
};

/* Decodes the terminated C++ name (Itanium ABI) or Rust name (legacy and v0) `mangled`. Writes
 * the terminated text to `out` and its length to `*bytes`. Both are valid only after
 * DECODE_DONE. */
enum decode_result libiberty_decode(
	const char *mangled, enum decode_style style, char *out, size_t room, size_t *bytes);

#endif
