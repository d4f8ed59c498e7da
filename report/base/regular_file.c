/* SPDX-License-Identifier: MIT */
#include "report/base/regular_file.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/vfs.h>
#include <unistd.h>

/* Numbers that linux/magic.h lacks. */
#define CGROUP_MAGIC 0x27e0eb
#define CONFIGFS_MAGIC 0x62656570
#define FUSECTL_MAGIC 0x65735543

static const uint32_t kernel_filesystems[] = {
	PROC_SUPER_MAGIC,
	SYSFS_MAGIC,
	DEBUGFS_MAGIC,
	TRACEFS_MAGIC,
	SECURITYFS_MAGIC,
	SELINUX_MAGIC,
	CGROUP_MAGIC,
	CGROUP2_SUPER_MAGIC,
	PSTOREFS_MAGIC,
	EFIVARFS_MAGIC,
	BPF_FS_MAGIC,
	BINFMTFS_MAGIC,
	CONFIGFS_MAGIC,
	FUSECTL_MAGIC,
};

/* Returns whether the file system is an interface of the kernel such as /proc, where reading a file
 * may block or have an effect. */
static bool is_kernel_filesystem(const struct statfs *filesystem)
{
	for (size_t i = 0; i < sizeof kernel_filesystems / sizeof *kernel_filesystems; i++)
		if ((uint32_t)filesystem->f_type == kernel_filesystems[i])
			return true;
	return false;
}

/* Checks the open file again, because another file may have replaced the first. This is also why
 * O_NONBLOCK is set. */
int regular_file_open(const char *path, struct stat *status)
{
	struct statfs filesystem;
	int fd;

	memset(status, 0, sizeof *status);
	if (stat(path, status) || (S_ISREG(status->st_mode) && statfs(path, &filesystem)))
		return -1;
	if (!S_ISREG(status->st_mode) || is_kernel_filesystem(&filesystem)) {
		errno = ENOTSUP;
		return -1;
	}
	fd = open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	if (fd < 0 || (!fstat(fd, status) && S_ISREG(status->st_mode) &&
			      !fstatfs(fd, &filesystem) && !is_kernel_filesystem(&filesystem)))
		return fd;
	close(fd);
	errno = ENOTSUP;
	return -1;
}
