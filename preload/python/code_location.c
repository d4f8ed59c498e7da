/* SPDX-License-Identifier: MIT */
#include "preload/python/code_location.h"

#include "collector/file/dictionary.h"
#include "collector/process/fork_wiped_memory.h"
#include "preload/python/python.h"
#include "preload/python/user_code.h"
#include "preload/python/safe_read.h"
#include "preload/python/str.h"

#include <stdatomic.h>

#define ENTRIES 16384u /* a power of two */
#define WAYS 4u        /* entries where a location may be */
#define SAMPLES 8u

/* A cached location, protected by a sequence number: it is odd while a thread writes, and then the
 * entry is not used. */
struct location_entry {
	_Atomic uint32_t sequence;
	_Atomic uint64_t code, check;
	_Atomic uint64_t offset;
	_Atomic uint64_t function_file, line_stack; /* function and file; line and stack */
};

static struct location_entry *entries;

#define CODE_ENTRIES 4096u /* a power of two */

/* Which code objects are the program's: a checksum, and in the lowest bit whether it is. One word,
 * so that no thread reads half of an entry. 0: empty. */
static _Atomic uint64_t user_codes[CODE_ENTRIES];

void python_location_prepare(void)
{
	if (!entries)
		entries = fork_kept_alloc(ENTRIES * sizeof *entries);
}

bool python_code_read(const struct python_layout *layout, uintptr_t code, struct python_code *parts)
{
	uintptr_t type;

	parts->version = 0;
	return safe_read_pointer(&type, code + PYTHON_TYPE) &&
	       type == (uintptr_t)python.code_type &&
	       safe_read_pointer(&parts->file, code + layout->code_file) &&
	       safe_read_pointer(&parts->name, code + layout->code_name) &&
	       safe_read_pointer(&parts->lines, code + layout->code_lines) &&
	       safe_read(&parts->line, code + layout->code_line, sizeof parts->line) &&
	       (!layout->code_version || safe_read(&parts->version, code + layout->code_version,
						 sizeof parts->version));
}

static const uint8_t *line_table(const struct python_code *parts, uint64_t *bytes)
{
	return safe_read(bytes, parts->lines + PYTHON_BYTES_SIZE, sizeof *bytes)
		       ? safe_read_bytes(parts->lines + PYTHON_BYTES_DATA, (size_t)*bytes)
		       : NULL;
}

uint32_t python_code_line(
	const struct python_layout *layout, const struct python_code *parts, int64_t offset)
{
	uint64_t bytes;
	const uint8_t *table = line_table(parts, &bytes);

	return table ? python_line(layout->lines, table, (size_t)bytes, parts->line, offset) : 0;
}

static uint64_t hash_combine(uint64_t value, uint64_t more)
{
	value = (value ^ more) * UINT64_C(0x9e3779b97f4a7c15);
	return value ^ value >> 29;
}

/* Combines the length of a text and a sample of its bytes, from beginning to end, into a hash. */
static uint64_t hash_sample(uint64_t value, const void *from, uint64_t bytes)
{
	const uint64_t steps = bytes / 8 < SAMPLES ? bytes / 8 : SAMPLES;
	uint64_t word = 0;

	value = hash_combine(value, bytes);
	if (bytes < 8) {
		memcpy(&word, from, (size_t)bytes);
		return hash_combine(value, word);
	}
	for (uint64_t i = 1; i <= steps; i++) {
		memcpy(&word, (const char *)from + (bytes - 8) * i / steps, sizeof word);
		value = hash_combine(value, word);
	}
	return value;
}

static uint64_t hash_text(uint64_t value, const struct python_layout *layout, uintptr_t text)
{
	uint64_t length;
	unsigned width;
	bool ascii;
	uintptr_t data = python_str_data(layout, text, &length, &width, &ascii);
	const void *bytes = data ? safe_read_bytes(data, (size_t)length * width) : NULL;

	return bytes ? hash_sample(value, bytes, length * width) : value;
}

/* Returns a checksum that identifies the code object. Never 0. */
static uint64_t code_checksum(const struct python_layout *layout, const struct python_code *parts)
{
	uint64_t value = hash_combine(
			 hash_combine(hash_combine(parts->file, parts->name), parts->lines),
			 parts->line | (uint64_t)parts->version << 32),
		 bytes;
	const void *table;

	if (!parts->version) {
		value = hash_text(hash_text(value, layout, parts->file), layout, parts->name);
		table = line_table(parts, &bytes);
		if (table)
			value = hash_sample(value, table, bytes);
	}
	return value | 1;
}

static struct location_entry *cache_set(uintptr_t code, int64_t offset)
{
	return entries + (hash_combine(hash_combine(0, code), (uint64_t)offset) >> 32 &
				 (ENTRIES - 1) & ~(uint64_t)(WAYS - 1));
}

/* Loads an entry. Returns false if it is another location, or was being written. Each member is
 * loaded with acquire and stored with release. So no member is read before the first load of
 * `sequence` or after the second, and none is written before `sequence` is odd. */
static bool cache_load(struct location_entry *entry, uintptr_t code, int64_t offset, uint64_t check,
	struct python_location *location)
{
	const uint32_t sequence = atomic_load_explicit(&entry->sequence, memory_order_acquire);
	uint64_t function_file, line_stack;

	if (sequence & 1 || atomic_load_explicit(&entry->code, memory_order_acquire) != code ||
		atomic_load_explicit(&entry->offset, memory_order_acquire) != (uint64_t)offset ||
		atomic_load_explicit(&entry->check, memory_order_acquire) != check)
		return false;
	function_file = atomic_load_explicit(&entry->function_file, memory_order_acquire);
	line_stack = atomic_load_explicit(&entry->line_stack, memory_order_acquire);
	if (atomic_load_explicit(&entry->sequence, memory_order_relaxed) != sequence)
		return false;
	location->frame = (struct trace_python_frame){ (uint32_t)function_file,
		(uint32_t)(function_file >> 32), (uint32_t)line_stack, 0 };
	location->stack = (uint32_t)(line_stack >> 32);
	location->user_code = location->stack != 0;
	location->was_read = false;
	return true;
}

static void cache_store(struct location_entry *entry, uintptr_t code, int64_t offset,
	uint64_t check, const struct python_location *location)
{
	uint32_t sequence = atomic_load_explicit(&entry->sequence, memory_order_relaxed);

	if (sequence & 1 || !atomic_compare_exchange_strong_explicit(&entry->sequence, &sequence,
				    sequence + 1, memory_order_acquire, memory_order_relaxed))
		return; /* another thread writes it */
	atomic_store_explicit(&entry->code, code, memory_order_release);
	atomic_store_explicit(&entry->offset, (uint64_t)offset, memory_order_release);
	atomic_store_explicit(&entry->check, check, memory_order_release);
	atomic_store_explicit(&entry->function_file,
		location->frame.function | (uint64_t)location->frame.file << 32,
		memory_order_release);
	atomic_store_explicit(&entry->line_stack,
		location->frame.line | (uint64_t)location->stack << 32, memory_order_release);
	atomic_store_explicit(&entry->sequence, sequence + 2, memory_order_release);
}

/* Returns the entry for a new location: the one of the same place in other code, or a free one,
 * else any. */
static struct location_entry *cache_victim(
	struct location_entry *set, uintptr_t code, int64_t offset, uint64_t check)
{
	for (unsigned i = 0; i < WAYS; i++) {
		const uint64_t there = atomic_load_explicit(&set[i].code, memory_order_relaxed);

		if (!there || (there == code && atomic_load_explicit(&set[i].offset,
							memory_order_relaxed) == (uint64_t)offset))
			return &set[i];
	}
	return &set[check >> 8 & (WAYS - 1)];
}

static uint32_t text_name_id(const struct python_layout *layout, uintptr_t text, bool *user_code)
{
	char room[PYTHON_STR_ROOM];
	size_t bytes;
	const char *found = python_str(layout, text, room, &bytes);

	if (found && user_code)
		*user_code = python_is_user_code(found, bytes);
	return found ? name_id_always(found, bytes) : 0;
}

static void read_location(const struct python_layout *layout, const struct python_code *parts,
	int64_t offset, struct python_location *location)
{
	location->user_code = false;
	location->was_read = true;
	location->frame.file = text_name_id(layout, parts->file, &location->user_code);
	location->frame.function = text_name_id(layout, parts->name, NULL);
	location->frame.line = python_code_line(layout, parts, offset);
	location->frame.reserved = 0;
	location->stack = location->user_code ? python_stack_id(&location->frame, 1) : 0;
}

bool python_locate(const struct python_layout *layout, uintptr_t code, int64_t offset,
	struct python_location *location)
{
	struct python_code parts;
	struct location_entry *set;
	uint64_t check;

	if (!python_code_read(layout, code, &parts))
		return false;
	if (!entries) {
		read_location(layout, &parts, offset, location);
		return true;
	}
	check = code_checksum(layout, &parts);
	set = cache_set(code, offset);
	for (unsigned i = 0; i < WAYS; i++)
		if (cache_load(&set[i], code, offset, check, location))
			return true;
	read_location(layout, &parts, offset, location);
	/* What has no id had no room: it may get one later. */
	if (location->frame.file && location->frame.function &&
		(location->stack || !location->user_code))
		cache_store(cache_victim(set, code, offset, check), code, offset, check, location);
	return true;
}

/* Returns a checksum of the code object and its file, which decide whether it is the program's.
 * Its version is unique. Code without a version has the length and the last bytes of the file's
 * name instead, because another text may be at that address later. */
static uint64_t file_checksum(
	const struct python_layout *layout, uintptr_t code, const struct python_code *parts)
{
	const uint64_t value = hash_combine(hash_combine(code, parts->file), parts->version);
	uint64_t length, word = 0;
	unsigned width;
	bool ascii;
	uintptr_t data;

	if (parts->version)
		return value;
	data = python_str_data(layout, parts->file, &length, &width, &ascii);
	if (!data)
		return value;
	if (length * width >= sizeof word)
		safe_read(&word, data + length * width - sizeof word, sizeof word);
	return hash_combine(hash_combine(value, length), word);
}

bool python_code_is_user(const struct python_layout *layout, uintptr_t code)
{
	char room[PYTHON_STR_ROOM];
	struct python_code parts;
	_Atomic uint64_t *entry;
	const char *file;
	uint64_t check, found;
	size_t bytes;
	bool user_code;

	if (!python_code_read(layout, code, &parts))
		return false;
	check = file_checksum(layout, code, &parts) | 1;
	entry = &user_codes[check >> 32 & (CODE_ENTRIES - 1)];
	found = atomic_load_explicit(entry, memory_order_relaxed);
	if (found && (found | 1) == check)
		return found & 1;
	file = python_str(layout, parts.file, room, &bytes);
	user_code = file && python_is_user_code(file, bytes);
	atomic_store_explicit(entry, check - !user_code, memory_order_relaxed);
	return user_code;
}
