/* SPDX-License-Identifier: MIT
 * test_hash_index.c: every entry is found again, however many there are and however badly their
 * hashes are spread.
 */
#include "report/base/hash_index.h"

#include <check.h>
#include <stdlib.h>

#define MOST 5000u

static uint64_t keys[MOST + 1];
static uint32_t count;

static uint64_t same_hash(uint64_t key)
{
	(void)key;
	return 7;
}

static uint64_t few_hashes(uint64_t key)
{
	return key % 10 << 30;
}

static uint64_t last_slots(uint64_t key)
{
	return UINT32_MAX - key % 3;
}

static uint64_t (*const hashes[])(uint64_t) = { hash_u64, few_hashes, last_slots, same_hash };

static uint32_t find(const struct hash_index *index, uint64_t hash, uint64_t key)
{
	const struct hash_slot *slot = hash_index_first(index, hash);

	while (slot->number && keys[slot->number] != key)
		slot = hash_index_next(index, slot);
	return slot->number;
}

static void add(struct hash_index *index, uint64_t hash, uint64_t key)
{
	struct hash_slot *slot;

	hash_index_reserve(index);
	for (slot = hash_index_first(index, hash); slot->number;
		slot = hash_index_next(index, slot))
		ck_assert_uint_ne(keys[slot->number], key);
	keys[++count] = key;
	hash_index_add(index, slot, hash, count);
}

START_TEST(all_entries_are_found_and_no_others)
{
	uint64_t (*const hash)(uint64_t) = hashes[_i];
	const uint32_t most = hash == hash_u64 ? MOST : 300;
	struct hash_index index = { .slots = NULL };

	count = 0;
	for (uint64_t key = 0; key < most; key++)
		add(&index, hash(key * 8), key * 8);
	ck_assert_uint_eq(index.count, most);
	ck_assert_uint_ge(index.room, 2 * (size_t)most);
	ck_assert_uint_eq(index.room & (index.room - 1), 0);
	for (uint64_t key = 0; key < most; key++) {
		ck_assert_uint_eq(find(&index, hash(key * 8), key * 8), key + 1);
		ck_assert_uint_eq(find(&index, hash(key * 8 + 1), key * 8 + 1), 0);
	}
	hash_index_free(&index);
	ck_assert_ptr_null(index.slots);
}
END_TEST

START_TEST(hashes_of_neighbours_differ_in_their_low_bits)
{
	unsigned used[256] = { 0 }, different = 0;

	for (uint64_t key = 0; key < 256; key++)
		used[hash_u64(key << 20) & 255]++;
	for (unsigned i = 0; i < 256; i++)
		different += used[i] > 0;
	ck_assert_uint_ge(different, 128);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("hash_index");
	TCase *cases = tcase_create("hash_index");
	SRunner *runner = srunner_create(suite);
	int failed;

	tcase_add_loop_test(cases, all_entries_are_found_and_no_others, 0, 4);
	tcase_add_test(cases, hashes_of_neighbours_differ_in_their_low_bits);
	suite_add_tcase(suite, cases);
	srunner_run_all(runner, CK_ENV);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
