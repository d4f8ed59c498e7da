/* SPDX-License-Identifier: MIT */
#include "report/trace/tensor_delta.h"

static void hear(struct tensor_totals *totals, const struct trace_tensor *record)
{
	if (record->device >= TRACE_TENSOR_DEVICES)
		return;
	totals->of[record->device].allocated = record->allocated;
	totals->of[record->device].reserved = record->reserved;
}

static void make_whole(
	const struct tensor_totals *totals, const struct trace_tensor_next *record, struct trace_tensor *whole)
{
	const uint32_t device = record->head.flags % TRACE_TENSOR_DEVICES;
	const uint64_t bytes = (record->block >> TRACE_TENSOR_BYTES_BIT) * TRACE_TENSOR_UNIT,
		       before = totals->of[device].allocated;

	*whole = (struct trace_tensor){ .head = record->head,
		.stamp = record->stamp,
		.address = (record->block & ((UINT64_C(1) << TRACE_TENSOR_BYTES_BIT) - 1)) * TRACE_TENSOR_UNIT,
		.bytes = (int64_t)bytes,
		.allocated = before + bytes,
		.reserved = totals->of[device].reserved,
		.device = device };
	whole->head.kind = TRACE_TENSOR;
	whole->head.size = sizeof *whole;
	whole->head.flags = 0;
	if (record->head.flags & TRACE_TENSOR_GIVEN_BACK) {
		whole->bytes = -whole->bytes;
		whole->allocated = before > bytes ? before - bytes : 0; /* a damaged trace may give back more */
	}
}

const struct trace_head *tensor_expand(
	struct tensor_totals *totals, const struct trace_head *record, struct trace_tensor *whole)
{
	if (record->kind == TRACE_TENSOR_NEXT) {
		make_whole(totals, (const void *)record, whole);
		record = &whole->head;
	}
	if (record->kind == TRACE_TENSOR || record->kind == TRACE_TENSOR_OOM)
		hear(totals, (const void *)record);
	return record;
}
