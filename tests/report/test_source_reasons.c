/* SPDX-License-Identifier: MIT
 * test_source_reasons.c: what to do about a source that was not recorded.
 */
#include "report/views/source_reasons.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

static struct trace_text state_text(const char *text)
{
	return (struct trace_text){ text, (uint32_t)strlen(text), true };
}

static const struct {
	const char *source, *state, *advice;
} advices[] = {
	{ "nvtx", "on", "" },
	{ "nvtx", "", "" },
	{ "nvtx", "off: PPERF_NVTX=0 (0)",
		"-> no names of the program's phases: unset that variable" },
	{ "nvtx", "off: nobody knows (1)",
		"-> no names of the program's phases: if it uses NVTX, start it with the full path "
		"of libpperf.so in LD_PRELOAD" },
	{ "cupti", "off: another tool uses CUPTI; run without it (39)",
		"-> no times of kernels and copies: run without the other profiler" },
	{ "cupti", "partial: another profiler in the program has replaced CUPTI's buffers",
		"-> not all times of kernels and copies: run without the other profiler" },
	{ "cupti", "partial: GPU records of the last 2 s or more have not arrived, because",
		"-> not all times of kernels and copies: let GPU work end, or let the program end "
		"by itself, before it is killed" },
	{ "torch_ops", "partial: no shapes: nobody knows", "" },
	{ "torch_ops", "partial: backward is not linked to forward: PPERF_PYTHON=0",
		"-> not all data of PyTorch's operators: unset PPERF_PYTHON" },
	{ "torch_memory", "off: nobody knows (7)", "-> no tensor memory" },
};

START_TEST(a_reason_has_its_remedy)
{
	struct text_builder line = { .text = NULL };

	source_add_advice(&line, advices[_i].source, state_text(advices[_i].state), true);
	ck_assert_str_eq(line.text ? line.text : "", advices[_i].advice);
	free(line.text);
}
END_TEST

START_TEST(every_line_of_the_table_can_be_reached)
{
	for (size_t i = 0; i < source_reason_count; i++) {
		const struct source_reason *reason = &source_reasons[i];
		const char *source = *reason->source ? reason->source : "nvtx";

		ck_assert_ptr_eq(source_remedy(source, state_text(reason->reason)), reason->remedy);
	}
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("source reasons");
	TCase *cases = tcase_create("reasons");
	SRunner *runner;
	int failed;

	tcase_add_loop_test(cases, a_reason_has_its_remedy, 0, sizeof advices / sizeof *advices);
	tcase_add_test(cases, every_line_of_the_table_can_be_reached);
	suite_add_tcase(suite, cases);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_ENV);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
