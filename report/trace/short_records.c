/* SPDX-License-Identifier: MIT */
#include "report/trace/short_records.h"

#include "report/trace/record_check.h"

#include <string.h>

/* Bytes of a call record's struct; 0: the kind is none. */
static const uint8_t call_record_bytes[UINT8_MAX + 1] = {
	[TRACE_LAUNCH] = sizeof(struct trace_launch),
	[TRACE_GRAPH_LAUNCH] = sizeof(struct trace_graph_launch),
	[TRACE_COPY] = sizeof(struct trace_copy),
	[TRACE_SET] = sizeof(struct trace_copy),
	[TRACE_SYNC] = sizeof(struct trace_sync),
	[TRACE_ALLOC] = sizeof(struct trace_memory),
	[TRACE_FREE] = sizeof(struct trace_memory),
	[TRACE_MAPPING] = sizeof(struct trace_mapping),
};
static_assert(sizeof(struct trace_launch) <= sizeof(union expanded_call) &&
		      sizeof(struct trace_memory) <= sizeof(union expanded_call) &&
		      sizeof(struct trace_graph_launch) <= sizeof(union expanded_call),
	"every call fits");

const char *repeated_call_expand(
	const struct trace_again *again, const unsigned char *payload, union expanded_call *whole)
{
	size_t at = (size_t)again->of * 8, here = (size_t)((const unsigned char *)again - payload),
	       more = again->head.size - sizeof *again, bytes;
	const struct trace_head *was = (const void *)(payload + at);

	if (at >= here || record_check(was, here - at))
		return "repeats a record that does not come before it";
	bytes = call_record_bytes[was->kind];
	if (!bytes)
		return "repeats a record that is not a call";
	if (sizeof whole->call + more > bytes)
		return "repeats a call with fewer fields than it uses";
	memcpy(whole, was, bytes);
	memcpy(whole->words + sizeof whole->call / 8, again + 1, more);
	whole->call.head.size = (uint16_t)bytes;
	whole->call.head.node = again->head.node;
	whole->call.stamp = again->stamp;
	whole->call.duration = again->duration;
	whole->call.correlation += again->correlation;
	return NULL;
}

static void remember_totals(struct tensor_totals *totals, const struct trace_tensor *record)
{
	if (record->device >= TRACE_TENSOR_DEVICES)
		return;
	totals->devices[record->device].allocated = record->allocated;
	totals->devices[record->device].reserved = record->reserved;
}

/* Fills `whole`, and changes the totals. */
static void expand_delta(struct tensor_totals *totals, const struct trace_tensor_next *record,
	struct trace_tensor *whole)
{
	const struct trace_tensor_next_stack *with_stack = (const void *)record;
	const uint32_t device = record->head.flags % TRACE_TENSOR_DEVICES;
	const bool freed = record->head.flags & TRACE_TENSOR_FREED;
	const uint64_t bytes = (record->block >> TRACE_TENSOR_BYTES_BIT) * TRACE_TENSOR_UNIT,
		       before = totals->devices[device].allocated,
		       /* A damaged trace may free more than was allocated. */
		now = !freed ? before + bytes : before > bytes ? before - bytes : 0;

	*whole = (struct trace_tensor){ .head = record->head,
		.stamp = record->stamp,
		.address = (record->block & ((UINT64_C(1) << TRACE_TENSOR_BYTES_BIT) - 1)) *
			   TRACE_TENSOR_UNIT,
		.bytes = freed ? -(int64_t)bytes : (int64_t)bytes,
		.allocated = now,
		.reserved = totals->devices[device].reserved,
		.device = device };
	if (record->head.size >= sizeof *with_stack)
		whole->stack = with_stack->stack;
	whole->head.kind = TRACE_TENSOR;
	whole->head.size = sizeof *whole;
	whole->head.flags = 0;
	totals->devices[device].allocated = now;
}

const struct trace_head *tensor_delta_expand(
	struct tensor_totals *totals, const struct trace_head *record, struct trace_tensor *whole)
{
	if (record->kind == TRACE_TENSOR_NEXT) {
		expand_delta(totals, (const void *)record, whole);
		return &whole->head;
	}
	if (record->kind == TRACE_TENSOR || record->kind == TRACE_TENSOR_OOM)
		remember_totals(totals, (const void *)record);
	return record;
}
