/* SPDX-License-Identifier: MIT */
#include "collector/process/fork_wiped_memory.h"

#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/mman.h>

#ifndef MADV_WIPEONFORK
#define MADV_WIPEONFORK 18
#endif

/* A mapping that a fork handler must wipe in the child, because the kernel does not. */
struct region_to_wipe {
	struct region_to_wipe *next;
	void *start;
	size_t bytes;
};
static struct region_to_wipe *regions;

/* Small allocations share one mapping, because a mapping for each would cost more than its
 * contents. Its memory is never freed. */
#define ARENA_BYTES (64u << 10)
#define SMALL_BYTES (36u << 10)
static char *arena;
static size_t arena_used;

void *fork_kept_alloc(size_t bytes)
{
	void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
		MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	return p == MAP_FAILED ? NULL : p;
}

void fork_kept_free(void *memory, size_t bytes)
{
	if (memory)
		munmap(memory, bytes);
}

/* Runs in a forked child. */
static void wipe_regions(void)
{
	for (const struct region_to_wipe *r = regions; r; r = r->next)
		madvise(r->start, r->bytes, MADV_DONTNEED);
}

static bool register_region(void *start, size_t bytes)
{
	struct region_to_wipe *r = fork_kept_alloc(sizeof *r);

	if (!r)
		return false;
	*r = (struct region_to_wipe){ __atomic_load_n(&regions, __ATOMIC_RELAXED), start, bytes };
	while (!__atomic_compare_exchange_n(
		&regions, &r->next, r, false, __ATOMIC_RELEASE, __ATOMIC_RELAXED))
		;
	return r->next || !pthread_atfork(NULL, NULL, wipe_regions);
}

/* Whether an unknown advice value is refused. An emulator (qemu user mode) may accept every advice
 * and ignore MADV_WIPEONFORK, so a kernel that accepts nonsense is not trusted. */
static bool madvise_rejects_nonsense(void *start, size_t bytes)
{
	/* 0: not known yet. Threads that test it concurrently get the same result. */
	static int8_t answer;
	int8_t known = __atomic_load_n(&answer, __ATOMIC_RELAXED);

	if (!known) {
		known = madvise(start, bytes, 0x7fff) ? 1 : -1;
		__atomic_store_n(&answer, known, __ATOMIC_RELAXED);
	}
	return known > 0;
}

static bool kernel_wipes_on_fork(void *start, size_t bytes)
{
	const int saved = errno;
	const bool will = !madvise(start, bytes, MADV_WIPEONFORK) &&
			  madvise_rejects_nonsense(start, bytes);

	errno = saved;
	return will;
}

static void *map_wiped(size_t bytes)
{
	void *p = fork_kept_alloc(bytes);

	if (p && !kernel_wipes_on_fork(p, bytes) && !register_region(p, bytes)) {
		munmap(p, bytes);
		return NULL;
	}
	return p;
}

/* Returns NULL if the arena is full or cannot be mapped. */
static void *arena_alloc(size_t bytes)
{
	const size_t taken = (bytes + 63) & ~(size_t)63,
		     at = __atomic_fetch_add(&arena_used, taken, __ATOMIC_RELAXED);
	char *there = __atomic_load_n(&arena, __ATOMIC_ACQUIRE), *fresh;

	if (at + taken > ARENA_BYTES)
		return NULL;
	if (!there && (fresh = map_wiped(ARENA_BYTES))) {
		if (__atomic_compare_exchange_n(
			    &arena, &there, fresh, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
			there = fresh;
		else
			munmap(fresh, ARENA_BYTES);
	}
	return there ? there + at : NULL;
}

void *fork_wiped_alloc(size_t bytes)
{
	void *small = bytes <= SMALL_BYTES ? arena_alloc(bytes) : NULL;

	return small ? small : map_wiped(bytes);
}
