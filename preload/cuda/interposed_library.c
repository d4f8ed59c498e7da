/* SPDX-License-Identifier: MIT */
#include "preload/cuda/interposed_library.h"

#include "collector/process/dynamic_linker.h"
#include "collector/process/fork_wiped_memory.h"

#include <limits.h>
#include <link.h>
#include <string.h>

struct library_search {
	const struct interposed_library *library;
	uintptr_t caller;
	const char *caller_path; /* path of its object; "": the program */
	/* The version of the library's symbols that its object refers to, such as libcudart.so.12.
	 * "": none. */
	const char *version;
	const char *needed;  /* the library that its object depends on; "": none */
	char path[PATH_MAX]; /* best library so far */
	uintptr_t base;
	int rank;
};
enum match_rank { RANK_NONE, RANK_ANY, RANK_MAJOR, RANK_NAME };

static const char *base_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

static bool has_library_name(const struct interposed_library *library, const char *path)
{
	return path && !strncmp(base_name(path), library->file_name, strlen(library->file_name));
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

/* Returns the first string of `tag` that names the library; "" if there is none. */
static const char *dynamic_library(const struct interposed_library *library,
	const struct dl_phdr_info *object, ElfW(Sxword) tag)
{
	const char *strings = dynamic_pointer(object, DT_STRTAB);

	for (const ElfW(Dyn) *d = dynamic_of(object); strings && d && d->d_tag != DT_NULL; d++)
		if (d->d_tag == tag && has_library_name(library, strings + d->d_un.d_val))
			return strings + d->d_un.d_val;
	return "";
}

/* Returns the first symbol version that the object requires of the library; "" if there is none. */
static const char *version_needed(
	const struct interposed_library *library, const struct dl_phdr_info *object)
{
	const char *strings = dynamic_pointer(object, DT_STRTAB),
		   *at = dynamic_pointer(object, DT_VERNEED);
	const ElfW(Verneed) *file = (const void *)at;

	while (strings && file) {
		const ElfW(Vernaux) *version = (const void *)((const char *)file + file->vn_aux);

		if (file->vn_cnt && has_library_name(library, strings + version->vna_name))
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
	struct library_search *search, const char *path, uintptr_t base, enum match_rank rank)
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
	struct library_search *search = data;

	(void)size;
	if (!object_contains(object, search->caller))
		return 0;
	if (has_library_name(search->library, object->dlpi_name)) /* a call from within it */
		set_candidate(search, object->dlpi_name, object->dlpi_addr, RANK_NAME);
	search->caller_path = object->dlpi_name;
	search->version = version_needed(search->library, object);
	search->needed = dynamic_library(search->library, object, DT_NEEDED);
	return 1;
}

static enum match_rank match_rank_of(const struct interposed_library *library,
	const struct dl_phdr_info *object, const char *needed)
{
	const char *soname = dynamic_library(library, object, DT_SONAME);

	if (!*needed)
		return RANK_ANY;
	if (!strcmp(needed, base_name(object->dlpi_name)) || !strcmp(needed, soname))
		return RANK_NAME;
	return soname_major(needed) == soname_major(*soname ? soname : object->dlpi_name)
		       ? RANK_MAJOR
		       : RANK_ANY;
}

static int find_loaded(struct dl_phdr_info *object, size_t size, void *data)
{
	struct library_search *search = data;
	enum match_rank rank;

	(void)size;
	if (!has_library_name(search->library, object->dlpi_name))
		return 0;
	rank = match_rank_of(search->library, object, search->needed);
	if ((int)rank > search->rank)
		set_candidate(search, object->dlpi_name, object->dlpi_addr, rank);
	return 0;
}

static bool set_candidate_of(struct library_search *search, const void *address)
{
	Dl_info info;

	if (!address || !dladdr(address, &info) ||
		(!search->library->may_be_static &&
			!has_library_name(search->library, info.dli_fname)))
		return false;
	set_candidate(search, info.dli_fname, (uintptr_t)info.dli_fbase, RANK_NAME);
	return search->rank == RANK_NAME;
}

/* Searches as the dynamic linker does: the global scope, then that of the caller's object. Looks
 * for the probe, which no other tool interposes. */
static bool find_in_scopes(struct library_search *search)
{
	void *object;
	bool found;

	if (set_candidate_of(
		    search, quiet_dlvsym(RTLD_NEXT, search->library->probe, search->version)))
		return true;
	object = *search->caller_path ? quiet_dlopen(search->caller_path, RTLD_LAZY | RTLD_NOLOAD)
				      : NULL;
	found = object && set_candidate_of(search,
				  quiet_dlvsym(object, search->library->probe, search->version));
	if (object)
		dlclose(object);
	return found;
}

static bool find_callers_library(struct library_search *search)
{
	dl_iterate_phdr(find_caller, search);
	if (search->rank == RANK_NONE && !find_in_scopes(search))
		dl_iterate_phdr(find_loaded, search);
	return search->rank != RANK_NONE;
}

/* Returns the function of another interposer that was preloaded after pperf, or NULL. Without pperf
 * it would be called. Its symbol has no version, so dlvsym would not find it. */
static void *next_interposer(const struct library_search *search, const char *name)
{
	void *next = quiet_dlsym(RTLD_NEXT, name);
	Dl_info info;

	return next && dladdr(next, &info) && (uintptr_t)info.dli_fbase != search->base &&
			       !has_library_name(search->library, info.dli_fname)
		       ? next
		       : NULL;
}

static void fill_table(const struct library_search *search, void *table, void *handle)
{
	const struct interposed_library *library = search->library;

	memcpy(table, library->missing, library->bytes);
	for (size_t i = 0; i < library->function_count; i++) {
		const struct interposed_function *one = &library->functions[i];
		void *function = next_interposer(search, one->name);

		if (!function)
			function = quiet_dlsym(handle, one->name);
		if (function)
			memcpy((char *)table + one->offset, &function, sizeof function);
	}
}

static void *table_at(const struct interposed_library *library, uint32_t index)
{
	return (char *)library->tables + index * library->bytes;
}

/* Returns the index of the library at `base`; 0 if it is not known yet. */
static uint32_t known_library(const struct interposed_library *library, uintptr_t base)
{
	for (uint32_t i = 1; i < library->entry_count; i++)
		if (atomic_load_explicit(&library->entries[i].base, memory_order_acquire) == base)
			return i;
	return 0;
}

/* Returns a free entry, which no other thread fills. 0: there is none, or another thread fills the
 * entry of this library, and `is_claimed` is true. */
static uint32_t claim_entry(
	const struct interposed_library *library, uintptr_t base, bool *is_claimed)
{
	*is_claimed = false;
	for (uint32_t i = 1; i < library->entry_count && !*is_claimed; i++) {
		uintptr_t claimed = 0;

		if (atomic_compare_exchange_strong(
			    &library->entries[i].claimed_base, &claimed, base))
			return i;
		*is_claimed = claimed == base;
	}
	return 0;
}

/* Adds a library. It stays loaded from here on, because its functions are called without checking
 * again. */
static struct interposed_result add_library(const struct library_search *search)
{
	const struct interposed_library *library = search->library;
	void *handle = quiet_dlopen(search->path, RTLD_LAZY | RTLD_NOLOAD), *table;
	struct interposed_result result = { .table = NULL };
	bool is_claimed;

	if (!handle)
		return result;
	result.index = claim_entry(library, search->base, &is_claimed);
	table = result.index ? table_at(library, result.index)
		: is_claimed ? fork_kept_alloc(library->bytes)
			     : NULL;
	result.table = table;
	if (table)
		fill_table(search, table, handle);
	if (!result.index)
		return result;
	result.added = handle;
	atomic_store_explicit(
		&library->entries[result.index].base, search->base, memory_order_release);
	return result;
}

struct interposed_result interposed_find(
	const struct interposed_library *library, const void *caller)
{
	struct library_search search = { .library = library,
		.caller = (uintptr_t)caller,
		.caller_path = "",
		.version = "",
		.needed = "" };
	uint32_t index;

	if (!find_callers_library(&search))
		return (struct interposed_result){ .table = NULL };
	index = known_library(library, search.base);
	return index ? (struct interposed_result){ .table = table_at(library, index),
		.index = index }
		     : add_library(&search);
}
