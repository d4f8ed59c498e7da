/* SPDX-License-Identifier: MIT */
#include "fork_memory.h"

#include <sys/mman.h>

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

void *fork_memory(size_t bytes)
{
	void *p = kept_memory(bytes);

	if (p && madvise(p, bytes, MADV_WIPEONFORK)) {
		munmap(p, bytes);
		return NULL;
	}
	return p;
}
