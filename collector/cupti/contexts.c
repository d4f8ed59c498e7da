/* SPDX-License-Identifier: MIT */
#include "collector/cupti/contexts.h"

#include "collector/cupti/session_state.h"
#include "collector/file/dictionary.h"

static struct cupti_known_context *find_context(uint32_t id)
{
	struct cupti_known_context *entry = &cupti_session->contexts[id % CUPTI_CONTEXTS];

	return id && atomic_load_explicit(&entry->id, memory_order_acquire) == id ? entry : NULL;
}

uint32_t cupti_device_of(uint32_t context)
{
	struct cupti_known_context *entry = cupti_session ? find_context(context) : NULL;

	return entry ? entry->device : UINT32_MAX;
}

void cupti_write_context(uint32_t context, uint32_t device, uint32_t null_stream)
{
	struct cupti_known_context *entry = find_context(context);
	struct trace_context record = { .head = { .size = sizeof record, .kind = TRACE_CONTEXT },
		.stream = UINT32_MAX };

	record.context = context;
	record.device = device;
	record.null_stream = null_stream;
	record.handle = entry ? entry->handle : 0;
	dictionary_put(&record.head, 0);
}

uint32_t cupti_graph_exec_id(void *exec)
{
	uint32_t id = 0;

	if (!exec || !cupti_runs() || !cupti_session->library.graph_exec_id ||
		cupti_session->library.graph_exec_id(exec, &id) != CUPTI_OK)
		return 0;
	return id;
}
