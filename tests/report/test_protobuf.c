/* SPDX-License-Identifier: MIT
 * test_protobuf.c: messages of protobuf, byte by byte.
 */
#include "report/export/protobuf.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

static void check_bytes(const struct protobuf *message, const char *bytes, size_t count)
{
	ck_assert_uint_eq(message->bytes.used, count);
	ck_assert_mem_eq(message->bytes.text, bytes, count);
}

/* The example of the format's documentation: field 1 with 150 is 08 96 01. */
START_TEST(numbers_have_seven_bits_in_each_byte)
{
	struct protobuf message = { { NULL, 0, 0 } };

	protobuf_number(&message, 1, 150);
	check_bytes(&message, "\x08\x96\x01", 3);
	protobuf_clear(&message);
	protobuf_number(&message, 16, 0);
	check_bytes(&message, "\x80\x01\x00", 3);
	protobuf_clear(&message);
	protobuf_packed(&message, UINT64_MAX);
	check_bytes(&message, "\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", 10);
	protobuf_free(&message);
}
END_TEST

START_TEST(fixed_numbers_have_their_lowest_byte_first)
{
	struct protobuf message = { { NULL, 0, 0 } };

	protobuf_fixed64(&message, 1, 0x0102030405060708);
	protobuf_double(&message, 2, 1.0);
	check_bytes(&message,
		"\x09\x08\x07\x06\x05\x04\x03\x02\x01"
		"\x11\x00\x00\x00\x00\x00\x00\xf0\x3f",
		18);
	protobuf_free(&message);
}
END_TEST

START_TEST(texts_and_messages_begin_with_their_length)
{
	struct protobuf inner = { { NULL, 0, 0 } }, message = { { NULL, 0, 0 } };

	protobuf_text(&message, 2, (struct string_view){ "testing", 7 });
	check_bytes(&message, "\x12\x07testing", 9);
	protobuf_number(&inner, 1, 150);
	protobuf_clear(&message);
	protobuf_message(&message, 3, &inner);
	check_bytes(&message, "\x1a\x03\x08\x96\x01", 5);
	protobuf_clear(&message);
	protobuf_text(&message, 1, (struct string_view){ "", 0 });
	check_bytes(&message, "\x0a\x00", 2);
	protobuf_free(&inner);
	protobuf_free(&message);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("protobuf");
	TCase *cases = tcase_create("protobuf");
	SRunner *runner = srunner_create(suite);
	int failed;

	tcase_add_test(cases, numbers_have_seven_bits_in_each_byte);
	tcase_add_test(cases, fixed_numbers_have_their_lowest_byte_first);
	tcase_add_test(cases, texts_and_messages_begin_with_their_length);
	suite_add_tcase(suite, cases);
	srunner_run_all(runner, CK_ENV);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
