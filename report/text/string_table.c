/* SPDX-License-Identifier: MIT */
#include "report/text/string_table.h"
#include "report/base/compare.h"
#include "report/base/alloc.h"
#include "report/base/hash_index.h"
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
	struct hash_index index;
	struct string_chunk *chunks;
	size_t used, chunk_room; /* bytes of the first chunk */
};

/* Eight bytes at a time: names of kernels are long. */
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

static struct hash_slot *string_slot(
	const struct string_table *table, uint64_t hash, const char *bytes, size_t length)
{
	struct hash_slot *slot = hash_index_first(&table->index, hash);

	while (slot->number && (table->strings[slot->number].length != length ||
				       memcmp(table->strings[slot->number].bytes, bytes, length)))
		slot = hash_index_next(&table->index, slot);
	return slot;
}

struct string_table *string_table_new(void)
{
	struct string_table *table = xcalloc(sizeof *table);

	ARRAY_GROW(table->strings, table->room, 64);
	table->strings[0].bytes = "";
	table->count = 1;
	hash_index_reserve(&table->index);
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
	hash_index_free(&table->index);
	free(table->strings);
	free(table);
}

uint32_t string_table_intern(struct string_table *table, const char *bytes, size_t length)
{
	struct hash_slot *slot;
	uint64_t hash;

	if (length == 0)
		return 0;
	hash = hash_string_bytes(bytes, length);
	hash_index_reserve(&table->index);
	slot = string_slot(table, hash, bytes, length);
	if (slot->number)
		return slot->number;
	ARRAY_GROW(table->strings, table->room, table->count + 1);
	table->strings[table->count].bytes = store_string(table, bytes, length);
	table->strings[table->count].length = (uint32_t)length;
	hash_index_add(&table->index, slot, hash, (uint32_t)table->count);
	return (uint32_t)table->count++;
}

uint32_t string_table_find(const struct string_table *table, const char *bytes, size_t length)
{
	return length ? string_slot(table, hash_string_bytes(bytes, length), bytes, length)->number
		      : 0;
}

uint32_t string_table_count(const struct string_table *table)
{
	return (uint32_t)table->count;
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

	return order ? order : COMPARE(left.length, right.length);
}
