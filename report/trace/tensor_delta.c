/* SPDX-License-Identifier: MIT */
#include "report/trace/tensor_delta.h"

static void remember_totals(struct tensor_totals *totals, const struct trace_tensor *record)
{
	if (record->device >= TRACE_TENSOR_DEVICES)
		return;
	totals->devices[record->device].allocated = record->allocated;
	totals->devices[record->device].reserved = record->reserved;
}

static void expand_delta(const struct tensor_totals *totals, const struct trace_tensor_next *record,
	struct trace_tensor *whole)
{
	const uint32_t device = record->head.flags % TRACE_TENSOR_DEVICES;
	const uint64_t bytes = (record->block >> TRACE_TENSOR_BYTES_BIT) * TRACE_TENSOR_UNIT,
		       before = totals->devices[device].allocated;

	*whole = (struct trace_tensor){ .head = record->head,
		.stamp = record->stamp,
		.address = (record->block & ((UINT64_C(1) << TRACE_TENSOR_BYTES_BIT) - 1)) *
			   TRACE_TENSOR_UNIT,
		.bytes = (int64_t)bytes,
		.allocated = before + bytes,
		.reserved = totals->devices[device].reserved,
		.device = device };
	whole->head.kind = TRACE_TENSOR;
	whole->head.size = sizeof *whole;
	whole->head.flags = 0;
	if (record->head.flags & TRACE_TENSOR_FREED) {
		whole->bytes = -whole->bytes;
		/* A damaged trace may free more than was allocated. */
		whole->allocated = before > bytes ? before - bytes : 0;
	}
}

const struct trace_head *tensor_delta_expand(
	struct tensor_totals *totals, const struct trace_head *record, struct trace_tensor *whole)
{
	if (record->kind == TRACE_TENSOR_NEXT) {
		expand_delta(totals, (const void *)record, whole);
		record = &whole->head;
	}
	if (record->kind == TRACE_TENSOR || record->kind == TRACE_TENSOR_OOM)
		remember_totals(totals, (const void *)record);
	return record;
}
