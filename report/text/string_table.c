/* SPDX-License-Identifier: MIT */
#include "report/text/string_table.h"
#include "report/base/alloc.h"
#include <stdlib.h>
#include <string.h>

#define CHUNK_BYTES 65536u /* strings are kept in chunks, so that their addresses stay valid */

struct string_chunk {
	struct string_chunk *next;
	char bytes[];
};

struct string_table {
	struct string_view *strings;
	size_t count, room;
	uint32_t *slots; /* hash table of ids, 0: free; slot_count is a power of two */
	size_t slot_count;
	struct string_chunk *chunks;
	size_t used, chunk_room; /* bytes of the first chunk */
};

/* Hashes eight bytes at a time, as kernel names are long. */
static uint64_t hash_string_bytes(const char *bytes, size_t length)
{
	uint64_t value = 0xcbf29ce484222325u ^ length, word = 0;

	for (; length >= sizeof word; bytes += sizeof word, length -= sizeof word) {
		memcpy(&word, bytes, sizeof word);
		value = (value ^ word) * 0x9e3779b97f4a7c15u;
		value ^= value >> 32;
	}
	word = 0;
	memcpy(&word, bytes, length);
	value = (value ^ word) * 0x9e3779b97f4a7c15u;
	return value ^ value >> 29;
}

static const char *store_string(struct string_table *table, const char *bytes, size_t length)
{
	const size_t wanted = length + 1;
	char *copy;

	if (wanted > table->chunk_room - table->used || !table->chunks) {
		const size_t room = wanted > CHUNK_BYTES ? wanted : CHUNK_BYTES;
		struct string_chunk *chunk = xcalloc(sizeof *chunk + room);

		chunk->next = table->chunks;
		table->chunks = chunk;
		table->chunk_room = room;
		table->used = 0;
	}
	copy = table->chunks->bytes + table->used;
	memcpy(copy, bytes, length);
	copy[length] = '\0';
	table->used += wanted;
	return copy;
}

/* Returns the slot that holds the string or would hold it. */
static uint32_t *string_slot(const struct string_table *table, const char *bytes, size_t length)
{
	size_t i = hash_string_bytes(bytes, length) & (table->slot_count - 1);

	for (;; i = (i + 1) & (table->slot_count - 1)) {
		const struct string_view *text = &table->strings[table->slots[i]];

		if (!table->slots[i] ||
			(text->length == length && !memcmp(text->bytes, bytes, length)))
			return &table->slots[i];
	}
}

static void grow_string_slots(struct string_table *table)
{
	free(table->slots);
	table->slot_count = table->slot_count ? table->slot_count * 2 : 256;
	table->slots = xcalloc(table->slot_count * sizeof *table->slots);
	for (size_t id = 1; id < table->count; id++)
		*string_slot(
			table, table->strings[id].bytes, table->strings[id].length) = (uint32_t)id;
}

struct string_table *string_table_new(void)
{
	struct string_table *table = xcalloc(sizeof *table);

	array_grow_zeroed(&table->strings, &table->room, 64, sizeof *table->strings);
	table->strings[0].bytes = "";
	table->count = 1;
	grow_string_slots(table);
	return table;
}

void string_table_free(struct string_table *table)
{
	if (!table)
		return;
	for (struct string_chunk *chunk = table->chunks, *next; chunk; chunk = next) {
		next = chunk->next;
		free(chunk);
	}
	free(table->slots);
	free(table->strings);
	free(table);
}

uint32_t string_table_intern(struct string_table *table, const char *bytes, size_t length)
{
	uint32_t *slot;

	if (length == 0)
		return 0;
	slot = string_slot(table, bytes, length);
	if (*slot)
		return *slot;
	if (table->count * 2 >= table->slot_count) {
		grow_string_slots(table);
		slot = string_slot(table, bytes, length);
	}
	array_grow_zeroed(&table->strings, &table->room, table->count + 1, sizeof *table->strings);
	table->strings[table->count].bytes = store_string(table, bytes, length);
	table->strings[table->count].length = (uint32_t)length;
	return *slot = (uint32_t)table->count++;
}

uint32_t string_table_find(const struct string_table *table, const char *bytes, size_t length)
{
	return length ? *string_slot(table, bytes, length) : 0;
}

struct string_view string_table_get(const struct string_table *table, uint32_t id)
{
	return table->strings[id < table->count ? id : 0];
}

int string_table_compare(const struct string_table *table, uint32_t a, uint32_t b)
{
	const struct string_view left = string_table_get(table, a),
				 right = string_table_get(table, b);
	const int order = memcmp(
		left.bytes, right.bytes, left.length < right.length ? left.length : right.length);

	return order ? order : (left.length > right.length) - (left.length < right.length);
}
