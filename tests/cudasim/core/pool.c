/*
 * Memory pools: a pool reserves chunks of device memory and hands out pieces of them in stream
 * order. Since work takes effect when it is submitted, a freed piece may be used again at once.
 * What is reserved above the release threshold goes back to the device when the host synchronises.
 */
#include <stdlib.h>
#include <sys/mman.h>

#include "core/core.h"
#include "core/entry.h"

#define POOL_MAGIC 0x504f4f4cu
#define PIECE_UNIT 512                /* bytes */
#define CHUNK_UNIT ((size_t)32 << 20) /* bytes a pool reserves at a time */

struct piece {
	uintptr_t address;
	size_t bytes;
	bool used;
	struct piece *next; /* by address */
};

struct chunk {
	uintptr_t address;
	size_t bytes;
	struct piece *pieces;
	struct chunk *next;
};

struct pool {
	unsigned magic;
	int device;
	bool is_default;
	uint64_t threshold;
	uint64_t reserved, reserved_high;
	uint64_t used, used_high;
	int reuse[3]; /* the reuse attributes: kept, without effect */
	struct chunk *chunks;
	struct pool *next;
};

static struct pool *pools;
static struct pool *defaults[SIM_DEVICES_MAX];
static struct pool *currents[SIM_DEVICES_MAX];

/* The lock must be held. */
static struct pool *pool_new(int device)
{
	struct pool *pool = zalloc(sizeof(*pool));

	pool->magic = POOL_MAGIC;
	pool->device = device;
	pool->reuse[0] = pool->reuse[1] = pool->reuse[2] = 1;
	pool->next = pools;
	pools = pool;
	return pool;
}

static bool pool_valid(const struct pool *pool)
{
	return pool && pool->magic == POOL_MAGIC;
}

static CUresult check_device(int device)
{
	TRY(require_init());
	return device >= 0 && device < settings()->devices ? CUDA_SUCCESS
							   : CUDA_ERROR_INVALID_DEVICE;
}

CUresult pool_create(struct pool **pool, int device)
{
	TRY(check_device(device));
	core_lock();
	*pool = pool_new(device);
	core_unlock();
	return CUDA_SUCCESS;
}

CUresult pool_default(struct pool **pool, int device)
{
	TRY(check_device(device));
	core_lock();
	if (!defaults[device]) {
		defaults[device] = pool_new(device);
		defaults[device]->is_default = true;
	}
	*pool = defaults[device];
	core_unlock();
	return CUDA_SUCCESS;
}

CUresult pool_current(struct pool **pool, int device)
{
	TRY(pool_default(pool, device));
	core_lock();
	if (currents[device])
		*pool = currents[device];
	core_unlock();
	return CUDA_SUCCESS;
}

CUresult pool_set_current(struct pool *pool, int device)
{
	TRY(check_device(device));
	if (!pool_valid(pool) || pool->device != device)
		return CUDA_ERROR_INVALID_VALUE;
	core_lock();
	currents[device] = pool;
	core_unlock();
	return CUDA_SUCCESS;
}

/* A chunk that holds at least `bytes`; NULL: the device has no room. The lock must be held. */
static struct chunk *chunk_reserve(struct pool *pool, size_t bytes)
{
	struct chunk *chunk;
	void *pages;

	if (!memory_charge(pool->device, bytes))
		return NULL;
	pages = pages_map(bytes);
	if (!pages) {
		memory_discharge(pool->device, bytes);
		return NULL;
	}
	chunk = zalloc(sizeof(*chunk));
	chunk->address = (uintptr_t)pages;
	chunk->bytes = bytes;
	chunk->pieces = zalloc(sizeof(*chunk->pieces));
	chunk->pieces->address = chunk->address;
	chunk->pieces->bytes = bytes;
	chunk->next = pool->chunks;
	pool->chunks = chunk;
	pool->reserved += bytes;
	if (pool->reserved > pool->reserved_high)
		pool->reserved_high = pool->reserved;
	return chunk;
}

/* The smallest free piece that is large enough. */
static struct piece *piece_find(const struct pool *pool, size_t bytes)
{
	struct piece *best = NULL;

	for (const struct chunk *c = pool->chunks; c; c = c->next)
		for (struct piece *p = c->pieces; p; p = p->next)
			if (!p->used && p->bytes >= bytes && (!best || p->bytes < best->bytes))
				best = p;
	return best;
}

static void piece_split(struct piece *piece, size_t bytes)
{
	struct piece *rest;

	if (piece->bytes == bytes)
		return;
	rest = zalloc(sizeof(*rest));
	rest->address = piece->address + bytes;
	rest->bytes = piece->bytes - bytes;
	rest->next = piece->next;
	piece->bytes = bytes;
	piece->next = rest;
}

static size_t round_up(size_t bytes, size_t unit)
{
	return (bytes + unit - 1) / unit * unit;
}

/* The lock must be held. */
static struct piece *piece_take(struct pool *pool, size_t bytes)
{
	size_t rounded = round_up(bytes, PIECE_UNIT);
	struct piece *piece = piece_find(pool, rounded);

	if (!piece && (chunk_reserve(pool, round_up(rounded, CHUNK_UNIT)) ||
			      chunk_reserve(pool, round_up(rounded, GRANULARITY))))
		piece = piece_find(pool, rounded);
	if (!piece)
		return NULL;
	piece_split(piece, rounded);
	piece->used = true;
	pool->used += rounded;
	if (pool->used > pool->used_high)
		pool->used_high = pool->used;
	return piece;
}

CUresult pool_alloc(struct pool *pool, void **address, size_t bytes, struct sim_stream *stream)
{
	struct block block = {
		.bytes = bytes,
		.owner = BLOCK_POOL,
		.kind = SIM_MEMORY_DEVICE,
		.pool = pool,
		.context = stream->context,
	};
	struct piece *piece;

	TRY(capture_forbids_stream(stream));
	if (!pool_valid(pool) || bytes == 0)
		return CUDA_ERROR_INVALID_VALUE;
	if (bytes > SIZE_MAX - CHUNK_UNIT || allocation_fails())
		return CUDA_ERROR_OUT_OF_MEMORY;
	core_lock();
	piece = piece_take(pool, bytes);
	if (piece) {
		block.address = piece->address;
		block.device = pool->device;
		block_add(&block);
	}
	core_unlock();
	if (!piece)
		return CUDA_ERROR_OUT_OF_MEMORY;
	*address = (void *)block.address;
	tell_block(&block, false, stream);
	return CUDA_SUCCESS;
}

/* Neighbours that are free become one. */
static void merge(struct piece *piece)
{
	for (; piece; piece = piece->next) {
		while (!piece->used && piece->next && !piece->next->used) {
			struct piece *gone = piece->next;

			piece->bytes += gone->bytes;
			piece->next = gone->next;
			free(gone);
		}
	}
}

void pool_return(struct pool *pool, uintptr_t address)
{
	for (struct chunk *c = pool->chunks; c; c = c->next) {
		if (address - c->address >= c->bytes)
			continue;
		for (struct piece *p = c->pieces; p; p = p->next) {
			if (p->address != address)
				continue;
			p->used = false;
			pool->used -= p->bytes;
			break;
		}
		merge(c->pieces);
		return;
	}
}

CUresult pool_free(void *address, struct sim_stream *stream)
{
	struct block block;
	bool found;

	TRY(capture_forbids_stream(stream));
	if (!address)
		return CUDA_SUCCESS;
	if (!block_find(address, &block) || block.owner != BLOCK_POOL ||
		block.address != (uintptr_t)address)
		return CUDA_ERROR_INVALID_VALUE;
	core_lock();
	found = block_remove(address, &block);
	if (found)
		pool_return(block.pool, block.address);
	core_unlock();
	if (!found)
		return CUDA_ERROR_INVALID_VALUE;
	tell_block(&block, true, stream);
	return CUDA_SUCCESS;
}

static bool chunk_unused(const struct chunk *chunk)
{
	return !chunk->pieces->used && !chunk->pieces->next;
}

/* Gives back unused chunks until at most `keep` bytes are reserved. The lock must be held. */
static void pool_shrink(struct pool *pool, uint64_t keep)
{
	struct chunk **at = &pool->chunks;

	while (*at && pool->reserved > keep) {
		struct chunk *chunk = *at;

		if (!chunk_unused(chunk)) {
			at = &chunk->next;
			continue;
		}
		*at = chunk->next;
		pool->reserved -= chunk->bytes;
		memory_discharge(pool->device, chunk->bytes);
		munmap((void *)chunk->address, chunk->bytes);
		free(chunk->pieces);
		free(chunk);
	}
}

CUresult pool_trim(struct pool *pool, size_t keep)
{
	if (!pool_valid(pool))
		return CUDA_ERROR_INVALID_VALUE;
	core_lock();
	pool_shrink(pool, keep);
	core_unlock();
	return CUDA_SUCCESS;
}

void pools_relax(void)
{
	core_lock();
	for (struct pool *pool = pools; pool; pool = pool->next)
		pool_shrink(pool, pool->threshold);
	core_unlock();
}

/* A pool with memory in use stays until that is freed: it is only forgotten, as its pieces still
 * name it. */
CUresult pool_destroy(struct pool *pool)
{
	if (!pool_valid(pool) || pool->is_default)
		return CUDA_ERROR_INVALID_VALUE;
	core_lock();
	pool->magic = 0;
	pool->threshold = 0;
	if (currents[pool->device] == pool)
		currents[pool->device] = NULL;
	pool_shrink(pool, 0);
	core_unlock();
	return CUDA_SUCCESS;
}

void pool_describe(const struct pool *pool, struct sim_memory *memory)
{
	memory->pool = (uint64_t)(uintptr_t)pool;
	memory->pool_reserved = pool->reserved;
	memory->pool_used = pool->used;
	memory->pool_threshold = pool->threshold;
}

/* The counters an attribute names, NULL: it is another. */
static uint64_t *counter_of(struct pool *pool, CUmemPool_attribute attribute)
{
	switch (attribute) {
	case CU_MEMPOOL_ATTR_RELEASE_THRESHOLD:
		return &pool->threshold;
	case CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT:
		return &pool->reserved;
	case CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH:
		return &pool->reserved_high;
	case CU_MEMPOOL_ATTR_USED_MEM_CURRENT:
		return &pool->used;
	case CU_MEMPOOL_ATTR_USED_MEM_HIGH:
		return &pool->used_high;
	default:
		return NULL;
	}
}

static bool is_reuse(CUmemPool_attribute attribute)
{
	return attribute >= CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES &&
	       attribute <= CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES;
}

CUresult pool_get(struct pool *pool, CUmemPool_attribute attribute, void *value)
{
	const uint64_t *counter;

	if (!pool_valid(pool))
		return CUDA_ERROR_INVALID_VALUE;
	counter = counter_of(pool, attribute);
	if (!counter && !is_reuse(attribute))
		return CUDA_ERROR_INVALID_VALUE;
	core_lock();
	if (counter)
		*(uint64_t *)value = *counter;
	else
		*(int *)value = pool->reuse[attribute - 1];
	core_unlock();
	return CUDA_SUCCESS;
}

/* Of the counters only the high-water marks may be set, and only to 0. */
CUresult pool_set(struct pool *pool, CUmemPool_attribute attribute, const void *value)
{
	bool high = attribute == CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH ||
		    attribute == CU_MEMPOOL_ATTR_USED_MEM_HIGH;
	CUresult result = CUDA_SUCCESS;

	if (!pool_valid(pool))
		return CUDA_ERROR_INVALID_VALUE;
	core_lock();
	if (attribute == CU_MEMPOOL_ATTR_RELEASE_THRESHOLD)
		pool->threshold = *(const uint64_t *)value;
	else if (is_reuse(attribute))
		pool->reuse[attribute - 1] = *(const int *)value;
	else if (high && *(const uint64_t *)value == 0)
		*counter_of(pool, attribute) = 0;
	else
		result = CUDA_ERROR_INVALID_VALUE;
	core_unlock();
	return result;
}
