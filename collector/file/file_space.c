/* SPDX-License-Identifier: MIT */
#include "collector/file/file_space.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif

uint64_t file_page_bytes(void)
{
	long page = sysconf(_SC_PAGESIZE);

	return page > 0 ? (uint64_t)page : 4096;
}

struct sigxfsz_guard sigxfsz_block(void)
{
	struct sigxfsz_guard guard = { 0 };
	struct rlimit limit;
	sigset_t size_signal, pending;

	guard.limited = getrlimit(RLIMIT_FSIZE, &limit) || limit.rlim_cur != RLIM_INFINITY;
	if (!guard.limited)
		return guard;
	sigpending(&pending);
	guard.was_pending = sigismember(&pending, SIGXFSZ);
	sigemptyset(&size_signal);
	sigaddset(&size_signal, SIGXFSZ);
	pthread_sigmask(SIG_BLOCK, &size_signal, &guard.before);
	return guard;
}

void sigxfsz_restore(const struct sigxfsz_guard *guard)
{
	const struct timespec now = { 0, 0 };
	sigset_t size_signal;

	if (!guard->limited)
		return;
	sigemptyset(&size_signal);
	sigaddset(&size_signal, SIGXFSZ);
	if (!guard->was_pending)
		while (sigtimedwait(&size_signal, NULL, &now) < 0 && errno == EINTR)
			;
	pthread_sigmask(SIG_SETMASK, &guard->before, NULL);
}

int file_allocate(int fd, int mode, uint64_t offset, uint64_t bytes)
{
	struct sigxfsz_guard guard = sigxfsz_block();
	int error;

	do
		error = fallocate(fd, mode, (off_t)offset, (off_t)bytes) ? errno : 0;
	while (error == EINTR);
	sigxfsz_restore(&guard);
	return error;
}

/* Makes every page present and dirty now, so that no event pays for it. */
static void touch_pages(void *block, uint64_t bytes)
{
	volatile char *p = block;
	uint64_t page = file_page_bytes();

	if (!madvise(block, bytes, MADV_POPULATE_WRITE))
		return;
	for (uint64_t i = 0; i < bytes; i += page)
		p[i] = p[i];
}

void *file_map(int fd, uint64_t offset, uint64_t bytes)
{
	void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, (off_t)offset);

	if (p == MAP_FAILED)
		return NULL;
	madvise(p, bytes, MADV_DONTFORK);
	touch_pages(p, bytes);
	return p;
}
