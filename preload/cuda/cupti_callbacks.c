/* SPDX-License-Identifier: MIT
 * A callback writes a record only if no interposed symbol and no other callback encloses it. Inside
 * the call of a symbol it lends its correlation id. It runs in the middle of the program's call. So
 * it takes no lock, allocates nothing, and calls neither CUDA nor CUPTI, except for the id of a
 * graph.
 */
#include "preload/cuda/cupti_callbacks.h"

#include "preload/cuda/traced_call.h"
#include "collector/cupti/correlation.h"
#include "collector/cupti/graph_trace.h"
#include "collector/cupti/session.h"
#include "collector/file/dictionary.h"
#include "collector/process/large_stack.h"
#include "collector/stream/stream.h"
#include "preload/cuda/cuda_abi.h"
#include "preload/cuda/driver_arguments.h"
#include "preload/cuda/driver_decode.h"
#include "preload/cuda/driver_functions.h"
#include "preload/cuda/native_stack.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static bool enabled, injected;

/* True if this thread's outermost call made a graph node, so its work was captured. */
static _Thread_local bool captured __attribute__((tls_model("initial-exec")));

/* The graph that this thread launched last: its id, and the correlation id of the launch. */
static _Thread_local struct {
	uint64_t correlation;
	uint32_t id;
} graph __attribute__((tls_model("initial-exec")));

static uint32_t symbol_name_id(const char *symbol)
{
	uint32_t name;
	int saved = errno;

	if (!symbol || !stream_enter())
		return 0;
	name = name_id_always(symbol, strlen(symbol));
	stream_leave();
	errno = saved;
	return name;
}

static void write_call(struct driver_function *callee, enum trace_kind kind, int result,
	const uint64_t *rest, size_t words)
{
	if (captured)
		call_mark_captured();
	if (kind == TRACE_ALLOC || kind == TRACE_FREE)
		call_write_memory(&callee->traced, kind, result, CALL_NO_STREAM, rest);
	else
		call_write(&callee->traced, kind, result, CALL_NO_STREAM, rest, words);
}

static uint64_t event_stream(const struct driver_function *callee, const struct driver_event *event)
{
	return call_stream(&callee->traced, (const void *)(uintptr_t)event->stream);
}

/* Returns the kernel's name, or NULL. CUPTI documents the symbol of launches only. Elsewhere the
 * member may be no address (LLNL/Caliper issue 294). So it is not read of these:
 *  - launches that failed,
 *  - launches without a context,
 *  - functions that launch no named kernel. */
static const char *launched_symbol(
	const struct driver_function *callee, const struct cupti_call *call, int result)
{
	return result == 0 && call->context_handle && callee->read != read_nothing ? call->symbol
										   : NULL;
}

static void write_driver_launch(struct driver_function *callee, const struct cupti_call *call,
	const struct driver_event *event, int result)
{
	const uint64_t rest[CALL_WORDS(trace_launch)] = {
		event_stream(callee, event),
		event->object,
		call_pair(event->grid[0], event->grid[1]),
		call_pair(event->grid[2], event->block[0]),
		call_pair(event->block[1], event->block[2]),
		call_pair(
			event->shared_bytes, symbol_name_id(launched_symbol(callee, call, result))),
	};

	write_call(callee, TRACE_LAUNCH, result, rest, CALL_WORDS(trace_launch));
}

static void write_driver_graph_launch(
	struct driver_function *callee, const struct driver_event *event, int result)
{
	const uint64_t rest[CALL_WORDS(trace_graph_launch)] = { event_stream(callee, event),
		event->object, call_pair(cupti_callbacks_graph_id(), 0) };

	write_call(callee, TRACE_GRAPH_LAUNCH, result, rest, CALL_WORDS(trace_graph_launch));
}

static void write_driver_copy(
	struct driver_function *callee, const struct driver_event *event, int result)
{
	bool set = callee->kind == DRIVER_MEMSET;
	const uint64_t rest[CALL_WORDS(trace_copy)] = {
		event_stream(callee, event),
		event->bytes,
		set ? call_pair(0, event->detail) : call_pair(event->detail, 0),
	};

	write_call(callee, set ? TRACE_SET : TRACE_COPY, result, rest, CALL_WORDS(trace_copy));
}

static void write_driver_sync(
	struct driver_function *callee, const struct driver_event *event, int result)
{
	const uint64_t rest[CALL_WORDS(trace_sync)] = {
		callee->streamed ? event_stream(callee, event) : 0, event->object,
		call_pair(event->detail, 0)
	};

	write_call(callee, TRACE_SYNC, result, rest, CALL_WORDS(trace_sync));
}

static void write_driver_memory(
	struct driver_function *callee, const struct driver_event *event, int result)
{
	const uint64_t rest[CALL_WORDS(trace_memory)] = {
		event->object,
		event->bytes,
		callee->streamed ? event_stream(callee, event) : 0,
		call_pair(event->detail,
			event->flags | (callee->kind == DRIVER_ALLOC ? call_context_flags() : 0)),
	};

	write_call(callee, callee->kind == DRIVER_ALLOC ? TRACE_ALLOC : TRACE_FREE, result, rest,
		CALL_WORDS(trace_memory));
}

static void write_driver_mapping(
	struct driver_function *callee, const struct driver_event *event, int result)
{
	const uint64_t rest[CALL_WORDS(trace_mapping)] = { event->object, event->bytes,
		event->handle, call_pair(event->detail, 0) };

	write_call(callee, TRACE_MAPPING, result, rest, CALL_WORDS(trace_mapping));
}

/* The call itself has no record: what it returned is worth one. */
static void write_memory_query(const struct driver_event *event)
{
	const int saved = errno;
	struct trace_device_memory *record;

	if (!event->total || call_tls.device == UINT32_MAX || !call_enabled || !stream_enter())
		return;
	record = stream_record(TRACE_DEVICE_MEMORY, sizeof *record);
	if (record) {
		record->free_bytes = event->bytes;
		record->total_bytes = event->total;
		record->process_bytes = 0;
		record->device = call_tls.device;
		record->reason = TRACE_SAMPLE_QUERY;
		stream_commit();
	}
	stream_leave();
	errno = saved;
}

static void write_driver_event(
	struct driver_function *callee, const struct cupti_call *call, int result)
{
	struct driver_event event = { .detail = callee->detail, .flags = callee->flags };

	callee->read(&event, callee, call->arguments, result == 0);
	switch (callee->kind) {
	case DRIVER_LAUNCH:
		write_driver_launch(callee, call, &event, result);
		break;
	case DRIVER_GRAPH_LAUNCH:
		write_driver_graph_launch(callee, &event, result);
		break;
	case DRIVER_COPY:
	case DRIVER_MEMSET:
		write_driver_copy(callee, &event, result);
		break;
	case DRIVER_SYNC:
		write_driver_sync(callee, &event, result);
		break;
	case DRIVER_ALLOC:
	case DRIVER_FREE:
		write_driver_memory(callee, &event, result);
		break;
	case DRIVER_MAPPING:
		write_driver_mapping(callee, &event, result);
		break;
	case DRIVER_MEMORY_QUERY:
		write_memory_query(&event);
		break;
	case DRIVER_CAPTURE_BEGIN:
		if (result == 0)
			call_capture_began();
		break;
	case DRIVER_CAPTURE_END:
		/* The capture has ended with these errors, too. */
		if (result == 0 || result == CUDA_ERROR_CAPTURE_INVALIDATED ||
			result == CUDA_ERROR_CAPTURE_UNJOINED)
			call_capture_ended();
		break;
	}
}

/* True if this call lends its id to an enclosing call. Only calls of the kinds that the symbols
 * record do. Otherwise a copy inside a launch could lend its id in place of the launch's. */
static bool lends_correlation(const struct driver_function *callee)
{
	return callee->kind == DRIVER_LAUNCH || callee->kind == DRIVER_GRAPH_LAUNCH ||
	       callee->kind == DRIVER_ALLOC || callee->kind == DRIVER_FREE;
}

/* Drops a call that began before CUPTI was handed over to another client: its end was not seen.
 * Calls of symbols are recognised by call_begin itself. */
static void drop_unended_call(void)
{
	static _Thread_local uint32_t seen __attribute__((tls_model("initial-exec")));
	uint32_t handovers = atomic_load_explicit(&cupti_handovers, memory_order_relaxed);

	if (__builtin_expect(handovers == seen, 1))
		return;
	seen = handovers;
	if (call_tls.depth && !call_tls.caller)
		call_end(0);
}

static void begin_driver_call(const struct driver_function *callee, const struct cupti_call *call)
{
	uint64_t correlation = correlation_of_call(call->correlation);
	uint32_t outer;

	drop_unended_call();
	outer = call_begin(NULL);

	if (outer == 0)
		captured = false;
	if (outer == 0 || lends_correlation(callee))
		call_correlate(correlation);
	if (callee->kind == DRIVER_GRAPH_LAUNCH) {
		graph.correlation = correlation;
		graph.id = cupti_graph_exec_id(
			(void *)(uintptr_t)((const struct arguments_graph_launch *)call->arguments)
				->exec);
	}
	*call->data = call_ticket(outer);
}

static void end_driver_call(struct driver_function *callee, const struct cupti_call *call)
{
	uint32_t outer;

	if (!call_is_ticket(*call->data, &outer)) /* its begin was not seen */
		return;
	*call->data = 0;
	if (outer == 0 || lends_correlation(callee))
		call_set_context(cupti_device_of(call->context), call->context);
	if (outer == 0) {
		call_returned();
		write_driver_event(callee, call, *(const int *)call->result);
	}
	call_end(outer);
}

static void on_driver_call(uint32_t cbid, const struct cupti_call *call)
{
	struct driver_function *callee = driver_function(cbid);

	if (!callee)
		return;
	if (call->site == CUPTI_ENTER)
		begin_driver_call(callee, call);
	else
		end_driver_call(callee, call);
}

/* Of events only the callback is used, and captured work has no records before it is launched. */
static bool leaves_record(uint32_t cbid)
{
	const struct driver_function *callee = driver_function(cbid);

	return callee && callee->kind != DRIVER_CAPTURE_BEGIN &&
	       callee->kind != DRIVER_CAPTURE_END &&
	       !(callee->kind == DRIVER_SYNC && callee->detail == TRACE_EVENT_RECORD);
}

static bool is_own_ticket(uint64_t bits)
{
	uint32_t outer;

	return call_is_ticket(bits, &outer);
}

static void on_node_created(void)
{
	captured = true;
}

/* Records that a context ends, which frees all its memory. This may happen inside any call, whose
 * state is restored afterwards. */
static void on_context_ends(uint32_t context, uint32_t device)
{
	static struct traced_function traced = { .name = "(context destroyed)",
		.type = CALL_RESET,
		.flags = TRACE_CALL_DRIVER | TRACE_CALL_CALLBACK };
	const struct call_tls outer = call_tls;

	if (outer.depth && outer.resets) {
		call_set_context(device, context);
		return;
	}
	call_end(0);
	call_begin(NULL);
	call_set_context(device, context);
	call_write_reset(&traced, 0);
	call_tls = outer;
}

static struct cupti_config config = {
	.calls = driver_function_ids,
	.timed_calls = driver_timed_ids,
	.on_call = on_driver_call,
	.leaves_record = leaves_record,
	.is_own_data = is_own_ticket,
	.on_node_created = on_node_created,
	.on_context_ends = on_context_ends,
};

/* Returns `setting` if it is a path, not a word such as "on"; else NULL. */
static const char *library_path(const char *setting)
{
	return setting && strchr(setting, '/') ? setting : NULL;
}

/* Returns a copy of the path: the program may change its environment before it is needed. NULL:
 * there is none. */
static const char *toolkit_path(const char *home)
{
	static char copy[4096];

	if (!home || *home != '/' || strlen(home) >= sizeof copy)
		return NULL;
	return strcpy(copy, home);
}

void cupti_callbacks_configure(
	bool wanted, const char *setting, bool hands_over, uint64_t buffer_bytes, bool by_driver)
{
	const char *home = getenv("CUDA_HOME");

	config.library = library_path(setting);
	config.toolkit = toolkit_path(home ? home : getenv("CUDA_PATH"));
	config.hands_over = hands_over;
	config.buffer_bytes = buffer_bytes;
	injected = by_driver;
	enabled = wanted;
}

void cupti_callbacks_set_graphs(enum cupti_graphs graphs, uint64_t nodes_per_s)
{
	config.graphs = graphs;
	config.graph_nodes_max = nodes_per_s ? nodes_per_s : CUPTI_GRAPH_NODES_MAX;
}

void cupti_callbacks_start_if_needed(void)
{
	if (__builtin_expect(enabled && !injected, 0))
		cupti_start(&config);
}

void cupti_callbacks_start(void)
{
	if (enabled)
		cupti_start(&config);
}

uint32_t cupti_callbacks_graph_id(void)
{
	return graph.correlation && graph.correlation == call_tls.correlation ? graph.id : 0;
}

static void start_injected(void *unused)
{
	(void)unused;
	native_stack_load(); /* not call_prepare: the first context opens the trace */
	call_hook_first_call();
	if (enabled)
		cupti_start(&config);
}

/* Called by the driver inside cuInit. Always returns success, so that CUDA continues in any
 * case. */
__attribute__((visibility("default"))) int InitializeInjection(void);
int InitializeInjection(void)
{
	large_stack_run(start_injected, NULL);
	return 1;
}
