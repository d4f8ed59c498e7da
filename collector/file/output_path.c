/* SPDX-License-Identifier: MIT
 * trace_name.c: see trace_name.h. A file is written without a name, or where that cannot be under a name of its own, and then linked to the name it
 * is to have, which is atomic and fails where something is already there.
 */
#include "collector/file/output_path.h"

#include "collector/process/fork_wiped_memory.h"

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

struct output_paths { /* not on the stack: the host's threads may have little */
	char temporary[PATH_BYTES + 40];
	char plain[PATH_BYTES];
	char old[PATH_BYTES + 8];
	bool nameless; /* what stands in `temporary` is a place in /proc */
};

/* Fills in %p, %n and %%; `number` is 0 at the first try. false: too long. */
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

/* trace.bin -> trace.4711.bin, from the second try on (a program that execs keeps its pid) trace.4711.2.bin; without a dot at the end. */
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

	return !fcntl(fd, F_SETLK, &whole) ||
	       (errno != EAGAIN && errno != EACCES); /* some file systems have none */
}

/* Is its writer at work? It holds a lock, which also tells about other machines and containers; but it may have lost it, with its descriptor. */
static bool is_live(int fd, const struct trace_header *header)
{
	if (!lock_file(fd, F_WRLCK))
		return true;
	if (header->flags & TRACE_ENDED ||
		header->pid ==
			(uint32_t)getpid()) /* we have no trace: it is of a container before */
		return false;
	return !kill((pid_t)header->pid, 0) || errno != ESRCH;
}

/* A trace of another run whose writer is gone. Ours to move aside; everything else is not. */
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

/* Renames a finished trace at `path` to path.old. Two processes that both want to hold a lock on the same file here, so that none moves what the
 * other has just put in its place. true: something changed, try the name again. */
static bool move_aside(const char *path, char old[PATH_BYTES + 8], uint64_t run_id)
{
	struct stat opened, there;
	bool moved = false;
	int fd = open(path, O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY);

	if (fd < 0)
		return errno == ENOENT;
	snprintf(old, PATH_BYTES + 8, "%s.old", path);
	if (is_finished_trace(fd, run_id)) {
		if (fstat(fd, &opened) || stat(path, &there) || opened.st_ino != there.st_ino ||
			opened.st_dev != there.st_dev)
			moved = true; /* another process was first */
		else
			moved = !rename(path, old);
	}
	close(fd);
	return moved;
}

/* A device or a folder stands there, beside which nobody looks for a trace: 0, or errno. */
static int path_error(const char *path)
{
	struct stat st;

	if (!*path)
		return ENOENT;
	if (lstat(path, &st) || S_ISREG(st.st_mode) || S_ISLNK(st.st_mode))
		return 0;
	return S_ISDIR(st.st_mode) ? EISDIR : EEXIST;
}

/* `fd` once more, out of the way of the program's own. */
static int high_descriptor(int fd)
{
	static const int floors[] = { 1000, 500, 200, 64, 3 };
	int high = -1;

	for (size_t i = 0; i < sizeof floors / sizeof floors[0] && high < 0; i++)
		high = fcntl(fd, F_DUPFD_CLOEXEC, floors[i]);
	return high;
}

int output_move_fd_high(int fd)
{
	int high = high_descriptor(fd);

	close(fd);
	if (high >= 0)
		lock_file(high,
			F_RDLCK); /* not before: closing any descriptor of a file takes its locks away */
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

/* false: errno. */
static bool write_header(int fd, const struct trace_header *header)
{
	errno = ENOSPC; /* of a short write */
	return pwrite(fd, header, sizeof *header, 0) == (ssize_t)sizeof *header &&
	       !ftruncate(fd, header->header_bytes);
}

/* link(2), of what the place in /proc leads to; or on file systems without it a rename that replaces nothing, or one that replaces what was created
 * for that: 0, or errno. */
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

/* Finds the name under which `temporary` may stand. 0, or errno. */
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

/* A file that goes with the process if that ends before it has its name. Its place in /proc is what is linked. false: not on this file system, or
 * without /proc. */
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

/* 0 and *fd, or errno. */
static int create_file(struct output_paths *p, const char *output,
	const struct trace_header *header, char *path, int *fd)
{
	int error;

	if (!expand_pattern(p->plain, output, 0))
		return ENAMETOOLONG;
	error = path_error(p->plain);
	if (error || create_nameless(p, output, header, path, fd))
		return error;
	/* The clock, since in another container our pid may be another's. */
	snprintf(p->temporary, sizeof p->temporary, "%s.%d.%08x.part", p->plain, (int)getpid(),
		(unsigned)header->start.raw);
	*fd = open(p->temporary, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
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
