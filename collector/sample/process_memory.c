/* SPDX-License-Identifier: MIT */
#include "collector/sample/process_memory.h"

#include <errno.h>
#include <sys/uio.h>
#include <unistd.h>

/* Of the sampler's thread, which no fork copies; 0: of another one. */
static _Thread_local pid_t own_pid;

void process_memory_begin(void)
{
	own_pid = getpid();
}

pid_t process_memory_pid(void)
{
	return own_pid ? own_pid : getpid();
}

size_t process_memory_copy(void *to, uint64_t from, size_t bytes)
{
	const struct iovec local = { to, bytes };
	const struct iovec remote = { (void *)(uintptr_t)from, bytes };
	const int saved = errno;
	ssize_t got = process_vm_readv(process_memory_pid(), &local, 1, &remote, 1, 0);

	errno = saved;
	return got > 0 ? (size_t)got : 0;
}

int process_memory_error(void)
{
	const int saved = errno;
	char from = 1, to = 0;
	const struct iovec local = { &to, 1 }, remote = { &from, 1 };
	const int result = process_vm_readv(getpid(), &local, 1, &remote, 1, 0) == 1 ? 0 : errno;

	errno = saved;
	return result;
}
