/* SPDX-License-Identifier: MIT
 * No lock of pperf is held while the dynamic linker is called. Each thread that finds a new runtime
 * fills an index of its own. If two threads find the same runtime at once, they fill two with the
 * same content.
 */
#include "preload/cuda/real.h"

#include "preload/cuda/traced_call.h"
#include "collector/file/dictionary.h"
#include "collector/cupti/devices.h"
#include "collector/file/trace_file.h"
#include "collector/process/dynamic_linker.h"
#include "collector/process/signal_guard.h"
#include "preload/cuda/cupti_callbacks.h"

#include <limits.h>
#include <link.h>
#include <stdio.h>
#include <string.h>

#define RUNTIME_NAME "libcudart"

struct runtime_search {
	uintptr_t caller;
	const char *caller_path; /* path of its object; "": the program */
	/* The version of the runtime's symbols that its object refers to, such as libcudart.so.12.
	 * "": none. */
	const char *version;
	const char *needed;  /* the runtime that its object depends on; "": none */
	char path[PATH_MAX]; /* best runtime so far */
	uintptr_t base;
	int rank;
};
enum match_rank { RANK_NONE, RANK_ANY, RANK_MAJOR, RANK_NAME };

struct runtime_function {
	const char *name;
	size_t offset; /* in struct real */
};

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

static const struct runtime_function real_functions[] = {
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

/* The base address of the object whose functions real_runtimes[i] holds. Stored last; 0: not filled
 * yet. */
static _Atomic uintptr_t bases[REAL_RUNTIMES];
static _Atomic uint32_t claimed;

static const char *base_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

static bool is_runtime(const char *path)
{
	return !strncmp(base_name(path), RUNTIME_NAME, sizeof RUNTIME_NAME - 1);
}

/* Returns the major version in a name: libcudart.so.12 and libcudart-d0da41ae.so.12.4 -> 12. 0:
 * none. */
static int soname_major(const char *name)
{
	const char *version = strstr(base_name(name), ".so.");
	int major = 0;

	for (version = version ? version + 4 : "";
		*version >= '0' && *version <= '9' && major < 1000; version++)
		major = major * 10 + (*version - '0');
	return major;
}

static const ElfW(Dyn) * dynamic_of(const struct dl_phdr_info *object)
{
	for (int i = 0; i < object->dlpi_phnum; i++)
		if (object->dlpi_phdr[i].p_type == PT_DYNAMIC)
			return (const ElfW(Dyn) *)(object->dlpi_addr +
						   object->dlpi_phdr[i].p_vaddr);
	return NULL;
}

/* Returns the address of a dynamic tag. Some C libraries have relocated it, others leave an
 * offset. */
static const char *dynamic_pointer(const struct dl_phdr_info *object, ElfW(Sxword) tag)
{
	for (const ElfW(Dyn) *d = dynamic_of(object); d && d->d_tag != DT_NULL; d++)
		if (d->d_tag == tag)
			return (const char *)(d->d_un.d_ptr < object->dlpi_addr
						      ? object->dlpi_addr + d->d_un.d_ptr
						      : d->d_un.d_ptr);
	return NULL;
}

/* Returns the first string of `tag` that names a runtime; "" if there is none. */
static const char *dynamic_runtime(const struct dl_phdr_info *object, ElfW(Sxword) tag)
{
	const char *strings = dynamic_pointer(object, DT_STRTAB);

	for (const ElfW(Dyn) *d = dynamic_of(object); strings && d && d->d_tag != DT_NULL; d++)
		if (d->d_tag == tag && is_runtime(strings + d->d_un.d_val))
			return strings + d->d_un.d_val;
	return "";
}

/* Returns the first symbol version that the object requires of a runtime; "" if there is none. */
static const char *version_needed(const struct dl_phdr_info *object)
{
	const char *strings = dynamic_pointer(object, DT_STRTAB),
		   *at = dynamic_pointer(object, DT_VERNEED);
	const ElfW(Verneed) *file = (const void *)at;

	while (strings && file) {
		const ElfW(Vernaux) *version = (const void *)((const char *)file + file->vn_aux);

		if (file->vn_cnt && is_runtime(strings + version->vna_name))
			return strings + version->vna_name;
		file = file->vn_next ? (const void *)((const char *)file + file->vn_next) : NULL;
	}
	return "";
}

static bool object_contains(const struct dl_phdr_info *object, uintptr_t address)
{
	for (int i = 0; i < object->dlpi_phnum; i++) {
		const ElfW(Phdr) *segment = &object->dlpi_phdr[i];

		if (segment->p_type == PT_LOAD &&
			address - object->dlpi_addr - segment->p_vaddr < segment->p_memsz)
			return true;
	}
	return false;
}

static void set_candidate(
	struct runtime_search *search, const char *path, uintptr_t base, enum match_rank rank)
{
	if (strlen(path) >= sizeof search->path)
		return;
	strcpy(search->path, path);
	search->base = base;
	search->rank = (int)rank;
}

/* Finds the object of the caller. The caller is executing, so its object and the strings in it
 * stay. */
static int find_caller(struct dl_phdr_info *object, size_t size, void *data)
{
	struct runtime_search *search = data;

	(void)size;
	if (!object_contains(object, search->caller))
		return 0;
	if (is_runtime(object->dlpi_name)) /* a call from within a runtime */
		set_candidate(search, object->dlpi_name, object->dlpi_addr, RANK_NAME);
	search->caller_path = object->dlpi_name;
	search->version = version_needed(object);
	search->needed = dynamic_runtime(object, DT_NEEDED);
	return 1;
}

static enum match_rank match_rank_of(const struct dl_phdr_info *object, const char *needed)
{
	const char *soname = dynamic_runtime(object, DT_SONAME);

	if (!*needed)
		return RANK_ANY;
	if (!strcmp(needed, base_name(object->dlpi_name)) || !strcmp(needed, soname))
		return RANK_NAME;
	return soname_major(needed) == soname_major(*soname ? soname : object->dlpi_name)
		       ? RANK_MAJOR
		       : RANK_ANY;
}

static int find_runtime(struct dl_phdr_info *object, size_t size, void *data)
{
	struct runtime_search *search = data;
	enum match_rank rank;

	(void)size;
	if (!is_runtime(object->dlpi_name))
		return 0;
	rank = match_rank_of(object, search->needed);
	if ((int)rank > search->rank)
		set_candidate(search, object->dlpi_name, object->dlpi_addr, rank);
	return 0;
}

static bool set_candidate_of(struct runtime_search *search, const void *address)
{
	Dl_info info;

	if (!address || !dladdr(address, &info) || !is_runtime(info.dli_fname))
		return false;
	set_candidate(search, info.dli_fname, (uintptr_t)info.dli_fbase, RANK_NAME);
	return search->rank == RANK_NAME;
}

/* Searches as the dynamic linker does: the global scope, then that of the caller's object. Looks
 * for cudaRuntimeGetVersion, which no other tool interposes. */
static bool find_in_scopes(struct runtime_search *search)
{
	void *object;
	bool found;

	if (set_candidate_of(
		    search, quiet_dlvsym(RTLD_NEXT, "cudaRuntimeGetVersion", search->version)))
		return true;
	object = *search->caller_path ? quiet_dlopen(search->caller_path, RTLD_LAZY | RTLD_NOLOAD)
				      : NULL;
	found = object && set_candidate_of(search,
				  quiet_dlvsym(object, "cudaRuntimeGetVersion", search->version));
	if (object)
		dlclose(object);
	return found;
}

static bool find_caller_runtime(struct runtime_search *search)
{
	dl_iterate_phdr(find_caller, search);
	if (search->rank == RANK_NONE && !find_in_scopes(search))
		dl_iterate_phdr(find_runtime, search);
	return search->rank != RANK_NONE;
}

/* Returns the function of another interposer that was preloaded after pperf, or NULL. Without pperf
 * it would be called. Its symbol has no version, so dlvsym would not find it. */
static void *next_interposer(const char *name)
{
	void *next = quiet_dlsym(RTLD_NEXT, name);
	Dl_info info;

	return next && dladdr(next, &info) && !is_runtime(info.dli_fname) ? next : NULL;
}

static void fill_runtime(struct real *real, void *library)
{
	*real = missing;
	for (size_t i = 0; i < sizeof real_functions / sizeof *real_functions; i++) {
		void *function = next_interposer(real_functions[i].name);

		if (!function)
			function = quiet_dlsym(library, real_functions[i].name);
		if (function)
			memcpy((char *)real + real_functions[i].offset, &function, sizeof function);
	}
}

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

/* Returns the index of the runtime at `base`; 0 if it is not known yet. */
static uint32_t known_runtime(uintptr_t base)
{
	for (uint32_t i = 1; i < REAL_RUNTIMES; i++)
		if (atomic_load_explicit(&bases[i], memory_order_acquire) == base)
			return i;
	return 0;
}

/* Adds a runtime and returns its index; 0 on failure. The runtime stays loaded from here on,
 * because its functions are called without checking again. */
static uint32_t add_runtime(const struct runtime_search *search)
{
	void *library = quiet_dlopen(search->path, RTLD_LAZY | RTLD_NOLOAD);
	uint32_t index;

	if (!library)
		return 0;
	index = atomic_fetch_add(&claimed, 1) + 1;
	if (index >= REAL_RUNTIMES) {
		atomic_fetch_sub(&claimed, 1);
		return 0;
	}
	fill_runtime(&real_runtimes[index], library);
	atomic_store_explicit(&bases[index], search->base, memory_order_release);
	write_runtime_versions(library);
	return index;
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

/* Returns the number of the runtime that `caller` uses; 0 if none is loaded. */
static uint32_t search_runtime(const void *caller)
{
	struct runtime_search search = {
		.caller = (uintptr_t)caller, .caller_path = "", .version = "", .needed = ""
	};
	struct signal_guard guard;
	uint32_t index = 0;

	/* The guard is needed because the dynamic linker's lock is held, and it keeps the caller's
	 * errno. */
	signal_guard_begin(&guard);
	if (find_caller_runtime(&search)) {
		index = known_runtime(search.base);
		if (!index)
			index = add_runtime(&search);
	}
	if (index)
		remember_site(caller, index);
	else
		meta_set("source.cuda_symbols",
			"off: a CUDA function was called, but no libcudart is loaded (3)");
	signal_guard_end(&guard);
	return index;
}

static const struct real *find_runtime_slow(const void *caller)
{
	const uint32_t index = search_runtime(caller);

	call_prepare();
	cupti_callbacks_start_if_needed();
	call_hook_first_call();
	/* Without a CUPTI session nothing else records the GPU. */
	if (index && trace_header())
		gpu_device_record();
	return index ? &real_runtimes[index] : &missing;
}

const struct real *real_find(const void *caller)
{
	uint32_t index = find_cached_site(caller);

	return index ? &real_runtimes[index] : find_runtime_slow(caller);
}

void real_prepare(const void *caller)
{
	struct runtime_search search = {
		.caller = (uintptr_t)caller, .caller_path = "", .version = "", .needed = ""
	};
	struct signal_guard guard;

	signal_guard_begin(&guard);
	if (find_caller_runtime(&search) && !known_runtime(search.base))
		add_runtime(&search);
	signal_guard_end(&guard);
}
