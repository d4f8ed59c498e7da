/* SPDX-License-Identifier: MIT
 * test_label_pattern.c: which labels fold into one, and which must never.
 */
#include "report/text/label_pattern.h"

#include <check.h>
#include <string.h>

static const struct {
	const char *text, *folded;
} labels[] = {
	{ "track - kf: 71", "track - kf: *" },
	{ "layers.7.attn", "layers.*.attn" },
	{ "layers.7", "layers.*" },
	{ "a.1.2.b", "a.*.*.b" },
	{ "step 12", "step *" },
	{ "ProfileStep#12", "ProfileStep#*" },
	{ "iter=5", "iter=*" },
	{ "iter=5, lr=0.001", "iter=*, lr=*" },
	{ "x[3]", "x[*]" },
	{ "x(3)", "x(*)" },
	{ "x{3}", "x{*}" },
	{ "at [3, 4]", "at [*, *]" },
	{ "at [3,4]", "at [*,*]" },
	{ "t: -5", "t: *" },
	{ "t: +5.25 s", "t: * s" },
	{ "epoch 1/8", "epoch */8" },
	{ "50 %, 7%", "50 %, *%" },
	{ "a 1 b 2", "a * b *" },
	{ "loss: 0.5.", "loss: *." },
	{ "cuda 12.4.1", "cuda *.*.*" },
	{ "f(a,1),2", "f(a,*),2" },
	/* Never: numbers that are part of a word, and a label that begins with one. */
	{ "conv2d", "conv2d" },
	{ "aten::conv3d", "aten::conv3d" },
	{ "sm_80", "sm_80" },
	{ "3x3", "3x3" },
	{ "pad 3x3", "pad 3x3" },
	{ "10ms", "10ms" },
	{ "wait 10ms", "wait 10ms" },
	{ "0x1f", "0x1f" },
	{ "p = 0x1f", "p = 0x1f" },
	{ "kf: 71-72", "kf: 71-72" },
	{ "1e-5", "1e-5" },
	{ "x 1e5", "x 1e5" },
	{ "v 2_0", "v 2_0" },
	{ "kf:71", "kf:71" },
	{ "a-7", "a-7" },
	{ "42", "42" },
	{ "7.attn", "7.attn" },
	{ "f32", "f32" },
	{ "5 \xc2\xb5s", "5 \xc2\xb5s" },
	{ "t 5\xc2\xb5s", "t 5\xc2\xb5s" },
	{ "", "" },
	{ " ", " " },
	{ "a -", "a -" },
	{ "a: - 5", "a: - *" },
};

static const struct {
	const char *path, *folded;
} modules[] = {
	{ "layers.7.attn", "layers.*.attn" },
	{ "encoder.layers.encoder_layer_11.mlp", "encoder.layers.encoder_layer_*.mlp" },
	{ "layer_0", "layer_*" },
	{ "res_block_3", "res_block_*" },
	{ "linear_1", "linear_1" },
	{ "layer1", "layer1" },
	{ "layer_norm_2d", "layer_norm_2d" },
	{ "layer_", "layer_" },
	{ "7", "*" },
	{ "0.block.3", "*.block.*" },
	{ "_orig_mod.layers.0", "layers.*" },
	{ "module.layers.0", "layers.*" },
	{ "module._orig_mod.fc", "fc" },
	{ "layers.0._checkpoint_wrapped_module.attn", "layers.*.attn" },
	{ "_fsdp_wrapped_module.3", "*" },
	{ "layers.0._orig_mod", "layers.*" },
	/* A wrapper's own row keeps its name, and so does a module that is called so further down.
	 */
	{ "_orig_mod", "_orig_mod" },
	{ "module", "module" },
	{ "net.module.fc", "net.module.fc" },
	{ "conv2d", "conv2d" },
	{ "layer1.0x", "layer1.0x" },
	{ "", "" },
	{ ".", "" },
	{ "a..b", "a..b" },
};

START_TEST(paths_of_modules_fold_by_their_parts)
{
	char out[64];
	const size_t length = label_fold_module(modules[_i].path, strlen(modules[_i].path), out);

	ck_assert_msg(length == strlen(modules[_i].folded) &&
			      memcmp(out, modules[_i].folded, length) == 0,
		"`%s` became `%.*s`", modules[_i].path, (int)length, out);
}
END_TEST

START_TEST(of_operators_only_the_versions_of_torch_compile_fold)
{
	static const char *const names[][2] = { { "Torch-Compiled Region: 3/1",
							"Torch-Compiled Region: 3/*" },
		{ "Torch-Compiled Region: 3/1_2", "Torch-Compiled Region: 3/*" },
		{ "Torch-Compiled Region: 3", "Torch-Compiled Region: 3" },
		{ "Torch-Compiled Region: ", "Torch-Compiled Region: " },
		{ "Torch-Compiled Region: 3/", "Torch-Compiled Region: 3/" },
		{ "aten::op 3/1", "aten::op 3/1" },
		{ "TorchDynamo Cache Lookup", "TorchDynamo Cache Lookup" } };
	char out[64];

	for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
		const size_t length = label_fold_operator(names[i][0], strlen(names[i][0]), out);

		ck_assert_msg(
			length == strlen(names[i][1]) && memcmp(out, names[i][1], length) == 0,
			"`%s` became `%.*s`", names[i][0], (int)length, out);
	}
}
END_TEST

START_TEST(only_whole_numbers_that_are_parameters_fold)
{
	char out[64];
	const size_t length = label_fold(labels[_i].text, strlen(labels[_i].text), out);

	ck_assert_msg(
		length == strlen(labels[_i].folded) && !memcmp(out, labels[_i].folded, length),
		"`%s` folds to `%.*s`, not `%s`", labels[_i].text, (int)length, out,
		labels[_i].folded);
}
END_TEST

START_TEST(folding_twice_changes_nothing_more)
{
	char once[64], twice[64];
	const size_t length = label_fold(labels[_i].text, strlen(labels[_i].text), once);

	ck_assert_uint_eq(label_fold(once, length, twice), length);
	ck_assert(!memcmp(once, twice, length));
}
END_TEST

START_TEST(any_bytes_are_survived)
{
	const char bytes[] = { ' ', '\0', ' ', '7', '\0', (char)0xff, '#', '9', (char)0xff, '=',
		'8' };
	const char folded[] = { ' ', '\0', ' ', '*', '\0', (char)0xff, '#', '9', (char)0xff, '=',
		'*' };
	char out[sizeof bytes];

	ck_assert_uint_eq(label_fold(bytes, sizeof bytes, out), sizeof folded);
	ck_assert(!memcmp(out, folded, sizeof folded));
}
END_TEST

START_TEST(the_number_of_a_step_is_its_last)
{
	uint64_t number = 0;

	ck_assert(label_number("epoch 3, step 17", 16, &number) && number == 17);
	ck_assert(label_number("ProfileStep#12", 14, &number) && number == 12);
	ck_assert(label_number("t: -5.5", 7, &number) && number == 5);
	ck_assert(!label_number("conv2d", 6, &number));
	ck_assert(
		label_number("x 99999999999999999999999", 25, &number)); /* absurd, and survived */
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("label");
	TCase *folding = tcase_create("folding");
	SRunner *runner;
	int failed;

	tcase_add_loop_test(folding, only_whole_numbers_that_are_parameters_fold, 0,
		sizeof labels / sizeof *labels);
	tcase_add_loop_test(
		folding, paths_of_modules_fold_by_their_parts, 0, sizeof modules / sizeof *modules);
	tcase_add_test(folding, of_operators_only_the_versions_of_torch_compile_fold);
	tcase_add_loop_test(
		folding, folding_twice_changes_nothing_more, 0, sizeof labels / sizeof *labels);
	tcase_add_test(folding, any_bytes_are_survived);
	tcase_add_test(folding, the_number_of_a_step_is_its_last);
	suite_add_tcase(suite, folding);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_ENV);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed != 0;
}
