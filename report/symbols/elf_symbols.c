/* SPDX-License-Identifier: MIT */
#include "report/symbols/elf_symbols.h"
#include "report/base/compare.h"
#include "report/base/alloc.h"
#include "report/base/error.h"
#include "report/base/regular_file.h"
#include "report/base/search.h"

#include <errno.h>
#include <gelf.h>
#include <libelf.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define NOTES_MAX 65536u /* bytes of one note section that are read */
#define ENCLOSING_MAX 16 /* nearest functions before an address that are searched for it */

static bool note_matches(Elf_Data *data, const struct build_id *id)
{
	size_t at = 0, next, name, content;
	GElf_Nhdr note;

	while ((next = gelf_getnote(data, at, &note, &name, &content)) > at) {
		if (note.n_type == NT_GNU_BUILD_ID && note.n_namesz == sizeof ELF_NOTE_GNU &&
			note.n_descsz == id->bytes &&
			!memcmp((char *)data->d_buf + name, ELF_NOTE_GNU, sizeof ELF_NOTE_GNU))
			return !memcmp((char *)data->d_buf + content, id->content, id->bytes);
		at = next;
	}
	return false;
}

/* Reads notes and looks for the build id. libelf keeps what it has read, so `*left` limits the
 * bytes of all notes, even if they overlap. */
static bool note_chunk_matches(Elf *elf, uint64_t offset, uint64_t size, uint64_t align,
	const struct build_id *id, uint64_t *left)
{
	Elf_Data *data;

	if (size > NOTES_MAX || size > *left || offset > INT64_MAX)
		return false;
	*left -= size;
	data = elf_getdata_rawchunk(
		elf, (int64_t)offset, size, align == 8 ? ELF_T_NHDR8 : ELF_T_NHDR);
	return data && data->d_buf && note_matches(data, id);
}

/* Looks at sections first. In a separate debug file, the segments have the offsets of the
 * stripped file. */
static bool has_build_id(Elf *elf, size_t sections, const struct build_id *id)
{
	uint64_t left = ELF_NOTES_BYTES;
	size_t segments = 0;
	GElf_Shdr section;
	GElf_Phdr segment;

	for (size_t i = 1; i < sections; i++)
		if (gelf_getshdr(elf_getscn(elf, i), &section) && section.sh_type == SHT_NOTE &&
			note_chunk_matches(elf, section.sh_offset, section.sh_size,
				section.sh_addralign, id, &left))
			return true;
	if (elf_getphdrnum(elf, &segments))
		return false;
	for (size_t i = 0; i < segments && i < ELF_SECTIONS_MAX; i++)
		if (gelf_getphdr(elf, (int)i, &segment) && segment.p_type == PT_NOTE &&
			note_chunk_matches(elf, segment.p_offset, segment.p_filesz, segment.p_align,
				id, &left))
			return true;
	return false;
}

static bool is_native(Elf *elf)
{
	const unsigned char order = __BYTE_ORDER == __LITTLE_ENDIAN ? ELFDATA2LSB : ELFDATA2MSB;
	GElf_Ehdr header;

	return elf_kind(elf) == ELF_K_ELF && gelf_getehdr(elf, &header) &&
	       header.e_ident[EI_CLASS] == ELFCLASS64 && header.e_ident[EI_DATA] == order &&
	       (header.e_type == ET_EXEC || header.e_type == ET_DYN);
}

static Elf_Scn *section_of_type(Elf *elf, size_t sections, uint32_t type, GElf_Shdr *header)
{
	Elf_Scn *section;

	for (size_t i = 1; i < sections; i++) {
		section = elf_getscn(elf, i);
		if (gelf_getshdr(section, header) && header->sh_type == type)
			return section;
	}
	return NULL;
}

static bool is_function(const Elf64_Sym *symbol, uint64_t names_bytes)
{
	const unsigned type = ELF64_ST_TYPE(symbol->st_info);

	return (type == STT_FUNC || type == STT_GNU_IFUNC) && symbol->st_shndx != SHN_UNDEF &&
	       symbol->st_value != 0 && symbol->st_name != 0 && symbol->st_name < names_bytes;
}

/* Ranks the names of one address: a global one is preferred. */
static uint32_t symbol_rank(const Elf64_Sym *symbol)
{
	switch (ELF64_ST_BIND(symbol->st_info)) {
	case STB_GLOBAL:
		return 0;
	case STB_WEAK:
		return 1;
	default:
		return 2;
	}
}

static struct elf_function to_elf_function(const Elf64_Sym *symbol)
{
	return (struct elf_function){
		.start = symbol->st_value,
		.bytes = symbol->st_size,
		.name = symbol->st_name,
		.rank = symbol_rank(symbol),
	};
}

static int compare_elf_functions(const void *left, const void *right)
{
	const struct elf_function *a = left, *b = right;

	if (a->start != b->start)
		return a->start < b->start ? -1 : 1;
	if (a->rank != b->rank)
		return a->rank < b->rank ? -1 : 1;
	if (a->bytes != b->bytes)
		return a->bytes > b->bytes ? -1 : 1;
	return COMPARE(a->name, b->name);
}

static void sort_elf_functions(struct elf_symbols *symbols)
{
	struct elf_function *functions = symbols->functions;
	size_t kept = 0;

	qsort(functions, symbols->count, sizeof *functions, compare_elf_functions);
	for (size_t i = 0; i < symbols->count; i++)
		if (i == 0 || functions[i].start != functions[kept - 1].start)
			functions[kept++] = functions[i];
	symbols->count = kept;
}

/* Fills the empty `out` with the functions of the symbol table `table`, whose string table is
 * `names`. Both belong to libelf. Leaves `out` empty if there are none. */
static void copy_elf_functions(
	struct elf_symbols *out, const Elf_Data *table, const Elf_Data *names)
{
	const Elf64_Sym *symbols = table->d_buf;
	const size_t count = table->d_size / sizeof *symbols;
	size_t room = 0;

	for (size_t i = 0; i < count; i++)
		room += is_function(symbols + i, names->d_size);
	if (!room)
		return;
	out->names = xcalloc(names->d_size + 1);
	memcpy(out->names, names->d_buf, names->d_size);
	out->functions = xcalloc(room * sizeof *out->functions);
	for (size_t i = 0; i < count; i++)
		if (is_function(symbols + i, names->d_size))
			out->functions[out->count++] = to_elf_function(symbols + i);
	sort_elf_functions(out);
}

static bool is_symbol_table(const GElf_Shdr *table, const GElf_Shdr *names)
{
	return names->sh_type == SHT_STRTAB && table->sh_entsize == sizeof(Elf64_Sym) &&
	       !((table->sh_flags | names->sh_flags) & SHF_COMPRESSED);
}

static bool has_bytes(const Elf_Data *data)
{
	return data && data->d_buf;
}

static enum symbol_miss read_table(
	struct elf_symbols *out, Elf *elf, size_t sections, uint32_t type)
{
	GElf_Shdr table_header, names_header;
	Elf_Scn *table = section_of_type(elf, sections, type, &table_header), *names;
	Elf_Data *table_data, *names_data;

	if (!table)
		return SYMBOL_NO_SYMBOLS;
	names = elf_getscn(elf, table_header.sh_link);
	if (!names || !gelf_getshdr(names, &names_header) ||
		!is_symbol_table(&table_header, &names_header))
		return SYMBOL_BAD_ELF;
	if (table_header.sh_size > ELF_SYMBOLS_BYTES ||
		names_header.sh_size > ELF_SYMBOLS_BYTES - table_header.sh_size)
		return SYMBOL_TOO_LARGE;
	table_data = elf_getdata(table, NULL);
	names_data = elf_getdata(names, NULL);
	if (!has_bytes(table_data) || !has_bytes(names_data))
		return SYMBOL_BAD_ELF;
	copy_elf_functions(out, table_data, names_data);
	return out->count ? SYMBOL_FOUND : SYMBOL_NO_SYMBOLS;
}

static enum symbol_miss read_elf_file(
	struct elf_symbols *out, int fd, const struct build_id *id, enum elf_table table)
{
	const uint32_t type = table == ELF_SYMTAB ? SHT_SYMTAB : SHT_DYNSYM;
	enum symbol_miss miss = SYMBOL_BAD_ELF;
	size_t sections;
	Elf *elf;

	if (elf_version(EV_CURRENT) == EV_NONE)
		fatal(STATUS_UNREADABLE, "libelf is older than the headers used to build "
					 "pperf-report; rebuild it with this libelf");
	elf = elf_begin(fd, ELF_C_READ, NULL);
	if (elf && is_native(elf) && !elf_getshdrnum(elf, &sections) &&
		sections <= ELF_SECTIONS_MAX)
		miss = has_build_id(elf, sections, id) ? read_table(out, elf, sections, type)
						       : SYMBOL_OTHER_BUILD;
	elf_end(elf);
	return miss;
}

enum symbol_miss elf_symbols_read(
	struct elf_symbols *out, const char *path, const struct build_id *id, enum elf_table table)
{
	enum symbol_miss miss;
	struct stat status;
	int fd = regular_file_open(path, &status);

	*out = (struct elf_symbols){ 0 };
	if (fd < 0)
		return errno == ENOTSUP ? SYMBOL_NOT_REGULAR : SYMBOL_NO_FILE;
	miss = read_elf_file(out, fd, id, table);
	close(fd);
	return miss;
}

void elf_symbols_free(struct elf_symbols *symbols)
{
	free(symbols->functions);
	free(symbols->names);
	*symbols = (struct elf_symbols){ 0 };
}

DEFINE_COUNT_WHILE(functions_begun, struct elf_function, item->start <= limit)

/* A function may contain others (hand-written assembly names its parts). So the nearest start
 * may belong to a function that ends before `address`. */
const struct elf_function *elf_symbols_find(const struct elf_symbols *symbols, uint64_t address)
{
	const struct elf_function *functions = symbols->functions;
	const size_t begun = functions_begun(functions, symbols->count, address);

	if (begun > 0 && functions[begun - 1].bytes == 0)
		return functions + begun - 1;
	for (size_t i = begun; i > 0 && begun - i < ENCLOSING_MAX; i--)
		if (address - functions[i - 1].start < functions[i - 1].bytes)
			return functions + i - 1;
	return NULL;
}
