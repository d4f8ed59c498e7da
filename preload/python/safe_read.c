/* SPDX-License-Identifier: MIT */
#include "preload/python/safe_read.h"

#include "collector/process/fork_wiped_memory.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#define COPY_BYTES (256u << 10)

bool safe_read_trusted;
static int memory_file = -1;
static char *copy;

bool safe_read_open(void)
{
	int saved = errno;

	copy = fork_kept_alloc(COPY_BYTES);
	memory_file = copy ? open("/proc/self/mem", O_RDONLY | O_CLOEXEC) : -1;
	errno = saved;
	return memory_file >= 0;
}

void safe_read_trust(void)
{
	safe_read_trusted = true;
}

void safe_read_close(void)
{
	int saved = errno;

	if (memory_file >= 0)
		close(memory_file);
	memory_file = -1;
	if (copy)
		fork_kept_free(copy, COPY_BYTES);
	copy = NULL;
	errno = saved;
}

bool safe_read_checked(void *to, uintptr_t from, size_t bytes)
{
	int saved = errno;
	ssize_t got = memory_file >= 0 && from <= INTPTR_MAX
			      ? pread(memory_file, to, bytes, (off_t)from)
			      : -1;

	errno = saved;
	return got == (ssize_t)bytes;
}

const void *safe_read_bytes(uintptr_t from, size_t bytes)
{
	if (from < SAFE_READ_MIN_ADDRESS)
		return NULL;
	if (safe_read_trusted)
		return (const void *)from;
	return bytes <= COPY_BYTES && copy && safe_read_checked(copy, from, bytes) ? copy : NULL;
}
