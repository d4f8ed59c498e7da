/* SPDX-License-Identifier: MIT
 * json_keys.h: the keys of many objects that are alike. A program writes them in the same order again and again, so each
 * key is compared first with the one that came behind its predecessor last time; what it means was found out then.
 */
#ifndef PPERF_REPORT_TEXT_JSON_KEYS_H
#define PPERF_REPORT_TEXT_JSON_KEYS_H

#include "report/text/json_scanner.h"

#define JSON_KEYS_MAX 48u         /* kept; others are found each time */
#define JSON_KEY_BYTES JSON_SLACK /* with quotes and colon; longer ones are not kept */

/* None is known where all but `meaning` is zeros. */
struct json_keys {
	unsigned (*meaning)(const struct json_text
			*key); /* of a key without escapes, as the caller counts; below 65536 */
	unsigned last;         /* the key before: its row; 0: an object begins */
	unsigned count;        /* rows, but for row 0, which is no key's */
	struct json_key_row {
		char text[JSON_KEY_BYTES]; /* from quote to colon, zeros behind it */
		uint32_t mask;             /* a bit for each of its bytes */
		uint16_t length, meaning;
		uint16_t next; /* the row of what came behind it */
	} rows[JSON_KEYS_MAX + 1];
};

/* For json_keys_next alone: another key came than was expected. */
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

/* As json_key, but for what the key means. Where an object begins, keys->last is to be 0. */
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
