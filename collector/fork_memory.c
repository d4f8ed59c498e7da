/* SPDX-License-Identifier: MIT */
#include "fork_memory.h"

#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <sys/mman.h>

#ifndef MADV_WIPEONFORK
#define MADV_WIPEONFORK 18
#endif

struct region { /* that the kernel does not empty */
	struct region *next;
	void *start;
	size_t bytes;
};
static struct region *regions;

void *kept_memory(size_t bytes)
{
	void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	return p == MAP_FAILED ? NULL : p;
}

void memory_return(void *memory, size_t bytes)
{
	if (memory)
		munmap(memory, bytes);
}

/* In a forked child. */
static void empty_regions(void)
{
	for (const struct region *r = regions; r; r = r->next)
		madvise(r->start, r->bytes, MADV_DONTNEED);
}

static bool remember(void *start, size_t bytes)
{
	struct region *r = kept_memory(sizeof *r);

	if (!r)
		return false;
	*r = (struct region){__atomic_load_n(&regions, __ATOMIC_RELAXED), start, bytes};
	while (!__atomic_compare_exchange_n(&regions, &r->next, r, false, __ATOMIC_RELEASE, __ATOMIC_RELAXED))
		;
	return r->next || !pthread_atfork(NULL, NULL, empty_regions);
}

/* An emulator (qemu's user mode) may say yes to all advice and follow none of this one: who agrees to nonsense is not believed. */
static bool kernel_will_empty(void *start, size_t bytes)
{
	const int nonsense = 0x7fff, saved = errno;
	const bool will = !madvise(start, bytes, MADV_WIPEONFORK) && madvise(start, bytes, nonsense);

	errno = saved;
	return will;
}

void *fork_memory(size_t bytes)
{
	void *p = kept_memory(bytes);

	if (p && !kernel_will_empty(p, bytes) && !remember(p, bytes)) {
		munmap(p, bytes);
		return NULL;
	}
	return p;
}
