/* SPDX-License-Identifier: MIT */
#include "collector/stream/recording_switch.h"

#include "collector/file/trace_file.h"

/* Recording windows whose calls are remembered. GPU records never arrive after so many further
 * windows. */
#define CALL_SPANS 64u
/* Recorded start/end ranges that may be open at once; a power of two. */
#define ASYNC_SLOTS 4096u
#define ASYNC_PROBES 16u

uint32_t recording_paused;
bool recording_scheduled;

static uint64_t steps_ended; /* atomic; for a file that is made later */

/* The correlation ids of the calls that a recording window recorded. CUPTI assigns ids in order, so
 * the first and the last are enough. A call gets its id before it is noted, so the ids of a window
 * may include those of unrecorded calls at its edges. */
static struct call_span {
	uint64_t first, last; /* atomic; 0: none yet */
} spans[CALL_SPANS];
static uint32_t span_count; /* atomic; the last span is in use */

static uint64_t open_async[ASYNC_SLOTS]; /* atomic ids of recorded ranges that are open; 0: free */
static uint32_t open_async_overflowed;   /* atomic; 1: some are missing, so every end is recorded */

void recording_use_schedule(bool open)
{
	recording_scheduled = true;
	__atomic_store_n(&recording_paused, !open, __ATOMIC_SEQ_CST);
	__atomic_store_n(&span_count, open, __ATOMIC_SEQ_CST);
}

static void set_paused_flag(struct trace_header *header)
{
	if (__atomic_load_n(&recording_paused, __ATOMIC_SEQ_CST))
		__atomic_fetch_or(&header->flags, TRACE_PAUSED, __ATOMIC_RELAXED);
	else
		__atomic_fetch_and(&header->flags, ~(uint32_t)TRACE_PAUSED, __ATOMIC_RELAXED);
}

void recording_set_paused(bool paused)
{
	struct trace_header *header = trace_header();

	__atomic_store_n(&recording_paused, paused, __ATOMIC_SEQ_CST);
	if (header)
		set_paused_flag(header);
}

void recording_new_window(void)
{
	uint32_t number = __atomic_load_n(&span_count, __ATOMIC_SEQ_CST);

	__atomic_store_n(&spans[number % CALL_SPANS].first, 0, __ATOMIC_RELAXED);
	__atomic_store_n(&spans[number % CALL_SPANS].last, 0, __ATOMIC_RELAXED);
	__atomic_store_n(&span_count, number + 1, __ATOMIC_SEQ_CST);
}

void recording_set_steps_ended(uint64_t steps)
{
	struct trace_header *header = trace_header();

	__atomic_store_n(&steps_ended, steps, __ATOMIC_RELAXED);
	if (header)
		__atomic_store_n(&header->steps, steps, __ATOMIC_RELAXED);
}

void recording_fill_header(struct trace_header *header)
{
	if (!recording_scheduled)
		return;
	__atomic_store_n(
		&header->steps, __atomic_load_n(&steps_ended, __ATOMIC_RELAXED), __ATOMIC_RELAXED);
	set_paused_flag(header);
}

int recording_skip_kind(enum trace_kind kind)
{
	switch (kind) {
	case TRACE_LAUNCH:
	case TRACE_GRAPH_LAUNCH:
	case TRACE_COPY:
	case TRACE_SET:
	case TRACE_SYNC:
	case TRACE_COLLECTIVE:
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

void recording_add_skipped(
	enum trace_skip_kind kind, uint64_t events, uint64_t measured, uint64_t ticks)
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

void recording_note_call(uint64_t correlation)
{
	uint32_t count = __atomic_load_n(&span_count, __ATOMIC_RELAXED);
	struct call_span *span = &spans[(count - 1) % CALL_SPANS];
	uint64_t known = __atomic_load_n(&span->first, __ATOMIC_RELAXED);

	if (!count || !correlation)
		return;
	while ((!known || correlation < known) &&
		!__atomic_compare_exchange_n(&span->first, &known, correlation, true,
			__ATOMIC_RELAXED, __ATOMIC_RELAXED))
		;
	known = __atomic_load_n(&span->last, __ATOMIC_RELAXED);
	while (correlation > known && !__atomic_compare_exchange_n(&span->last, &known, correlation,
					      true, __ATOMIC_RELAXED, __ATOMIC_RELAXED))
		;
}

bool recording_has_call(uint64_t correlation)
{
	uint32_t count = __atomic_load_n(&span_count, __ATOMIC_RELAXED),
		 oldest = count > CALL_SPANS ? count - CALL_SPANS : 0;

	if (!correlation)
		return !recording_is_paused();
	for (uint32_t i = count; i > oldest; i--) {
		const struct call_span *span = &spans[(i - 1) % CALL_SPANS];
		uint64_t first = __atomic_load_n(&span->first, __ATOMIC_RELAXED);
		/* The open window has no last call yet: a GPU record may come before its call is
		 * noted. */
		bool still_recording = i == count && !recording_is_paused();

		if (first && correlation >= first &&
			(still_recording ||
				correlation <= __atomic_load_n(&span->last, __ATOMIC_RELAXED)))
			return true;
	}
	return false;
}

static uint64_t *async_slot(uint64_t id, uint32_t number)
{
	return &open_async[((id * UINT64_C(0x9e3779b97f4a7c15) >> 40) + number) % ASYNC_SLOTS];
}

static bool replace_if(uint64_t *slot, uint64_t was, uint64_t is)
{
	return __atomic_load_n(slot, __ATOMIC_RELAXED) == was &&
	       __atomic_compare_exchange_n(
		       slot, &was, is, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
}

bool recording_begin_async(uint64_t id)
{
	if (recording_is_paused())
		return false;
	for (uint32_t i = 0; i < ASYNC_PROBES; i++)
		if (replace_if(async_slot(id, i), 0, id))
			return true;
	__atomic_store_n(&open_async_overflowed, 1, __ATOMIC_RELAXED);
	return true;
}

bool recording_end_async(uint64_t id)
{
	for (uint32_t i = 0; i < ASYNC_PROBES; i++)
		if (replace_if(async_slot(id, i), id, 0))
			return true;
	return !recording_is_paused() || __atomic_load_n(&open_async_overflowed, __ATOMIC_RELAXED);
}
