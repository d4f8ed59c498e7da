/* SPDX-License-Identifier: MIT
 * old_glibc.c: linked into what is given to others, so that it runs where the C library is older than the one it was
 * built with: GLIBC_2.17 and later on x86-64 and aarch64 (CentOS 7, Ubuntu 14.04, Debian 8).
 *
 * A function that a newer version of the C library moved or renamed is defined here once more, hidden, and goes on to
 * the old name, which every version still has. Symbol versions: `readelf -VW` of the result, which a test reads.
 */
#include "packaging/old_version.h"
#include <assert.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <glob.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#if defined(__x86_64__)
/* Since 2.33; of its leaves collector/trace_format.h asks for the first, which is the processor's leaf 1. */
struct cpu_leaf {
	unsigned told[4], usable[4];
};

HIDDEN const struct cpu_leaf *__x86_get_cpuid_feature_leaf(unsigned leaf);
const struct cpu_leaf *__x86_get_cpuid_feature_leaf(unsigned leaf)
{
	static struct cpu_leaf first; /* threads that fill it at once write the same */
	unsigned a = 1, b, c = 0, d;

	(void)leaf;
	if (!__atomic_load_n(&first.usable[2], __ATOMIC_RELAXED)) {
		__asm__("cpuid" : "+a"(a), "=b"(b), "+c"(c), "=d"(d));
		__atomic_store_n(&first.usable[2], c, __ATOMIC_RELAXED);
	}
	return &first;
}
#endif

/* Since 2.34 part of libc.so.6 under a new version. */
FORWARD(FIRST, void *, dlopen, (const char *name, int mode), (name, mode))
FORWARD(FIRST, int, dlclose, (void *handle), (handle))
FORWARD(FIRST, char *, dlerror, (void), ())
FORWARD(FIRST, void *, dlsym, (void *handle, const char *name), (handle, name))
FORWARD(FIRST, void *, dlvsym, (void *handle, const char *name, const char *version), (handle, name, version))
FORWARD(FIRST, int, dladdr, (const void *address, Dl_info *info), (address, info))
FORWARD(SINCE_2_3_3, int, dlinfo, (void *handle, int request, void *info), (handle, request, info))
FORWARD(FIRST, int, pthread_create,
	(pthread_t *thread, const pthread_attr_t *attributes, void *(*run)(void *), void *context),
	(thread, attributes, run, context))
FORWARD(FIRST, int, pthread_join, (pthread_t thread, void **result), (thread, result))
FORWARD(FIRST, int, pthread_detach, (pthread_t thread), (thread))
FORWARD(SINCE_2_3_3, int, pthread_timedjoin_np, (pthread_t thread, void **result, const struct timespec *until),
	(thread, result, until))
FORWARD(FIRST, int, pthread_attr_setstacksize, (pthread_attr_t *attributes, size_t bytes), (attributes, bytes))
FORWARD(FIRST, int, pthread_getattr_np, (pthread_t thread, pthread_attr_t *attributes), (thread, attributes))
FORWARD(FIRST, int, pthread_attr_getstack, (const pthread_attr_t *attributes, void **stack, size_t *bytes),
	(attributes, stack, bytes))
FORWARD(FIRST, int, pthread_sigmask, (int how, const sigset_t *set, sigset_t *before), (how, set, before))
FORWARD(SINCE_2_3_3, int, pthread_condattr_setclock, (pthread_condattr_t *attributes, clockid_t clock),
	(attributes, clock))
FORWARD(FIRST, int, pthread_mutex_timedlock, (pthread_mutex_t *mutex, const struct timespec *until), (mutex, until))
FORWARD(FIRST, int, pthread_mutex_trylock, (pthread_mutex_t *mutex), (mutex))
FORWARD(FIRST, int, pthread_mutexattr_init, (pthread_mutexattr_t *attributes), (attributes))
FORWARD(FIRST, int, pthread_mutexattr_destroy, (pthread_mutexattr_t *attributes), (attributes))
FORWARD(FIRST, int, pthread_mutexattr_settype, (pthread_mutexattr_t *attributes, int type), (attributes, type))
FORWARD(FIRST, int, pthread_key_create, (pthread_key_t *key, void (*end)(void *)), (key, end))
FORWARD(FIRST, int, pthread_key_delete, (pthread_key_t key), (key))
FORWARD(FIRST, void *, pthread_getspecific, (pthread_key_t key), (key))
FORWARD(FIRST, int, pthread_setspecific, (pthread_key_t key, const void *value), (key, value))
FORWARD(FIRST, int, pthread_once, (pthread_once_t *once, void (*run)(void)), (once, run))
FORWARD(SINCE_2_3_3, int, timer_create, (clockid_t clock, struct sigevent *event, timer_t *timer),
	(clock, event, timer))
FORWARD(SINCE_2_3_3, int, timer_delete, (timer_t timer), (timer))
FORWARD(SINCE_2_3_3, int, timer_settime,
	(timer_t timer, int flags, const struct itimerspec *value, struct itimerspec *before),
	(timer, flags, value, before))

/* Since 2.27 under a new version, which also matches links to files that do not exist. */
FORWARD(FIRST, int, glob,
	(const char *pattern, int flags, int (*failed)(const char *path, int error), glob_t *found),
	(pattern, flags, failed, found))

/* The first function of a program; a new crt1.o leaves its constructors to a new C library, an old one has them run by
 * what is given here. */
extern int old___libc_start_main(int (*run)(int, char **, char **), int argc, char **argv, void (*init)(int, char **, char **),
	void (*fini)(void), void (*rtld_fini)(void), void *stack_end);
__asm__(".symver old___libc_start_main,__libc_start_main@" FIRST);
typedef void constructor(int, char **, char **);
extern constructor *__init_array_start[] __attribute__((weak, visibility("hidden")));
extern constructor *__init_array_end[] __attribute__((weak, visibility("hidden")));
HIDDEN int __libc_start_main(int (*run)(int, char **, char **), int argc, char **argv,
	void (*init)(int, char **, char **), void (*fini)(void), void (*rtld_fini)(void), void *stack_end);

static void run_constructors(int argc, char **argv, char **environment)
{
	for (constructor **each = __init_array_start; each < __init_array_end; each++)
		(*each)(argc, argv, environment);
}

int __libc_start_main(int (*run)(int, char **, char **), int argc, char **argv, void (*init)(int, char **, char **),
	void (*fini)(void), void (*rtld_fini)(void), void *stack_end)
{
	return old___libc_start_main(run, argc, argv, init ? init : run_constructors, fini, rtld_fini, stack_end);
}

static_assert(sizeof(struct stat) == sizeof(struct stat64), "one layout on machines of 64 bits");

/* Since 2.33 functions; before that, inline calls of these. STAT_VERSION: of struct stat; the kernel's own. */
#if defined(__x86_64__)
#define STAT_VERSION 1
#else
#define STAT_VERSION 0
#endif
extern int __xstat(int version, const char *path, struct stat *out);
extern int __lxstat(int version, const char *path, struct stat *out);
extern int __fxstat(int version, int fd, struct stat *out);
extern int __fxstatat(int version, int folder, const char *path, struct stat *out, int flags);

HIDDEN int stat(const char *path, struct stat *out)
{
	return __xstat(STAT_VERSION, path, out);
}

HIDDEN int lstat(const char *path, struct stat *out)
{
	return __lxstat(STAT_VERSION, path, out);
}

HIDDEN int fstat(int fd, struct stat *out)
{
	return __fxstat(STAT_VERSION, fd, out);
}

HIDDEN int fstatat(int folder, const char *path, struct stat *out, int flags)
{
	return __fxstatat(STAT_VERSION, folder, path, out, flags);
}

HIDDEN int stat64(const char *path, struct stat64 *out)
{
	return stat(path, (struct stat *)out);
}

HIDDEN int lstat64(const char *path, struct stat64 *out)
{
	return lstat(path, (struct stat *)out);
}

HIDDEN int fstat64(int fd, struct stat64 *out)
{
	return fstat(fd, (struct stat *)out);
}

/* Since 2.28. Its third argument, if there is one, is as wide as a pointer or narrower. */
HIDDEN int fcntl64(int fd, int command, ...)
{
	va_list arguments;
	void *argument;

	va_start(arguments, command);
	argument = va_arg(arguments, void *);
	va_end(arguments);
	return fcntl(fd, command, argument);
}

/* Calls of the kernel that had no function in 2.17. */
HIDDEN int renameat2(int old_folder, const char *from, int new_folder, const char *to, unsigned flags)
{
	return (int)syscall(SYS_renameat2, old_folder, from, new_folder, to, flags);
}

HIDDEN ssize_t getrandom(void *out, size_t bytes, unsigned flags)
{
	return syscall(SYS_getrandom, out, bytes, flags);
}

HIDDEN int memfd_create(const char *name, unsigned flags)
{
	return (int)syscall(SYS_memfd_create, name, flags);
}

HIDDEN pid_t gettid(void)
{
	return (pid_t)syscall(SYS_gettid);
}
