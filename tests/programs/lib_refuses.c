/* SPDX-License-Identifier: MIT
 * lib_refuses: preloaded before libpperf.so, answers some of libpperf's own calls to the system
 * with an error, as a full disk, a used up table of descriptors or a limit would. The program's
 * calls are left alone. The environment says which:
 *
 *	REFUSE        the call: fallocate, pwrite, pwritev, mmap, madvise, open, fcntl, ftruncate, linkat, thread, or clock (a step of CLOCK_REALTIME)
 *	REFUSE_FROM   how many succeed first (0)
 *	REFUSE_COUNT  how many are refused then (all)
 *	REFUSE_ERROR  errno, or 0: writes are short instead (ENOSPC); of clock the step in seconds
 *	REFUSE_SEEN   a file into which the number of such calls goes at the end
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#define FROM_PPERF (is_of_pperf((ElfW(Addr))(uintptr_t)__builtin_return_address(0)))
#define REFUSES(call) (FROM_PPERF && refuses(call))

static const char *call_refused;
static unsigned long from, count = (unsigned long)-1, seen;
static long error_given = ENOSPC;
static ElfW(Addr) first, last;

static int find_pperf(struct dl_phdr_info *object, size_t size, void *unused)
{
	(void)size, (void)unused;
	if (!object->dlpi_name || !strstr(object->dlpi_name, "libpperf"))
		return 0;
	first = object->dlpi_addr;
	for (int i = 0; i < object->dlpi_phnum; i++) {
		const ElfW(Phdr) *p = &object->dlpi_phdr[i];

		if (p->p_type == PT_LOAD && object->dlpi_addr + p->p_vaddr + p->p_memsz > last)
			last = object->dlpi_addr + p->p_vaddr + p->p_memsz;
	}
	return 1;
}

static long number(const char *name, long otherwise)
{
	const char *value = getenv(name);

	return value && *value ? strtol(value, NULL, 10) : otherwise;
}

/* At the first call: libpperf's constructor may run before ours. */
static bool is_of_pperf(ElfW(Addr) caller)
{
	if (!last) {
		dl_iterate_phdr(find_pperf, NULL);
		from = (unsigned long)number("REFUSE_FROM", 0);
		count = (unsigned long)number("REFUSE_COUNT", -1);
		error_given = number("REFUSE_ERROR", ENOSPC);
		call_refused = getenv("REFUSE");
	}
	return call_refused && caller >= first && caller < last;
}

static bool refuses(const char *call)
{
	unsigned long number_of_call;

	if (strcmp(call, call_refused))
		return false;
	number_of_call = __atomic_fetch_add(&seen, 1, __ATOMIC_RELAXED);
	if (number_of_call < from || number_of_call - from >= count)
		return false;
	errno = error_given ? (int)error_given : ENOSPC;
	return true;
}

int fallocate(int fd, int mode, off_t offset, off_t bytes)
{
	return REFUSES("fallocate") ? -1 : (int)syscall(SYS_fallocate, fd, mode, offset, bytes);
}

ssize_t pwrite(int fd, const void *data, size_t bytes, off_t offset)
{
	if (REFUSES("pwrite") && (error_given || !(bytes /= 2)))
		return -1;
	return syscall(SYS_pwrite64, fd, data, bytes, offset);
}

/* A short write is half of the first part. */
ssize_t pwritev(int fd, const struct iovec *parts, int number_of_parts, off_t offset)
{
	if (!REFUSES("pwritev"))
		return syscall(SYS_pwritev, fd, parts, number_of_parts, offset, 0);
	return error_given || parts->iov_len < 2
		       ? -1
		       : syscall(SYS_pwrite64, fd, parts->iov_base, parts->iov_len / 2, offset);
}

void *mmap(void *address, size_t bytes, int protection, int flags, int fd, off_t offset)
{
	return REFUSES("mmap")
		       ? MAP_FAILED
		       : (void *)syscall(SYS_mmap, address, bytes, protection, flags, fd, offset);
}

int madvise(void *address, size_t bytes, int advice)
{
	return REFUSES("madvise") ? -1 : (int)syscall(SYS_madvise, address, bytes, advice);
}

int open(const char *path, int flags, ...)
{
	va_list rest;
	unsigned mode;

	if (REFUSES("open"))
		return -1;
	va_start(rest, flags);
	mode = flags & O_CREAT ? va_arg(rest, unsigned) : 0;
	va_end(rest);
	return (int)syscall(SYS_openat, AT_FDCWD, path, flags, mode);
}

int fcntl(int fd, int command, ...)
{
	va_list rest;
	long argument;

	if (REFUSES("fcntl"))
		return -1;
	va_start(rest, command);
	argument = va_arg(rest, long);
	va_end(rest);
	return (int)syscall(SYS_fcntl, fd, command, argument);
}

int ftruncate(int fd, off_t bytes)
{
	return REFUSES("ftruncate") ? -1 : (int)syscall(SYS_ftruncate, fd, bytes);
}

int linkat(int old_folder, const char *old, int folder, const char *path, int flags)
{
	return REFUSES("linkat") ? -1
				 : (int)syscall(SYS_linkat, old_folder, old, folder, path, flags);
}

int pthread_create(
	pthread_t *thread, const pthread_attr_t *attributes, void *(*body)(void *), void *argument)
{
	int (*real)(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *);

	if (REFUSES("thread"))
		return errno;
	*(void **)&real = dlsym(RTLD_NEXT, "pthread_create");
	return real(thread, attributes, body, argument);
}

int clock_gettime(clockid_t id, struct timespec *now)
{
	int result = (int)syscall(SYS_clock_gettime, id, now);

	if (id == CLOCK_REALTIME && REFUSES("clock"))
		now->tv_sec += error_given;
	return result;
}

__attribute__((destructor)) static void tell(void)
{
	const char *path = getenv("REFUSE_SEEN");
	FILE *file = path ? fopen(path, "w") : NULL;

	if (!file)
		return;
	fprintf(file, "%lu\n", seen);
	fclose(file);
}
