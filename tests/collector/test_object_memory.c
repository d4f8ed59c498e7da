/* SPDX-License-Identifier: MIT
 * Copies of objects' memory: what they hold, where they end, and how long they are kept.
 */
#include "collector/sample/object_memory.h"

#include <check.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define PAGES_BYTES ((size_t)2 << 20) /* more than all lines have */

static struct object_memory memory;
static uint8_t *pages;

static void set_up(void)
{
	memory = (struct object_memory){ .line = { 0 } };
	pages = mmap(NULL, PAGES_BYTES + 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
		-1, 0);
	ck_assert_ptr_ne(pages, MAP_FAILED);
	ck_assert_int_eq(mprotect(pages + PAGES_BYTES, 4096, PROT_NONE), 0);
	for (size_t i = 0; i < PAGES_BYTES; i++)
		pages[i] = (uint8_t)(i * 31 + (i >> 8) * 7);
}

static void tear_down(void)
{
	munmap(pages, PAGES_BYTES + 4096);
}

static uint64_t address_of(size_t offset)
{
	return (uint64_t)(uintptr_t)(pages + offset);
}

/* Copies and compares. */
static void check_copy(size_t offset, size_t bytes)
{
	uint8_t copy[1000];

	ck_assert_uint_eq(object_memory_copy(&memory, copy, address_of(offset), bytes), bytes);
	ck_assert_int_eq(memcmp(copy, pages + offset, bytes), 0);
}

/* Each byte is asked for several times, in an order in which lines replace each other. */
START_TEST(copies_are_equal_at_any_offset_and_length)
{
	uint32_t random = 1;

	ck_assert_uint_gt(PAGES_BYTES, sizeof memory.bytes);
	for (int i = 0; i < 20000; i++) {
		random = random * 1664525u + 1013904223u;
		check_copy((random >> 8) % (PAGES_BYTES - 1000), (random >> 4) % 1000);
	}
}
END_TEST

START_TEST(what_cannot_be_read_ends_the_copy)
{
	uint8_t copy[64] = { 0 };

	errno = 5;
	ck_assert_uint_eq(
		object_memory_copy(&memory, copy, address_of(PAGES_BYTES - 40), sizeof copy), 40);
	ck_assert_int_eq(memcmp(copy, pages + PAGES_BYTES - 40, 40), 0);
	ck_assert_uint_eq(object_memory_copy(&memory, copy, address_of(PAGES_BYTES), 8), 0);
	ck_assert_uint_eq(object_memory_copy(&memory, copy, 0, 8), 0);
	ck_assert_uint_eq(object_memory_copy(&memory, copy, UINT64_MAX - 3, 8), 0);
	ck_assert_int_eq(errno, 5);
	/* It is read as soon as that is possible. */
	ck_assert_int_eq(mprotect(pages + PAGES_BYTES, 4096, PROT_READ), 0);
	ck_assert_uint_eq(object_memory_copy(&memory, copy, address_of(PAGES_BYTES), 8), 8);
}
END_TEST

START_TEST(a_copy_is_kept_until_it_is_forgotten)
{
	uint8_t byte = 0;

	check_copy(5000, 1);
	pages[5000] ^= 1;
	ck_assert_uint_eq(object_memory_copy(&memory, &byte, address_of(5000), 1), 1);
	ck_assert_uint_eq(byte, pages[5000] ^ 1);
	object_memory_forget(&memory);
	check_copy(5000, 1);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("object_memory");
	TCase *tests = tcase_create("object_memory");
	SRunner *runner;
	int failed;

	tcase_add_checked_fixture(tests, set_up, tear_down);
	tcase_set_tags(tests, "real-kernel"); /* emulators leave it out */
	tcase_add_test(tests, copies_are_equal_at_any_offset_and_length);
	tcase_add_test(tests, what_cannot_be_read_ends_the_copy);
	tcase_add_test(tests, a_copy_is_kept_until_it_is_forgotten);
	suite_add_tcase(suite, tests);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
