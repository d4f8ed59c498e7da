/* SPDX-License-Identifier: MIT
 * demangle.h: C++ and Rust names as people write them. Pure text in, pure text out; nothing here knows of traces.
 *
 * The decoding is done by GNU libiberty (Debian: libiberty-dev, linked statically; LICENSE-third-party says on
 * which terms). It was chosen over libstdc++'s __cxa_demangle, which is the same decoder behind an interface that
 * allocates as much as a name asks for, and over LLVM's, which Debian only ships inside 110 MB of libLLVM and whose
 * output cannot be capped either: libiberty hands its text to a callback and allocates nothing for C++ names.
 *
 * A name is hostile input. Bounds, whichever is hit first; the name is then shown as it is, and counted:
 *   DEMANGLE_INPUT     bytes in
 *   DEMANGLE_OUTPUT    bytes out
 *   DEMANGLE_TIME_NS   of processor time for one name: 200 bytes can ask for 2^60 steps that print nothing
 *   DEMANGLE_BURNT_NS  for all that ran into it: after that no mangled name is decoded any more
 * Real names need under a millisecond, so what is shown does not depend on the machine.
 *
 * Nothing is cached: callers keep the result by name id. One thread at a time. The handler of SIGVTALRM becomes ours.
 */
#ifndef PPERF_REPORT_SYMBOLS_DEMANGLE_H
#define PPERF_REPORT_SYMBOLS_DEMANGLE_H

#include <stddef.h>
#include <stdint.h>

#define DEMANGLE_INPUT 16384u
#define DEMANGLE_OUTPUT 65536u
#define DEMANGLE_TIME_NS 250000000u
#define DEMANGLE_TOTAL_TIME_NS 2000000000u

/* What is made of `_ZN2at6native10add_kernelILi4EEEvPf`. The texts are the values of --demangle. */
#define DEMANGLE_FORMS(X)                                                                                             \
	X(NO, "no") /* the name as it is */                                                                           \
	X(SHORT,                                                                                                      \
		"short") /* add_kernel: the last component of base; of CUTLASS and PyTorch what runs: Kernel<Gemm> */ \
	X(BASE, "base") /* at::native::add_kernel: no template arguments, parameters, return type */                  \
	X(FULL, "full") /* void at::native::add_kernel<4>(float*) */

enum demangle_form {
#define X(form, text) DEMANGLE_##form,
	DEMANGLE_FORMS(X)
#undef X
		DEMANGLE_FORM_COUNT
};

struct demangle_counts {
	uint64_t decoded, too_long,
		too_slow; /* names; those that are not mangled are in none of them */
};

/* Writes `form` of the `bytes` bytes at `name` (not terminated, any content) to `out`, terminated. Returns the
 * bytes written, at most room - 1, or 0: the name is to be shown as it is (not mangled, `form` is NO, or a bound
 * was hit, `room` among them).
 *
 * SHORT and BASE also take names that are decoded already, with or without return type and parameters. Texts that
 * are neither (a Triton kernel, a label) stay as they are. Per-build hashes of anonymous namespaces become
 * `(anonymous namespace)`, and a host stub (`__device_stub__...`) becomes its kernel. */
size_t demangle(enum demangle_form form, const char *name, size_t bytes, char *out, size_t room);

struct demangle_counts demangle_counts(void);

#endif
