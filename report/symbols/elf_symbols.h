/* SPDX-License-Identifier: MIT
 * elf_symbols.h: the functions that one ELF file names. The only user of libelf.
 *
 * A path comes from a trace and a file from anywhere. What is opened is a regular file (regular_file.h); it is read with pread, never mapped, so that a file cut meanwhile cannot end us.
 * What is read: the headers (at most ELF_SECTIONS_MOST sections), ELF_NOTES_BYTES of notes, and a symbol and a string section of at
 * most ELF_SYMBOLS_BYTES together, each checked against the file's size first; a section that lies about itself
 * makes the file BAD_ELF.
 */
#ifndef PPERF_REPORT_SYMBOLS_ELF_SYMBOLS_H
#define PPERF_REPORT_SYMBOLS_ELF_SYMBOLS_H

#include "report/symbols/symbols.h"

#define ELF_SECTIONS_MAX 65536u
#define ELF_NOTES_BYTES (4u << 20)     /* of all notes that are looked at */
#define ELF_SYMBOLS_BYTES (512u << 20) /* twice that is needed while they are read */

struct elf_function {
	uint64_t start; /* as the file counts */
	uint64_t bytes; /* 0: up to the next */
	uint32_t name;  /* in names */
	uint32_t rank;  /* the lowest of one address is taken */
};

/* By start, none twice. Freed with elf_symbols_free. */
struct elf_symbols {
	struct elf_function *functions;
	size_t count;
	char *names;
};

enum elf_table { ELF_SYMTAB, ELF_DYNSYM };

#define BUILD_ID_BYTES_MAX 64u

struct build_id {
	unsigned char content[BUILD_ID_BYTES_MAX];
	size_t bytes;
};

/* SYMBOL_NONE: *out holds the functions of the file's `table`. Else why not (of NO_FILE to NO_SYMBOLS), and *out is
 * empty. */
enum symbol_miss elf_symbols_read(
	struct elf_symbols *out, const char *path, const struct build_id *id, enum elf_table table);
void elf_symbols_free(struct elf_symbols *symbols);

/* The function around `address`, NULL if it lies between functions. */
const struct elf_function *elf_symbols_find(const struct elf_symbols *symbols, uint64_t address);

#endif
