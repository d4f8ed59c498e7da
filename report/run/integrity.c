/* SPDX-License-Identifier: MIT */
#include "report/run/integrity.h"
#include "report/base/compare.h"
#include <stddef.h>

const struct integrity_item integrity_items[] = {
#define X(item, is_missing, help)                           \
	{ .name = #item,                                    \
		.text = help,                               \
		.offset = offsetof(struct integrity, item), \
		.missing = is_missing },
	INTEGRITY(X)
#undef X
};
const size_t integrity_item_count = sizeof integrity_items / sizeof *integrity_items;

uint64_t integrity_value(const struct integrity *integrity, size_t item)
{
	return *(const uint64_t *)((const char *)integrity + integrity_items[item].offset);
}

struct integrity integrity_of(const struct profile *profile)
{
	const struct trace_integrity *file = reader_integrity(profile->reader);
	const struct profile_counts *counts = &profile->counts;
	struct integrity integrity = {
		.launches = counts->launches,
		.kernels = counts->kernels,
		.copies_called = counts->copies_called,
		.copies = counts->copies,
		.sets_called = counts->sets_called,
		.sets = counts->sets,
		.graph_launches = counts->graph_launches,
		.graph_kernels = counts->graph_kernels,
		.graph_copies = counts->graph_copies,
		.graph_sets = counts->graph_sets,
		.captured = counts->captured,
		.failed_calls = counts->failed_calls,
		.empty_calls = counts->empty_calls,
		.before_gpu = counts->before_gpu,
		.after_gpu = counts->after_gpu,
		.range_profiled = counts->range_profiled,
		.missing_records = counts->missing_records,
		.yielded = counts->yielded,
		.yielded_calls = counts->yielded_calls,
		.attributed = counts->attributed,
		.unattributed = counts->unattributed,
		.without_launch = counts->without_launch,
		.launched_before = counts->launched_before,
		.untimed = counts->untimed,
		.dropped = max_u64(counts->dropped, file->lost[TRACE_LOST_CUPTI_DROPPED]),
		.unread_buffers = max_u64(
			counts->unread_buffers, file->lost[TRACE_LOST_CUPTI_UNREAD]),
		.lost_events = file->lost_events,
		.lost_samples = file->lost[TRACE_LOST_SAMPLES],
		.unmatched_ends = file->unmatched_ends + counts->unknown_ends,
		.unended = file->unended,
		.left_open = file->left_open + counts->async_left_open,
		.clock_violations = file->clock_violations + counts->early + counts->backwards,
		.clock_steps = file->clock_steps,
		.truncated_streams = file->truncated_streams,
		.damaged = file->damaged_payloads + file->damaged_blocks + file->torn_chunks +
			   file->missing_chunks + file->cut_blocks + (file->skipped_bytes > 0) +
			   (file->cut_bytes > 0),
		.unknown_kinds = file->unknown_kinds,
		.unknown_frees = profile->memory->counts.unknown_frees,
		.tensors = profile->memory->counts.tensors,
		.tensor_differences = profile->memory->counts.tensor_differences,
		.unknown_tensor_frees = profile->memory->counts.unknown_tensor_frees,
		.late_work = timeline_late_records(profile->timeline),
	};

	integrity.conserved = profile_check_conservation(
		profile, integrity.problem, sizeof integrity.problem);
	integrity.complete = file->complete && !file->tail_at_risk;
	for (size_t i = 0; i < integrity_item_count; i++)
		integrity.complete &= !integrity_items[i].missing ||
				      integrity_value(&integrity, i) == 0;
	return integrity;
}
