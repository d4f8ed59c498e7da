/* SPDX-License-Identifier: MIT
 * test_flame_tree.c: frames of flame graphs, their sums, and what is left of them in a page.
 */
#include "report/page/flame_tree.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct flame_tree new_tree(size_t stride)
{
	struct flame_tree tree = { .stride = stride };

	flame_add(&tree, &(struct flame_frame){ .kind = FLAME_RANGE });
	return tree;
}

static uint32_t name_of(struct string_table *texts, const char *name)
{
	return string_table_intern(texts, name, strlen(name));
}

static long double sum_of(const struct flame_tree *tree)
{
	long double *totals = flame_totals(tree), sum = totals[0];

	free(totals);
	return sum;
}

START_TEST(frames_with_one_name_and_kind_are_one)
{
	struct string_table *texts = string_table_new();
	struct flame_tree tree = new_tree(1);
	const uint32_t name = name_of(texts, "a");
	const uint32_t a = flame_child(&tree, 0, name, FLAME_OP);

	ck_assert_uint_eq(flame_child(&tree, 0, name, FLAME_OP), a);
	ck_assert_uint_ne(flame_child(&tree, 0, name, FLAME_KERNEL), a);
	ck_assert_uint_ne(flame_child(&tree, a, name, FLAME_OP), a);
	ck_assert_uint_eq(tree.count, 4);
	flame_tree_free(&tree);
	string_table_free(texts);
}
END_TEST

START_TEST(totals_include_what_is_below)
{
	struct flame_tree tree = new_tree(2);
	const uint32_t a = flame_add(&tree, &(struct flame_frame){ .parent = 0 });
	const uint32_t b = flame_add(&tree, &(struct flame_frame){ .parent = a });
	long double *totals;

	flame_values(&tree, a)[0] = 3;
	flame_values(&tree, b)[0] = 4;
	flame_values(&tree, b)[1] = 5;
	totals = flame_totals(&tree);
	ck_assert(totals[0] == 7 && totals[1] == 5);
	ck_assert(totals[2 * a] == 7 && totals[2 * a + 1] == 5);
	ck_assert(totals[2 * b] == 4);
	free(totals);
	flame_tree_free(&tree);
}
END_TEST

START_TEST(frames_without_a_value_are_left_out)
{
	struct string_table *texts = string_table_new();
	struct flame_tree tree = new_tree(1);
	const uint32_t a = flame_add(&tree, &(struct flame_frame){ .name = name_of(texts, "a") });

	flame_add(&tree, &(struct flame_frame){ .name = name_of(texts, "b") });
	flame_values(&tree, a)[0] = 1;
	flame_prune(&tree, texts, 100);
	ck_assert_uint_eq(tree.count, 2);
	ck_assert_uint_eq(tree.frames[1].name, name_of(texts, "a"));
	flame_tree_free(&tree);
	string_table_free(texts);
}
END_TEST

/* A root with frames of 1 to `count`, and below each of them two of the same size. */
static struct flame_tree many_frames(uint32_t count)
{
	struct flame_tree tree = new_tree(1);
	uint32_t first;

	for (uint32_t i = 1; i <= count; i++) {
		first = flame_add(&tree, &(struct flame_frame){ .name = i });
		for (int k = 0; k < 2; k++)
			flame_values(&tree,
				flame_add(&tree, &(struct flame_frame){ .parent = first }))[0] = i;
	}
	return tree;
}

START_TEST(the_smallest_frames_become_n_more)
{
	struct string_table *texts = string_table_new();
	uint32_t last;

	for (size_t most = 3; most < 400; most += 7) {
		struct flame_tree tree = many_frames(100);
		const long double sum = sum_of(&tree);
		uint64_t named = 0;

		flame_prune(&tree, texts, most);
		ck_assert_uint_le(tree.count, most);
		ck_assert(sum_of(&tree) == sum);
		for (uint32_t i = 1; i < tree.count; i++) {
			unsigned more = 0;

			ck_assert_uint_lt(tree.frames[i].parent, i);
			if (tree.frames[i].kind == FLAME_MORE)
				ck_assert_int_eq(
					sscanf(string_table_get(texts, tree.frames[i].name).bytes,
						"%u more", &more),
					1);
			named += tree.frames[i].kind == FLAME_MORE ? more : 1;
		}
		ck_assert_uint_eq(named, 300);
		last = (uint32_t)tree.count;
		flame_tree_free(&tree);
	}
	ck_assert_uint_eq(last, 301);
	string_table_free(texts);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("flame tree");
	TCase *test = tcase_create("flame tree");
	SRunner *runner;
	int failed;

	tcase_add_test(test, frames_with_one_name_and_kind_are_one);
	tcase_add_test(test, totals_include_what_is_below);
	tcase_add_test(test, frames_without_a_value_are_left_out);
	tcase_add_test(test, the_smallest_frames_become_n_more);
	suite_add_tcase(suite, test);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
