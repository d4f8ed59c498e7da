/* SPDX-License-Identifier: MIT
 * test_shorten_names.c: names that would read the same once they are short are shown from where
 * they differ.
 */
#include "report/text/shorten_names.h"
#include "report/base/escape.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

static struct shortened_name *names_of(
	const char *const *whole, size_t count, size_t columns, bool is_path)
{
	struct shortened_name *names = calloc(count + 1, sizeof *names);

	for (size_t i = 0; i < count; i++)
		names[i] = (struct shortened_name){
			.whole = strdup(whole[i]), .columns = columns, .is_path = is_path
		};
	return names;
}

static void expect(const char *const *whole, const char *const *shown, size_t count, size_t columns,
	bool is_path)
{
	struct shortened_name *names = names_of(whole, count, columns, is_path);

	shorten_names(names, count, true);
	for (size_t i = 0; i < count; i++) {
		ck_assert_str_eq(names[i].text, shown[i]);
		ck_assert_str_eq(names[i].whole, whole[i]);
		ck_assert_uint_le(escaped_width(names[i].text, strlen(names[i].text)), columns);
	}
	shorten_names_free(names, count);
}

START_TEST(those_that_differ_anyway_keep_their_ends)
{
	static const char *const whole[] = { "short", "volta_sgemm_128x32_sliced_nn",
		"volta_sgemm_128x32_sliced_nt", "short" },
				 *const shown[] = { "short", "volta_s...iced_nn",
					 "volta_s...iced_nt", "short" };

	expect(whole, shown, 4, 17, false);
}
END_TEST

START_TEST(names_are_shown_from_where_they_differ)
{
	static const char *const whole[] = { "sm80_xmma_fprop_64x128_warpgroup_cudnn",
		"sm80_xmma_fprop_64x64_warpgroup_cudnn", "sm80_xmma_fprop_64x128_warpgroup_cudnn" },
				 *const shown[] = { "sm80_...64x1...cudnn", "sm80_...64x6...cudnn",
					 "sm80_...64x1...cudnn" };

	expect(whole, shown, 3, 20, false);
}
END_TEST

/* The last one ends in another way, so that its own ends would tell it from the others. */
START_TEST(names_alike_are_shown_from_the_same_place)
{
	static const char *const whole[] = { "gemm_kernel_tile_MT32x32_with_a_long_tail",
		"gemm_kernel_tile_MT64x32_with_a_long_tail",
		"gemm_kernel_tile_MT256x64_with_another_end" },
				 *const shown[] = { "gemm_k...MT32x3...ng_tail",
					 "gemm_k...MT64x3...ng_tail", "gemm_k...MT256x...her_end" };

	expect(whole, shown, 3, 25, false);
}
END_TEST

START_TEST(paths_are_shown_from_the_component_that_differs)
{
	static const char *const whole[] = { "Model / Encoder / Query / aten::linear / aten::addmm",
		"Model / Encoder / Value / aten::linear / aten::addmm" },
				 *const shown[] = { "... Query /...n::addmm",
					 "... Value /...n::addmm" };

	expect(whole, shown, 2, 22, true);
}
END_TEST

/* Callers that all paths end with tell none from another. A path without callers has no say. */
START_TEST(callers_that_all_share_make_room_for_what_differs)
{
	static const char
		*const whole[] = { "aten::conv2d / aten::empty < net.py:7 f < train.py:3 g",
			"aten::conv2d / aten::empty < net.py:8 f < train.py:3 g", "aten::zeros" },
		       *const shown[] = { "...empty < net.py:7 f < ...",
			       "...empty < net.py:8 f < ...", "aten::zeros" },
		       *const wide[] = { whole[0], whole[1], whole[2] };
	static const char *const one[] = { "aten::conv2d / aten::empty < net.py:7 f" };
	struct shortened_name *names;

	names = names_of(whole, 3, 27, true);
	shorten_names(names, 3, true);
	for (size_t i = 0; i < 3; i++)
		ck_assert_str_eq(names[i].text, shown[i]);
	shorten_names_free(names, 3);
	expect(whole, wide, 3, 60, true);
	names = names_of(one, 1, 30, true);
	shorten_names(names, 1, true);
	ck_assert_ptr_nonnull(strstr(names[0].text, "net.py:7 f"));
	shorten_names_free(names, 1);
}
END_TEST

/* One that differs from its beginning on leaves the others to be told apart further behind. */
START_TEST(a_path_that_begins_otherwise_hides_no_others)
{
	static const char
		*const whole[] = { "(before first step) / aten::to / aten::copy / aten::empty",
			"step / Model / layers.* / query / aten::to / aten::copy / aten::empty",
			"step / Model / layers.* / value / aten::to / aten::copy / aten::empty" },
		       *const shown[] = { "(before fi...ten::empty", "... query /...en::empty",
			       "... value /...en::empty" };

	expect(whole, shown, 3, 23, true);
}
END_TEST

/* What differs from the first of many early leaves others that differ further behind. */
START_TEST(of_many_each_is_shown_where_it_differs)
{
	static const char *const whole[] = {
		"a_kernel_of_a_library_x_that_has_very_long_names_with_a_in_them_for_what_it_does",
		"a_kernel_of_a_library_y_that_has_very_long_names_with_a_in_them_for_what_it_does",
		"a_kernel_of_a_library_x_that_has_very_long_names_with_b_in_them_for_what_it_does"
	};
	struct shortened_name *names = names_of(whole, 3, 30, false);

	shorten_names(names, 3, false);
	ck_assert_str_ne(names[0].text, names[1].text);
	ck_assert_str_ne(names[0].text, names[2].text);
	ck_assert_str_ne(names[1].text, names[2].text);
	shorten_names_free(names, 3);
}
END_TEST

START_TEST(lists_do_not_mind_each_other)
{
	static const char *const whole[] = { "one_long_name_with_an_a_inside_of_it_somewhere",
		"one_long_name_with_a_b_inside_of_it_somewhere" };
	struct shortened_name *names = names_of(whole, 2, 20, false);

	names[1].group = 7;
	shorten_names(names, 2, true);
	ck_assert_str_eq(names[0].text, names[1].text);
	shorten_names_free(names, 2);
}
END_TEST

/* Characters of several bytes stay whole, and where there is no room nothing is tried. */
START_TEST(any_width_holds)
{
	static const char *const whole[] = {
		"\xce\xb1\xce\xb2\xce\xb3 / \xce\xb1\xce\xb2\xce\xb3 / "
		"\xce\xb4\xe6\xbc\xa2\xe5\xad\x97 / \xce\xb1\xce\xb2\xce\xb3",
		"\xce\xb1\xce\xb2\xce\xb3 / \xce\xb1\xce\xb2\xce\xb3 / "
		"\xce\xb5\xe6\xbc\xa2\xe5\xad\x97 / \xce\xb1\xce\xb2\xce\xb3",
		"", "a"
	};

	for (size_t columns = 0; columns < 40; columns++)
		for (int form = 0; form < 4; form++) {
			struct shortened_name *names = names_of(whole, 4, columns, form & 1);

			shorten_names(names, 4, form & 2);
			for (size_t i = 0; i < 4; i++) {
				size_t length;

				ck_assert_uint_le(
					escaped_width(names[i].text, strlen(names[i].text)),
					columns);
				for (const char *at = names[i].text; *at; at += length)
					ck_assert_uint_ne(
						utf8_decode(at, strlen(at), &length), UINT32_MAX);
			}
			shorten_names_free(names, 4);
		}
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("apart");
	TCase *names = tcase_create("names");
	SRunner *runner;
	int failed;

	tcase_add_test(names, those_that_differ_anyway_keep_their_ends);
	tcase_add_test(names, names_are_shown_from_where_they_differ);
	tcase_add_test(names, names_alike_are_shown_from_the_same_place);
	tcase_add_test(names, paths_are_shown_from_the_component_that_differs);
	tcase_add_test(names, callers_that_all_share_make_room_for_what_differs);
	tcase_add_test(names, a_path_that_begins_otherwise_hides_no_others);
	tcase_add_test(names, of_many_each_is_shown_where_it_differs);
	tcase_add_test(names, lists_do_not_mind_each_other);
	tcase_add_test(names, any_width_holds);
	suite_add_tcase(suite, names);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
