/* SPDX-License-Identifier: MIT
 * Another client's calls to CUPTI beside our session, on a CUPTI of a few lines: what reaches it,
 * what the other client is given of the records that we got, in whose buffers and by whose clock.
 */
#include "collector/cupti/client.h"
#include "collector/cupti/graph_trace.h"
#include "collector/stream/stream.h"
#include "collector/file/trace_file.h"
#include "collector/cupti/handover.h"
#include "collector/cupti/subscription.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static struct cupti_session session;
static uint8_t ours[4096] __attribute__((aligned(8)));
static size_t valid;
static uint64_t asked_kinds, on_kinds; /* of the real CUPTI: a bit each */
static uint64_t disabled_kinds;
static bool calls_on[2][64]; /* single driver and runtime calls */
static int finalized, registered;

/* ---- CUPTI ---- */

static size_t length_of(uint32_t kind)
{
	return kind == CUPTI_CONCURRENT_KERNEL ? 208
	       : kind == CUPTI_OVERHEAD        ? sizeof(struct cupti_overhead)
					       : 40;
}

static uint64_t on_contexts; /* kinds that are on for a context */
static int callbacks_on, subscribed;

static int enable_callback(uint32_t on, void *handle, int domain, uint32_t id)
{
	(void)id;
	ck_assert_ptr_eq(handle, session.subscriber);
	ck_assert(domain == CUPTI_DRIVER || domain == CUPTI_RESOURCE || domain == CUPTI_STATE ||
		  domain == CUPTI_RUNTIME);
	callbacks_on += on ? 1 : -1;
	return CUPTI_OK;
}

static int enable_context(void *context, int kind)
{
	(void)context;
	on_contexts |= UINT64_C(1) << kind;
	return CUPTI_OK;
}

static int disable_context(void *context, int kind)
{
	(void)context;
	on_contexts &= ~(UINT64_C(1) << kind);
	return CUPTI_OK;
}

static int subscribe_v2(void **handle, cupti_callback callback, void *data, void *more)
{
	(void)handle, (void)callback, (void)data, (void)more;
	return subscribed++ ? CUPTI_OK : CUPTI_OTHER_SUBSCRIBER; /* first us, who are there */
}

static int next_record(uint8_t *buffer, size_t bytes, void **record)
{
	uint8_t *next = *record ? (uint8_t *)*record + length_of(*(uint32_t *)*record) : buffer;

	if (next >= buffer + bytes)
		return CUPTI_END_OF_BUFFER;
	*record = next;
	return CUPTI_OK;
}

static int enable(int kind)
{
	asked_kinds |= UINT64_C(1) << kind;
	on_kinds |= UINT64_C(1) << kind;
	return CUPTI_OK;
}

static int disable(int kind)
{
	asked_kinds |= UINT64_C(1) << kind;
	on_kinds &= ~(UINT64_C(1) << kind);
	disabled_kinds |= UINT64_C(1) << kind;
	return CUPTI_OK;
}

static int enable_driver_api(uint32_t cbid, uint8_t on)
{
	calls_on[0][cbid] = on;
	return CUPTI_OK;
}

static int enable_runtime_api(uint32_t cbid, uint8_t on)
{
	calls_on[1][cbid] = on;
	return cbid < 60 ? CUPTI_OK : CUPTI_INVALID_PARAMETER;
}

static int callback_name(int domain, uint32_t id, const char **name)
{
	*name = "cudaLaunchKernel";
	return domain == CUPTI_RUNTIME && id == 50 ? CUPTI_OK : CUPTI_INVALID_PARAMETER;
}

/* Gives what there is. */
static int flush_all(uint32_t flags)
{
	size_t bytes = valid;

	(void)flags;
	valid = 0;
	cupti_client_deliver(&session.library, ours, bytes, 0);
	return CUPTI_OK;
}

static int register_buffers(cupti_buffer_requested requested, cupti_buffer_completed completed)
{
	(void)requested, (void)completed;
	registered++;
	return CUPTI_OK;
}

static int register_clock(cupti_clock clock)
{
	(void)clock;
	registered++;
	return CUPTI_OK;
}

static int finalize(void)
{
	finalized++;
	return CUPTI_OK;
}

/* ---- the other client ---- */

static uint8_t theirs[8][1024] __attribute__((aligned(8)));
static size_t theirs_valid[8], buffer_bytes = 1024;
static int requested, completed;

static void on_requested(uint8_t **buffer, size_t *bytes, size_t *most)
{
	ck_assert_int_lt(requested, 8);
	*buffer = theirs[requested++];
	*bytes = buffer_bytes;
	*most = 0;
}

static void on_completed(
	void *context, uint32_t stream, uint8_t *buffer, size_t bytes, size_t holds)
{
	ck_assert_ptr_eq(context, NULL);
	ck_assert_uint_eq(stream, 0);
	ck_assert_uint_eq(bytes, buffer_bytes);
	theirs_valid[(size_t)(buffer - theirs[0]) / sizeof theirs[0]] = holds;
	completed++;
}

static uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static uint64_t clock_origin;

static uint64_t three_a_nanosecond(void)
{
	return (now_ns() - clock_origin) * 3;
}

/* ---- records ---- */

static void put_kernel(uint32_t id, uint64_t start)
{
	struct cupti_kernel kernel = { .kind = CUPTI_CONCURRENT_KERNEL,
		.correlation = id,
		.start = start,
		.end = start + 1000 };

	memcpy(ours + valid, &kernel, sizeof kernel < 208 ? sizeof kernel : 208);
	valid += 208;
}

static void put_call(uint32_t kind, uint32_t cbid, uint32_t id, uint64_t start)
{
	struct cupti_api call = {
		.kind = kind, .cbid = cbid, .correlation = id, .start = start, .end = start + 10
	};

	memcpy(ours + valid, &call, sizeof call);
	valid += sizeof call;
}

static struct cupti_config config;
static char folder[64];

static const uint16_t *no_calls(void)
{
	static const uint16_t none[] = { 0 };

	return none;
}

static const uint16_t *a_call(void)
{
	static const uint16_t launch[] = { 307, 0 };

	return launch;
}

#define BITS UINT64_C(0x7070) /* what we would leave in a call */

static bool is_ours(uint64_t bits)
{
	return bits == BITS;
}

static void set_up(void)
{
	static struct trace_settings settings = { .limit_bytes = 1 << 30, .run_id = 1 };

	session.library = (struct cupti_library){ .next_record = next_record,
		.enable = enable,
		.disable = disable,
		.flush_all = flush_all,
		.register_buffers = register_buffers,
		.register_clock = register_clock,
		.finalize = finalize,
		.enable_callback = enable_callback,
		.enable_context = enable_context,
		.disable_context = disable_context,
		.enable_runtime_api = enable_runtime_api,
		.subscribe_v2 = subscribe_v2,
		.version = CUPTI_VERSION_12_9 };

	snprintf(folder, sizeof folder, "/tmp/pperf-client-XXXXXX");
	ck_assert(mkdtemp(folder) != NULL);
	snprintf(settings.output, sizeof settings.output, "%s/trace.bin", folder);
	stream_configure(&settings);
	config = (struct cupti_config){
		.calls = no_calls, .timed_calls = no_calls(), .is_own_data = is_ours
	};
	session.config = &config;
	session.subscriber = &session;
	session.timed[0] = UINT64_C(1) << 20;
	session.running = true;
	pthread_mutex_init(&session.lock, NULL);
	cupti_session = &session;
	ck_assert_int_eq(cupti_client_register(on_requested, on_completed), CUPTI_OK);
}

static void tear_down(void)
{
	char path[80];

	snprintf(path, sizeof path, "%s/trace.bin", folder);
	unlink(path);
	rmdir(folder);
}

START_TEST(what_sets_cupti_up_does_not_reach_it)
{
	ck_assert_int_eq(cupti_client_set_clock(three_a_nanosecond), CUPTI_OK);
	ck_assert_int_eq(cupti_client_set_clock(NULL), CUPTI_INVALID_PARAMETER);
	ck_assert_int_eq(cupti_client_enable(CUPTI_CONCURRENT_KERNEL), CUPTI_OK);
	ck_assert_int_eq(cupti_client_disable(CUPTI_CONCURRENT_KERNEL), CUPTI_OK);
	ck_assert_int_eq(cupti_client_finalize(), CUPTI_OK);
	ck_assert_int_eq(registered + finalized, 0);
	ck_assert_uint_eq(asked_kinds, 0);
}
END_TEST

START_TEST(a_kind_that_is_not_ours_is_on_for_the_session)
{
	const uint64_t runtime = UINT64_C(1) << CUPTI_RUNTIME_CALL;

	cupti_client_enable(CUPTI_RUNTIME_CALL);
	ck_assert_uint_eq(on_kinds, runtime);
	ck_assert_int_eq(requested, 1); /* it is asked for a buffer before anything happens */
	cupti_client_finalize();
	ck_assert_uint_eq(on_kinds, 0);
	ck_assert_uint_eq(asked_kinds, runtime);
	ck_assert_int_eq(completed, 1);
}
END_TEST

/* While whole graphs are recorded, CUPTI leaves out the nodes for every client. */
START_TEST(the_client_gets_the_nodes_of_graphs_that_we_record_whole)
{
	const uint64_t whole = UINT64_C(1) << CUPTI_GRAPH_TRACE;
	const uint32_t record[2] = { CUPTI_GRAPH_TRACE, 5 };

	config.graphs = CUPTI_GRAPHS_WHOLE;
	ck_assert_int_eq(cupti_graph_trace_enable(), CUPTI_OK);
	ck_assert_uint_eq(on_kinds, whole);
	cupti_client_enable(CUPTI_RUNTIME_CALL);
	ck_assert_uint_eq(on_kinds & whole, whole);
	cupti_client_enable(CUPTI_CONCURRENT_KERNEL);
	cupti_client_enable(CUPTI_MEMCPY);
	ck_assert_uint_eq(on_kinds & whole, 0);
	cupti_client_disable(CUPTI_CONCURRENT_KERNEL);
	ck_assert_uint_eq(on_kinds & whole, 0);
	cupti_client_disable(CUPTI_MEMCPY);
	ck_assert_uint_eq(on_kinds & whole, whole);
	cupti_client_enable(CUPTI_GRAPH_TRACE); /* the client wants it, too */
	cupti_client_enable(CUPTI_CONCURRENT_KERNEL);
	ck_assert_uint_eq(on_kinds & whole, whole);
	ck_assert(!cupti_client_owns_record(record));
	cupti_client_disable(CUPTI_GRAPH_TRACE);
	ck_assert_uint_eq(on_kinds & whole, 0);
	cupti_client_finalize();
	ck_assert_uint_eq(on_kinds & whole, whole);
	cupti_graph_trace_disable();
	ck_assert_uint_eq(on_kinds, 0);
}
END_TEST

START_TEST(only_records_of_the_session_are_given)
{
	const uint64_t before = now_ns() - 1000000;

	cupti_client_enable(CUPTI_CONCURRENT_KERNEL);
	cupti_client_enable(CUPTI_RUNTIME_CALL);
	cupti_client_on_call(7);
	cupti_client_on_call(9);
	put_kernel(6, now_ns()); /* launched before */
	put_kernel(7, now_ns());
	put_call(CUPTI_RUNTIME_CALL, 1, 5, before);
	put_call(CUPTI_RUNTIME_CALL, 1, 8, now_ns());
	put_call(CUPTI_DRIVER_CALL, 20, 8, now_ns()); /* ours */
	put_kernel(9, now_ns());
	cupti_client_disable(CUPTI_RUNTIME_CALL);
	cupti_client_disable(CUPTI_CONCURRENT_KERNEL);
	cupti_client_on_call(10);
	put_kernel(10, now_ns());
	ck_assert_int_eq(completed, 0);
	ck_assert_int_eq(cupti_client_flush(1), CUPTI_OK);
	ck_assert_int_eq(completed, 1);
	ck_assert_uint_eq(theirs_valid[0], 208 + 40 + 208);
	ck_assert_uint_eq(((struct cupti_kernel *)(void *)theirs[0])->correlation, 7);
	ck_assert_uint_eq(((struct cupti_api *)(void *)(theirs[0] + 208))->correlation, 8);
	ck_assert_uint_eq(((struct cupti_kernel *)(void *)(theirs[0] + 248))->correlation, 9);
	put_kernel(9, now_ns()); /* nothing comes after the last flush */
	cupti_client_flush(1);
	ck_assert_int_eq(requested, 1);
}
END_TEST

START_TEST(a_full_buffer_is_followed_by_another)
{
	size_t dropped = 99;

	buffer_bytes = 500;
	cupti_client_enable(CUPTI_CONCURRENT_KERNEL);
	for (uint32_t id = 1; id <= 5; id++) {
		cupti_client_on_call(id);
		put_kernel(id, now_ns());
	}
	cupti_client_flush(0);
	ck_assert_int_eq(completed, 3);
	ck_assert_uint_eq(theirs_valid[0] + theirs_valid[1] + theirs_valid[2], 5 * 208);
	ck_assert_int_eq(requested, 4); /* it goes on */
	cupti_client_deliver(&session.library, ours, 0, 3);
	cupti_client_get_dropped(NULL, 0, &dropped);
	ck_assert_uint_eq(dropped, 3);
}
END_TEST

/* Returns the record's size. */
static size_t put_buffer_request(uint64_t start)
{
	struct cupti_overhead overhead = { .kind = CUPTI_OVERHEAD,
		.type = CUPTI_OVERHEAD_BUFFER_REQUEST,
		.object_kind = CUPTI_OBJECT_THREAD,
		.start = start,
		.end = start + 27 };

	memcpy(ours + valid, &overhead, sizeof overhead);
	valid += sizeof overhead;
	return sizeof overhead;
}

START_TEST(requests_of_its_own_buffers_are_reported_and_none_of_ours)
{
	const struct cupti_overhead *first = (struct cupti_overhead *)(void *)theirs[0];
	uint64_t before = now_ns();
	size_t bytes = 0;

	cupti_client_enable(CUPTI_OVERHEAD);
	for (int i = 0; i < 3; i++)
		bytes = put_buffer_request(now_ns());
	cupti_client_flush(0);
	ck_assert_int_eq(completed, 1);
	ck_assert_uint_eq(theirs_valid[0], bytes);
	ck_assert_uint_eq(first->type, CUPTI_OVERHEAD_BUFFER_REQUEST);
	ck_assert_uint_ge(first->start, before);
	ck_assert_uint_ne(first->end - first->start, 27);
	ck_assert_uint_eq(first->object[1], (uint32_t)syscall(SYS_gettid));
}
END_TEST

START_TEST(times_are_of_its_clock)
{
	uint64_t start;
	struct cupti_kernel *kernel = (struct cupti_kernel *)(void *)theirs[0];

	clock_origin = now_ns();
	cupti_client_set_clock(three_a_nanosecond);
	cupti_client_enable(CUPTI_CONCURRENT_KERNEL);
	nanosleep(&(struct timespec){ 0, 20000000 }, NULL);
	cupti_client_on_call(1);
	start = now_ns();
	put_kernel(1, start);
	nanosleep(&(struct timespec){ 0, 20000000 }, NULL);
	cupti_client_flush(1);
	ck_assert_int_lt(llabs((long long)(kernel->start - (start - clock_origin) * 3)), 300000);
	ck_assert_int_lt(llabs((long long)(kernel->end - kernel->start) - 3000), 60);
	ck_assert_uint_eq(kernel->queued, 0); /* not known stays so */
}
END_TEST

/* CUPTI keeps its own clock during a handover too, so what it wrote is converted in the client's
 * buffer. */
START_TEST(times_in_its_own_buffers_are_of_its_clock)
{
	struct cupti_kernel *kernel = (struct cupti_kernel *)(void *)theirs[0];
	uint64_t start, marked = 0;

	config.hands_over = true;
	clock_origin = now_ns();
	cupti_client_set_clock(three_a_nanosecond);
	cupti_client_enable(CUPTI_CONCURRENT_KERNEL);
	ck_assert(cupti_is_handed_over());
	nanosleep(&(struct timespec){ 0, 20000000 }, NULL);
	start = now_ns();
	put_kernel(1, start);
	put_call(CUPTI_MARKER, (uint32_t)start, (uint32_t)(start >> 32), 0);
	memcpy(ours + 208 + 8, &start, sizeof start);
	memcpy(theirs[0], ours, valid);
	nanosleep(&(struct timespec){ 0, 20000000 }, NULL);
	cupti_client_complete_buffer(&session.library, NULL, 0, theirs[0], buffer_bytes, valid);
	ck_assert_int_eq(completed, 1);
	ck_assert_uint_eq(theirs_valid[0], 208 + 40);
	ck_assert_int_lt(llabs((long long)(kernel->start - (start - clock_origin) * 3)), 300000);
	ck_assert_int_lt(llabs((long long)(kernel->end - kernel->start) - 3000), 60);
	memcpy(&marked, theirs[0] + 208 + 8, sizeof marked);
	ck_assert_uint_eq(marked, kernel->start);
	ck_assert_int_eq(registered, 0);
}
END_TEST

static uint8_t all_syncs; /* CUPTI's option */

static int enable_all_syncs(uint8_t on)
{
	all_syncs = on;
	return CUPTI_OK;
}

/* Our session wants no records of queries that found work unfinished. CUPTI's default, and what the
 * client says, holds while it has the kind. */
START_TEST(unfinished_queries_are_recorded_only_for_it)
{
	all_syncs = 1;
	session.library.enable_all_syncs = enable_all_syncs;
	cupti_enable_all();
	ck_assert_uint_eq(all_syncs, 0);
	cupti_client_enable(CUPTI_SYNCHRONIZATION);
	ck_assert_uint_eq(all_syncs, 1);
	cupti_client_disable(CUPTI_SYNCHRONIZATION);
	ck_assert_uint_eq(all_syncs, 0);
	ck_assert_int_eq(cupti_client_enable_all_syncs(0), CUPTI_OK);
	cupti_client_enable(CUPTI_SYNCHRONIZATION);
	ck_assert_uint_eq(all_syncs, 0);
	ck_assert_int_eq(cupti_client_enable_all_syncs(1), CUPTI_OK);
	ck_assert_uint_eq(all_syncs, 1);
	cupti_client_disable(CUPTI_SYNCHRONIZATION);
	ck_assert_uint_eq(all_syncs, 0);
}
END_TEST

START_TEST(unfinished_queries_are_recorded_for_it_during_a_handover)
{
	all_syncs = 1;
	session.library.enable_all_syncs = enable_all_syncs;
	config.hands_over = true;
	cupti_enable_all();
	cupti_client_enable(CUPTI_SYNCHRONIZATION);
	ck_assert(cupti_is_handed_over());
	ck_assert_uint_eq(all_syncs, 1);
	ck_assert_int_eq(cupti_client_enable_all_syncs(0), CUPTI_OK);
	ck_assert_uint_eq(all_syncs, 0);
	ck_assert_int_eq(cupti_client_enable_all_syncs(1), CUPTI_OK);
	cupti_client_disable(CUPTI_SYNCHRONIZATION);
	cupti_client_flush(1);
	ck_assert(!cupti_is_handed_over());
	ck_assert_uint_eq(all_syncs, 0);
}
END_TEST

#define OURS (UINT64_C(1) << CUPTI_CONCURRENT_KERNEL | UINT64_C(1) << CUPTI_MEMCPY)

/* As the session has them before the other comes. */
static void ask(void)
{
	cupti_enable_all();
	ck_assert_uint_eq(on_kinds & OURS, OURS);
	ck_assert_int_gt(callbacks_on, 0);
}

START_TEST(what_is_yielded_is_its_alone_until_it_has_fetched_the_rest)
{
	config.hands_over = true;
	ask();
	ck_assert_int_eq(cupti_client_set_clock(three_a_nanosecond), CUPTI_OK);
	ck_assert_int_eq(registered, 0);
	ck_assert(!cupti_is_handed_over());
	ck_assert_int_eq(cupti_client_enable(CUPTI_CONCURRENT_KERNEL), CUPTI_OK);
	ck_assert(cupti_is_handed_over());
	ck_assert_uint_eq(on_kinds, UINT64_C(1) << CUPTI_CONCURRENT_KERNEL);
	ck_assert_int_eq(cupti_client_enable(CUPTI_RUNTIME_CALL), CUPTI_OK);
	ck_assert_int_eq(cupti_client_flush(0), CUPTI_OK);
	ck_assert(cupti_is_handed_over()); /* it goes on */
	ck_assert_int_eq(cupti_client_disable(CUPTI_CONCURRENT_KERNEL), CUPTI_OK);
	ck_assert_int_eq(cupti_client_disable(CUPTI_RUNTIME_CALL), CUPTI_OK);
	ck_assert_uint_eq(on_kinds, 0);
	ck_assert(cupti_is_handed_over()); /* something may be left for it */
	ck_assert_int_eq(cupti_client_flush(0), CUPTI_OK);
	ck_assert(!cupti_is_handed_over());
	ck_assert_int_eq(registered, 0); /* a timestamp callback can never be unregistered */
	ck_assert_uint_eq(on_kinds & OURS, OURS);
	ck_assert_uint_eq(on_kinds & UINT64_C(1) << CUPTI_RUNTIME_CALL, 0);
	ck_assert_int_eq(requested, 0); /* nothing is copied */
}
END_TEST

START_TEST(callbacks_that_it_hears_stay_when_ours_go)
{
	void *handle = NULL;
	int before;
	uint32_t on = 7;

	config.hands_over = true;
	ask();
	ck_assert_int_eq(cupti_client_subscribe_v2(&handle, NULL, NULL, NULL), CUPTI_OK);
	ck_assert_int_eq(subscribed, 0); /* a second one would be refused */
	ck_assert_ptr_ne(handle, NULL);
	before = callbacks_on;
	ck_assert_int_eq(
		cupti_client_enable_callback(1, handle, CUPTI_RESOURCE, CUPTI_CONTEXT_CREATED),
		CUPTI_OK);
	ck_assert_int_eq(callbacks_on, before); /* it is on */
	ck_assert_int_eq(cupti_client_enable(CUPTI_CONCURRENT_KERNEL), CUPTI_OK);
	ck_assert_int_eq(callbacks_on, 1 + 3); /* and those that tell of CUPTI's own failures */
	ck_assert_int_eq(
		cupti_client_callback_state(&on, handle, CUPTI_RESOURCE, CUPTI_CONTEXT_CREATED),
		CUPTI_OK);
	ck_assert_uint_eq(on, 1);
	ck_assert_int_eq(
		cupti_client_callback_state(&on, handle, CUPTI_RESOURCE, CUPTI_MODULE_UNLOAD),
		CUPTI_OK);
	ck_assert_uint_eq(on, 0);
	ck_assert_int_eq(cupti_client_callback_state(NULL, handle, CUPTI_RESOURCE, 1),
		CUPTI_INVALID_PARAMETER);
}
END_TEST

START_TEST(a_handle_that_newer_functions_take_is_cupti_s_own)
{
	void *handle = NULL;

	ask();
	session.library.version = CUPTI_VERSION_13_2;
	ck_assert_int_eq(
		cupti_client_subscribe_v2(&handle, NULL, NULL, NULL), CUPTI_OTHER_SUBSCRIBER);
	ck_assert_int_eq(subscribed, 1);
	ck_assert_ptr_eq(handle, NULL);
	ck_assert_int_eq(
		cupti_client_subscribe(&handle, NULL, NULL), CUPTI_OK); /* the older way still is */
	ck_assert_ptr_ne(handle, NULL);
}
END_TEST

START_TEST(kinds_of_one_context_are_not_shared)
{
	int context;

	ask();
	ck_assert_int_eq(cupti_client_disable_context(&context, CUPTI_MEMCPY), CUPTI_OK);
	ck_assert(!cupti_is_handed_over());
	ck_assert_int_eq(cupti_client_enable_context(&context, CUPTI_MEMCPY), CUPTI_OK);
	ck_assert_int_eq(cupti_client_enable_context(&context, CUPTI_MEMSET), CUPTI_OK);
	ck_assert(cupti_is_handed_over());
	ck_assert_uint_eq(on_kinds, 0);
	ck_assert_uint_eq(on_contexts, UINT64_C(1) << CUPTI_MEMCPY | UINT64_C(1) << CUPTI_MEMSET);
	ck_assert_int_eq(cupti_client_disable_context(&context, CUPTI_MEMCPY), CUPTI_OK);
	ck_assert_int_eq(cupti_client_flush(0), CUPTI_OK);
	ck_assert(cupti_is_handed_over());
	ck_assert_int_eq(cupti_client_disable_context(&context, CUPTI_MEMSET), CUPTI_OK);
	ck_assert_int_eq(cupti_client_flush(0), CUPTI_OK);
	ck_assert(!cupti_is_handed_over());
	ck_assert_uint_eq(on_kinds & OURS, OURS);
}
END_TEST

#define BIT(kind) (UINT64_C(1) << (kind))

/* A kernel that starts during the handover would have no record if its kind were disabled for a
 * moment. */
START_TEST(what_it_enabled_while_shared_stays_enabled)
{
	const uint64_t theirs_on = BIT(CUPTI_CONCURRENT_KERNEL) | BIT(CUPTI_RUNTIME_CALL) |
				   BIT(CUPTI_CONTEXT);
	int context;

	session.library.enable_driver_api = enable_driver_api;
	session.timed[0] = BIT(20) | BIT(21);
	ask();
	calls_on[0][20] = calls_on[0][21] = true; /* as cupti_time_calls() enables them */
	ck_assert_int_eq(cupti_client_enable(CUPTI_CONCURRENT_KERNEL), CUPTI_OK);
	ck_assert_int_eq(cupti_client_enable(CUPTI_RUNTIME_CALL), CUPTI_OK);
	ck_assert_int_eq(cupti_client_enable(CUPTI_CONTEXT), CUPTI_OK);
	ck_assert_int_eq(cupti_client_enable_driver_api(21, 1), CUPTI_OK);
	ck_assert_int_eq(cupti_client_enable_driver_api(22, 1), CUPTI_OK);
	ck_assert_int_eq(cupti_client_enable_runtime_api(23, 1), CUPTI_OK);
	ck_assert_int_eq(cupti_client_enable_context(&context, CUPTI_MEMSET), CUPTI_OK);
	ck_assert(cupti_is_handed_over());
	ck_assert_uint_eq(on_kinds, theirs_on);
	ck_assert_uint_eq(disabled_kinds & (theirs_on | BIT(CUPTI_DRIVER_CALL)), 0);
	ck_assert(!calls_on[0][20] && calls_on[0][21] && calls_on[0][22] && calls_on[1][23]);
	/* Only what it disables itself. */
	ck_assert_int_eq(cupti_client_disable_context(&context, CUPTI_MEMSET), CUPTI_OK);
	ck_assert_int_eq(cupti_client_disable(CUPTI_CONCURRENT_KERNEL), CUPTI_OK);
	ck_assert_uint_eq(on_kinds, BIT(CUPTI_RUNTIME_CALL) | BIT(CUPTI_CONTEXT));
	ck_assert_int_eq(cupti_client_disable(CUPTI_RUNTIME_CALL), CUPTI_OK);
	ck_assert_int_eq(cupti_client_disable(CUPTI_CONTEXT), CUPTI_OK);
	ck_assert_int_eq(cupti_client_enable_driver_api(21, 0), CUPTI_OK);
	ck_assert_int_eq(cupti_client_enable_driver_api(22, 0), CUPTI_OK);
	ck_assert_int_eq(cupti_client_flush(0), CUPTI_OK);
	ck_assert(cupti_is_handed_over()); /* one call is left */
	ck_assert_int_eq(cupti_client_enable_runtime_api(23, 0), CUPTI_OK);
	ck_assert_int_eq(cupti_client_flush(0), CUPTI_OK);
	ck_assert(!cupti_is_handed_over());
	ck_assert_uint_eq(on_kinds & OURS, OURS);
}
END_TEST

/* CUPTI may have requested a buffer of ours just before the handover. */
START_TEST(records_in_our_buffers_are_copied_for_it_during_a_handover)
{
	int context;

	ask();
	ck_assert_int_eq(cupti_client_enable(CUPTI_CONCURRENT_KERNEL), CUPTI_OK);
	cupti_client_note_call(100);
	ck_assert_int_eq(cupti_client_enable_context(&context, CUPTI_MEMSET), CUPTI_OK);
	ck_assert(cupti_client_accepts_records());
	put_kernel(99, now_ns());
	put_kernel(105, now_ns()); /* no callback has reported this call */
	ck_assert_int_eq(cupti_client_flush(0), CUPTI_OK);
	ck_assert_uint_eq(theirs_valid[0] + theirs_valid[1], 208);
	ck_assert_int_eq(cupti_client_disable(CUPTI_CONCURRENT_KERNEL), CUPTI_OK);
	ck_assert_int_eq(cupti_client_disable_context(&context, CUPTI_MEMSET), CUPTI_OK);
	ck_assert_int_eq(cupti_client_flush(0), CUPTI_OK);
	ck_assert(!cupti_is_handed_over());
	ck_assert(!cupti_client_accepts_records());
}
END_TEST

START_TEST(single_runtime_calls_are_shared)
{
	session.library.callback_name = callback_name;
	ask();
	ck_assert_int_eq(cupti_client_enable_runtime_api(60, 1), CUPTI_INVALID_PARAMETER);
	ck_assert(!cupti_client_is_active);
	ck_assert_int_eq(cupti_client_enable_runtime_api(50, 1), CUPTI_OK);
	ck_assert(cupti_client_is_active && calls_on[1][50]);
	ck_assert(cupti_owns_callback(CUPTI_RUNTIME, 50)); /* its ids are followed */
	ck_assert_int_eq(cupti_client_enable(CUPTI_RUNTIME_CALL), CUPTI_OK);
	ck_assert_int_eq(cupti_client_disable(CUPTI_RUNTIME_CALL), CUPTI_OK);
	ck_assert(cupti_client_is_active && cupti_owns_callback(CUPTI_RUNTIME, 50));
	ck_assert_int_eq(cupti_client_enable_runtime_api(50, 0), CUPTI_OK);
	ck_assert(!cupti_client_is_active && !calls_on[1][50]);
	ck_assert(!cupti_owns_callback(CUPTI_RUNTIME, 50));
	ck_assert_int_eq(cupti_client_enable_runtime_api(50, 1), CUPTI_OK);
	ck_assert_int_eq(cupti_client_finalize(), CUPTI_OK);
	ck_assert(!cupti_client_is_active && !calls_on[1][50]);
	session.library.enable_runtime_api = NULL;
	ck_assert_int_eq(cupti_client_enable_runtime_api(50, 1), CUPTI_NOT_INITIALIZED);
}
END_TEST

/* A profiler that detaches from CUPTI and attaches again. */
START_TEST(after_finalize_it_may_subscribe_again)
{
	void *handle = NULL;

	ask();
	ck_assert_int_eq(cupti_client_subscribe(&handle, NULL, NULL), CUPTI_OK);
	ck_assert_int_eq(cupti_client_enable_callback(1, handle, CUPTI_RESOURCE, 5), CUPTI_OK);
	pthread_mutex_lock(&session.lock); /* as in a callback, while we flush */
	ck_assert_int_eq(cupti_client_finalize(), CUPTI_OK);
	pthread_mutex_unlock(&session.lock);
	ck_assert(!cupti_client_has_callback(CUPTI_RESOURCE, 5));
	ck_assert_int_eq(cupti_client_subscribe(&handle, NULL, NULL), CUPTI_OK);
	ck_assert_int_eq(cupti_client_subscribe(&handle, NULL, NULL), CUPTI_OTHER_SUBSCRIBER);
	ck_assert_int_eq(finalized, 0);
}
END_TEST

START_TEST(a_call_of_ours_that_never_returns_does_not_hold_it)
{
	int context;

	ask();
	ck_assert_int_eq(cupti_client_enable(CUPTI_CONCURRENT_KERNEL), CUPTI_OK);
	pthread_mutex_lock(&session.lock);
	put_kernel(100, now_ns());
	cupti_client_note_call(100);
	ck_assert_int_eq(cupti_client_flush(0), CUPTI_OK);
	ck_assert_uint_eq(theirs_valid[0], 208);
	ck_assert_int_eq(cupti_client_enable_context(&context, CUPTI_MEMSET), CUPTI_OK);
	ck_assert(!cupti_is_handed_over());
}
END_TEST

START_TEST(whole_graphs_are_recorded_again_after_a_handover)
{
	int context;

	config.graphs = CUPTI_GRAPHS_WHOLE;
	ask();
	ck_assert_int_eq(cupti_client_enable(CUPTI_GRAPH_TRACE), CUPTI_OK);
	ck_assert_int_eq(cupti_client_enable_context(&context, CUPTI_MEMSET), CUPTI_OK);
	ck_assert_uint_eq(on_kinds, BIT(CUPTI_GRAPH_TRACE));
	ck_assert_int_eq(cupti_client_disable(CUPTI_GRAPH_TRACE), CUPTI_OK);
	ck_assert_int_eq(cupti_client_disable_context(&context, CUPTI_MEMSET), CUPTI_OK);
	ck_assert_uint_eq(on_kinds, 0);
	ck_assert_int_eq(cupti_client_flush(0), CUPTI_OK);
	ck_assert(!cupti_is_handed_over());
	ck_assert_uint_ne(on_kinds & BIT(CUPTI_GRAPH_TRACE), 0);
}
END_TEST

START_TEST(what_only_the_client_enabled_is_distinguished)
{
	const uint32_t runtime[2] = { CUPTI_RUNTIME_CALL, 20 },
		       timed[2] = { CUPTI_DRIVER_CALL, 20 }, untimed[2] = { CUPTI_DRIVER_CALL, 21 },
		       kernel[2] = { CUPTI_CONCURRENT_KERNEL, 0 };

	ck_assert(!cupti_client_owns_record(
		runtime)); /* nobody has asked: then it is not known why it came */
	cupti_client_enable(CUPTI_RUNTIME_CALL);
	ck_assert(cupti_client_owns_record(runtime) && cupti_client_owns_record(untimed));
	ck_assert(!cupti_client_owns_record(timed) && !cupti_client_owns_record(kernel));
}
END_TEST

/* The second client's callback: stores 5 at the begin of a call and checks it at the end. */
static uint64_t found;

static void keep_five(void *data, int domain, uint32_t id, const void *what)
{
	const struct cupti_call *call = what;

	(void)data, (void)domain, (void)id;
	found = *call->data;
	if (call->site == CUPTI_ENTER)
		*call->data = 5;
}

/* Delivers a callback as the session receives it: first to ours, unless CUPTI is handed over. */
static uint64_t hears(uint32_t site, uint64_t *bits)
{
	struct cupti_call call = { .site = site, .data = bits };

	if (!cupti_is_handed_over() && site == CUPTI_ENTER)
		*bits = BITS;
	else if (!cupti_is_handed_over() && *bits == BITS)
		*bits = 0;
	found = 77;
	cupti_client_forward_callback(CUPTI_DRIVER, 307, &call);
	return found;
}

START_TEST(the_bits_of_a_call_are_whose_it_was_when_it_began)
{
	uint64_t shared = 0, across = 0, alone = 0, back = 0;
	void *handle;

	config.hands_over = true;
	config.calls = a_call;
	ck_assert_int_eq(cupti_client_subscribe(&handle, keep_five, NULL), CUPTI_OK);
	ck_assert_int_eq(cupti_client_enable_callback(1, handle, CUPTI_DRIVER, 307), CUPTI_OK);
	ck_assert_uint_eq(hears(CUPTI_ENTER, &shared), 0);
	ck_assert_uint_eq(shared, BITS);
	ck_assert_uint_eq(hears(CUPTI_EXIT, &shared), 0);
	ck_assert_uint_eq(hears(CUPTI_ENTER, &across), 0);
	cupti_client_enable(CUPTI_CONCURRENT_KERNEL);
	ck_assert(cupti_is_handed_over());
	ck_assert_uint_eq(hears(CUPTI_EXIT, &across), 0);
	ck_assert_uint_eq(hears(CUPTI_ENTER, &alone), 0);
	ck_assert_uint_eq(hears(CUPTI_EXIT, &alone), 5);
	ck_assert_uint_eq(hears(CUPTI_ENTER, &back), 0);
	cupti_client_disable(CUPTI_CONCURRENT_KERNEL);
	cupti_client_flush(1);
	ck_assert(!cupti_is_handed_over());
	ck_assert_uint_eq(hears(CUPTI_EXIT, &back), 5);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("cupti client");
	TCase *cases = tcase_create("all");
	SRunner *runner = srunner_create(suite);
	int failed;

	tcase_add_checked_fixture(cases, set_up, tear_down);
	tcase_add_test(cases, what_sets_cupti_up_does_not_reach_it);
	tcase_add_test(cases, a_kind_that_is_not_ours_is_on_for_the_session);
	tcase_add_test(cases, the_client_gets_the_nodes_of_graphs_that_we_record_whole);
	tcase_add_test(cases, only_records_of_the_session_are_given);
	tcase_add_test(cases, a_full_buffer_is_followed_by_another);
	tcase_add_test(cases, requests_of_its_own_buffers_are_reported_and_none_of_ours);
	tcase_add_test(cases, times_are_of_its_clock);
	tcase_add_test(cases, times_in_its_own_buffers_are_of_its_clock);
	tcase_add_test(cases, unfinished_queries_are_recorded_only_for_it);
	tcase_add_test(cases, unfinished_queries_are_recorded_for_it_during_a_handover);
	tcase_add_test(cases, what_only_the_client_enabled_is_distinguished);
	tcase_add_test(cases, the_bits_of_a_call_are_whose_it_was_when_it_began);
	tcase_add_test(cases, what_is_yielded_is_its_alone_until_it_has_fetched_the_rest);
	tcase_add_test(cases, callbacks_that_it_hears_stay_when_ours_go);
	tcase_add_test(cases, a_handle_that_newer_functions_take_is_cupti_s_own);
	tcase_add_test(cases, kinds_of_one_context_are_not_shared);
	tcase_add_test(cases, what_it_enabled_while_shared_stays_enabled);
	tcase_add_test(cases, records_in_our_buffers_are_copied_for_it_during_a_handover);
	tcase_add_test(cases, single_runtime_calls_are_shared);
	tcase_add_test(cases, after_finalize_it_may_subscribe_again);
	tcase_add_test(cases, a_call_of_ours_that_never_returns_does_not_hold_it);
	tcase_add_test(cases, whole_graphs_are_recorded_again_after_a_handover);
	tcase_set_timeout(cases, 20);
	suite_add_tcase(suite, cases);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed != 0;
}
