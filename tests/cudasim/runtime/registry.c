/*
 * What compiled programs register before main: fat binaries, and in them kernels and variables,
 * known by the address of a host stub or of a host shadow.
 */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/runtime.h"

#define FATBINC_MAGIC 0x466243b1

/* What the compiler hands over, as its fatbinary_section.h describes it. */
struct wrapper {
	int magic;
	int version;
	const unsigned long long *data;
	void *filename;
};

struct binary {
	const void *image;
	CUmodule module;
};

struct entry {
	const void *host;
	CUfunction kernel; /* NULL: a variable */
	size_t bytes;
	void *device; /* of a variable, once it is needed */
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct entry *entries; /* open addressing; a power of two */
static size_t count, room;

/* The place of a host address, or the empty one where it belongs. The lock must be held. */
static struct entry *place(const void *host)
{
	size_t at = (size_t)((uintptr_t)host * 0x9e3779b97f4a7c15u >> 20) & (room - 1);

	while (entries[at].host && entries[at].host != host)
		at = (at + 1) & (room - 1);
	return &entries[at];
}

static void enlarge(void)
{
	struct entry *old = entries;
	size_t old_room = room;

	room = room ? room * 2 : 256;
	entries = calloc(room, sizeof(*entries));
	if (!entries)
		abort();
	for (size_t i = 0; i < old_room; i++)
		if (old[i].host)
			*place(old[i].host) = old[i];
	free(old);
}

static void enter(struct entry entry)
{
	pthread_mutex_lock(&lock);
	if (count * 2 >= room)
		enlarge();
	if (!place(entry.host)->host)
		count++;
	*place(entry.host) = entry;
	pthread_mutex_unlock(&lock);
}

static bool look_up(const void *host, struct entry *entry)
{
	bool found = false;

	pthread_mutex_lock(&lock);
	if (room && host) {
		*entry = *place(host);
		found = entry->host != NULL;
	}
	pthread_mutex_unlock(&lock);
	return found;
}

CUfunction registry_kernel(const void *function)
{
	struct entry entry;

	return look_up(function, &entry) ? entry.kernel : NULL;
}

const char *registry_name(const void *function)
{
	CUfunction kernel = registry_kernel(function);

	return kernel ? sim_kernel_name(kernel) : NULL;
}

void *registry_variable(const void *symbol, size_t *bytes)
{
	struct entry *entry;
	void *device = NULL;

	pthread_mutex_lock(&lock);
	entry = room ? place(symbol) : NULL;
	if (entry && entry->host && !entry->kernel) {
		if (!entry->device)
			entry->device = sim_variable(entry->bytes);
		device = entry->device;
		*bytes = entry->bytes;
	}
	pthread_mutex_unlock(&lock);
	return device;
}

void **__cudaRegisterFatBinary(void *wrapper);
void __cudaRegisterFatBinaryEnd(void **handle);
void __cudaUnregisterFatBinary(void **handle);
void __cudaRegisterFunction(void **handle, const char *host, char *device, const char *name,
	int thread_limit, void *tid, void *bid, void *block, void *grid, int *warp_size);
void __cudaRegisterVar(void **handle, char *host, char *device, const char *name, int external,
	size_t bytes, int constant, int global);
char __cudaInitModule(void **handle);

SIM_EXPORT void **__cudaRegisterFatBinary(void *wrapper)
{
	const struct wrapper *fat = wrapper;
	struct binary *binary = calloc(1, sizeof(*binary));

	if (!binary)
		abort();
	binary->image = fat && fat->magic == FATBINC_MAGIC ? fat->data : NULL;
	binary->module = sim_module(binary->image);
	return (void **)binary;
}

SIM_EXPORT void __cudaRegisterFatBinaryEnd(void **handle)
{
	(void)handle;
}

/* What was registered stays known: the process is about to end. */
SIM_EXPORT void __cudaUnregisterFatBinary(void **handle)
{
	free(handle);
}

SIM_EXPORT void __cudaRegisterFunction(void **handle, const char *host, char *device,
	const char *name, int thread_limit, void *tid, void *bid, void *block, void *grid,
	int *warp_size)
{
	const struct binary *binary = (const void *)handle;
	CUfunction kernel = sim_get_kernel(binary->module, name);

	(void)device;
	(void)thread_limit;
	(void)tid;
	(void)bid;
	(void)block;
	(void)grid;
	(void)warp_size;
	/* A handle is the function's own address, and is looked up like the stub's. */
	enter((struct entry){ .host = host, .kernel = kernel });
	enter((struct entry){ .host = kernel, .kernel = kernel });
}

SIM_EXPORT void __cudaRegisterVar(void **handle, char *host, char *device, const char *name,
	int external, size_t bytes, int constant, int global)
{
	(void)handle;
	(void)device;
	(void)name;
	(void)external;
	(void)constant;
	(void)global;
	enter((struct entry){ .host = host, .bytes = bytes });
}

SIM_EXPORT char __cudaInitModule(void **handle)
{
	(void)handle;
	return 1;
}
