/* SPDX-License-Identifier: MIT
 * Traces a CUDA call, whether it is seen by its symbol or by a CUPTI callback.
 *
 * A runtime call nests driver calls, and the symbol nests both. Only the outermost call of a thread
 * is recorded. A call inside it writes no record, but passes its correlation id to the outermost
 * one.
 *
 *	int cudaFree(void *address)
 *	{
 *		static struct traced_function traced = { .name = "cudaFree", .type = CALL_FREE };
 *		const struct real *real = real_of(CALLER);
 *		uint32_t outer = call_begin(CALLER);
 *		int result = real->cudaFree(address);
 *
 *		if (outer == 0)
 *			call_write(&traced, TRACE_FREE, result, CALL_NO_STREAM, rest, words);
 *		call_end(outer);
 *		return result;
 *	}
 *
 * `rest` are the words that the record has after struct trace_call.
 *
 * A callback stores what call_begin returned as a ticket in CUPTI's correlation data, from ENTER to
 * EXIT. An EXIT without a ticket is ignored, because its ENTER was not seen. The functions of
 * callbacks have TRACE_CALL_CALLBACK.
 *
 * Threads: any. Nothing here takes a lock, allocates, or changes errno or CUDA's last error.
 */
#ifndef PPERF_PRELOAD_CUDA_TRACED_CALL_H
#define PPERF_PRELOAD_CUDA_TRACED_CALL_H

#include "collector/process/clock.h"
#include "collector/stream/call_record.h"
#include "collector/trace_format.h"
#include <stdatomic.h>
#include <stdbool.h>

/* The return address of the function that uses it: in a wrapper, the program's call. */
#define CALLER __builtin_return_address(0)

enum call_type {
	CALL_PLAIN,  /* never with a call stack */
	CALL_ALLOC,  /* with a stack unless PPERF_STACKS and PPERF_PYSTACKS are off */
	CALL_FREE,   /* as CALL_PLAIN: its allocation is found by the address */
	CALL_LAUNCH, /* with a stack if either is launch */
	CALL_RESET,  /* as CALL_PLAIN: call_set_context has given its device */
};

/* A traced function: static data of its wrapper or of the table of callbacks. */
struct traced_function {
	/* The name in the trace: cudaMalloc, cudaMallocAsync_ptsz, cuMemAlloc_v2. */
	const char *name;
	enum call_type type;
	uint8_t flags; /* TRACE_CALL_DRIVER, TRACE_CALL_CALLBACK */
	/* A _ptsz or _ptds twin: stream 0 is the thread's own, recorded as
	 * CALL_STREAM_PER_THREAD. */
	bool per_thread;
	_Atomic uint32_t api; /* name id; 0: none yet */
};

#define CALL_NO_STREAM ((void *)-1) /* the call has no CUDA stream and cannot be captured */
#define CALL_STREAM_PER_THREAD ((void *)0x2) /* cudaStreamPerThread, CU_STREAM_PER_THREAD */

/* A thread's outermost CUDA call, while it lasts. */
struct call_tls {
	uint64_t begin;       /* raw ticks */
	uint64_t correlation; /* of the first traced call inside; 0: none */
	const void *caller;   /* its return address; NULL: unknown (a callback) */
	/* Address where the wrapper's stack frame begins. What is inside the call is below it on
	 * the stack. */
	uintptr_t frame;
	uint32_t depth;   /* calls that have begun and not ended */
	uint32_t device;  /* device, if a callback gave it; else UINT32_MAX */
	bool captured;    /* it made a graph node, and no GPU work */
	bool resets;      /* it records the end of contexts itself (cudaDeviceReset) */
	uint32_t context; /* CUPTI's id of the context, if a callback gave it; else 0 */
	uint64_t end;     /* raw ticks when it returned; 0: not yet */
};
extern _Thread_local struct call_tls call_tls;

/* The largest distance in bytes between the beginnings of two wrappers' frames of one caller. A
 * frame begins where the caller's own ends, or below the arguments on the stack; launches have two
 * words there. The frame of a call inside a wrapper begins further down, below the registers that
 * the wrapper saves. */
#define CALL_ARGUMENTS 16u

/* Stores the settings; called by the constructor. `enabled` false: no call is recorded or changed.
 * `stacks`: the value of PPERF_STACKS (NULL: alloc). Returns false if that is no such value; alloc
 * is used then. */
bool call_configure(bool enabled, const char *stacks);

/* `enabled` of call_configure; true before that call. */
extern bool call_enabled;

/* What another part of the library does at CUDA calls. Unset members are skipped. */
struct call_hooks {
	/* Called at the first call of each call site of the program and inside cuInit, so not
	 * often. Outside of stream_enter. */
	void (*first_call)(void);
	/* Called on the calling thread after a call that returns to `caller` has allocated device
	 * memory. `pool`: from a memory pool. */
	void (*device_memory)(const void *caller, bool pool);
	/* Called on the calling thread after a call that returns to `caller` has allocated memory
	 * of `device`. Stores the CUDA stream that it is for, and returns true, if PyTorch's
	 * caching allocator made the call. */
	bool (*allocation_stream)(const void *caller, uint32_t device, void **stream);
};

/* Stores the hooks. Called by the library's constructor, before there is a second thread. */
void call_set_hooks(const struct call_hooks *hooks);

/* Reports to the library's other parts that a call site makes its first call. This starts the
 * recording of PyTorch if torch is loaded by now. */
void call_hook_first_call(void);

/* Reports to the library's other parts that a call returning to `caller` has allocated device
 * memory, from a memory pool if `pool`. PyTorch's part uses it to find out whether an allocation
 * of torch's own allocator was not reported as tensors. */
void call_hook_device_memory(const void *caller, bool pool);

/* Returns flags of enum trace_memory_flag that say for which CUDA stream memory was allocated, by a
 * call that has just returned to `caller`, and stores the stream. 0: that is not known. In a
 * wrapper, not in a callback. */
uint32_t call_allocation_stream(const void *caller, void **stream);

/* Opens the trace and loads libunwind before the first call begins. Inside the call this would
 * count as its time, or change the clock under it. May be called repeatedly, where the program's
 * own call would run the dynamic linker, too, and outside of stream_enter. Keeps errno. */
void call_prepare(void);

/* Called in a forked child. */
void call_forked(void);

/* Begins a call. Returns the number of calls of this thread that enclose it; 0: it is the outermost
 * one, which is recorded. `caller`: CALLER, in a callback NULL. Also keeps pperf's own CUDA calls
 * out of the trace, because nothing inside a call is recorded.
 *
 * Calls whose end was missed are dropped in two cases. A program does not call a symbol from within
 * a driver call, so a callback around a symbol has missed its EXIT. A wrapper may be left by an
 * exception, longjmp or the thread's end; then the stack is in use again where its frame was. */
static inline uint32_t call_begin(const void *caller)
{
	/* The beginning of the frame; the address of its end depends on its size. */
	const uintptr_t frame = (uintptr_t)__builtin_dwarf_cfa();
	uint32_t outer = call_tls.depth;

	if (outer != 0 &&
		(call_tls.caller ? frame + CALL_ARGUMENTS >= call_tls.frame : caller != NULL))
		outer = 0;
	call_tls.depth = outer + 1;
	if (outer == 0) {
		call_tls.correlation = 0;
		call_tls.device = UINT32_MAX;
		call_tls.end = 0;
		call_tls.captured = call_tls.resets = false;
		call_tls.context = 0;
		call_tls.caller = caller;
		call_tls.frame = frame;
		call_tls.begin = clock_now();
	}
	return outer;
}

/* Ends a call. `outer`: what call_begin returned. */
static inline void call_end(uint32_t outer)
{
	call_tls.depth = outer;
}

/* Marks 64 bits of correlation data as pperf's ticket. CUPTI does not promise that they are 0 at
 * first. If CUPTI belonged to another client when the call began, they are that client's. */
#define CALL_TICKET UINT64_C(0x7070657266000000)
#define CALL_TICKET_BITS 24

static inline uint64_t call_ticket(uint32_t outer)
{
	return CALL_TICKET | (outer + 1);
}

static inline bool call_is_ticket(uint64_t data, uint32_t *outer)
{
	const uint32_t number = (uint32_t)data & ((1u << CALL_TICKET_BITS) - 1);

	*outer = number - 1;
	return data >> CALL_TICKET_BITS == CALL_TICKET >> CALL_TICKET_BITS && number;
}

/* Notes that the real call has returned, before work that precedes call_write and is not part of
 * the call. */
static inline void call_returned(void)
{
	call_tls.end = clock_now();
}

/* Passes a correlation id to the thread's outermost call. Only the first one counts, because CUPTI
 * gives its first id to the outermost call. Returns false if the call has another id already or
 * there is no call. The caller must then ensure that the id is not lost. */
static inline bool call_correlate(uint64_t correlation)
{
	if (call_tls.depth == 0)
		return false;
	if (call_tls.correlation == 0)
		call_tls.correlation = correlation;
	return call_tls.correlation == correlation;
}

/* Notes that the outermost call, if there is one, made a graph node: CUPTI reported it. */
static inline void call_mark_captured(void)
{
	call_tls.captured = true;
}

/* Stores the device and context of the outermost call, as CUPTI reported them. UINT32_MAX, 0:
 * unknown. */
static inline void call_set_context(uint32_t device, uint32_t context)
{
	call_tls.device = device;
	call_tls.context = context;
}

/* Returns the context of the outermost call in the flags of struct trace_memory. */
static inline uint32_t call_context_flags(void)
{
	return call_tls.context << TRACE_MEMORY_CONTEXT_SHIFT;
}

/* Writes the record of the outermost call, which has just returned: between call_begin, which
 * returned 0, and call_end. `kind`: one whose struct begins with struct trace_call. `rest`: the
 * words that follow, as many as CALL_WORDS of that struct. A call that repeats an earlier one is
 * written as an AGAIN record. Returns false if nothing was recorded. The members of struct
 * trace_call are set as follows:
 *
 *   stamp, duration   the end is now, or when call_returned was called
 *   device            as CUPTI reported it; for memory calls of symbols, the driver is queried
 *   captured flag     if call_mark_captured was called, or the driver says that `stream` is being
 *                     captured; a callback may not query the driver
 *   result, api, correlation, stack
 *
 * In a FREE record the memory is free from the begin of the call (stamp - duration). Another thread
 * may get the address before its end. If `result` is not 0, the memory is still allocated. */
bool call_write(struct traced_function *traced, enum trace_kind kind, int result,
	const void *stream, const uint64_t *rest, size_t words);

/* As call_write, for an ALLOC or FREE, with the words of struct trace_memory. With PPERF_RING it
 * also remembers which memory is held. The stamp may then be a little later than the call's end. */
bool call_write_memory(struct traced_function *traced, enum trace_kind kind, int result,
	const void *stream, const uint64_t *rest);

/* As call_write, for a call in which a context ended: all its memory is free. call_set_context has
 * given the context. */
bool call_write_reset(struct traced_function *traced, int result);

/* Records how much of the current device's memory is free, if that is allowed here: no stream is
 * being captured. Called in the wrapper of an allocation, after call_write and before call_end, so
 * that the query is no part of the trace. `failed`: the allocation failed for want of memory; else
 * it succeeded, and only the first one of a device is followed by the query. */
void call_write_device_memory(bool failed);

/* Returns the stream handle to record: that of the stream meant. */
static inline uint64_t call_stream(const struct traced_function *traced, const void *stream)
{
	return (uintptr_t)(traced->per_thread && !stream ? CALL_STREAM_PER_THREAD : stream);
}

/* Count the captures of streams into graphs. Called by the first that sees one: a wrapper, or a
 * callback that nothing encloses. call_write queries the driver about captures only while there are
 * any. */
void call_capture_began(void);
void call_capture_ended(void);

#endif
