/* SPDX-License-Identifier: MIT */
#include "report/live/live_trace.h"

#include "report/trace/trace_header.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

unsigned live_trace_pid(const char *text)
{
	char path[64], *end;
	const unsigned long pid = strtoul(text, &end, 10);
	struct stat status;

	if (end == text || *end || !pid || pid > INT32_MAX)
		return 0;
	snprintf(path, sizeof path, "/proc/%lu", pid);
	return stat(path, &status) ? 0 : (unsigned)pid;
}

/* Whether the file is a trace. Devices and pipes, which a process may have open, are not opened. */
static bool is_trace(const char *path)
{
	struct trace_header header;
	struct stat status;
	const bool regular = !stat(path, &status) && S_ISREG(status.st_mode);
	const int fd = regular ? open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK) : -1;
	const bool read_it = fd >= 0 && pread_all(fd, &header, sizeof header, 0) == sizeof header;

	if (fd >= 0)
		close(fd);
	return read_it && !memcmp(header.magic, TRACE_MAGIC, sizeof header.magic);
}

/* Replaces a path of /proc by the file's own name, if one can be found: the link names the
 * directory at least. The library creates its file without a name and gives it one when it is
 * complete. */
static void find_name(char path[LIVE_PATH_BYTES])
{
	char link[LIVE_PATH_BYTES], name[LIVE_PATH_BYTES + 260];
	const ssize_t bytes = readlink(path, link, sizeof link - 1);
	struct stat file, found;
	char *slash;
	struct dirent *entry;
	DIR *folder;

	if (bytes <= 0 || stat(path, &file))
		return;
	link[bytes] = '\0';
	slash = strrchr(link, '/');
	if (!slash)
		return;
	*slash = '\0';
	folder = opendir(*link ? link : "/");
	while (folder && (entry = readdir(folder))) {
		snprintf(name, sizeof name, "%s/%s", link, entry->d_name);
		if (entry->d_ino != file.st_ino || stat(name, &found) ||
			found.st_ino != file.st_ino || found.st_dev != file.st_dev)
			continue;
		if (strlen(name) < LIVE_PATH_BYTES)
			strcpy(path, name);
		break;
	}
	if (folder)
		closedir(folder);
}

bool live_trace_find(unsigned pid, char path[LIVE_PATH_BYTES], char error[READER_ERROR_BYTES])
{
	char folder_path[64];
	bool found = false;
	struct dirent *entry;
	DIR *folder;

	snprintf(folder_path, sizeof folder_path, "/proc/%u/fd", pid);
	folder = opendir(folder_path);
	if (!folder) {
		snprintf(error, READER_ERROR_BYTES, "process %u: cannot be examined: %s", pid,
			strerror(errno));
		return false;
	}
	while (!found && (entry = readdir(folder))) {
		snprintf(path, LIVE_PATH_BYTES, "%s/%.32s", folder_path, entry->d_name);
		found = *entry->d_name != '.' && is_trace(path);
	}
	closedir(folder);
	if (found)
		find_name(path);
	else
		snprintf(error, READER_ERROR_BYTES,
			"process %u writes no trace: it has recorded nothing yet, or it was not "
			"run with pperf",
			pid);
	return found;
}

struct trace_header *live_trace_map(const char *path, char error[READER_ERROR_BYTES])
{
	const int fd = open(path, O_RDWR | O_CLOEXEC);
	struct trace_header header, *mapped;
	char proc[64];
	struct stat status;

	if (fd < 0) {
		snprintf(error, READER_ERROR_BYTES, "%.300s: cannot be opened: %s", path,
			strerror(errno));
		return NULL;
	}
	if (!header_read(fd, path, &header, error)) {
		close(fd);
		return NULL;
	}
	snprintf(proc, sizeof proc, "/proc/%u", header.pid);
	mapped = mmap(NULL, header.header_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	close(fd);
	if (mapped == MAP_FAILED)
		snprintf(error, READER_ERROR_BYTES, "%.300s: cannot be mapped: %s", path,
			strerror(errno));
	else if (header.flags & (TRACE_ENDED | TRACE_TAIL_AT_RISK))
		snprintf(error, READER_ERROR_BYTES, "%.300s: %s", path,
			header.flags & TRACE_ENDED
				? "the program has ended; read the trace with pperf-report"
				: "is on a file system that the program cannot map, so it sees no "
				  "requests");
	else if (strncmp(path, "/proc/", 6) && stat(proc, &status))
		snprintf(error, READER_ERROR_BYTES,
			"%.300s: process %u has ended; read the trace with pperf-report", path,
			header.pid);
	else
		return mapped;
	if (mapped != MAP_FAILED)
		munmap(mapped, header.header_bytes);
	return NULL;
}

static uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

/* Reserves the control words for this tool. Another tool that has ended is replaced. */
static bool lock_control(struct trace_control *control)
{
	const uint32_t mine = (uint32_t)getpid();
	uint32_t other = __atomic_load_n(&control->tool, __ATOMIC_RELAXED);
	char proc[64];
	struct stat status;

	snprintf(proc, sizeof proc, "/proc/%u", other);
	if (other && other != mine && !stat(proc, &status))
		return false;
	return __atomic_compare_exchange_n(
		&control->tool, &other, mine, false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED);
}

int live_trace_request(struct trace_header *header, enum trace_command command, const char *text,
	unsigned wait_ms, uint64_t *took_ns)
{
	struct trace_control *control = &header->control;
	const uint64_t began = now_ns(), until = began + (uint64_t)wait_ms * 1000000;
	uint32_t request = (uint32_t)began | 1;
	bool answered = false;

	while (!lock_control(control))
		if (now_ns() > until)
			return -1;
		else
			nanosleep(&(struct timespec){ 0, 1000000 }, NULL);
	if (request == control->request)
		request += 2;
	control->text_bytes = text ? (uint32_t)strnlen(text, sizeof control->text) : 0;
	memcpy(control->text, text ? text : "", control->text_bytes);
	control->command = (uint32_t)command;
	__atomic_store_n(&control->request, request, __ATOMIC_RELEASE);
	while (!(answered = __atomic_load_n(&control->answer, __ATOMIC_ACQUIRE) == request) &&
		now_ns() < until)
		nanosleep(&(struct timespec){ 0, 500000 }, NULL);
	*took_ns = now_ns() - began;
	__atomic_store_n(&control->tool, 0, __ATOMIC_RELEASE);
	return answered ? (int)control->result : -1;
}
