/* SPDX-License-Identifier: MIT
 * test_symbols.c: addresses get their functions from files made here, whole, of another build, cut,
 * damaged, and from what is no file.
 */
#include "report/symbols/symbols.h"
#include "report/symbols/elf_symbols.h"

#include <check.h>
#include <elf.h>
#include <fcntl.h>
#include <link.h>
#include <search.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define BIAS 0x7f0000000000u
#define ID "\x12\x34\x56\x78\x9a\xbc\xde\xf0\x12\x34\x56\x78\x9a\xbc\xde\xf0\x12\x34\x56\x78"
#define ID_BYTES 20

static char folder[4096];
static struct symbols *symbols;

/* ELF files: an ELF header, a note with the build id, a symbol table and its strings. */

struct function {
	const char *name;
	uint64_t start, bytes;
	unsigned char bind, type;
};

static const struct function functions[] = {
	{ "_ZN1A5firstEv", 0x1000, 0x40, STB_GLOBAL, STT_FUNC },
	{ "second", 0x1040, 0x20, STB_LOCAL, STT_FUNC },
	{ "weak_alias", 0x1080, 0x20, STB_WEAK, STT_FUNC },
	{ "the_name", 0x1080, 0x20, STB_GLOBAL, STT_FUNC },
	{ "local_alias", 0x1080, 0x80, STB_LOCAL, STT_FUNC },
	{ "no_function", 0x1090, 8, STB_GLOBAL, STT_OBJECT },
	{ "around", 0x2000, 0x100, STB_GLOBAL, STT_FUNC },
	{ "inside", 0x2010, 0x10, STB_LOCAL, STT_FUNC },
	{ "without_size", 0x3000, 0, STB_GLOBAL, STT_FUNC },
	{ "chosen", 0x3100, 0x10, STB_GLOBAL, STT_GNU_IFUNC },
};

struct image {
	Elf64_Ehdr header;
	struct {
		Elf64_Nhdr head;
		char name[4], id[ID_BYTES];
	} note;
	Elf64_Sym table[1 + sizeof functions / sizeof *functions];
	char names[256];
	Elf64_Shdr
		sections[5]; /* null, note, symbols, strings, and one for the caller's mischief */
};

static struct image image_of(uint32_t table_type)
{
	struct image image = {
		.header = { .e_ident = { ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64,
				    ELFDATA2LSB, EV_CURRENT },
			.e_type = ET_DYN,
			.e_machine = EM_X86_64,
			.e_version = EV_CURRENT,
			.e_ehsize = sizeof image.header,
			.e_shentsize = sizeof *image.sections,
			.e_shnum = 5,
			.e_shoff = offsetof(struct image, sections) },
		.note = { .head = { .n_namesz = 4,
				  .n_descsz = ID_BYTES,
				  .n_type = NT_GNU_BUILD_ID },
			.name = "GNU" },
		.sections = { [1] = { .sh_type = SHT_NOTE,
				      .sh_offset = offsetof(struct image, note),
				      .sh_size = sizeof image.note,
				      .sh_addralign = 4 },
			[2] = { .sh_type = table_type,
				.sh_offset = offsetof(struct image, table),
				.sh_size = sizeof image.table,
				.sh_link = 3,
				.sh_entsize = sizeof *image.table,
				.sh_addralign = 8 },
			[3] = { .sh_type = SHT_STRTAB,
				.sh_offset = offsetof(struct image, names),
				.sh_size = sizeof image.names,
				.sh_addralign = 1 } },
	};
	size_t at = 1;

	memcpy(image.note.id, ID, ID_BYTES);
	for (size_t i = 0; i < sizeof functions / sizeof *functions; i++) {
		const struct function *f = functions + i;

		image.table[i + 1] = (Elf64_Sym){ .st_name = (uint32_t)at,
			.st_value = f->start,
			.st_size = f->bytes,
			.st_shndx = 7,
			.st_info = (unsigned char)(f->bind << 4 | f->type) };
		at += (size_t)(stpcpy(image.names + at, f->name) - (image.names + at)) + 1;
	}
	return image;
}

static const char *path_of(const char *name)
{
	static char path[8192];

	snprintf(path, sizeof path, "%s/%s", folder, name);
	return path;
}

static void write_file(const char *name, const void *bytes, size_t count)
{
	int fd = open(path_of(name), O_WRONLY | O_CREAT | O_TRUNC, 0600);

	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(write(fd, bytes, count), (ssize_t)count);
	close(fd);
}

static void write_image(const char *name, uint32_t table_type)
{
	struct image image = image_of(table_type);

	write_file(name, &image, sizeof image);
}

/* Modules. */

static int add(const char *path, uint64_t start, uint64_t end, const char *id, size_t id_bytes)
{
	static struct {
		struct trace_module module;
		char texts[8192];
	} record;

	record.module = (struct trace_module){ .head = { .kind = TRACE_MODULE },
		.start = start,
		.end = end,
		.bias = start,
		.path_bytes = (uint32_t)strlen(path),
		.build_id_bytes = (uint32_t)id_bytes };
	memcpy(record.texts, path, strlen(path));
	memcpy(record.texts + strlen(path), id, id_bytes);
	record.module.head.size = (uint16_t)((sizeof record.module + strlen(path) + id_bytes + 7) &
					     ~7u);
	return symbols_add(symbols, &record.module);
}

static void add_file(const char *name)
{
	ck_assert_int_eq(add(path_of(name), BIAS, BIAS + 0x10000, ID, ID_BYTES), 0);
}

static void check_text(uint64_t offset, const char *wanted)
{
	char text[256];
	size_t bytes = symbols_print(symbols, BIAS + offset, DEMANGLE_FULL, text, sizeof text);

	ck_assert_str_eq(text, wanted);
	ck_assert_uint_eq(bytes, strlen(wanted));
}

static enum symbol_miss miss_of(uint64_t offset)
{
	return symbols_find(symbols, BIAS + offset).miss;
}

static void begin(void)
{
	const char *temporary = getenv("TMPDIR");

	snprintf(folder, sizeof folder, "%s/pperf-symbols-XXXXXX", temporary ? temporary : "/tmp");
	ck_assert_ptr_nonnull(mkdtemp(folder));
	symbols = symbols_open();
	symbols_debug_folder(symbols, folder);
}

static void end(void)
{
	static const char *const left[] = { "a.so", "b.so", "link", "fifo",
		".build-id/12/3456789abcdef0123456789abcdef012345678.debug" };

	symbols_close(symbols);
	for (size_t i = 0; i < sizeof left / sizeof *left; i++)
		unlink(path_of(left[i]));
	rmdir(path_of(".build-id/12"));
	rmdir(path_of(".build-id"));
	ck_assert_int_eq(rmdir(folder), 0);
}

START_TEST(a_return_address_gets_its_function)
{
	struct symbol found;

	write_image("a.so", SHT_SYMTAB);
	add_file("a.so");
	check_text(0x1012, "A::first()+0x12 (a.so)");
	check_text(0x1041, "second+0x1 (a.so)");
	check_text(0x3108, "chosen+0x8 (a.so)");
	found = symbols_find(symbols, BIAS + 0x1012);
	ck_assert_int_eq(found.miss, SYMBOL_FOUND);
	ck_assert_str_eq(found.function, "_ZN1A5firstEv");
	ck_assert_str_eq(found.module, "a.so");
	ck_assert_str_eq(found.path, path_of("a.so"));
	ck_assert_uint_eq(found.offset, 0x12);
}
END_TEST

START_TEST(a_call_at_a_functions_end_belongs_to_that_function)
{
	write_image("a.so", SHT_SYMTAB);
	add_file("a.so");
	check_text(0x1040, "A::first()+0x40 (a.so)");
	check_text(0x1060, "second+0x20 (a.so)");
	check_text(0x10000, "a.so+0x10000");
}
END_TEST

START_TEST(the_global_name_of_several_is_taken)
{
	write_image("a.so", SHT_SYMTAB);
	add_file("a.so");
	check_text(0x1081, "the_name+0x1 (a.so)");
}
END_TEST

START_TEST(between_functions_there_is_no_function)
{
	write_image("a.so", SHT_SYMTAB);
	add_file("a.so");
	check_text(0x1061, "a.so+0x1061");
	check_text(0x0fff, "a.so+0xfff");
	check_text(0x2200, "a.so+0x2200");
	ck_assert_uint_eq(symbols_miss_count(symbols, SYMBOL_BETWEEN), 3);
	ck_assert_uint_eq(symbols_miss_count(symbols, SYMBOL_FOUND), 0);
}
END_TEST

START_TEST(functions_inside_functions_and_without_a_size)
{
	write_image("a.so", SHT_SYMTAB);
	add_file("a.so");
	check_text(0x2011, "inside+0x1 (a.so)");
	check_text(0x2030, "around+0x30 (a.so)");
	check_text(0x30f0, "without_size+0xf0 (a.so)");
}
END_TEST

START_TEST(a_file_of_another_build_is_not_used)
{
	write_image("a.so", SHT_SYMTAB);
	ck_assert_int_eq(add(path_of("a.so"), BIAS, BIAS + 0x10000, "another build of it", 20), 0);
	check_text(0x1012, "a.so+0x1012");
	ck_assert_uint_eq(symbols_miss_count(symbols, SYMBOL_OTHER_BUILD), 1);
	ck_assert_int_eq(add(path_of("a.so"), BIAS, BIAS + 0x10000, ID, 19), 0);
	ck_assert_int_eq(miss_of(0x1012), SYMBOL_OTHER_BUILD);
	ck_assert_int_eq(add(path_of("a.so"), BIAS, BIAS + 0x10000, "", 0), 0);
	ck_assert_int_eq(miss_of(0x1012), SYMBOL_NO_BUILD_ID);
}
END_TEST

static void write_debug_file(void)
{
	ck_assert_int_eq(mkdir(path_of(".build-id"), 0700), 0);
	ck_assert_int_eq(mkdir(path_of(".build-id/12"), 0700), 0);
	write_image(".build-id/12/3456789abcdef0123456789abcdef012345678.debug", SHT_SYMTAB);
}

START_TEST(a_separate_debug_file_is_found_by_build_id)
{
	write_debug_file();
	ck_assert_int_eq(add("/no/such/file.so", BIAS, BIAS + 0x10000, ID, ID_BYTES), 0);
	check_text(0x1012, "A::first()+0x12 (file.so)");
}
END_TEST

START_TEST(the_dynamic_symbols_are_the_last_resort)
{
	struct image image = image_of(SHT_DYNSYM);

	image.names[image.table[2].st_name] = 'X';
	write_file("a.so", &image, sizeof image);
	add_file("a.so");
	check_text(0x1041, "Xecond+0x1 (a.so)");
	symbols_close(symbols);
	symbols = symbols_open();
	symbols_debug_folder(symbols, folder);
	write_debug_file();
	add_file("a.so");
	check_text(0x1041, "second+0x1 (a.so)");
}
END_TEST

START_TEST(what_is_no_regular_file_is_never_read)
{
	static const char *const others[] = { "/dev/zero", "/dev/tty", "/proc/kmsg",
		"/proc/self/maps", "/sys/kernel/notes", "/" };

	ck_assert_int_eq(mkfifo(path_of("fifo"), 0600), 0);
	add_file("fifo");
	ck_assert_int_eq(miss_of(1), SYMBOL_NOT_REGULAR);
	for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
		ck_assert_int_eq(add(others[i], BIAS, BIAS + 0x10000, ID, ID_BYTES), 0);
		ck_assert_msg(miss_of(1) == SYMBOL_NOT_REGULAR ||
				      (access(others[i], R_OK) && miss_of(1) == SYMBOL_NO_FILE),
			"%s", others[i]);
	}
	ck_assert_int_eq(add("/no/such/file", BIAS, BIAS + 0x10000, ID, ID_BYTES), 0);
	ck_assert_int_eq(miss_of(1), SYMBOL_NO_FILE);
	ck_assert_int_eq(add("linux-vdso.so.1", BIAS, BIAS + 0x10000, ID, ID_BYTES), 0);
	ck_assert_int_eq(miss_of(1), SYMBOL_NOT_A_FILE);
	check_text(0x10, "linux-vdso.so.1+0x10");
	ck_assert_int_eq(add("", BIAS, BIAS + 0x10000, ID, ID_BYTES), 0);
	check_text(0x10, "(no name)+0x10");
	write_image("a.so", SHT_SYMTAB);
	ck_assert_int_eq(symlink("a.so", path_of("link")), 0);
	add_file("link");
	check_text(0x1041, "second+0x1 (link)");
}
END_TEST

START_TEST(a_module_hides_what_was_unloaded_before_it)
{
	write_image("a.so", SHT_SYMTAB);
	write_image("b.so", SHT_SYMTAB);
	add_file("a.so");
	ck_assert_int_eq(add(path_of("b.so"), BIAS + 0x10000, BIAS + 0x20000, ID, ID_BYTES), 0);
	check_text(0x11041, "second+0x1 (b.so)");
	check_text(0x1041, "second+0x1 (a.so)");
	ck_assert_int_eq(add("/x.so", BIAS + 0x8000, BIAS + 0x18000, ID, ID_BYTES), 0);
	ck_assert_int_eq(symbols_find(symbols, BIAS + 0x1041).miss, SYMBOL_NO_MODULE);
	ck_assert_int_eq(symbols_find(symbols, BIAS + 0x19000).miss, SYMBOL_NO_MODULE);
	check_text(0x9041, "second+0x1 (x.so)"); /* of the same build, which is known already */
	check_text(0x20000, "0x7f0000020000");
	ck_assert_int_eq(symbols_find(symbols, 0).miss, SYMBOL_NO_MODULE);
	ck_assert_int_eq(symbols_find(symbols, UINT64_MAX).miss, SYMBOL_NO_MODULE);
}
END_TEST

START_TEST(records_that_contradict_themselves_are_left_out)
{
	struct trace_module module = {
		.head = { .size = sizeof module, .kind = TRACE_MODULE }, .start = 1, .end = 2
	};

	ck_assert_int_eq(symbols_add(symbols, &module), 0);
	module.path_bytes = 1;
	ck_assert_int_eq(symbols_add(symbols, &module), -1);
	module.path_bytes = module.build_id_bytes = 0x80000000;
	ck_assert_int_eq(symbols_add(symbols, &module), -1);
	module.path_bytes = module.build_id_bytes = 0;
	module.head.size = 8;
	ck_assert_int_eq(symbols_add(symbols, &module), -1);
	module.head.size = sizeof module;
	module.start = module.end;
	ck_assert_int_eq(symbols_add(symbols, &module), -1);
}
END_TEST

static void look_around(void)
{
	char text[64];

	symbols_close(symbols);
	symbols = symbols_open();
	symbols_debug_folder(symbols, "/no/such/folder");
	add_file("a.so");
	for (uint64_t offset = 0xff0; offset < 0x3200; offset += 0x37)
		symbols_print(symbols, BIAS + offset, DEMANGLE_SHORT, text, sizeof text);
}

START_TEST(a_file_cut_anywhere_or_changed_in_any_byte_is_survived)
{
	struct image image = image_of(SHT_SYMTAB);
	static const unsigned char flips[] = { 0xff, 0x80, 0x01 };
	int fd;

	write_file("a.so", &image, sizeof image);
	for (size_t length = sizeof image; length-- > 0;) {
		ck_assert_int_eq(truncate(path_of("a.so"), (off_t)length), 0);
		look_around();
		ck_assert_uint_eq(symbols_miss_count(symbols, SYMBOL_FOUND), 0);
	}
	write_file("a.so", &image, sizeof image);
	fd = open(path_of("a.so"), O_WRONLY);
	for (size_t at = 0; at < sizeof image; at++) {
		const unsigned char *byte = (unsigned char *)&image + at;

		for (size_t i = 0; i < sizeof flips; i++) {
			ck_assert_int_eq(
				pwrite(fd, &(unsigned char){ *byte ^ flips[i] }, 1, (off_t)at), 1);
			look_around();
		}
		ck_assert_int_eq(pwrite(fd, byte, 1, (off_t)at), 1);
	}
	close(fd);
	look_around();
	ck_assert_uint_gt(symbols_miss_count(symbols, SYMBOL_FOUND), 0);
}
END_TEST

START_TEST(tables_beyond_the_limit_are_not_read)
{
	struct image image = image_of(SHT_SYMTAB);

	image.sections[3].sh_size = ELF_SYMBOLS_BYTES;
	write_file("a.so", &image, sizeof image);
	ck_assert_int_eq(truncate(path_of("a.so"), (off_t)4 * ELF_SYMBOLS_BYTES),
		0); /* sparse: all of it is there */
	add_file("a.so");
	ck_assert_int_eq(miss_of(0x1041), SYMBOL_TOO_LARGE);
	image.header.e_shnum = 0;
	image.sections[0].sh_size = ELF_SECTIONS_MAX + 1;
	write_file("b.so", &image, sizeof image);
	ck_assert_int_eq(truncate(path_of("b.so"), (off_t)4 * ELF_SYMBOLS_BYTES), 0);
	add_file("b.so");
	ck_assert_int_eq(miss_of(0x1041), SYMBOL_BAD_ELF);
}
END_TEST

/* Each would have libelf read and keep 64 KiB more. */
START_TEST(notes_without_end_are_not_read)
{
	enum { NOTES = 20000 };
	Elf64_Shdr *sections = calloc(NOTES + 1, sizeof *sections);
	struct image image = image_of(SHT_SYMTAB);
	const clock_t start = clock();
	FILE *file = fopen(path_of("a.so"), "wb");

	ck_assert(file && sections);
	image.header.e_shnum = NOTES;
	image.header.e_shoff = sizeof image;
	for (size_t i = 1; i < NOTES; i++)
		sections[i] = (Elf64_Shdr){ .sh_type = SHT_NOTE,
			.sh_offset = 4096 + 8 * i,
			.sh_size = 65536,
			.sh_addralign = 4 };
	ck_assert_uint_eq(fwrite(&image, sizeof image, 1, file), 1);
	ck_assert_uint_eq(fwrite(sections, sizeof *sections, NOTES, file), NOTES);
	fclose(file);
	free(sections);
	add_file("a.so");
	ck_assert_int_eq(miss_of(0x1041), SYMBOL_OTHER_BUILD);
	ck_assert_int_lt(clock() - start, CLOCKS_PER_SEC / 2);
}
END_TEST

START_TEST(many_modules_are_found_quickly)
{
	clock_t start = clock();
	char path[64];

	for (uint64_t i = 0; i < 200000; i++) {
		snprintf(path, sizeof path, "/no/such/%llu",
			(unsigned long long)(i * 7919 % 200000));
		ck_assert_int_eq(
			add(path, BIAS + i * 7919 % 200000 * 4096,
				BIAS + (i * 7919 % 200000 + 1) * 4096, (char *)&i, sizeof i),
			0);
	}
	snprintf(path, sizeof path, "777+0x10");
	check_text(777 * 4096 + 0x10, path);
	ck_assert_double_lt((double)(clock() - start) / CLOCKS_PER_SEC, 5.0);
}
END_TEST

START_TEST(a_text_is_cut_to_its_room)
{
	char text[16];

	write_image("a.so", SHT_SYMTAB);
	add_file("a.so");
	ck_assert_uint_eq(symbols_print(symbols, BIAS + 0x1012, DEMANGLE_SHORT, text, 6), 5);
	ck_assert_str_eq(text, "first");
	ck_assert_uint_eq(symbols_print(symbols, BIAS + 0x1012, DEMANGLE_SHORT, text, 0), 0);
	ck_assert_uint_eq(symbols_print(symbols, BIAS + 0x1012, DEMANGLE_NO, text, 1), 0);
	ck_assert_str_eq(text, "");
}
END_TEST

/* The C library of this process. */

struct own {
	uint64_t address;
	bool found;
};

static size_t build_id_in(const char *note, size_t bytes, const char **id)
{
	Elf64_Nhdr head;

	while (bytes >= sizeof head + 4) {
		memcpy(&head, note, sizeof head);
		*id = note + sizeof head + ((head.n_namesz + 3) & ~3u);
		if (head.n_type == NT_GNU_BUILD_ID)
			return head.n_descsz;
		bytes -= sizeof head + ((head.n_namesz + 3) & ~3u) + ((head.n_descsz + 3) & ~3u);
		note = *id + ((head.n_descsz + 3) & ~3u);
	}
	return 0;
}

static int add_own(struct dl_phdr_info *info, size_t size, void *opaque)
{
	uint64_t first = UINT64_MAX, last = 0;
	struct own *own = opaque;
	const char *id = "";
	size_t id_bytes = 0;

	(void)size;
	for (size_t i = 0; i < info->dlpi_phnum; i++) {
		const Elf64_Phdr *segment = info->dlpi_phdr + i;
		uint64_t at = info->dlpi_addr + segment->p_vaddr;

		if (segment->p_type == PT_LOAD) {
			first = at < first ? at : first;
			last = at + segment->p_memsz > last ? at + segment->p_memsz : last;
		}
		if (segment->p_type == PT_NOTE && !id_bytes)
			id_bytes = build_id_in((const char *)at, segment->p_filesz, &id);
	}
	if (own->address < first || own->address >= last || info->dlpi_addr != (first & ~0xfffull))
		return 0;
	own->found = id_bytes && add(info->dlpi_name, first, last, id, id_bytes) == 0;
	return 1;
}

START_TEST(the_real_c_library_is_read)
{
	struct own own = { .address = (uint64_t)(uintptr_t)lsearch };

	dl_iterate_phdr(add_own, &own);
	if (own.found) /* else it is linked statically or has no build id */
		ck_assert_str_eq(symbols_find(symbols, own.address + 1).function, "lsearch");
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("symbols");
	TCase *cases = tcase_create("symbols"), *real = tcase_create("of a real kernel");
	SRunner *runner;
	int failed;

	tcase_add_checked_fixture(cases, begin, end);
	tcase_add_checked_fixture(real, begin, end);
	tcase_set_timeout(cases, 30);
	tcase_add_test(cases, a_return_address_gets_its_function);
	tcase_add_test(cases, a_call_at_a_functions_end_belongs_to_that_function);
	tcase_add_test(cases, the_global_name_of_several_is_taken);
	tcase_add_test(cases, between_functions_there_is_no_function);
	tcase_add_test(cases, functions_inside_functions_and_without_a_size);
	tcase_add_test(cases, a_file_of_another_build_is_not_used);
	tcase_add_test(cases, a_separate_debug_file_is_found_by_build_id);
	tcase_add_test(cases, the_dynamic_symbols_are_the_last_resort);
	tcase_add_test(cases, a_module_hides_what_was_unloaded_before_it);
	tcase_add_test(cases, records_that_contradict_themselves_are_left_out);
	tcase_add_test(cases, a_file_cut_anywhere_or_changed_in_any_byte_is_survived);
	tcase_add_test(cases, tables_beyond_the_limit_are_not_read);
	tcase_add_test(cases, notes_without_end_are_not_read);
	tcase_add_test(cases, many_modules_are_found_quickly);
	tcase_add_test(cases, a_text_is_cut_to_its_room);
	tcase_add_test(cases, the_real_c_library_is_read);
	suite_add_tcase(suite, cases);
	tcase_add_test(real, what_is_no_regular_file_is_never_read);
	tcase_set_tags(real, "real-kernel"); /* emulators leave it out */
	suite_add_tcase(suite, real);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_ENV);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed != 0;
}
