/*
 * What a launch tells of memory: the addresses among a kernel's arguments. Where the kernel's code
 * says which parameters it has, all words of these count; else the first word of each argument, and
 * an argument is what the launcher's array of them points to on its stack.
 */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "core/core.h"

#define ARGUMENTS_MAX 1024
#define NEAR ((uintptr_t)64 << 10) /* arguments lie this close to the array that names them */
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
	return address + sizeof(uintptr_t) <= end && address + NEAR > array &&
	       address < array + NEAR;
}

/* The words of a parameter that are device addresses. */
static void collect_parameter(const void *value, size_t bytes, struct addresses *found)
{
	uintptr_t low = __atomic_load_n(&lowest, __ATOMIC_RELAXED),
		  span = __atomic_load_n(&highest, __ATOMIC_RELAXED) - low;

	for (size_t at = 0; at + sizeof(uintptr_t) <= bytes && found->count < ADDRESSES_MAX;
		at += sizeof(uintptr_t)) {
		uintptr_t word;

		memcpy(&word, (const char *)value + at, sizeof(word));
		if (word - low < span)
			found->list[found->count++] = word;
	}
}

/*
 * Where PyTorch's commonest kernels have their results, in a parameter that also holds operands, or
 * words that nobody wrote: the first operand of an elementwise kernel; of a reduction everything
 * but a count, a base, and what comes before.
 */
static const struct habit {
	const char *name;
	unsigned parameter;
	size_t bytes;
	/* they begin so many bytes before the parameter's end, 0: at its start */
	size_t before_end;
} habits[] = {
	{ "vectorized_elementwise_kernel", 2, 8, 0 },
	{ "unrolled_elementwise_kernel", 2, 8, 0 },
	{ "13reduce_kernel", 0, 40, 56 },
};

void arguments_learn(struct kernel *kernel)
{
	for (size_t i = 0; i < sizeof(habits) / sizeof(habits[0]); i++)
		if (strstr(kernel->name, habits[i].name) &&
			habits[i].parameter < kernel->parameter_count &&
			kernel->parameters[habits[i].parameter].bytes >= habits[i].before_end)
			kernel->habit = &habits[i];
}

static void find_described(const struct op_kernel *op, struct addresses *found)
{
	const struct kernel *kernel = op->kernel;
	const struct habit *habit = kernel->habit;

	if (habit) {
		size_t start = habit->before_end ? kernel->parameters[habit->parameter].bytes -
							   habit->before_end
						 : 0;

		collect_parameter(
			(const char *)op->arguments[habit->parameter] + start, habit->bytes, found);
		return;
	}
	for (unsigned i = 0; i < kernel->parameter_count && op->arguments[i]; i++)
		collect_parameter(op->arguments[i], kernel->parameters[i].bytes, found);
}

/* Reads words of the stack that may belong to somebody else. False: they cannot be known, since the
 * arguments are not where compiled code puts them. */
__attribute__((no_sanitize("address"))) static bool find_on_stack(
	const struct op_kernel *kernel, struct addresses *found)
{
	void *const *arguments = kernel->arguments;
	uintptr_t here = (uintptr_t)__builtin_frame_address(0), end = stack_end(),
		  array = (uintptr_t)arguments;

	if (array < here || array >= end)
		return false;
	for (size_t i = 0; i < ARGUMENTS_MAX && (uintptr_t)(arguments + i + 1) <= end; i++) {
		if (!is_near((uintptr_t)arguments[i], array, end))
			break;
		collect_parameter(arguments[i], sizeof(uintptr_t), found);
	}
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
