/* SPDX-License-Identifier: MIT
 * test_folded_tree.c: the folded tree that is made of a profile without folded labels is that of a
 * pass with them.
 */
#include "report/profile/folded_tree.h"
#include "tests/support/profile_fixture.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct profile_options PLAIN = {
	.device = -1, .metric = METRIC_CPU, .pick_metric = true, .demangle = DEMANGLE_SHORT
};

/* Steps with layers, whose durations differ, and a range without a number. */
static struct trace_builder *layers(unsigned steps)
{
	struct trace_builder *builder = builder_new();
	uint64_t at = 1000;
	char name[32];

	for (unsigned step = 0; step < steps; step++) {
		snprintf(name, sizeof name, "batch: %u", step);
		build_push(builder, 1, at, name);
		for (unsigned layer = 0; layer < 4; layer++) {
			snprintf(name, sizeof name, "layers.%u", layer);
			build_push(builder, 1, at += 10, name);
			build_push(builder, 1, at += 5, layer % 2 ? "attention" : "mlp");
			build_pop(builder, 1, at += 100 + step * 7 + layer * 31);
			build_pop(builder, 1, at += 3);
		}
		build_push(builder, 1, at += 2, "optimizer");
		build_pop(builder, 1, at += 50);
		build_pop(builder, 1, at += 1);
		at += 20;
	}
	return builder;
}

static const struct node *same_node(const struct folded_tree *folded, uint32_t parent,
	const struct tree *of, const struct node *node)
{
	const struct tree *tree = folded->profile.tree;

	for (uint32_t id = 1; id < tree->count; id++)
		if (tree->nodes[id].parent == parent && tree->nodes[id].name == node->name &&
			tree->nodes[id].kind == node->kind)
			return &tree->nodes[id];
	ck_abort_msg("a node of %u is missing", of->count);
	return NULL;
}

/* Compares the folded tree with that of a pass, node by node. */
static void check_equal(const struct folded_tree *folded, const struct tree *wanted)
{
	uint32_t *found = calloc(wanted->count, sizeof *found);

	ck_assert_uint_eq(folded->profile.tree->count, wanted->count);
	for (uint32_t id = 1; id < wanted->count; id++) {
		const struct node *of = &wanted->nodes[id],
				  *node = same_node(folded, found[of->parent], wanted, of);

		found[id] = (uint32_t)(node - folded->profile.tree->nodes);
		ck_assert_uint_eq(node->calls, of->calls);
		ck_assert_uint_eq(node->total_ns, of->total_ns);
		ck_assert_uint_eq(node->self_ns, of->self_ns);
		ck_assert_uint_eq(node->min_ns, of->min_ns);
		ck_assert_uint_eq(node->max_ns, of->max_ns);
		ck_assert_uint_eq(node->labels, of->labels);
	}
	free(found);
}

static void compare(struct trace_builder *builder, uint32_t *each, uint32_t *folded_count)
{
	struct profile_options options = PLAIN;
	struct profile_fixture fixture;
	struct profile *profile;
	struct folded_tree *folded;

	options.no_fold = true;
	fixture = fixture_of(builder, &options);
	profile = fixture.profile;
	fixture.profile = NULL;
	folded = folded_tree_new(profile);
	fixture_rebuild(&fixture, &PLAIN);
	check_equal(folded, fixture.profile->tree);
	for (uint32_t id = 0; id < profile->tree->count; id++)
		ck_assert_uint_lt(folded->node_of[id], folded->profile.tree->count);
	*each = profile->tree->count;
	*folded_count = folded->profile.tree->count;
	folded_tree_free(folded);
	profile_free(profile);
	fixture_free(&fixture);
}

START_TEST(layers_and_steps_become_one_node)
{
	uint32_t each, folded;

	compare(layers(6), &each, &folded);
	ck_assert_uint_gt(each, folded + 20);
	ck_assert_uint_lt(folded, 10);
}
END_TEST

START_TEST(without_numbers_the_tree_is_the_same)
{
	struct trace_builder *builder = builder_new();
	uint32_t each, folded;

	for (uint64_t at = 100; at < 1000; at += 100) {
		build_push(builder, 1, at, at % 200 ? "odd" : "even");
		build_pop(builder, 1, at + 50);
	}
	compare(builder, &each, &folded);
	ck_assert_uint_eq(each, folded);
}
END_TEST

START_TEST(an_empty_trace_has_an_empty_tree)
{
	uint32_t each, folded;

	compare(builder_new(), &each, &folded);
	ck_assert_uint_eq(each, folded);
}
END_TEST

START_TEST(nodes_of_one_label_go_to_one_node)
{
	struct profile_options options = PLAIN;
	struct profile_fixture fixture;
	struct folded_tree *folded;
	const struct node *nodes, *one, *other;

	options.no_fold = true;
	fixture = fixture_of(layers(2), &options);
	folded = folded_tree_new(fixture.profile);
	nodes = fixture.profile->tree->nodes;
	one = fixture_node(&fixture, "batch: 0/layers.0/mlp");
	other = fixture_node(&fixture, "batch: 1/layers.2/mlp");
	ck_assert_ptr_nonnull(one);
	ck_assert_ptr_nonnull(other);
	ck_assert_uint_eq(folded->node_of[one - nodes], folded->node_of[other - nodes]);
	ck_assert_uint_eq(folded->profile.tree->nodes[folded->node_of[one - nodes]].calls, 4);
	folded_tree_free(folded);
	fixture_free(&fixture);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("folded tree");
	TCase *test = tcase_create("folded tree");
	SRunner *runner;
	int failed;

	tcase_add_test(test, layers_and_steps_become_one_node);
	tcase_add_test(test, without_numbers_the_tree_is_the_same);
	tcase_add_test(test, an_empty_trace_has_an_empty_tree);
	tcase_add_test(test, nodes_of_one_label_go_to_one_node);
	suite_add_tcase(suite, test);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
