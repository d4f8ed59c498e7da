/* SPDX-License-Identifier: MIT
 * fuzz_elf.c: an ELF file that a trace names, of the build that the trace says, and addresses
 * looked up in it: in the file's own tables, and by the modules of a process.
 *
 * The input: an address (8 bytes), then the file.
 */
#include "tests/fuzz/host.h"
#include "tests/fuzz/mutate.h"
#include "tests/fuzz/target.h"

#include "report/symbols/elf_symbols.h"
#include "report/symbols/symbols.h"

#include <elf.h>
#include <stdlib.h>
#include <string.h>

struct asked {
	const char *path;
	uint64_t address;
};

/* The build id of the seed: 20 bytes of 0x42. */
static const struct build_id id = { "BBBBBBBBBBBBBBBBBBBB", 20 };

static void look_up(const struct asked *asked, enum elf_table table)
{
	struct elf_symbols symbols;
	const struct elf_function *function;
	char text[4096];

	if (elf_symbols_read(&symbols, asked->path, &id, table) == SYMBOL_FOUND) {
		function = elf_symbols_find(&symbols, asked->address);
		for (size_t i = 0; i < symbols.count && i < 64; i++)
			demangle(DEMANGLE_FULL, symbols.names + symbols.functions[i].name,
				strlen(symbols.names + symbols.functions[i].name), text,
				sizeof text);
		if (function)
			demangle(DEMANGLE_SHORT, symbols.names + function->name,
				strlen(symbols.names + function->name), text, sizeof text);
	}
	elf_symbols_free(&symbols);
}

/* As the trace says it: of the process, whose modules are where they are; one after the other in
 * one place. */
static void look_up_module(const struct asked *asked)
{
	const size_t path_bytes = strlen(asked->path);
	struct symbols *symbols = symbols_open();
	struct {
		struct trace_module module;
		char text[256];
	} record = { .module = { .start = 0x7f0000000000,
			     .end = 0x7f0000000000 + (asked->address >> 32) + 1,
			     .bias = 0x7f0000000000 } };
	char text[4096];

	if (path_bytes + id.bytes > sizeof record.text)
		abort();
	record.module.head.size = sizeof record;
	record.module.path_bytes = (uint16_t)path_bytes;
	record.module.build_id_bytes = (uint16_t)id.bytes;
	memcpy(record.text, asked->path, path_bytes);
	memcpy(record.text + path_bytes, id.content, id.bytes);
	symbols_debug_folder(symbols, host_folder());
	symbols_add(symbols, &record.module);
	for (uint64_t part = 0; part < 4; part++)
		symbols_print(symbols, 0x7f0000000000 + (uint32_t)asked->address + part * 0x1000,
			(enum demangle_form)(part % DEMANGLE_FORM_COUNT), text, sizeof text);
	record.module.start += asked->address & 0xffff;
	symbols_add(symbols, &record.module);
	symbols_print(symbols, 0x7f0000000000 + (uint32_t)asked->address, DEMANGLE_SHORT, text,
		sizeof text);
	symbols_close(symbols);
}

static int ask(void *context)
{
	look_up_module(context);
	look_up(context, ELF_SYMTAB);
	look_up(context, ELF_DYNSYM);
	return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
	struct asked asked;

	if (bytes < 8)
		return -1;
	memcpy(&asked.address, data, sizeof asked.address);
	asked.path = host_file("library.so", data + 8, bytes - 8);
	host_call(ask, &asked);
	return 0;
}

/* Half of the changes are of a field of a header of a section or segment, which most of the reading
 * hangs on. */
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t bytes, size_t room, unsigned seed)
{
	struct dice dice = { seed };
	static const uint64_t edges[] = { 0, 1, 7, 8, 24, 63, 4095, 65536, 0x7fffffff, 0xffffffff,
		UINT64_C(1) << 40, UINT64_C(1) << 63, UINT64_MAX };
	Elf64_Ehdr header;
	size_t table, at;
	uint64_t value;

	if (bytes < 8 + sizeof header || dice_below(&dice, 2))
		return LLVMFuzzerMutate(data, bytes, room);
	memcpy(&header, data + 8, sizeof header);
	table = dice_below(&dice, 4) ? (size_t)header.e_shoff : (size_t)header.e_phoff;
	if (table > bytes - 8 || bytes - 8 - table < 64)
		return LLVMFuzzerMutate(data, bytes, room);
	at = 8 + table + 8 * dice_below(&dice, (bytes - 8 - table) / 8);
	memcpy(&value, data + at, sizeof value);
	value = dice_below(&dice, 2) ? edges[dice_below(&dice, sizeof edges / sizeof *edges)]
				     : value + dice_below(&dice, 65) - 32;
	memcpy(data + at, &value, dice_below(&dice, 2) ? 4 : 8);
	return bytes;
}
