/* SPDX-License-Identifier: MIT
 * kept_program.h: a trace whose profile has some of everything that is kept of one.
 */
#ifndef PPERF_TESTS_SUPPORT_KEPT_PROGRAM_H
#define PPERF_TESTS_SUPPORT_KEPT_PROGRAM_H

#include "tests/support/trace_builder.h"

#define KEPT_PROGRAM_STEPS 6u

/* Returns a program of KEPT_PROGRAM_STEPS steps with kernels, memory that ran out, and a range with
 * so many instances that its percentiles are a histogram. The caller frees it. */
struct trace_builder *kept_program(void);

#endif
