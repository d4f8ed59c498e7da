/* SPDX-License-Identifier: MIT
 * test_roofline.c: the view of what GPUs reached of what they could do, and the table of the
 * latter.
 */
#include "report/analysis/gpu_peaks.h"
#include "tests/support/view_test.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A call of an operator with one kernel, from `at` on; its work takes so many ns. */
static void an_operator(struct trace_builder *builder, uint64_t at, const char *name,
	const char *inputs, uint64_t correlation, const char *kernel, uint64_t ns)
{
	const uint64_t start = 1000 * correlation;

	build_push_node(
		builder, 1, at, build_linked_node(builder, 0, name, TRACE_NODE_OP, 0, inputs));
	if (kernel)
		build_launch(builder, 1, at + 1, correlation);
	build_pop(builder, 1, at + 2);
	if (kernel)
		build_kernel(builder, 9, 900 + correlation, correlation, kernel, start, start + ns);
}

#define TYPES "\t[\"c10::BFloat16\",\"c10::BFloat16\"]"

static struct trace_builder *a_trace(const char *device)
{
	struct trace_builder *builder = builder_new();

	build_device(builder, 0, device);
	/* 2 * 64 * 64 * 64 = 524288 FLOPs, 3 * 4096 * 2 = 24576 bytes; twice in 200 ns, and once
	 * without work. */
	an_operator(builder, 10, "aten::mm", "[[64, 64], [64, 64]]" TYPES, 1, "gemm", 100);
	an_operator(builder, 20, "aten::mm", "[[64, 64], [64, 64]]" TYPES, 2, "gemm", 100);
	an_operator(builder, 30, "aten::mm", "[[64, 64], [64, 64]]" TYPES, 0, NULL, 0);
	an_operator(
		builder, 40, "aten::gelu", "[[1024], []]\t[\"float\",\"\"]", 3, "vectorized", 50);
	an_operator(builder, 50, "aten::mm", "[[2, 3], [3, 4]]", 4, "gemm",
		25); /* its type is not known */
	an_operator(builder, 60, "mine::op", "[[64, 64], [64, 64]]" TYPES, 5, "custom", 75);
	build_copy(builder, 1, 70, TRACE_COPY, 6, 1000);
	build_gpu_copy(builder, 9, 990, TRACE_GPU_COPY, 6, 1000, 6000, 6010);
	build_copy(builder, 1, 72, TRACE_SET, 7, 4000);
	build_gpu_copy(builder, 9, 991, TRACE_GPU_SET, 7, 4000, 7000, 7020);
	return builder;
}

START_TEST(only_what_can_be_derived_is_shown)
{
	const struct report_run run = run_report(a_trace("NVIDIA A100-SXM4-80GB"),
		"roofline trace.bin -f csv --columns "
		"calls,gpu_total_ns,bytes,flops,flops_per_s,bytes_per_s,intensity,roof,peak_flops_"
		"per_s,basis,kernel");

	ck_assert_int_eq(run.status, 0);
	output_has(run.out, "gemm");
	/* 2 * 524288 FLOPs in 200 ns; 312 TFLOP/s, 2039 GB/s: 3.36 ns to compute, 24.1 ns to move.
	 */
	output_has(run.out, ",2,200,49152,1048576,5242880000000,245760000000,21.333333333333332,"
			    "memory,312000000000000,modelled,gemm\r\n");
	output_has(run.out, ",1,50,8192,,,163840000000,,memory,,modelled,vectorized\r\n");
	output_has(run.out, ",1,25,,48,1920000000,,,,,modelled,gemm\r\n");
	output_has(run.out, ",1,20,4000,,,200000000000,,memory,,measured,\r\n");
	output_has(run.out, "(FLOPs and bytes unknown),,75,,,,,,,,,\r\n");
	output_has(run.out, "custom,,75,,,,,,,,,\r\n");
}
END_TEST

START_TEST(of_an_unknown_gpu_only_rates_are_shown)
{
	const struct report_run run = run_report(
		a_trace("Unheard Of 9000"), "roofline trace.bin -f json");

	ck_assert_int_eq(run.status, 0);
	output_has(run.out, "\"flops_per_s\": 5242880000000");
	output_lacks(run.out, "\"roof_share\": 0.");
	output_lacks(run.out, "\"peak_flops_per_s\": 1");
}
END_TEST

START_TEST(a_type_can_be_assumed_and_is_marked)
{
	const struct report_run run = run_report(
		a_trace("NVIDIA A100-SXM4-80GB"), "roofline trace.bin -f json --assume-type fp16");

	output_has(run.out, "\"basis\": \"modelled, type assumed\"");
	output_has(run.out, "\"element_type\": \"fp16\"");
	ck_assert_int_eq(
		run_report(a_trace("x"), "roofline trace.bin --assume-type fp17").status, 64);
}
END_TEST

START_TEST(a_table_of_ones_own_replaces_it)
{
	FILE *file = fopen("gpus", "w");

	ck_assert_ptr_nonnull(file);
	fputs("# mine\ndevice unheard?of* sms=108 bf16=1 memory=1000 # no comment here\n", file);
	fclose(file);
	ck_assert_int_eq(
		run_report(a_trace("Unheard Of 9000"), "roofline trace.bin --peaks gpus").status,
		64);
	file = fopen("gpus", "w");
	fputs("# mine\ndevice unheard?of* sms=108 bf16=6000 memory=1000000\n", file);
	fclose(file);
	/* 524288 * 2 FLOPs take 0.17 ns, 49152 bytes 0.05 ns. */
	output_has(run_report(a_trace("Unheard Of 9000"), "roofline trace.bin -f json --peaks gpus")
			   .out,
		"\"roof\": \"compute\"");
}
END_TEST

START_TEST(text_says_of_how_much_nothing_is_known)
{
	const struct report_run run = run_report(
		a_trace("NVIDIA A100-SXM4-80GB"), "roofline trace.bin --width 120");

	/* 380 ns of GPU work, of these 75 without a figure. */
	output_has(run.out, "are known for 80.3 % of its GPU time");
	output_has(run.out, "modelled");
	output_has(run.out, "(FLOPs and bytes unknown)");
}
END_TEST

/* As our own recorder writes them: sizes, but no types; or neither. */
START_TEST(what_is_missing_and_what_to_do_is_said)
{
	struct trace_builder *builder = builder_new();
	const char *out;

	build_device(builder, 0, "NVIDIA A100-SXM4-80GB");
	an_operator(builder, 10, "aten::mm", "[[64, 64], [64, 64]]", 1, "gemm", 100);
	out = run_report(builder, "roofline trace.bin").out;
	output_has(out, "element types of tensors are not in this trace, so no operator has bytes "
			"or a roof; set the type with: "
			"pperf-report roofline trace.bin --assume-type fp32\n");
	output_lacks(run_report(NULL, "roofline trace.bin --assume-type fp32").out, "warning");
	output_lacks(
		run_report(a_trace("NVIDIA A100-SXM4-80GB"), "roofline trace.bin").out, "warning");
	builder = builder_new();
	build_device(builder, 0, "NVIDIA A100-SXM4-80GB");
	an_operator(builder, 10, "aten::mm", NULL, 1, "gemm", 100);
	output_has(run_report(builder, "roofline trace.bin").out,
		"input sizes of operators are not in this trace, so no FLOPs or bytes are known; "
		"record them with PPERF_SHAPES=1\n");
}
END_TEST

static struct peaks find(const char *name, uint32_t major, uint32_t minor, uint32_t sms,
	uint64_t clock, uint64_t memory, uint64_t bus)
{
	const struct peaks_device device = { name, strlen(name), major, minor, sms, clock, memory,
		bus };
	struct peaks_table *table = peaks_read(NULL);
	struct peaks peaks;

	ck_assert_int_eq(peaks_find(table, &device, &peaks), peaks.from != PEAKS_NONE);
	peaks_free(table);
	return peaks;
}

static void near(double value, double wanted)
{
	ck_assert_msg(
		value > wanted * 0.999 && value < wanted * 1.001, "%g, not %g", value, wanted);
}

START_TEST(peaks_are_those_of_the_table)
{
	struct peaks peaks = find("NVIDIA H200", 9, 0, 132, 0, 0, 0);

	ck_assert_int_eq(peaks.from, PEAKS_FROM_TABLE);
	near(peaks.flops[PEAK_BF16], 989.4e12);
	near(peaks.bytes, 4800e9);
	near(peaks_flops(&peaks, ELEMENT_FP32, true), 66.9e12);
	near(peaks_flops(&peaks, ELEMENT_TF32, true), 494.7e12);
	near(peaks_flops(&peaks, ELEMENT_BF16, false), 66.9e12);
	ck_assert(peaks_flops(&peaks, ELEMENT_INT64, true) <= 0 &&
		  peaks_flops(&peaks, ELEMENT_UNKNOWN, true) <= 0);
	peaks = find("NVIDIA H200 MIG 1g.18gb", 9, 0, 16, 0, 0, 0);
	ck_assert_int_eq(peaks.from, PEAKS_FROM_PARTIAL_GPU);
	near(peaks.flops[PEAK_BF16], 989.4e12 * 16 / 132);
	ck_assert(peaks.bytes <= 0);
	near(find("NVIDIA A100-SXM4-80GB", 8, 0, 108, 0, 0, 0).bytes, 2039e9);
	near(find("Tesla V100-SXM2-32GB", 7, 0, 80, 0, 0, 0).flops[PEAK_FP16], 125e12);
}
END_TEST

START_TEST(peaks_of_others_follow_from_attributes)
{
	/* As those of an A100, which has 1.41 GHz, and 1.215 GHz on 5120 bits. */
	struct peaks peaks = find("Unheard Of", 8, 0, 108, 1410000000, 1215000000, 5120);

	ck_assert_int_eq(peaks.from, PEAKS_FROM_ATTRIBUTES);
	near(peaks.flops[PEAK_FP16], 311.9e12);
	near(peaks.flops[PEAK_FP32], 19.49e12);
	near(peaks.bytes, 1555.2e9);
	ck_assert_int_eq(find("Unheard Of", 8, 0, 108, 0, 0, 0).from, PEAKS_NONE);
	ck_assert_int_eq(find("", 1, 2, 108, 1, 0, 0).from, PEAKS_NONE);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("roofline");
	TCase *tests = tcase_create("roofline");
	SRunner *runner;
	int failed;

	tcase_add_checked_fixture(tests, run_report_setup, run_report_teardown);
	tcase_add_test(tests, only_what_can_be_derived_is_shown);
	tcase_add_test(tests, of_an_unknown_gpu_only_rates_are_shown);
	tcase_add_test(tests, a_type_can_be_assumed_and_is_marked);
	tcase_add_test(tests, a_table_of_ones_own_replaces_it);
	tcase_add_test(tests, text_says_of_how_much_nothing_is_known);
	tcase_add_test(tests, what_is_missing_and_what_to_do_is_said);
	tcase_add_test(tests, peaks_are_those_of_the_table);
	tcase_add_test(tests, peaks_of_others_follow_from_attributes);
	suite_add_tcase(suite, tests);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_ENV);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed != 0;
}
