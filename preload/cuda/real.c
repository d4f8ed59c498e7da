/* SPDX-License-Identifier: MIT */
#include "preload/cuda/real.h"

#include "preload/cuda/traced_call.h"
#include "collector/file/dictionary.h"
#include "collector/cupti/devices.h"
#include "collector/file/trace_file.h"
#include "collector/process/dynamic_linker.h"
#include "collector/process/signal_guard.h"
#include "preload/cuda/cupti_callbacks.h"
#include "preload/cuda/interposed_library.h"

#include <stdio.h>
#include <string.h>

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wunused-parameter"
#define X(name, parameters)                       \
	static int missing_##name parameters      \
	{                                         \
		return CUDA_ERROR_INITIALIZATION; \
	}
REAL_FUNCTIONS(X)
#undef X
#pragma GCC diagnostic pop

static const struct interposed_function real_functions[] = {
#define X(name, parameters) { #name, offsetof(struct real, name) },
	REAL_FUNCTIONS(X)
#undef X
};

static const struct real missing = {
#define X(name, parameters) .name = missing_##name,
	REAL_FUNCTIONS(X)
#undef X
};

struct real real_runtimes[REAL_RUNTIMES];
_Alignas(64) _Atomic uint64_t real_sites[REAL_SITES];

static struct interposed_entry runtime_entries[REAL_RUNTIMES];

static const struct interposed_library runtime_library = { .file_name = "libcudart",
	.probe = "cudaRuntimeGetVersion",
	.functions = real_functions,
	.function_count = sizeof real_functions / sizeof *real_functions,
	.missing = &missing,
	.bytes = sizeof missing,
	.tables = real_runtimes,
	.entries = runtime_entries,
	.entry_count = REAL_RUNTIMES };

static _Atomic int runtime_versions[REAL_RUNTIMES]; /* 0: a free entry */

static void add_runtime_version(int version)
{
	for (size_t i = 0; i < REAL_RUNTIMES; i++) {
		int before = 0;

		if (atomic_compare_exchange_strong(&runtime_versions[i], &before, version) ||
			before == version)
			break;
	}
}

/* Records in the trace that there is a runtime, and the versions of all runtimes, in the order in
 * which they were found. */
static void write_runtime_versions(void *library)
{
	int (*version_of)(int *) = NULL;
	char text[16 * REAL_RUNTIMES] = "";
	int version = 0, known;

	*(void **)&version_of = quiet_dlsym(library, "cudaRuntimeGetVersion");
	if (version_of && version_of(&version))
		version = 0;
	add_runtime_version(version);
	for (size_t i = 0; i < REAL_RUNTIMES && (known = atomic_load(&runtime_versions[i])); i++)
		snprintf(text + strlen(text), sizeof text - strlen(text), i ? ", %d" : "%d", known);
	meta_set("source.cuda_symbols", call_enabled ? "on" : "off: PPERF_CUDA=0 (0)");
	if (*text)
		meta_set("version.cuda_runtime", text);
}

static _Atomic uint64_t *site_set(const void *caller)
{
	return real_sites + ((size_t)(real_site(caller) - real_sites) & ~(size_t)(REAL_WAYS - 1));
}

/* Returns the runtime of a caller that is cached in any of its slots; 0 if it is not. */
static uint32_t find_cached_site(const void *caller)
{
	const _Atomic uint64_t *ways = site_set(caller);

	for (uint32_t i = 0; i < REAL_WAYS; i++) {
		uint64_t site = atomic_load_explicit(&ways[i], memory_order_acquire);

		if (site >> REAL_INDEX_BITS == (uintptr_t)caller)
			return (uint32_t)site & (REAL_RUNTIMES - 1);
	}
	return 0;
}

/* Caches a caller: in its first slot if that is free, else in another free one. If none is free, it
 * replaces the first. */
static void remember_site(const void *caller, uint32_t index)
{
	const uint64_t site = (uint64_t)(uintptr_t)caller << REAL_INDEX_BITS | index;
	_Atomic uint64_t *slot = real_site(caller), *ways = site_set(caller);
	uint64_t none = 0;

	if (atomic_compare_exchange_strong(slot, &none, site))
		return;
	for (uint32_t i = 0; i < REAL_WAYS; i++)
		if (none = 0, atomic_compare_exchange_strong(&ways[i], &none, site))
			return;
	atomic_store_explicit(slot, site, memory_order_release);
}

/* Returns the runtime that `caller` uses; NULL if none is loaded. Writes the versions of a new
 * one. */
static const struct real *search_runtime(const void *caller, bool is_call)
{
	struct interposed_result found;
	struct signal_guard guard;

	/* The guard also keeps the caller's errno. */
	signal_guard_begin(&guard);
	found = interposed_find(&runtime_library, caller);
	if (found.added)
		write_runtime_versions(found.added);
	if (is_call && found.index)
		remember_site(caller, found.index);
	if (is_call && !found.table)
		meta_set("source.cuda_symbols",
			"off: a CUDA function was called, but no libcudart is loaded (3)");
	signal_guard_end(&guard);
	return found.table;
}

static const struct real *find_runtime_slow(const void *caller)
{
	const struct real *found = search_runtime(caller, true);

	call_prepare();
	cupti_callbacks_start_if_needed();
	call_hook_first_call();
	/* Without a CUPTI session nothing else records the GPU. */
	if (found && trace_header())
		gpu_device_record();
	return found ? found : &missing;
}

const struct real *real_find(const void *caller)
{
	uint32_t index = find_cached_site(caller);

	return index ? &real_runtimes[index] : find_runtime_slow(caller);
}

void real_prepare(const void *caller)
{
	search_runtime(caller, false);
}
