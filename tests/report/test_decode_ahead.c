/* SPDX-License-Identifier: MIT
 * The events of a trace, the join of its GPU records and the work that is put off are the same with
 * one thread and with several, also where it is damaged and where a pass is left early.
 */
#include "report/base/threads.h"
#include "report/trace/decode_ahead.h"
#include "report/trace/trace_reader.h"
#include "tests/support/large_training_trace.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define STEPS 10u /* more than AHEAD_TRACE_BYTES */
#define ALL_EVENTS UINT64_MAX
#define PATH "trace.bin"

/* What a pass returned, as a sum over everything that its user can see. */
struct pass {
	uint64_t events, sum, last_stamp, duration_ns;
	uint64_t matched, evicted; /* GPU records with a launch; launches that the join evicted */
	uint64_t deferred, worked; /* items of deferred work, and those that were done */
	uint64_t work_sum;         /* over what they refer to */
	struct trace_integrity integrity;
	char warning[READER_ERROR_BYTES + 512];
};

static void add_bytes(struct pass *pass, const void *bytes, size_t count)
{
	const unsigned char *byte = bytes;

	for (size_t i = 0; i < count; i++)
		pass->sum = (pass->sum ^ byte[i]) * UINT64_C(0x100000001b3);
}

static void add_number(struct pass *pass, uint64_t number)
{
	add_bytes(pass, &number, sizeof number);
}

/* The work on a tensor that is put off. */
struct tensor_work {
	const struct trace_tensor *record;
	uint64_t number;
};

static void work_on_tensors(void *context, const void *items, size_t count)
{
	const struct tensor_work *tensors = items;
	struct pass *pass = context;
	struct pass work = { .sum = pass->work_sum };

	for (size_t i = 0; i < count; i++) {
		ck_assert_uint_eq(tensors[i].number, pass->worked++);
		add_bytes(&work, tensors[i].record, sizeof *tensors[i].record);
	}
	pass->work_sum = work.sum;
}

static void add_steps(struct pass *pass, const struct join_step *step)
{
	for (; step->action != JOIN_STEPS_END; step++) {
		add_number(pass, step->action);
		if (step->action != JOIN_RECORD_UNMATCHED)
			add_number(pass, step->slot);
		if (step->record)
			add_bytes(pass, step->record, step->record->head.size);
		pass->evicted += step->action == JOIN_LAUNCH_EVICTED;
	}
}

static void add_join(
	struct pass *pass, struct trace_reader *reader, const struct trace_event *event)
{
	const bool is_record = event->kind == TRACE_KERNEL || event->kind == TRACE_GPU_COPY ||
			       event->kind == TRACE_GPU_SET,
		   is_call = event->kind == TRACE_LAUNCH || event->kind == TRACE_COPY ||
			     event->kind == TRACE_SET;

	if (!is_record && !(is_call && call_awaits_record(event->record)))
		return;
	add_number(pass, event->slot);
	pass->matched += is_record && event->slot != JOIN_NO_SLOT;
	if (event->steps)
		add_steps(pass, reader_join_steps(reader, event));
}

static void defer_tensor(
	struct pass *pass, struct trace_reader *reader, const struct trace_event *event)
{
	if (event->kind != TRACE_TENSOR)
		return;
	*(struct tensor_work *)reader_defer(reader) = (struct tensor_work){ .record = event->record,
		.number = pass->deferred++ };
	if (pass->deferred % 3000 == 0) {
		reader_run_deferred(reader);
		ck_assert_uint_eq(pass->worked, pass->deferred);
	}
}

static void add_event(
	struct pass *pass, struct trace_reader *reader, const struct trace_event *event)
{
	const struct trace_head *head = event->record;
	uint64_t start, end;

	add_number(pass, event->kind);
	add_number(pass, event->node);
	add_number(pass, event->depth);
	add_number(pass, event->time_ns);
	add_number(pass, event->stream->stream);
	add_number(pass, event->stream->tid);
	if (head)
		add_bytes(pass, head, head->size);
	if (event->kind == TRACE_KERNEL) {
		const struct trace_kernel *kernel = event->record;

		reader_gpu_times(reader, kernel->gpu.start_ns, kernel->gpu.end_ns, &start, &end);
		add_number(pass, start);
		add_number(pass, end);
	}
	/* The caller's own data is where it was left. */
	ck_assert(!event->stream->user || event->stream->user == event->stream);
	add_number(pass, event->stream->user != NULL);
	event->stream->user = event->stream;
	add_join(pass, reader, event);
	defer_tensor(pass, reader, event);
}

/* Reads up to `most` events. */
static struct pass read_pass(struct trace_reader *reader, uint64_t most)
{
	struct pass pass = { .events = 0 };
	const struct deferred_work work = {
		.run = work_on_tensors, .context = &pass, .item_bytes = sizeof(struct tensor_work)
	};
	const char *warning;
	struct trace_event event;
	int status = 1;

	reader_join(reader);
	reader_set_deferred(reader, &work);
	while (pass.events < most && (status = reader_next(reader, &event)) > 0) {
		add_event(&pass, reader, &event);
		pass.events++;
	}
	ck_assert_int_ge(status, 0);
	reader_run_deferred(reader);
	ck_assert_uint_eq(pass.worked, pass.deferred);
	if (status > 0)
		return pass;
	ck_assert_int_eq(reader_next(reader, &event), 0);
	add_steps(&pass, reader_join_end(reader));
	pass.last_stamp = reader_last_stamp(reader);
	pass.duration_ns = reader_duration_ns(reader);
	pass.integrity = *reader_integrity(reader);
	warning = reader_warning(reader, 0);
	snprintf(pass.warning, sizeof pass.warning, "%s", warning ? warning : "");
	return pass;
}

static void expect_same(const struct pass *a, const struct pass *b)
{
	ck_assert_uint_eq(a->events, b->events);
	ck_assert_uint_eq(a->sum, b->sum);
	ck_assert_uint_eq(a->matched, b->matched);
	ck_assert_uint_eq(a->worked, b->worked);
	ck_assert_uint_eq(a->work_sum, b->work_sum);
	ck_assert_uint_eq(a->last_stamp, b->last_stamp);
	ck_assert_uint_eq(a->duration_ns, b->duration_ns);
	ck_assert_mem_eq(&a->integrity, &b->integrity, sizeof a->integrity);
	ck_assert_str_eq(a->warning, b->warning);
}

static struct trace_reader *open_with_cores(unsigned cores)
{
	char error[READER_ERROR_BYTES];
	struct trace_reader *reader;

	threads_set_limit(cores);
	reader = reader_open(PATH, error);
	ck_assert_msg(reader != NULL, "%s", error);
	return reader;
}

static struct pass read_with_cores(unsigned cores)
{
	struct trace_reader *reader = open_with_cores(cores);
	const struct pass pass = read_pass(reader, ALL_EVENTS);

	reader_close(reader);
	return pass;
}

static void write_trace(void)
{
	size_t count;

	ck_assert_uint_gt(load_write(PATH, STEPS, NULL, &count), AHEAD_TRACE_BYTES);
}

START_TEST(any_number_of_threads_reads_the_same_events)
{
	struct pass alone;

	write_trace();
	alone = read_with_cores(1);
	ck_assert_uint_gt(alone.events, STEPS * 5000);
	ck_assert(alone.integrity.complete);
	ck_assert_uint_gt(alone.matched, STEPS * 900);
	ck_assert_uint_eq(alone.evicted, alone.matched);
	ck_assert_uint_gt(alone.worked, STEPS * 1000);
	for (unsigned cores = 2; cores <= 4; cores++) {
		const struct pass pass = read_with_cores(cores);

		expect_same(&alone, &pass);
	}
}
END_TEST

/* Left at the begin, within a batch, at the edges of batches, and when all batches are full. */
START_TEST(a_pass_that_is_left_early_disturbs_no_later_one)
{
	static const uint64_t most[] = { 0, 1, SMALL_BATCH_EVENTS, BATCH_EVENTS - 1, BATCH_EVENTS,
		BATCH_EVENTS + 1, 3 * BATCH_EVENTS, 20000 };
	struct pass alone;

	write_trace();
	alone = read_with_cores(1);
	for (unsigned cores = 1; cores <= 2; cores++) {
		struct trace_reader *reader = open_with_cores(cores);

		for (size_t i = 0; i < sizeof most / sizeof *most; i++) {
			struct pass pass = read_pass(reader, most[i]);

			ck_assert_uint_eq(pass.events, most[i]);
			reader_rewind(reader);
			pass = read_pass(reader, ALL_EVENTS);
			expect_same(&alone, &pass);
			reader_rewind(reader);
		}
		read_pass(reader, 5);
		reader_close(reader);
	}
}
END_TEST

static uint64_t random_below(uint64_t *state, uint64_t below)
{
	*state ^= *state << 13;
	*state ^= *state >> 7;
	*state ^= *state << 17;
	return *state % below;
}

static void damage_trace(uint64_t *state, unsigned flips)
{
	FILE *file = fopen(PATH, "r+");
	struct stat info;

	ck_assert_ptr_nonnull(file);
	ck_assert_int_eq(fstat(fileno(file), &info), 0);
	for (unsigned i = 0; i < flips; i++) {
		fseek(file, (long)(4096 + random_below(state, (uint64_t)info.st_size - 4096)),
			SEEK_SET);
		fputc((int)random_below(state, 256), file);
	}
	fclose(file);
}

START_TEST(a_damaged_trace_is_read_the_same_by_any_number_of_threads)
{
	uint64_t state = 20261128;
	unsigned incomplete = 0;

	for (unsigned round = 0; round < 6; round++) {
		struct pass alone, pass;

		write_trace();
		damage_trace(&state, 1 + 8 * round);
		if (round % 2)
			ck_assert_int_eq(
				truncate(PATH,
					AHEAD_TRACE_BYTES + (off_t)random_below(&state, 200000)),
				0);
		alone = read_with_cores(1);
		pass = read_with_cores(3);
		expect_same(&alone, &pass);
		incomplete += !alone.integrity.complete;
	}
	ck_assert_uint_ge(incomplete, 5);
}
END_TEST

static bool is_call(uint32_t kind)
{
	return kind == TRACE_LAUNCH || kind == TRACE_COPY || kind == TRACE_SET ||
	       kind == TRACE_SYNC;
}

/* Without details, all events have the same times and nodes, and calls their function and flags. The
 * brief pass is read in place. */
START_TEST(details_that_are_left_out_change_nothing_else)
{
	uint64_t calls = 0, tensors = 0, events = 0;

	write_trace();
	for (unsigned cores = 1; cores <= 2; cores++) {
		struct trace_reader *whole = open_with_cores(cores),
				    *brief = open_with_cores(cores);
		struct trace_event event, room;
		const struct trace_event *seen;

		reader_rewind(brief);
		reader_leave_out_details(brief);
		while (reader_next(whole, &event) > 0) {
			ck_assert_int_eq(reader_next_in_place(brief, &room, &seen), 1);
			ck_assert_uint_eq(seen->kind, event.kind);
			ck_assert_uint_eq(seen->node, event.node);
			ck_assert_uint_eq(seen->depth, event.depth);
			ck_assert_uint_eq(seen->time_ns, event.time_ns);
			ck_assert_uint_eq(seen->stream->stream, event.stream->stream);
			events++;
			tensors += event.kind == TRACE_TENSOR;
			if (is_call(event.kind)) {
				const struct trace_call *call = event.record, *short_call = seen->record;

				ck_assert_uint_eq(short_call->api, call->api);
				ck_assert_uint_eq(short_call->head.flags, call->head.flags);
				calls++;
			} else if (event.record && event.kind != TRACE_TENSOR) {
				ck_assert_mem_eq(seen->record, event.record,
					((const struct trace_head *)event.record)->size);
			}
		}
		ck_assert_int_eq(reader_next_in_place(brief, &room, &seen), 0);
		/* the next pass has them again */
		reader_rewind(brief);
		while (reader_next(brief, &event) > 0)
			if (event.kind == TRACE_TENSOR)
				ck_assert_uint_eq(((const struct trace_head *)event.record)->kind,
					TRACE_TENSOR);
		reader_close(whole);
		reader_close(brief);
	}
	ck_assert_uint_gt(events, STEPS * 10000);
	ck_assert_uint_gt(calls, STEPS * 1000);
	ck_assert_uint_gt(tensors, STEPS * 2000);
}
END_TEST

static char folder[4096];

static void enter_folder(void)
{
	const char *temporary = getenv("TMPDIR");

	snprintf(folder, sizeof folder, "%s/pperf-XXXXXX", temporary ? temporary : "/tmp");
	ck_assert_ptr_nonnull(mkdtemp(folder));
	ck_assert_int_eq(chdir(folder), 0);
}

static void leave_folder(void)
{
	unlink(PATH);
	rmdir(folder);
}

int main(void)
{
	Suite *suite = suite_create("decode_ahead");
	TCase *tests = tcase_create("passes");
	SRunner *runner;
	int failed;

	tcase_set_timeout(tests, 120);
	tcase_add_checked_fixture(tests, enter_folder, leave_folder);
	tcase_add_test(tests, any_number_of_threads_reads_the_same_events);
	tcase_add_test(tests, a_pass_that_is_left_early_disturbs_no_later_one);
	tcase_add_test(tests, a_damaged_trace_is_read_the_same_by_any_number_of_threads);
	tcase_add_test(tests, details_that_are_left_out_change_nothing_else);
	suite_add_tcase(suite, tests);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_ENV);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed != 0;
}
