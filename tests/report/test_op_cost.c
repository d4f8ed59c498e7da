/* SPDX-License-Identifier: MIT
 * test_op_cost.c: what operators have to compute and to move, against values reckoned by hand.
 */
#include "report/analysis/op_cost.h"
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define UNKNOWN UINT64_MAX

static void expect_assuming(const char *name, const char *given, enum element_type assumed,
	uint64_t flops, uint64_t bytes)
{
	struct op_inputs inputs;
	struct op_cost cost;
	const bool known = op_inputs_read(&inputs, given, strlen(given)) &&
			   op_cost(&cost, name, strlen(name), &inputs, assumed);

	ck_assert_msg(known == (flops != UNKNOWN || bytes != UNKNOWN), "%s %s: known %d", name,
		given, known);
	if (!known)
		return;
	ck_assert_msg(cost.has_flops == (flops != UNKNOWN), "%s %s: FLOPs known %d", name, given,
		cost.has_flops);
	ck_assert_msg(cost.has_bytes == (bytes != UNKNOWN), "%s %s: bytes known %d", name, given,
		cost.has_bytes);
	if (cost.has_flops)
		ck_assert_msg(cost.flops == flops, "%s %s: %llu FLOPs", name, given,
			(unsigned long long)cost.flops);
	if (cost.has_bytes)
		ck_assert_msg(cost.bytes == bytes, "%s %s: %llu bytes", name, given,
			(unsigned long long)cost.bytes);
}

static void expect(const char *name, const char *given, uint64_t flops, uint64_t bytes)
{
	expect_assuming(name, given, ELEMENT_UNKNOWN, flops, bytes);
}

START_TEST(products_of_matrices)
{
	expect("aten::mm", "[[2, 3], [3, 4]]\t[\"float\",\"float\"]", 48, 4 * (6 + 12 + 8));
	expect("aten::mm", "[[2, 3], [3, 4]]", 48, UNKNOWN);
	expect_assuming("aten::mm", "[[2, 3], [3, 4]]", ELEMENT_BF16, 48, 2 * (6 + 12 + 8));
	expect("aten::addmm",
		"[[4], [2, 3], [3, 4], [], "
		"[]]\t[\"c10::Half\",\"c10::Half\",\"c10::Half\",\"Scalar\",\"Scalar\"]",
		48, 2 * (4 + 6 + 12 + 8));
	expect("aten::bmm", "[[5, 2, 3], [5, 3, 4]]\t[\"double\",\"double\"]", 240, 8 * 5 * 26);
	expect("aten::baddbmm", "[[5, 2, 4], [5, 2, 3], [5, 3, 4]]", 240, UNKNOWN);
	expect("aten::linear", "[[7, 2, 3], [4, 3], [4]]\t[\"float\",\"float\",\"float\"]",
		2 * 14 * 3 * 4, 4 * (42 + 12 + 4 + 56));
	expect("aten::matmul", "[[7, 1, 2, 3], [5, 3, 4]]\t[\"float\",\"float\"]", 35 * 48,
		4 * (42 + 60 + 280));
	expect("aten::mv", "[[2, 3], [3]]\t[\"float\",\"float\"]", 12, 4 * (6 + 3 + 2));
	expect("aten::dot", "[[9], [9]]\t[\"float\",\"float\"]", 18, 4 * 19);
	expect("aten::mm", "[[2, 3], [4, 4]]", UNKNOWN, UNKNOWN);
	expect("aten::mm", "[[4294967296, 4294967296], [4294967296, 4]]", UNKNOWN, UNKNOWN);
}
END_TEST

START_TEST(convolutions)
{
	/* 8 x 8 in, 3 x 3, stride 2, padding 1: 4 x 4 out. */
	expect("aten::conv2d",
		"[[2, 6, 8, 8], [10, 3, 3, 3], [10], [], [], [], "
		"[]]\t[\"float\",\"float\",\"float\",\"\",\"\",\"\",\"Scalar\"]\t"
		"[\"\",\"\",\"\",\"[2,2]\",\"[1,1]\",\"[1,1]\",\"2\"]",
		2 * (2 * 10 * 16) * 27, 4 * (2 * 6 * 64 + 270 + 320));
	/* Dilation 2 makes 3 as wide as 5: 10 - 5 + 1. */
	expect("aten::convolution",
		"[[1, 1, 10], [1, 1, 3], [], [], [], [], [], [], "
		"[]]\t\t[\"\",\"\",\"\",\"[1]\",\"[0]\",\"[2]\",\"False\",\"[0]\",\"1\"]",
		2 * 6 * 3, UNKNOWN);
	expect("aten::convolution",
		"[[1, 1, 10], [1, 1, 3], [], [], [], [], [], [], "
		"[]]\t\t[\"\",\"\",\"\",\"[1]\",\"[0]\",\"[2]\",\"True\",\"[0]\",\"1\"]",
		UNKNOWN, UNKNOWN);
	expect("aten::cudnn_convolution",
		"[[2, 6, 8, 8], [10, 3, 3, 3], [], [], "
		"[]]\t\t[\"\",\"\",\"[1,1]\",\"[2,2]\",\"[1,1]\"]",
		2 * 320 * 27, UNKNOWN);
	expect("aten::conv2d", "[[2, 6, 8, 8], [10, 3, 3, 3], [10], [], [], [], []]", UNKNOWN,
		UNKNOWN);
	expect("aten::convolution_backward",
		"[[2, 10, 4, 4], [2, 6, 8, 8], [10, 3, 3, 3], [], [], [], [], [], [], [], []]\t\t"
		"[\"\",\"\",\"\",\"[10]\",\"[2,2]\",\"[1,1]\",\"[1,1]\",\"False\",\"[0,0]\",\"2\","
		"\"[True,True,False]\"]",
		2 * 2 * 320 * 27, UNKNOWN);
	expect("aten::convolution_backward",
		"[[2, 10, 4, 4], [2, 6, 8, 8], [10, 3, 3, 3], [], [], [], [], [], [], [], []]\t\t"
		"[\"\",\"\",\"\",\"[10]\",\"[2,2]\",\"[1,1]\",\"[1,1]\",\"False\",\"[0,0]\",\"2\","
		"\"[False,True,True]\"]",
		2 * 320 * 27, UNKNOWN);
}
END_TEST

START_TEST(attention_knows_its_mask_or_nothing)
{
	const char *types = "\t[\"float\",\"float\",\"float\",\"\",\"Scalar\",\"Scalar\"]";
	char text[256];

	snprintf(text, sizeof text,
		"[[2, 3, 8, 16], [2, 3, 4, 16], [2, 3, 4, 16], [], [], "
		"[]]%s\t[\"\",\"\",\"\",\"\",\"0.\",\"False\"]",
		types);
	expect("aten::scaled_dot_product_attention", text, 2 * 2 * 6 * 8 * 4 * 16,
		4 * 6 * 16 * (8 + 4 + 4 + 8));
	snprintf(text, sizeof text,
		"[[2, 3, 8, 16], [2, 3, 8, 16], [2, 3, 8, 16], [], [], "
		"[]]%s\t[\"\",\"\",\"\",\"\",\"0.\",\"True\"]",
		types);
	expect("aten::scaled_dot_product_attention", text, 2 * 2 * 6 * 36 * 16, 4 * 6 * 16 * 32);
	expect("aten::scaled_dot_product_attention",
		"[[2, 3, 8, 16], [2, 3, 8, 16], [2, 3, 8, 16], [], [], []]", UNKNOWN, UNKNOWN);
	expect("aten::_scaled_dot_product_flash_attention_backward",
		"[[1, 1, 8, 16], [1, 1, 8, 16], [1, 1, 8, 16], [1, 1, 8, 16], [1, 1, 8, 16], [1, "
		"1, 8], [], [], [], [], [], []]\t\t"
		"[\"\",\"\",\"\",\"\",\"\",\"\",\"\",\"\",\"8\",\"8\",\"0.\",\"False\"]",
		5 * 2 * 64 * 16, UNKNOWN);
}
END_TEST

START_TEST(what_goes_over_each_element)
{
	expect("aten::add", "[[2, 3], [3], []]\t[\"float\",\"float\",\"Scalar\"]", 6,
		4 * (6 + 3 + 6));
	expect("aten::add_", "[[2, 3], [2, 3], []]\t[\"float\",\"float\",\"Scalar\"]", 6, 4 * 18);
	expect("aten::mul", "[[2, 3], [], [2, 3]]\t[\"float\",\"double\",\"float\"]", 6,
		4 * 12); /* the third: where it goes */
	expect("aten::add", "[[2, 3], [2, 3], []]\t[\"float\",\"c10::Half\",\"Scalar\"]", 6,
		UNKNOWN);
	expect("aten::add", "[[2, 3], [4]]", UNKNOWN, UNKNOWN);
	expect("aten::gelu", "[[8], []]\t[\"c10::BFloat16\",\"\"]", UNKNOWN, 32);
	expect("aten::gelu", "[[8], []]", UNKNOWN, UNKNOWN);
	expect("aten::eq", "[[8], [8]]\t[\"long int\",\"long int\"]", 8, 8 * 16 + 8);
	expect("aten::copy_", "[[4], [4], []]\t[\"float\",\"c10::Half\",\"Scalar\"]", UNKNOWN,
		4 * 6);
	expect("aten::zero_", "[[4]]\t[\"double\"]", UNKNOWN, 32);
	expect("aten::clone", "[[4], []]\t[\"float\",\"\"]", UNKNOWN, 32);
}
END_TEST

START_TEST(reductions_norms_and_lookups)
{
	expect("aten::sum", "[[4, 5], []]\t[\"float\",\"\"]", 20, 4 * 21);
	expect("aten::sum",
		"[[4, 5], [], [], "
		"[]]\t[\"float\",\"\",\"Scalar\",\"\"]\t[\"\",\"[-1]\",\"False\",\"\"]",
		20, 4 * 24);
	expect("aten::mean", "[[4, 5], [], [], []]\t[\"float\",\"\",\"Scalar\",\"\"]", 20, UNKNOWN);
	expect("aten::_softmax", "[[4, 5], [], []]\t[\"float\",\"Scalar\",\"Scalar\"]", UNKNOWN,
		160);
	expect("aten::_softmax_backward_data",
		"[[4, 5], [4, 5], [], []]\t[\"float\",\"float\",\"Scalar\",\"Scalar\"]", UNKNOWN,
		240);
	expect("aten::native_layer_norm",
		"[[4, 5], [], [5], [5], []]\t[\"float\",\"\",\"float\",\"float\",\"Scalar\"]",
		UNKNOWN, 4 * 50);
	expect("aten::embedding",
		"[[100, 8], [2, 3], [], [], []]\t[\"float\",\"long "
		"int\",\"Scalar\",\"Scalar\",\"Scalar\"]",
		UNKNOWN, 6 * 8 + 2 * 4 * 48);
}
END_TEST

START_TEST(what_a_recorder_reckoned_goes_first)
{
	struct op_inputs inputs;
	struct op_cost cost;
	const char text[] = "[[2, 3], [3, 4]]\t[\"float\",\"float\"]\t\t50";

	ck_assert(op_inputs_read(&inputs, text, strlen(text)));
	ck_assert(op_cost(&cost, "aten::mm", 8, &inputs, ELEMENT_UNKNOWN));
	ck_assert(cost.recorded && cost.flops == 50 && cost.bytes == 104);
	ck_assert(op_cost(&cost, "mine::op", 8, &inputs, ELEMENT_UNKNOWN));
	ck_assert(cost.recorded && cost.flops == 50 && !cost.has_bytes);
}
END_TEST

START_TEST(what_is_not_of_the_form_is_not_read)
{
	static const char *const wrong[] = { "", "[", "[[2, 3], [3, 4]", "[[2, ?], [3, 4]]",
		"[[2, 3]] ", "[[2, 3], ...]", "[[[2], [3]]]", "[[1, 1, 1, 1, 1, 1, 1, 1, 1]]",
		"[[99999999999999999999]]", "[[-1]]" };
	struct op_inputs inputs;

	for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
		ck_assert_msg(!op_inputs_read(&inputs, wrong[i], strlen(wrong[i])), "`%s` was read",
			wrong[i]);
	ck_assert(op_inputs_read(&inputs, "[]", 2) && inputs.count == 0);
	ck_assert(op_inputs_read(&inputs, "[[2]]\t[\"flo", 11) &&
		  inputs.inputs[0].element == ELEMENT_UNKNOWN);
	ck_assert_uint_eq(op_inputs_shapes_length("[[2]]\t[]", 8), 5);
}
END_TEST

static Suite *op_cost_suite(void)
{
	Suite *suite = suite_create("op_cost");
	TCase *tests = tcase_create("op_cost");

	tcase_add_test(tests, products_of_matrices);
	tcase_add_test(tests, convolutions);
	tcase_add_test(tests, attention_knows_its_mask_or_nothing);
	tcase_add_test(tests, what_goes_over_each_element);
	tcase_add_test(tests, reductions_norms_and_lookups);
	tcase_add_test(tests, what_a_recorder_reckoned_goes_first);
	tcase_add_test(tests, what_is_not_of_the_form_is_not_read);
	suite_add_tcase(suite, tests);
	return suite;
}

int main(void)
{
	SRunner *runner = srunner_create(op_cost_suite());
	int failed;

	srunner_run_all(runner, CK_ENV);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
