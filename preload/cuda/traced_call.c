/* SPDX-License-Identifier: MIT */
#include "preload/cuda/traced_call.h"

#include "collector/file/dictionary.h"
#include "collector/stream/call_record_write.h"
#include "collector/stream/held_memory.h"
#include "collector/stream/stream.h"
#include "preload/python/frames.h"
#include "preload/cuda/driver_query.h"
#include "preload/cuda/real.h"
#include "preload/cuda/native_stack.h"

#include <errno.h>
#include <string.h>

_Thread_local struct call_tls call_tls;
bool call_enabled = true;

static unsigned with_stack; /* a bit for each enum call_type */
static _Atomic int captures;

bool call_configure(bool enabled, const char *stacks)
{
	const bool off = stacks && !strcmp(stacks, "off"),
		   launch = stacks && !strcmp(stacks, "launch");

	call_enabled = enabled;
	with_stack = off ? 0 : launch ? 1u << CALL_ALLOC | 1u << CALL_LAUNCH : 1u << CALL_ALLOC;
	if (enabled && with_stack)
		native_stack_enable();
	return !stacks || off || launch || !strcmp(stacks, "alloc");
}

static struct call_hooks call_hooks;

void call_set_hooks(const struct call_hooks *hooks)
{
	call_hooks = *hooks;
}

void call_hook_first_call(void)
{
	if (call_hooks.first_call)
		call_hooks.first_call();
}

void call_hook_device_memory(const void *caller, bool pool)
{
	if (call_hooks.device_memory)
		call_hooks.device_memory(caller, pool);
}

uint32_t call_allocation_stream(const void *caller, void **stream)
{
	if (!call_hooks.allocation_stream ||
		!call_hooks.allocation_stream(caller, driver_device(), stream))
		return 0;
	return atomic_load_explicit(&captures, memory_order_relaxed) &&
			       driver_is_capturing(*stream, false)
		       ? TRACE_MEMORY_FOR_STREAM | TRACE_MEMORY_FOR_CAPTURE
		       : TRACE_MEMORY_FOR_STREAM;
}

void call_prepare(void)
{
	int saved = errno;

	if (call_enabled && stream_enter())
		stream_leave();
	native_stack_load();
	errno = saved;
}

void call_forked(void)
{
	atomic_store(&captures, 0);
	native_stack_forked();
}

void call_capture_began(void)
{
	atomic_fetch_add(&captures, 1);
}

/* The end of a capture whose begin was not seen may be reported, so the count stops at 0. */
void call_capture_ended(void)
{
	int open = atomic_load(&captures);

	while (open > 0 && !atomic_compare_exchange_weak(&captures, &open, open - 1))
		continue;
}

static inline __attribute__((always_inline)) bool is_captured(
	const struct traced_function *traced, const void *stream)
{
	if (call_tls.captured)
		return true;
	if (traced->flags & TRACE_CALL_CALLBACK || stream == CALL_NO_STREAM ||
		!atomic_load_explicit(&captures, memory_order_relaxed))
		return false;
	return driver_is_capturing(stream, traced->per_thread);
}

static inline __attribute__((always_inline)) uint32_t site_api(struct traced_function *traced)
{
	uint32_t api = atomic_load_explicit(&traced->api, memory_order_relaxed);

	if (!api) {
		api = name_id_always(traced->name, strlen(traced->name));
		atomic_store_explicit(&traced->api, api, memory_order_relaxed);
	}
	return api;
}

/* Returns whether PPERF_PYSTACKS requests Python stacks for calls of the function. */
static inline bool wants_python_stack(const struct traced_function *traced)
{
	return (traced->type == CALL_ALLOC && python_stack_mode != PYTHON_STACKS_OFF) ||
	       (traced->type == CALL_LAUNCH &&
		       __builtin_expect(python_stack_mode == PYTHON_STACKS_LAUNCH, 0));
}

/* Captures the call's stack and returns its id. If PPERF_PYSTACKS requests whole Python stacks and
 * there is one, it replaces the native stack; a line of Python is added to it. `end`: when the call
 * ended. *ticks: the cost. */
static inline __attribute__((always_inline)) uint32_t capture_stack(
	const struct traced_function *traced, uint64_t end, uint64_t *ticks)
{
	const bool native = with_stack >> traced->type & 1, of_python = wants_python_stack(traced),
		   only_line = python_stack_mode == PYTHON_STACKS_OWN;
	uint32_t stack;
	bool first;
	int saved;

	if (!native && !of_python)
		return 0;
	saved = errno;
	stack = !of_python  ? 0
		: only_line ? python_own_line_capture(&first)
			    : python_stack_capture();
	if (native && (!stack || only_line))
		stack = mixed_stack_id(native_stack_capture(call_tls.caller), stack);
	errno = saved;
	if (stack || native)
		*ticks = clock_now() - end;
	return stack;
}

/* Returns the device of the call. A callback may not query the driver, and for launches the query
 * is not worth its cost: CUPTI says where they run. */
static inline uint32_t call_device(const struct traced_function *traced)
{
	return traced->flags & TRACE_CALL_CALLBACK || traced->type == CALL_LAUNCH ||
			       traced->type == CALL_RESET
		       ? call_tls.device
		       : driver_device();
}

bool call_write(struct traced_function *traced, enum trace_kind kind, int result,
	const void *stream, const uint64_t *rest, size_t words)
{
	uint64_t end, stack_ticks = 0;
	uint32_t flags, stack;
	struct call_record record;
	struct stream *own; /* the thread's stream of records */

	if (!call_enabled)
		return false;
	end = __builtin_expect(call_tls.end == 0, 1) ? clock_now() : call_tls.end;
	own = call_record_begin(kind, call_tls.correlation);
	if (!own)
		return false;
	flags = traced->flags | (is_captured(traced, stream) ? TRACE_CALL_CAPTURED : 0u);
	stack = capture_stack(traced, end, &stack_ticks);
	record = (struct call_record){
		.begin = call_tls.begin,
		.stamp = end,
		.correlation = call_tls.correlation,
		.result_api = call_pair((uint32_t)result, site_api(traced)),
		.stack_device = call_pair(stack, call_device(traced)),
		.rest = rest,
		.words = words,
		.head = call_record_head(kind, flags, words),
		.stack_ticks = stack_ticks,
	};
	return call_record_end(own, &record);
}

#define MEMORY_ALLOCATION_FAILED 2u /* cudaErrorMemoryAllocation, CUDA_ERROR_OUT_OF_MEMORY */

/* Updates which memory is held. */
static void update_held_memory(const struct trace_memory *record)
{
	const bool array = record->memory_kind == TRACE_MEMORY_ARRAY;
	const struct held_block block = { .address = record->address,
		.bytes = record->bytes,
		.stream = record->stream,
		.begin = record->call.stamp,
		.node = record->call.head.node,
		.stack = record->call.stack,
		.device = record->call.device,
		.api = record->call.api,
		.flags = record->flags,
		.memory_kind = (uint8_t)record->memory_kind,
		.space = array ? HELD_ARRAY : HELD_MEMORY };

	if (record->call.result == MEMORY_ALLOCATION_FAILED &&
		record->call.head.kind == TRACE_ALLOC)
		held_memory_ran_out(record->bytes, true);
	if (record->call.result != 0)
		return;
	if (record->flags & TRACE_MEMORY_ALL)
		held_memory_remove_context(
			block.device, record->flags >> TRACE_MEMORY_CONTEXT_SHIFT);
	else if (block.address && record->call.head.kind == TRACE_ALLOC)
		held_memory_add(&block);
	else if (block.address)
		held_memory_remove((enum held_space)block.space, block.address,
			record->call.stamp - record->call.duration);
}

/* Writes the record under the lock of held_memory.h. What it takes from the linker or the
 * dictionary was obtained before. `call`: the record's first members, without stamp. */
static bool write_held(enum trace_kind kind, const struct trace_call *call, const uint64_t *rest)
{
	struct trace_memory record, *written;
	struct signal_guard guard;

	held_memory_lock(&guard);
	written = stream_record(kind, sizeof *written);
	if (written) {
		const struct trace_head head = written->call.head;
		const uint64_t stamp = written->call.stamp;

		written->call = *call;
		written->call.head = head;
		written->call.head.flags = call->head.flags;
		written->call.stamp = stamp;
		written->call.duration = stamp - call_tls.begin;
		memcpy(&written->address, rest, sizeof record - sizeof *call);
		record = *written;
		stream_commit();
		update_held_memory(&record);
	}
	held_memory_unlock(&guard);
	return written != NULL;
}

bool call_write_memory(struct traced_function *traced, enum trace_kind kind, int result,
	const void *stream, const uint64_t *rest)
{
	struct trace_call call = { .result = (uint32_t)result };
	uint64_t stack_ticks = 0, end;
	bool written;

	if (!held_memory_wanted || !call_enabled)
		return call_write(traced, kind, result, stream, rest, CALL_WORDS(trace_memory));
	end = clock_now();
	if (!stream_enter())
		return false;
	call.head.flags = (uint8_t)(traced->flags |
				    (is_captured(traced, stream) ? TRACE_CALL_CAPTURED : 0u));
	call.stack = capture_stack(traced, end, &stack_ticks);
	call.correlation = call_tls.correlation;
	call.api = site_api(traced);
	call.device = call_device(traced);
	written = write_held(kind, &call, rest);
	if (written && stack_ticks)
		stream_write_stack_cost(end, stack_ticks);
	stream_leave();
	return written;
}

bool call_write_reset(struct traced_function *traced, int result)
{
	const uint64_t rest[CALL_WORDS(trace_memory)] = {
		[3] = call_pair(TRACE_MEMORY_UNKNOWN, TRACE_MEMORY_ALL | call_context_flags())
	};

	return call_write_memory(traced, TRACE_FREE, result, CALL_NO_STREAM, rest);
}

/* Returns whether no thread has claimed the device before. */
static bool claim_first_allocation(uint32_t device)
{
	static _Atomic uint64_t claimed; /* one bit per device */
	const uint64_t bit = device < 64 ? UINT64_C(1) << device : 0;

	return bit && !(atomic_load_explicit(&claimed, memory_order_relaxed) & bit) &&
	       !(atomic_fetch_or_explicit(&claimed, bit, memory_order_relaxed) & bit);
}

void call_write_device_memory(bool failed)
{
	struct trace_device_memory *record;
	uint64_t free_bytes, total_bytes;
	uint32_t device;

	if (!call_enabled || atomic_load_explicit(&captures, memory_order_relaxed))
		return;
	device = driver_device();
	if ((!failed && !claim_first_allocation(device)) ||
		!driver_memory_info(&free_bytes, &total_bytes) || !stream_enter())
		return;
	record = stream_record(TRACE_DEVICE_MEMORY, sizeof *record);
	if (record) {
		record->free_bytes = free_bytes;
		record->total_bytes = total_bytes;
		record->device = device;
		record->process_bytes = 0;
		record->reason = failed ? TRACE_SAMPLE_FAILED : TRACE_SAMPLE_FIRST;
		stream_commit();
	}
	stream_leave();
}
