/* SPDX-License-Identifier: MIT */
#include "preload/cuda/driver_query.h"

#include "collector/process/dynamic_linker.h"
#include "collector/cupti/call_ids.h"

#include <errno.h>
#include <stdatomic.h>
#include <stddef.h>

#define DRIVER_NAME "libcuda.so.1"
/* Calls without a driver in the process before the search for it ends. */
#define DRIVER_TRIES 64

#define DRIVER_FUNCTIONS(X)                                            \
	X(cuCtxGetDevice, (int *device))                               \
	X(cuStreamIsCapturing, (const void *stream, int *status))      \
	X(cuStreamIsCapturing_ptsz, (const void *stream, int *status)) \
	X(cuKernelGetName, (const char **name, const void *kernel))    \
	X(cuMemGetInfo_v2, (size_t * free_bytes, size_t * total_bytes))

struct driver_functions {
#define X(name, parameters) int(*name) parameters;
	DRIVER_FUNCTIONS(X)
#undef X
};

/* The driver's functions, found once the driver is in the process. NULL: it is not there yet, and
 * cannot be queried. */
static const struct driver_functions *_Atomic driver;

static const struct driver_functions *load_driver_functions(void)
{
	static struct driver_functions found; /* two threads write the same */
	static _Atomic int tries;
	void *library;

	if (atomic_load_explicit(&tries, memory_order_relaxed) >= DRIVER_TRIES)
		return NULL;
	atomic_fetch_add_explicit(&tries, 1, memory_order_relaxed);
	library = quiet_dlopen(DRIVER_NAME, RTLD_LAZY | RTLD_NOLOAD);
	if (!library)
		return NULL;
#define X(name, parameters) *(void **)&found.name = quiet_dlsym(library, #name);
	DRIVER_FUNCTIONS(X)
#undef X
	atomic_store_explicit(&driver, &found, memory_order_release);
	return &found;
}

static const struct driver_functions *loaded_driver(void)
{
	const struct driver_functions *functions = atomic_load_explicit(
		&driver, memory_order_acquire);

	return __builtin_expect(functions != NULL, 1) ? functions : load_driver_functions();
}

uint32_t driver_device(void)
{
	const struct driver_functions *functions = loaded_driver();
	int device = -1, saved = errno;

	call_ids_own_call = true;
	if (!functions || !functions->cuCtxGetDevice || functions->cuCtxGetDevice(&device))
		device = -1;
	call_ids_own_call = false;
	errno = saved;
	return (uint32_t)device;
}

bool driver_is_capturing(const void *stream, bool per_thread)
{
	const struct driver_functions *functions = loaded_driver();
	int (*is_capturing)(const void *, int *) = !functions ? NULL
						   : per_thread
							   ? functions->cuStreamIsCapturing_ptsz
							   : functions->cuStreamIsCapturing;
	int status = 0, saved = errno;
	bool known;

	call_ids_own_call = true;
	known = is_capturing && !is_capturing(stream, &status);
	call_ids_own_call = false;
	errno = saved;
	return known && status;
}

const char *driver_kernel_name(const void *kernel)
{
	const struct driver_functions *functions = loaded_driver();
	const char *name = NULL;
	int saved = errno;

	call_ids_own_call = true;
	if (!functions || !functions->cuKernelGetName || functions->cuKernelGetName(&name, kernel))
		name = NULL;
	call_ids_own_call = false;
	errno = saved;
	return name;
}

bool driver_memory_info(uint64_t *free_bytes, uint64_t *total_bytes)
{
	const struct driver_functions *functions = loaded_driver();
	size_t free_now = 0, total = 0;
	int saved = errno;
	bool known;

	call_ids_own_call = true;
	known = functions && functions->cuMemGetInfo_v2 &&
		!functions->cuMemGetInfo_v2(&free_now, &total);
	call_ids_own_call = false;
	errno = saved;
	*free_bytes = free_now;
	*total_bytes = total;
	return known;
}
