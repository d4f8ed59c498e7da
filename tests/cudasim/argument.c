/*
 * What a launch tells of memory: the addresses among a kernel's arguments. Where the kernel's code says which parameters it
 * has, the words of these; else all that looks like an address of the device in and closely behind the arguments on the
 * launcher's stack, which takes in too much rather than too little.
 */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "core.h"

#define ARGUMENTS_MAX 1024
#define NEAR ((uintptr_t)64 << 10)  /* arguments lie this close to the array that names them */
#define BEHIND ((uintptr_t)4 << 10) /* bytes looked at behind the last argument's first */
#define RESUME ((uintptr_t)512)     /* an address found in the last of them: as many again */
#define ADDRESSES_MAX 2048

struct addresses {
	size_t count;
	uintptr_t list[ADDRESSES_MAX];
};

static uintptr_t lowest = UINTPTR_MAX, highest; /* of all device memory there ever was */

void arguments_know(uintptr_t address, size_t bytes)
{
	if (address < __atomic_load_n(&lowest, __ATOMIC_RELAXED))
		__atomic_store_n(&lowest, address, __ATOMIC_RELAXED);
	if (address + bytes > __atomic_load_n(&highest, __ATOMIC_RELAXED))
		__atomic_store_n(&highest, address + bytes, __ATOMIC_RELAXED);
}

/* The first address above this thread's stack, 0: unknown. */
static uintptr_t stack_end(void)
{
	static _Thread_local uintptr_t end;
	pthread_attr_t attributes;
	void *start = NULL;
	size_t bytes = 0;

	if (end || pthread_getattr_np(pthread_self(), &attributes) != 0)
		return end;
	if (pthread_attr_getstack(&attributes, &start, &bytes) == 0)
		end = (uintptr_t)start + bytes;
	pthread_attr_destroy(&attributes);
	return end;
}

static bool is_near(uintptr_t address, uintptr_t array, uintptr_t end)
{
	return address < end && address + NEAR > array && address < array + NEAR;
}

/* Looks beyond what belongs to the arguments, on purpose. */
#define UNCHECKED __attribute__((no_sanitize("address")))

/* Where the arguments begin, and where the last of them begins. */
UNCHECKED static void extent(void *const *arguments, uintptr_t end, uintptr_t *first, uintptr_t *last)
{
	uintptr_t array = (uintptr_t)arguments;

	*first = UINTPTR_MAX;
	*last = 0;
	for (size_t i = 0; i < ARGUMENTS_MAX && (uintptr_t)(arguments + i + 1) <= end; i++) {
		uintptr_t at = (uintptr_t)arguments[i];

		if (!is_near(at, array, end))
			break;
		*first = at < *first ? at : *first;
		*last = at > *last ? at : *last;
	}
}

/* All words of [first, until) that are device addresses; further if there are some at its end. */
UNCHECKED static void collect(uintptr_t first, uintptr_t until, uintptr_t end, struct addresses *found)
{
	uintptr_t low = __atomic_load_n(&lowest, __ATOMIC_RELAXED),
		  span = __atomic_load_n(&highest, __ATOMIC_RELAXED) - low;

	for (uintptr_t at = first & ~(uintptr_t)7; at + 8 <= end && at < until; at += 8) {
		uintptr_t word;

		memcpy(&word, (const void *)at, sizeof(word));
		if (word - low >= span)
			continue;
		if (found->count == ADDRESSES_MAX)
			return;
		found->list[found->count++] = word;
		if (until - at <= RESUME)
			until = at + BEHIND;
	}
}

/* The words of a parameter that are device addresses. */
static void collect_parameter(const void *value, size_t bytes, struct addresses *found)
{
	uintptr_t low = __atomic_load_n(&lowest, __ATOMIC_RELAXED),
		  span = __atomic_load_n(&highest, __ATOMIC_RELAXED) - low;

	for (size_t at = 0; at + sizeof(uintptr_t) <= bytes && found->count < ADDRESSES_MAX; at += sizeof(uintptr_t)) {
		uintptr_t word;

		memcpy(&word, (const char *)value + at, sizeof(word));
		if (word - low < span)
			found->list[found->count++] = word;
	}
}

/* Elementwise kernels of PyTorch have three parameters or more: a number, a function, and the operands, first of them the
 * result. */
static bool is_elementwise(const struct kernel *kernel)
{
	return kernel->parameter_count >= 3 && (strstr(kernel->name, "vectorized_elementwise_kernel") ||
						       strstr(kernel->name, "unrolled_elementwise_kernel"));
}

static void find_described(const struct op_kernel *op, struct addresses *found)
{
	const struct kernel *kernel = op->kernel;

	if (is_elementwise(kernel)) {
		collect_parameter(op->arguments[2], sizeof(uintptr_t), found);
		return;
	}
	for (unsigned i = 0; i < kernel->parameter_count && op->arguments[i]; i++)
		collect_parameter(op->arguments[i], kernel->parameters[i], found);
}

/* False: they cannot be known, since the arguments are not where compiled code puts them. */
static bool find_on_stack(const struct op_kernel *kernel, struct addresses *found)
{
	void *const *arguments = kernel->arguments;
	uintptr_t here = (uintptr_t)__builtin_frame_address(0), end = stack_end(), first, last;

	if ((uintptr_t)arguments < here || (uintptr_t)arguments >= end)
		return false;
	extent(arguments, end, &first, &last);
	if (last)
		collect(first, last + BEHIND, end, found);
	return true;
}

static bool find(const struct op_kernel *kernel, struct addresses *found)
{
	found->count = 0;
	if (!__atomic_load_n(&kernel->kernel->described, __ATOMIC_ACQUIRE))
		return find_on_stack(kernel, found);
	find_described(kernel, found);
	return true;
}

void arguments_touch(const struct op_kernel *kernel)
{
	struct addresses found;

	if (!kernel->arguments || !values_any())
		return;
	if (find(kernel, &found))
		values_touch(found.list, found.count);
	else
		values_touch_all();
}

static const struct touched *keep(const struct op_kernel *kernel)
{
	struct addresses found;
	struct touched *kept;

	if (!kernel->arguments || !find(kernel, &found) || found.count == 0)
		return NULL;
	kept = zalloc(sizeof(*kept) + found.count * sizeof(found.list[0]));
	kept->count = found.count;
	memcpy(kept->addresses, found.list, found.count * sizeof(found.list[0]));
	return kept;
}

struct op op_kept(const struct op *op)
{
	struct op kept = *op;

	if (op->kind == SIM_KERNEL && op->kernel.arguments) {
		kept.kernel.touched = keep(&op->kernel);
		kept.kernel.arguments = NULL;
	}
	return kept;
}
