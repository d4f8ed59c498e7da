/* SPDX-License-Identifier: MIT
 * window.c: see window.h.
 */
#include "collector/stream/recording_switch.h"

#include "collector/file/trace_file.h"

#define SPANS 64u   /* windows whose calls are known; records of the GPU are never that late */
#define STARTS 4096u /* start/end ranges that are open at once; a power of two */
#define STARTS_TRIED 16u

uint32_t window_shut;
bool window_scheduled;

static uint64_t steps_ended; /* atomic; for a file that is made later */

/* The calls that were recorded in a window: ids are given in order, so the first and the last tell. Those at its edges may have been handed out just
 * before or after. */
static struct span {
	uint64_t first, last; /* atomic; 0: none so far */
} spans[SPANS];
static uint32_t span_count; /* atomic; the last one is the one in use */

static uint64_t starts[STARTS];     /* atomic; recorded and not ended; 0: free */
static uint32_t starts_overflowed;  /* atomic; not all are there: any end is recorded */

void window_use(bool open)
{
	window_scheduled = true;
	__atomic_store_n(&window_shut, !open, __ATOMIC_SEQ_CST);
	__atomic_store_n(&span_count, open, __ATOMIC_SEQ_CST);
}

static void mark_header(struct trace_header *header)
{
	if (__atomic_load_n(&window_shut, __ATOMIC_SEQ_CST))
		__atomic_fetch_or(&header->flags, TRACE_SHUT, __ATOMIC_RELAXED);
	else
		__atomic_fetch_and(&header->flags, ~(uint32_t)TRACE_SHUT, __ATOMIC_RELAXED);
}

void window_set(bool shut)
{
	struct trace_header *header = trace_header();

	__atomic_store_n(&window_shut, shut, __ATOMIC_SEQ_CST);
	if (header)
		mark_header(header);
}

void window_new_span(void)
{
	uint32_t number = __atomic_load_n(&span_count, __ATOMIC_SEQ_CST);

	__atomic_store_n(&spans[number % SPANS].first, 0, __ATOMIC_RELAXED);
	__atomic_store_n(&spans[number % SPANS].last, 0, __ATOMIC_RELAXED);
	__atomic_store_n(&span_count, number + 1, __ATOMIC_SEQ_CST);
}

void window_steps(uint64_t steps)
{
	struct trace_header *header = trace_header();

	__atomic_store_n(&steps_ended, steps, __ATOMIC_RELAXED);
	if (header)
		__atomic_store_n(&header->steps, steps, __ATOMIC_RELAXED);
}

void window_describe(struct trace_header *header)
{
	if (!window_scheduled)
		return;
	__atomic_store_n(&header->steps, __atomic_load_n(&steps_ended, __ATOMIC_RELAXED), __ATOMIC_RELAXED);
	mark_header(header);
}

int window_skips(enum trace_kind kind)
{
	switch (kind) {
	case TRACE_LAUNCH:
	case TRACE_GRAPH_LAUNCH:
	case TRACE_COPY:
	case TRACE_SET:
	case TRACE_SYNC:
		return TRACE_SKIPPED_CALLS;
	case TRACE_TENSOR:
	case TRACE_TENSOR_NEXT:
		return TRACE_SKIPPED_TENSORS;
	case TRACE_MARK:
	case TRACE_METRIC:
	case TRACE_NVTX_SYNC:
		return TRACE_SKIPPED_OTHERS;
	default:
		return -1;
	}
}

void window_skipped(enum trace_skip_kind kind, uint64_t events, uint64_t measured, uint64_t ticks)
{
	struct trace_header *header = trace_header();

	if (!header)
		return;
	__atomic_fetch_add(&header->skipped[kind].events, events, __ATOMIC_RELAXED);
	if (!measured)
		return;
	__atomic_fetch_add(&header->skipped[kind].measured, measured, __ATOMIC_RELAXED);
	__atomic_fetch_add(&header->skipped[kind].ticks, ticks, __ATOMIC_RELAXED);
}

/* ---- which were recorded ---- */

void window_call(uint64_t correlation)
{
	uint32_t count = __atomic_load_n(&span_count, __ATOMIC_RELAXED);
	struct span *span = &spans[(count - 1) % SPANS];
	uint64_t known = __atomic_load_n(&span->first, __ATOMIC_RELAXED);

	if (!count || !correlation)
		return;
	while ((!known || correlation < known) &&
	       !__atomic_compare_exchange_n(&span->first, &known, correlation, true, __ATOMIC_RELAXED, __ATOMIC_RELAXED))
		;
	known = __atomic_load_n(&span->last, __ATOMIC_RELAXED);
	while (correlation > known && !__atomic_compare_exchange_n(&span->last, &known, correlation, true, __ATOMIC_RELAXED, __ATOMIC_RELAXED))
		;
}

bool window_has_call(uint64_t correlation)
{
	uint32_t count = __atomic_load_n(&span_count, __ATOMIC_RELAXED), least = count > SPANS ? count - SPANS : 0;

	if (!correlation)
		return !window_is_shut();
	for (uint32_t i = count; i > least; i--) {
		const struct span *span = &spans[(i - 1) % SPANS];
		uint64_t first = __atomic_load_n(&span->first, __ATOMIC_RELAXED);
		bool goes_on = i == count && !window_is_shut(); /* and the call has not returned yet */

		if (first && correlation >= first && (goes_on || correlation <= __atomic_load_n(&span->last, __ATOMIC_RELAXED)))
			return true;
	}
	return false;
}

static uint64_t *start_place(uint64_t id, uint32_t number)
{
	return &starts[((id * UINT64_C(0x9e3779b97f4a7c15) >> 40) + number) % STARTS];
}

static bool exchange(uint64_t *place, uint64_t was, uint64_t is)
{
	return __atomic_load_n(place, __ATOMIC_RELAXED) == was &&
	       __atomic_compare_exchange_n(place, &was, is, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
}

bool window_has_start(uint64_t id)
{
	if (window_is_shut())
		return false;
	for (uint32_t i = 0; i < STARTS_TRIED; i++)
		if (exchange(start_place(id, i), 0, id))
			return true;
	__atomic_store_n(&starts_overflowed, 1, __ATOMIC_RELAXED);
	return true;
}

bool window_has_end(uint64_t id)
{
	for (uint32_t i = 0; i < STARTS_TRIED; i++)
		if (exchange(start_place(id, i), id, 0))
			return true;
	return !window_is_shut() || __atomic_load_n(&starts_overflowed, __ATOMIC_RELAXED);
}
