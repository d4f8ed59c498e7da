/* SPDX-License-Identifier: MIT */
#include "report/base/write_whole.h"
#include <errno.h>
#include <unistd.h>

bool write_whole(int fd, const void *bytes, size_t count)
{
	const char *at = bytes;

	while (count) {
		const ssize_t wrote = write(fd, at, count);

		if (wrote < 0 && errno == EINTR)
			continue;
		if (!wrote)
			errno = EIO;
		if (wrote <= 0)
			return false;
		at += wrote;
		count -= (size_t)wrote;
	}
	return true;
}
