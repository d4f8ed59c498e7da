/* SPDX-License-Identifier: MIT
 *
 * Runs a suite of view tests: each test builds a trace, shows it and checks the output.
 */
#ifndef PPERF_TESTS_SUPPORT_VIEW_TEST_H
#define PPERF_TESTS_SUPPORT_VIEW_TEST_H

#include "tests/support/run_report.h"

#include <check.h>

/* Fails the test unless `part` is in `out`. */
void scene_has(const char *out, const char *part);
/* Fails the test if `part` is in `out`. */
void scene_lacks(const char *out, const char *part);

/* Runs a suite whose tests have a folder each. Returns the exit status of its main():
 *
 *	const TTest *const tests[] = { first_test, second_test };
 *
 *	return scene_suite("name", tests, sizeof tests / sizeof *tests); */
int scene_suite(const char *name, const TTest *const *tests, size_t count);

#endif
