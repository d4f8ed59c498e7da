/* SPDX-License-Identifier: MIT
 * symbols.h: addresses of a traced process -> functions, from its MODULE records and the ELF files they name.
 *
 * A module's table is read at the first address that falls into it, from the first of these that is a regular file
 * with the module's build id (NT_GNU_BUILD_ID): the module's path and /usr/lib/debug/.build-id/xx/yyyy.debug for
 * .symtab, the module's path for .dynsym. Both the records and the files are hostile input; elf_symbols.h says what
 * is opened and how much of it is read.
 *
 * Memory: 100 bytes and its path for each module; 24 bytes for each function and the string table of each build
 * that was asked about, once however many paths lead to it. All of it, texts that are returned included, belongs to
 * struct symbols and lives until symbols_close. Function names are those in the files, any bytes: make them visible
 * before they reach a terminal. Threads: one.
 */
#ifndef PPERF_REPORT_SYMBOLS_SYMBOLS_H
#define PPERF_REPORT_SYMBOLS_SYMBOLS_H

#include "collector/trace_format.h"
#include "report/symbols/demangle.h"
#include <stddef.h>
#include <stdint.h>

/* Why an address has no function. The texts complete "no function name: ". */
#define SYMBOL_MISSES(X)                                                       \
	X(NONE, "found")                                                       \
	X(NO_MODULE, "the address is in no module")                            \
	X(NOT_A_FILE, "the module has no file (vdso, generated code)")         \
	X(NO_FILE, "the file is missing or cannot be read")                    \
	X(NOT_REGULAR, "the path is not a regular file")                       \
	X(NO_BUILD_ID, "the module has no build id to compare")                \
	X(OTHER_BUILD, "the file is from another build than the one that ran") \
	X(BAD_ELF, "the file is not a complete 64-bit ELF file")               \
	X(TOO_LARGE, "the symbol table is larger than the limit")              \
	X(NO_SYMBOLS, "the file has no symbols and no separate debug file")    \
	X(BETWEEN, "the address is in no function of the symbol table")

enum symbol_miss {
#define X(miss, text) SYMBOL_##miss,
	SYMBOL_MISSES(X)
#undef X
		SYMBOL_MISS_COUNT
};

struct symbol {
	enum symbol_miss miss;
	const char *function; /* as in the file, mangled; NULL unless miss is NONE */
	uint64_t
		offset; /* into the function, else into the module as its file counts, else the address */
	const char *module; /* file name without folders; NULL if NO_MODULE */
	const char *path;   /* of the module, terminated, as recorded */
};

struct symbols;

/* Of one process. Memory is the only thing that can fail: the program then ends with a sentence. */
struct symbols *symbols_open(void);
void symbols_close(struct symbols *symbols);

/* Another root than /usr/lib/debug for separate debug files. Kept, not copied. */
void symbols_debug_folder(struct symbols *symbols, const char *folder);

/* A module, copied. An earlier one that it overlaps was unloaded and is forgotten, so add modules in the order of
 * the dictionary. -1: the record's texts do not fit in its size, or start..end is empty; it is then left out. */
int symbols_add(struct symbols *symbols, const struct trace_module *module);

/* The function around a return address (the byte before it is looked up, since a call may be a function's last
 * instruction). */
struct symbol symbols_find(struct symbols *symbols, uint64_t return_address);

/* `function+0x12 (module)`, `module+0x1234`, `0x7f00...`, the function in `form`. Returns bytes written, at most
 * room - 1, terminated. */
size_t symbols_print(struct symbols *symbols, uint64_t return_address, enum demangle_form form,
	char *out, size_t room);

/* How many symbols_find ended so. */
uint64_t symbols_miss_count(const struct symbols *symbols, enum symbol_miss miss);
const char *symbol_miss_text(enum symbol_miss miss);

#endif
