/* SPDX-License-Identifier: MIT */
#include "preload/nccl/real.h"

#include "collector/file/dictionary.h"
#include "collector/process/dynamic_linker.h"
#include "collector/process/signal_guard.h"
#include "preload/cuda/interposed_library.h"

#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#define LIBRARIES 8u /* index 0: none was found */
#define INDEX_BITS 3
#define SITES 256u /* callers in the cache; a power of two */

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wunused-parameter"
#define X(name, parameters, arguments)            \
	static int missing_nccl_##name parameters \
	{                                         \
		return NCCL_INVALID_USAGE;        \
	}
NCCL_FUNCTIONS(X)
#undef X
#pragma GCC diagnostic pop

static const struct interposed_function nccl_functions[] = {
#define X(name, parameters, arguments) { #name, offsetof(struct nccl_real, name) },
	NCCL_FUNCTIONS(X)
#undef X
		{ "ncclCommCount", offsetof(struct nccl_real, ncclCommCount) },
	{ "ncclCommUserRank", offsetof(struct nccl_real, ncclCommUserRank) },
	{ "ncclCommCuDevice", offsetof(struct nccl_real, ncclCommCuDevice) },
};

static struct nccl_real libraries[LIBRARIES] = { {
#define X(name, parameters, arguments) .name = missing_nccl_##name,
	NCCL_FUNCTIONS(X)
#undef X
} };

static struct interposed_entry library_entries[LIBRARIES];

/* A static NCCL is in its caller's object. */
static const struct interposed_library nccl_library = { .file_name = "libnccl",
	.probe = "ncclGetVersion",
	.may_be_static = true,
	.functions = nccl_functions,
	.function_count = sizeof nccl_functions / sizeof *nccl_functions,
	.missing = libraries,
	.bytes = sizeof *libraries,
	.tables = libraries,
	.entries = library_entries,
	.entry_count = LIBRARIES };

/* The caller's address << INDEX_BITS | the index of its library. */
static _Atomic uint64_t nccl_sites[SITES];

static void write_nccl_version(void *library)
{
	int (*version_of)(int *) = NULL;
	char text[32];
	int version = 0;

	*(void **)&version_of = quiet_dlsym(library, "ncclGetVersion");
	if (!version_of || version_of(&version) != NCCL_SUCCESS || version < 10000)
		return;
	snprintf(
		text, sizeof text, "%d.%d.%d", version / 10000, version / 100 % 100, version % 100);
	meta_set("version.nccl", text);
}

static struct interposed_result search_nccl(const void *caller)
{
	struct interposed_result found;
	struct signal_guard guard;

	/* The guard also keeps errno. */
	signal_guard_begin(&guard);
	found = interposed_find(&nccl_library, caller);
	if (found.added && found.index == 1)
		write_nccl_version(found.added);
	signal_guard_end(&guard);
	return found;
}

const struct nccl_real *nccl_real_of(const void *caller)
{
	const uint64_t key = (uint64_t)(uintptr_t)caller << INDEX_BITS;
	_Atomic uint64_t *site = &nccl_sites[((uintptr_t)caller * UINT64_C(0x9e3779b97f4a7c15)) >>
					     (64 - __builtin_ctz(SITES))];
	const uint64_t cached = atomic_load_explicit(site, memory_order_acquire);
	const uint32_t index = (uint32_t)cached & (LIBRARIES - 1);
	struct interposed_result found;

	if (cached >> INDEX_BITS == key >> INDEX_BITS && index)
		return &libraries[index];
	found = search_nccl(caller);
	if (found.index)
		atomic_store_explicit(site, key | found.index, memory_order_release);
	return found.table ? found.table : libraries;
}
