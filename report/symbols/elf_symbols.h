/* SPDX-License-Identifier: MIT
 * Reads the functions of one ELF file. This is the only module that uses libelf.
 *
 * Paths come from a trace and files from anywhere. Only regular files are opened. They are read
 * by pread and never mapped, so that a file that is truncated meanwhile causes no SIGBUS. What
 * is read, after a check against the file's size:
 *
 *  - the headers of at most ELF_SECTIONS_MAX sections
 *  - at most ELF_NOTES_BYTES of notes
 *  - a symbol and a string section of at most ELF_SYMBOLS_BYTES together
 *
 * A file with a section that has wrong values is SYMBOL_BAD_ELF.
 */
#ifndef PPERF_REPORT_SYMBOLS_ELF_SYMBOLS_H
#define PPERF_REPORT_SYMBOLS_ELF_SYMBOLS_H

#include "report/symbols/symbols.h"

#define ELF_SECTIONS_MAX 65536u
#define ELF_NOTES_BYTES (4u << 20)     /* of all notes that are read */
#define ELF_SYMBOLS_BYTES (512u << 20) /* twice as much is needed while they are read */

struct elf_function {
	uint64_t start; /* virtual address in the ELF file, before relocation */
	uint64_t bytes; /* 0: unknown; it may extend to the next function */
	uint32_t name;  /* offset in `names` */
	uint32_t rank;  /* the name with the lowest rank is kept for each address */
};

/* Functions sorted by start, one for each address. Freed by elf_symbols_free. */
struct elf_symbols {
	struct elf_function *functions;
	size_t count;
	char *names; /* string table */
};

enum elf_table { ELF_SYMTAB, ELF_DYNSYM };

#define BUILD_ID_BYTES_MAX 64u

struct build_id {
	unsigned char content[BUILD_ID_BYTES_MAX];
	size_t bytes;
};

/* Reads the functions of the file's `table` into `*out`. Returns SYMBOL_FOUND, or why that
 * is not possible, with `*out` empty. */
enum symbol_miss elf_symbols_read(
	struct elf_symbols *out, const char *path, const struct build_id *id, enum elf_table table);
void elf_symbols_free(struct elf_symbols *symbols);

/* Returns the innermost function that contains `address`. The nearest one that begins before it
 * counts as such, at any distance, if its size is unknown. Returns NULL if none of the 16 nearest
 * ones contains it. */
const struct elf_function *elf_symbols_find(const struct elf_symbols *symbols, uint64_t address);

#endif
