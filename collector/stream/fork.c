/* SPDX-License-Identifier: MIT
 * A fork by a thread that is in the middle of pperf's own work, which the child may then continue.
 * The child gets private memory at the address of the parent's slot. There the work completes
 * without effect, and the child's next event attaches a new stream.
 */
#include "collector/stream/stream_state.h"

#include <sys/mman.h>

/* What the child needs of the forking thread's stream: its slot, which the child does not inherit,
 * and how far the thread has written. */
static __thread struct {
	struct trace_block *slot;
	const struct totals_block *totals;
	uint64_t bytes, used, pending;
} forking __attribute__((tls_model("initial-exec")));

void stream_fork_prepare(void)
{
	const struct stream *s = stream_tls.mine;

	forking.slot = stream_is_working() && s ? s->slot : NULL;
	if (!forking.slot)
		return;
	forking.bytes = forking.slot->extent;
	forking.totals = s->totals.blocks;
	forking.used = forking.slot->used;
	forking.pending = s->pending;
}

/* Lets the stream of the forking thread continue in `slot`, without effect. */
static void use_private_slot(struct stream *s, struct trace_block *slot)
{
	s->slot = slot;
	s->slot->extent = forking.bytes;
	s->slot->used = forking.used;
	s->pending = forking.pending;
	s->room = forking.bytes - sizeof *s->slot;
	__atomic_store_n(&s->fast_room, 0, __ATOMIC_RELAXED);
	s->frames = s->first_frames;
	stream_set_top(s, s->frames + 1); /* one frame, for a pop that may be under way */
	s->top_limit = s->frames + STREAM_FRAMES_INLINE - 1;
}

void stream_forked(void)
{
	void *slot;

	stream_tls.refused_ranges = 0; /* counted for the parent only */
	if (!forking.slot)
		return;
	totals_forked(forking.totals);
	slot = mmap(forking.slot, forking.bytes, PROT_READ | PROT_WRITE,
		MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
	if (slot == MAP_FAILED)
		return;
	use_private_slot(stream_tls.mine, slot);
	stream_tls.mine = NULL; /* the next event attaches a new stream */
}
