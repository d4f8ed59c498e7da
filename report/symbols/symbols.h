/* SPDX-License-Identifier: MIT
 * Maps addresses of the target program to functions, by its MODULE records and the ELF files
 * that they name.
 *
 * A module's table is read at the first address in it. Files are tried in this order; a file
 * must be regular and have the module's build id (NT_GNU_BUILD_ID):
 *
 *  1. .symtab of the module's path
 *  2. .symtab of /usr/lib/debug/.build-id/xx/yyyy.debug
 *  3. .dynsym of the module's path
 *
 * Records and files are hostile input; elf_symbols.h lists the limits.
 *
 * A module takes 100 bytes and its path. A build whose addresses are looked up takes 24 bytes
 * per function and its string table, once for all of its paths. All memory, including returned
 * strings, belongs to struct symbols and is valid until symbols_close. Function names may hold
 * any bytes, so escape them before they are written to a terminal. Threads: one.
 */
#ifndef PPERF_REPORT_SYMBOLS_SYMBOLS_H
#define PPERF_REPORT_SYMBOLS_SYMBOLS_H

#include "collector/trace_format.h"
#include "report/symbols/demangle.h"
#include <stddef.h>
#include <stdint.h>

/* Why an address has no function. */
enum symbol_miss {
	SYMBOL_FOUND, /* no miss: it has one */
	SYMBOL_NO_MODULE,
	SYMBOL_NOT_A_FILE,  /* vdso, generated code */
	SYMBOL_NO_FILE,     /* missing, or it cannot be read */
	SYMBOL_NOT_REGULAR, /* not a regular file */
	SYMBOL_NO_BUILD_ID,
	SYMBOL_OTHER_BUILD, /* the file is from another build than the one that ran */
	SYMBOL_BAD_ELF,     /* not a complete 64-bit ELF file */
	SYMBOL_TOO_LARGE,   /* the symbol table is larger than the limit */
	SYMBOL_NO_SYMBOLS,  /* none in the file, and no separate debug file */
	SYMBOL_BETWEEN,     /* in no function of the symbol table */
	SYMBOL_MISS_COUNT
};

struct symbol {
	enum symbol_miss miss;
	const char *function; /* as in the file, mangled; NULL unless SYMBOL_FOUND */
	/* In the function. Without a function, in the module's file. Without a module, the
	 * address. */
	uint64_t offset;
	const char *module; /* file name without folders; NULL if SYMBOL_NO_MODULE */
	const char *path;   /* of the module, terminated, as recorded */
};

struct symbols;

/* Creates an empty table for one process. The program ends with an error message if there is no
 * memory. */
struct symbols *symbols_open(void);
void symbols_close(struct symbols *symbols);

/* Sets another root than /usr/lib/debug for separate debug files. `folder` is not copied. */
void symbols_debug_folder(struct symbols *symbols, const char *folder);

/* Adds a copy of a module. Earlier modules that it overlaps were unloaded and are removed, so
 * modules must be added in the dictionary's order. Returns -1 and adds nothing if the record's
 * texts exceed its size or its address range is empty. */
int symbols_add(struct symbols *symbols, const struct trace_module *module);

/* Returns the function of a return address. The byte before it is looked up, because a call may
 * be the last instruction of a function. */
struct symbol symbols_find(struct symbols *symbols, uint64_t return_address);

/* Writes `function+0x12 (module)`, `module+0x1234` or `0x7f00...`, terminated, with the function
 * in `form`. Returns the bytes written, at most room - 1. */
size_t symbols_print(struct symbols *symbols, uint64_t return_address, enum demangle_form form,
	char *out, size_t room);

/* Returns how many calls of symbols_find had the result `miss`. */
uint64_t symbols_miss_count(const struct symbols *symbols, enum symbol_miss miss);

#endif
