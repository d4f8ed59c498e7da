/* SPDX-License-Identifier: MIT
 * A file is written without a name, or where that is not possible, under a temporary name. It is
 * then linked to its final name, which is atomic and fails if the name exists.
 */
#include "collector/file/output_path.h"

#include "collector/process/fork_wiped_memory.h"
#include "collector/process/high_descriptor.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define PATH_BYTES 4096
#define NAME_TRIES 1000

/* Not on the stack, because the program's threads may have little. */
struct output_paths {
	char temporary[PATH_BYTES + 40];
	char plain[PATH_BYTES];
	char old[PATH_BYTES + 8];
	bool nameless; /* `temporary` is a path in /proc */
};

/* Expands %p, %n and %%. `number` is the value of %n, 0 at the first attempt. Returns false if the
 * path is too long. */
static bool expand_pattern(char *path, const char *output, unsigned number)
{
	size_t used = 0;

	for (const char *p = output; *p; p++) {
		int wrote = 1;

		if (used + 24 > PATH_BYTES)
			return false;
		if (p[0] == '%' && p[1] == 'p')
			wrote = snprintf(path + used, 24, "%d", (int)getpid()), p++;
		else if (p[0] == '%' && p[1] == 'n')
			wrote = snprintf(path + used, 24, "%u", number), p++;
		else if (p[0] == '%' && p[1] == '%')
			path[used] = *p++;
		else
			path[used] = *p;
		used += (size_t)wrote;
	}
	path[used] = '\0';
	return true;
}

/* Inserts the pid: trace.bin becomes trace.4711.bin. From the second attempt on it becomes
 * trace.4711.2.bin, because a program that execs keeps its pid. A name without a dot gets the pid
 * at its end. */
static bool insert_pid(char *path, const char *plain, unsigned serial)
{
	const char *slash = strrchr(plain, '/');
	const char *base = slash ? slash + 1 : plain;
	const char *dot = strrchr(base, '.');
	int stem = (int)(dot && dot != base ? dot - plain : (ptrdiff_t)strlen(plain));
	int n;

	if (serial < 2)
		n = snprintf(
			path, PATH_BYTES, "%.*s.%d%s", stem, plain, (int)getpid(), plain + stem);
	else
		n = snprintf(path, PATH_BYTES, "%.*s.%d.%u%s", stem, plain, (int)getpid(), serial,
			plain + stem);
	return n > 0 && n < PATH_BYTES;
}

static bool lock_file(int fd, short type)
{
	struct flock whole = { .l_type = type, .l_whence = SEEK_SET };

	/* Some file systems have no locks. A file there counts as locked by us. */
	return !fcntl(fd, F_SETLK, &whole) || (errno != EAGAIN && errno != EACCES);
}

/* Whether the trace's writer still runs. A writer holds a lock, which is seen from other machines
 * and containers too. It loses the lock if the program closes the descriptor, so its pid is tested
 * as well. */
static bool is_live(int fd, const struct trace_header *header)
{
	if (!lock_file(fd, F_WRLCK))
		return true;
	/* If the pid is ours, the file is from an earlier container, because we have no trace
	 * yet. */
	if (header->flags & TRACE_ENDED || header->pid == (uint32_t)getpid())
		return false;
	return !kill((pid_t)header->pid, 0) || errno != ESRCH;
}

/* Whether the file is a trace of another run whose writer has ended. pperf renames only such
 * files. */
static bool is_finished_trace(int fd, uint64_t run_id)
{
	struct trace_header old;
	struct stat st;

	if (fstat(fd, &st) || !S_ISREG(st.st_mode))
		return false;
	if (pread(fd, &old, sizeof old, 0) != (ssize_t)sizeof old ||
		memcmp(old.magic, TRACE_MAGIC, sizeof old.magic))
		return false;
	return old.run_id != run_id && !is_live(fd, &old);
}

/* Renames a finished trace at `path` to path.old. Concurrent processes hold a lock on the same file
 * here, so that none moves the file that another has just created in its place. Returns true if
 * something changed: the caller tries the name again. */
static bool move_aside(const char *path, char old[PATH_BYTES + 8], uint64_t run_id)
{
	struct stat opened, existing;
	bool moved = false;
	int fd = open(path, O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY);

	if (fd < 0)
		return errno == ENOENT;
	snprintf(old, PATH_BYTES + 8, "%s.old", path);
	if (is_finished_trace(fd, run_id)) {
		/* another process was first */
		if (fstat(fd, &opened) || stat(path, &existing) ||
			opened.st_ino != existing.st_ino || opened.st_dev != existing.st_dev)
			moved = true;
		else
			moved = !rename(path, old);
	}
	close(fd);
	return moved;
}

/* Returns an errno if `path` is a device or a folder, beside which no user expects a trace.
 * Otherwise returns 0. */
static int path_error(const char *path)
{
	struct stat st;

	if (!*path)
		return ENOENT;
	if (lstat(path, &st) || S_ISREG(st.st_mode) || S_ISLNK(st.st_mode))
		return 0;
	return S_ISDIR(st.st_mode) ? EISDIR : EEXIST;
}

int output_move_fd_high(int fd)
{
	int high = high_descriptor(fd);

	close(fd);
	/* Locked last, because closing any descriptor of a file drops all its locks. */
	if (high >= 0)
		lock_file(high, F_RDLCK);
	return high;
}

void output_grow_fd_table(void)
{
	int fd = open("/", O_PATH | O_CLOEXEC), high = fd < 0 ? -1 : high_descriptor(fd);

	if (high >= 0)
		close(high);
	if (fd >= 0)
		close(fd);
}

/* Returns false and sets errno on failure. */
static bool write_header(int fd, const struct trace_header *header)
{
	errno = ENOSPC; /* for a short write */
	return pwrite(fd, header, sizeof *header, 0) == (ssize_t)sizeof *header &&
	       !ftruncate(fd, header->header_bytes);
}

/* Gives the file its name by link(2), through /proc for a nameless one. A file system without
 * link(2) gets a rename that replaces nothing, or one that replaces an empty file created for that.
 * Returns 0 or errno. */
static int link_to_name(const struct output_paths *p, const char *path)
{
	const char *temporary = p->temporary;
	int fd;

	if (!linkat(AT_FDCWD, temporary, AT_FDCWD, path, p->nameless ? AT_SYMLINK_FOLLOW : 0))
		return 0;
	if (p->nameless || (errno != EPERM && errno != EOPNOTSUPP && errno != ENOSYS))
		return errno;
	if (!renameat2(AT_FDCWD, temporary, AT_FDCWD, path, RENAME_NOREPLACE))
		return 0;
	if (errno != EINVAL && errno != ENOSYS)
		return errno;
	fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (fd < 0)
		return errno;
	close(fd);
	return rename(temporary, path) ? errno : 0;
}

/* Links the file to the first free name and stores that in `path`. Returns 0 or errno. */
static int choose_name(struct output_paths *p, const char *output, uint64_t run_id, char *path)
{
	bool numbered = strstr(output, "%n") != NULL;

	strcpy(path, p->plain);
	for (unsigned names_in_use = 0; names_in_use < NAME_TRIES;) {
		int error = link_to_name(p, path);

		if (error != EEXIST)
			return error;
		if (move_aside(path, p->old, run_id))
			continue;
		names_in_use++;
		if (!(numbered ? expand_pattern(path, output, names_in_use)
			       : insert_pid(path, p->plain, names_in_use)))
			return ENAMETOOLONG;
	}
	return EEXIST;
}

/* Creates a file without a name, which vanishes if the process ends before it has one. What is
 * linked is its path in /proc. Returns false if the file system or a missing /proc does not allow
 * it. */
static bool create_nameless(struct output_paths *p, const char *output,
	const struct trace_header *header, char *path, int *fd)
{
	const char *slash = strrchr(p->plain, '/');

	snprintf(p->temporary, sizeof p->temporary, "%.*s/", slash ? (int)(slash - p->plain) : 0,
		p->plain);
	*fd = slash ? open(p->temporary, O_RDWR | O_TMPFILE | O_CLOEXEC, 0600) : -1;
	if (*fd >= 0)
		*fd = output_move_fd_high(*fd);
	if (*fd < 0)
		return false;
	snprintf(p->temporary, sizeof p->temporary, "/proc/thread-self/fd/%d", *fd);
	p->nameless = true;
	if (write_header(*fd, header) && !choose_name(p, output, header->run_id, path))
		return true;
	close(*fd);
	p->nameless = false;
	return false;
}

/* Returns a descriptor, or -1 with errno. The name includes the clock, because a process in
 * another container may have the same pid. */
static int create_temporary(struct output_paths *p, const struct trace_header *header)
{
	snprintf(p->temporary, sizeof p->temporary, "%s.%d.%08x.part", p->plain, (int)getpid(),
		(unsigned)header->start.raw);
	return open(p->temporary, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
}

/* Returns 0 and the descriptor in `fd`, or errno. */
static int create_file(struct output_paths *p, const char *output,
	const struct trace_header *header, char *path, int *fd)
{
	int error;

	if (!expand_pattern(p->plain, output, 0))
		return ENAMETOOLONG;
	error = path_error(p->plain);
	if (error || create_nameless(p, output, header, path, fd))
		return error;
	*fd = create_temporary(p, header);
	if (*fd < 0)
		return errno;
	*fd = output_move_fd_high(*fd);
	error = *fd < 0 || !write_header(*fd, header)
			? errno
			: choose_name(p, output, header->run_id, path);
	unlink(p->temporary);
	if (error && *fd >= 0)
		close(*fd);
	return error;
}

int output_create(const char *output, const struct trace_header *header, char *path)
{
	struct output_paths *p = fork_kept_alloc(sizeof *p);
	int fd = -1, error = p ? create_file(p, output, header, path, &fd) : ENOMEM;

	fork_kept_free(p, sizeof *p);
	errno = error;
	return error ? -1 : fd;
}
