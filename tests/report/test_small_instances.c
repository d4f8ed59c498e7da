/* SPDX-License-Identifier: MIT
 * test_small_instances.c: what is inside of an instance is the same whether small ranges have
 * instances or not: traces that are made up, read in both ways.
 */
#include "tests/support/profile_fixture.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

enum { TRACES = 40, EVENTS = 400, DEPTH_MOST = 7, THREADS = 3 };

static uint64_t drawn;

/* 0 to below - 1, the same ones each time. */
static unsigned draw(unsigned below)
{
	drawn = drawn * 6364136223846793005u + 1442695040888963407u;
	return (unsigned)(drawn >> 33) % below;
}

static void open_one(struct trace_builder *builder, uint32_t stream, uint64_t at)
{
	static const char *const names[] = { "load", "work", "part - kf: 1", "part - kf: 2",
		"part - kf: 3", "store", "layers.0.mlp", "layers.1.mlp", "wait" };
	struct trace_range *record;

	if (draw(200)) {
		build_push(builder, stream, at, names[draw(sizeof names / sizeof *names)]);
		return;
	}
	/* its text is its own, and no place's */
	record = build_push_record(builder, stream, at,
		build_node(builder, 0, NULL, NULL, TRACE_NODE_RANGE), sizeof *record + 7);
	record->head.flags = TRACE_HAS_TEXT;
	record->text_bytes = 7;
	memcpy(record + 1, "its own", 7);
}

/* Some from between others. */
static void close_one(
	struct trace_builder *builder, uint32_t stream, uint64_t at, uint32_t depth, uint32_t least)
{
	if (depth > least + 1 && draw(100) == 0)
		build_pop_at(builder, stream, at, depth - 2);
	else
		build_pop(builder, stream, at);
}

/* Mostly short ranges, some that are long, some that close from between others; ranges of other
 * threads, and marks. */
static struct trace_builder *make(unsigned seed)
{
	struct trace_builder *builder = builder_new();
	uint32_t depth[THREADS + 1] = { 0 };
	uint64_t at = 100;

	drawn = seed;
	build_push(builder, 1, at, "whole");
	depth[1] = 1;
	for (int i = 0; i < EVENTS; i++) {
		const uint32_t stream = draw(4) ? 1 : 2 + draw(THREADS - 1), least = stream == 1;

		at += draw(20) ? draw(10) : draw(seed % 3 ? 300 : 30000);
		if (seed % 5 == 4 && draw(500) == 0)
			((struct trace_range *)build_record(
				 builder, stream, TRACE_MARK, sizeof(struct trace_range), at))
				->name = build_name(builder, "mark");
		else if (depth[stream] > least && (depth[stream] >= DEPTH_MOST || draw(2)))
			close_one(builder, stream, at, depth[stream]--, least);
		else {
			open_one(builder, stream, at);
			depth[stream]++;
		}
	}
	for (uint32_t stream = THREADS; stream > 0; stream--)
		while (depth[stream] && seed % 7) { /* else they stay open */
			build_pop(builder, stream, at += 3);
			depth[stream]--;
		}
	return builder;
}

static void expect_same(const struct instance *a, const struct instance *b)
{
	ck_assert_uint_eq(a->node, b->node);
	ck_assert_uint_eq(a->trace_node, b->trace_node);
	ck_assert_uint_eq(a->form, b->form);
	ck_assert_uint_eq(a->times, b->times);
	ck_assert_uint_eq(a->begin_ns, b->begin_ns);
	ck_assert_uint_eq(a->end_ns, b->end_ns);
	ck_assert_uint_eq(a->total_ns, b->total_ns);
	ck_assert(a->value == b->value);
	ck_assert(a->change == b->change);
	ck_assert_uint_eq(a->kept, b->kept);
	for (a = a->children, b = b->children; a; a = a->next, b = b->next)
		expect_same(a, b);
}

/* The longest one of each place. */
static void compare_all(struct profile_fixture *first, struct profile_fixture *again,
	struct profile_options *options)
{
	for (uint32_t id = 1; id < first->profile->tree->count; id++) {
		const struct node_worst *worst = first->profile->tree->nodes[id].worst;
		struct profile_target target = { .node = id };
		struct profile *plain;

		if (!worst || node_kind_class(first->profile->tree->nodes[id].kind) != NODE_RANGES)
			continue;
		target.stream = worst->stream;
		target.begin_ns = worst->begin_ns;
		target.end_ns = worst->end_ns;
		target.value = worst->value;
		options->target = &target;
		plain = profile_build(first->reader, first->texts, options);
		target.previous_tree = first->profile->tree;
		fixture_rebuild(again, options);
		ck_assert_int_eq(plain->target != NULL, again->profile->target != NULL);
		if (plain->target)
			expect_same(plain->target, again->profile->target);
		profile_free(plain);
	}
}

START_TEST(small_ranges_come_to_the_same_without_instances)
{
	static const double least[] = { 0, 0.1, 10, -1 };
	const unsigned seed = (unsigned)_i + 1;
	struct profile_options options = { .device = -1,
		.metric = seed % 2 ? METRIC_CPU : METRIC_WALL,
		.demangle = DEMANGLE_SHORT,
		.min_percent_of_target = least[seed % 4] };
	struct profile_fixture first = fixture_of(make(seed), &options),
			       again = { first.reader, first.texts, NULL };

	compare_all(&first, &again, &options);
	profile_free(again.profile);
	fixture_free(&first);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("gather");
	TCase *made = tcase_create("made up");
	SRunner *runner;
	int failed;

	tcase_set_timeout(made, 120);
	tcase_add_loop_test(made, small_ranges_come_to_the_same_without_instances, 0, TRACES);
	suite_add_tcase(suite, made);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_ENV);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed != 0;
}
