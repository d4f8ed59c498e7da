/*
 * For the Check suites of the simulated runtime: each is built for CUDA 12 and for 13 and linked
 * with that major's libraries. Every test runs in a process of its own, so the environment may be
 * set first thing.
 */
#ifndef CHECK_CUDA_H
#define CHECK_CUDA_H

#include <check.h>
#include <cuda.h>
#include <stdlib.h>

#include "../programs/kernels.h"

#define OK(call) ck_assert_int_eq((int)(call), 0)
/* The call fails with this error; one of the runtime leaves it as the thread's last. */
#define FAILS(call, error) ck_assert_int_eq((int)(call), (int)(error))

#define MIB ((size_t)1 << 20)

/* A main that runs `tests`. */
#define SUITE(name, ...)                                                      \
	int main(void)                                                        \
	{                                                                     \
		const TTest *tests[] = { __VA_ARGS__ };                       \
		Suite *suite = suite_create(name);                            \
		TCase *cases = tcase_create(name);                            \
		SRunner *runner;                                              \
		int failed;                                                   \
                                                                              \
		for (size_t i = 0; i < sizeof(tests) / sizeof(tests[0]); i++) \
			tcase_add_test(cases, tests[i]);                      \
		suite_add_tcase(suite, cases);                                \
		runner = srunner_create(suite);                               \
		srunner_run_all(runner, CK_NORMAL);                           \
		failed = srunner_ntests_failed(runner);                       \
		srunner_free(runner);                                         \
		return failed != 0;                                           \
	}

#endif
