/* Modules and the kernels in them. Nothing is executed: a kernel is a name, and what its code says
 * of it (learn.c). */
#include <elf.h>
#include <stdlib.h>
#include <string.h>

#include "core/core.h"
#include "core/entry.h"

#define KERNEL_MAGIC 0x4b45524eu
#define FATBIN_MAGIC 0xba55ed50u
#define WARP 32
#define SM_THREADS 2048
#define SM_BLOCKS 32
#define SM_REGISTERS 65536
#define SM_SHARED 233472         /* bytes */
#define BLOCK_SHARED_MAX 232448  /* bytes, opted in */
#define BLOCK_SHARED_SYSTEM 1024 /* bytes of each block that the system takes */
#define REGISTER_UNIT 256        /* registers are given to a warp in such units */

static struct module *modules;
static uint32_t module_count;

struct module *module_new(const void *image, size_t bytes)
{
	struct module *module = zalloc(sizeof(*module));

	module->image = image;
	module->bytes = bytes;
	module->alive = true;
	core_lock();
	module->id = ++module_count;
	module->next = modules;
	modules = module;
	core_unlock();
	return module;
}

bool module_valid(const struct module *module)
{
	bool valid = false;

	core_lock();
	for (const struct module *m = modules; m && !valid; m = m->next)
		valid = m == module && m->alive;
	core_unlock();
	return valid;
}

static void tell_module(const struct module *module, enum sim_resource_kind kind)
{
	tell_resource(&(struct sim_resource){
		.kind = kind,
		.context = sim_context_current(),
		.module = module->id,
		.image = module->image,
		.image_bytes = module->bytes,
	});
}

void module_touch(struct module *module)
{
	if (!__atomic_exchange_n(&module->loaded, true, __ATOMIC_RELAXED))
		tell_module(module, SIM_MODULE_LOADED);
}

CUresult module_unload(struct module *module)
{
	if (!module_valid(module))
		return CUDA_ERROR_INVALID_HANDLE;
	if (__atomic_load_n(&module->loaded, __ATOMIC_RELAXED))
		tell_module(module, SIM_MODULE_UNLOAD_STARTING);
	core_lock();
	module->alive = false;
	core_unlock();
	return CUDA_SUCCESS;
}

static size_t more(size_t a, size_t b)
{
	return a > b ? a : b;
}

/* To where the last of its parts ends. */
static size_t elf_bytes(const void *image)
{
	size_t bytes;
	Elf64_Ehdr header;
	Elf64_Shdr section;

	memcpy(&header, image, sizeof(header));
	bytes = more(sizeof(header), header.e_phoff + (size_t)header.e_phnum * header.e_phentsize);
	bytes = more(bytes, header.e_shoff + (size_t)header.e_shnum * header.e_shentsize);
	for (unsigned i = 0; i < header.e_shnum && header.e_shentsize == sizeof(section); i++) {
		memcpy(&section, (const char *)image + header.e_shoff + i * sizeof(section),
			sizeof(section));
		if (section.sh_type != SHT_NOBITS)
			bytes = more(bytes, section.sh_offset + section.sh_size);
	}
	return bytes;
}

static size_t fatbin_bytes(const void *image)
{
	struct {
		uint32_t magic;
		uint16_t version, header_bytes;
		uint64_t body_bytes;
	} header;

	memcpy(&header, image, sizeof(header));
	return header.header_bytes + (size_t)header.body_bytes;
}

size_t image_bytes(const void *image)
{
	const unsigned char *text = image;
	uint32_t magic;

	if (!image)
		return 0;
	memcpy(&magic, image, sizeof(magic));
	if (memcmp(image, ELFMAG, SELFMAG) == 0)
		return elf_bytes(image);
	if (magic == FATBIN_MAGIC)
		return fatbin_bytes(image);
	if (text[0] == '/' || text[0] == '.' || text[0] == '\n')
		return strlen(image) + 1;
	return 0;
}

static struct kernel *kernel_new(struct module *module, const char *name)
{
	struct kernel *kernel = zalloc(sizeof(*kernel));
	char *copy = zalloc(strlen(name) + 1);

	strcpy(copy, name);
	kernel->magic = KERNEL_MAGIC;
	kernel->name = copy;
	kernel->module = module;
	kernel->max_threads = 1024;
	kernel->next = module->kernels;
	module->kernels = kernel;
	return kernel;
}

struct kernel *kernel_get(struct module *module, const char *name)
{
	struct kernel *kernel;

	core_lock();
	for (kernel = module->kernels; kernel; kernel = kernel->next)
		if (strcmp(kernel->name, name) == 0)
			break;
	if (!kernel)
		kernel = kernel_new(module, name);
	core_unlock();
	return kernel;
}

bool kernel_valid(const struct kernel *kernel)
{
	return kernel && kernel->magic == KERNEL_MAGIC;
}

/* As many as its registers allow. */
static int most_threads(const struct kernel *kernel)
{
	int threads = kernel->max_threads < 1024 ? (int)kernel->max_threads : 1024;

	while (threads > WARP && kernel_occupancy(kernel, threads, 0) == 0)
		threads -= WARP;
	return threads;
}

CUresult kernel_attribute(struct kernel *kernel, CUfunction_attribute attribute, int *value)
{
	if (!kernel_valid(kernel))
		return CUDA_ERROR_INVALID_HANDLE;
	kernel_learn(kernel);
	switch (attribute) {
	case CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK:
		*value = most_threads(kernel);
		break;
	case CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES:
		*value = (int)kernel->local_bytes;
		break;
	case CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES:
		*value = (int)kernel->static_shared;
		break;
	case CU_FUNC_ATTRIBUTE_NUM_REGS:
		*value = (int)kernel->registers;
		break;
	case CU_FUNC_ATTRIBUTE_PTX_VERSION:
	case CU_FUNC_ATTRIBUTE_BINARY_VERSION:
		*value = 90;
		break;
	case CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES:
		*value = (int)__atomic_load_n(&kernel->max_dynamic, __ATOMIC_RELAXED);
		break;
	default:
		*value = 0;
	}
	return CUDA_SUCCESS;
}

CUresult kernel_set_attribute(struct kernel *kernel, CUfunction_attribute attribute, int value)
{
	if (!kernel_valid(kernel))
		return CUDA_ERROR_INVALID_HANDLE;
	kernel_learn(kernel);
	if (attribute != CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES)
		return CUDA_SUCCESS;
	if (value < 0 || (uint32_t)value > BLOCK_SHARED_MAX - kernel->static_shared)
		return CUDA_ERROR_INVALID_VALUE;
	__atomic_store_n(&kernel->max_dynamic, (uint32_t)value, __ATOMIC_RELAXED);
	return CUDA_SUCCESS;
}

static int least(int a, int b)
{
	return a < b ? a : b;
}

int kernel_occupancy(const struct kernel *kernel, int threads, size_t dynamic_shared)
{
	int warps = (threads + WARP - 1) / WARP;
	int warp_registers = ((int)kernel->registers * WARP + REGISTER_UNIT - 1) / REGISTER_UNIT *
			     REGISTER_UNIT;
	size_t shared = kernel->static_shared + dynamic_shared + BLOCK_SHARED_SYSTEM;
	int blocks;

	if (threads <= 0 || threads > 1024 || shared > SM_SHARED)
		return 0;
	blocks = least(SM_THREADS / (warps * WARP), SM_BLOCKS);
	blocks = least(blocks, SM_REGISTERS / warp_registers / warps);
	return least(blocks, (int)(SM_SHARED / shared));
}
