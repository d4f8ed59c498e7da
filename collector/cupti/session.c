/* SPDX-License-Identifier: MIT
 * Starts the session once, describes it in META, and ends it at exit.
 */
#include "collector/cupti/flush_thread.h"
#include "collector/cupti/session.h"

#include "collector/process/clock.h"
#include "collector/cupti/buffers.h"
#include "collector/cupti/call_ids.h"
#include "collector/cupti/client.h"
#include "collector/cupti/client_buffers.h"
#include "collector/cupti/session_state.h"
#include "collector/cupti/subscription.h"
#include "collector/cupti/version_issues.h"
#include "collector/cupti/handover.h"
#include "collector/file/dictionary.h"
#include "collector/process/fork_wiped_memory.h"
#include "collector/cupti/activity_records.h"
#include "collector/cupti/devices.h"
#include "collector/process/large_stack.h"
#include "collector/process/signal_guard.h"
#include "collector/stream/stream.h"
#include "collector/file/trace_file.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BUFFERS_DEFAULT (UINT64_C(64) << 20)
/* How long an exiting program waits for CUPTI. It usually takes milliseconds. HPCToolkit gives the
 * same flush four seconds, after reports of flushes that never returned. */
#define END_TIMEOUT_S 10u

/* Inherited by a forked child, which must not start a session. */
static atomic_int started;

/* Returns the meaning of a result code, for the user. */
static const char *describe_result(const struct cupti_library *cupti, int result)
{
	const char *text = NULL;

	switch (result) {
	case CUPTI_OTHER_SUBSCRIBER:
	case CUPTI_END_OF_BUFFER: /* old releases, to a second subscriber */
		return "another tool uses CUPTI; run without it";
	case CUPTI_NO_PRIVILEGES:
		return "the driver does not let this user profile";
	case CUPTI_HARDWARE_BUSY:
		return "another tool uses the GPU's counters";
	case CUPTI_UNKNOWN_ERROR:
		return "CUPTI found no driver that it can use";
	}
	if (cupti->result_text && cupti->result_text(result, &text) == CUPTI_OK && text)
		return text;
	return "CUPTI refused";
}

/* Handles a callback of CUPTI's domain STATE: writes the first warning and every error to META. */
static void on_state(uint32_t id, const struct cupti_state *state)
{
	const char *message = state->message ? state->message : "no reason given";

	if (id == CUPTI_WARNING) { /* one warning is enough */
		if (!atomic_exchange(&cupti_session->warned, true))
			cupti_set_state("warning.cupti_state", "CUPTI warning: %.400s (%d).",
				message, state->result);
		return;
	}
	atomic_store_explicit(&cupti_session->cupti_failed, true, memory_order_relaxed);
	/* CUPTI has removed itself from the process and must not be called any more. */
	if (id == CUPTI_FATAL_ERROR)
		atomic_store_explicit(&cupti_session->running, false, memory_order_release);
	cupti_set_state("source.cupti", "partial: CUPTI failed during the run: %.400s (%d)",
		message, state->result);
}

/* Reports a driver call with the id that its record shall have. The program itself may call a
 * function whose callback is enabled for pperf's own calls only, also within a runtime call, whose
 * first driver call it must not be taken for. */
static void report_call_by_id(
	const struct cupti_config *config, uint32_t id, const struct cupti_call *call)
{
	struct cupti_call copy = *call;

	if (call->site == CUPTI_ENTER &&
		(call_ids_own_call || !call_ids_owns_callback(CUPTI_DRIVER, id)))
		copy.correlation = call_ids_on_driver_call(call->correlation);
	config->on_call(id, &copy);
}

static void on_runtime_call(const struct cupti_call *call)
{
	if (call->site == CUPTI_ENTER)
		cupti_client_on_call(call->correlation);
	if (!cupti_is_handed_over())
		call_ids_on_runtime_call(call);
}

/* CUresult codes after which every later CUDA call returns the same error (comments in cuda.h).
 * Those from ERROR_HARDWARE_STACK to ERROR_LAUNCH_FAILED are contiguous. */
enum sticky_error {
	ERROR_ECC_UNCORRECTABLE = 214,
	ERROR_NVLINK_UNCORRECTABLE = 220,
	ERROR_CONTAINED = 226,
	ERROR_ILLEGAL_ADDRESS = 700,
	ERROR_LAUNCH_TIMEOUT = 702,
	ERROR_ASSERT = 710,
	ERROR_HARDWARE_STACK = 714,
	ERROR_LAUNCH_FAILED = 719,
	ERROR_TENSOR_MEMORY_LEAK = 721,
};

static bool is_sticky_error(int error)
{
	switch (error) {
	case ERROR_ECC_UNCORRECTABLE:
	case ERROR_NVLINK_UNCORRECTABLE:
	case ERROR_CONTAINED:
	case ERROR_ILLEGAL_ADDRESS:
	case ERROR_LAUNCH_TIMEOUT:
	case ERROR_ASSERT:
	case ERROR_TENSOR_MEMORY_LEAK:
		return true;
	default:
		return error >= ERROR_HARDWARE_STACK && error <= ERROR_LAUNCH_FAILED;
	}
}

static inline void note_result(const struct cupti_call *call)
{
	const int *result = call->result;

	if (__builtin_expect(result && *result, 0) && is_sticky_error(*result))
		atomic_store_explicit(&cupti_session->cuda_failed, true, memory_order_relaxed);
}

/* Notes at the begin of a call that records are expected. At its end its records may have been
 * delivered already. */
static inline void expect_record(const struct cupti_config *config, uint32_t id)
{
	if (__builtin_expect(
		    !atomic_load_explicit(&cupti_session->records_expected, memory_order_relaxed),
		    0) &&
		config->leaves_record(id))
		atomic_store_explicit(&cupti_session->records_expected, true, memory_order_relaxed);
}

/* CUPTI's callback. It may also run in a forked child, where `config` is NULL and nothing is
 * done. */
static void on_callback(void *data, int domain, uint32_t id, const void *what)
{
	const struct cupti_config *config = cupti_session->config;
	int saved;

	(void)data;
	if (__builtin_expect(!config, 0))
		return;
	if (__builtin_expect(domain == CUPTI_DRIVER, 1)) {
		const struct cupti_call *call = what;

		if (call->site == CUPTI_ENTER)
			cupti_client_on_call(call->correlation);
		else
			note_result(call);
		if (__builtin_expect(!cupti_is_handed_over(), 1)) {
			if (call_ids_in_use())
				report_call_by_id(config, id, call);
			else
				config->on_call(id, what);
			cupti_flush_start_if_needed(what);
			if (call->site == CUPTI_ENTER)
				expect_record(config, id);
		}
		cupti_client_forward_callback(domain, id, what);
		return;
	}
	saved = errno;
	if (domain == CUPTI_RUNTIME)
		on_runtime_call(what);
	else if (domain == CUPTI_RESOURCE && !cupti_is_handed_over())
		cupti_on_resource(id, what);
	else if (domain == CUPTI_STATE)
		on_state(id, what);
	cupti_client_forward_callback(domain, id, what);
	errno = saved;
}

static void on_buffer_requested(uint8_t **buffer, size_t *bytes, size_t *max_records)
{
	*max_records = 0; /* as many as fit */
	*bytes = 0;
	*buffer = NULL;
	if (cupti_session->config && cupti_is_handed_over())
		client_buffer_forward_request(buffer, bytes, max_records);
	else if (cupti_session->config)
		*buffer = cupti_buffers_acquire(bytes);
	/* These versions crash if they get no buffer. */
	if (!*buffer && cupti_session->library.version < CUPTI_VERSION_12_9)
		*buffer = cupti_buffers_scratch(bytes);
}

/* Releases a buffer unread. Of a scratch buffer, the number of records is unknown. */
static void drop_buffer(const uint8_t *buffer, size_t valid)
{
	if (valid)
		trace_lose(TRACE_LOST_CUPTI_UNREAD, 1);
	cupti_buffers_release(buffer);
}

/* Completes a buffer of ours. The trace does not have the time of a handover, but CUPTI may have
 * requested the buffer just before, and then the client's records are in it. */
static void complete_during_handover(uint8_t *buffer, size_t valid)
{
	if (!valid || !cupti_buffers_contains(buffer) || !cupti_client_accepts_records()) {
		drop_buffer(buffer, valid);
		return;
	}
	cupti_client_deliver(&cupti_session->library, buffer, valid, 0);
	cupti_buffers_release(buffer);
}

static void on_buffer_completed(
	void *context, uint32_t stream, uint8_t *buffer, size_t bytes, size_t valid)
{
	const struct cupti_library *cupti = &cupti_session->library;
	bool ours = cupti_buffers_contains(buffer);
	size_t dropped = 0;

	if (!cupti_session->config)
		return;
	if (!ours && buffer && !cupti_buffers_is_scratch(buffer)) {
		cupti_client_complete_buffer(cupti, context, stream, buffer, bytes, valid);
		return;
	}
	if (cupti_is_handed_over()) {
		complete_during_handover(buffer, valid);
		return;
	}
	if (cupti->dropped(NULL, 0, &dropped) != CUPTI_OK)
		dropped = 0;
	if (!ours)
		drop_buffer(buffer, valid);
	activity_records_read(cupti, buffer, ours ? valid : 0, dropped);
	cupti_client_deliver(cupti, buffer, ours ? valid : 0, dropped);
	cupti_buffers_release(buffer);
	atomic_store_explicit(&cupti_session->records_expected, false, memory_order_relaxed);
	atomic_fetch_add_explicit(&cupti_session->completed_buffers, 1, memory_order_relaxed);
}

static void set_flag(const struct cupti_library *cupti, int attribute, uint8_t value)
{
	size_t bytes = sizeof value;

	cupti->set_attribute(attribute, &bytes, &value);
}

/* Sets attributes of CUPTI. A release that does not know one works without it. */
static void set_attributes(const struct cupti_library *cupti)
{
	if (cupti->set_thread_id_type)
		cupti->set_thread_id_type(CUPTI_THREAD_ID_SYSTEM);
	if (!cupti->set_attribute)
		return;
	/* Up to 13.0, long runs with graphs could crash with CUPTI's buffers on the device. */
	if (cupti->version < CUPTI_VERSION_13_0_1)
		set_flag(cupti, CUPTI_HOST_PINNED, 1);
	/* Since 13.0 each thread would hold a buffer for its few records. With many threads, none
	 * would be left for the GPU's records. */
	if (cupti->version >= CUPTI_VERSION_13_0)
		set_flag(cupti, CUPTI_BUFFER_EACH_THREAD, 0);
}

/* Returns CUPTI's result code. */
static int make_and_register_buffers(const struct cupti_session *s)
{
	const uint64_t bytes = s->config->buffer_bytes;

	if (!cupti_buffers_setup(bytes ? bytes : BUFFERS_DEFAULT))
		return CUPTI_NO_MEMORY;
	return s->library.register_buffers(on_buffer_requested, on_buffer_completed);
}

/* Follows the order that CUPTI requires. Subscribing comes first, because its result shows whether
 * CUPTI is available. */
static void open_session(struct cupti_session *s)
{
	const struct cupti_library *cupti = &s->library;
	int result = cupti->subscribe(&s->subscriber, on_callback, NULL);

	if (result != CUPTI_OK) {
		cupti_set_state(
			"source.cupti", "off: %s (%d)", describe_result(cupti, result), result);
		return;
	}
	atomic_store_explicit(&s->running, true, memory_order_release);
	set_attributes(cupti);
	result = make_and_register_buffers(s);
	if (result != CUPTI_OK)
		cupti_note_refusal(s, "buffers", result);
	cupti_enable_callbacks(s);
	if (result == CUPTI_OK)
		cupti_enable_kinds(s);
	cupti_set_source(s);
}

static void write_cupti_versions(const struct cupti_library *cupti)
{
	cupti_set_state("version.cupti", "%u", cupti->version);
	cupti_set_state("cupti.library", "%s", cupti->path);
	if (cupti->driver_version)
		cupti_set_state("version.cuda_driver", "%d", cupti->driver_version);
	cupti_write_version_issues(cupti->version);
}

/* The first flush returns what is complete, before a call that may not return. */
static bool final_flush_returns_buffer(struct cupti_session *s)
{
	const uint32_t completed_buffers = atomic_load(&s->completed_buffers);

	s->library.flush_all(0);
	if (cupti_runs())
		s->library.flush_all(CUPTI_FLUSH_FORCED);
	return atomic_load(&s->completed_buffers) != completed_buffers;
}

/* States why CUPTI returned no buffer although records were expected. A forced flush also returns
 * incomplete records. CUPTI has the record of a context at once. So if this one does not arrive
 * either, our buffer callbacks are not called any more. */
static void explain_missing_buffers(struct cupti_session *s)
{
	if (atomic_load(&s->cuda_failed)) {
		cupti_set_state("source.cupti",
			"partial: CUPTI returned no records after a CUDA error, which the "
			"program has received");
		return;
	}
	if (!s->library.enable_and_dump || s->library.enable_and_dump(CUPTI_CONTEXT) != CUPTI_OK ||
		final_flush_returns_buffer(s))
		return;
	cupti_set_state("source.cupti",
		"partial: another profiler in the program has replaced CUPTI's "
		"buffer callbacks, through functions obtained with dlsym; run with "
		"PPERF_CUPTI=0, or without the other profiler");
}

/* After a sticky error, kinds stay enabled: disabling them is known to deadlock (CUPTI's release
 * notes of 13.0 Update 1). */
static void flush_finally(struct cupti_session *s)
{
	const bool expected = atomic_load(&s->records_expected);

	if (final_flush_returns_buffer(s) || !expected)
		cupti_withdraw_overdue(s);
	else if (!atomic_load(&s->cupti_failed))
		explain_missing_buffers(s);
	if (atomic_load(&s->cuda_failed) || atomic_load(&s->cupti_failed) || !cupti_runs())
		return;
	cupti_disable_kinds(s);
	if (cupti_runs())
		s->library.flush_all(CUPTI_FLUSH_FORCED);
}

/* Completed records are read, incomplete ones are dropped. Callbacks stay registered for ever. */
static void finish_session(struct cupti_session *s)
{
	cupti_client_end();
	pthread_mutex_lock(&s->lock);
	s->process_ending = true;
	if (cupti_runs() && !cupti_is_handed_over())
		flush_finally(s);
	pthread_mutex_unlock(&s->lock);
}

/* Runs at exit, before the driver ends itself. If CUPTI does not return, it is left alone: its
 * locks may be held, and so may be the session's. */
static void end_session_on_stack(void *unused)
{
	struct cupti_session *s = cupti_session;

	(void)unused;
	if (!s || !s->config) /* a forked child */
		return;
	if (trace_header()) /* a program that only listed the devices leaves no trace */
		gpu_device_record();
	if (!cupti_runs() || cupti_flush_stop(finish_session, END_TIMEOUT_S))
		return;
	s->process_ending = true;
	atomic_store_explicit(&s->running, false, memory_order_release);
	cupti_set_state("source.cupti",
		"partial: CUPTI did not return from its last flush within %u s, so GPU "
		"records may be missing; end the program's GPU work before the program",
		END_TIMEOUT_S);
}

/* Runs on a large stack, because any thread may end the program. If pperf has no thread of its own,
 * CUPTI's last records are read on that one. */
static void end_session(void)
{
	large_stack_run(end_session_on_stack, NULL);
}

/* CUDA does not work in a child made by fork, so CUPTI has no records there. */
static void write_absent_in_child(void)
{
	cupti_set_state("source.cupti", "absent");
}

static bool allocate_session(const struct cupti_config *config)
{
	cupti_session = fork_wiped_alloc(sizeof *cupti_session);
	if (cupti_session)
		cupti_session->config = config;
	else
		cupti_set_state("source.cupti", "off: out of memory (%d)", CUPTI_NO_MEMORY);
	return cupti_session;
}

static void start_session(void *data)
{
	const struct cupti_config *config = data;
	char reason[CUPTI_REASON_BYTES];
	bool loaded;

	if (!allocate_session(config))
		return;
	loaded = cupti_load(
		&cupti_session->library, config->library, config->toolkit, reason, sizeof reason);
	/* CUPTI's own handlers are registered by now. The last one registered runs first. */
	atexit(end_session);
	pthread_atfork(NULL, NULL, write_absent_in_child);
	if (!loaded) {
		cupti_set_state("source.cupti", "off: %s (0)", reason);
		return;
	}
	write_cupti_versions(&cupti_session->library);
	pthread_mutex_lock(&cupti_session->lock);
	open_session(cupti_session);
	pthread_mutex_unlock(&cupti_session->lock);
}

/* The threads that CUPTI creates meanwhile inherit the signal mask. With all signals blocked, none
 * of the program's signals is delivered to them. */
void cupti_start(const struct cupti_config *config)
{
	struct signal_guard guard;

	if (atomic_load_explicit(&started, memory_order_relaxed) || atomic_exchange(&started, 1))
		return;
	signal_guard_begin(&guard);
	large_stack_run(start_session, (void *)(uintptr_t)config);
	signal_guard_end(&guard);
}
