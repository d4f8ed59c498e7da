/* SPDX-License-Identifier: MIT
 * test_address_map.c: an ordered map says the same as an array of all keys, whatever is added and
 * removed, and in whichever order.
 */
#include "report/base/address_map.h"

#include <check.h>
#include <stdlib.h>

#define KEYS 40000u

/* The reference: by key, its value + 1; 0: absent. */
static uint32_t reference[KEYS];
static uint64_t seed;

static uint32_t random_below(uint32_t limit)
{
	seed = seed * 6364136223846793005u + 1442695040888963407u;
	return (uint32_t)(seed >> 33) % limit;
}

static void check_order(const struct address_map *map)
{
	struct address_cursor at = address_map_from(map, 0);
	size_t count = 0;

	for (uint32_t key = 0; key < KEYS; key++) {
		if (!reference[key])
			continue;
		ck_assert(!address_cursor_at_end(&at));
		ck_assert_uint_eq(address_cursor_key(&at), key);
		ck_assert_uint_eq(address_cursor_value(&at), reference[key] - 1);
		address_cursor_next(&at);
		count++;
	}
	ck_assert(address_cursor_at_end(&at));
	ck_assert_uint_eq(map->count, count);
}

static void check_search(const struct address_map *map, uint32_t key)
{
	const struct address_cursor at = address_map_from(map, key);
	uint32_t value = 0;
	int64_t below = key;
	uint32_t above = key;

	while (below >= 0 && !reference[below])
		below--;
	ck_assert_int_eq(address_map_floor(map, key, &value), below >= 0);
	if (below >= 0)
		ck_assert_uint_eq(value, reference[below] - 1);
	while (above < KEYS && !reference[above])
		above++;
	ck_assert_int_eq(address_cursor_at_end(&at), above == KEYS);
	if (above < KEYS)
		ck_assert_uint_eq(address_cursor_key(&at), above);
}

static void set(struct address_map *map, uint32_t key, uint32_t value)
{
	address_map_insert(map, key, value);
	reference[key] = value + 1;
}

static void unset(struct address_map *map, uint32_t key)
{
	uint32_t value = UINT32_MAX;

	ck_assert_int_eq(address_map_remove(map, key, &value), reference[key] != 0);
	if (reference[key])
		ck_assert_uint_eq(value, reference[key] - 1);
	reference[key] = 0;
}

START_TEST(random_changes_are_those_of_an_array)
{
	struct address_map map = { .count = 0 };

	seed = (uint64_t)_i + 1;
	for (uint32_t i = 0; i < KEYS; i++)
		reference[i] = 0;
	for (uint32_t i = 0; i < 100000; i++) {
		/* Phases that mostly fill and mostly empty the map. */
		const bool fills = i / 20000 % 2 == 0;
		const uint32_t key = random_below(_i ? KEYS : 300);

		if (random_below(10) < (fills ? 8u : 2u))
			set(&map, key, i);
		else
			unset(&map, key);
		if (i % 20000 == 0)
			check_order(&map);
		if (i % 100 == 0)
			check_search(&map, random_below(KEYS));
	}
	check_order(&map);
	for (uint32_t key = 0; key < KEYS; key++)
		if (reference[key])
			unset(&map, key);
	ck_assert_ptr_null(map.root);
	ck_assert_uint_eq(map.bytes, 0);
	ck_assert_uint_eq(map.count, 0);
	address_map_free(&map);
}
END_TEST

START_TEST(ascending_and_descending_keys)
{
	struct address_map map = { .count = 0 };

	for (uint32_t i = 0; i < KEYS; i++)
		reference[i] = 0;
	for (uint32_t i = 0; i < KEYS; i++)
		set(&map, _i ? KEYS - 1 - i : i, i);
	check_order(&map);
	ck_assert_uint_le(map.bytes, KEYS * 30u);
	/* Whole leaves go away; searches still end at the neighbours. */
	for (uint32_t i = KEYS / 4; i < KEYS / 2; i++)
		unset(&map, i);
	for (uint32_t i = KEYS / 4 - 2; i < KEYS / 2 + 2; i += 97)
		check_search(&map, i);
	check_order(&map);
	address_map_free(&map);
	ck_assert_uint_eq(map.bytes, 0);
}
END_TEST

START_TEST(the_ends_of_the_address_space)
{
	struct address_map map = { .count = 0 };
	struct address_cursor at = address_map_from(&map, 0);
	uint32_t value = 0;

	ck_assert(address_cursor_at_end(&at));
	ck_assert(!address_map_floor(&map, UINT64_MAX, &value));
	ck_assert(!address_map_remove(&map, 0, &value));
	address_map_insert(&map, UINT64_MAX, 1);
	address_map_insert(&map, 0, 2);
	ck_assert(address_map_floor(&map, UINT64_MAX - 1, &value));
	ck_assert_uint_eq(value, 2);
	ck_assert(address_map_floor(&map, UINT64_MAX, &value));
	ck_assert_uint_eq(value, 1);
	at = address_map_from(&map, 1);
	ck_assert_uint_eq(address_cursor_key(&at), UINT64_MAX);
	address_map_free(&map);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("address_map");
	TCase *tests = tcase_create("map");
	SRunner *runner = srunner_create(suite);
	int failed;

	tcase_add_loop_test(tests, random_changes_are_those_of_an_array, 0, 3);
	tcase_add_loop_test(tests, ascending_and_descending_keys, 0, 2);
	tcase_add_test(tests, the_ends_of_the_address_space);
	suite_add_tcase(suite, tests);
	srunner_run_all(runner, CK_ENV);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
