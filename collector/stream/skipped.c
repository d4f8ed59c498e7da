/* SPDX-License-Identifier: MIT
 * Events that are skipped while recording is paused. Each thread counts its own, and adds them to
 * the header's counters in groups.
 */
#include "collector/stream/stream_state.h"

void stream_flush_skips(struct stream *s)
{
	for (int kind = 0; kind < TRACE_SKIP_KINDS; kind++) {
		uint32_t events = __atomic_exchange_n(&s->skips[kind].events, 0, __ATOMIC_RELAXED);
		uint32_t measured = __atomic_exchange_n(
			&s->skips[kind].measured, 0, __ATOMIC_RELAXED);

		if (events)
			recording_add_skipped((enum trace_skip_kind)kind, events, measured,
				__atomic_exchange_n(&s->skips[kind].ticks, 0, __ATOMIC_RELAXED));
	}
}

void stream_skip_end(struct stream *s, enum trace_skip_kind kind, uint64_t begin)
{
	struct stream_skips *skips = &s->skips[kind];

	if (begin) {
		__atomic_store_n(&skips->measured, skips->measured + 1, __ATOMIC_RELAXED);
		__atomic_store_n(
			&skips->ticks, skips->ticks + clock_now() - begin, __ATOMIC_RELAXED);
	}
	__atomic_store_n(&skips->events, skips->events + 1, __ATOMIC_RELAXED);
	if (skips->events >= STREAM_SKIPS_FLUSH_AT)
		stream_flush_skips(s);
}

bool stream_is_skipped(struct stream *s, enum trace_kind kind)
{
	int as = recording_skip_kind(kind);

	if (as >= 0)
		stream_skip_end(s, (enum trace_skip_kind)as, 0);
	return as >= 0 || kind == TRACE_SELF;
}
