/* SPDX-License-Identifier: MIT */
#include "collector/process/high_descriptor.h"

#include <fcntl.h>
#include <stddef.h>

int high_descriptor(int fd)
{
	static const int floors[] = { 1000, 500, 200, 64, 3 };
	int high = -1;

	for (size_t i = 0; i < sizeof floors / sizeof floors[0] && high < 0; i++)
		high = fcntl(fd, F_DUPFD_CLOEXEC, floors[i]);
	return high;
}
