/*
 * What a kernel needs of an SM and which parameters it has: from its code, the first time that
 * somebody asks. Where there is no code for our device (the test programs have none), from the
 * name, the same in every run.
 */
#include <elf.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "core/core.h"

#define ARCH 90
#define DYNAMIC_DEFAULT 49152u /* bytes of shared memory without opting in */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static uint32_t hash_of(const char *name)
{
	uint32_t hash = 2166136261u;

	for (; *name; name++)
		hash = (hash ^ (unsigned char)*name) * 16777619u;
	return hash ^ hash >> 15;
}

static void learn_from_name(struct kernel *kernel)
{
	uint32_t hash = hash_of(kernel->name);

	kernel->registers = 16 + hash % 7 * 8; /* with up to 64, blocks of 1024 threads still fit */
	kernel->static_shared = hash / 7 % 4 == 0 ? 4096 : 0;
}

/* Those of the module that nobody has asked about yet. */
static struct kernel_list unlearned(const struct module *module)
{
	struct kernel_list kernels = { NULL, 0 };

	core_lock();
	for (struct kernel *k = module->kernels; k; k = k->next)
		kernels.count += !k->learned;
	kernels.list = zalloc(kernels.count * sizeof(struct kernel *));
	kernels.count = 0;
	for (struct kernel *k = module->kernels; k; k = k->next)
		if (!k->learned)
			kernels.list[kernels.count++] = k;
	core_unlock();
	return kernels;
}

static void describe(const void *elf, size_t bytes, void *kernels)
{
	cubin_describe(elf, bytes, kernels);
}

static void learn_module(const struct module *module)
{
	struct kernel_list kernels = unlearned(module);

	if (module->bytes > SELFMAG && memcmp(module->image, ELFMAG, SELFMAG) == 0)
		cubin_describe(module->image, module->bytes, &kernels);
	else if (module->bytes > 0)
		fatbin_visit(module->image, ARCH, describe, &kernels);
	for (size_t i = 0; i < kernels.count; i++) {
		struct kernel *kernel = kernels.list[i];

		if (!kernel->described)
			learn_from_name(kernel);
		arguments_learn(kernel);
		kernel->max_dynamic = kernel->static_shared < DYNAMIC_DEFAULT
					      ? DYNAMIC_DEFAULT - kernel->static_shared
					      : 0;
		__atomic_store_n(&kernel->learned, true, __ATOMIC_RELEASE);
	}
	free(kernels.list);
}

void kernel_learn(struct kernel *kernel)
{
	if (__atomic_load_n(&kernel->learned, __ATOMIC_ACQUIRE))
		return;
	pthread_mutex_lock(&lock);
	if (!kernel->learned)
		learn_module(kernel->module);
	pthread_mutex_unlock(&lock);
}

void kernel_takes_address(struct kernel *kernel)
{
	kernel_learn(kernel);
	if (__atomic_load_n(&kernel->described, __ATOMIC_ACQUIRE))
		return;
	pthread_mutex_lock(&lock);
	if (!kernel->described) {
		kernel->parameters = zalloc(sizeof(*kernel->parameters));
		kernel->parameters[0].bytes = sizeof(void *);
		kernel->parameter_count = 1;
		__atomic_store_n(&kernel->described, true, __ATOMIC_RELEASE);
	}
	pthread_mutex_unlock(&lock);
}
