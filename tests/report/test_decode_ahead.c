/* SPDX-License-Identifier: MIT
 * The events of a trace, the join of its GPU records and the work that is put off are the same with
 * one thread and with several, also where it is damaged and where a pass is left early.
 */
#include "report/base/threads.h"
#include "report/trace/decode_ahead.h"
#include "report/trace/trace_reader.h"
#include "tests/support/block_writer.h"
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

/* An event as far as a pass with a watch has it. No padding: it is compared as bytes. */
struct seen_event {
	uint64_t time_ns, begin_ns;
	uint64_t correlation;     /* of a graph launch, and a kernel */
	uint32_t function, flags; /* of a call */
	uint32_t kind, node, depth, stream;
	uint64_t tid;
};

static bool is_call(uint32_t kind)
{
	return kind == TRACE_LAUNCH || kind == TRACE_GRAPH_LAUNCH || kind == TRACE_COPY ||
	       kind == TRACE_SET || kind == TRACE_SYNC;
}

static struct seen_event describe_event(const struct trace_event *event, uint32_t tid)
{
	const struct trace_call *call = event->record;
	const struct trace_gpu *gpu = event->record;
	struct seen_event seen = { .time_ns = event->time_ns,
		.begin_ns = event->kind == TRACE_PUSH || event->kind == EVENT_POP ? event->begin_ns
										  : 0,
		.kind = event->kind,
		.node = event->node,
		.depth = event->depth,
		.stream = event->stream->stream,
		.tid = tid };

	if (is_call(event->kind)) {
		seen.function = call->api;
		seen.flags = call->head.flags;
	}
	if (event->kind == TRACE_GRAPH_LAUNCH)
		seen.correlation = call->correlation;
	if (event->kind == TRACE_KERNEL)
		seen.correlation = gpu->correlation;
	return seen;
}

struct seen_list {
	struct seen_event *events;
	size_t count, room, calls, largest;
};

static void list_event(struct seen_list *list, struct seen_event seen)
{
	if (list->count == list->room) {
		list->room = list->room * 2 + 1000;
		list->events = realloc(list->events, list->room * sizeof *list->events);
		ck_assert_ptr_nonnull(list->events);
	}
	list->events[list->count++] = seen;
}

static void list_seen(void *context, const struct trace_event *events, size_t count)
{
	struct seen_list *list = context;

	list->calls++;
	list->largest = count > list->largest ? count : list->largest;
	for (size_t i = 0; i < count; i++)
		list_event(list,
			describe_event(&events[i], events[i].kind == EVENT_STREAM_END
							   ? 0
							   : reader_watched_tid(events[i].stream)));
}

static bool is_returned(uint32_t kind)
{
	return kind == TRACE_LAUNCH || kind == TRACE_GRAPH_LAUNCH || kind == TRACE_SYNC;
}

/* Lists all events, and those that a pass with a watch shows and returns. */
static void list_both(struct trace_reader *reader, struct seen_list *all, struct seen_list *seen,
	struct seen_list *returned)
{
	struct event_watch watch = { .context = seen, .see = list_seen };
	const struct trace_event *next;
	struct trace_event event;

	for (uint32_t kind = 0; kind < EVENT_KINDS; kind++)
		watch.returns[kind] = is_returned(kind);
	reader_rewind(reader);
	reader_watch(reader, &watch);
	while (reader_next_in_place(reader, &event, &next) > 0)
		list_event(returned, describe_event(next, next->stream->tid));
	reader_rewind(reader);
	while (reader_next(reader, &event) > 0)
		list_event(all, describe_event(&event,
					event.kind == EVENT_STREAM_END ? 0 : event.stream->tid));
}

static void expect_watched(unsigned cores)
{
	struct trace_reader *reader = open_with_cores(cores);
	struct seen_list all = { .count = 0 }, seen = { .count = 0 }, returned = { .count = 0 };
	size_t next = 0;

	list_both(reader, &all, &seen, &returned);
	ck_assert_uint_eq(seen.count, all.count);
	for (size_t i = 0; i < all.count; i++) {
		ck_assert_mem_eq(&seen.events[i], &all.events[i], sizeof *all.events);
		if (!is_returned(all.events[i].kind))
			continue;
		ck_assert_uint_lt(next, returned.count);
		ck_assert_mem_eq(&returned.events[next++], &all.events[i], sizeof *all.events);
	}
	ck_assert_uint_eq(next, returned.count);
	ck_assert_uint_gt(all.count, 10000);
	ck_assert_uint_gt(returned.count, 1000);
	ck_assert_uint_le(seen.largest, SMALL_BATCH_EVENTS);
	ck_assert_uint_lt(seen.calls, seen.count / 4);
	free(all.events);
	free(seen.events);
	free(returned.events);
	reader_close(reader);
}

START_TEST(a_watch_sees_all_events_and_some_are_returned)
{
	write_trace();
	for (unsigned cores = 1; cores <= 2; cores++)
		expect_watched(cores);
}
END_TEST

enum { GRAPH_PAYLOADS = 30, GRAPH_LAUNCHES = 1200 };

/* Each payload has one graph launch in full, and then such as repeat it. Between them are kernels,
 * which are not returned: so the launches move within their batch. */
static void write_graph_launches(void)
{
	struct block_writer *writer = block_writer_open(PATH);
	uint64_t stamp = 1000, correlation = 7;

	for (unsigned payload = 0; payload < GRAPH_PAYLOADS; payload++) {
		struct trace_graph_launch *whole;
		size_t at;

		block_writer_begin(writer, stamp);
		whole = block_writer_record(writer, TRACE_GRAPH_LAUNCH, sizeof *whole);
		at = (size_t)((unsigned char *)whole - writer->payload);
		whole->call.stamp = stamp += 10;
		whole->call.correlation = correlation++;
		whole->exec = 5;
		for (unsigned i = 1; i < GRAPH_LAUNCHES; i++) {
			struct trace_again *again = block_writer_record(
				writer, TRACE_AGAIN, sizeof *again);
			struct trace_kernel *kernel;

			again->stamp = stamp += 10;
			again->of = (uint16_t)(at / 8);
			again->correlation = (uint16_t)i;
			correlation++;
			if (i % 5)
				continue;
			kernel = block_writer_record(writer, TRACE_KERNEL, sizeof *kernel);
			kernel->gpu.correlation = correlation;
		}
		block_writer_seal(writer, TRACE_CHUNK, 1);
	}
	ck_assert_uint_gt(block_writer_close(writer, 1), AHEAD_TRACE_BYTES);
}

/* The unknown time of a CUDA graph depends on them. */
START_TEST(a_repeated_graph_launch_has_its_own_correlation_id)
{
	write_graph_launches();
	for (unsigned cores = 1; cores <= 2; cores++)
		expect_watched(cores);
}
END_TEST

START_TEST(a_damaged_trace_is_watched_the_same_by_any_number_of_threads)
{
	uint64_t state = 20261129;

	for (unsigned round = 0; round < 4; round++) {
		write_trace();
		damage_trace(&state, 1 + 8 * round);
		for (unsigned cores = 1; cores <= 2; cores++)
			expect_watched(cores);
	}
}
END_TEST

START_TEST(a_pass_that_returns_nothing_ends)
{
	struct seen_list seen = { .count = 0 };
	const struct event_watch watch = { .context = &seen, .see = list_seen };
	struct trace_event event;

	write_trace();
	for (unsigned cores = 1; cores <= 2; cores++) {
		struct trace_reader *reader = open_with_cores(cores);

		seen.count = 0;
		reader_watch(reader, &watch);
		ck_assert_int_eq(reader_next(reader, &event), 0);
		ck_assert_uint_gt(seen.count, STEPS * 5000);
		/* the next pass has no watch */
		seen.count = 0;
		reader_rewind(reader);
		ck_assert_int_eq(reader_next(reader, &event), 1);
		ck_assert_uint_eq(seen.count, 0);
		reader_close(reader);
	}
	free(seen.events);
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
	tcase_add_test(tests, a_watch_sees_all_events_and_some_are_returned);
	tcase_add_test(tests, a_damaged_trace_is_watched_the_same_by_any_number_of_threads);
	tcase_add_test(tests, a_pass_that_returns_nothing_ends);
	tcase_add_test(tests, a_repeated_graph_launch_has_its_own_correlation_id);
	suite_add_tcase(suite, tests);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_ENV);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed != 0;
}
