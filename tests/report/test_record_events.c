/* SPDX-License-Identifier: MIT
 * test_record_events.c: single events for exports, in the order of their begins, each with both its
 * ends, and GPU work with its launch.
 */
#include "report/export/record_events.h"
#include "tests/support/run_report.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct seen {
	struct process process;
	struct record_events *events;
	char path[64];
	char text[4096]; /* of the events */
};

static const char *const kinds[] = { "range", "async", "call", "mark", "tensor", "oom", "counter",
	"overhead" };

static size_t describe(struct seen *seen, const struct record_event *event, char *out, size_t room)
{
	const struct host_event *host = event->host;
	const struct gpu_event *gpu = event->gpu;
	struct string_view name;

	if (gpu)
		return (size_t)snprintf(out, room, "work %llu-%llu lane %u by %u at %llu; ",
			(unsigned long long)gpu->begin_ns, (unsigned long long)gpu->end_ns,
			gpu->lane, gpu->launch_tid, (unsigned long long)gpu->launch_begin_ns);
	name = record_event_name(seen->events, host);
	return (size_t)snprintf(out, room, "%s %.*s %llu-%llu%s; ", kinds[host->kind],
		(int)name.length, name.bytes, (unsigned long long)host->begin_ns,
		(unsigned long long)host->end_ns, host->left_open ? " open" : "");
}

/* Frees the builder. */
static struct seen *read_events(struct trace_builder *builder)
{
	static const struct options options = { .device = -1 };
	struct seen *seen = calloc(1, sizeof *seen);
	char error[READER_ERROR_BYTES];
	struct record_event event;
	size_t length = 0;
	int fd;

	ck_assert(seen != NULL);
	strcpy(seen->path, "/tmp/pperf-records.XXXXXX");
	fd = mkstemp(seen->path);
	ck_assert(fd >= 0 && close(fd) == 0);
	builder_write(builder, seen->path);
	builder_free(builder);
	seen->process.reader = reader_open(seen->path, error);
	ck_assert_msg(seen->process.reader != NULL, "%s", error);
	seen->events = record_events_read(&seen->process, &options);
	while (record_events_next(seen->events, &event))
		length += describe(seen, &event, seen->text + length, sizeof seen->text - length);
	return seen;
}

static void done(struct seen *seen)
{
	record_events_free(seen->events);
	reader_close(seen->process.reader);
	unlink(seen->path);
	free(seen);
}

START_TEST(outer_ranges_come_first)
{
	struct trace_builder *builder = builder_new();
	struct seen *seen;

	build_push(builder, 1, 100, "step");
	build_push(builder, 1, 100, "layer");
	build_pop(builder, 1, 150);
	build_push(builder, 1, 150, "empty");
	build_pop(builder, 1, 150);
	build_pop(builder, 1, 200);
	build_push(builder, 2, 120, "open");
	seen = read_events(builder);
	ck_assert_str_eq(seen->text,
		"range step 100-200; range layer 100-150; range open 120-120 open; "
		"range empty 150-150; ");
	done(seen);
}
END_TEST

START_TEST(work_has_its_launch_in_either_order)
{
	struct trace_builder *builder = builder_new();
	struct seen *seen;

	build_device(builder, 0, "a GPU");
	build_push(builder, 1, 100, "step");
	build_launch(builder, 1, 120, 1);
	build_kernel(builder, 9, 710, 1, "k", 130, 160);
	build_kernel(builder, 9, 720, 2, "k", 250, 260);
	build_kernel(builder, 9, 730, 9, "k", 270, 280);
	build_launch(builder, 1, 240, 2);
	build_pop(builder, 1, 300);
	seen = read_events(builder);
	ck_assert_ptr_nonnull(strstr(seen->text, "work 130-160 lane 0 by 1001 at 115; "));
	ck_assert_ptr_nonnull(strstr(seen->text, "work 250-260 lane 0 by 1001 at 235; "));
	ck_assert_ptr_nonnull(strstr(seen->text, "work 270-280 lane 0 by 0 at 0; "));
	done(seen);
}
END_TEST

START_TEST(what_overlaps_is_on_another_lane)
{
	struct trace_builder *builder = builder_new();
	struct seen *seen;

	build_device(builder, 0, "a GPU");
	build_kernel(builder, 9, 740, 1, "k", 100, 200);
	build_kernel(builder, 9, 750, 2, "k", 150, 250);
	build_kernel(builder, 9, 760, 3, "k", 160, 170);
	build_kernel(builder, 9, 770, 4, "k", 200, 300);
	seen = read_events(builder);
	ck_assert_str_eq(seen->text,
		"work 100-200 lane 0 by 0 at 0; work 150-250 lane 1 by 0 at 0; "
		"work 160-170 lane 2 by 0 at 0; work 200-300 lane 0 by 0 at 0; ");
	done(seen);
}
END_TEST

START_TEST(start_end_ranges_are_paired_by_their_ids)
{
	struct trace_builder *builder = builder_new();
	struct trace_range *start;
	struct trace_end *end;
	struct seen *seen;

	for (uint64_t id = 1; id <= 2; id++) {
		const uint32_t name = build_name(builder, id == 1 ? "first" : "second");

		start = build_record(builder, 1, TRACE_START, sizeof *start, 100 * id);
		start->id = id;
		start->name = name;
	}
	end = build_record(builder, 2, TRACE_END, sizeof *end, 300);
	end->id = 1;
	seen = read_events(builder);
	ck_assert_str_eq(seen->text, "async first 100-300; async second 200-300 open; ");
	done(seen);
}
END_TEST

START_TEST(backward_functions_find_their_operators_in_reverse)
{
	struct trace_builder *builder = builder_new();
	const uint32_t op = build_node(builder, 0, "aten::mm", NULL, TRACE_NODE_OP),
		       backward = build_linked_node(
			       builder, 0, "MmBackward0", TRACE_NODE_BACKWARD, op, NULL);
	uint64_t operators[2], found[2];
	struct record_event event;
	size_t forward = 0, back = 0;
	struct seen *seen;

	for (unsigned i = 0; i < 2; i++) {
		build_push_node(builder, 1, 100 + 20 * i, op);
		build_pop(builder, 1, 110 + 20 * i);
	}
	for (unsigned i = 0; i < 2; i++) {
		build_push_node(builder, 2, 200 + 20 * i, backward);
		build_pop(builder, 2, 210 + 20 * i);
	}
	seen = read_events(builder);
	for (record_events_rewind(seen->events); record_events_next(seen->events, &event);)
		if (event.host->node == op)
			operators[forward++] = event.host->number;
		else
			found[back++] = event.host->of.forward.number;
	ck_assert(forward == 2 && back == 2);
	ck_assert_uint_eq(found[0], operators[1]);
	ck_assert_uint_eq(found[1], operators[0]);
	done(seen);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("record events");
	TCase *cases = tcase_create("all");
	SRunner *runner = srunner_create(suite);
	int failed;

	tcase_add_test(cases, outer_ranges_come_first);
	tcase_add_test(cases, work_has_its_launch_in_either_order);
	tcase_add_test(cases, what_overlaps_is_on_another_lane);
	tcase_add_test(cases, start_end_ranges_are_paired_by_their_ids);
	tcase_add_test(cases, backward_functions_find_their_operators_in_reverse);
	suite_add_tcase(suite, cases);
	srunner_run_all(runner, CK_ENV);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed != 0;
}
