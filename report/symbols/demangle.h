/* SPDX-License-Identifier: MIT
 * Demangles C++ and Rust names into readable forms. It works on text only, and knows nothing of
 * traces.
 *
 * GNU libiberty decodes the names (Debian: libiberty-dev, linked statically, terms in
 * LICENSE-third-party). It passes its text to a callback and allocates nothing for C++ names.
 * The alternatives cannot be bounded:
 *
 *  libstdc++'s __cxa_demangle    the same decoder, but it allocates as much as a name requires
 *  LLVM's demangler              only in the 110 MB libLLVM on Debian; its output has no limit
 *
 * A name is hostile input. At the first of these limits, the name is shown as it is, and
 * counted:
 *
 *  DEMANGLE_INPUT          bytes of input
 *  DEMANGLE_OUTPUT         bytes of output
 *  DEMANGLE_TIME_NS        processor time for one name: 200 bytes can require 2^60 steps that print
 *                          nothing
 *  DEMANGLE_TOTAL_TIME_NS  for all names that reached that limit; then no name is decoded any more
 *
 * Real names need less than a millisecond, so the output does not depend on the machine.
 *
 * Nothing is cached; callers store the result by name id. Threads: one at a time. The handler of
 * SIGVTALRM is replaced.
 */
#ifndef PPERF_REPORT_SYMBOLS_DEMANGLE_H
#define PPERF_REPORT_SYMBOLS_DEMANGLE_H

#include <stddef.h>
#include <stdint.h>

#define DEMANGLE_INPUT 16384u
#define DEMANGLE_OUTPUT 65536u
#define DEMANGLE_TIME_NS 250000000u
#define DEMANGLE_TOTAL_TIME_NS 2000000000u

/* The forms of a name, here of `_ZN2at6native10add_kernelILi4EEEvPf`. The strings are the values
 * of --demangle.
 *
 *  no     the name as it is
 *  short  add_kernel: the last component of base; for CUTLASS and PyTorch what runs: Kernel<Gemm>
 *  base   at::native::add_kernel: no template arguments, parameters or return type
 *  full   void at::native::add_kernel<4>(float*)
 */
#define DEMANGLE_FORMS(X) \
	X(NO, "no")       \
	X(SHORT, "short") \
	X(BASE, "base")   \
	X(FULL, "full")

enum demangle_form {
#define X(form, text) DEMANGLE_##form,
	DEMANGLE_FORMS(X)
#undef X
		DEMANGLE_FORM_COUNT
};

struct demangle_counts {
	/* Numbers of names. Names that are not mangled are not counted. */
	uint64_t decoded, too_long, too_slow;
};

/* Writes `name` in `form` to `out`, terminated. `name` has `bytes` bytes of any content and is
 * not terminated. Returns the bytes written, at most room - 1. Returns 0 if the caller has
 * to show the name as it is: not mangled, `form` is NO, or a limit (also `room`) was reached.
 *
 * SHORT and BASE also accept decoded names, with or without return type and parameters. Other
 * texts (a Triton kernel, a label) do not change. Per-build hashes of anonymous namespaces
 * become `(anonymous namespace)`, and a host stub (`__device_stub__...`) becomes its kernel. */
size_t demangle(enum demangle_form form, const char *name, size_t bytes, char *out, size_t room);

struct demangle_counts demangle_counts(void);

#endif
