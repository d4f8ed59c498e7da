/* SPDX-License-Identifier: MIT
 * What the simulated driver reads in the code that programs bring, in each form in which it comes.
 * The code is made here: an ELF file with the sections that a cubin has, for one kernel.
 */
#include <elf.h>
#include <string.h>

#include "tests/check_cuda.h"

enum { ROOM = 8192, KERNEL_SYMBOL = 1 };

static const char names[] = "\0.nv.info.taker\0.nv.shared.taker\0.nv.info\0.symtab\0taker";
#define NAME_OF(text) ((unsigned)(sizeof(names) - 1 - strlen(text)))

/* Attributes of .nv.info.NAME: two parameters, the second of 8 bytes at 4; and the most threads. */
static const uint32_t own[] = { 0x000c1704, 0, 0x00040001, 8u << 18, 0x000c1704, 0, 0x00000000,
	4u << 18, 0x000c0504, 256, 1, 1 };
/* Of .nv.info: registers, then local memory, of a symbol. */
static const uint32_t common[] = { 0x00082f04, KERNEL_SYMBOL, 40, 0x00081104, KERNEL_SYMBOL, 24 };

struct cubin {
	Elf64_Ehdr head;
	Elf64_Shdr sections[6];
	Elf64_Sym symbols[2];
	uint32_t own[sizeof(own) / 4], common[sizeof(common) / 4];
	char names[sizeof(names)];
};

static Elf64_Shdr section(unsigned name, unsigned type, size_t offset, size_t bytes)
{
	return (Elf64_Shdr){ .sh_name = name,
		.sh_type = type,
		.sh_offset = offset,
		.sh_size = bytes,
		.sh_link = 1 };
}

static void make(struct cubin *c)
{
	*c = (struct cubin){ .head = {
				     .e_ident = { ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64,
					     ELFDATA2LSB, EV_CURRENT },
				     .e_type = ET_EXEC,
				     .e_machine = 190,
				     .e_shoff = offsetof(struct cubin, sections),
				     .e_ehsize = sizeof(c->head),
				     .e_shentsize = sizeof(Elf64_Shdr),
				     .e_shnum = 6,
				     .e_shstrndx = 1,
			     } };
	memcpy(c->own, own, sizeof(own));
	memcpy(c->common, common, sizeof(common));
	memcpy(c->names, names, sizeof(names));
	c->symbols[KERNEL_SYMBOL].st_name = NAME_OF("taker");
	c->sections[1] = section(0, SHT_STRTAB, offsetof(struct cubin, names), sizeof(names));
	c->sections[2] = section(1, SHT_LOPROC, offsetof(struct cubin, own), sizeof(own));
	c->sections[3] = section(16, SHT_NOBITS, 0, 2048);
	c->sections[4] = section(33, SHT_LOPROC, offsetof(struct cubin, common), sizeof(common));
	c->sections[5] = section(
		42, SHT_SYMTAB, offsetof(struct cubin, symbols), sizeof(c->symbols));
}

struct fatbin {
	uint32_t magic;
	uint16_t version, head_bytes;
	uint64_t body_bytes;
	uint16_t kind, entry_version;
	uint32_t entry_head_bytes;
	uint64_t entry_bytes;
	uint32_t packed_bytes, unknown;
	uint16_t minor, major;
	uint32_t arch, name_offset, name_bytes;
	uint64_t flags, zero, bytes;
	unsigned char body[ROOM];
};

static void wrap(struct fatbin *fat, uint64_t flags, uint32_t arch, size_t packed)
{
	fat->magic = 0xba55ed50u;
	fat->version = 1;
	fat->head_bytes = 16;
	fat->body_bytes = 64 + packed;
	fat->kind = 2;
	fat->entry_head_bytes = 64;
	fat->entry_bytes = packed;
	fat->packed_bytes = (uint32_t)packed;
	fat->arch = arch;
	fat->flags = flags;
	fat->bytes = sizeof(struct cubin);
}

static int attribute(CUfunction function, CUfunction_attribute which)
{
	int value = -1;

	OK(cuFuncGetAttribute(&value, which, function));
	return value;
}

static CUfunction function_of(const void *image)
{
	CUfunction function;
	CUmodule module;

	OK(cudaFree(NULL));
	OK(cuModuleLoadData(&module, image));
	OK(cuModuleGetFunction(&function, module, "taker"));
	return function;
}

static void check_described(const void *image)
{
	CUfunction function = function_of(image);

	ck_assert_int_eq(attribute(function, CU_FUNC_ATTRIBUTE_NUM_REGS), 40);
	ck_assert_int_eq(attribute(function, CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES), 2048);
	ck_assert_int_eq(attribute(function, CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES), 24);
	ck_assert_int_eq(attribute(function, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK), 256);
	ck_assert_int_eq(
		attribute(function, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES), 49152 - 2048);
}

START_TEST(a_cubin_is_read)
{
	struct cubin cubin;

	make(&cubin);
	check_described(&cubin);
}
END_TEST

START_TEST(a_fat_binary_is_opened)
{
	static struct fatbin fat;

	make((struct cubin *)(void *)fat.body);
	wrap(&fat, 0x10, 90, sizeof(struct cubin));
	check_described(&fat);
}
END_TEST

START_TEST(code_for_another_device_is_none)
{
	static struct fatbin fat;

	make((struct cubin *)(void *)fat.body);
	wrap(&fat, 0x10, 80, sizeof(struct cubin));
	ck_assert_int_ne(attribute(function_of(&fat), CU_FUNC_ATTRIBUTE_NUM_REGS), 40);
}
END_TEST

/* One byte of each run of zeros as a literal, the rest as a match with it: both sorts, short and
 * long. */
static size_t pack_lz4(unsigned char *out, const unsigned char *bytes, size_t count)
{
	size_t written = 0, start = 0;

	while (start < count) {
		size_t literals = 0, match = 0, rest;

		while (start + literals < count &&
			(literals == 0 || bytes[start + literals] || bytes[start + literals - 1]))
			literals++;
		while (start + literals + match < count && !bytes[start + literals + match] &&
			literals && !bytes[start + literals - 1])
			match++;
		if (match < 4 && start + literals + match < count) {
			literals += match ? match : 0;
			match = 0;
		}
		if (match == 0)
			literals = count - start;
		out[written++] = (unsigned char)((literals < 15 ? literals : 15) << 4 |
						 (match < 4               ? 0
							 : match - 4 < 15 ? match - 4
									  : 15));
		if (literals >= 15) {
			for (rest = literals - 15; rest >= 255; rest -= 255)
				out[written++] = 255;
			out[written++] = (unsigned char)rest;
		}
		memcpy(out + written, bytes + start, literals);
		written += literals;
		start += literals;
		if (match < 4)
			break;
		out[written++] = 1;
		out[written++] = 0;
		if (match - 4 >= 15) {
			for (rest = match - 19; rest >= 255; rest -= 255)
				out[written++] = 255;
			out[written++] = (unsigned char)rest;
		}
		start += match;
	}
	return written;
}

START_TEST(code_packed_as_nvcc_12_does_is_unpacked)
{
	static struct fatbin fat;
	struct cubin cubin;
	size_t packed;

	make(&cubin);
	packed = pack_lz4(fat.body, (const unsigned char *)&cubin, sizeof(cubin));
	ck_assert_uint_lt(packed, sizeof(cubin));
	wrap(&fat, 0x2011, 90, packed);
	check_described(&fat);
}
END_TEST

/* A frame of Zstandard with one block that is not compressed. */
START_TEST(code_packed_as_nvcc_13_does_is_unpacked)
{
	static struct fatbin fat;
	static const unsigned char magic[] = { 0x28, 0xb5, 0x2f, 0xfd, 0xa0 };
	struct cubin cubin;
	uint32_t bytes = sizeof(cubin), block = (uint32_t)sizeof(cubin) << 3 | 1;

	make(&cubin);
	memcpy(fat.body, magic, 5);
	memcpy(fat.body + 5, &bytes, 4);
	memcpy(fat.body + 9, &block, 3);
	memcpy(fat.body + 12, &cubin, sizeof(cubin));
	wrap(&fat, 0x8011, 90, 12 + sizeof(cubin));
	check_described(&fat);
}
END_TEST

START_TEST(damaged_code_is_no_code)
{
	static struct fatbin fat;
	struct cubin cubin;
	size_t packed;

	make(&cubin);
	packed = pack_lz4(fat.body, (const unsigned char *)&cubin, sizeof(cubin));
	for (size_t cut = 1; cut < packed; cut += 7) {
		wrap(&fat, 0x2011, 90, packed - cut);
		attribute(function_of(&fat), CU_FUNC_ATTRIBUTE_NUM_REGS);
	}
}
END_TEST

/* The parameters say where addresses are: what lies between them does not count. */
START_TEST(described_parameters_are_exact)
{
	int *memory[2], value = 5, seen = 0;
	struct {
		int number;
		int *address, *beside;
	} arguments;
	void *pointers[] = { &arguments.number, &arguments.address };
	struct cubin cubin;
	CUfunction function;

	make(&cubin);
	function = function_of(&cubin);
	for (int i = 0; i < 2; i++) {
		OK(cudaMalloc((void **)&memory[i], sizeof(int)));
		OK(cudaMemcpy(memory[i], &value, sizeof(value), cudaMemcpyHostToDevice));
	}
	arguments.address = memory[0];
	arguments.beside = memory[1];
	OK(cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, NULL, pointers, NULL));
	OK(cudaMemcpy(&seen, memory[1], sizeof(seen), cudaMemcpyDeviceToHost));
	ck_assert_int_eq(seen, 5);
	OK(cudaMemcpy(&seen, memory[0], sizeof(seen), cudaMemcpyDeviceToHost));
	ck_assert_int_eq(seen, 0);
}
END_TEST

/* As Triton and other launchers ask; a kernel of a library is the same as its function. */
START_TEST(a_kernel_is_queried_as_its_function_is)
{
	size_t offset = 9, bytes = 9;
	const char *name = NULL;
	struct cubin cubin;
	CUfunction function;
	CUlibrary library;
	CUkernel kernel;
	int value = -1;

	make(&cubin);
	OK(cudaFree(NULL));
	OK(cuLibraryLoadData(&library, &cubin, NULL, NULL, 0, NULL, NULL, 0));
	OK(cuLibraryGetKernel(&kernel, library, "taker"));
	OK(cuKernelGetFunction(&function, kernel));
	OK(cuKernelGetParamInfo(kernel, 0, &offset, &bytes));
	ck_assert_uint_eq(offset, 0);
	ck_assert_uint_eq(bytes, 4);
	OK(cuFuncGetParamInfo(function, 1, &offset, &bytes));
	ck_assert_uint_eq(offset, 4);
	ck_assert_uint_eq(bytes, 8);
	FAILS(cuFuncGetParamInfo(function, 2, &offset, &bytes), CUDA_ERROR_INVALID_VALUE);
	OK(cuKernelGetAttribute(&value, CU_FUNC_ATTRIBUTE_NUM_REGS, kernel, 0));
	ck_assert_int_eq(value, 40);
	OK(cuKernelSetAttribute(CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 65536, kernel, 0));
	ck_assert_int_eq(
		attribute(function, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES), 65536);
	FAILS(cuKernelGetAttribute(&value, CU_FUNC_ATTRIBUTE_NUM_REGS, kernel, 7),
		CUDA_ERROR_INVALID_DEVICE);
	OK(cuKernelSetCacheConfig(kernel, CU_FUNC_CACHE_PREFER_SHARED, 0));
	OK(cuKernelGetName(&name, kernel));
	ck_assert_str_eq(name, "taker");
}
END_TEST

SUITE("cudasim code", a_cubin_is_read, a_fat_binary_is_opened, code_for_another_device_is_none,
	code_packed_as_nvcc_12_does_is_unpacked, code_packed_as_nvcc_13_does_is_unpacked,
	damaged_code_is_no_code, described_parameters_are_exact,
	a_kernel_is_queried_as_its_function_is)
