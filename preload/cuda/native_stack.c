/* SPDX-License-Identifier: MIT
 * stack.c: see stack.h.
 */
#include "preload/cuda/native_stack.h"

#include "collector/file/dictionary.h"
#include "collector/file/loaded_objects.h"
#include "collector/process/large_stack.h"
#include "collector/process/signal_guard.h"

#include <dlfcn.h>
#include <stdatomic.h>

#define LIBRARY "libunwind.so.8"
#define OWN_FRAMES 8u /* at most as many frames of ours lie inside the call */

static int no_backtrace(void **frames, int most)
{
	(void)frames;
	(void)most;
	return 0;
}

/* no_backtrace: not wanted, not loaded, not to be had. */
static int (*_Atomic backtrace_)(void **, int) = no_backtrace;
static _Atomic bool wanted;
static _Atomic bool tried;
static _Atomic bool used;

/* This library in memory, from the linker. */
extern const char __ehdr_start[] __attribute__((visibility("hidden")));
extern const char _end[] __attribute__((visibility("hidden")));

void stack_want(void)
{
	atomic_store(&wanted, true);
}

static void load(void *unused)
{
	int (*backtrace)(void **, int) = NULL;
	struct quiet quiet;
	void *library;

	(void)unused;
	quiet_begin(&quiet);
	library = dlopen(LIBRARY, RTLD_NOW | RTLD_LOCAL);
	if (library)
		*(void **)&backtrace = dlsym(library, "unw_backtrace");
	if (backtrace)
		atomic_store(&backtrace_, backtrace);
	else if (library)
		meta_set("warning.stacks",
			"no call stacks: " LIBRARY
			" has no unw_backtrace; install libunwind 1.3 or later, or set PPERF_STACKS=off");
	else
		meta_set("warning.stacks",
			"no call stacks: " LIBRARY
			" was not found; install libunwind (Debian: libunwind8), or set PPERF_STACKS=off");
	quiet_end(&quiet);
}

void stack_prepare(void)
{
	if (atomic_load(&wanted) && !atomic_exchange(&tried, true))
		own_stack_run(load, NULL);
}

static bool is_ours(const void *frame)
{
	return (const char *)frame >= __ehdr_start && (const char *)frame < _end;
}

/* How many frames lie inside the call. */
static uint32_t inner_frames(void *const *frames, uint32_t count, const void *caller)
{
	uint32_t i = 0;

	while (caller && i < count && i < OWN_FRAMES && frames[i] != caller)
		i++;
	if (caller && i < count && frames[i] == caller)
		return i;
	for (i = 0; i < count && is_ours(frames[i]); i++)
		continue;
	return i;
}

uint32_t stack_here(const void *caller)
{
	void *frames[STACK_FRAMES_MOST + OWN_FRAMES];
	uint64_t addresses[STACK_FRAMES_MOST];
	int got = atomic_load_explicit(&backtrace_, memory_order_acquire)(frames, STACK_FRAMES_MOST + OWN_FRAMES);
	uint32_t count = got > 0 ? (uint32_t)got : 0, first, n = 0;

	if (!count)
		return 0;
	if (!atomic_load_explicit(&used, memory_order_relaxed))
		atomic_store_explicit(&used, true, memory_order_relaxed);
	first = inner_frames(frames, count, caller);
	for (uint32_t i = first; i < count && n < STACK_FRAMES_MOST; i++)
		addresses[n++] = (uintptr_t)frames[i];
	modules_cover(addresses, n);
	return stack_id(addresses, n);
}

void stack_forked(void)
{
	if (atomic_load(&used))
		atomic_store(&backtrace_, no_backtrace);
}
