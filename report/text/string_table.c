/* SPDX-License-Identifier: MIT */
#include "report/text/string_table.h"
#include "report/base/alloc.h"
#include <stdlib.h>
#include <string.h>

#define PIECE_BYTES 65536u /* texts are kept in pieces, so that their addresses stay */

struct piece {
	struct piece *next;
	char bytes[];
};

struct texts {
	struct text *texts;
	size_t count, room;
	uint32_t *slots; /* hash table of ids, 0 empty; a power of two */
	size_t slot_count;
	struct piece *pieces;
	size_t used, piece_room; /* of the first piece */
};

/* Eight bytes at a time: names of kernels are long. */
static uint64_t hash(const char *bytes, size_t length)
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

static const char *keep(struct texts *texts, const char *bytes, size_t length)
{
	const size_t wanted = length + 1;
	char *copy;

	if (wanted > texts->piece_room - texts->used || !texts->pieces) {
		const size_t room = wanted > PIECE_BYTES ? wanted : PIECE_BYTES;
		struct piece *piece = need(sizeof *piece + room);

		piece->next = texts->pieces;
		texts->pieces = piece;
		texts->piece_room = room;
		texts->used = 0;
	}
	copy = texts->pieces->bytes + texts->used;
	memcpy(copy, bytes, length);
	copy[length] = '\0';
	texts->used += wanted;
	return copy;
}

/* The slot where the text is or belongs. */
static uint32_t *slot_of(const struct texts *texts, const char *bytes, size_t length)
{
	size_t i = hash(bytes, length) & (texts->slot_count - 1);

	for (;; i = (i + 1) & (texts->slot_count - 1)) {
		const struct text *text = &texts->texts[texts->slots[i]];

		if (!texts->slots[i] || (text->length == length && !memcmp(text->bytes, bytes, length)))
			return &texts->slots[i];
	}
}

static void widen(struct texts *texts)
{
	free(texts->slots);
	texts->slot_count = texts->slot_count ? texts->slot_count * 2 : 256;
	texts->slots = need(texts->slot_count * sizeof *texts->slots);
	for (size_t id = 1; id < texts->count; id++)
		*slot_of(texts, texts->texts[id].bytes, texts->texts[id].length) = (uint32_t)id;
}

struct texts *texts_new(void)
{
	struct texts *texts = need(sizeof *texts);

	grow(&texts->texts, &texts->room, 64, sizeof *texts->texts);
	texts->texts[0].bytes = "";
	texts->count = 1;
	widen(texts);
	return texts;
}

void texts_free(struct texts *texts)
{
	if (!texts)
		return;
	for (struct piece *piece = texts->pieces, *next; piece; piece = next) {
		next = piece->next;
		free(piece);
	}
	free(texts->slots);
	free(texts->texts);
	free(texts);
}

uint32_t text_id(struct texts *texts, const char *bytes, size_t length)
{
	uint32_t *slot;

	if (length == 0)
		return 0;
	slot = slot_of(texts, bytes, length);
	if (*slot)
		return *slot;
	if (texts->count * 2 >= texts->slot_count) {
		widen(texts);
		slot = slot_of(texts, bytes, length);
	}
	grow(&texts->texts, &texts->room, texts->count + 1, sizeof *texts->texts);
	texts->texts[texts->count].bytes = keep(texts, bytes, length);
	texts->texts[texts->count].length = (uint32_t)length;
	return *slot = (uint32_t)texts->count++;
}

uint32_t text_find(const struct texts *texts, const char *bytes, size_t length)
{
	return length ? *slot_of(texts, bytes, length) : 0;
}

struct text text_of(const struct texts *texts, uint32_t id)
{
	return texts->texts[id < texts->count ? id : 0];
}

int text_compare(const struct texts *texts, uint32_t a, uint32_t b)
{
	const struct text left = text_of(texts, a), right = text_of(texts, b);
	const int order = memcmp(left.bytes, right.bytes, left.length < right.length ? left.length : right.length);

	return order ? order : (left.length > right.length) - (left.length < right.length);
}
