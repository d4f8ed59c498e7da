/* SPDX-License-Identifier: MIT
 * test_profile.c: ranges become places with figures: nesting, folding, domains, threads, losses,
 * steps.
 */
#include "tests/support/profile_fixture.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct node *must(const struct profile_fixture *fixture, const char *path)
{
	const struct node *node = fixture_node(fixture, path);

	ck_assert_msg(node != NULL, "there is no `%s`", path);
	return node;
}

static void expect_times(const struct node *node, uint64_t calls, uint64_t total, uint64_t self)
{
	ck_assert_uint_eq(node->calls, calls);
	ck_assert_uint_eq(node->total_ns, total);
	ck_assert_uint_eq(node->self_ns, self);
}

START_TEST(a_node_has_the_sum_of_its_instances)
{
	struct trace_builder *builder = builder_new();
	struct profile_fixture fixture;
	const struct node *node;

	build_push(builder, 1, 100, "step");
	build_push(builder, 1, 110, "layer");
	build_pop(builder, 1, 130);
	build_push(builder, 1, 140, "layer");
	build_pop(builder, 1, 190);
	build_pop(builder, 1, 200);
	fixture = fixture_of(builder, NULL);
	expect_times(must(&fixture, "step"), 1, 100, 30);
	node = must(&fixture, "step/layer");
	expect_times(node, 2, 70, 70);
	ck_assert_uint_eq(node->min_ns, 20);
	ck_assert_uint_eq(node->max_ns, 50);
	ck_assert_uint_eq(node->worst->begin_ns, 140);
	ck_assert_uint_eq(fixture.profile->counts.events, 7); /* and one CLOCK */
	fixture_free(&fixture);
}
END_TEST

START_TEST(the_same_name_elsewhere_is_another_node)
{
	struct trace_builder *builder = builder_new();
	struct profile_fixture fixture;

	build_push(builder, 1, 0, "a");
	build_push(builder, 1, 1, "x");
	build_pop(builder, 1, 3);
	build_pop(builder, 1, 4);
	build_push(builder, 2, 0, "x");
	build_pop(builder, 2, 10);
	fixture = fixture_of(builder, NULL);
	expect_times(must(&fixture, "a/x"), 1, 2, 2);
	expect_times(must(&fixture, "x"), 1, 10, 10);
	fixture_free(&fixture);
}
END_TEST

START_TEST(labels_that_differ_in_a_number_are_one_node)
{
	struct trace_builder *builder = builder_new();
	struct profile_options apart = { .no_fold = true, .device = -1, .metric = METRIC_CPU };
	struct profile_fixture fixture;
	const struct node *node;

	for (unsigned i = 0; i < 12; i++) {
		char label[32];

		snprintf(label, sizeof label, "layers.%u", i % 6);
		build_push(builder, 1, i * 10, label);
		build_push(builder, 1, i * 10 + 1, "attn");
		build_pop(builder, 1, i * 10 + 2 + i % 6);
		build_pop(builder, 1, i * 10 + 9);
	}
	fixture = fixture_of(builder, NULL);
	node = must(&fixture, "layers.*");
	expect_times(node, 12, 108, 108 - 42);
	ck_assert_uint_eq(node->labels, 6);
	ck_assert_uint_eq(must(&fixture, "layers.*/attn")->labels, 0);
	ck_assert_uint_eq(must(&fixture, "layers.*/attn")->calls, 12);
	ck_assert_str_eq(string_table_get(fixture.texts, node->worst->label).bytes,
		"layers.5"); /* all are equal: the latest */
	fixture_rebuild(&fixture, &apart);
	ck_assert_ptr_null(fixture_node(&fixture, "layers.*"));
	expect_times(must(&fixture, "layers.3"), 2, 18, 10);
	fixture_free(&fixture);
}
END_TEST

START_TEST(operators_never_fold)
{
	struct trace_builder *builder = builder_new();
	const char *const names[] = { "op 1", "op 2" };
	struct profile_fixture fixture;

	for (unsigned i = 0; i < 2; i++) {
		build_push_node(
			builder, 1, i * 10, build_node(builder, 0, names[i], NULL, TRACE_NODE_OP));
		build_pop(builder, 1, i * 10 + 5);
	}
	fixture = fixture_of(builder, NULL);
	expect_times(must(&fixture, "op 1"), 1, 5, 5);
	ck_assert_int_eq(must(&fixture, "op 2")->kind, NODE_OP);
	fixture_free(&fixture);
}
END_TEST

START_TEST(domains_nest_by_time_and_close_their_own)
{
	struct trace_builder *builder = builder_new();
	const uint32_t outer = build_node(builder, 0, "outer", NULL, TRACE_NODE_RANGE),
		       inner = build_node(builder, outer, "inner", "lib", TRACE_NODE_RANGE);
	struct profile_fixture fixture;

	build_push_node(builder, 1, 100, outer);
	build_push_node(builder, 1, 120, inner);
	build_pop_at(builder, 1, 150, 0); /* outer closes, inner stays */
	build_pop(builder, 1, 180);
	fixture = fixture_of(builder, NULL);
	expect_times(must(&fixture, "outer"), 1, 50, 20);
	expect_times(must(&fixture, "outer/inner"), 1, 60, 60);
	ck_assert_str_eq(
		string_table_get(fixture.texts, must(&fixture, "outer/inner")->domain).bytes,
		"lib");
	fixture_free(&fixture);
}
END_TEST

START_TEST(what_moves_out_counts_for_its_new_parent_from_then_on)
{
	struct trace_builder *builder = builder_new();
	const uint32_t a = build_node(builder, 0, "a", NULL, TRACE_NODE_RANGE),
		       b = build_node(builder, a, "b", "x", TRACE_NODE_RANGE),
		       c = build_node(builder, b, "c", "y", TRACE_NODE_RANGE);
	struct profile_fixture fixture;

	build_push_node(builder, 1, 0, a);
	build_push_node(builder, 1, 10, b);
	build_push_node(builder, 1, 20, c);
	build_pop_at(builder, 1, 30, 1); /* b */
	build_pop(builder, 1, 50);       /* c */
	build_pop(builder, 1, 60);       /* a */
	fixture = fixture_of(builder, NULL);
	expect_times(must(&fixture, "a/b"), 1, 20, 10);
	expect_times(must(&fixture, "a/b/c"), 1, 30, 30);
	expect_times(must(&fixture, "a"), 1, 60, 60 - 20 - 20); /* b until 30, then c until 50 */
	fixture_free(&fixture);
}
END_TEST

START_TEST(a_range_left_open_counts_until_its_thread_was_last_seen)
{
	struct trace_builder *builder = builder_new();
	struct profile_fixture fixture;

	build_push(builder, 1, 100, "main");
	build_push(builder, 1, 200, "done");
	build_pop(builder, 1, 300);
	fixture = fixture_of(builder, NULL);
	expect_times(must(&fixture, "main"), 1, 200, 100);
	ck_assert(must(&fixture, "main")->left_open);
	ck_assert(!must(&fixture, "main/done")->left_open);
	fixture_free(&fixture);
}
END_TEST

static struct trace_range *start_span(
	struct trace_builder *builder, uint32_t stream, uint64_t at, uint64_t id, const char *name)
{
	const uint32_t text = build_name(builder, name);
	struct trace_range *record = build_record(builder, stream, TRACE_START, sizeof *record, at);

	record->id = id;
	record->name = text;
	return record;
}

static void end_span(struct trace_builder *builder, uint32_t stream, uint64_t at, uint64_t id)
{
	struct trace_end *record = build_record(builder, stream, TRACE_END, sizeof *record, at);

	record->id = id;
}

START_TEST(start_and_end_ranges_overlap_and_cross_threads)
{
	struct trace_builder *builder = builder_new();
	struct profile_fixture fixture;

	start_span(builder, 1, 10, 1, "load 1");
	start_span(builder, 1, 20, 2, "load 2");
	end_span(builder, 2, 50, 1);
	end_span(builder, 2, 100, 2);
	end_span(builder, 2, 110, 77); /* never begun */
	start_span(builder, 1, 120, 3, "open");
	build_push(builder, 1, 150, "last");
	build_pop(builder, 1, 170);
	fixture = fixture_of(builder, NULL);
	expect_times(must(&fixture, "start-end ranges/load *"), 2, 120, 120);
	ck_assert_uint_eq(fixture.profile->counts.unknown_ends, 1);
	ck_assert_uint_eq(fixture.profile->counts.async_left_open, 1);
	ck_assert(must(&fixture, "start-end ranges/open")->left_open);
	ck_assert_uint_eq(must(&fixture, "start-end ranges/open")->total_ns, 50);
	fixture_free(&fixture);
}
END_TEST

START_TEST(marks_count_where_they_were_made)
{
	struct trace_builder *builder = builder_new();
	const uint32_t text = build_name(builder, "hit 7");
	struct trace_range *mark;
	struct profile_fixture fixture;

	build_push(builder, 1, 10, "a");
	for (unsigned i = 0; i < 3; i++) {
		mark = build_record(builder, 1, TRACE_MARK, sizeof *mark, 11 + i);
		mark->name = text;
	}
	build_pop(builder, 1, 20);
	fixture = fixture_of(builder, NULL);
	ck_assert_uint_eq(must(&fixture, "a/hit *")->calls, 3);
	ck_assert_int_eq(must(&fixture, "a/hit *")->kind, NODE_MARK);
	expect_times(must(&fixture, "a"), 1, 10, 10);
	fixture_free(&fixture);
}
END_TEST

static void push_inline(struct trace_builder *builder, uint32_t at, uint32_t node, const char *text)
{
	const size_t length = strlen(text);
	struct trace_range *record = build_push_record(
		builder, 1, at, node, sizeof *record + length);

	record->head.flags = TRACE_HAS_TEXT;
	record->text_bytes = (uint32_t)length;
	memcpy(record + 1, text, length);
}

START_TEST(texts_without_an_id_fold_too_and_carry_what_is_below)
{
	struct trace_builder *builder = builder_new();
	const uint32_t nameless = build_node(builder, 0, NULL, NULL, TRACE_NODE_RANGE),
		       inside = build_node(builder, nameless, "inside", NULL, TRACE_NODE_RANGE);
	struct profile_fixture fixture;

	for (uint32_t i = 0; i < 3; i++) {
		char text[32];

		snprintf(text, sizeof text, "request %u", 1000 + i);
		push_inline(builder, i * 100, nameless, text);
		build_push_node(builder, 1, i * 100 + 10, inside);
		build_pop(builder, 1, i * 100 + 20);
		build_pop(builder, 1, i * 100 + 50 + i);
	}
	push_inline(builder, 400, nameless, "other");
	build_push_node(builder, 1, 410, inside);
	build_pop(builder, 1, 420);
	build_pop(builder, 1, 430);
	fixture = fixture_of(builder, NULL);
	expect_times(must(&fixture, "request *"), 3, 153, 123);
	expect_times(must(&fixture, "request */inside"), 3, 30, 30);
	expect_times(must(&fixture, "other/inside"), 1, 10, 10);
	ck_assert_str_eq(
		string_table_get(fixture.texts, must(&fixture, "request *")->worst->label).bytes,
		"request 1002");
	fixture_free(&fixture);
}
END_TEST

START_TEST(texts_that_never_repeat_do_not_grow_the_tree_without_bound)
{
	struct trace_builder *builder = builder_new();
	const uint32_t nameless = build_node(builder, 0, NULL, NULL, TRACE_NODE_RANGE);
	struct profile_fixture fixture;

	for (uint32_t i = 0; i < NODE_NAMES_INLINE_MAX + 100; i++) {
		char text[32];

		snprintf(text, sizeof text, "id-%08x", i * 2654435761u);
		push_inline(builder, i * 2, nameless, text);
		build_pop(builder, 1, i * 2 + 1);
	}
	fixture = fixture_of(builder, NULL);
	ck_assert_uint_eq(node_names_other_count(fixture.profile->names), 100);
	expect_times(must(&fixture, "(other labels)"), 100, 100, 100);
	fixture_free(&fixture);
}
END_TEST

START_TEST(what_is_lost_in_a_gap_is_not_made_up)
{
	struct trace_builder *builder = builder_new();
	struct profile_fixture fixture;

	build_push(builder, 1, 100, "main");
	build_push(builder, 1, 200, "early");
	build_seal(builder, 1, SEAL_WHOLE);
	build_pop(builder, 1, 250);
	build_push(builder, 1, 300, "late");
	build_seal(builder, 1, SEAL_MISSING);
	build_pop(builder, 1, 500);
	build_pop(builder, 1, 600);
	fixture = fixture_of(builder, NULL);
	expect_times(must(&fixture, "main"), 1, 500, 300);
	expect_times(must(&fixture, "main/late"), 1, 200,
		200); /* its begin is in the next payload's OPEN */
	ck_assert_uint_eq(must(&fixture, "main/early")->calls, 0); /* its end is nowhere */
	fixture_free(&fixture);
}
END_TEST

/* Steps 0 to 9 in `train`, each of 100 with a layer of 40 in it. */
static struct trace_builder *ten_steps(void)
{
	struct trace_builder *builder = builder_new();

	build_push(builder, 1, 0, "train");
	for (unsigned i = 0; i < 10; i++) {
		char label[32];

		snprintf(label, sizeof label, "step %u", i);
		build_push(builder, 1, 1000 + i * 200, label);
		build_push(builder, 1, 1000 + i * 200 + 10, "layer");
		build_pop(builder, 1, 1000 + i * 200 + 50);
		build_pop(builder, 1, 1000 + i * 200 + 100);
	}
	build_pop(builder, 1, 9000);
	return builder;
}

START_TEST(only_the_selected_steps_count)
{
	const struct profile_options some = {
		.device = -1, .metric = METRIC_CPU, .steps = true, .first_step = 3, .last_step = 5
	};
	struct profile_fixture fixture = fixture_of(ten_steps(), &some);

	expect_times(must(&fixture, "train/step *"), 3, 300, 180);
	expect_times(must(&fixture, "train/step */layer"), 3, 120, 120);
	expect_times(must(&fixture, "train"), 1, 500,
		200); /* from the first one's begin to the last one's end */
	ck_assert_uint_eq(fixture.profile->totals.wall_ns, 500);
	ck_assert_uint_eq(fixture.profile->counts.steps, 10);
	fixture_free(&fixture);
}
END_TEST

/* Random nesting on some threads: whatever the shape, each thread's time is in the selfs once. */
START_TEST(all_time_is_in_exactly_one_self)
{
	static const char *const names[] = { "a", "b 1", "b 2", "c", "d.7.e" };
	struct trace_builder *builder = builder_new();
	uint64_t at[4] = { 0 }, outermost = 0, roots = 0, selfs = 0;
	unsigned depth[4] = { 0 };
	uint64_t begin[4] = { 0 };
	struct profile_fixture fixture;

	srand((unsigned)_i);
	for (int i = 0; i < 4000; i++) {
		const unsigned thread = (unsigned)rand() % 4;

		at[thread] += (uint64_t)rand() % 50;
		if (depth[thread] && rand() % 2) {
			build_pop(builder, thread + 1, at[thread]);
			if (--depth[thread] == 0)
				outermost += at[thread] - begin[thread];
		} else {
			if (depth[thread]++ == 0)
				begin[thread] = at[thread];
			build_push(builder, thread + 1, at[thread], names[rand() % 5]);
		}
		if (rand() % 500 == 0)
			build_seal(builder, thread + 1, SEAL_WHOLE);
	}
	for (unsigned thread = 0; thread < 4; thread++)
		while (depth[thread]) {
			build_pop(builder, thread + 1, ++at[thread]);
			if (--depth[thread] == 0)
				outermost += at[thread] - begin[thread];
		}
	fixture = fixture_of(builder, NULL);
	for (uint32_t id = 1; id < fixture.profile->tree->count; id++) {
		const struct node *node = &fixture.profile->tree->nodes[id];

		selfs += node->self_ns;
		roots += node->parent ? 0 : node->total_ns;
	}
	ck_assert_uint_eq(roots, outermost);
	ck_assert_uint_eq(selfs, outermost);
	fixture_free(&fixture);
}
END_TEST

START_TEST(a_nesting_without_end_is_cut_where_no_one_can_read_it)
{
	struct trace_builder *builder = builder_new();
	uint32_t node = 0;
	struct profile_fixture fixture;
	uint64_t selfs = 0;

	for (unsigned depth = 0; depth < 5000; depth++) {
		char name[16];

		snprintf(name, sizeof name, "n%u", depth);
		node = build_node(builder, node, name, NULL, TRACE_NODE_RANGE);
		build_push_node(builder, 1, depth, node);
	}
	for (unsigned depth = 0; depth < 5000; depth++)
		build_pop(builder, 1, 5000 + depth);
	fixture = fixture_of(builder, NULL);
	ck_assert_uint_eq(
		fixture.profile->tree->count, TREE_DEPTH_MAX + 3); /* 0 to 1000, and (deeper) */
	for (uint32_t id = 1; id < fixture.profile->tree->count; id++)
		selfs += fixture.profile->tree->nodes[id].self_ns;
	ck_assert_uint_eq(selfs, 9999);
	/* The ranges of (deeper) are inside each other: only the outermost one counts. */
	for (uint32_t id = 1; id < fixture.profile->tree->count; id++)
		ck_assert_uint_eq(fixture.profile->tree->nodes[id].total_ns,
			9999 - 2u * fixture.profile->tree->nodes[id].depth);
	fixture_free(&fixture);
}
END_TEST

/* More places than all their values fit for: exact all the same. */
START_TEST(percentiles_stay_exact_when_all_values_do_not_fit)
{
	enum { PLACES = 1200, CALLS = 4000 };
	static uint32_t durations[CALLS];
	struct trace_builder *builder = builder_new();
	uint32_t nodes[PLACES];
	uint64_t at = 0;
	struct profile_fixture fixture;

	for (unsigned place = 0; place < PLACES; place++) {
		char name[32];

		snprintf(name, sizeof name, "place%u", place);
		nodes[place] = build_node(builder, 0, name, NULL, TRACE_NODE_RANGE);
	}
	for (unsigned call = 0; call < CALLS; call++) {
		durations[call] = call * 7919u % 100003u;
		for (unsigned place = 0; place < PLACES; place++) {
			build_push_node(builder, 1, at, nodes[place]);
			build_pop(builder, 1, at += durations[call]);
		}
		if (call % 64 == 63)
			build_seal(builder, 1, SEAL_WHOLE);
	}
	fixture = fixture_of(builder, NULL);
	ck_assert_uint_gt(fixture.profile->tree->budget.spills, 0);
	for (unsigned i = 1; i < CALLS; i++) /* sorted by insertion: only once */
		for (unsigned j = i; j > 0 && durations[j - 1] > durations[j]; j--) {
			const uint32_t swap = durations[j];

			durations[j] = durations[j - 1];
			durations[j - 1] = swap;
		}
	for (uint32_t id = 1; id < fixture.profile->tree->count; id++) {
		struct percentiles *samples = &fixture.profile->tree->nodes[id].samples;

		ck_assert(percentiles_are_exact(samples));
		ck_assert_uint_eq(percentiles_get(samples, 500), durations[CALLS / 2 - 1]);
		ck_assert_uint_eq(percentiles_get(samples, 950), durations[CALLS * 95 / 100 - 1]);
	}
	fixture_free(&fixture);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("fold");
	TCase *ranges = tcase_create("ranges");
	SRunner *runner;
	int failed;

	tcase_set_timeout(ranges, 60);
	tcase_add_test(ranges, a_node_has_the_sum_of_its_instances);
	tcase_add_test(ranges, the_same_name_elsewhere_is_another_node);
	tcase_add_test(ranges, labels_that_differ_in_a_number_are_one_node);
	tcase_add_test(ranges, operators_never_fold);
	tcase_add_test(ranges, domains_nest_by_time_and_close_their_own);
	tcase_add_test(ranges, what_moves_out_counts_for_its_new_parent_from_then_on);
	tcase_add_test(ranges, a_range_left_open_counts_until_its_thread_was_last_seen);
	tcase_add_test(ranges, start_and_end_ranges_overlap_and_cross_threads);
	tcase_add_test(ranges, marks_count_where_they_were_made);
	tcase_add_test(ranges, texts_without_an_id_fold_too_and_carry_what_is_below);
	tcase_add_test(ranges, texts_that_never_repeat_do_not_grow_the_tree_without_bound);
	tcase_add_test(ranges, what_is_lost_in_a_gap_is_not_made_up);
	tcase_add_test(ranges, only_the_selected_steps_count);
	tcase_add_test(ranges, a_nesting_without_end_is_cut_where_no_one_can_read_it);
	tcase_add_test(ranges, percentiles_stay_exact_when_all_values_do_not_fit);
	tcase_add_loop_test(ranges, all_time_is_in_exactly_one_self, 0, 10);
	suite_add_tcase(suite, ranges);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_ENV);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed != 0;
}
