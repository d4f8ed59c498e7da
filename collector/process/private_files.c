/* SPDX-License-Identifier: MIT
 * The kernel copies the program's table for a moment. Closing the copies does nothing to files,
 * pipes and locks. It ends only the notification of a message queue, which belongs to
 * the process.
 */
#include "collector/process/private_files.h"

#include <errno.h>
#include <limits.h>
#include <stddef.h>
#include <sys/syscall.h>
#include <unistd.h>

#define TABLE_UNIT 64     /* the kernel copies so many descriptors together */
#define UNSHARE (1u << 1) /* a flag of close_range, in headers since Linux 5.9 */

static _Thread_local bool is_private;

/* Whether one of the descriptors that the kernel would copy is a message queue: this call succeeds
 * only then. It waits for no file system. */
static bool has_queue(int keep)
{
	const int count = (keep / TABLE_UNIT + 1) * TABLE_UNIT;

	for (int fd = 0; fd < count; fd++)
		if (!syscall(SYS_mq_getsetattr, fd, NULL, NULL))
			return true;
	return false;
}

static bool close_others(unsigned from, unsigned to, unsigned flags)
{
#ifdef SYS_close_range
	return !syscall(SYS_close_range, from, to, flags);
#else
	(void)from, (void)to, (void)flags;
	return false;
#endif
}

bool private_files_begin(int keep)
{
	const int saved = errno;

	if (!is_private && !has_queue(keep < 0 ? 0 : keep)) {
		is_private = close_others((unsigned)(keep + 1), UINT_MAX, UNSHARE);
		if (is_private && keep > 0)
			close_others(0, (unsigned)keep - 1, 0);
	}
	errno = saved;
	return is_private;
}

bool private_files_here(void)
{
	return is_private;
}
