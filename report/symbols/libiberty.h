/* SPDX-License-Identifier: MIT
 * decode.h: one mangled name, decoded by libiberty within bounds. The only user of libiberty; demangle.h says why
 * it is that one. One thread at a time. The handler of SIGVTALRM becomes ours.
 */
#ifndef PPERF_REPORT_SYMBOLS_LIBIBERTY_H
#define PPERF_REPORT_SYMBOLS_LIBIBERTY_H

#include <stddef.h>

/* PLAIN: a function without its return type, parameters and what follows them; template arguments stay. */
enum decode_style { DECODE_FULL, DECODE_PLAIN };

enum decode_result {
	DECODE_DONE,
	DECODE_NOT_MANGLED, /* or damaged */
	DECODE_TOO_LONG,    /* longer than `room`, or it needs more stack than there is for it */
	DECODE_TOO_SLOW,    /* DEMANGLE_TIME_NS passed */
};

/* Decodes the terminated C++ name (Itanium ABI) or Rust name (legacy and v0) `mangled`. The terminated text goes to
 * `out`, its length to `*bytes`; both hold nothing of use unless DECODE_DONE. */
enum decode_result libiberty_decode(
	const char *mangled, enum decode_style style, char *out, size_t room, size_t *bytes);

#endif
