/* SPDX-License-Identifier: MIT
 * view_test.h: a suite of the views: each test makes a trace, has it shown, and looks for what must
 * be there.
 */
#ifndef PPERF_TESTS_SUPPORT_VIEW_TEST_H
#define PPERF_TESTS_SUPPORT_VIEW_TEST_H

#include "tests/support/run_report.h"

#include <check.h>

/* `part` is in `out`; it is not. */
void output_has(const char *out, const char *part);
void output_lacks(const char *out, const char *part);

/* Runs a suite whose tests have a folder each. Returns the exit status of its main():
 *
 *	const TTest *const tests[] = { first_test, second_test };
 *
 *	return run_view_suite("name", tests, sizeof tests / sizeof *tests);
 */
int run_view_suite(const char *name, const TTest *const *tests, size_t count);

#endif
