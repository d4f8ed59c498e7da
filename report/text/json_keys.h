/* SPDX-License-Identifier: MIT
 * Recognises the keys of many similar objects. Programs write their keys in the same order again
 * and again. So each key is first compared with the one that followed its predecessor last time,
 * whose meaning is cached.
 */
#ifndef PPERF_REPORT_TEXT_JSON_KEYS_H
#define PPERF_REPORT_TEXT_JSON_KEYS_H

#include "report/text/json_scanner.h"

#define JSON_KEYS_MAX 48u         /* cached keys; others are looked up each time */
#define JSON_KEY_BYTES JSON_SLACK /* with quotes and colon; longer keys are not cached */

/* The cache, empty if all members except `meaning` are 0. */
struct json_keys {
	/* Returns the caller's number of a key without escapes; below 65536. */
	unsigned (*meaning)(const struct json_text *key);
	unsigned last;  /* row of the previous key; 0: at the start of an object */
	unsigned count; /* rows, without row 0, which is no key */
	struct json_key_row {
		char text[JSON_KEY_BYTES]; /* from quote to colon, then zeros */
		uint32_t mask;             /* one bit for each byte of `text` in use */
		uint16_t length, meaning;
		uint16_t next; /* row of the key that followed last time */
	} rows[JSON_KEYS_MAX + 1];
};

/* Reads a key that is not the expected one. Only json_keys_next calls it. */
bool json_keys_next_unexpected(
	struct json_scanner *scan, struct json_keys *keys, unsigned *meaning);

#if defined(__SSE2__)
#include <emmintrin.h>

static inline uint32_t json_key_same(const char *at, const char *text)
{
	return (uint32_t)_mm_movemask_epi8(
		_mm_cmpeq_epi8(_mm_loadu_si128((const __m128i *)(const void *)at),
			_mm_loadu_si128((const __m128i *)(const void *)text)));
}

static inline bool json_key_is_expected(const char *at, const struct json_key_row *key)
{
	return key->mask &&
	       !(~(json_key_same(at, key->text) | json_key_same(at + 16, key->text + 16) << 16) &
		       key->mask);
}
#else
static inline bool json_key_is_expected(const char *at, const struct json_key_row *key)
{
	return key->mask && !memcmp(at, key->text, key->length);
}
#endif

/* Reads a key like json_key, but returns its meaning. Set keys->last to 0 at the start of an
 * object. */
static inline bool json_keys_next(
	struct json_scanner *scan, struct json_keys *keys, unsigned *meaning)
{
	const struct json_key_row *expected = &keys->rows[keys->rows[keys->last].next];
	const char *at = scan->at;

	while (*at == ' ' || *at == '\n' || *at == '\t' || *at == '\r')
		at++;
	if (!json_key_is_expected(at, expected))
		return json_keys_next_unexpected(scan, keys, meaning);
	scan->at = at + expected->length;
	keys->last = (unsigned)(expected - keys->rows);
	*meaning = expected->meaning;
	return true;
}

#endif
