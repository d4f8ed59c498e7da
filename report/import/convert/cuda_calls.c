/* SPDX-License-Identifier: MIT
 * kineto_calls.c: calls to the runtime and the driver, and their ids. Kineto gives each its own; where an id comes twice,
 * the first call in the file has it.
 */
#include "report/base/alloc.h"
#include "report/import/convert/convert.h"

static struct kineto_owner *slot_of(const struct kineto_build *build, uint64_t correlation)
{
	/* Ids count up: neighbours in the file are neighbours here. */
	size_t i = (correlation + (correlation >> 20) * 0x9e3779b97f4a7c15u) & (build->owner_slots - 1);

	while (build->owners[i].work && build->owners[i].correlation != correlation)
		i = (i + 1) & (build->owner_slots - 1);
	return &build->owners[i];
}

struct kineto_owner *kineto_owner_of(const struct kineto_build *build, uint64_t correlation)
{
	struct kineto_owner *owner = correlation ? slot_of(build, correlation) : NULL;

	return owner && owner->work ? owner : NULL;
}

void kineto_calls_own(struct kineto_build *build)
{
	const struct kineto *kineto = build->kineto;

	for (build->owner_slots = 64; build->owner_slots < kineto->gpu_count * 2;)
		build->owner_slots *= 2;
	build->owners = need(build->owner_slots * sizeof *build->owners);
	for (size_t i = 0; i < kineto->gpu_count; i++) {
		struct kineto_owner *owner;

		if (!kineto->gpus[i].correlation)
			continue;
		owner = slot_of(build, kineto->gpus[i].correlation);
		owner->correlation = kineto->gpus[i].correlation;
		owner->work |= 1u << kineto->gpus[i].kind;
	}
	for (size_t i = 0; i < kineto->call_count; i++) {
		struct kineto_owner *owner = kineto_owner_of(build, kineto->calls[i].correlation);

		if (owner && !owner->call)
			owner->call = (uint32_t)i + 1;
	}
}

static bool has(struct text name, const char *word)
{
	return memmem(name.bytes, name.length, word, strlen(word)) != NULL;
}

static bool is_graph_building(struct text name)
{
	return (name.length > 4 && !memcmp(name.bytes, "cuGr", 4)) ||
	       (name.length > 6 && (!memcmp(name.bytes, "cudaGr", 6) || !memcmp(name.bytes, "hipGra", 6)));
}

/* The record that a call becomes, by its name; TRACE_SYNC of type 0: another call. */
static enum trace_kind kind_by_name(struct text name, uint32_t *sync)
{
	static const struct {
		const char *word;
		enum trace_kind kind;
		uint32_t sync;
	} words[] = {
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

	*sync = 0;
	for (size_t i = 0; i < sizeof words / sizeof *words; i++)
		if (has(name, words[i].word) && (i == 0 || !is_graph_building(name))) {
			*sync = words[i].sync;
			return words[i].kind;
		}
	return TRACE_SYNC;
}

enum trace_kind kineto_call_kind(struct text name)
{
	uint32_t sync;

	return kind_by_name(name, &sync);
}

/* The same by the name's number, found once. */
static enum trace_kind kind_of_name(struct kineto_build *build, uint32_t text, uint32_t *sync)
{
	struct kineto_call_name *known;

	grow(&build->call_names, &build->call_name_room, (size_t)text + 1, sizeof *build->call_names);
	known = &build->call_names[text];
	if (!known->kind)
		known->kind = kind_by_name(text_of(build->kineto->texts, text), &known->sync);
	*sync = known->sync;
	return known->kind;
}

/* What the GPU did for it says more than its name. */
static enum trace_kind kind_of(struct kineto_build *build, uint32_t name, const struct kineto_owner *owner, uint32_t *sync)
{
	const enum trace_kind kind = kind_of_name(build, name, sync);

	if (!owner || kind == TRACE_GRAPH_LAUNCH)
		return kind;
	if (owner->work & 1u << KINETO_KERNEL)
		return TRACE_LAUNCH;
	return owner->work & 1u << KINETO_COPY ? TRACE_COPY : TRACE_SET;
}

void kineto_call_write(
	struct kineto_build *build, uint32_t number, struct kineto_place place, uint64_t end, bool inner)
{
	const struct kineto_call *call = &build->kineto->calls[number];
	struct kineto_owner *owner = kineto_owner_of(build, call->correlation);
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
	bool second; /* a call in or around the one that asked for the work, of the same id: it asked for nothing more */

	second = owner && owner->call != number + 1;
	if (second)
		owner = NULL;
	kind = kind_of(build, call->name, owner, &sync);
	if (second && kind != TRACE_SYNC)
		kind = TRACE_SYNC;
	record.call.head.node = place.node;
	record.call.stack = place.stack;
	record.call.duration = inner ? 0 : call->duration;
	record.call.api = kineto_name(build, call->name);
	if (owner || kind != TRACE_SYNC)
		record.call.correlation = owner || !kineto_owner_of(build, call->correlation) ? call->correlation : 0;
	if (kind == TRACE_SYNC)
		record.sync.type = sync;
	writer_timed(build->writer, end, kind, &record, sizes[kind]);
}
