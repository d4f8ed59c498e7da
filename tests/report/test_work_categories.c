/* SPDX-License-Identifier: MIT
 * test_work_categories.c: which category work is of: by its name, by what it was launched in, by
 * rules of one's own.
 */
#include "report/analysis/work_categories.h"
#include "tests/support/run_report.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool matches(const char *pattern, const char *name)
{
	return category_matches(pattern, name, strlen(name));
}

START_TEST(patterns)
{
	ck_assert(matches("*gemm*", "volta_sgemm_64x64_nt"));
	ck_assert(matches("GEMM", "gemm"));
	ck_assert(matches("a?c", "a c"));
	ck_assert(matches("*", ""));
	ck_assert(matches("", ""));
	ck_assert(matches("a*b*c", "axxbyybzzc"));
	ck_assert(matches("*aab", "aaab"));
	ck_assert(!matches("a?c", "ac"));
	ck_assert(!matches("gemm", "gemm2"));
	ck_assert(!matches("*x", "xy"));
	ck_assert(!matches("a", ""));
	ck_assert(category_matches("a*", "a\0b", 3));
}
END_TEST

/* A kernel, launched in an operator in a module of that class; the name of its category. */
static const char *category_in(const char *kernel, const char *op, const char *class)
{
	static char name[64];
	struct categories *categories = categories_read(NULL);
	struct string_table *texts = string_table_new();
	struct tree *tree = tree_new();
	uint32_t module = tree_module(tree, 0, string_table_intern(texts, "layer", 5), 0,
		string_table_intern(texts, class, strlen(class)));
	uint32_t range = tree_child(
		tree, module, string_table_intern(texts, op, strlen(op)), 0, NODE_OP);
	uint32_t leaf = tree_child(
		tree, range, string_table_intern(texts, kernel, strlen(kernel)), 0, NODE_KERNEL);
	uint8_t *of_node = categories_of_tree(categories, tree, texts);

	snprintf(name, sizeof name, "%s", categories_name(categories, of_node[leaf]));
	free(of_node);
	tree_free(tree);
	string_table_free(texts);
	categories_free(categories);
	return name;
}

#define ELEMENTWISE \
	"void at::native::vectorized_elementwise_kernel<4, at::native::AddFunctor<float> >(int)"

START_TEST(a_name_that_says_what_it_does_is_enough)
{
	ck_assert_str_eq(category_in("ncclDevKernel_AllReduce_Sum_bf16_RING_LL", "aten::add", ""),
		"communication");
	ck_assert_str_eq(category_in("flash_fwd_kernel", "aten::linear", ""), "attention");
	ck_assert_str_eq(
		category_in("void cudnn::bn_bw_1C11_kernel_new<float>(float)", "x", ""), "norm");
	ck_assert_str_eq(
		category_in("ampere_sgemm_128x64_nn", "Optimizer.step#SGD.step", ""), "GEMM");
	ck_assert_str_eq(
		category_in("sm80_xmma_fprop_implicit_gemm_indexed", "x", ""), "convolution");
	ck_assert_str_eq(
		category_in("multi_tensor_apply_kernel<TensorListMetadata<4>, AdamFunctor<float> >",
			"x", ""),
		"optimizer");
	ck_assert_str_eq(
		category_in("void at::native::direct_copy_kernel_cuda(at::TensorIteratorBase&)",
			"aten::add", ""),
		"copy");
	ck_assert_str_eq(category_in("rotary_embedding_kernel", "x", ""), "elementwise");
	ck_assert_str_eq(category_in("triton_red_fused_add_mean_mul_pow_rsqrt_0", "x", ""), "norm");
	ck_assert_str_eq(category_in("triton_red_fused_add_sum_0", "x", ""), "reduction");
}
END_TEST

START_TEST(a_name_that_says_how_is_of_what_it_was_launched_for)
{
	ck_assert_str_eq(category_in(ELEMENTWISE, "aten::add", ""), "elementwise");
	ck_assert_str_eq(category_in(ELEMENTWISE, "Optimizer.step#SGD.step", ""), "optimizer");
	ck_assert_str_eq(category_in(ELEMENTWISE, "aten::native_layer_norm", ""), "norm");
	ck_assert_str_eq(category_in(ELEMENTWISE, "aten::add", "LlamaRMSNorm"), "norm");
	ck_assert_str_eq(category_in("void cutlass::Kernel<cutlass_80_tensorop_s1688gemm>(int)",
				 "aten::cudnn_convolution", ""),
		"convolution");
	ck_assert_str_eq(category_in("void cutlass::Kernel<cutlass_80_tensorop_s1688gemm>(int)",
				 "aten::mm", ""),
		"GEMM");
	ck_assert_str_eq(category_in("void at::native::indexSelectLargeIndex<float>(int)",
				 "aten::embedding", ""),
		"embedding");
	ck_assert_str_eq(category_in("void at::native::indexSelectLargeIndex<float>(int)",
				 "aten::index_select", ""),
		"copy");
	ck_assert_str_eq(category_in("Kernel", "aten::bmm", ""), "GEMM");
}
END_TEST

/* No rule takes whatever comes. */
START_TEST(a_name_that_says_nothing_is_other)
{
	ck_assert_str_eq(category_in("saxpy", "my range", ""), "other");
	ck_assert_str_eq(category_in("spin_kernel", "aten::something", ""), "other");
	ck_assert_str_eq(category_in("triton__0d1d2d", "x", ""), "other");
	ck_assert_str_eq(category_in("convert_units", "normal", "Optimistic"), "other");
}
END_TEST

static struct trace_builder *traced(void)
{
	struct trace_builder *builder = builder_new();

	build_device(builder, 0, "GPU");
	build_push(builder, 1, 100, "aten::mm");
	build_launch(builder, 1, 110, 1);
	build_launch(builder, 1, 120, 2);
	build_copy(builder, 1, 130, TRACE_COPY, 3, 64);
	build_pop(builder, 1, 200);
	build_kernel(builder, 9, 900, 1, "volta_sgemm_64x64_nt", 300, 400);
	build_kernel(builder, 9, 900, 2, "mine\x1b[2J", 400, 440);
	build_gpu_copy(builder, 9, 900, TRACE_GPU_COPY, 3, 64, 500, 510);
	return builder;
}

START_TEST(the_view_has_each_category_and_its_kernels)
{
	const struct report_run run = run_report(traced(), "categories trace.bin --ascii");

	ck_assert_str_eq(run.err, "");
	ck_assert_str_eq(run.out,
		"                               gpu  gpu self %  calls  gpu avg     p50     max\n"
		"GEMM                        140 ns      93.3 %      2    70 ns   40 ns  100 ns\n"
		"  |-- volta_sgemm_64x64_nt  100 ns      66.7 %      1   100 ns  100 ns  100 ns\n"
		"  +-- mine\\x1b[2J            40 ns      26.7 %      1    40 ns   40 ns   40 ns\n"
		"copy                         10 ns       6.7 %      1    10 ns   10 ns   10 ns\n"
		"  +-- memcpy HtoD            10 ns       6.7 %      1    10 ns   10 ns   10 ns\n");
}
END_TEST

static void write_file(const char *path, const char *text)
{
	FILE *file = fopen(path, "w");

	ck_assert_ptr_nonnull(file);
	fputs(text, file);
	fclose(file);
}

START_TEST(rules_of_ones_own_replace_ours)
{
	struct report_run run;

	write_file("rules",
		"# mine\n\nmy-work kernel mine*\n  slow\tkernel *gemm* around aten::mm\r\n");
	run = run_report(traced(), "categories trace.bin --ascii --categories rules -d 1");
	ck_assert_str_eq(run.out,
		"            gpu  gpu self %  calls  gpu avg     p50     max     p95     min\n"
		"slow     100 ns      66.7 %      1   100 ns  100 ns  100 ns  100 ns  100 ns\n"
		"my-work   40 ns      26.7 %      1    40 ns   40 ns   40 ns   40 ns   40 ns\n"
		"other     10 ns       6.7 %      1    10 ns   10 ns   10 ns   10 ns   10 ns\n"
		"not shown: 3 deeper (--depth)\n");
	run = run_report(NULL, "table trace.bin --ascii --by category --categories rules");
	ck_assert_str_eq(run.out,
		"   gpu  gpu self  cpu self  calls        %     cpu  gpu avg  cpu avg  name\n"
		"100 ns    100 ns      0 ns      1   66.7 %    0 ns   100 ns     0 ns  slow\n"
		" 40 ns     40 ns      0 ns      1   26.7 %    0 ns    40 ns     0 ns  my-work\n"
		"150 ns     10 ns    100 ns      1  100.0 %  100 ns   150 ns   100 ns  other\n");
}
END_TEST

static void expect_refusal(const char *rules, const char *sentence)
{
	char text[512];
	struct report_run run;

	write_file("rules", rules);
	run = run_report(traced(), "categories trace.bin --categories rules");
	snprintf(text, sizeof text, "pperf-report: rules%s\n", sentence);
	ck_assert_str_eq(run.err, text);
	ck_assert_str_eq(run.out, "");
	ck_assert_int_eq(run.status, 64);
}

START_TEST(what_is_wrong_with_rules_is_said_with_the_line)
{
	struct report_run run;

	expect_refusal("a kernel x\nb kernl y\n",
		":2: `kernl` is not a condition; conditions are kernel, memcpy, memset and around");
	expect_refusal("a \x1b[31m x\n", ":1: `\\x1b[31m` is not a condition; conditions are "
					 "kernel, memcpy, memset and around");
	expect_refusal("a kernel\n", ":1: `kernel` must be followed by a pattern such as *gemm*");
	expect_refusal("\n\na\n",
		":3: a rule is CATEGORY CONDITION PATTERN, such as `GEMM kernel *gemm*`");
	expect_refusal("a kernel x kernel y\n",
		":1: `kernel` is given twice; write one line for each pattern");
	expect_refusal("a kernel x memcpy y\n",
		":1: kernel, memcpy and memset exclude each other; write one line for each");
	expect_refusal(
		"# nothing\n", ": the file has no rules; a rule is CATEGORY CONDITION PATTERN");
	run = run_report(NULL, "categories trace.bin --categories absent");
	ck_assert_str_eq(run.err, "pperf-report: absent: the table of categories cannot be "
				  "read: No such file or directory\n");
}
END_TEST

START_TEST(a_trace_without_a_gpu_has_none)
{
	struct trace_builder *builder = builder_new();

	build_push(builder, 1, 100, "work");
	build_pop(builder, 1, 200);
	ck_assert_str_eq(run_report(builder, "categories trace.bin").out,
		"warning: trace.bin: no GPU work is in this trace; pperf-report info lists its "
		"sources\n");
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("categories");
	TCase *rules = tcase_create("rules"), *views = tcase_create("views");
	SRunner *runner;
	int failed;

	tcase_add_test(rules, patterns);
	tcase_add_test(rules, a_name_that_says_what_it_does_is_enough);
	tcase_add_test(rules, a_name_that_says_how_is_of_what_it_was_launched_for);
	tcase_add_test(rules, a_name_that_says_nothing_is_other);
	tcase_add_checked_fixture(views, run_report_setup, run_report_teardown);
	tcase_add_test(views, the_view_has_each_category_and_its_kernels);
	tcase_add_test(views, rules_of_ones_own_replace_ours);
	tcase_add_test(views, what_is_wrong_with_rules_is_said_with_the_line);
	tcase_add_test(views, a_trace_without_a_gpu_has_none);
	suite_add_tcase(suite, rules);
	suite_add_tcase(suite, views);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
