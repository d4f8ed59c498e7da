/* SPDX-License-Identifier: MIT
 * A packed entry: a byte with its class, and ENTRY_HAS_MASK if the mask of its words follows; else
 * the mask is that of the last entry of the class. Then a number for each word in the mask: the
 * difference to that of the last entry, with the sign in the lowest bit, 7 bits in a byte.
 *
 * Entries that are too long for the mask, or not made of words, are copied.
 */
#include "report/base/entry_pack.h"

#include "report/base/alloc.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define ENTRY_CLASSES 16u
#define ENTRY_WORDS_MAX 64u
#define RELATIONS_MAX 8u
#define ENTRY_HAS_MASK 0x80u
#define NUMBER_BYTES_MAX 5u
/* Words of the last mask that may be stored although they do not differ. A mask takes more. */
#define SPARE_WORDS_MAX 3

/* Indexes of words, the lower ones of two numbers. */
struct relation {
	size_t at, to;
};

struct entry_packer {
	size_t bytes, class_at, words; /* words: 0: entries are copied */
	uint64_t masks[ENTRY_CLASSES];
	bool is_known[ENTRY_CLASSES];
	uint32_t *last;    /* the last entry of each class */
	uint32_t *related; /* an entry, with its relations applied */
	struct relation relations[RELATIONS_MAX];
	unsigned relation_count;
};

struct entry_packer *entry_packer_new(size_t bytes, size_t class_at)
{
	struct entry_packer *packer = xcalloc(sizeof *packer);
	const size_t words = bytes / sizeof(uint32_t);

	packer->bytes = bytes;
	packer->class_at = class_at;
	if (bytes % sizeof(uint32_t) == 0 && words <= ENTRY_WORDS_MAX)
		packer->words = words;
	packer->last = xcalloc((packer->words + 1) * ENTRY_CLASSES * sizeof *packer->last);
	packer->related = xcalloc((packer->words + 1) * sizeof *packer->related);
	return packer;
}

void entry_packer_relate(struct entry_packer *packer, size_t at, size_t to)
{
	if (packer->words && packer->relation_count < RELATIONS_MAX)
		packer->relations[packer->relation_count++] = (struct relation){
			.at = at / sizeof(uint32_t), .to = to / sizeof(uint32_t)
		};
}

void entry_packer_free(struct entry_packer *packer)
{
	if (!packer)
		return;
	free(packer->last);
	free(packer->related);
	free(packer);
}

void entry_packer_restart(struct entry_packer *packer)
{
	memset(packer->is_known, 0, sizeof packer->is_known);
}

static size_t mask_bytes(const struct entry_packer *packer)
{
	return (packer->words + 7) / 8;
}

size_t entry_packed_max(const struct entry_packer *packer)
{
	return packer->words ? 1 + mask_bytes(packer) + packer->words * NUMBER_BYTES_MAX
			     : packer->bytes;
}

/* The last entry of a class. The first one is compared with zeros. */
static uint32_t *last_of_class(struct entry_packer *packer, unsigned class)
{
	uint32_t *last = packer->last + class * packer->words;

	if (!packer->is_known[class]) {
		packer->is_known[class] = true;
		packer->masks[class] = 0;
		memset(last, 0, packer->bytes);
	}
	return last;
}

/* Adds the number at `of` to that at `at`, or subtracts it. */
static void add_number(uint32_t *at, const uint32_t *of, bool subtracts)
{
	uint64_t number, other;

	memcpy(&number, at, sizeof number);
	memcpy(&other, of, sizeof other);
	number = subtracts ? number - other : number + other;
	memcpy(at, &number, sizeof number);
}

/* Returns the words that are stored for an entry. */
static const uint32_t *relate_words(struct entry_packer *packer, const void *entry)
{
	uint32_t *words = packer->related;

	if (!packer->relation_count)
		return entry;
	memcpy(words, entry, packer->bytes);
	for (unsigned i = 0; i < packer->relation_count; i++)
		add_number(words + packer->relations[i].at, words + packer->relations[i].to, true);
	return words;
}

/* Compares two words at a time: most do not differ. */
static uint64_t words_that_differ(const uint32_t *entry, const uint32_t *last, size_t words)
{
	uint64_t mask = 0;
	size_t i = 0;

	for (; i + 1 < words; i += 2) {
		uint64_t one, other;

		memcpy(&one, entry + i, sizeof one);
		memcpy(&other, last + i, sizeof other);
		if (one != other)
			mask |= ((uint64_t)(entry[i] != last[i]) |
					(uint64_t)(entry[i + 1] != last[i + 1]) << 1)
				<< i;
	}
	if (i < words)
		mask |= (uint64_t)(entry[i] != last[i]) << i;
	return mask;
}

/* Puts the class and the mask, and sets `*mask` to that of the words to store. */
static unsigned char *put_mask(
	struct entry_packer *packer, unsigned class, uint64_t *mask, unsigned char *to)
{
	const uint64_t last = packer->masks[class];

	if (!(*mask & ~last) && __builtin_popcountll(last & ~*mask) <= SPARE_WORDS_MAX) {
		*mask = last;
		*to++ = (unsigned char)class;
		return to;
	}
	packer->masks[class] = *mask;
	*to++ = (unsigned char)(class | ENTRY_HAS_MASK);
	memcpy(to, mask, mask_bytes(packer));
	return to + mask_bytes(packer);
}

size_t entry_pack(struct entry_packer *packer, const void *entry, unsigned char *to)
{
	const unsigned class = packer->class_at == ENTRY_NO_CLASS
				       ? 0
				       : ((const unsigned char *)entry)[packer->class_at] %
						 ENTRY_CLASSES;
	const unsigned char *const begin = to;
	const uint32_t *words;
	uint32_t *last;
	uint64_t mask;

	if (!packer->words) {
		memcpy(to, entry, packer->bytes);
		return packer->bytes;
	}
	last = last_of_class(packer, class);
	words = relate_words(packer, entry);
	mask = words_that_differ(words, last, packer->words);
	to = put_mask(packer, class, &mask, to);
	for (; mask; mask &= mask - 1) {
		const int word = __builtin_ctzll(mask);
		const uint32_t by = words[word] - last[word];
		uint32_t number = by << 1 ^ (by >> 31 ? UINT32_MAX : 0);

		for (; number > 127; number >>= 7)
			*to++ = (unsigned char)(number | 128);
		*to++ = (unsigned char)number;
	}
	memcpy(last, words, packer->bytes);
	return (size_t)(to - begin);
}

size_t entry_unpack(struct entry_packer *packer, const unsigned char *from, void *entry)
{
	const unsigned char *const begin = from;
	const unsigned class = *from % ENTRY_CLASSES;
	uint32_t *last;

	if (!packer->words) {
		memcpy(entry, from, packer->bytes);
		return packer->bytes;
	}
	last = last_of_class(packer, class);
	if (*from++ & ENTRY_HAS_MASK) {
		packer->masks[class] = 0;
		memcpy(&packer->masks[class], from, mask_bytes(packer));
		from += mask_bytes(packer);
	}
	for (uint64_t mask = packer->masks[class]; mask; mask &= mask - 1) {
		uint32_t number = *from & 127;

		for (unsigned shift = 7; *from++ & 128; shift += 7)
			number |= (uint32_t)(*from & 127) << shift;
		last[__builtin_ctzll(mask)] += number >> 1 ^ (number & 1 ? UINT32_MAX : 0);
	}
	memcpy(entry, last, packer->bytes);
	for (unsigned i = packer->relation_count; i-- > 0;)
		add_number((uint32_t *)entry + packer->relations[i].at,
			(const uint32_t *)entry + packer->relations[i].to, false);
	return (size_t)(from - begin);
}
