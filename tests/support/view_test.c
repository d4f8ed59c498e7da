/* SPDX-License-Identifier: MIT */
#include "tests/support/view_test.h"

#include <string.h>

void output_has(const char *out, const char *part)
{
	ck_assert_msg(strstr(out, part) != NULL, "no `%s` in\n%.3000s", part, out);
}

void output_lacks(const char *out, const char *part)
{
	ck_assert_msg(strstr(out, part) == NULL, "`%s` in\n%.3000s", part, out);
}

int run_view_suite(const char *name, const TTest *const *tests, size_t count)
{
	Suite *suite = suite_create(name);
	TCase *scenes = tcase_create(name);
	SRunner *runner;
	int failed;

	tcase_add_checked_fixture(scenes, run_report_setup, run_report_teardown);
	for (size_t i = 0; i < count; i++)
		tcase_add_test(scenes, tests[i]);
	suite_add_tcase(suite, scenes);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_ENV);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed != 0;
}
