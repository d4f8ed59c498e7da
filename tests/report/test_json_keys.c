/* SPDX-License-Identifier: MIT
 * test_json_keys.c: keys are what they say, in whatever order they come.
 */
#include "report/text/json_keys.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NOBODYS 99u

static unsigned asked; /* how often a meaning was */

/* `k7` means 7. */
static unsigned meaning(const struct json_text *key)
{
	asked++;
	return key->length == 2 && key->bytes[0] == 'k' ? (unsigned)(key->bytes[1] - '0') : NOBODYS;
}

/* The meanings of the keys of one object, as digits, `.` for nobody's; `!`: the scan went wrong. */
static const char *read_object(struct json_keys *keys, const char *text, size_t length)
{
	static char found[256];
	char *copy = calloc(1, length + JSON_SLACK), *out = found;
	struct json_scanner scan = { .at = memcpy(copy, text, length), .end = copy + length };
	struct json_text value;
	unsigned means;
	bool more = json_open(&scan, '{');

	keys->last = 0;
	for (; more; more = json_next(&scan, '}')) {
		if (!json_keys_next(&scan, keys, &means) || !json_value(&scan, &value))
			break;
		*out++ = means == NOBODYS ? '.' : (char)('0' + means);
	}
	*out++ = scan.problem ? '!' : ' ';
	*out = '\0';
	free(copy);
	return found;
}

START_TEST(keys_are_what_they_say_in_any_order)
{
	static const struct {
		const char *text, *found;
	} objects[] = { { "{\"k1\": 1, \"k2\": 2, \"other\": 3}", "12. " },
		{ "{\"k1\": 1, \"k2\": 2, \"other\": 3}", "12. " },
		{ "{\"k2\": 1, \"k1\": 2, \"k1\": 3}", "211 " }, { "{\"k1\":1,\"k2\":2}", "12 " },
		{ "{ \"k1\" :1,\n\t\"k2\" : 2}", "12 " }, { "{}", " " },
		{ "{\"k1\": 1, \"k\\u0032\": 2}", "1. " },
		{ "{\"\": 1, \"k3\": 2, \"k3x\": 3, \"k\": 4}", ".3.. " },
		{ "{\"a key that is longer than what is kept of one\": 1, \"k4\": 2, \"a key that "
		  "is longer than what is kept of one\": 1, \"k5\": 2}",
			".4.5 " },
		{ "{\"k1\": \"k2\", \"k2\": {\"k1\": 3}, \"k6\": [\"k7\"]}", "126 " },
		{ "{\"k1\" 1}", "!" }, { "{\"k1\": 1, k2: 2}", "1!" } };
	struct json_keys keys = { .meaning = meaning };

	for (int round = 0; round < 3; round++)
		for (size_t i = 0; i < sizeof objects / sizeof *objects; i++)
			ck_assert_str_eq(
				read_object(&keys, objects[i].text, strlen(objects[i].text)),
				objects[i].found);
}
END_TEST

START_TEST(what_comes_as_before_is_not_looked_up_again)
{
	static const char text[] = "{\"k1\": 1, \"k2\": 2, \"k3\": 3}";
	struct json_keys keys = { .meaning = meaning };

	asked = 0;
	for (int i = 0; i < 100; i++)
		ck_assert_str_eq(read_object(&keys, text, sizeof text - 1), "123 ");
	ck_assert_uint_eq(asked, 3);
}
END_TEST

START_TEST(more_keys_than_are_kept_are_found_too)
{
	struct json_keys keys = { .meaning = meaning };

	for (int i = 0; i < 300; i++) {
		char text[80];

		snprintf(text, sizeof text, "{\"key%d\": 1, \"k%d\": 2, \"%030d\": 3}", i, i % 10,
			i);
		ck_assert_int_eq(read_object(&keys, text, strlen(text))[1], '0' + i % 10);
		ck_assert_uint_le(keys.count, JSON_KEYS_MAX);
	}
}
END_TEST

START_TEST(a_key_that_is_cut_is_no_key)
{
	static const char text[] = "{\"k1\": 1, \"k2\": 2}";
	struct json_keys keys = { .meaning = meaning };

	read_object(&keys, text, sizeof text - 1);
	for (size_t length = 1; length < sizeof text - 1; length++) {
		const char *found = read_object(&keys, text, length);

		ck_assert_msg(found[strlen(found) - 1] == '!', "%zu: %s", length, found);
	}
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("json_keys");
	TCase *tests = tcase_create("json_keys");
	SRunner *runner;
	int failed;

	tcase_add_test(tests, keys_are_what_they_say_in_any_order);
	tcase_add_test(tests, what_comes_as_before_is_not_looked_up_again);
	tcase_add_test(tests, more_keys_than_are_kept_are_found_too);
	tcase_add_test(tests, a_key_that_is_cut_is_no_key);
	suite_add_tcase(suite, tests);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_ENV);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed != 0;
}
