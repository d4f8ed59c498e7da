/* SPDX-License-Identifier: MIT
 * test_trace_reader.c: what the reader makes of traces that are whole, and of traces in which parts
 * are missing. Traces that were cut or changed anywhere: test_trace_damage.c. Clocks:
 * test_trace_clock.c.
 */
#include "report/import/run_files.h"
#include "tests/support/event_text.h"

#include <check.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <unistd.h>

static struct trace_builder *builder;

static void set_up(void)
{
	builder = builder_new();
}

static void tear_down(void)
{
	builder_free(builder);
}

/* Reads what was built, expects these lines, and gives what the reader says of the trace. */
static struct trace_integrity expect(const char *lines)
{
	struct trace_reader *reader = open_built(builder);
	char *first = events_to_text(reader), *second;
	struct trace_integrity integrity = *reader_integrity(reader), again;

	ck_assert_str_eq(first, lines);
	reader_rewind(reader);
	second = events_to_text(reader);
	ck_assert_str_eq(first, second);
	again = *reader_integrity(reader);
	ck_assert_mem_eq(&integrity, &again, sizeof again);
	reader_close(reader);
	free(first);
	free(second);
	return integrity;
}

START_TEST(ranges_nest_and_close)
{
	build_push(builder, 1, 100, "step");
	build_push(builder, 1, 110, "layer");
	build_pop(builder, 1, 150);
	build_pop(builder, 1, 200);
	build_seal(builder, 1, SEAL_WHOLE);
	ck_assert(expect("100 s1 push step\n"
			 "110 s1   push layer\n"
			 "150 s1   pop layer 110\n"
			 "200 s1 pop step 100\n"
			 "200 s1 end\n")
			  .complete);
}
END_TEST

START_TEST(streams_are_merged_by_time_and_then_by_their_number)
{
	build_push(builder, 2, 100, "b");
	build_push(builder, 1, 100, "a");
	build_push(builder, 3, 50, "c");
	build_pop(builder, 1, 100);
	build_pop(builder, 3, 100);
	build_pop(builder, 2, 101);
	for (uint32_t stream = 1; stream <= 3; stream++)
		build_seal(builder, stream, SEAL_WHOLE);
	ck_assert(expect("50 s3 push c\n"
			 "100 s1 push a\n"
			 "100 s1 pop a 100\n"
			 "100 s1 end\n"
			 "100 s2 push b\n"
			 "100 s3 pop c 50\n"
			 "100 s3 end\n"
			 "101 s2 pop b 100\n"
			 "101 s2 end\n")
			  .complete);
}
END_TEST

START_TEST(long_and_short_forms_say_the_same)
{
	uint32_t node = 0;

	for (int i = 0; i < 70000; i++)
		node = build_node(builder, 0, NULL, i % 2 ? "odd" : NULL, TRACE_NODE_RANGE);
	node = build_node(builder, node, "far", NULL, TRACE_NODE_RANGE);
	build_push_node(builder, 1, 0, node);
	build_push_node(builder, 1, 20000, node);
	build_push_node(builder, 1, 20000 + UINT64_C(5000000000), node);
	build_pop(builder, 1, 20000 + UINT64_C(5000000001));
	build_pop(builder, 1, 20000 + UINT64_C(6500000000));
	build_pop(builder, 1, 20000 + UINT64_C(6500000000));
	build_seal(builder, 1, SEAL_WHOLE);
	ck_assert(expect("0 s1 push far\n"
			 "20000 s1   push far\n"
			 "5000020000 s1     push far\n"
			 "5000020001 s1     pop far 5000020000\n"
			 "6500020000 s1   pop far 20000\n"
			 "6500020000 s1 pop far 0\n"
			 "6500020000 s1 end\n")
			  .complete);
}
END_TEST

START_TEST(a_range_that_is_not_the_innermost_may_close)
{
	build_push(builder, 1, 1, "outer");
	build_push(builder, 1, 2, "middle");
	build_push(builder, 1, 3, "inner");
	build_pop_at(builder, 1, 4, 1);
	build_pop(builder, 1, 5);
	build_pop(builder, 1, 6);
	build_seal(builder, 1, SEAL_WHOLE);
	ck_assert(expect("1 s1 push outer\n"
			 "2 s1   push middle\n"
			 "3 s1     push inner\n"
			 "4 s1   pop middle 2\n"
			 "5 s1   pop inner 3\n"
			 "6 s1 pop outer 1\n"
			 "6 s1 end\n")
			  .complete);
}
END_TEST

START_TEST(a_range_goes_on_over_its_payloads)
{
	build_push(builder, 1, 100, "step");
	build_seal(builder, 1, SEAL_WHOLE);
	build_push(builder, 1, 110, "layer");
	build_seal(builder, 1, SEAL_AND_SLOT);
	build_pop(builder, 1, 120);
	build_seal(builder, 1, SEAL_WHOLE);
	build_pop(builder, 1, 130);
	ck_assert(expect("100 s1 push step\n"
			 "110 s1   push layer\n"
			 "120 s1   pop layer 110\n"
			 "130 s1 pop step 100\n"
			 "130 s1 end\n")
			  .complete);
}
END_TEST

START_TEST(ranges_deeper_than_a_payloads_beginning_can_tell_go_on)
{
	struct trace_reader *reader;
	struct trace_event event;
	uint32_t pushes = 0, pops = 0;
	static unsigned char payload[8192];
	struct trace_clock_record clock = { .head = { sizeof clock, TRACE_CLOCK, 0, 1 },
		.stamp = BUILDER_START + 300 };
	size_t used = sizeof clock;

	for (uint32_t i = 0; i < 300; i++)
		build_push_node(
			builder, 1, i, build_node(builder, 0, "deep", NULL, TRACE_NODE_RANGE));
	build_seal(builder, 1, SEAL_WHOLE);
	/* The builder tells all 300; a real payload tells TRACE_OPEN_MOST. */
	clock.monotonic_ns = clock.stamp;
	clock.realtime_ns = BUILDER_START_UNIX_NS + 300;
	memcpy(payload, &clock, sizeof clock);
	for (uint32_t i = 0; i < TRACE_OPEN_MAX; i++, used += sizeof(struct trace_open)) {
		struct trace_open open = { { sizeof open, TRACE_OPEN, 0, 1 }, BUILDER_START + i };

		memcpy(payload + used, &open, sizeof open);
	}
	for (uint32_t i = 0; i < 300; i++, used += 4)
		memcpy(payload + used, &(uint32_t){ 2 | 1 << 2 }, 4);
	build_payload(builder, 1, 300, payload, used);
	build_seal(builder, 1, SEAL_WHOLE);
	reader = open_built(builder);
	while (reader_next(reader, &event) > 0) {
		pushes += event.kind == TRACE_PUSH;
		pops += event.kind == EVENT_POP;
		if (event.kind == EVENT_POP)
			ck_assert_uint_eq(event.begin_ns, 300 - pops);
	}
	ck_assert_uint_eq(pushes, 300);
	ck_assert_uint_eq(pops, 300);
	ck_assert(reader_integrity(reader)->complete);
	reader_close(reader);
}
END_TEST

START_TEST(a_missing_payload_is_a_gap_and_ranges_are_taken_up_again)
{
	struct trace_integrity integrity;

	build_push(builder, 1, 100, "step");
	build_push(builder, 1, 110, "layer");
	build_seal(builder, 1, SEAL_WHOLE);
	build_pop(builder, 1, 120);
	build_push(builder, 1, 130, "other");
	build_seal(builder, 1, SEAL_MISSING);
	build_push(builder, 1, 140, "deep");
	build_seal(builder, 1, SEAL_HOLE);
	build_pop(builder, 1, 150);
	build_pop(builder, 1, 160);
	build_pop(builder, 1, 170);
	build_seal(builder, 1, SEAL_WHOLE);
	integrity = expect("100 s1 push step\n"
			   "110 s1   push layer\n"
			   "150 s1 gap 2 seen 110\n"
			   "150 s1   unended layer 110 seen 110\n"
			   "150 s1   resumed other 130\n"
			   "150 s1     resumed deep 140\n"
			   "150 s1     pop deep 140\n"
			   "160 s1   pop other 130\n"
			   "170 s1 pop step 100\n"
			   "170 s1 end\n");
	ck_assert_uint_eq(integrity.missing_chunks, 2);
	ck_assert_uint_eq(integrity.truncated_streams, 1);
	ck_assert_uint_eq(integrity.unended, 1);
	ck_assert_uint_eq(integrity.resumed, 2);
	ck_assert(!integrity.complete);
}
END_TEST

START_TEST(a_torn_chunk_is_left_out_unless_the_slot_still_has_it)
{
	struct trace_integrity integrity;

	build_push(builder, 1, 100, "lost");
	build_pop(builder, 1, 110);
	build_seal(builder, 1, SEAL_TORN);
	build_push(builder, 1, 120, "kept");
	build_pop(builder, 1, 130);
	build_seal(builder, 1, SEAL_TORN_SLOT);
	integrity = expect("120 s1 gap 1 seen 100\n"
			   "120 s1 push kept\n"
			   "130 s1 pop kept 120\n"
			   "130 s1 end\n");
	ck_assert_uint_eq(integrity.torn_chunks, 1);
	ck_assert_uint_eq(integrity.truncated_streams, 1);
}
END_TEST

START_TEST(the_last_payload_torn_is_a_gap_before_the_end)
{
	build_push(builder, 1, 100, "step");
	build_seal(builder, 1, SEAL_WHOLE);
	build_pop(builder, 1, 110);
	build_seal(builder, 1, SEAL_TORN);
	ck_assert_uint_eq(expect("100 s1 push step\n"
				 "100 s1 gap 1 seen 100\n"
				 "100 s1 open step 100 seen 100\n"
				 "100 s1 end\n")
				  .left_open,
		1);
}
END_TEST

START_TEST(nothing_is_read_twice)
{
	build_push(builder, 1, 100, "a");
	build_seal(builder, 1, SEAL_TWICE);
	build_pop(builder, 1, 110);
	build_seal(builder, 1, SEAL_AND_SLOT);
	ck_assert_uint_eq(expect("100 s1 push a\n"
				 "110 s1 pop a 100\n"
				 "110 s1 end\n")
				  .duplicate_chunks,
		1);
}
END_TEST

START_TEST(what_a_living_thread_has_open_lasts_as_long_as_the_trace)
{
	struct trace_integrity integrity;

	build_push(builder, 1, 100, "waits");
	build_push(builder, 2, 110, "ended");
	build_seal(builder, 2, SEAL_WHOLE);
	build_push(builder, 3, 120, "works");
	build_pop(builder, 3, 500);
	integrity = expect("100 s1 push waits\n"
			   "110 s2 push ended\n"
			   "110 s2 open ended 110 seen 110\n"
			   "110 s2 end\n"
			   "120 s3 push works\n"
			   "500 s3 pop works 120\n"
			   "500 s3 end\n"
			   "500 s1 open waits 100 seen 100\n"
			   "500 s1 end\n");
	ck_assert_uint_eq(integrity.left_open, 2);
	ck_assert(integrity.complete);
}
END_TEST

START_TEST(an_end_without_a_beginning_is_counted)
{
	build_pop(builder, 1, 10);
	build_push(builder, 1, 20, "a");
	build_pop(builder, 1, 30);
	build_pop(builder, 1, 40);
	ck_assert_uint_eq(expect("10 s1 unmatched\n"
				 "20 s1 push a\n"
				 "30 s1 pop a 20\n"
				 "40 s1 unmatched\n"
				 "40 s1 end\n")
				  .unmatched_ends,
		2);
}
END_TEST

/* Each that stays open moves out by one: with any number of them a small file would take hours. */
START_TEST(a_range_ends_around_thousands_but_not_around_more)
{
	struct trace_reader *reader;
	struct trace_event event;
	unsigned pops = 0;

	for (unsigned i = 0; i < 4097; i++)
		build_push(builder, 1, 10 + i, "a");
	build_pop_at(builder, 1, 5000, 0);
	build_pop_at(builder, 1, 5001, 1);
	build_pop_at(builder, 1, 5002, 1);
	reader = open_built(builder);
	while (reader_next(reader, &event) == 1)
		pops += event.kind == EVENT_POP;
	ck_assert_uint_eq(pops, 2);
	ck_assert_uint_eq(reader_integrity(reader)->unmatched_ends, 1);
	ck_assert_uint_eq(reader_integrity(reader)->left_open, 4095);
	reader_close(reader);
}
END_TEST

START_TEST(losses_that_the_writer_counted_are_reported)
{
	struct trace_integrity integrity;

	builder_header(builder)->lost[TRACE_LOST_FULL_DISK] = 5;
	builder_header(builder)->lost[TRACE_LOST_TOO_DEEP] = 2;
	build_push(builder, 1, 10, "a");
	build_seal(builder, 1, SEAL_WHOLE);
	build_lost(builder, 1, 5);
	build_pop(builder, 1, 50);
	build_seal(builder, 1, SEAL_WHOLE);
	integrity = expect("10 s1 push a\n"
			   "50 s1 gap 0 seen 10\n"
			   "50 s1 pop a 10\n"
			   "50 s1 end\n");
	ck_assert_uint_eq(integrity.lost_events, 7);
	ck_assert_uint_eq(integrity.lost[TRACE_LOST_FULL_DISK], 5);
	ck_assert(!integrity.complete);
}
END_TEST

START_TEST(a_file_shorter_than_it_says_was_cut_unless_its_process_was_killed_as_it_wrote)
{
	static const struct {
		uint64_t more;
		uint32_t flags;
		bool complete;
	} cases[] = { { 0, TRACE_ENDED, true }, { 64, TRACE_ENDED, false }, { 65536, 0, true },
		{ UINT64_C(1) << 30, 0, false } };
	size_t bytes;

	build_push(builder, 1, 10, "a");
	builder_bytes(builder, &bytes);
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct trace_integrity integrity;

		builder_header(builder)->flags = cases[i].flags;
		builder_header(builder)->end = bytes + cases[i].more;
		integrity = expect("10 s1 push a\n"
				   "10 s1 open a 10 seen 10\n"
				   "10 s1 end\n");
		ck_assert(integrity.complete == cases[i].complete);
		ck_assert_uint_eq(integrity.cut_bytes, cases[i].complete ? 0 : cases[i].more);
	}
}
END_TEST

START_TEST(a_full_disk_is_no_reason_to_copy_again)
{
	for (unsigned full = 0; full < 2; full++) {
		struct trace_reader *reader;
		const char *warning;
		size_t bytes;

		builder_bytes(builder, &bytes);
		builder_header(builder)->flags = TRACE_ENDED;
		builder_header(builder)->end = bytes + 64;
		builder_header(builder)->lost[TRACE_LOST_FULL_DISK] = full;
		reader = open_built(builder);
		warning = reader_warning(reader, 0);
		ck_assert_ptr_nonnull(warning);
		ck_assert_int_eq(strstr(warning, "the disk was full") != NULL, full);
		ck_assert_int_eq(strstr(warning, "copy it again") != NULL, !full);
		reader_close(reader);
	}
}
END_TEST

START_TEST(a_record_that_makes_no_sense_ends_its_payload_only)
{
	struct trace_integrity integrity;
	struct trace_reader *reader;

	build_push(builder, 1, 10, "a");
	build_raw(builder, 1, (uint32_t[]){ 0, 0x00050004, 0, 0 }, 16);
	build_push(builder, 1, 20, "unread");
	build_seal(builder, 1, SEAL_WHOLE);
	build_pop(builder, 1, 30);
	build_pop(builder, 1, 40);
	integrity = expect("10 s1 push a\n"
			   "30 s1 gap 0 seen 10\n"
			   "30 s1   resumed unread 20\n"
			   "30 s1   pop unread 20\n"
			   "40 s1 pop a 10\n"
			   "40 s1 end\n");
	ck_assert_uint_eq(integrity.damaged_payloads, 1);
	ck_assert(!integrity.complete);
	reader = open_built(builder);
	free(events_to_text(reader));
	ck_assert_ptr_nonnull(strstr(reader_warning(reader, 0), "offset "));
	ck_assert_ptr_nonnull(strstr(reader_warning(reader, 0), "a record of stream 1"));
	ck_assert_ptr_null(reader_warning(reader, 1));
	reader_close(reader);
}
END_TEST

START_TEST(a_kind_of_a_newer_version_is_skipped_and_counted)
{
	struct trace_integrity integrity;

	build_record(builder, 1, (enum trace_kind)200, 24, 10);
	build_push(builder, 1, 20, "a");
	build_pop(builder, 1, 30);
	integrity = expect("20 s1 push a\n"
			   "30 s1 pop a 20\n"
			   "30 s1 end\n");
	ck_assert_uint_eq(integrity.unknown_kinds, 1);
	ck_assert_uint_eq(integrity.unknown_bytes, 24);
}
END_TEST

START_TEST(texts_come_from_the_record_the_name_or_the_node)
{
	struct trace_range *range;
	uint32_t inlined = build_node(builder, 0, NULL, NULL, TRACE_NODE_RANGE),
		 name = build_name(builder, "by its id");

	range = build_push_record(builder, 1, 10, inlined, sizeof *range + 6);
	range->head.flags = TRACE_HAS_TEXT;
	range->text_bytes = 6;
	memcpy(range + 1, "inline", 6);
	range = build_record(builder, 1, TRACE_MARK, sizeof *range, 20);
	range->name = name;
	build_record(builder, 1, TRACE_START, sizeof *range, 30);
	build_push(builder, 1, 40, "");
	ck_assert_uint_eq(expect("10 s1 push inline\n"
				 "20 s1 MARK by its id\n"
				 "30 s1 START ?\n"
				 "40 s1   push \n"
				 "40 s1   open  40 seen 40\n"
				 "40 s1 open ? 10 seen 40\n"
				 "40 s1 end\n")
				  .left_open,
		2);
}
END_TEST

START_TEST(records_come_with_their_struct_and_their_node)
{
	struct trace_kernel *kernel;
	struct trace_launch *launch;
	struct trace_gpu_batch *batch;
	struct trace_reader *reader;
	struct trace_event event;
	uint32_t node, seen = 0;

	node = build_push(builder, 1, 10, "step");
	launch = build_record(builder, 1, TRACE_LAUNCH, sizeof *launch, 20);
	launch->call.correlation = 77;
	batch = build_record(builder, 1, TRACE_GPU_BATCH, sizeof *batch, 1000);
	batch->records = 1;
	kernel = build_record(builder, 1, TRACE_KERNEL, sizeof *kernel, 1000);
	kernel->gpu.start_ns = BUILDER_START_UNIX_NS + 500;
	kernel->gpu.end_ns = BUILDER_START_UNIX_NS + 600;
	reader = open_built(builder);
	while (reader_next(reader, &event) > 0) {
		uint64_t start, end;

		if (event.kind == TRACE_LAUNCH) {
			ck_assert_uint_eq(event.node, node);
			ck_assert_uint_eq(event.depth, 1);
			ck_assert_uint_eq(
				((const struct trace_launch *)event.record)->call.correlation, 77);
			seen++;
		} else if (event.kind == TRACE_KERNEL) {
			const struct trace_kernel *read = event.record;

			ck_assert_uint_eq(event.time_ns, 1000);
			ck_assert(reader_gpu_times(
				reader, read->gpu.start_ns, read->gpu.end_ns, &start, &end));
			ck_assert_uint_eq(start, 500);
			ck_assert_uint_eq(end, 600);
			ck_assert(!reader_gpu_times(reader, 0, 0, &start, &end));
			seen++;
		}
	}
	ck_assert_uint_eq(seen, 2);
	reader_close(reader);
}
END_TEST

START_TEST(ids_that_cannot_be_are_survived)
{
	struct trace_node *node;
	struct trace_name *name;
	struct trace_reader *reader;
	struct trace_event event;
	const uint32_t ids[] = { 1, 2, 3, 1000, 1u << 29, UINT32_MAX };

	for (size_t i = 0; i < sizeof ids / sizeof *ids; i++) {
		node = build_dictionary(builder, TRACE_NODE, sizeof *node);
		node->head.node = ids[i];
		node->parent = ids[(i + 1) % 3];
		node->name = ids[i];
		name = build_dictionary(builder, TRACE_NAME, sizeof *name);
		name->name = ids[i];
	}
	for (size_t i = 0; i < sizeof ids / sizeof *ids; i++)
		build_push_node(builder, 1, 10, ids[i]);
	build_push_node(builder, 1, 10, 0);
	reader = open_built(builder);
	while (reader_next(reader, &event) > 0) {
		ck_assert_uint_lt(event.node, reader_node_count(reader));
		if (event.kind == TRACE_PUSH)
			reader_event_text(reader, &event);
	}
	for (uint32_t id = 1; id < reader_node_count(reader); id++)
		ck_assert_uint_lt(reader_node(reader, id)->parent, id);
	ck_assert_uint_lt(reader_node_count(reader), 5000);
	ck_assert_uint_gt(reader_integrity(reader)->unknown_nodes, 0);
	reader_close(reader);
}
END_TEST

START_TEST(the_dictionary_is_complete)
{
	struct trace_stack *stack;
	struct trace_python_stack *python;
	struct trace_mixed_stack *mixed;
	struct trace_module *module;
	struct trace_reader *reader;
	struct trace_text key, value;

	build_meta(builder, "exe", "/bin/old");
	build_meta(builder, "host", "here");
	build_meta(builder, "exe", "/bin/new");
	build_dictionary_seal(builder);
	for (uint32_t i = 5; i >= 1; i--) {
		stack = build_dictionary(builder, TRACE_STACK, sizeof *stack + 8 * i);
		stack->stack = i;
		stack->frames = i;
	}
	python = build_dictionary(builder, TRACE_PYTHON_STACK, sizeof *python);
	python->stack = 7;
	mixed = build_dictionary(builder, TRACE_MIXED_STACK, sizeof *mixed);
	mixed->stack = 8;
	mixed->native = 3;
	mixed->python = 7;
	module = build_dictionary(builder, TRACE_MODULE, sizeof *module + 5);
	module->path_bytes = 3;
	module->build_id_bytes = 2;
	memcpy(module + 1, "/so\1\2", 5);
	reader = open_built(builder);
	value = reader_meta(reader, "exe");
	ck_assert(value.known && value.length == 8 && !memcmp(value.bytes, "/bin/new", 8));
	ck_assert(!reader_meta(reader, "ex").known);
	ck_assert_uint_eq(reader_meta_count(reader), 2);
	reader_meta_at(reader, 0, &key, &value);
	ck_assert(key.length == 4 && !memcmp(key.bytes, "host", 4));
	for (uint32_t i = 1; i <= 5; i++)
		ck_assert_uint_eq(reader_stack(reader, i)->frames, i);
	ck_assert_ptr_null(reader_stack(reader, 6));
	ck_assert_ptr_null(reader_stack(reader, 7));
	ck_assert_uint_eq(reader_stack(reader, 8)->frames, 3);
	ck_assert_uint_eq(reader_python_stack(reader, 8)->stack, 7);
	ck_assert_uint_eq(reader_python_stack_id(reader, 8), 7);
	ck_assert_uint_eq(reader_python_stack_id(reader, 7), 7);
	ck_assert_uint_eq(reader_python_stack_id(reader, 3), 0);
	ck_assert_uint_eq(reader_dictionary_count(reader, TRACE_MODULE), 1);
	module = (void *)(uintptr_t)reader_dictionary(reader, TRACE_MODULE, 0);
	ck_assert(!memcmp(module + 1, "/so", 3));
	ck_assert_uint_eq(module->build_id_bytes, 2);
	ck_assert_ptr_null(reader_dictionary(reader, TRACE_MODULE, 1));
	reader_close(reader);
}
END_TEST

START_TEST(a_trace_without_events_is_fine)
{
	ck_assert(expect("").complete);
}
END_TEST

START_TEST(the_callers_pointer_stays_with_the_stream)
{
	struct trace_reader *reader;
	struct trace_event event;
	int marks[2] = { 0, 0 };

	for (uint32_t i = 0; i < 10; i++)
		build_push(builder, 1 + i % 2, 10 * i, "a");
	reader = open_built(builder);
	while (reader_next(reader, &event) > 0) {
		if (!event.stream->user)
			event.stream->user = &marks[event.stream->ordinal];
		ck_assert_ptr_eq(event.stream->user, &marks[event.stream->stream - 1]);
		ck_assert_uint_eq(event.stream->tid, 1000 + event.stream->stream);
	}
	ck_assert_uint_eq(reader_stream_count(reader), 2);
	reader_close(reader);
}
END_TEST

static void write_run(const char *path, uint64_t run, uint32_t pid, uint64_t start)
{
	builder_header(builder)->run_id = run;
	builder_header(builder)->pid = pid;
	builder_header(builder)->start.realtime_ns = start;
	builder_write(builder, path);
}

START_TEST(the_other_files_of_a_run_are_found)
{
	char folder[] = "siblings.XXXXXX", path[64], error[READER_ERROR_BYTES];
	static const char *const files[] = { "trace.bin", "trace.2.bin", "trace.3.bin", "copy.bin",
		"foreign.bin", "text", "pipe" };
	struct run_files siblings;

	ck_assert_ptr_nonnull(mkdtemp(folder));
	ck_assert_int_eq(chdir(folder), 0);
	write_run("trace.bin", 7, 1, 100);
	write_run("copy.bin", 7, 2, 200);
	write_run("trace.2.bin", 7, 2, 200);
	write_run("trace.3.bin", 7, 3, 150);
	write_run("foreign.bin", 8, 4, 100);
	ck_assert_int_eq(mkfifo("pipe", 0600), 0);
	fclose(fopen("text", "w"));
	ck_assert(run_files_find("trace.2.bin", &siblings, error));
	ck_assert_uint_eq(siblings.count, 3);
	ck_assert_str_eq(siblings.traces[0].path, "trace.bin");
	ck_assert_str_eq(siblings.traces[1].path, "trace.3.bin");
	ck_assert_str_eq(siblings.traces[2].path, "trace.2.bin");
	run_files_free(&siblings);
	ck_assert_int_eq(chdir(".."), 0);
	snprintf(path, sizeof path, "%s/trace.bin", folder);
	ck_assert(run_files_find(path, &siblings, error));
	ck_assert_uint_eq(siblings.count, 3);
	ck_assert_str_eq(siblings.traces[0].path, path);
	run_files_free(&siblings);
	snprintf(path, sizeof path, "%s/pipe", folder);
	ck_assert(!run_files_find(path, &siblings, error));
	ck_assert_ptr_nonnull(strstr(error, "has no data")); /* nothing writes to it */
	for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
		snprintf(path, sizeof path, "%s/%s", folder, files[i]);
		unlink(path);
	}
	rmdir(folder);
}
END_TEST

/* To open a device can be to do something with it: nothing but files is. */
START_TEST(where_links_beside_a_trace_lead_is_not_opened)
{
	char folder[] = "links.XXXXXX", error[READER_ERROR_BYTES],
	     event[sizeof(struct inotify_event) + NAME_MAX + 1];
	struct run_files siblings;
	int watch = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);

	ck_assert_ptr_nonnull(mkdtemp(folder));
	ck_assert_int_eq(chdir(folder), 0);
	write_run("trace.bin", 7, 1, 100);
	ck_assert_int_eq(mkfifo("pipe", 0600), 0);
	ck_assert_int_eq(symlink("pipe", "trace.2.bin"), 0);
	ck_assert_int_eq(symlink("/dev/null", "trace.3.bin"), 0);
	ck_assert_int_ge(inotify_add_watch(watch, "pipe", IN_OPEN), 0);
	ck_assert(run_files_find("trace.bin", &siblings, error));
	ck_assert_uint_eq(siblings.count, 1);
	run_files_free(&siblings);
	ck_assert_int_eq(read(watch, event, sizeof event), -1);
	ck_assert(!run_files_find("trace.3.bin", &siblings, error));
	ck_assert_ptr_nonnull(strstr(error, "a device, pipe or socket"));
	close(watch);
	unlink("trace.bin");
	unlink("trace.2.bin");
	unlink("trace.3.bin");
	unlink("pipe");
	ck_assert_int_eq(chdir(".."), 0);
	rmdir(folder);
}
END_TEST

START_TEST(meta_values_are_numbers_or_none)
{
	static const struct {
		const char *text;
		bool is_number;
		uint64_t number;
	} cases[] = { { "0", true, 0 }, { "12080", true, 12080 }, { "", false, 0 },
		{ "12080, 12090", false, 0 }, { "-1", false, 0 }, { "1.5", false, 0 },
		{ "999999999999999999", true, UINT64_C(999999999999999999) },
		{ "1000000000000000000", false, 0 }, { "99999999999999999999999", false, 0 } };

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct trace_builder *one = builder_new();
		struct trace_reader *reader;
		uint64_t number = 0;

		build_meta(one, "version.cuda", cases[i].text);
		reader = open_built(one);
		ck_assert(
			reader_meta_number(reader, "version.cuda", &number) == cases[i].is_number);
		ck_assert_uint_eq(number, cases[i].number);
		ck_assert(!reader_meta_number(reader, "version.none", &number));
		ck_assert_uint_eq(
			reader_meta_of(reader, "version", "cuda").length, strlen(cases[i].text));
		ck_assert(!reader_meta_of(reader, "source", "cuda").known);
		reader_close(reader);
	}
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("trace reader");
	TCase *cases = tcase_create("events");
	SRunner *runner;
	int failed;

	tcase_add_checked_fixture(cases, set_up, tear_down);
	tcase_add_test(cases, ranges_nest_and_close);
	tcase_add_test(cases, meta_values_are_numbers_or_none);
	tcase_add_test(cases, streams_are_merged_by_time_and_then_by_their_number);
	tcase_add_test(cases, long_and_short_forms_say_the_same);
	tcase_add_test(cases, a_range_that_is_not_the_innermost_may_close);
	tcase_add_test(cases, a_range_goes_on_over_its_payloads);
	tcase_add_test(cases, ranges_deeper_than_a_payloads_beginning_can_tell_go_on);
	tcase_add_test(cases, a_missing_payload_is_a_gap_and_ranges_are_taken_up_again);
	tcase_add_test(cases, a_torn_chunk_is_left_out_unless_the_slot_still_has_it);
	tcase_add_test(cases, the_last_payload_torn_is_a_gap_before_the_end);
	tcase_add_test(cases, nothing_is_read_twice);
	tcase_add_test(cases, what_a_living_thread_has_open_lasts_as_long_as_the_trace);
	tcase_add_test(cases, an_end_without_a_beginning_is_counted);
	tcase_add_test(cases, a_range_ends_around_thousands_but_not_around_more);
	tcase_add_test(cases, losses_that_the_writer_counted_are_reported);
	tcase_add_test(cases,
		a_file_shorter_than_it_says_was_cut_unless_its_process_was_killed_as_it_wrote);
	tcase_add_test(cases, a_record_that_makes_no_sense_ends_its_payload_only);
	tcase_add_test(cases, a_full_disk_is_no_reason_to_copy_again);
	tcase_add_test(cases, a_kind_of_a_newer_version_is_skipped_and_counted);
	tcase_add_test(cases, texts_come_from_the_record_the_name_or_the_node);
	tcase_add_test(cases, records_come_with_their_struct_and_their_node);
	tcase_add_test(cases, ids_that_cannot_be_are_survived);
	tcase_add_test(cases, the_dictionary_is_complete);
	tcase_add_test(cases, a_trace_without_events_is_fine);
	tcase_add_test(cases, the_callers_pointer_stays_with_the_stream);
	tcase_add_test(cases, the_other_files_of_a_run_are_found);
	tcase_add_test(cases, where_links_beside_a_trace_lead_is_not_opened);
	suite_add_tcase(suite, cases);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_ENV);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed != 0;
}
