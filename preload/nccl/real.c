/* SPDX-License-Identifier: MIT
 * No lock of pperf is held while the dynamic linker is called. Two threads that find the same
 * library at once fill two entries with the same content.
 */
#include "preload/nccl/real.h"

#include "collector/file/dictionary.h"
#include "collector/process/dynamic_linker.h"
#include "collector/process/signal_guard.h"

#include <limits.h>
#include <link.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#define LIBRARY_NAME "libnccl"
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

static const struct {
	const char *name;
	size_t offset;
} nccl_functions[] = {
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

/* The base address of each library. Stored last; 0: not filled yet. */
static _Atomic uintptr_t library_bases[LIBRARIES];
static _Atomic uint32_t libraries_claimed;
/* The caller's address << INDEX_BITS | the index of its library. */
static _Atomic uint64_t nccl_sites[SITES];

static bool is_nccl(const char *path)
{
	const char *slash = path ? strrchr(path, '/') : NULL;

	return path && !strncmp(slash ? slash + 1 : path, LIBRARY_NAME, sizeof LIBRARY_NAME - 1);
}

struct nccl_search {
	void *library; /* a handle */
	uintptr_t base;
	char path[PATH_MAX]; /* of any loaded library */
};

/* Takes the object that has the function at `address`. */
static bool take_object(struct nccl_search *search, const void *address)
{
	Dl_info info;

	if (!address || !dladdr(address, &info))
		return false;
	search->base = (uintptr_t)info.dli_fbase;
	search->library = quiet_dlopen(info.dli_fname, RTLD_LAZY | RTLD_NOLOAD);
	return search->library;
}

static int find_any(struct dl_phdr_info *object, size_t size, void *data)
{
	struct nccl_search *search = data;

	(void)size;
	if (!is_nccl(object->dlpi_name) || strlen(object->dlpi_name) >= sizeof search->path)
		return 0;
	strcpy(search->path, object->dlpi_name);
	search->base = object->dlpi_addr;
	return 1;
}

/* Takes any loaded library. It is opened after the search, because that holds a lock of the dynamic
 * linker which dlopen takes in another order. */
static bool take_any(struct nccl_search *search)
{
	if (!dl_iterate_phdr(find_any, search))
		return false;
	search->library = quiet_dlopen(search->path, RTLD_LAZY | RTLD_NOLOAD);
	return search->library;
}

/* Looks for ncclGetVersion, which no other tool interposes. A static NCCL is in its caller's
 * object. */
static bool find_nccl(struct nccl_search *search, const void *caller)
{
	Dl_info info;
	void *object = NULL;
	bool found = false;

	if (dladdr(caller, &info) && is_nccl(info.dli_fname))
		return take_object(search, caller);
	if (take_object(search, quiet_dlsym(RTLD_NEXT, "ncclGetVersion")))
		return true;
	if (dladdr(caller, &info))
		object = quiet_dlopen(info.dli_fname, RTLD_LAZY | RTLD_NOLOAD);
	if (object) {
		found = take_object(search, quiet_dlsym(object, "ncclGetVersion"));
		dlclose(object);
	}
	return found || take_any(search);
}

/* Returns the function of another interposer that was preloaded after pperf, or NULL. */
static void *next_nccl_interposer(const char *name, uintptr_t base)
{
	void *next = quiet_dlsym(RTLD_NEXT, name);
	Dl_info info;

	return next && dladdr(next, &info) && (uintptr_t)info.dli_fbase != base &&
			       !is_nccl(info.dli_fname)
		       ? next
		       : NULL;
}

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

/* The library stays loaded from here on. */
static uint32_t add_nccl(const struct nccl_search *search)
{
	const uint32_t index = atomic_fetch_add(&libraries_claimed, 1) + 1;

	if (index >= LIBRARIES) {
		atomic_fetch_sub(&libraries_claimed, 1);
		return 0;
	}
	libraries[index] = libraries[0];
	for (size_t i = 0; i < sizeof nccl_functions / sizeof *nccl_functions; i++) {
		void *function = next_nccl_interposer(nccl_functions[i].name, search->base);

		if (!function)
			function = quiet_dlsym(search->library, nccl_functions[i].name);
		if (function)
			memcpy((char *)&libraries[index] + nccl_functions[i].offset, &function,
				sizeof function);
	}
	atomic_store_explicit(&library_bases[index], search->base, memory_order_release);
	if (index == 1)
		write_nccl_version(search->library);
	return index;
}

static uint32_t known_nccl(uintptr_t base)
{
	for (uint32_t i = 1; i < LIBRARIES; i++)
		if (atomic_load_explicit(&library_bases[i], memory_order_acquire) == base)
			return i;
	return 0;
}

static uint32_t search_nccl(const void *caller)
{
	struct nccl_search search = { .library = NULL };
	struct signal_guard guard;
	uint32_t index = 0;

	/* The guard is needed because the dynamic linker's lock is held, and it keeps errno. */
	signal_guard_begin(&guard);
	if (find_nccl(&search, caller)) {
		index = known_nccl(search.base);
		index = index ? index : add_nccl(&search);
	}
	signal_guard_end(&guard);
	return index;
}

const struct nccl_real *nccl_real_of(const void *caller)
{
	const uint64_t key = (uint64_t)(uintptr_t)caller << INDEX_BITS;
	_Atomic uint64_t *site = &nccl_sites[((uintptr_t)caller * UINT64_C(0x9e3779b97f4a7c15)) >>
					     (64 - __builtin_ctz(SITES))];
	const uint64_t cached = atomic_load_explicit(site, memory_order_acquire);
	uint32_t index = (uint32_t)cached & (LIBRARIES - 1);

	if (cached >> INDEX_BITS != key >> INDEX_BITS || !index) {
		index = search_nccl(caller);
		if (index)
			atomic_store_explicit(site, key | index, memory_order_release);
	}
	return &libraries[index];
}
