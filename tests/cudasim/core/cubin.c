/*
 * What compiled code says of its kernels: the sizes of their parameters, registers, shared and
 * local memory, and the most threads. It is an ELF file; a kernel NAME has sections .nv.info.NAME
 * and .nv.shared.NAME, and lines of its own in .nv.info.
 */
#include <elf.h>
#include <stdlib.h>
#include <string.h>

#include "core/core.h"

/* Of .nv.info: attributes one behind the other, each with a format, which says how long it is. */
#define FORMAT_SIZED 4 /* a size in bytes follows; all other formats are four bytes */
#define ATTRIBUTE_MAX_THREADS 0x05
#define ATTRIBUTE_FRAME 0x11 /* symbol, bytes of local memory a thread */
#define ATTRIBUTE_PARAMETER 0x17
#define ATTRIBUTE_REGISTERS 0x2f       /* symbol, registers a thread */
#define ATTRIBUTE_PARAMETER_LARGE 0x45 /* of a kernel with more than 4 KiB of them */

struct elf {
	const char *bytes;
	size_t size;
	const Elf64_Shdr *sections;
	unsigned count;
	const char *names;
};

struct attribute {
	uint8_t format, kind;
	uint16_t size;
	const char *value;
};

static bool inside(const struct elf *elf, uint64_t offset, uint64_t bytes)
{
	return offset <= elf->size && bytes <= elf->size - offset;
}

static bool elf_open(struct elf *elf, const void *bytes, size_t size)
{
	const Elf64_Ehdr *head = bytes;

	*elf = (struct elf){ .bytes = bytes, .size = size };
	if (size < sizeof(*head) || memcmp(bytes, ELFMAG, SELFMAG) != 0 ||
		head->e_shentsize != sizeof(Elf64_Shdr) ||
		!inside(elf, head->e_shoff, (uint64_t)head->e_shnum * sizeof(Elf64_Shdr)) ||
		head->e_shstrndx >= head->e_shnum)
		return false;
	elf->sections = (const void *)(elf->bytes + head->e_shoff);
	elf->count = head->e_shnum;
	elf->names = elf->bytes + elf->sections[head->e_shstrndx].sh_offset;
	return inside(elf, elf->sections[head->e_shstrndx].sh_offset,
		elf->sections[head->e_shstrndx].sh_size);
}

/* The text behind a prefix, NULL: it does not begin so. */
static const char *behind(const char *text, const char *prefix)
{
	size_t length = strlen(prefix);

	return strncmp(text, prefix, length) == 0 ? text + length : NULL;
}

/* The attribute at *at, which moves on; false: there is none. */
static bool next_attribute(const char **at, const char *end, struct attribute *attribute)
{
	if (end - *at < 4)
		return false;
	memcpy(attribute, *at, 4);
	attribute->value = *at + 4;
	*at += 4;
	if (attribute->format != FORMAT_SIZED)
		return true;
	if (attribute->size > end - *at)
		return false;
	*at += attribute->size;
	return true;
}

static uint32_t word(const struct attribute *attribute, unsigned index)
{
	uint32_t value = 0;

	if ((index + 1) * sizeof(value) <= attribute->size)
		memcpy(&value, attribute->value + index * sizeof(value), sizeof(value));
	return value;
}

static int by_name(const void *left, const void *right)
{
	struct kernel *const *a = left, *const *b = right;

	return strcmp((*a)->name, (*b)->name);
}

static struct kernel *find(const struct kernel_list *kernels, const char *name)
{
	struct kernel key = { .name = name }, *wanted = &key, **found;

	found = bsearch(&wanted, kernels->list, kernels->count, sizeof(*kernels->list), by_name);
	return found ? *found : NULL;
}

static void take_parameter(struct kernel *kernel, const struct attribute *attribute)
{
	unsigned ordinal = word(attribute, 1) & 0xffff;
	uint32_t bytes = attribute->kind == ATTRIBUTE_PARAMETER ? word(attribute, 2) >> 18
								: word(attribute, 2) & 0xffff;

	if (ordinal >= PARAMETERS_MAX)
		return;
	if (ordinal >= kernel->parameter_count) {
		kernel->parameters = grow(
			kernel->parameters, (ordinal + 1) * sizeof(*kernel->parameters));
		memset(kernel->parameters + kernel->parameter_count, 0,
			(ordinal + 1 - kernel->parameter_count) * sizeof(*kernel->parameters));
		kernel->parameter_count = ordinal + 1;
	}
	kernel->parameters[ordinal] = (struct parameter){ (uint16_t)bytes,
		(uint16_t)(word(attribute, 1) >> 16) };
}

/* The section .nv.info.NAME. */
static void take_own(struct kernel *kernel, const char *at, const char *end)
{
	struct attribute attribute;

	while (next_attribute(&at, end, &attribute)) {
		if (attribute.format != FORMAT_SIZED)
			continue;
		if (attribute.kind == ATTRIBUTE_PARAMETER ||
			attribute.kind == ATTRIBUTE_PARAMETER_LARGE)
			take_parameter(kernel, &attribute);
		if (attribute.kind == ATTRIBUTE_MAX_THREADS && word(&attribute, 0))
			kernel->max_threads = word(&attribute, 0) * word(&attribute, 1) *
					      word(&attribute, 2);
	}
	kernel->described = true;
}

static const char *symbol_name(const struct elf *elf, const Elf64_Shdr *symbols, uint32_t index)
{
	const Elf64_Sym *symbol = (const void *)(elf->bytes + symbols->sh_offset);
	const Elf64_Shdr *strings;

	if (symbols->sh_link >= elf->count || (index + 1) * sizeof(*symbol) > symbols->sh_size)
		return "";
	strings = &elf->sections[symbols->sh_link];
	return symbol[index].st_name < strings->sh_size
		       ? elf->bytes + strings->sh_offset + symbol[index].st_name
		       : "";
}

/* The section .nv.info, of all kernels. */
static void take_common(const struct elf *elf, const Elf64_Shdr *info, const Elf64_Shdr *symbols,
	const struct kernel_list *kernels)
{
	const char *at = elf->bytes + info->sh_offset, *end = at + info->sh_size;
	struct attribute attribute;

	while (next_attribute(&at, end, &attribute)) {
		struct kernel *kernel;

		if (attribute.kind != ATTRIBUTE_REGISTERS && attribute.kind != ATTRIBUTE_FRAME)
			continue;
		kernel = find(kernels, symbol_name(elf, symbols, word(&attribute, 0)));
		if (kernel && attribute.kind == ATTRIBUTE_REGISTERS)
			kernel->registers = word(&attribute, 1);
		else if (kernel)
			kernel->local_bytes = word(&attribute, 1);
	}
}

static void take_section(
	const struct elf *elf, const Elf64_Shdr *section, const struct kernel_list *kernels)
{
	const char *name = elf->names + section->sh_name, *of = behind(name, ".nv.info.");
	struct kernel *kernel;

	if (of && (kernel = find(kernels, of)))
		take_own(kernel, elf->bytes + section->sh_offset,
			elf->bytes + section->sh_offset + section->sh_size);
	of = behind(name, ".nv.shared.");
	if (of && (kernel = find(kernels, of)))
		kernel->static_shared = (uint32_t)section->sh_size;
}

void cubin_describe(const void *bytes, size_t size, const struct kernel_list *kernels)
{
	const Elf64_Shdr *symbols = NULL;
	struct elf elf;

	if (!elf_open(&elf, bytes, size))
		return;
	qsort(kernels->list, kernels->count, sizeof(*kernels->list), by_name);
	for (unsigned i = 0; i < elf.count; i++) {
		const Elf64_Shdr *section = &elf.sections[i];

		if (section->sh_type == SHT_NOBITS ||
			inside(&elf, section->sh_offset, section->sh_size))
			take_section(&elf, section, kernels);
		if (section->sh_type == SHT_SYMTAB)
			symbols = section;
	}
	for (unsigned i = 0; symbols && i < elf.count; i++)
		if (strcmp(elf.names + elf.sections[i].sh_name, ".nv.info") == 0)
			take_common(&elf, &elf.sections[i], symbols, kernels);
}
