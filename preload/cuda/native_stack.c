/* SPDX-License-Identifier: MIT */
#include "preload/cuda/native_stack.h"

#include "collector/file/dictionary.h"
#include "collector/file/loaded_objects.h"
#include "collector/process/dynamic_linker.h"
#include "collector/process/large_stack.h"
#include "collector/process/signal_guard.h"

#include <stdatomic.h>

#define LIBRARY "libunwind.so.8"
/* The largest number of pperf's own frames inside the call. */
#define OWN_FRAMES 8u

static int no_backtrace(void **frames, int max_frames)
{
	(void)frames;
	(void)max_frames;
	return 0;
}

/* no_backtrace: stacks are disabled, or libunwind is not loaded or missing */
static int (*_Atomic capture_frames)(void **, int) = no_backtrace;
static _Atomic bool wanted;
static _Atomic bool tried;
static _Atomic bool used;

/* This library's first and last byte in memory, defined by the linker. */
extern const char __ehdr_start[] __attribute__((visibility("hidden")));
extern const char _end[] __attribute__((visibility("hidden")));

void native_stack_enable(void)
{
	atomic_store(&wanted, true);
}

static void warn_no_stacks(bool has_library)
{
	meta_set("warning.stacks", has_library ? "no call stacks: " LIBRARY
						 " has no unw_backtrace; install libunwind 1.3 or "
						 "later, or set PPERF_STACKS=off"
					       : "no call stacks: " LIBRARY
						 " was not found; install libunwind (Debian: "
						 "libunwind8), or set PPERF_STACKS=off");
}

static void load_libunwind(void *unused)
{
	int (*backtrace)(void **, int) = NULL;
	struct signal_guard guard;
	void *library;

	(void)unused;
	signal_guard_begin(&guard);
	library = quiet_dlopen(LIBRARY, RTLD_NOW | RTLD_LOCAL);
	if (library)
		*(void **)&backtrace = quiet_dlsym(library, "unw_backtrace");
	if (backtrace)
		atomic_store(&capture_frames, backtrace);
	else
		warn_no_stacks(library != NULL);
	signal_guard_end(&guard);
}

void native_stack_load(void)
{
	if (atomic_load(&wanted) && !atomic_exchange(&tried, true))
		large_stack_run(load_libunwind, NULL);
}

static bool is_own_frame(const void *frame)
{
	return (const char *)frame >= __ehdr_start && (const char *)frame < _end;
}

/* Returns the number of frames inside the call. */
static uint32_t inner_frames(void *const *frames, uint32_t count, const void *caller)
{
	uint32_t i = 0;

	while (caller && i < count && i < OWN_FRAMES && frames[i] != caller)
		i++;
	if (caller && i < count && frames[i] == caller)
		return i;
	for (i = 0; i < count && is_own_frame(frames[i]); i++)
		continue;
	return i;
}

uint32_t native_stack_capture(const void *caller)
{
	void *frames[STACK_FRAMES_MAX + OWN_FRAMES];
	uint64_t addresses[STACK_FRAMES_MAX];
	int got = atomic_load_explicit(&capture_frames, memory_order_acquire)(
		frames, STACK_FRAMES_MAX + OWN_FRAMES);
	uint32_t count = got > 0 ? (uint32_t)got : 0, first, n = 0;

	if (!count)
		return 0;
	if (!atomic_load_explicit(&used, memory_order_relaxed))
		atomic_store_explicit(&used, true, memory_order_relaxed);
	first = inner_frames(frames, count, caller);
	for (uint32_t i = first; i < count && n < STACK_FRAMES_MAX; i++)
		addresses[n++] = (uintptr_t)frames[i];
	loaded_objects_record(addresses, n);
	return stack_id(addresses, n);
}

void native_stack_forked(void)
{
	if (atomic_load(&used))
		atomic_store(&capture_frames, no_backtrace);
}
