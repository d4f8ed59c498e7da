/* SPDX-License-Identifier: MIT
 * One mapping is cut into at most 8192 slots, with one bit for each free one. The lowest free slot
 * is used, so that the same few are reused. Only as many take memory as were ever in use at once.
 *
 * How much of a slot is handed out follows the rate of requests. While the GPU is busy, CUPTI
 * completes a buffer only when it is full (cuptiActivityFlushAll returns no buffer with an
 * incomplete record). So a buffer should fill in about a tenth of a second, with short kernels and
 * with long ones:
 *
 *   time since the last request   the next buffer is
 *   less than 50 ms               twice as large, up to the whole slot
 *   more than 200 ms              half as large, down to 8 KiB (about 37 kernels)
 */
#include "collector/cupti/buffers.h"

#include "collector/process/clock.h"

#include <stdatomic.h>
#include <sys/mman.h>

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif

#define BUFFER_MIN_BYTES (UINT64_C(128) << 10)
#define BUFFERS_MAX 8192u
#define BUFFERS_MIN 2u
#define PREFAULT_AHEAD 4u
#define SCRATCH_BYTES (UINT64_C(1) << 20)
#define SMALLEST_BYTES (UINT64_C(8) << 10)
#define FAST_REQUEST_NS UINT64_C(50000000)
#define SLOW_REQUEST_NS UINT64_C(200000000)

static uint8_t *buffer_memory, *scratch;
static uint64_t buffer_bytes; /* of a slot */
static _Atomic uint64_t next_bytes, requested_ns;
static uint32_t buffer_count, prefaulted; /* number of buffers whose pages are present */
static _Atomic uint32_t highest_used;
static _Atomic uint64_t free_bits[BUFFERS_MAX / 64];

static void mark_free(uint32_t index)
{
	atomic_fetch_or_explicit(
		&free_bits[index / 64], UINT64_C(1) << index % 64, memory_order_release);
}

/* Makes the pages present. Buffers in use may be touched, because their contents do not change. */
static void populate_pages(uint8_t *from, uint64_t bytes)
{
	if (madvise(from, bytes, MADV_POPULATE_WRITE) == 0)
		return;
	for (uint64_t at = 0; at < bytes; at += 4096)
		__atomic_fetch_or(from + at, 0, __ATOMIC_RELAXED);
}

static void divide_into_buffers(uint64_t total)
{
	uint64_t number = total / BUFFER_MIN_BYTES;

	buffer_count = number > BUFFERS_MAX   ? BUFFERS_MAX
		       : number < BUFFERS_MIN ? BUFFERS_MIN
					      : (uint32_t)number;
	buffer_bytes = total / buffer_count & ~UINT64_C(4095);
	if (buffer_bytes < BUFFER_MIN_BYTES)
		buffer_bytes = BUFFER_MIN_BYTES;
}

bool cupti_buffers_setup(uint64_t total)
{
	void *memory;

	divide_into_buffers(total);
	memory = mmap(NULL, buffer_count * buffer_bytes + SCRATCH_BYTES, PROT_READ | PROT_WRITE,
		MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (memory == MAP_FAILED)
		return false;
	/* A forked child inherits the mapping, because CUPTI may write to a buffer that it holds
	 * there. */
	buffer_memory = memory;
	scratch = buffer_memory + buffer_count * buffer_bytes;
	atomic_store_explicit(&next_bytes, SMALLEST_BYTES, memory_order_relaxed);
	for (uint32_t i = 0; i < buffer_count; i++)
		mark_free(i);
	cupti_buffers_prefault();
	return true;
}

/* Acquires the lowest free buffer of 64 and returns its bit, or -1. */
static int acquire_bit(_Atomic uint64_t *word)
{
	uint64_t bits = atomic_load_explicit(word, memory_order_relaxed);

	while (bits)
		if (atomic_compare_exchange_weak_explicit(word, &bits, bits & (bits - 1),
			    memory_order_acquire, memory_order_relaxed))
			return __builtin_ctzll(bits);
	return -1;
}

static void note_use(uint32_t used)
{
	uint32_t highest = atomic_load_explicit(&highest_used, memory_order_relaxed);

	while (used > highest && !atomic_compare_exchange_weak_explicit(&highest_used, &highest,
					 used, memory_order_relaxed, memory_order_relaxed))
		;
}

/* Returns the size of a buffer that is requested now. If threads request at the same time, any of
 * their results is good enough. */
static uint64_t choose_bytes(void)
{
	const uint64_t now = clock_monotonic_ns();
	const uint64_t elapsed_ns = now - atomic_exchange_explicit(
						  &requested_ns, now, memory_order_relaxed);
	uint64_t bytes = atomic_load_explicit(&next_bytes, memory_order_relaxed);

	if (elapsed_ns < FAST_REQUEST_NS && bytes < buffer_bytes)
		bytes = 2 * bytes < buffer_bytes ? 2 * bytes : buffer_bytes;
	else if (elapsed_ns > SLOW_REQUEST_NS && bytes > SMALLEST_BYTES)
		bytes = bytes / 2 > SMALLEST_BYTES ? bytes / 2 & ~UINT64_C(7) : SMALLEST_BYTES;
	atomic_store_explicit(&next_bytes, bytes, memory_order_relaxed);
	return bytes;
}

uint8_t *cupti_buffers_acquire(size_t *bytes)
{
	for (uint32_t word = 0; word * 64 < buffer_count; word++) {
		int bit = acquire_bit(&free_bits[word]);

		if (bit >= 0) {
			note_use(word * 64 + (uint32_t)bit + 1);
			*bytes = choose_bytes();
			return buffer_memory + (word * 64 + (uint32_t)bit) * buffer_bytes;
		}
	}
	return NULL;
}

uint8_t *cupti_buffers_scratch(size_t *bytes)
{
	*bytes = SCRATCH_BYTES;
	return scratch;
}

bool cupti_buffers_contains(const uint8_t *buffer)
{
	return buffer_memory && buffer >= buffer_memory && buffer < scratch;
}

bool cupti_buffers_is_scratch(const uint8_t *buffer)
{
	return scratch && buffer == scratch;
}

void cupti_buffers_release(const uint8_t *buffer)
{
	if (cupti_buffers_contains(buffer))
		mark_free((uint32_t)((uint64_t)(buffer - buffer_memory) / buffer_bytes));
}

void cupti_buffers_prefault(void)
{
	uint32_t wanted = atomic_load_explicit(&highest_used, memory_order_relaxed) +
			  PREFAULT_AHEAD;

	if (wanted > buffer_count)
		wanted = buffer_count;
	if (wanted > prefaulted) {
		populate_pages(buffer_memory + prefaulted * buffer_bytes,
			(wanted - prefaulted) * buffer_bytes);
		prefaulted = wanted;
	}
}
