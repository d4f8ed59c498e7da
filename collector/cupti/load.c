/* SPDX-License-Identifier: MIT
 * Finds libcupti and loads it.
 *
 * Two copies in a process would be two tools to CUPTI, which accepts only one. The program's own
 * copy therefore comes first, or the one that it is going to load. The search order is:
 *  - the path that the user gave,
 *  - a libcupti that is loaded,
 *  - beside the loaded libcudart (pip's CUDA 13, an installed toolkit),
 *  - where pip's CUDA 12 has it, relative to libcudart,
 *  - by its name alone,
 *  - in $CUDA_HOME and the usual prefixes.
 *
 * The major version is libcudart's. Without a libcudart (it may be linked statically) it is the
 * driver's, then older ones.
 */
#include "collector/cupti/abi.h"

#include "collector/process/dynamic_linker.h"

#include <link.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NEWEST_MAJOR 13
#define OLDEST_MAJOR 12

/* Paths of the loaded libraries, "" if not loaded. */
struct loaded {
	char cupti[4096], cudart[4096];
};

/* Whether `name` is libSTEM.so..., or libSTEM-0123abcd.so..., which is how wheels rename bundled
 * libraries. */
static int is_library(const char *name, const char *stem)
{
	size_t length = strlen(stem);

	return !strncmp(name, stem, length) && (name[length] == '.' || name[length] == '-') &&
	       strstr(name, ".so");
}

static int note_object(struct dl_phdr_info *info, size_t size, void *data)
{
	struct loaded *loaded = data;
	const char *path = info->dlpi_name, *slash = path ? strrchr(path, '/') : NULL;
	const char *name = slash ? slash + 1 : path;
	char *found = NULL;

	(void)size;
	if (!name || strlen(path) >= sizeof loaded->cupti)
		return 0;
	if (is_library(name, "libcupti"))
		found = loaded->cupti;
	else if (is_library(name, "libcudart"))
		found = loaded->cudart;
	if (found && !*found)
		strcpy(found, path);
	return 0;
}

/* Returns 13 for libcudart.so.13 and libcudart-8c2.so.13.0.96, and 0 for libcudart.so. */
static int major_of(const char *path)
{
	const char *number = strstr(path, ".so.");

	return number ? (int)strtol(number + 4, NULL, 10) : 0;
}

static int driver_version(void)
{
	void *driver = quiet_dlopen("libcuda.so.1", RTLD_LAZY | RTLD_LOCAL | RTLD_NOLOAD);
	int (*get)(int *) = NULL, version = 0;

	if (!driver)
		return 0;
	*(void **)&get = quiet_dlsym(driver, "cuDriverGetVersion");
	if (get && get(&version) != 0)
		version = 0;
	dlclose(driver); /* the program holds it too */
	return version;
}

static int resolve_functions(struct cupti_library *library, char *reason, size_t reason_bytes)
{
#define X(needed, member, symbol, arguments)                                            \
	*(void **)&library->member = quiet_dlsym(library->handle, #symbol);             \
	if ((needed) && !library->member) {                                             \
		snprintf(reason, reason_bytes, "%s has no %s", library->path, #symbol); \
		return 0;                                                               \
	}
	CUPTI_FUNCTIONS(X)
#undef X
	return 1;
}

/* Opens `path` and stores the real path of the library. */
static int open_at(struct cupti_library *library, const char *path, int flags)
{
	struct link_map *map = NULL;

	library->handle = dlopen(path, RTLD_LAZY | RTLD_LOCAL | flags);
	if (!library->handle)
		return 0;
	if (dlinfo(library->handle, RTLD_DI_LINKMAP, &map) != 0 || !map || !*map->l_name)
		snprintf(library->path, sizeof library->path, "%s", path);
	else
		snprintf(library->path, sizeof library->path, "%s", map->l_name);
	return 1;
}

__attribute__((format(printf, 2, 3))) static int open_formatted(
	struct cupti_library *library, const char *format, ...)
{
	char path[4096];
	va_list arguments;
	int length;

	va_start(arguments, format);
	length = vsnprintf(path, sizeof path, format, arguments);
	va_end(arguments);
	return length > 0 && (size_t)length < sizeof path && open_at(library, path, 0);
}

/* Searches the folders around the loaded libcudart. */
static int open_beside(struct cupti_library *library, const char *cudart, int major)
{
	const char *slash = strrchr(cudart, '/');
	int folder = slash ? (int)(slash - cudart) : 0;

	if (!slash)
		return 0;
	return open_formatted(library, "%.*s/libcupti.so.%d", folder, cudart, major) ||
	       open_formatted(library, "%.*s/../../cuda_cupti/lib/libcupti.so.%d", folder, cudart,
		       major) ||
	       open_formatted(
		       library, "%.*s/../extras/CUPTI/lib64/libcupti.so.%d", folder, cudart, major);
}

static int open_installed(struct cupti_library *library, const char *toolkit, int major)
{
	const char *prefixes[] = { toolkit, "/usr/local/cuda", "/opt/cuda" };

	if (open_formatted(library, "libcupti.so.%d", major))
		return 1;
	for (size_t i = 0; i < sizeof prefixes / sizeof *prefixes; i++)
		if (prefixes[i] && *prefixes[i] == '/' &&
			(open_formatted(library, "%s/lib64/libcupti.so.%d", prefixes[i], major) ||
				open_formatted(library, "%s/extras/CUPTI/lib64/libcupti.so.%d",
					prefixes[i], major)))
			return 1;
	return 0;
}

static int open_any(struct cupti_library *library, const char *wanted, const char *toolkit,
	char *reason, size_t reason_bytes)
{
	struct loaded loaded = { { 0 }, { 0 } };
	int newest, oldest;

	dl_iterate_phdr(note_object, &loaded);
	if (wanted) {
		if (open_at(library, wanted, 0))
			return 1;
		snprintf(reason, reason_bytes,
			"PPERF_CUPTI names a library that cannot be loaded: %s", dlerror());
		return 0;
	}
	if (*loaded.cupti && open_at(library, loaded.cupti, RTLD_NOLOAD))
		return 1;
	newest = oldest = major_of(loaded.cudart);
	if (!newest) {
		newest = library->driver_version ? library->driver_version / 1000 : NEWEST_MAJOR;
		oldest = OLDEST_MAJOR;
	}
	for (int major = newest; major >= oldest; major--)
		if ((*loaded.cudart && open_beside(library, loaded.cudart, major)) ||
			open_installed(library, toolkit, major))
			return 1;
	snprintf(reason, reason_bytes,
		"libcupti.so.%d was not found; install CUDA's CUPTI, or set PPERF_CUPTI to its "
		"path",
		newest);
	return 0;
}

int cupti_load(struct cupti_library *library, const char *wanted, const char *toolkit, char *reason,
	size_t reason_bytes)
{
	int found;

	library->driver_version = driver_version();
	found = open_any(library, wanted, toolkit, reason, reason_bytes) &&
		resolve_functions(library, reason, reason_bytes);
	/* Clears the error, so that the program does not see our failed lookups. */
	dlerror();
	if (!found)
		return 0;
	if (library->get_version(&library->version) != CUPTI_OK ||
		library->version < CUPTI_VERSION_12_0) {
		snprintf(reason, reason_bytes, "%s is older than CUDA 12.0", library->path);
		return 0;
	}
	return 1;
}
