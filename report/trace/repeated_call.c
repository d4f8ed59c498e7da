/* SPDX-License-Identifier: MIT */
#include "report/trace/repeated_call.h"

#include "report/trace/record_check.h"

#include <string.h>

/* Returns the struct size of a call record, or 0 if `kind` is not a call. */
static size_t call_record_bytes(unsigned kind)
{
	switch (kind) {
	case TRACE_LAUNCH:
		return sizeof(struct trace_launch);
	case TRACE_GRAPH_LAUNCH:
		return sizeof(struct trace_graph_launch);
	case TRACE_COPY:
	case TRACE_SET:
		return sizeof(struct trace_copy);
	case TRACE_SYNC:
		return sizeof(struct trace_sync);
	case TRACE_ALLOC:
	case TRACE_FREE:
		return sizeof(struct trace_memory);
	}
	return 0;
}
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
		return "repeats one that does not lie before it";
	bytes = call_record_bytes(was->kind);
	if (!bytes)
		return "repeats one that is no call";
	if (sizeof whole->call + more > bytes)
		return "repeats a call with more than it has";
	memcpy(whole, was, bytes);
	memcpy(whole->words + sizeof whole->call / 8, again + 1, more);
	whole->call.head.size = (uint16_t)bytes;
	whole->call.head.node = again->head.node;
	whole->call.stamp = again->stamp;
	whole->call.duration = again->duration;
	whole->call.correlation += again->correlation;
	return NULL;
}
