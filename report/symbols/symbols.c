/* SPDX-License-Identifier: MIT
 * Keeps two search trees of libc: modules by address range, symbol tables by build id.
 */
#include "report/symbols/symbols.h"
#include "report/symbols/elf_symbols.h"
#include "report/base/alloc.h"
#include "report/base/error.h"

#include <limits.h>
#include <search.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DEBUG_FOLDER "/usr/lib/debug"

struct symbol_build {
	struct elf_symbols table;
	struct build_id id;
};

struct symbol_module {
	uint64_t start, end, bias;
	struct symbol_build *build; /* NULL: no build id */
	char *path;
	enum symbol_miss miss; /* valid if `tried` */
	bool tried;
};

struct symbols {
	void *modules, *builds;
	const char *debug_folder;
	uint64_t missed[SYMBOL_MISS_COUNT];
};

/* Overlapping modules compare as equal. */
static int compare_modules(const void *left, const void *right)
{
	const struct symbol_module *a = left, *b = right;

	if (a->end <= b->start)
		return -1;
	return a->start >= b->end;
}

static int compare_builds(const void *left, const void *right)
{
	const struct build_id *a = &((const struct symbol_build *)left)->id,
			      *b = &((const struct symbol_build *)right)->id;

	if (a->bytes != b->bytes)
		return a->bytes < b->bytes ? -1 : 1;
	return memcmp(a->content, b->content, a->bytes);
}

/* Returns the tree's entry that equals `key`. If there was none, that is `key`, which is
 * inserted. */
static void *symbol_tree_insert(void **tree, void *key, int (*compare)(const void *, const void *))
{
	void **node = tsearch(key, tree, compare);

	if (node)
		return *node;
	fatal(STATUS_UNREADABLE,
		"out of memory for the modules of the trace; free memory or raise the limit");
}

static void *symbol_tree_find(
	const void *key, void *const *tree, int (*compare)(const void *, const void *))
{
	void **node = tfind(key, tree, compare);

	return node ? *node : NULL;
}

static void symbol_module_free(void *opaque)
{
	struct symbol_module *module = opaque;

	free(module->path);
	free(module);
}

static void symbol_build_free(void *opaque)
{
	struct symbol_build *build = opaque;

	elf_symbols_free(&build->table);
	free(build);
}

struct symbols *symbols_open(void)
{
	struct symbols *symbols = xcalloc(sizeof *symbols);

	symbols->debug_folder = DEBUG_FOLDER;
	return symbols;
}

void symbols_close(struct symbols *symbols)
{
	tdestroy(symbols->modules, symbol_module_free);
	tdestroy(symbols->builds, symbol_build_free);
	free(symbols);
}

void symbols_debug_folder(struct symbols *symbols, const char *folder)
{
	symbols->debug_folder = folder;
}

static struct symbol_build *get_symbol_build(
	struct symbols *symbols, const unsigned char *id, size_t bytes)
{
	struct symbol_build *build, *known;

	if (bytes == 0 || bytes > BUILD_ID_BYTES_MAX)
		return NULL;
	build = xcalloc(sizeof *build);
	memcpy(build->id.content, id, bytes);
	build->id.bytes = bytes;
	known = symbol_tree_insert(&symbols->builds, build, compare_builds);
	if (known != build)
		free(build);
	return known;
}

static struct symbol_module *new_symbol_module(
	struct symbols *symbols, const struct trace_module *record)
{
	const char *path = (const char *)(record + 1);
	struct symbol_module *module = xcalloc(sizeof *module);

	module->start = record->start;
	module->end = record->end;
	module->bias = record->bias;
	module->path = xcalloc(record->path_bytes + 1u);
	memcpy(module->path, path, record->path_bytes);
	module->build = get_symbol_build(
		symbols, (const unsigned char *)path + record->path_bytes, record->build_id_bytes);
	return module;
}

int symbols_add(struct symbols *symbols, const struct trace_module *record)
{
	struct symbol_module *module, *unloaded;

	if (record->start >= record->end || record->head.size < sizeof *record ||
		(uint64_t)record->path_bytes + record->build_id_bytes >
			record->head.size - sizeof *record)
		return -1;
	module = new_symbol_module(symbols, record);
	while ((unloaded = symbol_tree_insert(&symbols->modules, module, compare_modules)) !=
		module) {
		tdelete(unloaded, &symbols->modules, compare_modules);
		symbol_module_free(unloaded);
	}
	return 0;
}

static enum symbol_miss read_debug_file(const struct symbols *symbols, struct symbol_build *build)
{
	char hex[2 * BUILD_ID_BYTES_MAX + 1] = "", path[4096];
	int length;

	for (size_t i = 0; i < build->id.bytes; i++)
		snprintf(hex + 2 * i, 3, "%02x", build->id.content[i]);
	length = snprintf(path, sizeof path, "%s/.build-id/%.2s/%s.debug", symbols->debug_folder,
		hex, hex + 2);
	if (length >= (int)sizeof path)
		return SYMBOL_NO_FILE;
	return elf_symbols_read(&build->table, path, &build->id, ELF_SYMTAB);
}

/* Reads the symbols of a module. If no file can be used, returns the reason for the module's own
 * file. */
static enum symbol_miss load_build(
	const struct symbols *symbols, const struct symbol_module *module)
{
	struct symbol_build *build = module->build;
	enum symbol_miss miss;

	if (module->path[0] != '/')
		return SYMBOL_NOT_A_FILE;
	if (!build)
		return SYMBOL_NO_BUILD_ID;
	if (build->table.count)
		return SYMBOL_FOUND;
	miss = elf_symbols_read(&build->table, module->path, &build->id, ELF_SYMTAB);
	if (miss == SYMBOL_FOUND || read_debug_file(symbols, build) == SYMBOL_FOUND)
		return SYMBOL_FOUND;
	if (miss != SYMBOL_NO_SYMBOLS)
		return miss;
	return elf_symbols_read(&build->table, module->path, &build->id, ELF_DYNSYM);
}

static const char *path_file_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	if (slash && slash[1])
		return slash + 1;
	return *path ? path : "(no name)";
}

static struct symbol find_symbol(struct symbols *symbols, uint64_t address)
{
	const struct symbol_module place = { .start = address - 1, .end = address };
	struct symbol_module *module = symbol_tree_find(&place, &symbols->modules, compare_modules);
	struct symbol symbol = { .miss = SYMBOL_NO_MODULE, .offset = address };
	const struct elf_function *function;

	if (address == 0 || !module)
		return symbol;
	if (!module->tried) {
		module->miss = load_build(symbols, module);
		module->tried = true;
	}
	symbol = (struct symbol){
		.miss = module->miss, .offset = address - module->bias, .path = module->path
	};
	symbol.module = path_file_name(module->path);
	if (symbol.miss != SYMBOL_FOUND)
		return symbol;
	function = elf_symbols_find(&module->build->table, symbol.offset - 1);
	if (!function) {
		symbol.miss = SYMBOL_BETWEEN;
		return symbol;
	}
	symbol.function = module->build->table.names + function->name;
	symbol.offset -= function->start;
	return symbol;
}

struct symbol symbols_find(struct symbols *symbols, uint64_t return_address)
{
	struct symbol symbol = find_symbol(symbols, return_address);

	symbols->missed[symbol.miss]++;
	return symbol;
}

size_t symbols_print(struct symbols *symbols, uint64_t return_address, enum demangle_form form,
	char *out, size_t room)
{
	static char decoded[DEMANGLE_OUTPUT + 1];
	struct symbol symbol = symbols_find(symbols, return_address);
	const char *function = symbol.function, *module = symbol.module;
	const unsigned long long offset = symbol.offset;
	const int most = room < INT_MAX / 2 ? (int)room : INT_MAX / 2;
	int length;

	if (room == 0)
		return 0;
	if (function && demangle(form, function, strlen(function), decoded, sizeof decoded))
		function = decoded;
	if (function)
		length = snprintf(out, room, "%.*s+0x%llx (%s)", most, function, offset, module);
	else if (module)
		length = snprintf(out, room, "%s+0x%llx", module, offset);
	else
		length = snprintf(out, room, "0x%llx", offset);
	return length < 0 ? 0 : (size_t)length < room ? (size_t)length : room - 1;
}

uint64_t symbols_miss_count(const struct symbols *symbols, enum symbol_miss miss)
{
	return symbols->missed[miss];
}
