/* SPDX-License-Identifier: MIT */
#include "preload/torch/libraries.h"

#include "collector/process/dynamic_linker.h"

#include <errno.h>
#include <limits.h>
#include <link.h>
#include <stdatomic.h>
#include <string.h>

/* Prefixes of file names. Wheels and distributions append their own versions. */
static const char *const names[TORCH_LIBRARIES] = {
	[TORCH_CPU] = "libtorch_cpu.so",
	[TORCH_PYTHON] = "libtorch_python.so",
	[TORCH_C10] = "libc10.so",
	[TORCH_C10_CUDA] = "libc10_cuda.so",
};

static void *_Atomic handles[TORCH_LIBRARIES];

struct library_search {
	const char *name; /* NULL: any object */
	unsigned skip;    /* matching objects to pass over */
	uintptr_t begin, end;
	char path[PATH_MAX];
};

static void set_range(const struct dl_phdr_info *object, struct library_search *search)
{
	search->begin = UINTPTR_MAX;
	search->end = 0;
	for (int i = 0; i < object->dlpi_phnum; i++) {
		const ElfW(Phdr) *segment = &object->dlpi_phdr[i];
		const uintptr_t begin = object->dlpi_addr + segment->p_vaddr;

		if (segment->p_type != PT_LOAD)
			continue;
		if (begin < search->begin)
			search->begin = begin;
		if (begin + segment->p_memsz > search->end)
			search->end = begin + segment->p_memsz;
	}
}

/* A callback for dl_iterate_phdr; 1: found. The path is copied because the object may be
 * unloaded when dl_iterate_phdr has returned. */
static int match_object(struct dl_phdr_info *object, size_t size, void *data)
{
	struct library_search *search = data;
	const char *slash = strrchr(object->dlpi_name, '/'),
		   *base = slash ? slash + 1 : object->dlpi_name;

	(void)size;
	if (!*base || (search->name && strncmp(base, search->name, strlen(search->name)) != 0))
		return 0;
	if (strlen(object->dlpi_name) >= sizeof search->path || search->skip-- > 0)
		return 0;
	strcpy(search->path, object->dlpi_name);
	set_range(object, search);
	return 1;
}

/* Opens the object that matches. RTLD_NOLOAD: nothing is loaded. */
static void *open_loaded(struct library_search *search)
{
	void *handle = NULL;

	if (dl_iterate_phdr(match_object, search))
		handle = quiet_dlopen(search->path, RTLD_LAZY | RTLD_NOLOAD);
	return handle;
}

void *torch_library(enum torch_library which)
{
	void *handle = atomic_load_explicit(&handles[which], memory_order_acquire);
	struct library_search search;
	int saved = errno;

	if (handle)
		return handle;
	search.name = names[which];
	search.skip = 0;
	handle = open_loaded(&search);
	if (handle)
		atomic_store_explicit(&handles[which], handle, memory_order_release);
	errno = saved;
	return handle;
}

bool torch_library_range(enum torch_library which, uintptr_t *begin, uintptr_t *end)
{
	struct library_search search = { .name = names[which] };
	int saved = errno;
	const bool found = dl_iterate_phdr(match_object, &search) != 0;

	errno = saved;
	*begin = search.begin;
	*end = search.end;
	return found;
}

void *torch_symbol(enum torch_library which, const char *name)
{
	void *handle = torch_library(which), *found;
	int saved = errno;

	found = handle ? quiet_dlsym(handle, name) : NULL;
	errno = saved;
	return found;
}

void *torch_symbol_elsewhere(const void *own, const char *name)
{
	struct library_search search = { .name = NULL };
	void *found, *handle;
	int saved = errno;

	found = quiet_dlsym(RTLD_NEXT, name);
	for (unsigned i = 0; !found || found == own; i++) {
		search.skip = i;
		found = NULL;
		if (!dl_iterate_phdr(match_object, &search))
			break;
		handle = quiet_dlopen(search.path, RTLD_LAZY | RTLD_NOLOAD);
		if (handle) {
			found = quiet_dlsym(handle, name);
			dlclose(handle);
		}
	}
	errno = saved;
	return found;
}
