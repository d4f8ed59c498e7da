/* SPDX-License-Identifier: MIT
 * test_step_sections.c: found steps in the tree: what stands in a step, what around it, and that
 * nothing is counted twice or lost on the way.
 */
#include "tests/support/profile_fixture.h"
#include "tests/support/training_trace.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct found {
	struct profile_fixture fixture;
	char path[64];
	struct steps *steps;
	struct profile_options options;
};

/* As the tool without options, with `options` (NULL: none) but for the steps. */
static struct found find(
	struct trace_builder *builder, const struct profile_options *options, const char *marker)
{
	struct found found = { .fixture.texts = string_table_new(),
		.path = "/tmp/pperf-sections.XXXXXX" };
	char error[READER_ERROR_BYTES];

	ck_assert_int_ge(close(mkstemp(found.path)), 0);
	builder_write(builder, found.path);
	builder_free(builder);
	found.fixture.reader = reader_open(found.path, error);
	ck_assert_msg(found.fixture.reader != NULL, "%s", error);
	found.options = options ? *options
				: (struct profile_options){ .device = -1,
					  .demangle = DEMANGLE_SHORT };
	found.steps = steps_find(found.fixture.reader, marker, NULL);
	found.options.found_steps = found.steps;
	found.options.pick_metric = !options;
	fixture_rebuild(&found.fixture, &found.options);
	fixture_check(&found.fixture);
	return found;
}

static void found_free(struct found *found)
{
	fixture_free(&found->fixture);
	steps_free(found->steps);
	unlink(found->path);
}

static const struct node *must(const struct found *found, const char *path)
{
	const struct node *node = fixture_node(&found->fixture, path);

	ck_assert_msg(node != NULL, "there is no `%s`", path);
	return node;
}

static void expect(
	const struct found *found, const char *path, uint64_t calls, uint64_t total, uint64_t self)
{
	const struct node *node = must(found, path);

	ck_assert_msg(node->calls == calls && node->total_ns == total && node->self_ns == self,
		"`%s`: %llu calls, %llu ns, %llu of its own", path, (unsigned long long)node->calls,
		(unsigned long long)node->total_ns, (unsigned long long)node->self_ns);
}

/* Whether anything happened there. */
static bool is_there(const struct found *found, const char *path)
{
	const struct node *node = fixture_node(&found->fixture, path);

	return node && (node->calls || node->gpu || node->memory);
}

START_TEST(a_training_is_its_steps_and_what_is_around_them)
{
	struct training training = training_new();
	struct found found;

	train_range(&training, "aten::randn", TRACE_NODE_OP, 500); /* from 1000 on */
	for (unsigned i = 0; i < 10; i++) {
		if (i == 5) {
			train_data(&training);
			train_forward(&training, "Net");
		}
		train_step(&training, "Net");
	}
	training.now += 100;
	train_range(&training, "aten::mean", TRACE_NODE_OP, 50);
	found = find(training.builder, NULL, NULL);
	expect(&found, "(before first step)", 1, 1500, 1000);
	expect(&found, "(before first step)/aten::randn", 1, 500, 500);
	expect(&found, "step", 10, 2900, 200 + 10 * 0);
	expect(&found, "step/Net", 10, 1000, 1000 - 10 * 89);
	expect(&found, "step/Optimizer.step#SGD.step", 10, 500, 500);
	expect(&found, "(between steps)", 1, 110, 0);
	expect(&found, "(between steps)/Net", 1, 100, 11);
	expect(&found, "(after last step)", 1, 150, 100);
	expect(&found, "(after last step)/aten::mean", 1, 50, 50);
	ck_assert(!is_there(&found, "Net") && !is_there(&found, "aten::randn"));
	ck_assert_int_eq(must(&found, "step")->kind, NODE_STEP);
	ck_assert_int_eq(must(&found, "(between steps)")->kind, NODE_SECTION);
	ck_assert_str_eq(
		string_table_get(found.fixture.texts, must(&found, "step")->worst->label).bytes,
		"step 9");
	found_free(&found);
}
END_TEST

/* Two threads call the model at overlapping times, in one range each, with an operator between
 * calls. Another thread does something else. */
static struct trace_builder *two_serving_threads(void)
{
	struct trace_builder *builder = builder_new();
	const uint32_t serve = build_node(builder, 0, "serve", NULL, TRACE_NODE_RANGE),
		       net = build_node(builder, serve, "Net", NULL, TRACE_NODE_MODULE),
		       input = build_node(builder, serve, "aten::ones", NULL, TRACE_NODE_OP),
		       load = build_node(builder, 0, "load", NULL, TRACE_NODE_RANGE);

	build_push_node(builder, 3, 500, load);
	for (uint32_t thread = 1; thread <= 2; thread++)
		build_push_node(builder, thread, 900 + thread, serve);
	for (unsigned i = 0; i < 10; i++) {
		const uint64_t at = 1000 + 200 * i;

		for (uint32_t thread = 1; thread <= 2; thread++) {
			build_push_node(builder, thread, at + thread, input);
			build_pop(builder, thread, at + 30 + thread);
		}
		build_push_node(builder, 1, at + 50, net);
		build_push_node(builder, 2, at + 100, net);
		build_launch(builder, 2, at + 110, 2 * i + 2);
		build_launch(builder, 1, at + 120, 2 * i + 1);
		build_pop(builder, 1, at + 150);
		build_pop(builder, 2, at + 180);
		build_kernel(builder, 9, at + 190, 2 * i + 1, "gemm", at + 130, at + 135);
		build_kernel(builder, 9, at + 191, 2 * i + 2, "relu", at + 136, at + 146);
	}
	for (uint32_t thread = 1; thread <= 2; thread++)
		build_pop(builder, thread, 4000 + thread);
	build_pop(builder, 3, 5000);
	return builder;
}

START_TEST(threads_with_steps_have_sections_of_their_own)
{
	struct found found = find(two_serving_threads(), NULL, NULL);

	ck_assert(steps_overlap(found.steps));
	expect(&found, "serve/step", 20, 10 * 100 + 10 * 80, 0);
	expect(&found, "serve/step/Net", 20, 1800, 1800);
	expect(&found, "serve/(between steps)", 18, 9 * (100 + 120), 9 * (2 * 70 + 20));
	expect(&found, "serve/(between steps)/aten::ones", 18, 18 * 30, 18 * 30);
	expect(&found, "serve/(before first step)", 2, 149 + 198, 149 + 198 - 60);
	expect(&found, "serve/(after last step)", 2, 4001 - 2950 + 4002 - 2980,
		4001 - 2950 + 4002 - 2980);
	expect(&found, "(threads without steps)/load", 1, 4500, 4500);
	ck_assert(!is_there(&found, "load"));
	ck_assert_uint_eq(must(&found, "serve/step/Net")->gpu->total_ns, 10 * (5 + 10));
	ck_assert_uint_eq(must(&found, "serve/step/Net")->gpu->total_calls, 20);
	found_free(&found);
}
END_TEST

/* --steps counts from the begin of the first chosen step to the end of the last one, here steps 2
 * and 3: the second call of each thread. */
START_TEST(chosen_steps_of_threads_count_until_the_last_has_ended)
{
	const struct profile_options options = { .device = -1,
		.demangle = DEMANGLE_SHORT,
		.steps = true,
		.first_step = 2,
		.last_step = 3 };
	struct found found = find(two_serving_threads(), &options, NULL);

	expect(&found, "serve/step", 2, 180, 0);
	expect(&found, "serve/(between steps)", 2, 50 + 30, 50 + 30);
	ck_assert_uint_eq(found.fixture.profile->totals.wall_ns, 130);
	found_free(&found);
}
END_TEST

START_TEST(warm_up_and_unfinished_steps_stand_apart)
{
	struct training training = training_new();
	struct found found;

	for (unsigned i = 0; i < 12; i++) {
		training.forward_ns = i < 2 ? 5000 : 100;
		train_step(&training, "Net");
	}
	train_data(&training);
	train_open(&training, "Net", TRACE_NODE_MODULE);
	training.now += 3000;
	train_range(&training, "aten::mm", TRACE_NODE_OP, 100);
	builder_header(training.builder)->flags = 0;
	found = find(training.builder, NULL, NULL);
	expect(&found, "step (warm-up)", 2, 2 * 5190, 40);
	expect(&found, "(before first step)", 1, 1000, 1000);
	expect(&found, "step", 10, 2900, 200);
	ck_assert_uint_eq(must(&found, "step")->max_ns, 290);
	expect(&found, "step (unfinished)", 1, 10 + 1 + 3000 + 100, 0);
	expect(&found, "step (unfinished)/Net/aten::mm", 1, 100, 100);
	ck_assert(!is_there(&found, "(after last step)"));
	found_free(&found);
}
END_TEST

START_TEST(ranges_around_several_steps_stand_above_them)
{
	struct training training = training_new();
	struct found found;

	train_open(&training, "train", TRACE_NODE_RANGE);
	for (unsigned epoch = 0; epoch < 3; epoch++) {
		char label[16];

		snprintf(label, sizeof label, "epoch %u", epoch);
		train_open(&training, label, TRACE_NODE_RANGE);
		for (unsigned i = 0; i < 4; i++)
			train_step(&training, "Net");
		training.now += 500;
		train_close(&training);
		training.now += 7;
	}
	train_close(&training);
	found = find(training.builder, NULL, NULL);
	expect(&found, "train", 1, 3 * (1 + 4 * 290 + 501 + 7) + 2, 0);
	expect(&found, "train/epoch *", 3, 3 * (1 + 4 * 290 + 501), 0);
	expect(&found, "train/epoch */step", 12, 12 * 290, 12 * 20);
	ck_assert_uint_eq(must(&found, "train/epoch */step/Net")->calls, 12);
	expect(&found, "(before first step)", 1, 1000, 1000);
	expect(&found, "train/(before first step)", 1, 1, 1);
	expect(&found, "train/epoch */(before first step)", 1, 1, 1);
	ck_assert_uint_eq(must(&found, "train/epoch */(between steps)")->total_ns, 2 * 501 + 2);
	expect(&found, "train/(between steps)", 2, 14, 14);
	ck_assert_uint_eq(must(&found, "train/epoch */(after last step)")->total_ns, 501);
	expect(&found, "train/(after last step)", 1, 8, 8);
	ck_assert(!is_there(&found, "step") && !is_there(&found, "(between steps)"));
	ck_assert(!is_there(&found, "train/step"));
	found_free(&found);
}
END_TEST

START_TEST(a_range_that_crosses_an_edge_stays_where_it_began)
{
	struct training training = training_new();
	struct found found;

	for (unsigned i = 0; i < 6; i++) {
		train_step(&training, "Net");
		if (i ==
			/* begins as the step ends, 20 behind the optimizer, and ends in an
			 * evaluation */
			2) {
			training.now -= 5;
			train_range(&training, "aten::save", TRACE_NODE_OP, 1000);
		}
	}
	found = find(training.builder, NULL, NULL);
	expect(&found, "step", 6, 6 * 290 - 20,
		6 * 20 - 5 - 20); /* nothing tells of a pause behind the last one */
	expect(&found, "step/aten::save", 1, 1000, 1000);
	expect(&found, "(between steps)", 1, 995, 0);
	found_free(&found);
}
END_TEST

/* With launches: forward on the thread of the steps, backward on another; each kernel runs 10 later
 * than launched, for as many ticks as its number. */
static void run_on_gpu(struct training *training)
{
	const uint64_t at = training->now + 5000;

	build_device(training->builder, 0, "GPU");
	build_record(training->builder, 99, TRACE_GPU_BATCH, sizeof(struct trace_gpu_batch), at);
	for (uint64_t i = 1; i <= training->correlation; i++)
		build_kernel(
			training->builder, 99, at, i, "kernel", 2000 + i * 100, 2000 + i * 101);
}

START_TEST(gpu_work_belongs_to_the_step_in_which_it_was_launched)
{
	struct training training = training_new();
	struct found found;
	uint64_t sum = 0;

	training.backward_stream = 7;
	training.correlation = 1;
	build_launch(training.builder, 1, 500, 1);
	for (unsigned i = 0; i < 5; i++)
		train_step(&training, "Net");
	for (uint64_t i = 2; i <= training.correlation; i++)
		sum += i;
	run_on_gpu(&training);
	ck_assert_uint_eq(training.correlation, 1 + 5 * 3);
	found = find(training.builder, NULL, NULL);
	ck_assert_uint_eq(must(&found, "step")->gpu->total_ns, sum);
	ck_assert_uint_eq(must(&found, "step/Net")->gpu->total_calls, 5);
	ck_assert_uint_eq(must(&found, "(before first step)/unattributed")->gpu->self_ns, 1);
	ck_assert_uint_eq(found.fixture.profile->totals.unattributed_ns, 1);
	ck_assert_uint_eq(found.fixture.profile->totals.gpu_sum_ns, sum + 1);
	/* the worst one by GPU time, with what the other thread launched for it */
	ck_assert_str_eq(
		string_table_get(found.fixture.texts, must(&found, "step")->worst->label).bytes,
		"step 4");
	ck_assert(must(&found, "step")->worst->value == 14 + 15 + 16);
	found_free(&found);
}
END_TEST

START_TEST(gpu_work_without_a_launch_is_in_no_step)
{
	struct training training = training_new();
	struct found found;

	training.correlation = 1;
	for (unsigned i = 0; i < 5; i++)
		train_step(&training, "Net"); /* 2 and on; 1 was never launched */
	run_on_gpu(&training);
	found = find(training.builder, NULL, NULL);
	ck_assert_uint_eq(must(&found, "unattributed")->gpu->self_ns, 1);
	ck_assert_uint_eq(found.fixture.profile->counts.without_launch, 1);
	found_free(&found);
}
END_TEST

START_TEST(memory_stays_with_the_step_that_took_it)
{
	struct training training = training_new();
	struct found found;

	for (unsigned i = 0; i < 5; i++) {
		train_data(&training);
		train_open(&training, "Net", TRACE_NODE_MODULE);
		build_alloc(training.builder, 1, training.now, 0x1000 * (i + 1), 100);
		train_close(&training);
		if (i > 0)
			build_free(training.builder, 1, training.now, 0x1000 * i);
		train_backward(&training);
		train_optimizer(&training, "SGD");
	}
	build_alloc(training.builder, 1, training.now + 1000, 0x9000, 7);
	found = find(training.builder, NULL, NULL);
	ck_assert_uint_eq(must(&found, "step")->memory->alloc_bytes, 500);
	ck_assert_uint_eq(must(&found, "step")->memory->free_bytes, 400);
	ck_assert_int_eq(must(&found, "step")->memory->reserved_delta, 100);
	ck_assert_int_eq(must(&found, "step")->memory->reserved_peak, 200);
	ck_assert_uint_eq(must(&found, "(after last step)/unattributed")->memory->alloc_bytes, 7);
	found_free(&found);
}
END_TEST

START_TEST(ranges_of_the_program_that_are_steps_keep_their_row)
{
	struct training training = training_new();
	struct found found;

	training.backward_stream = 7;
	train_range(&training, "aten::randn", TRACE_NODE_OP, 50);
	for (unsigned i = 0; i < 6; i++) {
		char label[32];

		snprintf(label, sizeof label, "ProfilerStep#%u", i);
		train_open(&training, label, TRACE_NODE_RANGE);
		train_step(&training, "Net");
		train_close(&training);
		training.now += 9;
	}
	found = find(training.builder, NULL, NULL);
	expect(&found, "ProfilerStep#*", 6, 6 * 292, 6 * (292 - 260 + 100 - 10));
	ck_assert_uint_eq(must(&found, "ProfilerStep#*/Net")->calls, 6);
	ck_assert(is_there(&found, "ProfilerStep#*/(backward)")); /* on the other thread */
	ck_assert(!is_there(&found, "(backward)") && !is_there(&found, "step"));
	expect(&found, "(before first step)", 1, 1050, 1000);
	expect(&found, "(between steps)", 5, 45, 45);
	found_free(&found);
}
END_TEST

START_TEST(only_the_selected_steps_count)
{
	struct training training = training_new();
	const struct profile_options some = {
		.device = -1, .metric = METRIC_CPU, .steps = true, .first_step = 3, .last_step = 5
	};
	struct found found;

	train_open(&training, "train", TRACE_NODE_RANGE);
	for (unsigned i = 0; i < 10; i++)
		train_step(&training, "Net");
	train_close(&training);
	found = find(training.builder, &some, NULL);
	expect(&found, "train", 1, 3 * 290, 0);
	expect(&found, "train/step", 3, 3 * 290, 60);
	ck_assert_uint_eq(must(&found, "train/step/Net")->calls, 3);
	ck_assert_uint_eq(found.fixture.profile->totals.wall_ns, 3 * 290);
	ck_assert_uint_eq(found.fixture.profile->counts.steps, 10);
	ck_assert(!is_there(&found, "(before first step)") &&
		  !is_there(&found, "train/(after last step)"));
	found_free(&found);
}
END_TEST

START_TEST(the_worst_step_is_shown_with_its_children)
{
	struct training training = training_new();
	struct profile_options wanted;
	struct profile_target target;
	struct found found;
	const struct node *step;

	training.backward_stream = 7;
	training.correlation = 1;
	for (unsigned i = 0; i < 5; i++)
		train_step(&training, "Net");
	run_on_gpu(&training);
	found = find(training.builder, NULL, NULL);
	step = must(&found, "step");
	target = (struct profile_target){ .stream = step->worst->stream,
		.node = (uint32_t)(step - found.fixture.profile->tree->nodes),
		.begin_ns = step->worst->begin_ns,
		.end_ns = step->worst->end_ns,
		.value = step->worst->value };
	wanted = found.fixture.profile->options;
	wanted.target = &target;
	fixture_rebuild(&found.fixture, &wanted);
	ck_assert_ptr_nonnull(found.fixture.profile->target);
	ck_assert_uint_eq(found.fixture.profile->target->gpu_ns, 14 + 15 + 16);
	ck_assert_uint_eq(found.fixture.profile->target->kept, 2);
	ck_assert_uint_eq(found.fixture.profile->target->children->gpu_ns,
		15 + 16); /* two backward functions */
	ck_assert_uint_eq(found.fixture.profile->target->children->times, 2);
	ck_assert_uint_eq(
		found.fixture.profile->target->children->next->gpu_ns, 14); /* the module */
	found_free(&found);
}
END_TEST

/* Random nesting on some threads, and steps wherever: each thread's time is in the selfs once. */
START_TEST(all_time_is_in_exactly_one_self)
{
	static const char *const names[] = { "a", "b 1", "b 2", "c", "d.7.e" };
	struct trace_builder *builder = builder_new();
	uint64_t at[4] = { 0 }, outermost = 0, selfs = 0, ends;
	unsigned depth[4] = { 0 };
	uint64_t begin[4] = { 0 };
	struct step row[40] = { { .kind = STEP_USUAL } };
	struct steps steps = { .steps = row, .count = 40, .stream = 1 };
	struct profile_options options = { .device = -1,
		.metric = _i % 2 ? METRIC_CALLS : METRIC_CPU };
	struct profile_fixture fixture;

	srand((unsigned)_i);
	for (int i = 0; i < 4000; i++) {
		const unsigned thread = (unsigned)rand() % 4;

		at[thread] += (uint64_t)rand() % 50;
		if (depth[thread] && rand() % 2) {
			build_pop(builder, thread + 1, at[thread]);
			if (--depth[thread] == 0 && thread > 0)
				outermost += at[thread] - begin[thread];
		} else {
			if (depth[thread]++ == 0)
				begin[thread] = at[thread];
			build_push(builder, thread + 1, at[thread], names[rand() % 5]);
		}
		if (rand() % 300 == 0)
			build_alloc(builder, thread + 1, at[thread], 0x1000u + (unsigned)i, 100);
		if (rand() % 500 == 0)
			build_seal(builder, thread + 1, SEAL_WHOLE);
	}
	for (unsigned thread = 0; thread < 4; thread++)
		while (depth[thread]) {
			build_pop(builder, thread + 1, ++at[thread]);
			if (--depth[thread] == 0 && thread > 0)
				outermost += at[thread] - begin[thread];
		}
	ends = at[0];
	fixture = fixture_of(builder, NULL);
	for (size_t i = 0; i < steps.count; i++) {
		row[i].begin_ns = ends * (2 * i + 1) / 82 + (uint64_t)rand() % 3;
		row[i].end_ns = row[i].begin_ns + (rand() % 4 ? ends / 90 : 0);
		row[i].trace_node = (uint32_t)rand() % reader_node_count(fixture.reader);
		row[i].number = i;
		row[i].kind = (uint8_t)(i < 3     ? STEP_WARM_UP
					: i == 39 ? STEP_UNFINISHED
						  : STEP_USUAL);
	}
	options.found_steps = &steps;
	fixture_rebuild(&fixture, &options);
	for (uint32_t id = 1; id < fixture.profile->tree->count; id++)
		if (node_kind_class(fixture.profile->tree->nodes[id].kind) == NODE_RANGES)
			selfs += fixture.profile->tree->nodes[id].self_ns;
	ck_assert_uint_eq(selfs, outermost + ends);
	fixture_check(&fixture);
	fixture_free(&fixture);
}
END_TEST

/* Steps on a thread that begins late and ends early. */
START_TEST(sections_wait_for_their_thread)
{
	struct training training = training_new();
	struct found found;

	training.stream = 2;
	train_range(&training, "aten::randn", TRACE_NODE_OP, 500);
	training.stream = 1;
	for (unsigned i = 0; i < 5; i++)
		train_step(&training, "Net");
	training.stream = 2;
	train_range(&training, "aten::mean", TRACE_NODE_OP, 50);
	found = find(training.builder, NULL, NULL);
	expect(&found, "(before first step)/aten::randn", 1, 500, 500);
	expect(&found, "step", 5, 5 * 290 - 20, 80); /* its thread has ended */
	ck_assert(is_there(&found, "(after last step)/aten::mean"));
	found_free(&found);
}
END_TEST

START_TEST(the_first_screen_says_what_was_found)
{
	struct training training = training_new();
	struct report_run run;

	for (unsigned i = 0; i < 14; i++) {
		training.forward_ns = i < 2 ? 50000 : 10000;
		train_step(&training, "Net");
	}
	run = run_report(training.builder, "trace.bin --width 150");
	ck_assert_int_eq(run.status, 0);
	ck_assert_msg(
		strstr(run.out,
			"steps     12 steps of 10.19 \xc2\xb5s (p50), 2 warm-up excluded; found by "
			"optimizer.step (high)\n"),
		"%s", run.out);
	ck_assert_ptr_nonnull(strstr(run.out, "step (warm-up)"));
	run = run_report(NULL, "trace.bin --no-steps");
	ck_assert_ptr_null(strstr(run.out, "step (warm-up)"));
	ck_assert_ptr_null(strstr(run.out, "12 steps"));
	run = run_report(NULL, "tree trace.bin -f json");
	ck_assert_ptr_nonnull(
		strstr(run.out, "\"steps\": {\"count\": 14, \"warmup\": 2, \"unfinished\": 0, "
				"\"evidence\": \"optimizer.step\", "
				"\"confidence\": \"high\", \"reason\": null, \"own_ranges\": "
				"false, \"p50_ns\": 10190, "));
	ck_assert_ptr_nonnull(strstr(run.out, "\"kind\": \"step\""));
	ck_assert_ptr_nonnull(strstr(run.out, "\"kind\": \"section\""));
	run = run_report(NULL, "tree trace.bin --steps 3-4 -f csv");
	ck_assert_int_eq(run.status, 0);
}
END_TEST

START_TEST(steps_stand_before_what_is_in_none_of_them)
{
	struct training training = training_new();
	const char *step, *before;
	struct report_run run;

	train_range(&training, "import", TRACE_NODE_RANGE, 10000000);
	for (unsigned i = 0; i < 6; i++)
		train_step(&training, "Net");
	run = run_report(training.builder, "tree trace.bin");
	step = strstr(run.out, "\nstep ");
	before = strstr(run.out, "\n(before first step)");
	ck_assert_msg(step && before && step < before, "%s", run.out);
}
END_TEST

START_TEST(a_marker_may_be_given_to_the_report)
{
	struct training training = training_new();
	struct report_run run;

	for (unsigned i = 0; i < 6; i++) {
		char label[16];

		snprintf(label, sizeof label, "Lap %u", i);
		train_open(&training, label, TRACE_NODE_RANGE);
		train_step(&training, "Net");
		train_close(&training);
	}
	run = run_report(training.builder, "trace.bin --step-marker Lap");
	ck_assert_msg(
		strstr(run.out, "found by ranges like `Lap 0` (high)") != NULL, "%s", run.out);
	run = run_report(NULL, "trace.bin --step-marker Round");
	ck_assert_int_eq(run.status, 64);
	ck_assert_ptr_nonnull(strstr(run.err, "no range is named `Round`"));
}
END_TEST

START_TEST(no_steps_are_said_to_be_none)
{
	struct training training = training_new();
	struct report_run run;

	train_forward(&training, "Net");
	run = run_report(training.builder, "trace.bin");
	ck_assert_msg(strstr(run.out, "steps     no repeating step detected (needs ") != NULL, "%s",
		run.out);
	run = run_report(NULL, "tree trace.bin -f json");
	ck_assert_ptr_nonnull(strstr(run.out, "\"steps\": {\"count\": 0, "));
	ck_assert_ptr_nonnull(strstr(run.out, "\"confidence\": \"none\""));
}
END_TEST

static Suite *suite(void)
{
	Suite *suite = suite_create("sections");
	TCase *trees = tcase_create("trees"), *screens = tcase_create("screens");

	tcase_add_test(trees, a_training_is_its_steps_and_what_is_around_them);
	tcase_add_test(trees, threads_with_steps_have_sections_of_their_own);
	tcase_add_test(trees, chosen_steps_of_threads_count_until_the_last_has_ended);
	tcase_add_test(trees, warm_up_and_unfinished_steps_stand_apart);
	tcase_add_test(trees, ranges_around_several_steps_stand_above_them);
	tcase_add_test(trees, a_range_that_crosses_an_edge_stays_where_it_began);
	tcase_add_test(trees, gpu_work_belongs_to_the_step_in_which_it_was_launched);
	tcase_add_test(trees, gpu_work_without_a_launch_is_in_no_step);
	tcase_add_test(trees, memory_stays_with_the_step_that_took_it);
	tcase_add_test(trees, ranges_of_the_program_that_are_steps_keep_their_row);
	tcase_add_test(trees, only_the_selected_steps_count);
	tcase_add_test(trees, the_worst_step_is_shown_with_its_children);
	tcase_add_loop_test(trees, all_time_is_in_exactly_one_self, 0, 20);
	tcase_add_test(trees, sections_wait_for_their_thread);
	tcase_set_timeout(trees, 60);
	suite_add_tcase(suite, trees);
	tcase_add_checked_fixture(screens, run_report_setup, run_report_teardown);
	tcase_add_test(screens, the_first_screen_says_what_was_found);
	tcase_add_test(screens, steps_stand_before_what_is_in_none_of_them);
	tcase_add_test(screens, a_marker_may_be_given_to_the_report);
	tcase_add_test(screens, no_steps_are_said_to_be_none);
	tcase_set_timeout(screens, 60);
	suite_add_tcase(suite, screens);
	return suite;
}

int main(void)
{
	SRunner *runner = srunner_create(suite());
	int failed;

	srunner_run_all(runner, CK_ENV);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed != 0;
}
