/* SPDX-License-Identifier: MIT
 * Converts calls of the CUDA runtime and driver, and finds the call of each correlation id. Kineto
 * gives every call an id of its own. If an id occurs twice, the first call in the file owns it.
 */
#include "report/base/alloc.h"
#include "report/import/convert/convert.h"

static struct correlation_owner *owner_slot(
	const struct conversion *conversion, uint64_t correlation)
{
	/* Ids increase, so neighbours in the file become neighbours in the table. */
	size_t i = (correlation + (correlation >> 20) * 0x9e3779b97f4a7c15u) &
		   (conversion->owner_slots - 1);

	while (conversion->owners[i].work && conversion->owners[i].correlation != correlation)
		i = (i + 1) & (conversion->owner_slots - 1);
	return &conversion->owners[i];
}

struct correlation_owner *convert_owner(const struct conversion *conversion, uint64_t correlation)
{
	struct correlation_owner *owner = correlation ? owner_slot(conversion, correlation) : NULL;

	return owner && owner->work ? owner : NULL;
}

static void add_owned_work(struct conversion *conversion, const struct imported_gpu *gpu)
{
	struct correlation_owner *owner = owner_slot(conversion, gpu->correlation);

	owner->correlation = gpu->correlation;
	owner->work = (uint16_t)(owner->work | 1u << gpu->kind);
	if (gpu->kind == IMPORTED_COPY)
		owner->copy_kind = (uint16_t)convert_copy_kind(
			string_table_get(conversion->imported->texts, gpu->name));
}

void convert_find_owners(struct conversion *conversion)
{
	const struct event_rows *imported = conversion->imported;

	for (conversion->owner_slots = 64; conversion->owner_slots < imported->gpu_count * 2;)
		conversion->owner_slots *= 2;
	conversion->owners = xcalloc(conversion->owner_slots * sizeof *conversion->owners);
	for (size_t i = 0; i < imported->gpu_count; i++)
		if (imported->gpus[i].correlation)
			add_owned_work(conversion, &imported->gpus[i]);
	for (size_t i = 0; i < imported->call_count; i++) {
		struct correlation_owner *owner = convert_owner(
			conversion, imported->calls[i].correlation);

		if (owner && !owner->call)
			owner->call = (uint32_t)i + 1;
	}
}

static bool call_name_contains(struct string_view name, const char *word)
{
	return memmem(name.bytes, name.length, word, strlen(word)) != NULL;
}

static bool is_graph_building(struct string_view name)
{
	return (name.length > 4 && !memcmp(name.bytes, "cuGr", 4)) ||
	       (name.length > 6 &&
		       (!memcmp(name.bytes, "cudaGr", 6) || !memcmp(name.bytes, "hipGra", 6)));
}

static const struct {
	const char *word;
	enum trace_kind kind;
	uint32_t sync;
} call_words[] = {
	{ "GraphLaunch", TRACE_GRAPH_LAUNCH, 0 },
	{ "LaunchKernel", TRACE_LAUNCH, 0 },
	{ "LaunchCooperativeKernel", TRACE_LAUNCH, 0 },
	{ "Memcpy", TRACE_COPY, 0 },
	{ "Memset", TRACE_SET, 0 },
	{ "EventSynchronize", TRACE_SYNC, TRACE_SYNC_EVENT },
	{ "StreamSynchronize", TRACE_SYNC, TRACE_SYNC_STREAM },
	{ "Synchronize", TRACE_SYNC, TRACE_SYNC_CONTEXT },
	{ "StreamWaitEvent", TRACE_SYNC, TRACE_SYNC_STREAM_WAIT },
	{ "EventRecord", TRACE_SYNC, TRACE_EVENT_RECORD },
};

/* Returns the record kind of a call by its name. TRACE_SYNC with `sync` 0 means any other call. */
static enum trace_kind call_kind_by_name(struct string_view name, uint32_t *sync)
{
	*sync = 0;
	for (size_t i = 0; i < sizeof call_words / sizeof *call_words; i++)
		if (call_name_contains(name, call_words[i].word) &&
			(i == 0 || !is_graph_building(name))) {
			*sync = call_words[i].sync;
			return call_words[i].kind;
		}
	return TRACE_SYNC;
}

enum trace_kind cuda_call_kind(struct string_view name)
{
	uint32_t sync;

	return call_kind_by_name(name, &sync);
}

/* Does the same as call_kind_by_name, but only once per name. */
enum trace_kind convert_call_kind(struct conversion *conversion, uint32_t text, uint32_t *sync)
{
	struct conversion_call_name *known;

	ARRAY_GROW(conversion->call_names, conversion->call_name_room, (size_t)text + 1);
	known = &conversion->call_names[text];
	if (!known->kind)
		known->kind = call_kind_by_name(
			string_table_get(conversion->imported->texts, text), &known->sync);
	*sync = known->sync;
	return known->kind;
}

/* Returns the record kind of a call. If GPU work has its id, the kind of that work decides
 * instead of the name. */
static enum trace_kind call_record_kind(struct conversion *conversion, uint32_t name,
	const struct correlation_owner *owner, uint32_t *sync)
{
	const enum trace_kind kind = convert_call_kind(conversion, name, sync);

	if (!owner || kind == TRACE_GRAPH_LAUNCH)
		return kind;
	if (owner->work & 1u << IMPORTED_KERNEL)
		return TRACE_LAUNCH;
	return owner->work & 1u << IMPORTED_COPY ? TRACE_COPY : TRACE_SET;
}

void convert_call(struct conversion *conversion, uint32_t number, struct call_location location,
	uint64_t end, bool inner)
{
	const struct imported_call *call = &conversion->imported->calls[number];
	struct correlation_owner *owner = convert_owner(conversion, call->correlation);
	union {
		struct trace_call call;
		struct trace_launch launch;
		struct trace_graph_launch graph;
		struct trace_copy copy;
		struct trace_sync sync;
	} record = { .call.device = UINT32_MAX };
	static const size_t sizes[TRACE_KINDS] = { [TRACE_LAUNCH] = sizeof record.launch,
		[TRACE_GRAPH_LAUNCH] = sizeof record.graph,
		[TRACE_COPY] = sizeof record.copy,
		[TRACE_SET] = sizeof record.copy,
		[TRACE_SYNC] = sizeof record.sync };
	enum trace_kind kind;
	uint32_t sync;
	/* A call inside or around the owner of its id: it issued no work of its own. */
	bool second;

	second = owner && owner->call != number + 1;
	if (second)
		owner = NULL;
	kind = call_record_kind(conversion, call->name, owner, &sync);
	if (second && kind != TRACE_SYNC) {
		kind = TRACE_SYNC;
		sync = 0;
	}
	record.call.head.node = location.node;
	record.call.head.flags = kind == TRACE_SYNC ? 0 : (uint8_t)call->flags;
	record.call.result = call->result;
	record.call.stack = location.stack;
	record.call.duration = inner ? 0 : call->duration;
	record.call.api = convert_name(conversion, call->name);
	if (owner || kind != TRACE_SYNC || sync)
		record.call.correlation = owner || !convert_owner(conversion, call->correlation)
						  ? call->correlation
						  : 0;
	if (kind == TRACE_SYNC)
		record.sync.type = sync;
	if (kind == TRACE_COPY && owner)
		record.copy.copy_kind = owner->copy_kind;
	writer_timed(conversion->writer, end, kind, &record, sizes[kind]);
}
