/* SPDX-License-Identifier: MIT
 * python_place.c: see python_place.h.
 */
#include "preload/python/code_location.h"

#include "collector/file/dictionary.h"
#include "collector/process/fork_wiped_memory.h"
#include "preload/python/python.h"
#include "preload/python/user_code.h"
#include "preload/python/safe_read.h"
#include "preload/python/str.h"

#include <stdatomic.h>

#define ENTRIES 16384u /* a power of two */
#define WAYS 4u        /* places where one may stand */
#define SAMPLES 8u

/* A place that has been looked at. `turn` is odd while somebody writes: then it is none. */
struct entry {
	_Atomic uint32_t turn;
	_Atomic uint64_t code, check;
	_Atomic uint64_t offset;
	_Atomic uint64_t texts, lines; /* function and file; line and own */
};

static struct entry *entries;

void python_place_prepare(void)
{
	if (!entries)
		entries = kept_memory(ENTRIES * sizeof *entries);
}

bool python_code_read(const struct python_layout *layout, uintptr_t code, struct python_code *parts)
{
	uintptr_t type;

	parts->version = 0;
	return peek_pointer(&type, code + PYTHON_TYPE) && type == (uintptr_t)python.code_type &&
	       peek_pointer(&parts->file, code + layout->code_file) && peek_pointer(&parts->name, code + layout->code_name) &&
	       peek_pointer(&parts->lines, code + layout->code_lines) &&
	       peek(&parts->line, code + layout->code_line, sizeof parts->line) &&
	       (!layout->code_version || peek(&parts->version, code + layout->code_version, sizeof parts->version));
}

static const uint8_t *lines_of(const struct python_code *parts, uint64_t *bytes)
{
	return peek(bytes, parts->lines + PYTHON_BYTES_SIZE, sizeof *bytes) ? peek_at(parts->lines + PYTHON_BYTES_DATA, (size_t)*bytes)
									     : NULL;
}

uint32_t python_code_line(const struct python_layout *layout, const struct python_code *parts, int64_t offset)
{
	uint64_t bytes;
	const uint8_t *table = lines_of(parts, &bytes);

	return table ? python_line(layout->lines, table, (size_t)bytes, parts->line, offset) : 0;
}

static uint64_t mix(uint64_t value, uint64_t more)
{
	value = (value ^ more) * UINT64_C(0x9e3779b97f4a7c15);
	return value ^ value >> 29;
}

/* How long it is, and some of its bytes from beginning to end. */
static uint64_t mix_sample(uint64_t value, const void *from, uint64_t bytes)
{
	const uint64_t steps = bytes / 8 < SAMPLES ? bytes / 8 : SAMPLES;
	uint64_t word = 0;

	value = mix(value, bytes);
	if (bytes < 8) {
		memcpy(&word, from, (size_t)bytes);
		return mix(value, word);
	}
	for (uint64_t i = 1; i <= steps; i++) {
		memcpy(&word, (const char *)from + (bytes - 8) * i / steps, sizeof word);
		value = mix(value, word);
	}
	return value;
}

static uint64_t mix_text(uint64_t value, const struct python_layout *layout, uintptr_t text)
{
	uint64_t length;
	unsigned width;
	bool ascii;
	uintptr_t data = python_text_data(layout, text, &length, &width, &ascii);
	const void *bytes = data ? peek_at(data, (size_t)length * width) : NULL;

	return bytes ? mix_sample(value, bytes, length * width) : value;
}

/* What says that it is the code object that it was. Never 0. */
static uint64_t check_of(const struct python_layout *layout, const struct python_code *parts)
{
	uint64_t value = mix(mix(mix(parts->file, parts->name), parts->lines), parts->line | (uint64_t)parts->version << 32), bytes;
	const void *table;

	if (!parts->version) {
		value = mix_text(mix_text(value, layout, parts->file), layout, parts->name);
		table = lines_of(parts, &bytes);
		if (table)
			value = mix_sample(value, table, bytes);
	}
	return value | 1;
}

static struct entry *set_of(uintptr_t code, int64_t offset)
{
	return entries + (mix(mix(0, code), (uint64_t)offset) >> 32 & (ENTRIES - 1) & ~(uint64_t)(WAYS - 1));
}

/* false: it is another, or was being written. Each part is loaded with acquire and stored with release: so none is read before the first look at
 * `turn` or after the second, none is written before it is odd. */
static bool take(struct entry *entry, uintptr_t code, int64_t offset, uint64_t check, struct python_place *place)
{
	const uint32_t turn = atomic_load_explicit(&entry->turn, memory_order_acquire);
	uint64_t texts, lines;

	if (turn & 1 || atomic_load_explicit(&entry->code, memory_order_acquire) != code ||
		atomic_load_explicit(&entry->offset, memory_order_acquire) != (uint64_t)offset ||
		atomic_load_explicit(&entry->check, memory_order_acquire) != check)
		return false;
	texts = atomic_load_explicit(&entry->texts, memory_order_acquire);
	lines = atomic_load_explicit(&entry->lines, memory_order_acquire);
	if (atomic_load_explicit(&entry->turn, memory_order_relaxed) != turn)
		return false;
	place->frame = (struct trace_python_frame){(uint32_t)texts, (uint32_t)(texts >> 32), (uint32_t)lines, 0};
	place->own = lines >> 32;
	return true;
}

static void put(struct entry *entry, uintptr_t code, int64_t offset, uint64_t check, const struct python_place *place)
{
	uint32_t turn = atomic_load_explicit(&entry->turn, memory_order_relaxed);

	if (turn & 1 || !atomic_compare_exchange_strong_explicit(&entry->turn, &turn, turn + 1, memory_order_acquire, memory_order_relaxed))
		return; /* another thread is at it */
	atomic_store_explicit(&entry->code, code, memory_order_release);
	atomic_store_explicit(&entry->offset, (uint64_t)offset, memory_order_release);
	atomic_store_explicit(&entry->check, check, memory_order_release);
	atomic_store_explicit(&entry->texts, place->frame.function | (uint64_t)place->frame.file << 32, memory_order_release);
	atomic_store_explicit(&entry->lines, place->frame.line | (uint64_t)place->own << 32, memory_order_release);
	atomic_store_explicit(&entry->turn, turn + 2, memory_order_release);
}

/* Where a new one goes: that of the same place with other code, a free one, else any. */
static struct entry *room_in(struct entry *set, uintptr_t code, int64_t offset, uint64_t check)
{
	for (unsigned i = 0; i < WAYS; i++) {
		const uint64_t there = atomic_load_explicit(&set[i].code, memory_order_relaxed);

		if (!there || (there == code && atomic_load_explicit(&set[i].offset, memory_order_relaxed) == (uint64_t)offset))
			return &set[i];
	}
	return &set[check >> 8 & (WAYS - 1)];
}

static uint32_t name_of(const struct python_layout *layout, uintptr_t text, bool *own)
{
	char room[PYTHON_TEXT_ROOM];
	size_t bytes;
	const char *found = python_text(layout, text, room, &bytes);

	if (found && own)
		*own = python_is_own(found, bytes);
	return found ? name_id_always(found, bytes) : 0;
}

static void look(const struct python_layout *layout, const struct python_code *parts, int64_t offset, struct python_place *place)
{
	place->own = false;
	place->frame.file = name_of(layout, parts->file, &place->own);
	place->frame.function = name_of(layout, parts->name, NULL);
	place->frame.line = python_code_line(layout, parts, offset);
	place->frame.reserved = 0;
}

bool python_place(const struct python_layout *layout, uintptr_t code, int64_t offset, struct python_place *place)
{
	struct python_code parts;
	struct entry *set;
	uint64_t check;

	if (!python_code_read(layout, code, &parts))
		return false;
	if (!entries) {
		look(layout, &parts, offset, place);
		return true;
	}
	check = check_of(layout, &parts);
	set = set_of(code, offset);
	for (unsigned i = 0; i < WAYS; i++)
		if (take(&set[i], code, offset, check, place))
			return true;
	look(layout, &parts, offset, place);
	if (place->frame.file && place->frame.function) /* else there was no room for the text: perhaps later */
		put(room_in(set, code, offset, check), code, offset, check, place);
	return true;
}
