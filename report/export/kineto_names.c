/* SPDX-License-Identifier: MIT */
#include "report/export/kineto_names.h"
#include <stdio.h>
#include <string.h>

static const char *memory_word(uint32_t kind)
{
	static const char *const words[] = { "Unknown", "Pageable", "Pinned", "Device", "Array",
		"Managed", "Device Static", "Managed Static" };

	return words[kind < sizeof words / sizeof *words ? kind : 0];
}

void kineto_copy_name(char name[KINETO_NAME_BYTES], const struct trace_gpu_copy *copy)
{
	static const char *const directions[] = { "Unknown", "HtoD", "DtoH", "HtoA", "AtoH", "AtoA",
		"AtoD", "DtoA", "DtoD", "HtoH", "PtoP" };
	const uint32_t kind = copy->copy_kind < sizeof directions / sizeof *directions
				      ? copy->copy_kind
				      : 0;

	if (copy->gpu.head.kind == TRACE_GPU_SET)
		snprintf(name, KINETO_NAME_BYTES, "Memset (%s)", memory_word(copy->target_kind));
	else
		snprintf(name, KINETO_NAME_BYTES, "Memcpy %s (%s -> %s)", directions[kind],
			memory_word(copy->source_kind), memory_word(copy->target_kind));
}

const char *kineto_sync_name(uint32_t type)
{
	switch (type) {
	case TRACE_SYNC_EVENT:
		return "Event Sync";
	case TRACE_SYNC_STREAM_WAIT:
		return "Stream Wait Event";
	case TRACE_SYNC_STREAM:
		return "Stream Sync";
	default:
		return "Context Sync";
	}
}

const char *kineto_overhead_name(uint32_t type)
{
	switch (type) {
	case TRACE_OVERHEAD_DRIVER_COMPILER:
		return "Driver Compiler";
	case TRACE_OVERHEAD_BUFFER_FLUSH:
		return "Buffer Flush";
	case TRACE_OVERHEAD_INSTRUMENTATION:
		return "Instrumentation";
	case TRACE_OVERHEAD_RESOURCE:
		return "Resource";
	case TRACE_OVERHEAD_MODULE_LOADING:
		return "Runtime Triggered Module Loading";
	case TRACE_OVERHEAD_LAZY_LOADING:
		return "Lazy Function Loading";
	case TRACE_OVERHEAD_COMMAND_BUFFER_FULL:
		return "Command Buffer Full";
	case TRACE_OVERHEAD_BUFFER_REQUEST:
		return "Activity Buffer Request";
	case TRACE_OVERHEAD_UVM_INIT:
		return "UVM Activity Init";
	default:
		return "Overhead";
	}
}

bool kineto_is_driver_call(const char *name, size_t length)
{
	return length > 2 && name[0] == 'c' && name[1] == 'u' && name[2] >= 'A' && name[2] <= 'Z';
}

struct string_view kineto_call_name(struct string_view name)
{
	static const char hidden[] = "__cudaLaunchKernel";

	if (name.length < sizeof hidden - 1 || memcmp(name.bytes, hidden, sizeof hidden - 1) != 0)
		return name;
	return (struct string_view){ name.bytes + 2, name.length - 2 };
}

const char *kineto_call_category(const char *name, size_t length)
{
	return kineto_is_driver_call(name, length) ? "cuda_driver" : "cuda_runtime";
}
