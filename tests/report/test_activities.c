/* SPDX-License-Identifier: MIT
 * test_activities.c: what happened on GPUs and around them, in the order in which it began, each
 * with its owner.
 */
#include "report/analysis/activities.h"
#include "report/analysis/host_events.h"
#include "report/base/external_sort.h"
#include "tests/support/run_report.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct seen {
	struct process process;
	struct activities *activities;
	struct categories *categories;
	char path[64];
};

/* Frees the builder. marker: what is a step, NULL: nothing. */
static struct seen read_marked(
	struct trace_builder *builder, struct profile_options options, const char *marker)
{
	struct seen seen = { .path = "/tmp/pperf-activity.XXXXXX" };
	char error[READER_ERROR_BYTES];
	const int fd = mkstemp(seen.path);

	ck_assert(fd >= 0 && close(fd) == 0);
	builder_write(builder, seen.path);
	builder_free(builder);
	seen.process.reader = reader_open(seen.path, error);
	ck_assert_msg(seen.process.reader != NULL, "%s", error);
	seen.process.texts = string_table_new();
	seen.categories = categories_read(NULL);
	seen.process.categories = seen.categories;
	seen.process.steps = steps_find(seen.process.reader, marker, NULL);
	options.demangle = DEMANGLE_SHORT;
	options.pick_metric = true;
	options.found_steps = seen.process.steps;
	seen.process.profile = profile_build(seen.process.reader, seen.process.texts, &options);
	seen.activities = activities_read(&seen.process);
	return seen;
}

static struct seen read_all(struct trace_builder *builder, struct profile_options options)
{
	return read_marked(builder, options, NULL);
}

static void done(struct seen *seen)
{
	activities_free(seen->activities);
	process_detach_all(&seen->process);
	profile_free(seen->process.profile);
	steps_free(seen->process.steps);
	string_table_free(seen->process.texts);
	categories_free(seen->categories);
	reader_close(seen->process.reader);
	unlink(seen->path);
}

static const char *name_of(const struct seen *seen, uint32_t text)
{
	static char out[4][64];
	static unsigned turn;
	const struct string_view name = string_table_get(seen->process.texts, text);

	snprintf(out[turn = (turn + 1) % 4], sizeof *out, "%.*s", (int)name.length, name.bytes);
	return out[turn];
}

static const char *owner_of(const struct seen *seen, const struct activity *one)
{
	return name_of(seen, seen->process.profile->tree->nodes[one->owner].name);
}

/* "launch 1 @step 115-120" for each, separated by "; ". */
static char *told(struct seen *seen)
{
	static const char *const kinds[ACTIVITY_KINDS] = { "launch", "graph", "copy call",
		"set call", "alloc", "free", "wait", "record", "stream wait", "other", "api",
		"sync", "kernel", "copy", "set" };
	static char out[4096];
	const struct activity *one;
	size_t length = 0;

	out[0] = '\0';
	for (activities_rewind(seen->activities); (one = activities_first(seen->activities));
		activities_next(seen->activities))
		length += (size_t)snprintf(out + length, sizeof out - length,
			"%s%s %llu @%s %llu-%llu%s", length ? "; " : "", kinds[one->kind],
			(unsigned long long)one->correlation, one->owner ? owner_of(seen, one) : "",
			(unsigned long long)one->begin_ns, (unsigned long long)one->end_ns,
			one->timed ? "" : " untimed");
	return out;
}

static const struct activity *find(struct seen *seen, enum activity_kind kind, uint64_t correlation)
{
	const struct activity *one;

	for (activities_rewind(seen->activities); (one = activities_first(seen->activities));
		activities_next(seen->activities))
		if (one->kind == kind && one->correlation == correlation)
			return one;
	ck_abort_msg("there is none");
}

static const struct profile_options all = { .device = -1 };

/* step { layer { launch 1 } launch 2, copy 3 } */
static struct trace_builder *a_step(void)
{
	struct trace_builder *builder = builder_new();

	build_device(builder, 0, "a GPU");
	build_push(builder, 1, 100, "step");
	build_push(builder, 1, 110, "layer");
	build_launch(builder, 1, 120, 1);
	build_pop(builder, 1, 130);
	build_launch(builder, 1, 140, 2);
	build_copy(builder, 1, 150, TRACE_COPY, 3, 4096);
	build_pop(builder, 1, 600);
	return builder;
}

struct counted_visits {
	unsigned added;
	const struct counted_visits *first; /* the visitor before this one; NULL: none */
	bool ended;
};

static void count_visit(void *context, const struct activity *one)
{
	struct counted_visits *visits = context;

	ck_assert_ptr_nonnull(one);
	ck_assert(!visits->ended);
	visits->added++;
	if (visits->first)
		ck_assert_uint_eq(visits->first->added, visits->added);
}

static void end_visits(void *context)
{
	((struct counted_visits *)context)->ended = true;
}

START_TEST(one_reading_serves_several_visitors)
{
	struct seen seen = read_all(a_step(), all);
	struct counted_visits one = { .ended = false }, other = { .first = &one };
	const struct activity_visitor visitors[] = { { .context = &one, .add = count_visit },
		{ .add = NULL }, { .context = &other, .add = count_visit, .end = end_visits } };

	activities_visit(seen.activities, visitors, 3);
	ck_assert_uint_eq(one.added, 3);
	ck_assert_uint_eq(other.added, 3);
	ck_assert(!one.ended && other.ended);
	done(&seen);
}
END_TEST

static void add_event_name(void *context, const struct host_event *event)
{
	const struct seen *seen = ((const void **)context)[0];
	char *text = ((void **)context)[1];

	snprintf(text + strlen(text), 64, "%s %llu;",
		name_of(seen, seen->process.profile->tree->nodes[event->node].name),
		(unsigned long long)event->end_ns);
}

START_TEST(events_of_the_host_are_kept_where_a_gpu_is_idle_for_long)
{
	struct trace_builder *builder = builder_new();
	struct seen seen;
	struct shared_pass pass = { .process = &seen.process };
	char text[512] = "";
	const void *context[] = { &seen, text };
	const struct host_event_sink sink = { .context = context, .add = add_event_name };
	struct host_events *events;

	build_device(builder, 0, "a GPU");
	build_launch(builder, 1, 100, 1);
	build_push(builder, 1, 200, "early");
	build_pop(builder, 1, 300);
	build_push(builder, 1, 2000000, "outer");
	build_push(builder, 1, 2000100, "inner");
	build_pop(builder, 1, 3000000);
	build_pop(builder, 1, 4000000);
	build_launch(builder, 1, 5000000, 2);
	build_push(builder, 1, 6000000, "late");
	build_pop(builder, 1, 6000100);
	build_kernel(builder, 9, 7000000, 1, "gemm", 400000, 500000);
	build_kernel(builder, 9, 7000001, 2, "relu", 5000100, 5000200);
	seen = read_all(builder, all);
	ck_assert_ptr_null(host_events_of(&seen.process));
	host_events_keep_in(&pass);
	shared_pass_run(&pass);
	events = host_events_of(&seen.process);
	ck_assert(host_events_cover(events, 500000, 5000100));
	ck_assert(!host_events_cover(events, 300000, 5000100));
	ck_assert(!host_events_cover(events, 5900000, 6000000));
	host_events_visit(events, &sink);
	ck_assert_msg(strstr(text, "inner 3000000;outer 4000000;") == text, "%s", text);
	ck_assert(!strstr(text, "early") && !strstr(text, "late"));
	done(&seen);
}
END_TEST

START_TEST(comes_in_the_order_in_which_it_began)
{
	struct trace_builder *builder = a_step();
	struct seen seen;

	/* delivered in no order, the last before its call is known */
	build_gpu_copy(builder, 9, 60, TRACE_GPU_COPY, 3, 4096, 460, 467);
	build_kernel(builder, 9, 700, 2, "relu", 400, 450);
	build_kernel(builder, 9, 710, 1, "gemm", 300, 400);
	seen = read_all(builder, all);
	ck_assert_str_eq(told(&seen),
		"launch 1 @layer 115-120; launch 2 @step 135-140; copy call 3 @step 145-150; "
		"kernel 1 @layer 300-400; kernel 2 @step 400-450; copy 3 @step 460-467");
	ck_assert_str_eq(told(&seen), told(&seen)); /* as often as wanted */
	done(&seen);
}
END_TEST

START_TEST(gpu_work_knows_its_call_and_its_node)
{
	struct trace_builder *builder = a_step();
	const struct activity *one;
	struct seen seen;

	build_kernel(builder, 9, 700, 1, "gemm", 300, 400)->gpu.stream = 7;
	build_gpu_copy(builder, 9, 710, TRACE_GPU_COPY, 3, 4096, 460, 467)->source_kind =
		TRACE_MEMORY_PAGEABLE;
	seen = read_all(builder, all);
	one = find(&seen, ACTIVITY_KERNEL, 1);
	ck_assert(one->has_call && one->timed && one->in_range && one->counts && !one->of_graph &&
		  !one->communicates);
	ck_assert_uint_eq(one->call_begin_ns, 115);
	ck_assert_uint_eq(one->call_end_ns, 120);
	ck_assert_uint_eq(one->tid, 1001);
	ck_assert_uint_eq(one->stream, 7);
	ck_assert_uint_eq(one->duration_ns, 100);
	ck_assert_uint_eq(one->start_unix_ns, BUILDER_START_UNIX_NS + 300);
	ck_assert_str_eq(
		name_of(&seen, seen.process.profile->kernels->kernels[one->kernel].name), "gemm");
	ck_assert_str_eq(name_of(&seen, seen.process.profile->tree->nodes[one->node].name), "gemm");
	one = find(&seen, ACTIVITY_COPY, 3);
	ck_assert_uint_eq(one->bytes, 4096);
	ck_assert_uint_eq(one->source_kind, TRACE_MEMORY_PAGEABLE);
	ck_assert_uint_eq(one->kernel, ACTIVITY_NO_KERNEL);
	one = find(&seen, ACTIVITY_COPY_CALL, 3);
	ck_assert_str_eq(name_of(&seen, one->name), "cudaMemcpyAsync");
	ck_assert_uint_eq(one->bytes, 4096);
	ck_assert_uint_eq(one->tid, 1001);
	done(&seen);
}
END_TEST

START_TEST(what_has_no_call_or_no_times_is_there)
{
	struct trace_builder *builder = a_step();
	const struct activity *one;
	struct seen seen;

	build_kernel(builder, 9, 700, 1, "gemm", 0, 0);     /* not timed */
	build_kernel(builder, 9, 700, 99, "stray", 20, 30); /* no such call */
	seen = read_all(builder, all);
	ck_assert_str_eq(told(&seen), "kernel 99 @unattributed 20-30; launch 1 @layer 115-120; "
				      "kernel 1 @layer 115-115 untimed; launch 2 @step 135-140; "
				      "copy call 3 @step 145-150");
	one = find(&seen, ACTIVITY_KERNEL, 99);
	ck_assert(!one->has_call && !one->in_range && one->tid == 0);
	done(&seen);
}
END_TEST

START_TEST(a_graphs_work_has_the_graphs_call)
{
	struct trace_builder *builder = builder_new();
	struct seen seen;

	build_push(builder, 1, 100, "replay");
	build_graph_launch(builder, 1, 120, 5, 3);
	build_pop(builder, 1, 130);
	build_kernel(builder, 9, 700, 5, "b", 300, 310);
	build_kernel(builder, 9, 700, 5, "a", 200, 290);
	seen = read_all(builder, all);
	ck_assert_str_eq(told(&seen),
		"graph 5 @replay 115-120; kernel 5 @replay 200-290; kernel 5 @replay 300-310");
	ck_assert(find(&seen, ACTIVITY_KERNEL, 5)->of_graph);
	done(&seen);
}
END_TEST

static void build_sync(
	struct trace_builder *builder, uint64_t at, enum trace_sync_type type, uint64_t event)
{
	struct trace_sync *sync = build_record(builder, 1, TRACE_SYNC, sizeof *sync, at);

	sync->call.duration = 10;
	sync->type = type;
	sync->event = event;
}

START_TEST(waits_and_events_are_distinguished)
{
	struct trace_builder *builder = builder_new();
	struct trace_gpu_sync *sync;
	struct trace_api *api;
	struct seen seen;

	build_push(builder, 1, 5, "a");
	build_sync(builder, 20, TRACE_EVENT_RECORD, 0xe);
	build_sync(builder, 30, TRACE_SYNC_STREAM_WAIT, 0xe);
	build_sync(builder, 40, TRACE_SYNC_EVENT, 0xe);
	build_sync(builder, 50, 0, 0); /* some other call */
	build_alloc(builder, 1, 60, 0x1000, 256);
	build_free(builder, 1, 70, 0x1000);
	build_pop(builder, 1, 80);
	sync = build_record(builder, 9, TRACE_GPU_SYNC, sizeof *sync, 0);
	sync->start_ns = BUILDER_START_UNIX_NS + 32;
	sync->end_ns = BUILDER_START_UNIX_NS + 38;
	sync->correlation = 4;
	sync->type = TRACE_SYNC_EVENT;
	sync->event = 77;
	api = build_record(builder, 9, TRACE_API, sizeof *api, 0);
	api->start_ns = BUILDER_START_UNIX_NS + 90;
	api->end_ns = BUILDER_START_UNIX_NS + 95;
	api->tid = 1001;
	api->result = 2;
	seen = read_all(builder, all);
	ck_assert_str_eq(told(&seen),
		"record 0 @a 10-20; stream wait 0 @a 20-30; wait 0 @a 30-40; sync 4 @ 32-38; "
		"other 0 @a 40-50; alloc 0 @a 60-60; free 0 @a 70-70; api 0 @ 90-95");
	ck_assert_uint_eq(find(&seen, ACTIVITY_WAIT, 0)->sync, TRACE_SYNC_EVENT);
	ck_assert_uint_eq(find(&seen, ACTIVITY_WAIT, 0)->event, 0xe);
	ck_assert_uint_eq(find(&seen, ACTIVITY_SYNC, 4)->event, 77);
	ck_assert_uint_eq(find(&seen, ACTIVITY_ALLOC, 0)->bytes, 256);
	ck_assert_uint_eq(find(&seen, ACTIVITY_API, 0)->result, 2);
	done(&seen);
}
END_TEST

START_TEST(several_devices_are_in_one_order_and_one_can_be_selected)
{
	for (int64_t device = -1; device < 2; device++) {
		struct trace_builder *builder = a_step();
		struct seen seen;
		const struct activity *one;
		uint64_t work = 0;

		build_kernel(builder, 9, 700, 1, "gemm", 300, 400)->gpu.device = 1;
		build_kernel(builder, 9, 700, 2, "ncclDevKernel_AllReduce", 310, 320)->gpu.device =
			0;
		seen = read_all(builder, (struct profile_options){ .device = device });
		for (activities_rewind(seen.activities); (one = activities_first(seen.activities));
			activities_next(seen.activities)) {
			ck_assert(!activity_is_work(one) || device < 0 || one->device == device);
			ck_assert(
				!activity_is_work(one) || one->communicates == (one->device == 0));
			work += activity_is_work(one);
		}
		ck_assert_uint_eq(work, device < 0 ? 2 : 1);
		done(&seen);
	}
}
END_TEST

/* Three steps, in each a launch whose kernel runs after the step is over. */
START_TEST(steps_are_known_and_what_counts)
{
	const struct profile_options second = {
		.device = -1, .steps = true, .first_step = 1, .last_step = 1
	};
	struct trace_builder *builder = builder_new();
	const struct counted_interval *windows;
	const struct activity *one;
	struct seen seen;

	for (uint64_t i = 0; i < 3; i++) {
		char name[16];

		snprintf(name, sizeof name, "step %u", (unsigned)i);
		build_push(builder, 1, 100 + 100 * i, name);
		build_launch(builder, 1, 120 + 100 * i, i + 1);
		build_pop(builder, 1, 190 + 100 * i);
	}
	for (uint64_t i = 0; i < 3; i++)
		build_kernel(builder, 9, 700, i + 1, "k", 205 + 100 * i, 210 + 100 * i);
	seen = read_marked(builder, second, "step");
	ck_assert_uint_eq(activities_counted_intervals(seen.activities, &windows), 1);
	ck_assert_uint_eq(windows[0].begin_ns, 200);
	ck_assert_uint_eq(windows[0].end_ns, 290);
	for (uint64_t i = 0; i < 3; i++) {
		one = find(&seen, ACTIVITY_KERNEL, i + 1);
		ck_assert_int_eq(one->counts, i == 1);
		ck_assert_int_eq(one->node != 0, i == 1);
		ck_assert_uint_eq(one->step, i);
		ck_assert_int_eq(find(&seen, ACTIVITY_LAUNCH, i + 1)->counts, i == 1);
	}
	done(&seen);
}
END_TEST

/* More than is held in memory, backwards: it comes in order, all of it, twice; with the same tree
 * as the first fold. */
START_TEST(many_are_sorted_in_little_memory)
{
	const uint64_t count = ACTIVITY_HELD;
	struct trace_builder *builder = builder_new();
	const struct activity *one;
	struct seen seen;

	build_push(builder, 1, 1, "all");
	for (uint64_t i = 0; i < count; i++)
		build_launch(builder, 1, 10 + i * 10, i + 1);
	build_pop(builder, 1, 20 + count * 10);
	for (uint64_t i = count; i > 0; i--)
		build_kernel(builder, 9, 30 + count * 10, i, "k", i * 10 + 3, i * 10 + 5);
	seen = read_all(builder, all);
	for (int pass = 0; pass < 2; pass++) {
		uint64_t last = 0, number = 0, kernels = 0;

		for (activities_rewind(seen.activities); (one = activities_first(seen.activities));
			number++) {
			ck_assert_uint_ge(one->begin_ns, last);
			last = one->begin_ns;
			if (one->kind == ACTIVITY_KERNEL)
				ck_assert_uint_eq(one->correlation, ++kernels);
			activities_next(seen.activities);
		}
		ck_assert_uint_eq(number, 2 * count);
		ck_assert_uint_eq(kernels, count);
	}
	done(&seen);
}
END_TEST

#define MANY_LAUNCHES 1500u

/* Launches at 10, 20, ... and their kernels from `first_ns` on. `wait_ns`: when a stream begins to
 * wait for an event; 0: none does. Reads the activities without launches that are not needed. */
static struct seen read_most(uint64_t first_ns, uint64_t wait_ns)
{
	struct trace_builder *builder = builder_new();
	struct seen seen;
	struct shared_pass pass = { .process = &seen.process };

	for (uint64_t i = 1; i <= MANY_LAUNCHES; i++) {
		if (wait_ns && i * 10 > wait_ns)
			build_sync(builder, wait_ns, TRACE_SYNC_STREAM_WAIT, 0xe);
		wait_ns = wait_ns && i * 10 > wait_ns ? 0 : wait_ns;
		build_launch(builder, 1, i * 10, i)->call.api = build_name(
			builder, "cudaLaunchKernel");
	}
	for (uint64_t i = 1; i <= MANY_LAUNCHES; i++)
		build_kernel(builder, 9, 30 + MANY_LAUNCHES * 10, i, "k", first_ns + i * 10,
			first_ns + i * 10 + 5);
	seen = read_all(builder, all);
	activities_keep_without_launches_in(&pass);
	shared_pass_run(&pass);
	return seen;
}

static uint64_t count_kind(struct activities *activities, enum activity_kind kind)
{
	const struct activity *one;
	uint64_t count = 0;

	for (activities_rewind(activities); (one = activities_first(activities));
		activities_next(activities))
		count += one->kind == kind;
	return count;
}

START_TEST(launches_that_explain_nothing_can_be_left_out)
{
	struct seen seen = read_most(3, 0);
	struct activities *most = activities_read_without_launches(&seen.process);
	const uint64_t left_out = activities_left_out(most);

	ck_assert_uint_gt(left_out, 0);
	ck_assert_uint_eq(count_kind(most, ACTIVITY_LAUNCH), MANY_LAUNCHES - left_out);
	ck_assert_uint_eq(count_kind(most, ACTIVITY_KERNEL), MANY_LAUNCHES);
	ck_assert_uint_eq(count_kind(seen.activities, ACTIVITY_LAUNCH), MANY_LAUNCHES);
	ck_assert_uint_eq(activities_left_out(seen.activities), 0);
	done(&seen);
}
END_TEST

/* A wait makes the launch behind it start late. */
START_TEST(no_launch_after_a_wait_of_a_stream_is_left_out)
{
	/* `meanwhile`: the last launch that is left out began no earlier than the wait */
	struct seen early = read_most(3, 100), late = read_most(3, 12349),
		    meanwhile = read_most(3, 12345);
	struct activities *most = activities_read_without_launches(&late.process),
			  *whole = activities_read_without_launches(&meanwhile.process);

	ck_assert_uint_eq(activities_left_out(activities_read_without_launches(&early.process)), 0);
	ck_assert_uint_eq(activities_left_out(whole), 0);
	ck_assert_uint_eq(count_kind(whole, ACTIVITY_LAUNCH), MANY_LAUNCHES);
	activities_free(whole);
	ck_assert_uint_gt(activities_left_out(most), 0);
	ck_assert_uint_le(activities_left_out(most), 1234);
	ck_assert_uint_eq(
		count_kind(most, ACTIVITY_LAUNCH), MANY_LAUNCHES - activities_left_out(most));
	done(&early);
	done(&late);
	done(&meanwhile);
}
END_TEST

/* What the program did before it is explained by its calls. */
START_TEST(no_launch_before_the_first_gpu_work_is_left_out)
{
	struct seen seen = read_most(MANY_LAUNCHES * 10, 0);
	struct activities *most = activities_read_without_launches(&seen.process);

	ck_assert_uint_eq(activities_left_out(most), 0);
	ck_assert_uint_eq(count_kind(most, ACTIVITY_LAUNCH), MANY_LAUNCHES);
	activities_free(most);
	done(&seen);
}
END_TEST

static int by_value(const void *a, const void *b)
{
	const uint32_t left = *(const uint32_t *)a, right = *(const uint32_t *)b;

	return (left > right) - (left < right);
}

START_TEST(a_sorter_sorts_any_number_and_begins_anew)
{
	static const uint32_t counts[] = { 0, 1, 7, 8, 9, 64, 1000 };
	struct external_sort *sorter = external_sort_new(sizeof(uint32_t), 8, by_value, "numbers");

	for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
		external_sort_clear(sorter);
		for (uint32_t n = 0; n < counts[i]; n++)
			*(uint32_t *)external_sort_add(sorter) = n * 7919 % counts[i];
		ck_assert_uint_eq(external_sort_count(sorter), counts[i]);
		for (int pass = 0; pass < 3; pass++) {
			external_sort_rewind(sorter);
			for (uint32_t n = 0; n < (pass == 1 ? counts[i] / 2 : counts[i]); n++) {
				ck_assert_uint_eq(*(const uint32_t *)external_sort_peek(sorter), n);
				external_sort_next(sorter);
			}
			ck_assert_int_eq(pass == 1 || !external_sort_peek(sorter), 1);
		}
	}
	external_sort_free(sorter);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("activity");
	TCase *tests = tcase_create("activity");
	SRunner *runner;
	int failed;

	tcase_add_test(tests, one_reading_serves_several_visitors);
	tcase_add_test(tests, events_of_the_host_are_kept_where_a_gpu_is_idle_for_long);
	tcase_add_test(tests, comes_in_the_order_in_which_it_began);
	tcase_add_test(tests, gpu_work_knows_its_call_and_its_node);
	tcase_add_test(tests, what_has_no_call_or_no_times_is_there);
	tcase_add_test(tests, a_graphs_work_has_the_graphs_call);
	tcase_add_test(tests, waits_and_events_are_distinguished);
	tcase_add_test(tests, several_devices_are_in_one_order_and_one_can_be_selected);
	tcase_add_test(tests, steps_are_known_and_what_counts);
	tcase_add_test(tests, many_are_sorted_in_little_memory);
	tcase_add_test(tests, launches_that_explain_nothing_can_be_left_out);
	tcase_add_test(tests, no_launch_after_a_wait_of_a_stream_is_left_out);
	tcase_add_test(tests, no_launch_before_the_first_gpu_work_is_left_out);
	tcase_add_test(tests, a_sorter_sorts_any_number_and_begins_anew);
	suite_add_tcase(suite, tests);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_ENV);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed != 0;
}
