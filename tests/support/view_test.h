/* SPDX-License-Identifier: MIT
 * view_test.h: Suites of views. Each test makes a trace, runs a view and checks its output.
 */
#ifndef PPERF_TESTS_SUPPORT_VIEW_TEST_H
#define PPERF_TESTS_SUPPORT_VIEW_TEST_H

#include "tests/support/run_report.h"

#include <check.h>

/* Fails the test unless `part` is in `out`, or is absent from it. */
void output_has(const char *out, const char *part);
void output_lacks(const char *out, const char *part);

/* Runs a suite whose tests each have a folder. Returns the exit status for main.
 *
 *	const TTest *const tests[] = { first_test, second_test };
 *
 *	return run_view_suite("name", tests, sizeof tests / sizeof *tests);
 */
int run_view_suite(const char *name, const TTest *const *tests, size_t count);

#endif
