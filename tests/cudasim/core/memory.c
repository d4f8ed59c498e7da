/* What lies behind addresses: one sorted table of blocks, and each device's capacity. */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "core/core.h"
#include "core/entry.h"

static struct block *blocks; /* by address */
static size_t count, room;
static size_t used[SIM_DEVICES_MAX];
static uint64_t allocations; /* of device memory, for SIM_FAIL_MALLOC */

/* The index after the last block that begins at or before the address. */
static size_t position(uintptr_t address)
{
	size_t low = 0, high = count;

	while (low < high) {
		size_t middle = (low + high) / 2;

		if (blocks[middle].address <= address)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

void block_add(const struct block *block)
{
	size_t at = position(block->address);

	if (count == room) {
		room = room ? room * 2 : 256;
		blocks = grow(blocks, room * sizeof(*blocks));
	}
	memmove(blocks + at + 1, blocks + at, (count - at) * sizeof(*blocks));
	blocks[at] = *block;
	count++;
	if (block->kind == SIM_MEMORY_DEVICE || block->kind == SIM_MEMORY_DEVICE_STATIC)
		arguments_know(block->address, block->bytes);
}

bool block_remove(const void *address, struct block *block)
{
	size_t at = position((uintptr_t)address);

	if (at == 0 || blocks[at - 1].address != (uintptr_t)address)
		return false;
	*block = blocks[at - 1];
	memmove(blocks + at - 1, blocks + at, (count - at) * sizeof(*blocks));
	count--;
	values_forget((const void *)block->address, block->bytes);
	return true;
}

/* The block that holds the address, NULL: none. The lock must be held. */
static const struct block *holder(uintptr_t address)
{
	size_t at = position(address);

	if (at == 0 || address - blocks[at - 1].address >= blocks[at - 1].bytes)
		return NULL;
	return &blocks[at - 1];
}

bool block_find(const void *address, struct block *block)
{
	const struct block *found;

	core_lock();
	found = holder((uintptr_t)address);
	if (found)
		*block = *found;
	core_unlock();
	return found != NULL;
}

void blocks_of_physical(
	const struct physical *physical, void (*visit)(const void *address, size_t bytes))
{
	for (size_t i = 0; i < count; i++)
		if (blocks[i].owner == BLOCK_MAPPED && blocks[i].physical == physical)
			visit((const void *)blocks[i].address, blocks[i].bytes);
}

static bool is_mapping(const struct block *block)
{
	return block && block->owner == BLOCK_MAPPED;
}

size_t mapped_bytes(const void *address, size_t bytes)
{
	const uintptr_t begin = (uintptr_t)address, end = begin + bytes;
	size_t at = position(begin), mapped = 0;

	for (at = at ? at - 1 : 0; at < count && blocks[at].address < end; at++) {
		const uintptr_t block_end = blocks[at].address + blocks[at].bytes,
				from = blocks[at].address > begin ? blocks[at].address : begin,
				to = block_end < end ? block_end : end;

		if (blocks[at].owner == BLOCK_MAPPED && to > from)
			mapped += to - from;
	}
	return mapped;
}

bool mapping_begins(uintptr_t address)
{
	const struct block *block = holder(address);

	return is_mapping(block) && block->address == address;
}

bool mapping_ends(uintptr_t address)
{
	const struct block *block = holder(address - 1);

	return is_mapping(block) && block->address + block->bytes == address;
}

/* Mapped pieces may lie side by side and count as one. */
bool range_valid(const void *address, size_t bytes)
{
	uintptr_t at = (uintptr_t)address, end = at + bytes;
	const struct block *block;

	core_lock();
	block = holder(at);
	while (block && block->address + block->bytes < end) {
		at = block->address + block->bytes;
		block = holder(at);
	}
	core_unlock();
	return block || at == (uintptr_t)address;
}

/* Bytes of the capacity that neither this process nor another one (SIM_OTHER) holds. */
static size_t memory_left(int device)
{
	const size_t held = used[device] + settings()->other;

	return held < settings()->memory ? settings()->memory - held : 0;
}

bool memory_charge(int device, size_t bytes)
{
	if (bytes > memory_left(device))
		return false;
	used[device] += bytes;
	return true;
}

void memory_discharge(int device, size_t bytes)
{
	used[device] -= bytes;
}

void memory_info(int device, size_t *free_bytes, size_t *total_bytes)
{
	core_lock();
	*free_bytes = memory_left(device);
	core_unlock();
	*total_bytes = settings()->memory;
}

SIM_EXPORT size_t sim_device_memory(void)
{
	return settings()->memory;
}

SIM_EXPORT size_t sim_device_used(int device)
{
	size_t available, total;

	memory_info(device, &available, &total);
	return total - available;
}

SIM_EXPORT size_t sim_process_used(int device)
{
	size_t bytes;

	core_lock();
	bytes = used[device];
	core_unlock();
	return bytes;
}

bool allocation_fails(void)
{
	uint64_t number = __atomic_add_fetch(&allocations, 1, __ATOMIC_RELAXED);

	return settings()->fail_malloc != 0 && number == settings()->fail_malloc;
}

void *pages_map(size_t bytes)
{
	void *pages = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
		MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (pages == MAP_FAILED)
		return NULL;
	madvise(pages, bytes, MADV_DONTFORK);
	return pages;
}

void tell_block(const struct block *block, bool release, const struct sim_stream *stream)
{
	struct sim_memory memory = {
		.release = release,
		.kind = block->kind,
		.address = block->address,
		.bytes = block->bytes,
		.time_ns = sim_time_ns(),
		.correlation = current_correlation(),
		.device = (uint32_t)block->device,
		.context = sim_context_id(block->context),
		.stream = stream ? stream->id : SIM_NO_STREAM,
		.async = stream != NULL,
	};

	if (block->pool) {
		core_lock();
		pool_describe(block->pool, &memory);
		core_unlock();
	}
	log_line("%s device=%d kind=%d bytes=%zu address=%#zx\n", release ? "free" : "alloc",
		block->device, (int)block->kind, block->bytes, (size_t)block->address);
	tell_memory(&memory);
}

static size_t round_up(size_t bytes, size_t unit)
{
	return (bytes + unit - 1) / unit * unit;
}

static enum sim_memory_kind kind_of(enum block_owner owner)
{
	switch (owner) {
	case BLOCK_MANAGED:
		return SIM_MEMORY_MANAGED;
	case BLOCK_ARRAY:
		return SIM_MEMORY_ARRAY;
	case BLOCK_HOST:
	case BLOCK_REGISTERED:
		return SIM_MEMORY_PINNED;
	case BLOCK_STATIC:
		return SIM_MEMORY_DEVICE_STATIC;
	default:
		return SIM_MEMORY_DEVICE;
	}
}

/* Managed memory may exceed the device's; it holds nothing of it. */
static CUresult block_map(struct block *block)
{
	size_t bytes = round_up(block->bytes, GRANULARITY);
	void *pages = NULL;
	bool charged = true;

	block->held = block->owner == BLOCK_MANAGED ? 0 : bytes;
	core_lock();
	charged = memory_charge(block->device, block->held);
	if (charged)
		pages = pages_map(bytes);
	if (pages) {
		block->address = (uintptr_t)pages;
		block_add(block);
	} else if (charged) {
		memory_discharge(block->device, block->held);
	}
	core_unlock();
	return pages ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult memory_alloc(void **address, size_t bytes, enum block_owner owner)
{
	struct block block = { .bytes = bytes, .owner = owner, .kind = kind_of(owner) };

	TRY(require_context(&block.context));
	TRY(capture_permits_unsafe());
	if (bytes == 0)
		return CUDA_ERROR_INVALID_VALUE;
	if (owner != BLOCK_MANAGED && allocation_fails())
		return CUDA_ERROR_OUT_OF_MEMORY;
	if (bytes > SIZE_MAX - GRANULARITY)
		return CUDA_ERROR_OUT_OF_MEMORY;
	block.device = block.context->device;
	TRY(block_map(&block));
	*address = (void *)block.address;
	tell_block(&block, false, NULL);
	return CUDA_SUCCESS;
}

void *memory_static(size_t bytes)
{
	struct block block = {
		.bytes = bytes,
		.owner = BLOCK_STATIC,
		.kind = SIM_MEMORY_DEVICE_STATIC,
	};
	void *pages = pages_map(round_up(bytes, GRANULARITY));

	if (!pages)
		return NULL;
	block.address = (uintptr_t)pages;
	core_lock();
	block_add(&block);
	core_unlock();
	return pages;
}

static bool may_free(enum block_owner block, enum block_owner asked)
{
	if (asked == BLOCK_MALLOC)
		return block == BLOCK_MALLOC || block == BLOCK_MANAGED || block == BLOCK_POOL;
	return block == asked;
}

/* Takes the block out of the table, and its memory away. The lock must be held. */
static void block_unmap(const struct block *block)
{
	if (block->owner == BLOCK_POOL) {
		pool_return(block->pool, block->address);
		return;
	}
	memory_discharge(block->device, block->held);
	values_forget((const void *)block->address, block->bytes);
	munmap((void *)block->address, round_up(block->bytes, GRANULARITY));
}

CUresult memory_free(void *address, enum block_owner owner)
{
	struct sim_context *context;
	struct block block;
	bool found;

	TRY(require_context(&context));
	if (!address)
		return CUDA_SUCCESS;
	TRY(capture_permits_unsafe());
	if (!block_find(address, &block) || !may_free(block.owner, owner))
		return CUDA_ERROR_INVALID_VALUE;
	context_wait(context);
	core_lock();
	found = block_remove(address, &block);
	if (found)
		block_unmap(&block);
	core_unlock();
	if (!found)
		return CUDA_ERROR_INVALID_VALUE;
	tell_block(&block, true, NULL);
	return CUDA_SUCCESS;
}

/* The memory file of vmm.c and what the host allocated are not ours to give back. */
static bool is_plain(const void *address)
{
	struct block block;

	return block_find(address, &block) &&
	       (block.owner == BLOCK_MALLOC || block.owner == BLOCK_POOL);
}

void memory_zero(void *address, size_t bytes)
{
	uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
	uintptr_t start = (uintptr_t)address, end = start + bytes;
	uintptr_t first = (start + page - 1) / page * page, last = end / page * page;

	if (bytes < GRANULARITY || !is_plain(address) ||
		madvise((void *)first, last - first, MADV_DONTNEED) != 0) {
		memset(address, 0, bytes);
		return;
	}
	memset(address, 0, first - start);
	memset((void *)last, 0, end - last);
}

static size_t page_round(size_t bytes)
{
	return round_up(bytes, (size_t)sysconf(_SC_PAGESIZE));
}

CUresult host_alloc(void **address, size_t bytes, unsigned flags)
{
	struct block block = {
		.bytes = bytes,
		.owner = BLOCK_HOST,
		.kind = SIM_MEMORY_PINNED,
		.flags = flags,
	};
	void *pages;

	TRY(require_context(&block.context));
	TRY(capture_permits_unsafe());
	if (bytes == 0)
		return CUDA_ERROR_INVALID_VALUE;
	pages = mmap(NULL, page_round(bytes), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
		-1, 0);
	if (pages == MAP_FAILED)
		return CUDA_ERROR_OUT_OF_MEMORY;
	block.address = (uintptr_t)pages;
	block.device = block.context->device;
	core_lock();
	block_add(&block);
	core_unlock();
	*address = pages;
	tell_block(&block, false, NULL);
	return CUDA_SUCCESS;
}

CUresult host_free(void *address)
{
	struct sim_context *context;
	struct block block;
	bool found;

	TRY(require_context(&context));
	if (!address)
		return CUDA_SUCCESS;
	if (!block_find(address, &block) || block.owner != BLOCK_HOST)
		return CUDA_ERROR_INVALID_VALUE;
	context_wait(context);
	core_lock();
	found = block_remove(address, &block);
	core_unlock();
	if (!found)
		return CUDA_ERROR_INVALID_VALUE;
	munmap((void *)block.address, page_round(block.bytes));
	tell_block(&block, true, NULL);
	return CUDA_SUCCESS;
}

CUresult host_register(void *address, size_t bytes, unsigned flags)
{
	struct block block = {
		.address = (uintptr_t)address,
		.bytes = bytes,
		.owner = BLOCK_REGISTERED,
		.kind = SIM_MEMORY_PINNED,
		.flags = flags,
	};
	bool taken;

	TRY(require_context(&block.context));
	if (!address || bytes == 0)
		return CUDA_ERROR_INVALID_VALUE;
	core_lock();
	taken = holder(block.address) || holder(block.address + bytes - 1);
	if (!taken)
		block_add(&block);
	core_unlock();
	return taken ? CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED : CUDA_SUCCESS;
}

CUresult host_unregister(void *address)
{
	struct block block;
	bool found;

	if (!block_find(address, &block) || block.owner != BLOCK_REGISTERED)
		return CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED;
	core_lock();
	found = block_remove(address, &block);
	core_unlock();
	return found ? CUDA_SUCCESS : CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED;
}

/* Host memory, pools and mappings outlive a context. */
static bool dies_with_context(const struct block *block, const struct sim_context *context)
{
	return block->context == context &&
	       (block->owner == BLOCK_MALLOC || block->owner == BLOCK_MANAGED ||
		       block->owner == BLOCK_ARRAY);
}

void memory_release_context(struct sim_context *context)
{
	size_t kept = 0;

	for (size_t i = 0; i < count; i++) {
		if (dies_with_context(&blocks[i], context))
			block_unmap(&blocks[i]);
		else
			blocks[kept++] = blocks[i];
	}
	count = kept;
}
