/* SPDX-License-Identifier: MIT
 * What the library looks up and does not find leaves no error that the program finds in dlerror().
 */
#include "collector/process/dynamic_linker.h"
#include "preload/cuda/driver_query.h"
#include "preload/python/python.h"

#include <check.h>
#include <errno.h>

static void set_up(void)
{
	dlerror();
	errno = 7;
}

START_TEST(what_is_not_found_is_no_error)
{
	ck_assert_ptr_eq(quiet_dlopen("/nowhere/lib.so", RTLD_LAZY), NULL);
	ck_assert_ptr_eq(dlerror(), NULL);
	ck_assert_ptr_eq(quiet_dlsym(RTLD_DEFAULT, "no_such_function"), NULL);
	ck_assert_ptr_eq(dlerror(), NULL);
	ck_assert_ptr_eq(quiet_dlvsym(RTLD_DEFAULT, "malloc", "NONE_1.0"), NULL);
	ck_assert_ptr_eq(dlerror(), NULL);
	ck_assert_int_eq(errno, 7);
}
END_TEST

START_TEST(what_there_is_is_found)
{
	ck_assert_ptr_ne(quiet_dlopen(NULL, RTLD_LAZY), NULL);
	ck_assert_ptr_ne(quiet_dlsym(RTLD_DEFAULT, "malloc"), NULL);
	ck_assert_ptr_eq(
		quiet_dlvsym(RTLD_DEFAULT, "malloc", ""), quiet_dlsym(RTLD_DEFAULT, "malloc"));
}
END_TEST

/* This program has neither a driver nor Python. */
START_TEST(a_driver_and_a_python_that_are_not_there_are_no_error)
{
	ck_assert_uint_eq(driver_device(), UINT32_MAX);
	ck_assert_ptr_eq(dlerror(), NULL);
	ck_assert(!python_find());
	ck_assert_ptr_eq(dlerror(), NULL);
	ck_assert_int_eq(errno, 7);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("dlerror");
	TCase *cases = tcase_create("all");
	SRunner *runner = srunner_create(suite);
	int failed;

	tcase_add_checked_fixture(cases, set_up, NULL);
	tcase_add_test(cases, what_is_not_found_is_no_error);
	tcase_add_test(cases, what_there_is_is_found);
	tcase_add_test(cases, a_driver_and_a_python_that_are_not_there_are_no_error);
	suite_add_tcase(suite, cases);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed != 0;
}
