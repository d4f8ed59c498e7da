/*
 * Virtual memory management: address ranges, physical memory, and the mapping of one into the
 * other. What is refused, and when memory is free, is as cuda.h 13.0 says at each function
 * (tests/cudasim/README.md). All physical memory of the process is one sparse memory file, so that two mappings of a
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

struct reservation {
	uintptr_t address;
	size_t bytes;
	struct reservation *next;
};

static int file = -1;
static off_t file_end;
static struct reservation *reservations;

static bool is_multiple(size_t bytes)
{
	return bytes != 0 && bytes % GRANULARITY == 0;
}

/* The reservation that has the range, as a pointer to the one that points to it. NULL: none has. The
 * lock must be held. */
static struct reservation **reservation_of(uintptr_t address, size_t bytes)
{
	for (struct reservation **at = &reservations; *at; at = &(*at)->next)
		if (address >= (*at)->address && address - (*at)->address < (*at)->bytes &&
			bytes <= (*at)->bytes - (address - (*at)->address))
			return at;
	return NULL;
}

static void add_reservation(uintptr_t address, size_t bytes)
{
	struct reservation *made = zalloc(sizeof(*made));

	*made = (struct reservation){ .address = address, .bytes = bytes };
	core_lock();
	made->next = reservations;
	reservations = made;
	core_unlock();
}

CUresult address_reserve(void **address, size_t bytes, size_t alignment)
{
	size_t unit = alignment > GRANULARITY ? alignment : GRANULARITY;
	uintptr_t start, end;
	char *range;

	TRY(require_init());
	if (bytes == 0 || bytes % (size_t)sysconf(_SC_PAGESIZE) || (alignment & (alignment - 1)))
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
	add_reservation(start, bytes);
	*address = (void *)start;
	return CUDA_SUCCESS;
}

CUresult address_free(void *address, size_t bytes)
{
	struct reservation **at, *found = NULL;

	TRY(require_init());
	core_lock();
	at = reservation_of((uintptr_t)address, bytes);
	if (at && (*at)->address == (uintptr_t)address && (*at)->bytes == bytes &&
		!mapped_bytes(address, bytes)) {
		found = *at;
		*at = found->next;
	}
	core_unlock();
	if (!found)
		return CUDA_ERROR_INVALID_VALUE;
	free(found);
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

/* Whether the range is reserved and nothing is mapped there. */
static bool is_reserved_only(const void *address, size_t bytes)
{
	bool reserved;

	core_lock();
	reserved = reservation_of((uintptr_t)address, bytes) && !mapped_bytes(address, bytes);
	core_unlock();
	return reserved;
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
	if (!physical || physical->magic != PHYSICAL_MAGIC || !is_multiple(bytes) ||
		(uintptr_t)address % GRANULARITY || offset != 0 || bytes > physical->bytes ||
		!is_reserved_only(address, bytes))
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

/* Only whole mappings go, and all of the range must be mapped. */
CUresult physical_unmap(void *address, size_t bytes)
{
	uintptr_t at = (uintptr_t)address, end = at + bytes;
	struct block block;
	bool whole;

	TRY(require_init());
	core_lock();
	whole = bytes != 0 && mapped_bytes(address, bytes) == bytes && mapping_begins(at) &&
		mapping_ends(end);
	while (whole && at < end && block_remove((void *)at, &block)) {
		mmap((void *)at, block.bytes, PROT_NONE,
			MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
		physical_put(block.physical);
		at += block.bytes;
	}
	core_unlock();
	return whole ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult physical_access(void *address, size_t bytes, int prot)
{
	bool mapped;

	TRY(require_init());
	core_lock();
	mapped = bytes != 0 && mapped_bytes(address, bytes) == bytes;
	core_unlock();
	if (!mapped)
		return CUDA_ERROR_INVALID_VALUE;
	return mprotect(address, bytes, prot) == 0 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}
