/* SPDX-License-Identifier: MIT
 * test_steps.c: the steps of a program that nobody marked: where they begin and end, what they were
 * found by, and how sure that is.
 */
#include "report/steps/find_steps.h"
#include "tests/support/event_text.h"
#include "tests/support/run_report.h"
#include "tests/support/training_trace.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct steps *found_by(struct training *training, const char *marker)
{
	struct trace_reader *reader = open_built(training->builder);
	struct steps *steps = steps_find(reader, marker, NULL);

	reader_close(reader);
	builder_free(training->builder);
	return steps;
}

static struct steps *found(struct training *training)
{
	return found_by(training, NULL);
}

static void expect_step(const struct steps *steps, size_t index, uint64_t begin, uint64_t end)
{
	ck_assert_uint_lt(index, steps->count);
	ck_assert_uint_eq(steps->steps[index].begin_ns, begin);
	ck_assert_uint_eq(steps->steps[index].end_ns, end);
}

START_TEST(a_training_has_a_step_for_each_batch)
{
	struct training training = training_new();
	struct steps *steps;

	train_range(&training, "aten::randn", TRACE_NODE_OP, 500);
	for (unsigned i = 0; i < 12; i++)
		train_step(&training, "Net");
	train_range(&training, "aten::mean", TRACE_NODE_OP, 50);
	steps = found(&training);
	ck_assert_uint_eq(steps->count, 12);
	ck_assert_uint_eq(steps->stream, 1);
	ck_assert(!steps->own_ranges);
	ck_assert_int_eq(steps->confidence, STEPS_HIGH);
	ck_assert_str_eq(steps->evidence, "optimizer.step");
	ck_assert_str_eq(steps->reason, "");
	for (unsigned i = 0; i < 12; i++) /* the pause behind each belongs to it */
		expect_step(steps, i, 1500 + i * 290, 1500 + (i + 1) * 290);
	ck_assert_uint_eq(steps->p50_ns, 290);
	ck_assert_uint_eq(steps->warm_up, 0);
	ck_assert_uint_eq(steps->unfinished, 0);
	steps_free(steps);
}
END_TEST

START_TEST(an_evaluation_is_between_steps)
{
	struct training training = training_new();
	struct steps *steps;
	uint64_t evaluation = 0, goes_on = 0;

	for (unsigned i = 0; i < 8; i++) {
		if (i == 4)
			evaluation = training.now;
		for (unsigned k = 0; i == 4 && k < 10; k++) {
			train_data(&training);
			train_forward(&training, "Net");
		}
		if (i == 4)
			goes_on = training.now;
		train_step(&training, "Net");
	}
	steps = found(&training);
	ck_assert_uint_eq(steps->count, 8);
	ck_assert_uint_eq(steps->steps[3].end_ns, evaluation);
	ck_assert_uint_eq(steps->steps[4].begin_ns, goes_on);
	ck_assert_int_eq(steps->confidence, STEPS_HIGH);
	steps_free(steps);
}
END_TEST

START_TEST(an_evaluation_is_distinguished_from_training_without_batches_too)
{
	for (unsigned zero = 0; zero < 2; zero++) {
		struct training training = training_new();
		struct steps *steps;
		uint64_t goes_on = 0;

		for (unsigned i = 0; i < 8; i++) {
			for (unsigned k = 0; i == 4 && k < 10; k++)
				train_forward(&training, "Net");
			if (i == 4)
				goes_on = training.now;
			if (zero)
				train_zero(&training);
			train_forward(&training, "Net");
			if (!zero)
				train_zero(&training);
			train_backward(&training);
			train_optimizer(&training, "SGD");
		}
		steps = found(&training);
		ck_assert_uint_eq(steps->count, 8);
		ck_assert_uint_eq(steps->steps[4].begin_ns, goes_on);
		ck_assert_uint_lt(steps->steps[3].end_ns, goes_on - 500);
		steps_free(steps);
	}
}
END_TEST

START_TEST(accumulated_gradients_are_one_step)
{
	struct training training = training_new();
	struct steps *steps;

	for (unsigned i = 0; i < 20; i++) {
		train_data(&training);
		train_forward(&training, "Net");
		train_backward(&training);
		if (i % 4 == 3) {
			train_optimizer(&training, "AdamW");
			train_zero(&training);
		}
	}
	steps = found(&training);
	ck_assert_uint_eq(steps->count, 5);
	ck_assert_uint_eq(steps->p50_ns, 4 * 210 + 60);
	ck_assert_int_eq(steps->confidence, STEPS_HIGH);
	steps_free(steps);
}
END_TEST

/* Gradients are emptied behind the step, not before the next: then what is called in between is an
 * evaluation. Without the last zero_grad the program may as well have left its first one out. */
START_TEST(an_evaluation_behind_zero_grad_is_no_part_of_a_step)
{
	for (unsigned last = 0; last < 2; last++) {
		struct training training = training_new();
		struct steps *steps;

		for (unsigned i = 0; i < 20; i++) {
			for (unsigned call = 0; i % 10 == 0 && call < 5; call++)
				train_forward(&training, "GPT");
			for (unsigned part = 0; part < 2; part++) {
				train_forward(&training, "GPT");
				train_backward(&training);
			}
			train_optimizer(&training, "AdamW");
			if (i < 19 || last)
				train_zero(&training);
		}
		steps = found(&training);
		ck_assert_uint_eq(steps->count, 20);
		ck_assert_uint_eq(steps->p50_ns, 2 * (100 + 100) + 50 + 10);
		ck_assert_msg((steps->max_ns < 2 * steps->p50_ns) == last, "%llu",
			(unsigned long long)steps->max_ns);
		steps_free(steps);
	}
}
END_TEST

/* A GAN: the discriminator's step, then the generator's. Both optimizers have the same name. */
static void train_gan(struct training *training, bool batches)
{
	if (batches)
		train_data(training);
	train_zero(training);
	train_forward(training, "D");
	train_forward(training, "G");
	train_forward(training, "D");
	train_backward(training);
	train_optimizer(training, "Adam");
	train_zero(training);
	train_forward(training, "D");
	train_backward(training);
	train_optimizer(training, "Adam");
}

START_TEST(two_optimizers_make_one_step)
{
	for (unsigned batches = 0; batches < 2; batches++) {
		struct training training = training_new();
		struct steps *steps;

		for (unsigned i = 0; i < 10; i++)
			train_gan(&training, batches);
		steps = found(&training);
		ck_assert_uint_eq(steps->count, 10);
		ck_assert_uint_eq(steps->p50_ns, 10 * batches + 20 + 400 + 200 + 100);
		ck_assert_int_eq(steps->confidence, STEPS_HIGH);
		steps_free(steps);
	}
}
END_TEST

/* The generator's pictures are made before the discriminator's gradients are emptied; an evaluation
 * that comes now and then is none of that. */
START_TEST(what_is_called_before_zero_grad_each_time_is_in_the_step)
{
	for (unsigned evaluation = 0; evaluation < 2; evaluation++) {
		struct training training = training_new();
		struct steps *steps;

		for (unsigned i = 0; i < 20; i++) {
			if (evaluation && i % 10 == 5)
				train_forward(&training, "Judge");
			train_forward(&training, "G");
			train_zero(&training);
			train_forward(&training, "D");
			train_forward(&training, "D");
			train_backward(&training);
			train_optimizer(&training, "Adam");
			train_zero(&training);
			train_forward(&training, "D");
			train_backward(&training);
			train_optimizer(&training, "Adam");
		}
		steps = found(&training);
		ck_assert_uint_eq(steps->count, 20);
		ck_assert_uint_eq(steps->p50_ns, 200 + 2 * (10 + 100 + 100 + 50));
		steps_free(steps);
	}
}
END_TEST

START_TEST(two_optimizers_side_by_side_make_one_step)
{
	struct training training = training_new();
	struct steps *steps;

	for (unsigned i = 0; i < 10; i++) {
		train_zero(&training);
		train_forward(&training, "Net");
		train_backward(&training);
		train_optimizer(&training, "SGD");
		train_optimizer(&training, "Adam");
	}
	steps = found(&training);
	ck_assert_uint_eq(steps->count, 10);
	ck_assert_uint_eq(steps->p50_ns, 310);
	steps_free(steps);
}
END_TEST

START_TEST(an_optimizer_that_is_skipped_leaves_a_step)
{
	struct training training = training_new();
	struct steps *steps;

	for (unsigned i = 0; i < 10; i++) {
		train_data(&training);
		train_zero(&training);
		train_forward(&training, "Net");
		train_backward(&training);
		if (i != 3)
			train_optimizer(&training, "SGD");
	}
	steps = found(&training);
	ck_assert_uint_eq(steps->count, 10);
	ck_assert_uint_eq(steps->p50_ns, 270);
	ck_assert_uint_eq(steps->min_ns, 220);
	steps_free(steps);
}
END_TEST

START_TEST(a_loss_module_is_no_step)
{
	struct training training = training_new();
	struct steps *steps;

	for (unsigned i = 0; i < 6; i++) {
		train_data(&training);
		train_forward(&training, "Net");
		train_forward(&training, "CrossEntropyLoss");
		train_zero(&training);
		train_backward(&training);
		train_optimizer(&training, "SGD");
	}
	steps = found(&training);
	ck_assert_uint_eq(steps->count, 6);
	ck_assert_uint_eq(steps->p50_ns, 370);
	steps_free(steps);
}
END_TEST

START_TEST(ranges_of_the_program_begin_and_end_with_the_step)
{
	struct training training = training_new();
	struct steps *steps;

	train_open(&training, "train", TRACE_NODE_RANGE);
	for (unsigned i = 0; i < 6; i++) {
		train_open(&training, "forward pass", TRACE_NODE_RANGE);
		train_forward(&training, "Net");
		train_close(&training);
		train_backward(&training);
		train_open(&training, "update", TRACE_NODE_RANGE);
		train_optimizer(&training, "SGD");
		training.now += 7;
		train_close(&training);
		training.now += 5;
	}
	train_close(&training);
	steps = found(&training);
	ck_assert_uint_eq(steps->count, 6);
	for (unsigned i = 0; i < 5; i++)
		expect_step(steps, i, 1001 + i * 266, 1001 + (i + 1) * 266);
	ck_assert_uint_eq(steps->steps[0].trace_node, 1); /* `train` stands above */
	steps_free(steps);
}
END_TEST

START_TEST(a_step_does_not_reach_beyond_its_epoch)
{
	struct training training = training_new();
	struct steps *steps;
	uint64_t end[2];

	for (unsigned epoch = 0; epoch < 2; epoch++) {
		char label[16];

		snprintf(label, sizeof label, "epoch %u", epoch);
		train_open(&training, label, TRACE_NODE_RANGE);
		for (unsigned i = 0; i < 5; i++)
			train_step(&training, "Net");
		training.now -= 15;
		train_close(&training);
		end[epoch] = training.now;
	}
	steps = found(&training);
	ck_assert_uint_eq(steps->count, 10);
	ck_assert_uint_eq(steps->steps[4].end_ns, end[0]);
	ck_assert_uint_eq(steps->steps[9].end_ns, end[1]);
	ck_assert_uint_ne(steps->steps[4].trace_node, steps->steps[5].trace_node);
	steps_free(steps);
}
END_TEST

START_TEST(calls_of_the_outermost_module_are_steps_of_inference)
{
	struct training training = training_new();
	struct steps *steps;

	for (unsigned i = 0; i < 5; i++) {
		train_range(&training, "Tokenizer", TRACE_NODE_MODULE, 10);
		train_forward(&training, "Net");
		training.now += 300;
	}
	steps = found(&training);
	ck_assert_uint_eq(steps->count, 5);
	for (unsigned i = 0; i < 5; i++)
		expect_step(steps, i, 1010 + i * 410, 1110 + i * 410);
	ck_assert_int_eq(steps->confidence, STEPS_MEDIUM);
	ck_assert_str_eq(steps->evidence, "calls of the outermost module");
	steps_free(steps);
}
END_TEST

START_TEST(two_models_alike_are_found_with_little_confidence)
{
	struct training training = training_new();
	struct steps *steps;

	for (unsigned i = 0; i < 5; i++) {
		train_forward(&training, "Encoder");
		train_range(&training, "Decoder", TRACE_NODE_MODULE, 90);
	}
	steps = found(&training);
	ck_assert_uint_eq(steps->count, 5);
	ck_assert_int_eq(steps->confidence, STEPS_LOW);
	ck_assert_str_ne(steps->reason, "");
	steps_free(steps);
}
END_TEST

START_TEST(gradients_without_an_optimizer_are_steps)
{
	struct training training = training_new();
	struct steps *steps;

	for (unsigned i = 0; i < 5; i++) {
		train_forward(&training, "Net");
		train_backward(&training);
		train_range(&training, "aten::sub_", TRACE_NODE_OP, 20);
	}
	steps = found(&training);
	ck_assert_uint_eq(steps->count, 5);
	ck_assert_uint_eq(steps->p50_ns, 220);
	ck_assert_int_eq(steps->confidence, STEPS_MEDIUM);
	steps_free(steps);
}
END_TEST

START_TEST(an_optimizer_may_compute_gradients_itself)
{
	struct training training = training_new();
	struct steps *steps;

	for (unsigned i = 0; i < 6; i++) {
		train_open(&training, "Optimizer.step#LBFGS.step", TRACE_NODE_OPTIMIZER);
		for (unsigned k = 0; k < 3; k++) {
			train_zero(&training);
			train_forward(&training, "Net");
			train_backward(&training);
		}
		train_close(&training);
		training.now += 8;
	}
	steps = found(&training);
	ck_assert_uint_eq(steps->count, 6);
	ck_assert_str_eq(steps->evidence, "optimizer.step");
	ck_assert_uint_eq(steps->p50_ns, 640);
	steps_free(steps);
}
END_TEST

START_TEST(optimizers_alone_part_the_time)
{
	struct training training = training_new();
	struct steps *steps;

	for (unsigned i = 0; i < 5; i++) {
		train_range(&training, "aten::linear", TRACE_NODE_OP, 100);
		train_optimizer(&training, "SGD");
	}
	steps = found(&training);
	ck_assert_uint_eq(steps->count, 5);
	expect_step(steps, 1, 1150, 1300);
	ck_assert_int_eq(steps->confidence, STEPS_MEDIUM);
	ck_assert_ptr_nonnull(strstr(steps->reason, "assumed to start where"));
	steps_free(steps);
}
END_TEST

START_TEST(no_sign_no_step)
{
	struct training training = training_new();
	struct steps *steps;

	train_range(&training, "aten::linear", TRACE_NODE_OP, 100);
	train_forward(&training, "Net");
	train_forward(&training, "Net");
	steps = found(&training);
	ck_assert_uint_eq(steps->count, 0);
	ck_assert_int_eq(steps->confidence, STEPS_NONE);
	ck_assert_str_ne(steps->reason, "");
	steps_free(steps);
}
END_TEST

START_TEST(a_program_without_pytorch_or_named_steps_is_not_searched)
{
	struct training training = training_new();

	for (unsigned i = 0; i < 5; i++)
		train_range(&training, "round 1", TRACE_NODE_RANGE, 100);
	ck_assert_ptr_null(found(&training));
}
END_TEST

/* Builds ranges `word first`, `word first + 1` and so on, with `launches` launches in each. */
static void named_ranges(struct training *training, const char *word, unsigned first,
	unsigned count, unsigned launches)
{
	for (unsigned i = 0; i < count; i++) {
		char label[32];

		snprintf(label, sizeof label, "%s %u", word, first + i);
		train_open(training, label, TRACE_NODE_RANGE);
		for (unsigned at = 0; at < launches; at++)
			build_launch(
				training->builder, 1, training->now += 10, ++training->correlation);
		training->now += 100;
		train_close(training);
	}
}

static void expect_named(
	struct training *training, size_t count, const char *evidence, uint64_t last_number)
{
	struct steps *steps = found(training);

	ck_assert_ptr_nonnull(steps);
	ck_assert_uint_eq(steps->count, count);
	if (count) {
		ck_assert(steps->own_ranges);
		ck_assert_str_eq(steps->evidence, evidence);
		ck_assert_uint_eq(steps->steps[count - 1].number, last_number);
	}
	steps_free(steps);
}

START_TEST(numbered_ranges_named_like_steps_are_steps_of_any_program)
{
	static const char *const words[] = { "step", "Step:", "iteration", "ITER", "batch", "epoch",
		"step #", "Training_Step" };

	for (size_t i = 0; i < sizeof words / sizeof *words; i++)
		for (unsigned launches = 0; launches < 3; launches++) {
			struct training training = training_new();
			char evidence[64];

			train_range(&training, "set up", TRACE_NODE_RANGE, 5000);
			named_ranges(&training, words[i], 3, 5, launches);
			snprintf(evidence, sizeof evidence, "ranges like `%s 3`", words[i]);
			expect_named(&training, 5, evidence, 7);
		}
}
END_TEST

/* The numbers begin again in each epoch. */
START_TEST(steps_in_epochs_are_the_steps)
{
	for (unsigned again = 0; again < 2; again++) {
		struct training training = training_new();

		for (unsigned epoch = 0; epoch < 3; epoch++) {
			char label[32];

			snprintf(label, sizeof label, "epoch %u", epoch);
			train_open(&training, label, TRACE_NODE_RANGE);
			named_ranges(&training, "step", again ? 0 : epoch * 4, 4, 2);
			named_ranges(&training, "batch", 0, 1, 0); /* an evaluation */
			train_close(&training);
		}
		expect_named(&training, 12, "ranges like `step 0`", again ? 3 : 11);
	}
}
END_TEST

/* Parts of a step: their numbers begin again in each. */
START_TEST(batches_in_steps_are_no_steps)
{
	static const char *const parts[] = { "batch", "iter" };

	for (unsigned i = 0; i < 2; i++) {
		struct training training = training_new();

		for (unsigned step = 0; step < 6; step++) {
			char label[32];

			snprintf(label, sizeof label, "step %u", step);
			train_open(&training, label, TRACE_NODE_RANGE);
			named_ranges(&training, parts[i], 0, 4, 2);
			train_close(&training);
		}
		expect_named(&training, 6, "ranges like `step 0`", 5);
	}
}
END_TEST

START_TEST(loading_in_an_epoch_is_no_step)
{
	struct training training = training_new();

	for (unsigned epoch = 0; epoch < 3; epoch++) {
		char label[32];

		snprintf(label, sizeof label, "epoch %u", epoch);
		train_open(&training, label, TRACE_NODE_RANGE);
		named_ranges(&training, "batch", epoch * 5, 5, 0);
		for (unsigned at = 0; at < 20; at++)
			build_launch(
				training.builder, 1, training.now += 10, ++training.correlation);
		train_close(&training);
	}
	expect_named(&training, 3, "ranges like `epoch 0`", 2);
}
END_TEST

START_TEST(ordinary_ranges_with_such_words_are_no_steps)
{
	struct training training = training_new();

	/* a size, not a number */
	for (unsigned i = 0; i < 6; i++)
		named_ranges(&training, "batch", 32, 1, 3);
	/* sizes, largest first */
	for (unsigned i = 6; i > 0; i--)
		named_ranges(&training, "batch", i * 8, 1, 3);
	expect_named(&training, 0, NULL, 0);

	/* a few launches of many */
	training = training_new();
	for (unsigned i = 0; i < 6; i++) {
		named_ranges(&training, "iter", i, 1, 1);
		for (unsigned at = 0; at < 20; at++)
			build_launch(
				training.builder, 1, training.now += 10, ++training.correlation);
	}
	expect_named(&training, 0, NULL, 0);

	/* no numbers */
	training = training_new();
	for (unsigned i = 0; i < 6; i++)
		train_range(&training, "step", TRACE_NODE_RANGE, 100);
	expect_named(&training, 0, NULL, 0);

	/* other words, and one range alone */
	training = training_new();
	named_ranges(&training, "stepper", 0, 6, 2);
	named_ranges(&training, "batch_norm", 0, 6, 2);
	named_ranges(&training, "step", 0, 1, 2);
	expect_named(&training, 0, NULL, 0);
}
END_TEST

/* Epochs around a training whose steps nobody marked. */
START_TEST(an_epoch_of_several_optimizer_steps_is_no_step)
{
	struct training training = training_new();
	struct steps *steps;

	for (unsigned epoch = 0; epoch < 3; epoch++) {
		char label[32];

		snprintf(label, sizeof label, "epoch %u", epoch);
		train_open(&training, label, TRACE_NODE_RANGE);
		for (unsigned i = 0; i < 4; i++)
			train_step(&training, "Net");
		train_close(&training);
	}
	steps = found(&training);
	ck_assert_uint_eq(steps->count, 12);
	ck_assert_str_eq(steps->evidence, "optimizer.step");
	steps_free(steps);
}
END_TEST

START_TEST(one_marked_step_counts)
{
	for (unsigned kind = 0; kind < 2; kind++) {
		struct training training = training_new();
		struct steps *steps;

		train_open(&training, kind ? "the step" : "ProfilerStep#7",
			kind ? TRACE_NODE_STEP : TRACE_NODE_RANGE);
		train_step(&training, "Net");
		train_close(&training);
		steps = found(&training);
		ck_assert_uint_eq(steps->count, 1);
		ck_assert(steps->own_ranges);
		ck_assert_uint_eq(steps->steps[0].number, kind ? 0 : 7);
		steps_free(steps);
	}
}
END_TEST

/* Builds a step of 100 with a kernel at its end. It begins with `before` and ends with `after`
 * without work. */
static void profiler_step(
	struct training *training, unsigned number, uint64_t before, uint64_t after)
{
	char name[32];

	snprintf(name, sizeof name, "ProfilerStep#%u", number);
	train_open(training, name, TRACE_NODE_RANGE);
	training->now += before;
	train_range(training, "aten::add", TRACE_NODE_OP, 90);
	build_kernel(
		training->builder, 9, 90000, number + 1, "k", training->now - 20, training->now);
	training->now += after;
	train_close(training);
}

static struct steps *profiled_steps(uint64_t before, uint64_t after)
{
	struct training training = training_new();

	for (unsigned i = 0; i < 6; i++)
		profiler_step(&training, i, i == 0 ? before : 0, i == 5 ? after : 0);
	/* the profiler waits for the GPU when it stops */
	train_range(&training, "cudaDeviceSynchronize", TRACE_NODE_RANGE, 10);
	return found(&training);
}

START_TEST(steps_at_the_edges_of_the_recording_are_no_usual_ones)
{
	struct steps *steps = profiled_steps(40, 80);

	ck_assert_uint_eq(steps->count, 6);
	ck_assert_uint_eq(steps->edges, 2);
	ck_assert_uint_eq(steps_usual(steps), 4);
	ck_assert_int_eq(steps->steps[0].kind, STEP_AT_EDGE);
	ck_assert_int_eq(steps->steps[1].kind, STEP_USUAL);
	ck_assert_int_eq(steps->steps[5].kind, STEP_AT_EDGE);
	steps_free(steps);
	/* not longer than 1.2 times the others */
	steps = profiled_steps(5, 5);
	ck_assert_uint_eq(steps->edges, 0);
	steps_free(steps);
}
END_TEST

/* The host works until the last step ends: the step is slow, whatever the recording does. */
START_TEST(a_slow_last_step_that_works_is_usual)
{
	struct training training = training_new();
	struct steps *steps;

	for (unsigned i = 0; i < 6; i++) {
		char name[32];

		snprintf(name, sizeof name, "ProfilerStep#%u", i);
		train_open(&training, name, TRACE_NODE_RANGE);
		train_range(&training, "aten::add", TRACE_NODE_OP, 90);
		build_kernel(
			training.builder, 9, 90000, i + 1, "k", training.now - 20, training.now);
		if (i == 5)
			train_range(&training, "save", TRACE_NODE_OP, 80);
		train_close(&training);
	}
	steps = found(&training);
	ck_assert_uint_eq(steps->count, 6);
	ck_assert_uint_eq(steps->edges, 0);
	ck_assert_int_eq(steps->steps[5].kind, STEP_USUAL);
	steps_free(steps);
}
END_TEST

/* An evaluation has no gradients, a long episode has as many as calls. */
START_TEST(a_step_with_more_calls_than_usual_keeps_them)
{
	struct training training = training_new();
	struct steps *steps;
	uint64_t begins[12];

	for (unsigned i = 0; i < 12; i++) {
		const unsigned calls = i == 7 ? 200 : 10;

		begins[i] = training.now;
		for (unsigned call = 0; call < calls; call++)
			train_forward(&training, "Net");
		train_zero(&training);
		for (unsigned call = 0; call < calls; call++)
			train_backward(&training);
		train_optimizer(&training, "SGD");
	}
	steps = found(&training);
	ck_assert_uint_eq(steps->count, 12);
	for (unsigned i = 0; i < 12; i++)
		ck_assert_uint_eq(steps->steps[i].begin_ns, begins[i]);
	steps_free(steps);
}
END_TEST

START_TEST(a_closure_behind_another_optimizer_is_a_step_of_its_own)
{
	struct training training = training_new();
	struct steps *steps;

	for (unsigned i = 0; i < 8; i++) {
		if (i < 4) {
			train_zero(&training);
			train_forward(&training, "Net");
			train_backward(&training);
			train_optimizer(&training, "Adagrad");
			continue;
		}
		train_open(&training, "Optimizer.step#LBFGS.step", TRACE_NODE_OPTIMIZER);
		train_zero(&training);
		train_forward(&training, "Net");
		train_backward(&training);
		train_close(&training);
	}
	steps = found(&training);
	ck_assert_uint_eq(steps->count, 8);
	steps_free(steps);
}
END_TEST

/* A call of 100, the same on stream 2 from 50 later on, and so on every 200. */
static void overlapping_calls(struct training *training, unsigned count)
{
	const uint32_t net = build_node(training->builder, 0, "Net", NULL, TRACE_NODE_MODULE);

	for (unsigned i = 0; i < count; i++) {
		build_push_node(training->builder, 1, training->now, net);
		build_push_node(training->builder, 2, training->now + 50, net);
		build_pop(training->builder, 1, training->now + 100);
		build_pop(training->builder, 2, training->now + 150);
		training->now += 200;
	}
}

START_TEST(a_model_that_two_threads_call_has_steps_on_both)
{
	struct training training = training_new();
	struct steps *steps;

	overlapping_calls(&training, 10);
	steps = found(&training);
	ck_assert(steps_overlap(steps));
	ck_assert_uint_eq(steps->count, 20);
	ck_assert_uint_eq(steps->thread_count, 2);
	for (unsigned i = 0; i < 2; i++) {
		ck_assert_uint_eq(steps->threads[i].tid, 1001 + i);
		ck_assert_uint_eq(steps->threads[i].count, 10);
		ck_assert_uint_eq(steps->threads[i].p50_ns, 100);
		ck_assert_uint_eq(steps->threads[i].p95_ns, 100);
	}
	expect_step(steps, 0, 1000, 1100);
	expect_step(steps, 1, 1050, 1150);
	ck_assert_ptr_null(steps_step_at(steps, 1075));
	ck_assert_ptr_eq(steps_step_of_thread(steps, 1001, 1075), &steps->steps[0]);
	ck_assert_ptr_eq(steps_step_of_thread(steps, 1002, 1075), &steps->steps[1]);
	ck_assert_ptr_null(steps_step_of_thread(steps, 1001, 1100));
	ck_assert_ptr_null(steps_step_of_thread(steps, 1003, 1075));
	ck_assert_str_eq(steps->evidence, "calls of the outermost module");
	steps_free(steps);
}
END_TEST

START_TEST(a_thread_per_call_has_a_step)
{
	struct training training = training_new();
	struct steps *steps;

	for (unsigned i = 0; i < 20; i++) {
		training.stream = 1 + i;
		train_forward(&training, "Net");
	}
	steps = found(&training);
	ck_assert_uint_eq(steps->count, 20);
	ck_assert_uint_eq(steps->thread_count, 20);
	ck_assert_uint_eq(steps->warm_up, 0);
	steps_free(steps);
}
END_TEST

/* As nn.DataParallel does: it calls replicas on threads, and waits for them. */
START_TEST(calls_of_replicas_on_threads_are_parts_of_a_step)
{
	struct training training = training_new();
	const uint32_t net = build_node(training.builder, 0, "Net", NULL, TRACE_NODE_MODULE);
	struct steps *steps;

	for (unsigned i = 0; i < 8; i++) {
		const uint64_t at = 1000 + 200 * i;

		build_push_node(training.builder, 1, at, net);
		for (unsigned replica = 0; replica < 3; replica++)
			build_push_node(training.builder, 2 + replica, at + 10 + replica, net);
		for (unsigned replica = 0; replica < 3; replica++)
			build_pop(training.builder, 2 + replica, at + 80 + replica);
		build_pop(training.builder, 1, at + 100);
	}
	steps = found(&training);
	ck_assert(!steps_overlap(steps));
	ck_assert_uint_eq(steps->count, 8);
	ck_assert_uint_eq(steps->stream, 1);
	steps_free(steps);
}
END_TEST

/* Each thread's first call is slow. While both run, calls are slower than later. */
START_TEST(only_the_first_calls_of_a_thread_are_its_warm_up)
{
	struct training training = training_new();
	struct steps *steps;

	for (unsigned i = 0; i < 60; i++) {
		training.stream = 1 + i % 2;
		training.forward_ns = i < 2 ? 5000 : i < 24 ? 200 + 10 * (i % 4) : 100 + i % 6;
		if (i >= 30)
			training.stream = 1 + i / 45;
		train_forward(&training, "Net");
	}
	steps = found(&training);
	ck_assert_uint_eq(steps->thread_count, 2);
	ck_assert_uint_eq(steps->warm_up, 2 * 3);
	steps_free(steps);
}
END_TEST

START_TEST(the_requested_name_wins)
{
	struct training training = training_new();
	struct steps *steps;

	for (unsigned i = 0; i < 6; i++) {
		char label[32];

		snprintf(label, sizeof label, "Lap %u", i + 10);
		train_open(&training, label, TRACE_NODE_RANGE);
		train_step(&training, "Net");
		train_close(&training);
	}
	steps = found_by(&training, "Lap");
	ck_assert_uint_eq(steps->count, 6);
	ck_assert(steps->own_ranges);
	ck_assert_int_eq(steps->confidence, STEPS_HIGH);
	ck_assert_str_eq(steps->evidence, "ranges like `Lap 10`");
	ck_assert_uint_eq(steps->steps[5].number, 15);
	expect_step(steps, 0, 1000, 1292);
	steps_free(steps);
}
END_TEST

START_TEST(the_trace_itself_may_name_the_marker)
{
	struct training training = training_new();
	struct steps *steps;

	build_meta(training.builder, "env.PPERF_STEP_MARKER", "tick");
	for (unsigned i = 0; i < 4; i++)
		train_range(&training, "tick", TRACE_NODE_RANGE, 100);
	train_range(&training, "ticket", TRACE_NODE_RANGE, 100);
	steps = found(&training);
	ck_assert_uint_eq(steps->count, 4);
	ck_assert_str_eq(steps->warning, "");
	steps_free(steps);
}
END_TEST

START_TEST(a_marker_that_is_nowhere_is_said)
{
	struct training training = training_new();
	struct steps *steps;

	for (unsigned i = 0; i < 4; i++)
		train_step(&training, "Net");
	steps = found_by(&training, "Lap");
	ck_assert_uint_eq(steps->count, 4);
	ck_assert_str_eq(steps->evidence, "optimizer.step");
	ck_assert_ptr_nonnull(strstr(steps->warning, "`Lap`"));
	steps_free(steps);
}
END_TEST

START_TEST(ranges_named_like_steps_are_steps_if_the_model_runs_in_them)
{
	for (unsigned around = 0; around < 2; around++) {
		struct training training = training_new();
		struct steps *steps;

		for (unsigned i = 0; i < 6; i++) {
			char label[32];

			snprintf(label, sizeof label, "step %u", i);
			if (around)
				train_open(&training, label, TRACE_NODE_RANGE);
			train_zero(&training);
			train_forward(&training, "Net");
			train_backward(&training);
			if (!around)
				train_open(&training, label, TRACE_NODE_RANGE);
			train_optimizer(&training, "SGD");
			train_close(&training);
		}
		steps = found(&training);
		ck_assert_uint_eq(steps->count, 6);
		ck_assert_int_eq(steps->own_ranges, around);
		ck_assert_uint_eq(steps->p50_ns, 262);
		steps_free(steps);
	}
}
END_TEST

START_TEST(slow_first_steps_are_warm_up)
{
	struct training training = training_new();
	struct steps *steps;

	for (unsigned i = 0; i < 12; i++) {
		training.forward_ns = i == 0 ? 9000 : i == 1 ? 700 : 100 + i % 3;
		train_step(&training, "Net");
	}
	steps = found(&training);
	ck_assert_uint_eq(steps->count, 12);
	ck_assert_uint_eq(steps->warm_up, 2);
	ck_assert_int_eq(steps->steps[1].kind, STEP_WARM_UP);
	ck_assert_int_eq(steps->steps[2].kind, STEP_USUAL);
	ck_assert_uint_eq(steps->max_ns, 292);
	steps_free(steps);
}
END_TEST

static void captured_launch(struct training *training)
{
	build_launch(training->builder, training->stream, training->now, ++training->correlation)
		->call.head.flags = TRACE_CALL_CAPTURED;
	training->now += 5;
}

/* The fourth of ten steps records a graph, which takes it 200 longer; it is none of the first ones.
 */
START_TEST(a_step_in_which_a_graph_is_made_is_no_usual_one)
{
	struct training training = training_new();
	struct steps *steps;

	for (unsigned i = 0; i < 10; i++) {
		training.forward_ns = i == 3 ? 300 : 100;
		train_data(&training);
		train_zero(&training);
		if (i == 3)
			captured_launch(&training);
		train_forward(&training, "Net");
		if (i == 3)
			captured_launch(&training);
		train_backward(&training);
		train_optimizer(&training, "SGD");
		training.now += 20;
	}
	steps = found(&training);
	ck_assert_uint_eq(steps->count, 10);
	ck_assert_uint_eq(steps->captures, 1);
	ck_assert_uint_eq(steps_usual(steps), 9);
	ck_assert_int_eq(steps->steps[3].kind, STEP_CAPTURE);
	ck_assert_uint_eq(steps->max_ns, 290);
	steps_free(steps);
}
END_TEST

/* Other tools' traces have the calls alone. */
START_TEST(the_call_that_ends_a_capture_tells_of_it_too)
{
	struct training training = training_new();
	struct steps *steps;

	for (unsigned i = 0; i < 6; i++) {
		struct trace_sync *call;

		train_data(&training);
		train_forward(&training, "Net");
		if (i == 2) {
			call = build_record(training.builder, training.stream, TRACE_SYNC,
				sizeof *call, training.now);
			call->call.api = build_name(training.builder, "cudaStreamEndCapture");
		}
		train_optimizer(&training, "SGD");
	}
	steps = found(&training);
	ck_assert_uint_eq(steps->captures, 1);
	ck_assert_int_eq(steps->steps[2].kind, STEP_CAPTURE);
	steps_free(steps);
}
END_TEST

START_TEST(where_every_step_makes_a_graph_they_are_usual)
{
	struct training training = training_new();
	struct steps *steps;

	for (unsigned i = 0; i < 6; i++) {
		train_data(&training);
		if (i % 2 == 0)
			captured_launch(&training);
		train_forward(&training, "Net");
		train_backward(&training);
		train_optimizer(&training, "SGD");
	}
	steps = found(&training);
	ck_assert_uint_eq(steps->captures, 0);
	ck_assert_uint_eq(steps_usual(steps), 6);
	steps_free(steps);
}
END_TEST

/* Without two that are like the later ones in the first half: a model that is compiled in its first
 * step, on a busy machine. */
START_TEST(a_first_step_that_is_longer_than_all_is_warm_up)
{
	struct training training = training_new();
	struct steps *steps;

	for (unsigned i = 0; i < 20; i++) {
		training.forward_ns = i == 0    ? 900000
				      : i < 11  ? 500 + i % 3 * 300
				      : i == 14 ? 1000
						: 100;
		train_step(&training, "Net");
	}
	steps = found(&training);
	ck_assert_uint_eq(steps->count, 20);
	ck_assert_uint_eq(steps->warm_up, 1);
	ck_assert_uint_lt(steps->max_ns, 2000);
	steps_free(steps);
}
END_TEST

START_TEST(times_that_differ_all_along_are_no_warm_up)
{
	struct training training = training_new();
	struct steps *steps;

	for (unsigned i = 0; i < 20; i++) {
		training.forward_ns = 100 + i * 7919 % 13 * 100;
		train_step(&training, "Net");
	}
	steps = found(&training);
	ck_assert_uint_eq(steps->count, 20);
	ck_assert_uint_eq(steps->warm_up, 0);
	steps_free(steps);
}
END_TEST

START_TEST(a_step_that_was_killed_is_counted_apart)
{
	for (unsigned where = 0; where < 3; where++) {
		struct training training = training_new();
		struct steps *steps;
		uint64_t begin;

		for (unsigned i = 0; i < 6; i++)
			train_step(&training, "Net");
		begin = training.now;
		train_data(&training);
		if (where == 0)
			train_open(&training, "Net", TRACE_NODE_MODULE);
		else
			train_forward(&training, "Net");
		if (where == 2) {
			train_backward(&training);
			train_open(&training, "Optimizer.step#SGD.step", TRACE_NODE_OPTIMIZER);
		}
		builder_header(training.builder)->flags = 0;
		steps = found(&training);
		ck_assert_uint_eq(steps->count, 7);
		ck_assert_uint_eq(steps->unfinished, 1);
		ck_assert_int_eq(steps->steps[6].kind, STEP_UNFINISHED);
		ck_assert_uint_eq(steps->steps[6].begin_ns, begin);
		ck_assert_uint_eq(steps->max_ns, 290);
		steps_free(steps);
	}
}
END_TEST

START_TEST(an_evaluation_at_the_end_is_no_step)
{
	struct training training = training_new();
	struct steps *steps;

	for (unsigned i = 0; i < 6; i++)
		train_step(&training, "Net");
	for (unsigned i = 0; i < 3; i++) {
		train_data(&training);
		train_forward(&training, "Net");
	}
	steps = found(&training);
	ck_assert_uint_eq(steps->count, 6);
	ck_assert_uint_eq(steps->unfinished, 0);
	expect_step(steps, 5, 1000 + 5 * 290, 1000 + 6 * 290);
	steps_free(steps);
}
END_TEST

START_TEST(gradients_may_be_computed_on_another_thread)
{
	struct training training = training_new();
	struct steps *steps;

	training.backward_stream = 7;
	for (unsigned i = 0; i < 6; i++)
		train_step(&training, "Net");
	steps = found(&training);
	ck_assert_uint_eq(steps->count, 6);
	ck_assert_uint_eq(steps->stream, 1);
	expect_step(steps, 2, 1000 + 2 * 290, 1000 + 3 * 290);
	steps_free(steps);
}
END_TEST

START_TEST(of_several_threads_the_one_with_most_work_has_the_steps)
{
	struct training training = training_new();
	struct steps *steps;

	for (unsigned i = 0; i < 6; i++) {
		training.stream = 2;
		train_range(&training, "Optimizer.step#SGD.step", TRACE_NODE_OPTIMIZER, 10);
		training.stream = 3;
		train_step(&training, "Net");
	}
	steps = found(&training);
	ck_assert_uint_eq(steps->count, 6);
	ck_assert_uint_eq(steps->stream, 3);
	steps_free(steps);
}
END_TEST

START_TEST(steps_that_differ_are_found_with_less_confidence)
{
	struct training training = training_new();
	struct steps *steps;

	for (unsigned i = 0; i < 20; i++) {
		train_data(&training);
		for (unsigned k = 0; k <= i * 7919 % 13 % 4; k++)
			train_forward(&training, "Net");
		train_backward(&training);
		train_optimizer(&training, "SGD");
	}
	steps = found(&training);
	ck_assert_uint_eq(steps->count, 20);
	ck_assert_int_eq(steps->confidence, STEPS_MEDIUM);
	ck_assert_str_eq(steps->reason, "the calls differ from step to step");
	steps_free(steps);
}
END_TEST

START_TEST(a_hundred_thousand_steps_are_found)
{
	struct training training = training_new();
	struct steps *steps;

	for (unsigned i = 0; i < 100000; i++) {
		train_step(&training, "Net");
		if (i % 1000 == 999)
			build_seal(training.builder, 1, SEAL_WHOLE);
	}
	steps = found(&training);
	ck_assert_uint_eq(steps->count, 100000);
	ck_assert_uint_eq(steps->p50_ns, 290);
	steps_free(steps);
}
END_TEST

static Suite *suite(void)
{
	Suite *suite = suite_create("steps");
	TCase *found_case = tcase_create("found");

	suite_add_tcase(suite, found_case);
	tcase_add_test(found_case, a_training_has_a_step_for_each_batch);
	tcase_add_test(found_case, an_evaluation_is_between_steps);
	tcase_add_test(
		found_case, an_evaluation_is_distinguished_from_training_without_batches_too);
	tcase_add_test(found_case, accumulated_gradients_are_one_step);
	tcase_add_test(found_case, an_evaluation_behind_zero_grad_is_no_part_of_a_step);
	tcase_add_test(found_case, two_optimizers_make_one_step);
	tcase_add_test(found_case, what_is_called_before_zero_grad_each_time_is_in_the_step);
	tcase_add_test(found_case, two_optimizers_side_by_side_make_one_step);
	tcase_add_test(found_case, an_optimizer_that_is_skipped_leaves_a_step);
	tcase_add_test(found_case, a_loss_module_is_no_step);
	tcase_add_test(found_case, ranges_of_the_program_begin_and_end_with_the_step);
	tcase_add_test(found_case, a_step_does_not_reach_beyond_its_epoch);
	tcase_add_test(found_case, calls_of_the_outermost_module_are_steps_of_inference);
	tcase_add_test(found_case, two_models_alike_are_found_with_little_confidence);
	tcase_add_test(found_case, gradients_without_an_optimizer_are_steps);
	tcase_add_test(found_case, an_optimizer_may_compute_gradients_itself);
	tcase_add_test(found_case, optimizers_alone_part_the_time);
	tcase_add_test(found_case, no_sign_no_step);
	tcase_add_test(found_case, a_program_without_pytorch_or_named_steps_is_not_searched);
	tcase_add_test(found_case, numbered_ranges_named_like_steps_are_steps_of_any_program);
	tcase_add_test(found_case, steps_in_epochs_are_the_steps);
	tcase_add_test(found_case, batches_in_steps_are_no_steps);
	tcase_add_test(found_case, loading_in_an_epoch_is_no_step);
	tcase_add_test(found_case, ordinary_ranges_with_such_words_are_no_steps);
	tcase_add_test(found_case, an_epoch_of_several_optimizer_steps_is_no_step);
	tcase_add_test(found_case, one_marked_step_counts);
	tcase_add_test(found_case, steps_at_the_edges_of_the_recording_are_no_usual_ones);
	tcase_add_test(found_case, a_slow_last_step_that_works_is_usual);
	tcase_add_test(found_case, a_step_with_more_calls_than_usual_keeps_them);
	tcase_add_test(found_case, a_closure_behind_another_optimizer_is_a_step_of_its_own);
	tcase_add_test(found_case, a_model_that_two_threads_call_has_steps_on_both);
	tcase_add_test(found_case, a_thread_per_call_has_a_step);
	tcase_add_test(found_case, calls_of_replicas_on_threads_are_parts_of_a_step);
	tcase_add_test(found_case, only_the_first_calls_of_a_thread_are_its_warm_up);
	tcase_add_test(found_case, the_requested_name_wins);
	tcase_add_test(found_case, the_trace_itself_may_name_the_marker);
	tcase_add_test(found_case, a_marker_that_is_nowhere_is_said);
	tcase_add_test(found_case, ranges_named_like_steps_are_steps_if_the_model_runs_in_them);
	tcase_add_test(found_case, slow_first_steps_are_warm_up);
	tcase_add_test(found_case, a_step_in_which_a_graph_is_made_is_no_usual_one);
	tcase_add_test(found_case, the_call_that_ends_a_capture_tells_of_it_too);
	tcase_add_test(found_case, where_every_step_makes_a_graph_they_are_usual);
	tcase_add_test(found_case, a_first_step_that_is_longer_than_all_is_warm_up);
	tcase_add_test(found_case, times_that_differ_all_along_are_no_warm_up);
	tcase_add_test(found_case, a_step_that_was_killed_is_counted_apart);
	tcase_add_test(found_case, an_evaluation_at_the_end_is_no_step);
	tcase_add_test(found_case, gradients_may_be_computed_on_another_thread);
	tcase_add_test(found_case, of_several_threads_the_one_with_most_work_has_the_steps);
	tcase_add_test(found_case, steps_that_differ_are_found_with_less_confidence);
	tcase_add_test(found_case, a_hundred_thousand_steps_are_found);
	tcase_set_timeout(found_case, 60);
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
