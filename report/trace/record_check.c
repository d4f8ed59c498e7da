/* SPDX-License-Identifier: MIT */
#include "report/trace/record_check.h"

static const struct {
	uint16_t bytes;
	bool timed;
} kinds[TRACE_KINDS] = {
#define X(kind, type, is, text) [TRACE_##kind] = { sizeof(struct type), is },
	TRACE_RECORDS(X)
#undef X
};

bool kind_is_timed(unsigned kind)
{
	return kind < TRACE_KINDS && kinds[kind].timed;
}

bool kind_is_dictionary(unsigned kind)
{
	return (kind >= TRACE_META && kind <= TRACE_GRAPH_EXEC) || kind == TRACE_PYTHON_STACK ||
	       kind == TRACE_SOURCE || kind == TRACE_DEVICE_RATES || kind == TRACE_MIXED_STACK ||
	       kind == TRACE_COMMUNICATOR || kind == TRACE_FRAME || kind == TRACE_PYTHON_FRAME;
}

bool kind_is_gpu(unsigned kind)
{
	return kind >= TRACE_KERNEL && kind <= TRACE_OVERHEAD;
}

/* Returns the number of bytes that must follow the struct. */
static uint64_t announced_bytes(const struct trace_head *head)
{
	const void *record = head;
	const struct trace_range *range = record;
	const struct trace_meta *meta = record;
	const struct trace_module *module = record;
	const struct trace_stack *stack = record;
	const struct trace_python_stack *python_stack = record;

	switch (head->kind) {
	case TRACE_PUSH:
	case TRACE_START:
	case TRACE_MARK:
		return head->flags & TRACE_HAS_TEXT ? range->text_bytes : 0;
	case TRACE_META:
		return (uint64_t)meta->key_bytes + meta->value_bytes;
	case TRACE_NAME:
		return ((const struct trace_name *)record)->bytes;
	case TRACE_MODULE:
		return (uint64_t)module->path_bytes + module->build_id_bytes;
	case TRACE_STACK:
		return (uint64_t)stack->frames * 8;
	case TRACE_PYTHON_STACK:
		return (uint64_t)python_stack->frames * sizeof(struct trace_python_frame);
	}
	return 0;
}

const char *record_check(const struct trace_head *head, size_t room)
{
	if (room < sizeof *head || head->size > room)
		return "extends beyond its block";
	if (head->size < sizeof *head || head->size % 8)
		return "has a size that is not a multiple of 8";
	if (head->kind == TRACE_NONE)
		return "has no kind";
	if (head->kind >= TRACE_KINDS)
		return NULL;
	if (head->size < kinds[head->kind].bytes)
		return "is smaller than its kind";
	if (announced_bytes(head) > (uint64_t)head->size - kinds[head->kind].bytes)
		return "has more text than fits in it";
	return NULL;
}

const char *event_kind_name(uint32_t kind)
{
	static const char *const words[EVENT_KINDS] = {
		[TRACE_CLOCK] = "clock",
		[TRACE_PUSH] = "push",
		[TRACE_START] = "start",
		[TRACE_END] = "end",
		[TRACE_MARK] = "mark",
		[TRACE_OBJECT] = "name",
		[TRACE_NVTX_SYNC] = "lock",
		[TRACE_METRIC] = "metric",
		[TRACE_LOST] = "lost",
		[TRACE_SELF] = "self",
		[TRACE_LAUNCH] = "launch",
		[TRACE_GRAPH_LAUNCH] = "graph_launch",
		[TRACE_COPY] = "copy",
		[TRACE_SET] = "set",
		[TRACE_SYNC] = "sync",
		[TRACE_ALLOC] = "alloc",
		[TRACE_FREE] = "free",
		[TRACE_GPU_BATCH] = "batch",
		[TRACE_KERNEL] = "kernel",
		[TRACE_GPU_COPY] = "memcpy",
		[TRACE_GPU_SET] = "memset",
		[TRACE_GPU_SYNC] = "gpu_sync",
		[TRACE_GPU_MEMORY] = "gpu_memory",
		[TRACE_API] = "api",
		[TRACE_OVERHEAD] = "overhead",
		[TRACE_TENSOR] = "tensor",
		[TRACE_TENSOR_OOM] = "oom",
		[TRACE_WINDOW] = "window",
		[TRACE_AWAY] = "away",
		[TRACE_MAPPING] = "mapping",
		[TRACE_DEVICE_MEMORY] = "device_memory",
		[TRACE_CPU_SAMPLE] = "cpu_sample",
		[TRACE_COLLECTIVE] = "collective",
		[TRACE_SAMPLE] = "sample",
		[TRACE_SAMPLED_THREAD] = "sampled_thread",
		[TRACE_SAMPLE_PYTHON] = "sample_python",
		[EVENT_POP] = "pop",
		[EVENT_RESUMED] = "resumed",
		[EVENT_UNENDED] = "unended",
		[EVENT_LEFT_OPEN] = "left_open",
		[EVENT_GAP] = "gap",
		[EVENT_UNMATCHED] = "unmatched_pop",
	};

	return kind < EVENT_KINDS ? words[kind] : NULL;
}
