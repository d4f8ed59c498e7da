/* SPDX-License-Identifier: MIT
 * test_tensor_memory.c: what PyTorch's allocator reported: levels and flows of tensors, who held
 * what when memory ran out, and what did not add up.
 */
#include "tests/support/profile_fixture.h"
#include "tests/support/run_report.h"
#include "tests/support/training_trace.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MB 1000000

static const struct node_tensors *tensors_of(
	const struct profile_fixture *fixture, const char *path)
{
	const struct node *node = fixture_node(fixture, path);

	ck_assert_msg(node != NULL, "there is no `%s`", path);
	ck_assert_ptr_nonnull(node->tensors);
	return node->tensors;
}

START_TEST(a_range_has_a_level_of_tensors_and_a_peak)
{
	struct trace_builder *builder = builder_new();
	struct profile_fixture fixture;

	build_tensor(builder, 1, 5, 0x1000, 1000, 1000, 4096);
	build_push(builder, 1, 10, "a");
	build_push(builder, 1, 20, "spike");
	build_tensor(builder, 1, 30, 0x2000, 500, 1500, 4096);
	build_tensor(builder, 1, 40, 0x2000, -500, 1000, 4096);
	build_pop(builder, 1, 50);
	build_tensor(builder, 1, 60, 0x3000, 50, 1050, 4096);
	build_pop(builder, 1, 70);
	fixture = fixture_of(builder, NULL);
	ck_assert_int_eq(tensors_of(&fixture, "a")->allocated_delta, 50);
	ck_assert_int_eq(tensors_of(&fixture, "a")->allocated_peak, 1500);
	ck_assert_int_eq(tensors_of(&fixture, "a/spike")->allocated_delta, 0);
	ck_assert_int_eq(tensors_of(&fixture, "a/spike")->allocated_peak, 1500);
	ck_assert_int_eq(fixture.profile->totals.allocated_peak, 1500);
	ck_assert_int_eq(fixture.profile->totals.allocated_now, 1050);
	ck_assert_uint_eq(fixture.profile->memory->counts.tensor_differences, 0);
	fixture_check(&fixture);
	fixture_free(&fixture);
}
END_TEST

/* 9,000 bytes were allocated before the trace began. */
static struct trace_builder *began_late(void)
{
	struct trace_builder *builder = builder_new();

	build_push(builder, 1, 10, "a");
	build_push(builder, 1, 20, "resize");
	build_tensor(builder, 1, 30, 0x1000, 100, 9100, 16384);
	build_pop(builder, 1, 40);
	build_push(builder, 1, 50, "grow");
	build_tensor(builder, 1, 60, 0x2000, 500, 9600, 16384);
	build_pop(builder, 1, 70);
	build_tensor(builder, 1, 80, 0x2000, -500, 9100, 16384);
	build_pop(builder, 1, 90);
	return builder;
}

START_TEST(no_instance_rises_from_zero_that_began_with_more)
{
	struct report_run run = run_report(
		began_late(), "critical trace.bin -m allocated_peak --ascii --no-fold");

	ck_assert_ptr_nonnull(strstr(run.out, "| 9.00 kB -> peak 9.60 kB (0.6000 d)\n"));
	ck_assert_ptr_nonnull(strstr(run.out, "| 9.10 kB -> peak 9.60 kB (0.5000 d)\n"));
	ck_assert_ptr_nonnull(strstr(run.out, "| 9.00 kB -> peak 9.10 kB (0.1000 d)\n"));
	run = run_report(NULL, "tree trace.bin -f csv --columns "
			       "allocated_delta_bytes,allocated_peak_bytes");
	ck_assert_ptr_nonnull(strstr(run.out, "a,100,9600"));
	ck_assert_ptr_nonnull(strstr(run.out, "resize,100,9100"));
}
END_TEST

/* Three steps: `step 1` has the peak, and ends as high as it began. `step 2` grows most. */
static struct trace_builder *spike(void)
{
	struct trace_builder *builder = builder_new();

	build_tensor(builder, 1, 5, 0x1000, 1000, 1000, 4096);
	for (unsigned step = 0; step < 3; step++) {
		const uint64_t at = 100 * (step + 1);

		build_push(builder, 1, at, (const char *[]){ "step 0", "step 1", "step 2" }[step]);
		build_push(builder, 1, at + 10, "forward");
		build_tensor(builder, 1, at + 20, 0x2000, step == 1 ? 9000 : 500,
			step == 1 ? 10000 : 1500, 16384);
		build_pop(builder, 1, at + 30);
		build_push(builder, 1, at + 40, "workspace");
		build_tensor(builder, 1, at + 50, 0x4000, 200, step == 1 ? 10200 : 1700, 16384);
		build_tensor(builder, 1, at + 55, 0x4000, -200, step == 1 ? 10000 : 1500, 16384);
		build_pop(builder, 1, at + 60);
		build_tensor(builder, 1, at + 70, 0x2000, step == 1 ? -9000 : -500, 1000, 16384);
		if (step == 2)
			build_tensor(builder, 1, at + 75, 0x3000, 200, 1200, 16384);
		build_pop(builder, 1, at + 80);
	}
	return builder;
}

START_TEST(critical_of_a_peak_is_the_instance_that_had_it)
{
	struct report_run run = run_report(
		spike(), "critical trace.bin -m allocated_peak --ascii --no-fold");

	ck_assert_str_eq(run.err, "");
	ck_assert_ptr_nonnull(strstr(run.out, "step 1 --"));
	ck_assert_ptr_nonnull(strstr(run.out, "| 1.00 kB -> peak 10.20 kB (9.2000 d)\n"));
	ck_assert_ptr_nonnull(strstr(run.out, "| 1.00 kB -> peak 10.00 kB (9.0000 d)\n"));
	ck_assert_ptr_nonnull(strstr(run.out, "| 10.00 kB -> peak 10.20 kB (0.2000 d)\n"));
	ck_assert_ptr_null(strstr(run.out, "step 2"));
	run = run_report(NULL, "critical trace.bin -m allocated --ascii --no-fold");
	ck_assert_ptr_nonnull(strstr(run.out, "step 2 --"));
	run = run_report(NULL, "critical trace.bin -m allocated_peak --no-fold -f json");
	ck_assert_ptr_nonnull(
		strstr(run.out, "\"before\": 1000, \"after\": 10200, \"delta\": 9200"));
	run = run_report(NULL, "critical trace.bin -m allocated_peaks");
	ck_assert_int_eq(run.status, 64);
	ck_assert_ptr_nonnull(strstr(run.err, "did you mean `allocated_peak`?"));
	run = run_report(NULL, "trace.bin");
	ck_assert_ptr_nonnull(strstr(run.out, "critical trace.bin -m allocated_peak\n"));
}
END_TEST

START_TEST(what_another_thread_gives_back_is_a_flow_of_its_owner)
{
	struct trace_builder *builder = builder_new();
	struct profile_fixture fixture;

	build_push(builder, 1, 10, "owner");
	build_tensor(builder, 1, 20, 0x1000, 4096, 4096, 8192);
	build_tensor(builder, 1, 21, 0x2000, 512, 4608, 8192);
	build_pop(builder, 1, 30);
	build_push(builder, 2, 40, "other");
	build_tensor(builder, 2, 50, 0x1000, -4096, 512, 8192);
	build_pop(builder, 2, 60);
	fixture = fixture_of(builder, NULL);
	ck_assert_uint_eq(tensors_of(&fixture, "owner")->total.alloc_bytes, 4608);
	ck_assert_uint_eq(tensors_of(&fixture, "owner")->total.free_bytes, 4096);
	ck_assert_uint_eq(tensors_of(&fixture, "owner")->allocs, 2);
	ck_assert_uint_eq(tensors_of(&fixture, "other")->total.free_bytes, 0);
	ck_assert_uint_eq(tensors_of(&fixture, "other")->frees, 1);
	ck_assert_int_eq(tensors_of(&fixture, "other")->allocated_delta, -4096);
	fixture_check(&fixture);
	fixture_free(&fixture);
}
END_TEST

START_TEST(tensors_and_the_memory_they_lie_in_are_never_added_up)
{
	struct trace_builder *builder = builder_new();
	struct profile_fixture fixture;

	build_push(builder, 1, 10, "a");
	build_alloc(builder, 1, 20, 0x10000, 2 * MB);
	build_tensor(builder, 1, 21, 0x10000, 512, 512, 2 * MB); /* at the segment's own address */
	build_tensor(builder, 1, 22, 0x10000, -512, 0, 2 * MB);
	build_alloc(builder, 1, 23, 0x90000, 3 * MB); /* not PyTorch's */
	build_tensor(builder, 1, 24, 0x10000, 1024, 1024, 2 * MB);
	build_pop(builder, 1, 30);
	fixture = fixture_of(builder, NULL);
	ck_assert_uint_eq(fixture.profile->totals.alloc_bytes, 5 * MB);
	ck_assert_uint_eq(fixture.profile->totals.tensor_alloc_bytes, 1536);
	ck_assert_int_eq(fixture.profile->totals.reserved_now, 5 * MB);
	ck_assert_uint_eq(fixture_node(&fixture, "a")->memory->alloc_bytes, 5 * MB);
	ck_assert_int_eq(
		memory_owners_tensors(fixture.profile->memory, 0)->pool.outside_at_peak, 3 * MB);
	ck_assert_uint_eq(fixture.profile->memory->counts.replaced, 0);
	fixture_check(&fixture);
	fixture_free(&fixture);
}
END_TEST

START_TEST(where_the_sum_is_not_what_the_allocator_says_that_is_counted_and_it_is_believed)
{
	struct trace_builder *builder = builder_new();
	struct profile_fixture fixture;

	build_push(builder, 1, 10, "a");
	build_tensor(builder, 1, 20, 0x1000, 512, 512, 4096);
	build_tensor(builder, 1, 30, 0x3000, 512, 2048, 4096); /* another of 1024 was not seen */
	build_tensor(builder, 1, 40, 0x2000, -1024, 1024, 4096);
	build_pop(builder, 1, 50);
	fixture = fixture_of(builder, NULL);
	ck_assert_uint_eq(fixture.profile->memory->counts.tensor_differences, 1);
	ck_assert_uint_eq(fixture.profile->memory->counts.unknown_tensor_frees, 1);
	ck_assert_int_eq(tensors_of(&fixture, "a")->allocated_delta, 1024);
	ck_assert_int_eq(tensors_of(&fixture, "a")->allocated_peak, 2048);
	fixture_check(&fixture);
	fixture_free(&fixture);
}
END_TEST

static void build_next(struct trace_builder *builder, uint32_t stream, uint64_t at,
	uint64_t address, int64_t bytes, uint32_t device)
{
	struct trace_tensor_next *record = build_record(
		builder, stream, TRACE_TENSOR_NEXT, sizeof *record, at);

	record->head.flags = (uint8_t)(device | (bytes < 0 ? TRACE_TENSOR_FREED : 0));
	record->block = address / 512 | (uint64_t)(bytes < 0 ? -bytes : bytes) / 512
						<< TRACE_TENSOR_BYTES_BIT;
}

START_TEST(a_short_record_is_the_one_before_it_of_any_thread_and_its_bytes)
{
	static const uint64_t allocated[] = { 1024, 3072, 512, 2048, 1536 };
	struct trace_builder *builder = builder_new();
	struct profile_fixture fixture;
	struct trace_event event;
	unsigned seen = 0;

	build_tensor(builder, 1, 10, 0x1000, 1024, 1024, 4096);
	build_next(builder, 2, 20, 0xfffffffffe00, 2048, 0);
	build_next(builder, 1, 25, 0x8000, 512, 1); /* a device of which nothing was heard */
	build_next(builder, 1, 30, 0x1000, -1024, 0);
	build_tensor(builder, 2, 40, 0x5000, -512, 1536, 4096);
	fixture = fixture_of(builder, NULL);
	ck_assert_uint_eq(fixture.profile->memory->counts.tensor_differences, 0);
	ck_assert_uint_eq(fixture.profile->memory->counts.unknown_tensor_frees, 1);
	reader_rewind(fixture.reader);
	while (reader_next(fixture.reader, &event) > 0) {
		const struct trace_tensor *record = event.record;

		if (event.kind != TRACE_TENSOR)
			continue;
		ck_assert_uint_eq(record->allocated, allocated[seen]);
		ck_assert_uint_eq(record->reserved, seen == 2 ? 0 : 4096);
		ck_assert_uint_eq(record->device, seen == 2);
		seen++;
	}
	ck_assert_uint_eq(seen, 5);
	fixture_free(&fixture);
}
END_TEST

START_TEST(a_short_record_may_have_a_stack)
{
	struct trace_builder *builder = builder_new();
	struct trace_tensor_next_stack *record;
	struct profile_fixture fixture;
	const struct memory_site *site;

	build_tensor(builder, 1, 10, 0x1000, 1024, 1024, 1 << 22);
	record = build_record(builder, 1, TRACE_TENSOR_NEXT, sizeof *record, 20);
	record->next.block = 0x2000 / 512 | (UINT64_C(1) << 20) / 512 << TRACE_TENSOR_BYTES_BIT;
	record->stack = 7;
	build_next(builder, 1, 30, 0x2000, -(1 << 20), 0);
	fixture = fixture_of(builder, NULL);
	ck_assert_uint_eq(fixture.profile->memory->site_count, 2);
	site = &fixture.profile->memory->sites[1];
	ck_assert_uint_eq(site->stack, 7);
	ck_assert_uint_eq(site->flow.alloc_bytes, 1 << 20);
	ck_assert_uint_eq(site->flow.held, 0);
	ck_assert_uint_eq(fixture.profile->memory->counts.tensor_differences, 0);
	fixture_check(&fixture);
	fixture_free(&fixture);
}
END_TEST

START_TEST(a_short_record_that_gives_back_more_than_there_was_is_counted)
{
	struct trace_builder *builder = builder_new();
	struct profile_fixture fixture;

	build_tensor(builder, 1, 10, 0x1000, 512, 512, 4096);
	build_next(builder, 1, 20, 0x1000, -1024, 0);
	fixture = fixture_of(builder, NULL);
	ck_assert_uint_ge(fixture.profile->memory->counts.tensor_differences, 1);
	ck_assert_int_eq(fixture.profile->totals.allocated_now, 0);
	fixture_check(&fixture);
	fixture_free(&fixture);
}
END_TEST

START_TEST(a_level_of_tensors_is_that_of_one_device)
{
	const struct profile_options second = { .device = 1, .metric = METRIC_ALLOCATED };
	struct trace_builder *builder = builder_new();
	struct profile_fixture fixture;

	build_push(builder, 1, 1, "a");
	build_tensor(builder, 1, 10, 0x1000, 512, 512, 4096);
	build_tensor(builder, 1, 20, 0x2000, 1024, 1024, 4096)->device = 1;
	build_pop(builder, 1, 30);
	fixture = fixture_of(builder, NULL);
	ck_assert_int_eq(tensors_of(&fixture, "a")->allocated_delta, 512);
	ck_assert_uint_eq(tensors_of(&fixture, "a")->total.alloc_bytes, 1536);
	ck_assert_uint_eq(tensors_of(&fixture, "a")->total.at_peak, 512);
	fixture_rebuild(&fixture, &second);
	ck_assert_int_eq(tensors_of(&fixture, "a")->allocated_delta, 1024);
	fixture_check(&fixture);
	fixture_free(&fixture);
}
END_TEST

/* Against a plain model, at random: every level, every place's flows, and who held what at the
 * peak. */
START_TEST(levels_and_owners_agree_with_a_plain_sum)
{
	static const char *const names[] = { "a", "b", "c" };
	struct {
		uint64_t bytes;
		int owner;
	} held[64] = { { 0, 0 } };
	uint64_t now = 0, peak = 0, owned[3] = { 0 }, at_peak[3] = { 0 };
	struct trace_builder *builder = builder_new();
	struct profile_fixture fixture;

	srand((unsigned)_i);
	for (unsigned i = 0; i < 3000; i++) {
		const unsigned slot = (unsigned)rand() % 64, thread = 1 + (unsigned)rand() % 3;
		const int place = rand() % 3;

		build_push(builder, thread, i * 10, names[place]);
		if (held[slot].bytes) {
			now -= held[slot].bytes;
			owned[held[slot].owner] -= held[slot].bytes;
			build_tensor(builder, thread, i * 10 + 2, 0x100000 + slot * 512,
				-(int64_t)held[slot].bytes, now, 1 << 30);
			held[slot].bytes = 0;
		} else {
			held[slot].bytes = 512 * (1 + (uint64_t)rand() % 1000);
			held[slot].owner = place;
			now += held[slot].bytes;
			owned[place] += held[slot].bytes;
			build_tensor(builder, thread, i * 10 + 2, 0x100000 + slot * 512,
				(int64_t)held[slot].bytes, now, 1 << 30);
			if (now > peak) {
				peak = now;
				memcpy(at_peak, owned, sizeof owned);
			}
		}
		build_pop(builder, thread, i * 10 + 5);
	}
	fixture = fixture_of(builder, NULL);
	fixture_check(&fixture);
	ck_assert_int_eq(fixture.profile->totals.allocated_now, (int64_t)now);
	ck_assert_int_eq(fixture.profile->totals.allocated_peak, (int64_t)peak);
	ck_assert_uint_eq(fixture.profile->memory->counts.tensor_differences, 0);
	for (int i = 0; i < 3; i++) {
		const struct node_tensors *tensors = tensors_of(&fixture, names[i]);

		ck_assert_uint_eq(tensors->total.alloc_bytes - tensors->total.free_bytes, owned[i]);
		ck_assert_uint_eq(tensors->total.at_peak, at_peak[i]);
	}
	fixture_free(&fixture);
}
END_TEST

/* A program that keeps what it should let go of, until there is no more. */
static struct trace_builder *exhausted(void)
{
	struct trace_builder *builder = builder_new();
	uint64_t at = 0, allocated = 0;

	build_device(builder, 0, "a GPU");
	build_meta(builder, "source.torch_memory", "on");
	build_alloc(builder, 1, at += 10, 0x10000000, 900 * (uint64_t)MB);
	build_alloc(builder, 1, at += 10, 0x90000000, 50 * (uint64_t)MB); /* not PyTorch's */
	build_push(builder, 1, at += 10, "train");
	build_push(builder, 1, at += 10, "weights");
	build_tensor(builder, 1, at += 10, 0x1000, 200 * MB, allocated = 200 * (uint64_t)MB,
		900 * (uint64_t)MB);
	build_pop(builder, 1, at += 10);
	for (unsigned step = 0; step < 5; step++) {
		char label[16];

		snprintf(label, sizeof label, "step %u", step);
		build_push(builder, 1, at += 10, label);
		build_push(builder, 1, at += 10, "forward");
		build_tensor(builder, 1, at += 10, 0x2000, 100 * MB,
			allocated += 100 * (uint64_t)MB, 900 * (uint64_t)MB);
		build_pop(builder, 1, at += 10);
		build_push(builder, 1, at += 10, "history");
		if (step == 4) {
			build_tensor_oom(
				builder, 1, at += 10, 150 * MB, allocated, 900 * (uint64_t)MB);
			build_pop(builder, 1, at += 10);
			break;
		}
		build_tensor(builder, 1, at += 10, 0x10000 + step * 512, 125 * MB,
			allocated += 125 * (uint64_t)MB, 900 * (uint64_t)MB);
		build_pop(builder, 1, at += 10);
		build_tensor(builder, 1, at += 10, 0x2000, -100 * MB,
			allocated -= 100 * (uint64_t)MB, 900 * (uint64_t)MB);
		build_pop(builder, 1, at += 10);
	}
	build_tensor(builder, 1, at += 10, 0x2000, -100 * MB, allocated -= 100 * (uint64_t)MB,
		900 * (uint64_t)MB);
	build_pop(builder, 1, at += 10);
	build_pop(builder, 1, at += 10);
	return builder;
}

static uint32_t build_stack(struct trace_builder *builder, uint32_t id, uint64_t address)
{
	struct trace_stack *stack = build_dictionary(
		builder, TRACE_STACK, sizeof *stack + sizeof address);

	stack->stack = id;
	stack->frames = 1;
	memcpy(stack + 1, &address, sizeof address);
	return id;
}

/* Eight steps, the first of which warms up; in each an operator takes 100 bytes and keeps them,
 * from two places of native code. */
static struct trace_builder *warming_up(void)
{
	struct trace_builder *builder = builder_new();
	const uint32_t stacks[2] = { build_stack(builder, 1, 0x401000),
		build_stack(builder, 2, 0x402000) };
	uint64_t at = 1000, allocated = 0;

	build_device(builder, 0, "a GPU");
	build_tensor(builder, 1, at, 0x900000, 50, allocated += 50, 8000)->stack =
		stacks[0]; /* in no range */
	for (uint64_t i = 0; i < 8; i++) {
		uint32_t step, op;
		char name[32];

		snprintf(name, sizeof name, "ProfilerStep#%u", (unsigned)i);
		step = build_linked_node(builder, 0, name, TRACE_NODE_STEP, 0, NULL);
		op = build_linked_node(builder, step, "aten::mm", TRACE_NODE_OP, 0, NULL);
		build_push_node(builder, 1, at += 100, step);
		build_push_node(builder, 1, at += 100, op);
		build_tensor(builder, 1, at += 10, 0x20000 + i * 0x100, 100, allocated += 100, 8000)
			->stack = stacks[i % 2];
		build_pop(builder, 1, at += 100);
		build_pop(builder, 1, at += i ? 900 : 30000);
	}
	return builder;
}

static unsigned times_in(const char *text, const char *wanted)
{
	unsigned times = 0;

	for (; (text = strstr(text, wanted)); text++)
		times++;
	return times;
}

START_TEST(text_has_a_node_once_and_its_caller_only_where_nothing_else_says_it)
{
	struct report_run run = run_report(warming_up(), "memory trace.bin --ascii --width 200");

	ck_assert_uint_eq(
		times_in(run.out, "aten::mm"), 3); /* where the peak was reached, and the row */
	ck_assert_ptr_nonnull(strstr(run.out, "ProfilerStep#* / aten::mm  "));
	ck_assert_ptr_nonnull(strstr(run.out, "800 B"));
	ck_assert_ptr_nonnull(strstr(run.out, "unattributed < 0x401000"));
	run = run_report(NULL, "memory trace.bin --ascii --width 200 --sources");
	ck_assert_ptr_nonnull(strstr(run.out, "aten::mm < 0x401000"));
	ck_assert_ptr_nonnull(strstr(run.out, "aten::mm < 0x402000"));
	run = run_report(NULL, "memory trace.bin -f csv --columns label");
	ck_assert_ptr_nonnull(strstr(run.out, "aten::mm < 0x401000"));
	ck_assert_ptr_nonnull(strstr(run.out, "aten::mm < 0x402000"));
}
END_TEST

START_TEST(nor_once_for_each_kind_of_step)
{
	struct training training = training_new();
	struct report_run run;

	build_device(training.builder, 0, "a GPU");
	for (uint64_t i = 0; i < 12; i++) {
		train_zero(&training);
		train_open(&training, "Net", TRACE_NODE_MODULE);
		training.now += 10;
		build_tensor(training.builder, training.stream, training.now, 0x20000 + i * 0x100,
			100, (i + 1) * 100, 8000);
		training.now += i < 2 ? 50000 : 1000;
		train_close(&training);
		train_backward(&training);
		train_optimizer(&training, "SGD");
	}
	run = run_report(training.builder, "memory trace.bin --ascii --sources");
	ck_assert_ptr_nonnull(strstr(run.out, "step (warm-up) / Net"));
	ck_assert_ptr_nonnull(strstr(run.out, " step / Net "));
	run = run_report(NULL, "memory trace.bin --ascii");
	ck_assert_ptr_null(strstr(run.out, "warm-up"));
	ck_assert_msg(
		strstr(run.out, "  +-- step / Net         1.20 kB  1.20 kB      12  ") != NULL,
		"%s", run.out);
}
END_TEST

START_TEST(who_held_what_as_memory_ran_out_is_the_first_thing_said)
{
	const struct report_run run = run_report(exhausted(), "trace.bin");

	ck_assert_ptr_nonnull(strstr(run.out,
		"OOM       out of memory on GPU 0 after 480 ns: 150.00 MB requested in `train /\n"
		"          step * / history`\n"
		"          allocated by tensors: 800.00 MB; reserved by PyTorch: 900.00 MB of the\n"
		"          GPU's 85.90 GB, 100.00 MB (11.1 %) of it unallocated; 50.00 MB more\n"
		"          were allocated outside PyTorch's allocator\n"
		"          growth of tensor memory since the start of: train +800.00 MB, step 4\n"
		"          +100.00 MB\n"
		"          live at that time: 500.00 MB (62.5 %) allocated in `train / step * /\n"
		"          history`; 200.00 MB (25.0 %) allocated in `train / weights`; 100.00 MB\n"
		"          (12.5 %) allocated in `train / step * / forward`\n"));
	ck_assert_ptr_nonnull(strstr(run.out, "next      pperf-report memory trace.bin\n"));
	ck_assert_ptr_nonnull(strstr(run_report(NULL, "tree trace.bin").out,
		"warning: PyTorch ran out of memory 1 time: pperf-report memory trace.bin\n"));
}
END_TEST

START_TEST(the_view_of_memory_shows_when_it_ran_out)
{
	const struct report_run run = run_report(exhausted(), "memory trace.bin");

	ck_assert_int_eq(run.status, 0);
	ck_assert_str_eq(strstr(run.out, "tensors   "),
		"tensors   GPU 0: peak of tensor memory 800.00 MB, reached in `train / step * /\n"
		"          history`; 700.00 MB still allocated at the end; at the peak PyTorch\n"
		"          reserved 900.00 MB, 100.00 MB (11.1 %) of it unallocated; 50.00 MB\n"
		"          more were allocated outside PyTorch's allocator\n"
		"          live at the peak: 500.00 MB (62.5 %) allocated in `train / step * /\n"
		"          history`, 200.00 MB (25.0 %) allocated in `train / weights`, 100.00 MB\n"
		"          (12.5 %) allocated in `train / step * / forward`\n"
		"\n"
		"                                   at OOM    at peak     at end  allocs  frees\n"
		"tensor memory, device 0         800.00 MB  800.00 MB  700.00 MB      10      5\n"
		"  ├── train / step * / history  500.00 MB  500.00 MB  500.00 MB       4      0\n"
		"  ├── train / weights           200.00 MB  200.00 MB  200.00 MB       1      0\n"
		"  └── train / step * / forward  100.00 MB  100.00 MB        0 B       5      5\n"
		"device memory, device 0                    950.00 MB  950.00 MB       2      0\n"
		"  └── unattributed                         950.00 MB  950.00 MB       2      0\n");
}
END_TEST

START_TEST(the_critical_tree_shows_what_tensors_held)
{
	const struct report_run run = run_report(
		exhausted(), "critical trace.bin -m allocated -d 2 -n 2");

	ck_assert_str_eq(run.out,
		"train ─────────────────────────────────────────────│ 0.00 MB → 700.00 MB "
		"(700.0000 ∆)\n"
		"  ├── (before first step) ─────────────────────────│ 0.00 MB → 200.00 MB "
		"(200.0000 ∆)\n"
		"  └── step 3 ──────────────────────────────────────│ 575.00 MB → 700.00 MB "
		"(125.0000 ∆)\n"
		"not shown: 3 deeper (--depth), 3 more (--top 0)\n"
		"warning: PyTorch ran out of memory 1 time: pperf-report memory trace.bin\n");
	ck_assert_ptr_nonnull(strstr(run_report(NULL, "critical trace.bin -m tensors -d 1").out,
		"train ─────────────────────────────────────────────│ 1.20 GB (100 %)\n"));
}
END_TEST

static struct trace_builder *without(void)
{
	struct trace_builder *builder = builder_new();

	build_push(builder, 1, 1, "a");
	build_pop(builder, 1, 2);
	return builder;
}

START_TEST(json_has_it_all)
{
	const struct report_run run = run_report(exhausted(), "memory trace.bin -f json");

	ck_assert_ptr_nonnull(strstr(run.out,
		"\"ooms\": [{\"pid\": 100, \"tid\": 1001, \"t_ns\": 480, "
		"\"device\": 0, \"path\": [\"train\", \"step *\", \"history\"], "
		"\"asked_bytes\": 150000000, \"allocated_bytes\": 800000000, "
		"\"reserved_bytes\": 900000000, \"outside_bytes\": 50000000, \"cause\": "));
	ck_assert_ptr_nonnull(strstr(run.out, "\"allocated_peak_bytes\": 800000000"));
	ck_assert_ptr_nonnull(
		strstr(run.out, "\"warnings\": [\"PyTorch ran out of memory: see totals.ooms\"]"));
	ck_assert_ptr_nonnull(strstr(run.out,
		"\"reserved_at_peak_bytes\": 900000000, \"unused_at_peak_bytes\": 100000000, "
		"\"outside_at_peak_bytes\": 50000000"));
	ck_assert_ptr_nonnull(
		strstr(run_report(NULL, "dump trace.bin -f json").out, "\"kind\":\"oom\""));
	ck_assert_ptr_nonnull(strstr(run_report(without(), "tree trace.bin -f json").out,
		"\"allocated_peak_bytes\": null"));
}
END_TEST

START_TEST(an_allocator_that_says_nothing_is_said_to)
{
	struct trace_builder *builder = builder_new();

	build_meta(builder, "source.torch_memory", "on");
	build_alloc(builder, 1, 5, 0x1000, 1000);
	ck_assert_ptr_nonnull(strstr(run_report(builder, "trace.bin").out,
		"tensors   PyTorch's allocator reported no tensors, but device memory was\n"
		"          allocated: by another allocator set in PyTorch, or outside PyTorch\n"));
}
END_TEST

/* Fourteen steps, of which two are warm-up; each keeps 10 MB, the last of them asks in vain. */
static struct trace_builder *a_training_that_runs_out(void)
{
	struct training training = training_new();
	struct trace_builder *builder = training.builder;
	uint64_t allocated = 0;

	build_device(builder, 0, "a GPU");
	for (unsigned i = 0; i < 14; i++) {
		training.forward_ns = i < 2 ? 50000 : 10000;
		train_data(&training);
		train_zero(&training);
		train_open(&training, "aten::cat", TRACE_NODE_OP);
		training.now += 10;
		if (i < 13)
			build_tensor(builder, 1, training.now, 0x10000 + i * 512, 10 * MB,
				allocated += 10 * (uint64_t)MB, 500 * (uint64_t)MB);
		else
			build_tensor_oom(
				builder, 1, training.now, 10 * MB, allocated, 500 * (uint64_t)MB);
		train_close(&training);
		train_forward(&training, "Net");
		train_backward(&training);
		train_optimizer(&training, "SGD");
		training.now += 20;
	}
	return builder;
}

START_TEST(a_node_is_one_whatever_step_it_is_in)
{
	const struct report_run run = run_report(a_training_that_runs_out(), "trace.bin");

	ck_assert_msg(
		strstr(run.out,
			"live at that time: 130.00 MB (100 %) allocated in `step / aten::cat`") !=
			NULL,
		"%s", run.out);
}
END_TEST

/* One line of the program allocates in steps, between them and before the first. */
START_TEST(a_line_is_one_row_whatever_section_of_the_run_it_is_in)
{
	struct training training = training_new();
	struct trace_builder *builder = training.builder;
	struct report_run run;

	build_device(builder, 0, "a GPU");
	for (unsigned i = 0; i < 14; i++) {
		for (unsigned part = 0; part < 2; part++) {
			if (part)
				train_data(&training);
			train_open(&training, "aten::empty", TRACE_NODE_OP);
			training.now += 10;
			build_tensor(builder, 1, training.now, 0x10000 + (2 * i + part) * 512,
				10 * MB, (2 * i + part + 1) * 10 * (uint64_t)MB,
				500 * (uint64_t)MB);
			train_close(&training);
			training.now += part ? 0 : 100000;
		}
		train_zero(&training);
		train_forward(&training, "Net");
		train_backward(&training);
		train_optimizer(&training, "SGD");
	}
	run = run_report(builder, "memory trace.bin");
	ck_assert_msg(
		strstr(run.out, "  └── aten::empty        280.00 MB  280.00 MB      28 ") != NULL,
		"%s", run.out);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("tensor memory");
	TCase *profile = tcase_create("fold"), *screens = tcase_create("screens");
	SRunner *runner;
	int failed;

	tcase_set_timeout(profile, 60);
	tcase_add_test(profile, a_range_has_a_level_of_tensors_and_a_peak);
	tcase_add_test(profile, what_another_thread_gives_back_is_a_flow_of_its_owner);
	tcase_add_test(profile, tensors_and_the_memory_they_lie_in_are_never_added_up);
	tcase_add_test(profile,
		where_the_sum_is_not_what_the_allocator_says_that_is_counted_and_it_is_believed);
	tcase_add_test(profile, a_short_record_is_the_one_before_it_of_any_thread_and_its_bytes);
	tcase_add_test(profile, a_short_record_may_have_a_stack);
	tcase_add_test(profile, a_short_record_that_gives_back_more_than_there_was_is_counted);
	tcase_add_test(profile, a_level_of_tensors_is_that_of_one_device);
	tcase_add_loop_test(profile, levels_and_owners_agree_with_a_plain_sum, 0, 5);
	tcase_set_timeout(screens, 60);
	tcase_add_checked_fixture(screens, run_report_setup, run_report_teardown);
	tcase_add_test(screens, critical_of_a_peak_is_the_instance_that_had_it);
	tcase_add_test(screens, no_instance_rises_from_zero_that_began_with_more);
	tcase_add_test(screens, a_node_is_one_whatever_step_it_is_in);
	tcase_add_test(screens, a_line_is_one_row_whatever_section_of_the_run_it_is_in);
	tcase_add_test(screens, nor_once_for_each_kind_of_step);
	tcase_add_test(
		screens, text_has_a_node_once_and_its_caller_only_where_nothing_else_says_it);
	tcase_add_test(screens, who_held_what_as_memory_ran_out_is_the_first_thing_said);
	tcase_add_test(screens, the_view_of_memory_shows_when_it_ran_out);
	tcase_add_test(screens, the_critical_tree_shows_what_tensors_held);
	tcase_add_test(screens, json_has_it_all);
	tcase_add_test(screens, an_allocator_that_says_nothing_is_said_to);
	suite_add_tcase(suite, profile);
	suite_add_tcase(suite, screens);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_ENV);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed != 0;
}
