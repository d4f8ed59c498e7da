/* SPDX-License-Identifier: MIT
 * call.h: what every call to CUDA that pperf sees goes through, whether it is seen by its symbol or by a CUPTI callback.
 *
 * A runtime call nests driver calls, and the symbol nests both: only the outermost of a thread is recorded. What is inside
 * writes no event; it lends the outer one its correlation id.
 *
 *	int cudaFree(void *address)
 *	{
 *		static struct call_site site = {.name = "cudaFree", .type = CALL_RELEASE};
 *		const struct real *real = real_of(CALLER);
 *		uint32_t outer = call_begin(CALLER);
 *		int result = real->cudaFree(address);
 *
 *		if (!outer)
 *			call_write(&site, TRACE_FREE, result, CALL_NO_STREAM, what the kind has beyond struct trace_call, ...);
 *		call_end(outer);
 *		return result;
 *	}
 *
 * A callback keeps what call_begin returned as a ticket in CUPTI's correlation data from ENTER to EXIT (none there: the ENTER was
 * not seen, leave the EXIT be), and its sites say TRACE_CALL_CALLBACK.
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

/* Where the function that uses it will return to: in a wrapper, the program's call. */
#define CALLER __builtin_return_address(0)

enum call_type {
	CALL_PLAIN,  /* never with a call stack */
	CALL_ALLOC,  /* with one if PPERF_STACKS or PPERF_PYSTACKS is alloc or launch */
	CALL_FREE,   /* as plain: its allocation is found by its address */
	CALL_LAUNCH, /* with one if either is launch */
	CALL_RESET,  /* as plain: where it worked, call_on has said before */
};

/* A function that is seen: static data of whoever sees it. */
struct call_site {
	const char
		*name; /* as it is in the trace: cudaMalloc, cudaMallocAsync_ptsz, cuMemAlloc_v2 */
	enum call_type type;
	uint8_t flags; /* TRACE_CALL_DRIVER, TRACE_CALL_CALLBACK */
	bool per_thread; /* a _ptsz or _ptds twin: stream 0 is the thread's own, written as CALL_STREAM_PER_THREAD */
	_Atomic uint32_t api; /* name id, once there is one */
};

#define CALL_NO_STREAM ((void *)-1)          /* the call has no stream: it cannot be captured */
#define CALL_STREAM_PER_THREAD ((void *)0x2) /* cudaStreamPerThread, CU_STREAM_PER_THREAD */

/* Of a thread: its outermost call to CUDA, while it lasts. */
struct call_tls {
	uint64_t begin;       /* raw ticks */
	uint64_t correlation; /* of the first traced call inside, 0: none */
	const void *caller;   /* where it returns to; NULL: not known (a callback) */
	uintptr_t
		frame; /* where the wrapper's begins, if there is one: what is inside the call lies below it on the stack */
	uint32_t depth;   /* calls that have begun and not ended */
	uint32_t device;  /* where it works, if a callback has said so; else UINT32_MAX */
	bool captured;    /* it made a node of a graph instead of working */
	bool resets;      /* contexts that end in it are its affair */
	uint32_t context; /* where it works, by CUPTI's id, if a callback has said so; else 0 */
	uint64_t end;     /* raw ticks: when it returned; 0: not yet */
};
extern _Thread_local struct call_tls call_tls;

/* A caller's wrappers begin where its own frame ends, or below what it passes on the stack: launches take two words there. What is inside a wrapper begins
 * below what that saves, which is more than this. */
#define CALL_ARGUMENTS 16u

/* Settings, by the constructor: `enabled` false leaves every call as it is and records none. stacks: the value of PPERF_STACKS
 * (NULL: alloc). false: no such value; then it is alloc. */
bool call_configure(bool enabled, const char *stacks);

/* What call_configure was told; true before. */
extern bool call_enabled;

/* What another part of the library does at calls to CUDA. Unset members are skipped. */
struct call_hooks {
	/* At the first call of a program's call site and inside cuInit: not frequent. Called outside of stream_enter. */
	void (*first_call)(void);
	/* After a call that returns to `caller` has allocated device memory; `pool`: from a memory pool. Called on the calling thread. */
	void (*device_memory)(const void *caller, bool pool);
};

/* Set by the library's constructor, before there is a second thread; never changed afterwards. */
void call_set_hooks(const struct call_hooks *hooks);

/* Run the hooks. */
void call_hook_first_call(void);
void call_hook_device_memory(const void *caller, bool pool);

/* What must be there before the first call begins, since it would count as that call's time or change the clock under it: the trace, libunwind.
 * Any number of times, where the program's own call would have the dynamic linker at work, too; outside of stream_enter. Keeps errno. */
void call_prepare(void);

/* In a forked child. */
void call_forked(void);

/* How many calls of this thread enclose the one that begins here. 0: it is the outermost, and the one to record. `caller`: CALLER,
 * in a callback NULL. Also a way of keeping calls of our own out of the trace: nothing inside is recorded. A program does not call
 * a symbol from within a driver call, so a callback around a symbol is one whose EXIT never came: it is forgotten. So is a
 * wrapper that was left by an exception, longjmp or the thread's end: the stack is in use again where it stood. */
static inline uint32_t call_begin(const void *caller)
{
	const uintptr_t frame = (uintptr_t)
		__builtin_dwarf_cfa(); /* not of the frame's end, whose place depends on its size */
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

/* outer: what call_begin returned. */
static inline void call_end(uint32_t outer)
{
	call_tls.depth = outer;
}

/* 64 bits that nobody else would leave there: CUPTI does not promise that they are zero at first, and where it was another client's when the call began they
 * are what that one put there. */
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

/* The real call has returned, and there is something to do before call_write that is not part of it. */
static inline void call_returned(void)
{
	call_tls.end = clock_now();
}

/* Lends the thread's outermost call a correlation id; the first one counts, as CUPTI gives its first to the outermost. false: it
 * has another already, or there is no call, and the caller has to see to it that the id is not lost. */
static inline bool call_correlate(uint64_t correlation)
{
	if (call_tls.depth == 0)
		return false;
	if (call_tls.correlation == 0)
		call_tls.correlation = correlation;
	return call_tls.correlation == correlation;
}

/* The outermost call, if there is one, made a node of a graph: CUPTI says so. */
static inline void call_mark_captured(void)
{
	call_tls.captured = true;
}

/* The outermost call works on this device, in this context: CUPTI says so. UINT32_MAX, 0: not known. */
static inline void call_set_context(uint32_t device, uint32_t context)
{
	call_tls.device = device;
	call_tls.context = context;
}

/* The context of the outermost call as flags of struct trace_memory have it. */
static inline uint32_t call_context_flags(void)
{
	return call_tls.context << TRACE_MEMORY_CONTEXT_SHIFT;
}

/* Writes the record of the outermost call, which has just returned: between call_begin (0) and call_end. `kind` is one
 * whose struct begins with struct trace_call; `rest` is what follows there, CALL_WORDS of that struct. Of struct
 * trace_call are written: stamp (now, or when call_returned was called) and duration, result, api, correlation, stack,
 * device (of memory, unless the site is a callback, the driver is asked), and TRACE_CALL_CAPTURED if call_captured was
 * called or the driver, which a callback may not ask, says that `stream` is being captured. Where the payload has a
 * record of a call like this one, an AGAIN takes the place of the record. false: nothing was recorded.
 *
 * Also for FREE: memory is gone from the begin of the call on (stamp - duration), since before its end another thread
 * may have been given the address; a result other than 0 says that it is still there. */
bool call_write(struct call_site *site, enum trace_kind kind, int result, const void *stream,
	const uint64_t *rest, size_t words);

/* The same, for a call in which a context ended: what it had is free. call_on has said which. */
bool call_write_reset(struct call_site *site, int result);

/* Records that pperf itself took so many ticks, from `end` on, for a call stack. Between stream_enter and stream_leave. */
void call_write_stack_cost(uint64_t end, uint64_t ticks);

/* The handle as it is written: that of the stream meant. */
static inline uint64_t call_stream(const struct call_site *site, const void *stream)
{
	return (uintptr_t)(site->per_thread && !stream ? CALL_STREAM_PER_THREAD : stream);
}

/* Captures of streams into graphs, told by whoever sees them first (a wrapper or a callback with nothing around it): while
 * there are any, call_write asks the driver whether the stream is captured. Not asked otherwise. */
void call_capture_began(void);
void call_capture_ended(void);

#endif
