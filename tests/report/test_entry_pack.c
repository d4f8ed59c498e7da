/* SPDX-License-Identifier: MIT
 * test_entry_pack.c: what was packed is unpacked, to the byte, whatever the entries are; and entries
 * that are like the one before them take little.
 */
#include "report/base/entry_pack.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

#define ENTRIES 500u

struct entry {
	uint64_t begin, end, correlation;
	uint32_t node;
	uint8_t kind, flags[3];
};

static uint64_t next_number(uint64_t *state)
{
	*state = *state * 6364136223846793005u + 1442695040888963407u;
	return *state >> 20;
}

/* Packs entries of `bytes` bytes, unpacks them and returns what they took. */
static size_t pack_and_unpack(
	const unsigned char *entries, size_t count, size_t bytes, size_t class_at)
{
	struct entry_packer *packer = entry_packer_new(bytes, class_at);
	unsigned char *packed = calloc(count, entry_packed_max(packer)),
		      *unpacked = calloc(1, bytes);
	size_t used = 0, from = 0;

	for (size_t i = 0; i < count; i++) {
		const size_t took = entry_pack(packer, entries + i * bytes, packed + used);

		ck_assert_uint_le(took, entry_packed_max(packer));
		used += took;
	}
	entry_packer_restart(packer);
	for (size_t i = 0; i < count; i++) {
		from += entry_unpack(packer, packed + from, unpacked);
		ck_assert_mem_eq(unpacked, entries + i * bytes, bytes);
	}
	ck_assert_uint_eq(from, used);
	free(unpacked);
	free(packed);
	entry_packer_free(packer);
	return used;
}

START_TEST(any_bytes_are_unpacked_as_they_were)
{
	/* words; one word; the most words; too many of them; no words; one byte */
	const size_t sizes[] = { 32, 4, 256, 260, 30, 1 };
	uint64_t state = 7;

	for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
		unsigned char *entries = calloc(ENTRIES, sizes[i]);

		for (size_t at = 0; at < ENTRIES * sizes[i]; at++)
			entries[at] = next_number(&state) % 3 ? 0
							      : (unsigned char)next_number(&state);
		pack_and_unpack(entries, ENTRIES, sizes[i], ENTRY_NO_CLASS);
		pack_and_unpack(entries, ENTRIES, sizes[i], 0);
		free(entries);
	}
}
END_TEST

START_TEST(the_largest_differences_are_kept)
{
	const uint32_t words[] = { 0, UINT32_MAX, 0, 0x80000000, 0x7fffffff, 1, 0x80000001, 0, 64,
		0, 63, 127, 0 };

	pack_and_unpack((const unsigned char *)words, sizeof words / sizeof *words, sizeof *words,
		ENTRY_NO_CLASS);
}
END_TEST

/* Calls and kernels by turns: each is like the one two before it. */
START_TEST(entries_of_two_kinds_take_little)
{
	static struct entry entries[ENTRIES];

	for (uint32_t i = 0; i < ENTRIES; i++)
		entries[i] = (struct entry){ .begin = UINT64_C(1) << 40 | i * 400u,
			.end = UINT64_C(1) << 40 | (i * 400u + 50),
			.correlation = i % 2 ? i : 0,
			.node = i % 2 ? 7 : 1000000,
			.kind = (uint8_t)(i % 2 ? 12 : 0) };
	ck_assert_uint_le(pack_and_unpack((const unsigned char *)entries, ENTRIES, sizeof *entries,
				  offsetof(struct entry, kind)),
		ENTRIES * 7);
}
END_TEST

START_TEST(related_numbers_are_kept)
{
	struct entry_packer *packer = entry_packer_new(sizeof(struct entry), ENTRY_NO_CLASS);
	unsigned char packed[ENTRIES * 40];
	struct entry entry;
	size_t used = 0, from = 0;

	entry_packer_relate(
		packer, offsetof(struct entry, correlation), offsetof(struct entry, end));
	entry_packer_relate(packer, offsetof(struct entry, end), offsetof(struct entry, begin));
	for (uint64_t i = 0; i < ENTRIES; i++) {
		entry = (struct entry){ .begin = i << 33, .end = i << 33 | 5, .correlation = i };
		used += entry_pack(packer, &entry, packed + used);
	}
	entry_packer_restart(packer);
	for (uint64_t i = 0; i < ENTRIES; i++) {
		from += entry_unpack(packer, packed + from, &entry);
		ck_assert_uint_eq(entry.begin, i << 33);
		ck_assert_uint_eq(entry.end, i << 33 | 5);
		ck_assert_uint_eq(entry.correlation, i);
	}
	ck_assert_uint_eq(from, used);
	entry_packer_free(packer);
}
END_TEST

/* Two packers with the same kinds and relations; entries of 100 kinds, more than are told apart. */
START_TEST(numbers_follow_those_of_the_entry_before)
{
	struct entry_packer *packer = entry_packer_new(
				    sizeof(struct entry), offsetof(struct entry, node)),
			    *copy;
	unsigned char packed[ENTRIES * 40];
	struct entry entry;
	size_t used = 0, from = 0;

	entry_packer_relate(packer, offsetof(struct entry, end), offsetof(struct entry, begin));
	entry_packer_follow(packer, offsetof(struct entry, begin));
	entry_packer_follow(packer, offsetof(struct entry, correlation));
	for (uint64_t i = 0; i < ENTRIES; i++) {
		entry = (struct entry){ .begin = i << 33,
			.end = i << 33 | 5,
			.correlation = i,
			.node = (uint32_t)(i % 100) };
		used += entry_pack(packer, &entry, packed + used);
	}
	copy = entry_packer_copy(packer);
	for (uint64_t i = 0; i < ENTRIES; i++) {
		from += entry_unpack(copy, packed + from, &entry);
		ck_assert_uint_eq(entry.begin, i << 33);
		ck_assert_uint_eq(entry.end, i << 33 | 5);
		ck_assert_uint_eq(entry.correlation, i);
		ck_assert_uint_eq(entry.node, i % 100);
	}
	ck_assert_uint_eq(from, used);
	/* each entry of a kind that comes again: its kind, and what differs from the last one */
	ck_assert_uint_le(used, ENTRIES * 8);
	entry_packer_free(packer);
	entry_packer_free(copy);
}
END_TEST

START_TEST(no_packer_may_be_freed)
{
	entry_packer_free(NULL);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("entry_pack");
	TCase *tests = tcase_create("entries");
	SRunner *runner;
	int failed;

	tcase_add_test(tests, any_bytes_are_unpacked_as_they_were);
	tcase_add_test(tests, the_largest_differences_are_kept);
	tcase_add_test(tests, entries_of_two_kinds_take_little);
	tcase_add_test(tests, related_numbers_are_kept);
	tcase_add_test(tests, numbers_follow_those_of_the_entry_before);
	tcase_add_test(tests, no_packer_may_be_freed);
	suite_add_tcase(suite, tests);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_ENV);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed != 0;
}
