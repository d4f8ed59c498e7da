/* SPDX-License-Identifier: MIT
 * Finds the real functions behind interposed functions of a library that a process may have several
 * times: the CUDA runtime, NCCL.
 *
 * A call goes to the library that the dynamic linker would have given its caller without pperf, by
 * the symbol version that the caller's object requires. These are searched in order:
 *
 *   1. the caller's own object, if it is such a library
 *   2. the global scope after this library, which includes other preloaded interposers
 *   3. the dependencies of the caller's object
 *   4. any loaded one; the one that the caller's object names comes before others
 *
 * No lock of pperf is held while the dynamic linker is called, and no thread waits for another. So
 * while a thread fills the entry of a library, another one fills a table of its own, a page that is
 * never freed.
 */
#ifndef PPERF_PRELOAD_CUDA_INTERPOSED_LIBRARY_H
#define PPERF_PRELOAD_CUDA_INTERPOSED_LIBRARY_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct interposed_function {
	const char *name;
	size_t offset; /* in a table */
};

/* One library of the process. A base is 0 or an address. */
struct interposed_entry {
	_Atomic uintptr_t claimed_base; /* a thread fills the table, or has filled it */
	_Atomic uintptr_t base;         /* stored last: the table is filled */
};

struct interposed_library {
	const char *file_name; /* begin of the name of its file, such as libnccl */
	const char *probe;     /* a function of it that no other tool interposes */
	bool may_be_static;    /* it may be linked into an object with another name */
	const struct interposed_function *functions;
	size_t function_count;
	const void *missing; /* table of functions that fail, for those that a library lacks */
	size_t bytes;        /* of a table */
	void *tables;        /* entry_count of them */
	struct interposed_entry *entries; /* [0] is not used */
	uint32_t entry_count;
};

/* What a search found. */
struct interposed_result {
	const void *table; /* NULL: no library was found */
	uint32_t index;    /* of its entry; 0: the table is not kept in one */
	void *added;       /* a handle, if this search filled the entry; else NULL */
};

/* Finds the library of a call that returns to `caller`. A library that was found stays loaded.
 * The caller has begun a signal_guard, because locks of the dynamic linker are held meanwhile. */
struct interposed_result interposed_find(
	const struct interposed_library *library, const void *caller);

#endif
