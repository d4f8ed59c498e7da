/* SPDX-License-Identifier: MIT
 * test_spill_file.c: each piece is read as it was written, from memory and from the file.
 */
#include "report/base/spill_file.h"

#include <check.h>
#include <string.h>

enum { PIECES = 500 };

/* Of 1 byte to SPILL_FILE_HELD_BYTES. */
static size_t piece_bytes(unsigned i)
{
	return i % 7 == 6 ? SPILL_FILE_HELD_BYTES : 1 + i * 131u;
}

START_TEST(a_piece_is_read_as_it_was_written)
{
	static unsigned char bytes[SPILL_FILE_HELD_BYTES];
	struct spill_file *file = spill_file_new("numbers");
	uint64_t at[PIECES];

	for (unsigned i = 0; i < PIECES; i++)
		memset(spill_file_append(file, piece_bytes(i), &at[i]), (int)i, piece_bytes(i));
	for (unsigned i = PIECES; i-- > 0;) {
		const size_t half = piece_bytes(i) / 2;

		bytes[0] = bytes[piece_bytes(i) - 1] = (unsigned char)(i + 1);
		spill_file_read(file, at[i], bytes, piece_bytes(i));
		ck_assert_uint_eq(bytes[0], (unsigned char)i);
		ck_assert_uint_eq(bytes[piece_bytes(i) - 1], (unsigned char)i);
		spill_file_read(file, at[i] + half, bytes, 1);
		ck_assert_uint_eq(bytes[0], (unsigned char)i);
	}
	spill_file_free(file);
	spill_file_free(NULL);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("spill_file");
	TCase *pieces = tcase_create("pieces");
	SRunner *runner;
	int failed;

	tcase_add_test(pieces, a_piece_is_read_as_it_was_written);
	suite_add_tcase(suite, pieces);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_ENV);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed != 0;
}
