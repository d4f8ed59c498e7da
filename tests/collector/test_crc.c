/* SPDX-License-Identifier: MIT
 * The checksum of blocks: the quick ways give what the plain one gives, and that is CRC-32C.
 */
#include "collector/trace_format.h"

#include <check.h>
#include <stdlib.h>

enum { BYTES = 20000 };

static unsigned char bytes[BYTES + 8];

static void fill(void)
{
	srandom(1);
	for (size_t i = 0; i < sizeof bytes; i++)
		bytes[i] = (unsigned char)(random() >> 7);
}

START_TEST(known_values_come_out)
{
	static const unsigned char zeros[32];

	ck_assert_uint_eq(trace_crc32c(0, "123456789", 9), 0xe3069283);
	ck_assert_uint_eq(trace_crc32c(0, zeros, sizeof zeros), 0x8a9136aa);
	ck_assert_uint_eq(trace_crc32c(0, "", 0), 0);
}
END_TEST

START_TEST(every_length_and_start_gives_the_same_as_the_plain_way)
{
	fill();
	for (size_t count = 0; count <= 5000; count++)
		ck_assert_uint_eq(trace_crc32c(7, bytes + count % 8, count),
			trace_crc32c_portable(7, bytes + count % 8, count));
	ck_assert_uint_eq(trace_crc32c(0, bytes, BYTES), trace_crc32c_portable(0, bytes, BYTES));
}
END_TEST

START_TEST(parts_go_on_where_the_last_one_ended)
{
	uint32_t whole;

	fill();
	whole = trace_crc32c(0, bytes, BYTES);
	for (size_t cut = 0; cut <= BYTES; cut += 97)
		ck_assert_uint_eq(
			trace_crc32c(trace_crc32c(0, bytes, cut), bytes + cut, BYTES - cut), whole);
}
END_TEST

START_TEST(one_bit_makes_another)
{
	uint32_t whole;

	fill();
	whole = trace_crc32c(0, bytes, 4096);
	for (size_t bit = 0; bit < 4096 * 8; bit += 7) {
		bytes[bit / 8] ^= (unsigned char)(1u << bit % 8);
		ck_assert_uint_ne(trace_crc32c(0, bytes, 4096), whole);
		bytes[bit / 8] ^= (unsigned char)(1u << bit % 8);
	}
}
END_TEST

int main(void)
{
	TCase *sums = tcase_create("sums");
	Suite *suite = suite_create("crc");
	SRunner *runner = srunner_create(suite);
	int failed;

	tcase_add_test(sums, known_values_come_out);
	tcase_add_test(sums, every_length_and_start_gives_the_same_as_the_plain_way);
	tcase_add_test(sums, parts_go_on_where_the_last_one_ended);
	tcase_add_test(sums, one_bit_makes_another);
	suite_add_tcase(suite, sums);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
