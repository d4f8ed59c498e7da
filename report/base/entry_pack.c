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

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

#define ENTRY_CLASSES 64u
#define ENTRY_WORDS_MAX 64u
#define RELATIONS_MAX 8u
#define ENTRY_HAS_MASK 0x80u
#define NUMBER_BYTES_MAX 5u
/* Words of the last mask that may be stored although they do not differ. A mask takes more. */
#define SPARE_WORDS_MAX 3u

/* Indexes of words, the lower ones of two numbers. */
struct relation {
	size_t at, to;
};

/* A number that is related to that of the entry before. */
struct follower {
	size_t at;
	uint64_t previous;
};

struct entry_packer {
	size_t bytes, class_at, words; /* words: 0: entries are copied */
	unsigned classes;
	uint64_t masks[ENTRY_CLASSES];
	bool is_known[ENTRY_CLASSES];
	uint32_t *last;    /* the last entry of each class */
	uint32_t *related; /* an entry, with its relations applied */
	struct relation relations[RELATIONS_MAX];
	struct follower followers[RELATIONS_MAX];
	unsigned relation_count, follower_count;
};

struct entry_packer *entry_packer_new(size_t bytes, size_t class_at)
{
	struct entry_packer *packer = xcalloc(sizeof *packer);
	const size_t words = bytes / sizeof(uint32_t);

	packer->bytes = bytes;
	packer->class_at = class_at;
	if (bytes % sizeof(uint32_t) == 0 && words <= ENTRY_WORDS_MAX)
		packer->words = words;
	packer->classes = class_at == ENTRY_NO_CLASS ? 1 : ENTRY_CLASSES;
	packer->last = xcalloc((packer->words + 1) * packer->classes * sizeof *packer->last);
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

void entry_packer_follow(struct entry_packer *packer, size_t at)
{
	if (packer->words && packer->follower_count < RELATIONS_MAX)
		packer->followers[packer->follower_count++].at = at / sizeof(uint32_t);
}

struct entry_packer *entry_packer_copy(const struct entry_packer *packer)
{
	struct entry_packer *copy = entry_packer_new(packer->bytes, packer->class_at);

	copy->relation_count = packer->relation_count;
	copy->follower_count = packer->follower_count;
	memcpy(copy->relations, packer->relations, sizeof copy->relations);
	memcpy(copy->followers, packer->followers, sizeof copy->followers);
	entry_packer_restart(copy);
	return copy;
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
	for (unsigned i = 0; i < packer->follower_count; i++)
		packer->followers[i].previous = 0;
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

static uint64_t number_at(const uint32_t *words)
{
	uint64_t number;

	memcpy(&number, words, sizeof number);
	return number;
}

static void set_number(uint32_t *words, uint64_t number)
{
	memcpy(words, &number, sizeof number);
}

/* Returns the words that are stored for an entry. */
static const uint32_t *relate_words(struct entry_packer *packer, const void *entry)
{
	uint32_t *words = packer->related;

	if (!packer->relation_count && !packer->follower_count)
		return entry;
	memcpy(words, entry, packer->bytes);
	for (unsigned i = 0; i < packer->relation_count; i++) {
		const struct relation *relation = &packer->relations[i];

		set_number(words + relation->at,
			number_at(words + relation->at) - number_at(words + relation->to));
	}
	for (unsigned i = 0; i < packer->follower_count; i++) {
		struct follower *follower = &packer->followers[i];
		const uint64_t number = number_at(words + follower->at);

		set_number(words + follower->at, number - follower->previous);
		follower->previous = number;
	}
	return words;
}

/* Makes an entry of its stored words: undoes what relate_words did, the last step first. */
static void unrelate_words(struct entry_packer *packer, uint32_t *words)
{
	for (unsigned i = packer->follower_count; i-- > 0;) {
		struct follower *follower = &packer->followers[i];

		follower->previous += number_at(words + follower->at);
		set_number(words + follower->at, follower->previous);
	}
	for (unsigned i = packer->relation_count; i-- > 0;) {
		const struct relation *relation = &packer->relations[i];

		set_number(words + relation->at,
			number_at(words + relation->at) + number_at(words + relation->to));
	}
}

#if defined(__SSE2__)
/* Returns a mask of those of eight words that differ. */
static unsigned eight_that_differ(const uint32_t *words, const uint32_t *others)
{
	const __m128i *from = (const __m128i *)words, *other = (const __m128i *)others;
	const __m128i first = _mm_cmpeq_epi32(_mm_loadu_si128(from), _mm_loadu_si128(other)),
		      second = _mm_cmpeq_epi32(
			      _mm_loadu_si128(from + 1), _mm_loadu_si128(other + 1)),
		      halves = _mm_packs_epi32(first, second);

	return ~(unsigned)_mm_movemask_epi8(_mm_packs_epi16(halves, halves)) & 255;
}
#endif

/* Compares eight words at a time if the processor can: most do not differ. */
static uint64_t words_that_differ(const uint32_t *entry, const uint32_t *last, size_t words)
{
	uint64_t mask = 0;
	size_t i = 0;

#if defined(__SSE2__)
	for (; i + 8 <= words; i += 8)
		mask |= (uint64_t)eight_that_differ(entry + i, last + i) << i;
#endif
	for (; i < words; i++)
		mask |= (uint64_t)(entry[i] != last[i]) << i;
	return mask;
}

/* Returns true if the mask has at most SPARE_WORDS_MAX bits. */
static bool has_few_words(uint64_t mask)
{
	for (unsigned i = 0; i < SPARE_WORDS_MAX; i++)
		mask &= mask - 1;
	return !mask;
}

/* Puts the class and the mask, and sets `*mask` to that of the words to store. */
static unsigned char *put_mask(
	struct entry_packer *packer, unsigned class, uint64_t *mask, unsigned char *to)
{
	const uint64_t last = packer->masks[class];

	if (!(*mask & ~last) && has_few_words(last & ~*mask)) {
		*mask = last;
		*to++ = (unsigned char)class;
		return to;
	}
	packer->masks[class] = *mask;
	*to++ = (unsigned char)(class | ENTRY_HAS_MASK);
	memcpy(to, mask, mask_bytes(packer));
	return to + mask_bytes(packer);
}

static unsigned class_of(const struct entry_packer *packer, const unsigned char *entry)
{
	return packer->classes > 1 ? entry[packer->class_at] % ENTRY_CLASSES : 0;
}

size_t entry_pack(struct entry_packer *packer, const void *entry, unsigned char *to)
{
	const unsigned class = class_of(packer, entry);
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
		last[word] = words[word];
	}
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
	unrelate_words(packer, entry);
	return (size_t)(from - begin);
}
