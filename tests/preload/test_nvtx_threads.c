/* SPDX-License-Identifier: MIT
 * What an NVTX client calls, on many threads at once: names, handles and counters are made while
 * others are found.
 */
#include "tests/support/collector_fixture.h"

#include "collector/file/dictionary.h"
#include "collector/file/trace_file.h"
#include "preload/nvtx/nvtx.h"

#include <check.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

enum { THREADS = 8, ROUNDS = 400 };

/* The handler of a call, as its own type. */
#define HANDLER(type, module, id) \
	((type)nvtx_entry_function(NVTX_CB_MODULE_##module, NVTX_CBID_##module##_##id))

static intptr_t extension(const struct nvtx_extension_entry *entries, unsigned count, unsigned id)
{
	for (unsigned i = 0; i < count; i++)
		if (entries[i].id == id)
			return entries[i].function;
	return 0;
}

static void push_in(nvtxDomainHandle_t domain, nvtxStringHandle_t text)
{
	nvtxEventAttributes_t event = { .version = NVTX_VERSION,
		.size = NVTX_EVENT_ATTRIB_STRUCT_SIZE,
		.messageType = NVTX_MESSAGE_TYPE_REGISTERED };

	event.message.registered = text;
	HANDLER(nvtxDomainRangePushEx_impl_fntype, CORE2, DomainRangePushEx)(domain, &event);
	HANDLER(nvtxDomainRangePop_impl_fntype, CORE2, DomainRangePop)(domain);
}

typedef uint64_t NVTX_API register_counter(nvtxDomainHandle_t, const nvtxCounterAttr_t *);
typedef void NVTX_API sample_counter(nvtxDomainHandle_t, uint64_t, int64_t);

static void sample(const char *name, int64_t value)
{
	register_counter *make = (register_counter *)extension(
		nvtx_counter_entries, nvtx_counter_entry_count, NVTX3EXT_CBID_nvtxCounterRegister);
	sample_counter *take = (sample_counter *)extension(nvtx_counter_entries,
		nvtx_counter_entry_count, NVTX3EXT_CBID_nvtxCounterSampleInt64);
	const nvtxCounterAttr_t counter = { .structSize = sizeof counter,
		.name = name,
		.schemaId = NVTX_PAYLOAD_ENTRY_TYPE_INT64 };

	take(NULL, make(NULL, &counter), value);
}

/* Every text occurs on all threads, made by whoever comes first. */
static void *call_everything(void *unused)
{
	char name[32], text[32];

	for (int i = 0; i < ROUNDS; i++) {
		nvtxDomainHandle_t domain;
		nvtxRangeId_t id;

		snprintf(name, sizeof name, "domain %d", i % 20);
		snprintf(text, sizeof text, "text %d", i);
		domain = HANDLER(nvtxDomainCreateA_impl_fntype, CORE2, DomainCreateA)(name);
		push_in(domain, HANDLER(nvtxDomainRegisterStringA_impl_fntype, CORE2,
					DomainRegisterStringA)(domain, text));
		HANDLER(nvtxRangePushA_impl_fntype, CORE, RangePushA)(text);
		HANDLER(nvtxMarkA_impl_fntype, CORE, MarkA)(text);
		HANDLER(nvtxRangePop_impl_fntype, CORE, RangePop)();
		id = HANDLER(nvtxRangeStartA_impl_fntype, CORE, RangeStartA)(text);
		HANDLER(nvtxDomainNameCategoryA_impl_fntype, CORE2, DomainNameCategoryA)
		(domain, (uint32_t)i, text);
		HANDLER(nvtxRangeEnd_impl_fntype, CORE, RangeEnd)(id);
		meta_set("key", text);
		if (i % 4 == 0)
			sample(name, i);
	}
	return unused;
}

/* All pushes of a thread come in pairs of the same text, in the order of its rounds. */
static void check_pushes(struct trace_reader *reader)
{
	uint32_t seen[THREADS] = { 0 }, streams[THREADS] = { 0 }, metrics = 0;
	struct trace_event event;
	char wanted[32];
	int thread;

	while (reader_next(reader, &event) > 0) {
		metrics += event.kind == TRACE_METRIC;
		if (event.kind == TRACE_PUSH) {
			struct trace_text text = reader_event_text(reader, &event);

			for (thread = 0; thread < THREADS && streams[thread] &&
					 streams[thread] != event.stream->stream;
				thread++)
				continue;
			ck_assert_int_lt(thread, THREADS);
			streams[thread] = event.stream->stream;
			snprintf(wanted, sizeof wanted, "text %u", seen[thread]++ / 2);
			ck_assert_uint_eq(text.length, strlen(wanted));
			ck_assert_mem_eq(text.bytes, wanted, text.length);
		}
	}
	for (thread = 0; thread < THREADS; thread++)
		ck_assert_uint_eq(seen[thread], 2 * ROUNDS);
	ck_assert_uint_eq(metrics, THREADS * ROUNDS / 4);
}

START_TEST(threads_that_make_and_find_everything_at_once_do_not_disturb_each_other)
{
	pthread_t threads[THREADS];
	struct trace_reader *reader;

	collector_start(0);
	for (int i = 0; i < THREADS; i++)
		pthread_create(&threads[i], NULL, call_everything, NULL);
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	collector_finish();
	reader = collector_open_trace();
	check_pushes(reader);
	ck_assert(reader_integrity(reader)->complete);
	reader_close(reader);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("nvtx_threads");
	TCase *tests = tcase_create("nvtx_threads");
	SRunner *runner;
	int failed;

	tcase_set_timeout(tests, 60);
	tcase_add_checked_fixture(tests, NULL, collector_remove_folder);
	tcase_add_test(
		tests, threads_that_make_and_find_everything_at_once_do_not_disturb_each_other);
	suite_add_tcase(suite, tests);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_ENV);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed != 0;
}
