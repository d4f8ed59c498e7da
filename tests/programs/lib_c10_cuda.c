/* SPDX-License-Identifier: MIT
 * lib_c10_cuda: a model of PyTorch's caching allocator, as far as it can be seen from outside:
 * blocks of 512 bytes, segments of 2 MiB from cudaMalloc that are kept and used again, given back
 * when memory is short; a lock of each device; a report of every block under that lock. What it
 * reports it also writes down, in the same order.
 */
#include <inttypes.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#define DEVICES 2
#define BLOCKS 4096
#define SEGMENT ((size_t)2 << 20)

struct device {
	int8_t type, index;
};

/* Of the CUDA runtime, which the program brings. */
int cudaMalloc(void **address, size_t bytes);
int cudaFree(void *address);
int cudaMallocAsync(void **address, size_t bytes, void *stream);
int cudaFreeAsync(void *address, void *stream);
int cudaSetDevice(int device);

/* Of libc10. */
void _ZN3c1027reportMemoryUsageToProfilerEPvlmmNS_6DeviceE(
	void *address, int64_t bytes, size_t allocated, size_t reserved, struct device device);
void _ZN3c1027reportMemoryUsageToProfilerEPvlllNS_6DeviceE(
	void *address, int64_t bytes, int64_t allocated, int64_t reserved, struct device device);
void _ZN3c1027reportOutOfMemoryToProfilerElmmNS_6DeviceE(
	int64_t bytes, size_t allocated, size_t reserved, struct device device);
void _ZN3c1027reportOutOfMemoryToProfilerElllNS_6DeviceE(
	int64_t bytes, int64_t allocated, int64_t reserved, struct device device);
void reports_received(void);

enum manner { MANNER_NATIVE, MANNER_OLD /* 1.13 */, MANNER_ASYNC, MANNER_SILENT };

struct block { /* the whole of a segment */
	void *address;
	size_t bytes, segment; /* bytes 0: free; segment 0: nothing here */
};

static struct cache {
	pthread_mutex_t lock;
	size_t allocated, reserved;
	struct block blocks[BLOCKS];
} caches[DEVICES] = { { .lock = PTHREAD_MUTEX_INITIALIZER },
	{ .lock = PTHREAD_MUTEX_INITIALIZER } };

static enum manner manner;
static FILE *list;

void model_begin(const char *path, int how)
{
	list = fopen(path, "we");
	if (!list)
		abort();
	manner = (enum manner)how;
}

void model_end(void)
{
	if (fclose(list))
		abort();
	reports_received();
}

static void note(const char *kind, const void *address, int64_t bytes, int index)
{
	fprintf(list,
		"{\"kind\": \"%s\", \"tid\": %ld, \"address\": %" PRIuPTR ", \"bytes\": %" PRId64
		", \"allocated\": %zu, \"reserved\": %zu, \"device\": %d}\n",
		kind, syscall(SYS_gettid), (uintptr_t)address, bytes, caches[index].allocated,
		caches[index].reserved, index);
}

static void report(void *address, int64_t bytes, int index)
{
	const struct device device = { 1, (int8_t)index };
	const struct cache *cache = &caches[index];

	if (manner == MANNER_SILENT)
		return;
	note("tensor", address, bytes, index);
	if (manner == MANNER_OLD)
		_ZN3c1027reportMemoryUsageToProfilerEPvlllNS_6DeviceE(address, bytes,
			(int64_t)cache->allocated, (int64_t)cache->reserved, device);
	else
		_ZN3c1027reportMemoryUsageToProfilerEPvlmmNS_6DeviceE(
			address, bytes, cache->allocated, cache->reserved, device);
}

static void report_exhausted(size_t bytes, int index)
{
	const struct device device = { 1, (int8_t)index };
	const struct cache *cache = &caches[index];

	if (manner == MANNER_SILENT)
		return;
	note("oom", NULL, (int64_t)bytes, index);
	if (manner == MANNER_OLD)
		_ZN3c1027reportOutOfMemoryToProfilerElllNS_6DeviceE((int64_t)bytes,
			(int64_t)cache->allocated, (int64_t)cache->reserved, device);
	else
		_ZN3c1027reportOutOfMemoryToProfilerElmmNS_6DeviceE(
			(int64_t)bytes, cache->allocated, cache->reserved, device);
}

static void empty(struct cache *cache)
{
	for (int i = 0; i < BLOCKS; i++) {
		struct block *block = &cache->blocks[i];

		if (!block->segment || block->bytes)
			continue;
		cudaFree(block->address);
		cache->reserved -= block->segment;
		block->segment = 0;
	}
}

/* A free block of that segment's size, or a new one. NULL: there is no memory. */
static struct block *find_block(struct cache *cache, size_t segment)
{
	struct block *unused = NULL;

	for (int i = BLOCKS - 1; i >= 0; i--) {
		struct block *block = &cache->blocks[i];

		if (block->segment == segment && !block->bytes)
			return block;
		if (!block->segment)
			unused = block;
	}
	if (!unused)
		abort();
	if (cudaMalloc(&unused->address, segment)) {
		empty(cache);
		if (cudaMalloc(&unused->address, segment))
			return NULL;
	}
	unused->segment = segment;
	cache->reserved += segment;
	return unused;
}

void *model_malloc(size_t bytes, int index)
{
	const size_t rounded = (bytes + 511) / 512 * 512,
		     segment = (rounded + SEGMENT - 1) / SEGMENT * SEGMENT;
	struct cache *cache = &caches[index];
	struct block *block;
	void *address = NULL;

	cudaSetDevice(index);
	if (manner == MANNER_ASYNC)
		return cudaMallocAsync(&address, bytes, NULL) ? NULL : address;
	pthread_mutex_lock(&cache->lock);
	block = find_block(cache, segment);
	if (block) {
		block->bytes = rounded;
		cache->allocated += rounded;
		report(address = block->address, (int64_t)rounded, index);
	} else {
		report_exhausted(bytes, index);
	}
	pthread_mutex_unlock(&cache->lock);
	return address;
}

void model_free(void *address, int index)
{
	struct cache *cache = &caches[index];

	if (manner == MANNER_ASYNC) {
		cudaFreeAsync(address, NULL);
		return;
	}
	pthread_mutex_lock(&cache->lock);
	for (int i = 0; i < BLOCKS; i++) {
		struct block *block = &cache->blocks[i];
		const int64_t bytes = (int64_t)block->bytes;

		if (!block->segment || block->address != address)
			continue;
		block->bytes = 0;
		cache->allocated -= (size_t)bytes;
		report(address, -bytes, index);
	}
	pthread_mutex_unlock(&cache->lock);
}

/* As libc10's own allocator of the CPU does while a profiler is at work. */
void model_cpu(size_t bytes)
{
	const struct device device = { 0, -1 };

	_ZN3c1027reportMemoryUsageToProfilerEPvlmmNS_6DeviceE(
		(void *)16, (int64_t)bytes, bytes, 0, device);
}
