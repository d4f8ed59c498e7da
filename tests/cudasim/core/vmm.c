/*
 * Virtual memory management: address ranges, physical memory, and the mapping of one into the
 * other. All physical memory of the process is one sparse memory file, so that two mappings of a
 * handle show the same bytes; an offset is used once and its pages are given back on release.
 */
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "core/core.h"
#include "core/entry.h"

#define PHYSICAL_MAGIC 0x50485953u

struct physical {
	unsigned magic;
	int device;
	size_t bytes;
	off_t offset;
	unsigned references; /* the handle's and its mappings' */
};

static int file = -1;
static off_t file_end;

static bool is_multiple(size_t bytes)
{
	return bytes != 0 && bytes % GRANULARITY == 0;
}

CUresult address_reserve(void **address, size_t bytes, size_t alignment)
{
	size_t unit = alignment > GRANULARITY ? alignment : GRANULARITY;
	uintptr_t start, end;
	char *range;

	TRY(require_init());
	if (!is_multiple(bytes) || (alignment & (alignment - 1)))
		return CUDA_ERROR_INVALID_VALUE;
	range = mmap(
		NULL, bytes + unit, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (range == MAP_FAILED)
		return CUDA_ERROR_OUT_OF_MEMORY;
	start = ((uintptr_t)range + unit - 1) / unit * unit;
	end = start + bytes;
	if (start > (uintptr_t)range)
		munmap(range, start - (uintptr_t)range);
	munmap((void *)end, (uintptr_t)range + bytes + unit - end);
	*address = (void *)start;
	return CUDA_SUCCESS;
}

CUresult address_free(void *address, size_t bytes)
{
	TRY(require_init());
	if (!address || !is_multiple(bytes))
		return CUDA_ERROR_INVALID_VALUE;
	return munmap(address, bytes) == 0 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

/* Takes the next `bytes` of the memory file. The lock must be held. */
static bool file_extend(size_t bytes, off_t *offset)
{
	if (file < 0)
		file = memfd_create("cudasim", MFD_CLOEXEC);
	if (file < 0 || ftruncate(file, file_end + (off_t)bytes) != 0)
		return false;
	*offset = file_end;
	file_end += (off_t)bytes;
	return true;
}

CUresult physical_create(struct physical **physical, size_t bytes, int device)
{
	struct physical *made;
	bool room;

	TRY(require_init());
	if (!is_multiple(bytes) || device < 0 || device >= settings()->devices)
		return CUDA_ERROR_INVALID_VALUE;
	if (allocation_fails())
		return CUDA_ERROR_OUT_OF_MEMORY;
	made = zalloc(sizeof(*made));
	*made = (struct physical){
		.magic = PHYSICAL_MAGIC,
		.device = device,
		.bytes = bytes,
		.references = 1,
	};
	core_lock();
	room = memory_charge(device, bytes);
	if (room && !file_extend(bytes, &made->offset)) {
		memory_discharge(device, bytes);
		room = false;
	}
	core_unlock();
	if (!room) {
		free(made);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	*physical = made;
	log_line("create device=%d bytes=%zu\n", device, bytes);
	return CUDA_SUCCESS;
}

/* One reference less. The lock must be held. */
static void physical_put(struct physical *physical)
{
	if (--physical->references > 0)
		return;
	memory_discharge(physical->device, physical->bytes);
	fallocate(file, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, physical->offset,
		(off_t)physical->bytes);
	physical->magic = 0;
	free(physical);
}

CUresult physical_retain(struct physical **physical, const void *address)
{
	struct block block;

	if (!block_find(address, &block) || block.owner != BLOCK_MAPPED)
		return CUDA_ERROR_INVALID_VALUE;
	core_lock();
	block.physical->references++;
	core_unlock();
	*physical = block.physical;
	return CUDA_SUCCESS;
}

CUresult physical_release(struct physical *physical)
{
	TRY(require_init());
	if (!physical || physical->magic != PHYSICAL_MAGIC)
		return CUDA_ERROR_INVALID_VALUE;
	log_line("release device=%d bytes=%zu\n", physical->device, physical->bytes);
	core_lock();
	physical_put(physical);
	core_unlock();
	return CUDA_SUCCESS;
}

CUresult physical_map(struct physical *physical, void *address, size_t bytes, size_t offset)
{
	struct block block = {
		.address = (uintptr_t)address,
		.bytes = bytes,
		.owner = BLOCK_MAPPED,
		.kind = SIM_MEMORY_DEVICE,
		.physical = physical,
	};
	void *mapped;

	TRY(require_init());
	if (!physical || physical->magic != PHYSICAL_MAGIC || !address || !is_multiple(bytes) ||
		offset > physical->bytes || bytes > physical->bytes - offset)
		return CUDA_ERROR_INVALID_VALUE;
	block.device = physical->device;
	mapped = mmap(address, bytes, PROT_NONE, MAP_SHARED | MAP_FIXED | MAP_NORESERVE, file,
		physical->offset + (off_t)offset);
	if (mapped == MAP_FAILED)
		return CUDA_ERROR_INVALID_VALUE;
	madvise(address, bytes, MADV_DONTFORK);
	core_lock();
	physical->references++;
	block_add(&block);
	/* Seen at two addresses, its bytes are known at both. */
	if (physical->references > 2)
		blocks_of_physical(physical, values_write);
	core_unlock();
	return CUDA_SUCCESS;
}

/* Only whole mappings go, as in reality. */
CUresult physical_unmap(void *address, size_t bytes)
{
	uintptr_t at = (uintptr_t)address, end = at + bytes;
	CUresult result = CUDA_SUCCESS;

	TRY(require_init());
	core_lock();
	while (at < end && result == CUDA_SUCCESS) {
		struct block block;

		if (!block_remove((void *)at, &block) || block.owner != BLOCK_MAPPED) {
			result = CUDA_ERROR_INVALID_VALUE;
			continue;
		}
		mmap((void *)at, block.bytes, PROT_NONE,
			MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
		physical_put(block.physical);
		at += block.bytes;
	}
	core_unlock();
	return result;
}

CUresult physical_access(void *address, size_t bytes, int prot)
{
	TRY(require_init());
	return mprotect(address, bytes, prot) == 0 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}
