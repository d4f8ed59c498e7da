/* SPDX-License-Identifier: MIT
 * Until the first module is unloaded, names are read directly. From then on each read is a system
 * call (process_vm_readv). So names that were read are kept in a cache, by their address. A name at
 * an address can change only if a module is unloaded and another one is loaded. Either begins a new
 * generation, and the cache holds only for the generation in which a name was read.
 */
#include "collector/cupti/kernel_names.h"

#include "collector/file/dictionary.h"
#include "collector/process/clock.h"

#include <errno.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

/* Longest stored kernel name, in bytes. CUTLASS has names of 4000 bytes. */
#define KERNEL_NAME_MAX 16384u

#define READERS_WAIT_NS UINT64_C(1000000000)
#define CACHE_SLOTS 512u /* by address; names are at least 2 bytes apart */

static atomic_bool module_unloaded;
static _Atomic uint32_t generation; /* counts loads and unloads of modules */
/* Names that were read, by their address. A thread that finds the cache in use does without. */
static struct {
	const char *name;
	uint32_t generation, id;
} cache[CACHE_SLOTS];
static atomic_flag cache_in_use = ATOMIC_FLAG_INIT;
/* Number of threads that now read a name without a check. */
static atomic_uint direct_readers;

/* Both sides store first and load afterwards. Either the reader sees module_unloaded, or it is
 * counted here. A name is read in less than a microsecond. The wait is bounded, in case a reading
 * thread never runs again. */
void kernel_names_module_unloads(void)
{
	const uint64_t began = clock_monotonic_ns();

	atomic_fetch_add(&generation, 1);
	atomic_store(&module_unloaded, true);
	while (atomic_load(&direct_readers) && clock_monotonic_ns() - began < READERS_WAIT_NS)
		sched_yield();
}

/* Whether a page can be read. The kernel reads the eight bytes of a signal set before it refuses
 * the invalid operation. Even a strict sandbox allows this system call. */
static bool is_readable(uintptr_t page)
{
	return syscall(SYS_rt_sigprocmask, ~0, (void *)page, NULL, 8L) != -1 || errno != EFAULT;
}

/* Copies up to `bytes` bytes from `page`, the one that holds `from`. Returns how many it copied; 0
 * if the page cannot be read. */
static size_t copy_from_page(char *copy, uintptr_t from, size_t bytes, uintptr_t page)
{
	const struct iovec local = { copy, bytes }, remote = { (void *)from, bytes };
	const ssize_t got = process_vm_readv(getpid(), &local, 1, &remote, 1, 0);

	if (got > 0)
		return (size_t)got;
	if (errno == EFAULT || !is_readable(page))
		return 0;
	/* Not EFAULT: a sandbox forbids process_vm_readv, and the page can be read. */
	memcpy(copy, (const void *)from, bytes);
	return bytes;
}

/* Copies a name that may have vanished: the kernel refuses the read where pperf would crash.
 * Returns false if the name is gone. */
static bool copy_name_checked(char *copy, const char *name)
{
	const uintptr_t page_bytes = (uintptr_t)sysconf(_SC_PAGESIZE);

	copy[KERNEL_NAME_MAX] = '\0';
	for (size_t done = 0; done < KERNEL_NAME_MAX;) {
		const uintptr_t at = (uintptr_t)name + done, in_page = at % page_bytes;
		const size_t left = page_bytes - in_page, room = KERNEL_NAME_MAX - done;
		const size_t got = copy_from_page(
			copy + done, at, left < room ? left : room, at - in_page);

		if (!got)
			return false;
		if (memchr(copy + done, 0, got))
			break;
		done += got;
	}
	return true;
}

/* Copies the name if no module was ever unloaded. Returns false if one was. */
static bool copy_name_direct(char *copy, const char *name)
{
	bool all_stay;

	atomic_fetch_add(&direct_readers, 1);
	all_stay = !atomic_load(&module_unloaded);
	if (all_stay)
		*(char *)mempcpy(copy, name, strnlen(name, KERNEL_NAME_MAX)) = '\0';
	atomic_fetch_sub_explicit(&direct_readers, 1, memory_order_release);
	return all_stay;
}

void kernel_names_module_loaded(void)
{
	atomic_fetch_add(&generation, 1);
}

static size_t cache_slot(const char *name)
{
	return ((uintptr_t)name * UINT64_C(0x9e3779b97f4a7c15) >> 32) % CACHE_SLOTS;
}

/* Returns 0 if the cache does not have the name. */
static uint32_t find_cached(const char *name, uint32_t now)
{
	const size_t slot = cache_slot(name);
	uint32_t id = 0;

	if (atomic_flag_test_and_set_explicit(&cache_in_use, memory_order_acquire))
		return 0;
	if (cache[slot].name == name && cache[slot].generation == now)
		id = cache[slot].id;
	atomic_flag_clear_explicit(&cache_in_use, memory_order_release);
	return id;
}

static void keep_cached(const char *name, uint32_t read_in, uint32_t id)
{
	const size_t slot = cache_slot(name);

	if (atomic_flag_test_and_set_explicit(&cache_in_use, memory_order_acquire))
		return;
	cache[slot].name = name;
	cache[slot].generation = read_in;
	cache[slot].id = id;
	atomic_flag_clear_explicit(&cache_in_use, memory_order_release);
}

/* `copy` has space for KERNEL_NAME_MAX + 1 bytes. */
static uint32_t read_name_checked(char *copy, const char *name)
{
	/* Loaded first: if the generation changes during the read, the entry is not used. */
	const uint32_t now = atomic_load(&generation);
	uint32_t id = find_cached(name, now);

	if (id || !copy_name_checked(copy, name))
		return id;
	id = name_id_always(copy, strnlen(copy, KERNEL_NAME_MAX));
	keep_cached(name, now, id);
	return id;
}

uint32_t kernel_names_id(const char *name)
{
	char copy[KERNEL_NAME_MAX + 1];

	if (!name)
		return 0;
	if (!copy_name_direct(copy, name))
		return read_name_checked(copy, name);
	return name_id_always(copy, strnlen(copy, KERNEL_NAME_MAX));
}
