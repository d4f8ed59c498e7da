/* SPDX-License-Identifier: MIT */
#include "report/text/json_keys.h"
#include <assert.h>

static_assert(JSON_KEY_BYTES == 32,
	"a key has one bit of the mask for each byte, and can be compared at a buffer's end");

/* Returns the row of a key in the cache, or 0 if it is not there. `quoted`: the text from the
 * opening quote to the colon, at most JSON_KEY_BYTES. */
static unsigned find_key_row(const struct json_keys *keys, const char *quoted, size_t length)
{
	for (unsigned row = 1; row <= keys->count; row++)
		if (keys->rows[row].length == length &&
			!memcmp(keys->rows[row].text, quoted, length))
			return row;
	return 0;
}

/* Adds a key to the cache. Returns its row, or 0 if the cache is full. */
static unsigned remember_key(
	struct json_keys *keys, const char *quoted, size_t length, unsigned meaning)
{
	struct json_key_row *key;

	if (keys->count == JSON_KEYS_MAX)
		return 0;
	key = &keys->rows[++keys->count];
	memcpy(key->text, quoted, length);
	key->mask = (uint32_t)((UINT64_C(1) << length) - 1);
	key->length = (uint16_t)length;
	key->meaning = (uint16_t)meaning;
	return keys->count;
}

bool json_keys_next_unexpected(struct json_scanner *scan, struct json_keys *keys, unsigned *meaning)
{
	struct json_text key;
	const char *quoted;
	size_t length;
	unsigned row = 0;

	if (!json_key(scan, &key))
		return false;
	*meaning = keys->meaning(&key);
	quoted = key.bytes - 1;
	length = (size_t)(scan->at - quoted);
	if (length <= JSON_KEY_BYTES) {
		row = find_key_row(keys, quoted, length);
		if (!row)
			row = remember_key(keys, quoted, length, *meaning);
		keys->rows[keys->last].next = (uint16_t)row;
	}
	keys->last = row;
	return true;
}
