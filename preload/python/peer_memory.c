/* SPDX-License-Identifier: MIT */
#include "preload/python/peer_memory.h"

#include "collector/sample/process_memory.h"
#include "preload/python/safe_read.h"

#include <errno.h>
#include <sys/uio.h>
#include <unistd.h>

bool peer_read(void *to, uintptr_t from, size_t bytes)
{
	return peer_read_many(to, &from, 1, bytes) == 1;
}

size_t peer_read_many(void *to, const uintptr_t *from, size_t count, size_t bytes)
{
	struct iovec local = { to, count * bytes }, remote[PEER_READ_MANY_MAX];
	ssize_t got;

	for (size_t i = 0; i < count; i++) {
		if (from[i] < SAFE_READ_MIN_ADDRESS)
			count = i;
		else
			remote[i] = (struct iovec){ (void *)from[i], bytes };
	}
	if (!count)
		return 0;
	local.iov_len = count * bytes;
	got = process_vm_readv(process_memory_pid(), &local, 1, remote, count, 0);
	return got > 0 ? (size_t)got / bytes : 0;
}

int peer_read_refused(void)
{
	char here = 0, there;
	const int saved = errno;
	struct iovec local = { &there, 1 }, remote = { &here, 1 };
	const int refused = process_vm_readv(getpid(), &local, 1, &remote, 1, 0) == 1 ? 0 : errno;

	errno = saved;
	return refused;
}
