/* SPDX-License-Identifier: MIT
 * test_alloc.c: cache-aligned memory shares no cache line with other memory.
 */
#include "report/base/alloc.h"

#include <check.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define LINE 64u
#define PIECES 200u

static uintptr_t first_line(const void *memory)
{
	return (uintptr_t)memory / LINE;
}

static uintptr_t last_line(const void *memory, size_t bytes)
{
	return ((uintptr_t)memory + bytes - 1) / LINE;
}

START_TEST(cache_aligned_memory_is_zeroed_and_shares_no_cache_line)
{
	static const size_t sizes[] = { 1, 24, 63, 64, 65, 200 };
	unsigned char *pieces[PIECES];
	size_t bytes[PIECES];

	for (size_t i = 0; i < PIECES; i++) {
		bytes[i] = sizes[i % (sizeof sizes / sizeof *sizes)];
		pieces[i] = i % 2 ? xcalloc(bytes[i]) : xcalloc_cache_aligned(bytes[i]);
		for (size_t at = 0; at < bytes[i]; at++)
			ck_assert_uint_eq(pieces[i][at], 0);
		memset(pieces[i], 0xff, bytes[i]);
	}
	for (size_t i = 0; i < PIECES; i += 2)
		for (size_t other = 0; other < PIECES; other++)
			ck_assert(other == i ||
				  last_line(pieces[other], bytes[other]) < first_line(pieces[i]) ||
				  first_line(pieces[other]) > last_line(pieces[i], bytes[i]));
	for (size_t i = 0; i < PIECES; i++)
		free(pieces[i]);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("alloc");
	TCase *cases = tcase_create("memory");
	SRunner *runner = srunner_create(suite);
	int failed;

	tcase_add_test(cases, cache_aligned_memory_is_zeroed_and_shares_no_cache_line);
	suite_add_tcase(suite, cases);
	srunner_run_all(runner, CK_ENV);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
