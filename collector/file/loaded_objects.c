/* SPDX-License-Identifier: MIT
 * Objects are collected while the dynamic linker holds its own lock, and written afterwards. Two
 * threads that collect concurrently may write an object twice. The repeated record is the same, so
 * this is harmless.
 */
#include "collector/file/loaded_objects.h"

#include "collector/file/dictionary.h"
#include "collector/process/fork_wiped_memory.h"
#include "collector/process/signal_guard.h"

#include <limits.h>
#include <link.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define SEEN_STACKS 8192u /* stacks that are remembered; a power of two */
/* Objects that are remembered. Further ones are written again whenever a new object is loaded. */
#define OBJECTS_MAX 8192u
#define SCRATCH_BYTES (256u << 10)
#define BUILD_ID_MAX 64u

/* An object. Its path and then its build id follow, padded to 8 bytes. */
struct found_object {
	uint64_t start, end, bias;
	uint32_t path_bytes, build_id_bytes;
};

/* What writing one record needs. It is not on the stack, because the program's threads may have
 * little. */
struct record_buffer {
	struct trace_module module;
	char texts[PATH_MAX + BUILD_ID_MAX];
	char real[PATH_MAX];
};

struct object_scan {
	char *scratch;
	struct record_buffer *record_buffer;
	size_t used;
	uint64_t adds;   /* number of objects ever loaded */
	bool incomplete; /* the scratch memory was too small for all */
};

static _Atomic uint64_t seen[SEEN_STACKS];    /* hashes of stacks whose objects are written */
static _Atomic uint64_t written[OBJECTS_MAX]; /* hashes of objects that are written */
static _Atomic uint32_t written_count;
static _Atomic uint64_t adds_written; /* `adds` when all objects were written */

static uint64_t hash_bytes(uint64_t hash, const void *bytes, size_t count)
{
	const unsigned char *p = bytes;

	for (size_t i = 0; i < count; i++)
		hash = (hash ^ p[i]) * UINT64_C(0x100000001b3);
	return hash ? hash : 1;
}

static uint64_t hash_addresses(const uint64_t *addresses, uint32_t count)
{
	uint64_t hash = count;

	for (uint32_t i = 0; i < count; i++) {
		hash = (hash ^ addresses[i]) * UINT64_C(0x9e3779b97f4a7c15);
		hash ^= hash >> 32;
	}
	return hash ? hash : 1;
}

static uint64_t hash_object(const struct found_object *f)
{
	return hash_bytes(
		UINT64_C(0xcbf29ce484222325), f, sizeof *f + f->path_bytes + f->build_id_bytes);
}

static bool is_written(uint64_t hash)
{
	uint32_t count = atomic_load_explicit(&written_count, memory_order_acquire);

	for (uint32_t i = 0; i < count && i < OBJECTS_MAX; i++)
		if (atomic_load_explicit(&written[i], memory_order_relaxed) == hash)
			return true;
	return false;
}

static void mark_written(uint64_t hash)
{
	uint32_t i = atomic_fetch_add(&written_count, 1);

	if (i < OBJECTS_MAX)
		atomic_store_explicit(&written[i], hash, memory_order_release);
	else
		atomic_fetch_sub(&written_count, 1);
}

/* ---- under the dynamic linker's lock ---- */

/* Finds the GNU build id in a segment of notes. Returns its size, 0 if there is none. */
static uint32_t build_id_in_notes(const char *notes, size_t bytes, size_t align, const char **id)
{
	const ElfW(Nhdr) * note;
	size_t name, text;

	align = align < 4 ? 4 : align;
	for (; bytes >= sizeof *note; notes += text, bytes -= text) {
		note = (const void *)notes;
		name = (sizeof *note + note->n_namesz + align - 1) & ~(align - 1);
		text = (name + note->n_descsz + align - 1) & ~(align - 1);
		if (name > bytes || note->n_descsz > bytes - name)
			return 0;
		*id = notes + name;
		if (note->n_type == NT_GNU_BUILD_ID && note->n_namesz == 4 &&
			!memcmp(note + 1, "GNU", 4))
			return note->n_descsz < BUILD_ID_MAX ? note->n_descsz : BUILD_ID_MAX;
		if (text > bytes)
			return 0;
	}
	return 0;
}

static uint32_t object_build_id(
	const struct dl_phdr_info *object, uint64_t start, uint64_t end, const char **id)
{
	for (int i = 0; i < object->dlpi_phnum; i++) {
		const ElfW(Phdr) *segment = &object->dlpi_phdr[i];
		uint64_t at = object->dlpi_addr + segment->p_vaddr;
		uint32_t bytes = 0;

		if (segment->p_type == PT_NOTE && at >= start && at + segment->p_memsz <= end)
			bytes = build_id_in_notes((const char *)(uintptr_t)at, segment->p_memsz,
				segment->p_align, id);
		if (bytes)
			return bytes;
	}
	return 0;
}

static void object_extent(const struct dl_phdr_info *object, uint64_t *start, uint64_t *end)
{
	*start = UINT64_MAX;
	*end = 0;
	for (int i = 0; i < object->dlpi_phnum; i++) {
		const ElfW(Phdr) *segment = &object->dlpi_phdr[i];
		uint64_t from = object->dlpi_addr + segment->p_vaddr;

		if (segment->p_type != PT_LOAD)
			continue;
		*start = from < *start ? from : *start;
		*end = from + segment->p_memsz > *end ? from + segment->p_memsz : *end;
	}
}

static void describe_object(
	struct found_object *f, const struct dl_phdr_info *object, size_t path_bytes)
{
	const char *id = "";

	memset(f, 0, sizeof *f);
	object_extent(object, &f->start, &f->end);
	f->bias = object->dlpi_addr;
	f->path_bytes = (uint32_t)path_bytes;
	f->build_id_bytes = object_build_id(object, f->start, f->end, &id);
	memcpy(f + 1, object->dlpi_name, path_bytes);
	memcpy((char *)(f + 1) + path_bytes, id, f->build_id_bytes);
}

static int collect_object(struct dl_phdr_info *object, size_t size, void *data)
{
	struct object_scan *all = data;
	struct found_object *f = (void *)(all->scratch + all->used);
	size_t path = strnlen(object->dlpi_name, PATH_MAX - 1),
	       room = (sizeof *f + path + BUILD_ID_MAX + 7) & ~(size_t)7;

	(void)size;
	all->adds = object->dlpi_adds;
	if (SCRATCH_BYTES - all->used < room) {
		all->incomplete = true;
		return 1;
	}
	describe_object(f, object, path);
	if (f->end > f->start && !is_written(hash_object(f)))
		all->used += room;
	return 0;
}

static int count_adds(struct dl_phdr_info *object, size_t size, void *data)
{
	(void)size;
	*(uint64_t *)data = object->dlpi_adds;
	return 1;
}

/* ---- writing ---- */

/* Makes `path` valid wherever the report runs, and returns its length. The linker names the program
 * "" and other objects as they were requested. */
static size_t make_absolute(char path[PATH_MAX], char real[PATH_MAX])
{
	ssize_t bytes;

	if (!*path) {
		bytes = readlink("/proc/self/exe", path, PATH_MAX - 1);
		path[bytes > 0 ? bytes : 0] = '\0';
	} else if (*path != '/' && strchr(path, '/') && realpath(path, real)) {
		strcpy(path, real);
	}
	return strlen(path);
}

static void write_module(const struct found_object *f, struct record_buffer *record)
{
	const char *id = (const char *)(f + 1) + f->path_bytes;
	size_t path, size;

	memset(record, 0, sizeof *record);
	memcpy(record->texts, f + 1, f->path_bytes);
	path = make_absolute(record->texts, record->real);
	memcpy(record->texts + path, id, f->build_id_bytes);
	size = (sizeof record->module + path + f->build_id_bytes + 7) & ~(size_t)7;
	record->module = (struct trace_module){
		.head = { .size = (uint16_t)size, .kind = TRACE_MODULE },
		.start = f->start,
		.end = f->end,
		.bias = f->bias,
		.path_bytes = (uint32_t)path,
		.build_id_bytes = f->build_id_bytes,
	};
	dictionary_put(&record->module.head, 1);
}

static void write_new(const struct object_scan *all)
{
	for (size_t at = 0; at < all->used;) {
		const struct found_object *f = (const void *)(all->scratch + at);
		uint64_t hash = hash_object(f);

		if (!is_written(hash)) {
			write_module(f, all->record_buffer);
			mark_written(hash);
		}
		at += (sizeof *f + f->path_bytes + BUILD_ID_MAX + 7) & ~(size_t)7;
	}
}

static void record_new_objects(void)
{
	struct object_scan all;
	uint32_t before;

	all.scratch = fork_kept_alloc(SCRATCH_BYTES + sizeof *all.record_buffer);
	if (!all.scratch)
		return;
	all.record_buffer = (void *)(all.scratch + SCRATCH_BYTES);
	do {
		all.used = 0;
		all.incomplete = false;
		before = atomic_load(&written_count);
		dl_iterate_phdr(collect_object, &all);
		write_new(&all);
	} while (all.incomplete && atomic_load(&written_count) != before);
	atomic_store(&adds_written, all.adds);
	fork_kept_free(all.scratch, SCRATCH_BYTES + sizeof *all.record_buffer);
}

void loaded_objects_record(const uint64_t *addresses, uint32_t count)
{
	uint64_t hash = hash_addresses(addresses, count), adds = 0;
	_Atomic uint64_t *slot = &seen[hash & (SEEN_STACKS - 1)];
	struct signal_guard guard;

	if (atomic_load_explicit(slot, memory_order_relaxed) == hash)
		return;
	/* The dynamic linker's lock is held inside. */
	signal_guard_begin(&guard);
	dl_iterate_phdr(count_adds, &adds);
	if (adds != atomic_load(&adds_written))
		record_new_objects();
	atomic_store_explicit(slot, hash, memory_order_relaxed);
	signal_guard_end(&guard);
}
