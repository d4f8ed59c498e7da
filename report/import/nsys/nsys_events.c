/* SPDX-License-Identifier: MIT
 * nsys_events.c: what has a time in the database: NVTX, calls, the GPU's work, waits, the profiler's own time.
 */
#include "collector/trace_format.h"
#include "report/base/alloc.h"
#include "report/import/nsys/nsys.h"
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define COUNT(array) ((unsigned)(sizeof(array) / sizeof *(array)))

/* What nsys calls the kinds of NVTX_EVENTS. */
enum {
	NVTX_CATEGORY = 33,
	NVTX_MARK,
	NVTX_THREAD = 39,
	NVTX_PUSH_POP = 59,
	NVTX_START_END,
	NVTX_DOMAIN = 75,
	NVTX_DOMAIN_END
};

const char *const nsys_event_tables[] = { "NVTX_EVENTS", "CUPTI_ACTIVITY_KIND_RUNTIME", "CUPTI_ACTIVITY_KIND_DRIVER",
	"CUPTI_ACTIVITY_KIND_KERNEL", "CUPTI_ACTIVITY_KIND_MEMCPY", "CUPTI_ACTIVITY_KIND_MEMSET",
	"CUPTI_ACTIVITY_KIND_GRAPH_TRACE", "CUPTI_ACTIVITY_KIND_SYNCHRONIZATION", "PROFILER_OVERHEAD", NULL };

struct span {
	int64_t start;
	uint64_t duration;
};

/* ---- what rows have in common ---- */

/* Columns 0 and 1. False, and counted: no times that can be. open: the end may be missing. */
static bool read_span(struct nsys_reader *reader, const struct nsys_rows *rows, struct span *span, bool open)
{
	const int64_t start = nsys_number(rows, 0), end = nsys_number(rows, 1), far = INT64_MAX / 4;
	const bool ended = nsys_has(rows, 1);

	reader->kineto->events++;
	if (!nsys_has(rows, 0) || start > far || start < -far || (!ended && !open) ||
		(ended && (end < start || end > far))) {
		reader->kineto->bad++;
		return false;
	}
	span->start = start;
	span->duration = ended ? (uint64_t)(end - start) : KINETO_OPEN;
	reader->earliest = start < reader->earliest ? start : reader->earliest;
	reader->latest = start > reader->latest ? start : reader->latest;
	reader->latest = ended && end > reader->latest ? end : reader->latest;
	return true;
}

static uint32_t number32(const struct nsys_rows *rows, unsigned column)
{
	const int64_t number = nsys_number(rows, column);

	return number < 0 ? 0 : number < UINT32_MAX ? (uint32_t)number : UINT32_MAX;
}

/* A text by its id in StringIds; 0: there is none. */
static uint32_t string_of(struct nsys_reader *reader, const struct nsys_rows *rows, unsigned column)
{
	const int64_t id = nsys_number(rows, column);
	uint32_t *known, text = 0;
	struct text string;

	if (!nsys_has(rows, column))
		return 0;
	known = nsys_map_at(&reader->texts, (uint64_t)id);
	if (!*known) {
		if (nsys_db_string(reader->db, id, &string))
			text = text_id(reader->kineto->texts, string.bytes, string.length);
		*known = text + 1;
	}
	return *known - 1;
}

static uint32_t plain_text(struct nsys_reader *reader, const char *text)
{
	return text_id(reader->kineto->texts, text, strlen(text));
}

static uint32_t thread_of(struct nsys_reader *reader, const struct nsys_rows *rows, unsigned column)
{
	const int64_t global = nsys_number(rows, column);
	uint32_t *known = nsys_map_at(&reader->threads, (uint64_t)global);
	struct kineto *kineto = reader->kineto;
	char number[16];

	if (!*known) {
		struct kineto_thread thread = { .process = nsys_process(reader, global) };

		snprintf(number, sizeof number, "%u", nsys_pid(global));
		thread.pid = plain_text(reader, number);
		snprintf(number, sizeof number, "%u", (unsigned)(global & 0xffffff));
		thread.tid = plain_text(reader, number);
		*KINETO_NEW(kineto, thread, threads) = thread;
		*known = (uint32_t)kineto->thread_count;
	}
	return *known - 1;
}

/* Old versions do not say whose work it is: that of the process which made the first call. */
static uint32_t process_of(struct nsys_reader *reader, const struct nsys_rows *rows, unsigned column)
{
	return nsys_has(rows, column) ? nsys_process(reader, nsys_number(rows, column)) : reader->caller;
}

static void leave_out(struct nsys_reader *reader, const char *what)
{
	struct kineto *kineto = reader->kineto;
	const uint32_t category = plain_text(reader, what);
	size_t i = 0;

	while (i < kineto->left_out_count && kineto->left_outs[i].category != category)
		i++;
	if (i == kineto->left_out_count)
		*KINETO_NEW(kineto, left_out, left_outs) = (struct kineto_left_out){ category, 0 };
	kineto->left_outs[i].events++;
}

/* ---- NVTX ---- */

enum { V_START, V_END, V_TYPE, V_TEXT, V_TEXT_ID, V_THREAD, V_END_THREAD, V_DOMAIN };
static const char *const nvtx_columns[] = { "start", "end", "eventType", "text", "textId", "globalTid", "endGlobalTid",
	"domainId" };

static uint32_t nvtx_text(struct nsys_reader *reader, const struct nsys_rows *rows)
{
	const struct text text = nsys_bytes(rows, V_TEXT);

	return nsys_has(rows, V_TEXT) ? text_id(reader->kineto->texts, text.bytes, text.length)
				      : string_of(reader, rows, V_TEXT_ID);
}

/* Its row + 1; 0: the default one. Those beyond 65535 are the last one. */
static uint16_t domain_of(struct nsys_reader *reader, const struct nsys_rows *rows)
{
	const uint64_t id = number32(rows, V_DOMAIN);
	struct kineto *kineto = reader->kineto;
	uint32_t *known;

	if (!id)
		return 0;
	known = nsys_map_at(&reader->domains, (uint64_t)process_of(reader, rows, V_THREAD) << 32 | id);
	if (!*known) {
		if (kineto->domain_count < UINT16_MAX)
			*KINETO_NEW(kineto, domain, domains) = (struct kineto_domain){ 0 };
		*known = (uint32_t)kineto->domain_count;
	}
	return (uint16_t)*known;
}

static void take_nested(struct nsys_reader *reader, const struct nsys_rows *rows, const struct span *span)
{
	struct kineto *kineto = reader->kineto;
	struct kineto_range range = { .start = span->start,
		.duration = span->duration,
		.sequence = KINETO_NO_SEQUENCE,
		.name = nvtx_text(reader, rows),
		.thread = thread_of(reader, rows, V_THREAD),
		.kind = TRACE_NODE_RANGE,
		.domain = domain_of(reader, rows) };

	if (span->duration == KINETO_OPEN) {
		grow(&reader->open, &reader->open_room, reader->open_count + 1, sizeof *reader->open);
		reader->open[reader->open_count++] = kineto->range_count;
	}
	*KINETO_NEW(kineto, range, ranges) = range;
}

static void take_moment(
	struct nsys_reader *reader, const struct nsys_rows *rows, int64_t time, enum trace_kind kind, uint64_t id)
{
	const bool elsewhere = kind == TRACE_END && nsys_has(rows, V_END_THREAD);
	struct kineto_moment moment = { .time = time,
		.id = id,
		.name = nvtx_text(reader, rows),
		.thread = thread_of(reader, rows, elsewhere ? V_END_THREAD : V_THREAD),
		.kind = (uint16_t)kind,
		.domain = domain_of(reader, rows) };

	*KINETO_NEW(reader->kineto, moment, moments) = moment;
}

static void take_nvtx(struct nsys_reader *reader, const struct nsys_rows *rows)
{
	const int64_t type = nsys_number(rows, V_TYPE);
	uint16_t domain;
	struct span span;

	if (!read_span(reader, rows, &span, true))
		return;
	switch (type) {
	case NVTX_PUSH_POP:
		take_nested(reader, rows, &span);
		break;
	case NVTX_START_END:
		take_moment(reader, rows, span.start, TRACE_START, ++reader->spans);
		if (span.duration != KINETO_OPEN)
			take_moment(reader, rows, span.start + (int64_t)span.duration, TRACE_END, reader->spans);
		else
			reader->kineto->not_ended++;
		break;
	case NVTX_MARK:
		take_moment(reader, rows, span.start, TRACE_MARK, 0);
		break;
	case NVTX_THREAD:
		take_moment(reader, rows, span.start, TRACE_OBJECT, 0);
		break;
	case NVTX_DOMAIN:
		domain = domain_of(reader, rows);
		if (domain)
			reader->kineto->domains[domain - 1].name = nvtx_text(reader, rows);
		break;
	case NVTX_DOMAIN_END:
		break;
	default:
		leave_out(reader, type == NVTX_CATEGORY ? "names of NVTX categories" : "NVTX events of other kinds");
	}
}

/* ---- calls ---- */

enum { C_START, C_END, C_NAME, C_THREAD, C_CORRELATION };
static const char *const call_columns[] = { "start", "end", "nameId", "globalTid", "correlationId" };

/* `cudaMalloc_v3020` is cudaMalloc as it has been since CUDA 3.2. */
static uint32_t without_version(struct nsys_reader *reader, uint32_t name)
{
	const struct text text = text_of(reader->kineto->texts, name);
	uint32_t length = text.length;

	while (length > 0 && text.bytes[length - 1] >= '0' && text.bytes[length - 1] <= '9')
		length--;
	if (text.length - length < 4 || length < 3 || memcmp(text.bytes + length - 2, "_v", 2))
		return name;
	return text_id(reader->kineto->texts, text.bytes, length - 2);
}

static void take_call(struct nsys_reader *reader, const struct nsys_rows *rows)
{
	struct kineto_call call = { .name = without_version(reader, string_of(reader, rows, C_NAME)) };
	struct span span;

	if (!read_span(reader, rows, &span, false))
		return;
	call.start = span.start;
	call.duration = span.duration;
	call.correlation = number32(rows, C_CORRELATION);
	call.thread = thread_of(reader, rows, C_THREAD);
	if (!reader->kineto->call_count)
		reader->caller = reader->kineto->threads[call.thread].process;
	*KINETO_NEW(reader->kineto, call, calls) = call;
}

/* ---- the GPU ---- */

enum { G_START, G_END, G_CORRELATION, G_PROCESS, G_DEVICE, G_CONTEXT, G_STREAM, G_GRAPH_NODE, G_GRAPH, G_OWN };
#define GPU_COLUMNS \
	"start", "end", "correlationId", "globalPid", "deviceId", "contextId", "streamId", "graphNodeId", "graphId"

static bool read_gpu(
	struct nsys_reader *reader, const struct nsys_rows *rows, struct kineto_gpu *gpu, enum kineto_work kind)
{
	struct span span;

	if (!read_span(reader, rows, &span, false))
		return false;
	*gpu = (struct kineto_gpu){ .start = span.start,
		.duration = span.duration,
		.correlation = number32(rows, G_CORRELATION),
		.graph_node = (uint64_t)nsys_number(rows, G_GRAPH_NODE),
		.device = number32(rows, G_DEVICE),
		.context = number32(rows, G_CONTEXT),
		.stream = number32(rows, G_STREAM),
		.graph = number32(rows, G_GRAPH),
		.kind = (uint16_t)kind,
		.process = process_of(reader, rows, G_PROCESS) };
	return true;
}

enum {
	K_MANGLED = G_OWN,
	K_DEMANGLED,
	K_SHORT,
	K_GRID,
	K_BLOCK = K_GRID + 3,
	K_REGISTERS = K_BLOCK + 3,
	K_STATIC,
	K_DYNAMIC
};
static const char *const kernel_columns[] = { GPU_COLUMNS, "mangledName", "demangledName", "shortName", "gridX",
	"gridY", "gridZ", "blockX", "blockY", "blockZ", "registersPerThread", "staticSharedMemory",
	"dynamicSharedMemory" };

/* The mangled one, which says most; `[...]` is none. */
static uint32_t kernel_name(struct nsys_reader *reader, const struct nsys_rows *rows)
{
	uint32_t name = 0;

	for (unsigned column = K_MANGLED; column <= K_SHORT && !name; column++) {
		name = string_of(reader, rows, column);
		if (column < K_SHORT && *text_of(reader->kineto->texts, name).bytes == '[')
			name = 0;
	}
	return name;
}

static void take_kernel(struct nsys_reader *reader, const struct nsys_rows *rows)
{
	struct kineto_gpu gpu;

	if (!read_gpu(reader, rows, &gpu, KINETO_KERNEL))
		return;
	gpu.name = kernel_name(reader, rows);
	for (unsigned i = 0; i < 3; i++) {
		gpu.grid[i] = number32(rows, K_GRID + i);
		gpu.block[i] = number32(rows, K_BLOCK + i);
	}
	gpu.registers = number32(rows, K_REGISTERS);
	gpu.static_shared = number32(rows, K_STATIC);
	gpu.shared = number32(rows, K_DYNAMIC);
	*KINETO_NEW(reader->kineto, gpu, gpus) = gpu;
}

static const char *memory_of(const struct nsys_rows *rows, unsigned column)
{
	static const char *const kinds[] = { "Pageable", "Pinned", "Device", "Array", "Managed", "Device Static",
		"Managed Static" };
	const uint32_t kind = number32(rows, column);

	return nsys_has(rows, column) && kind < COUNT(kinds) ? kinds[kind] : "Unknown";
}

enum { M_BYTES = G_OWN, M_COPY_KIND, M_SOURCE, M_TARGET };
static const char *const copy_columns[] = { GPU_COLUMNS, "bytes", "copyKind", "srcKind", "dstKind" };

static void take_copy(struct nsys_reader *reader, const struct nsys_rows *rows)
{
	static const char *const ways[] = { "", "HtoD", "DtoH", "HtoA", "AtoH", "AtoA", "AtoD", "DtoA", "DtoD", "HtoH",
		"PtoP", "HtoD", "DtoH", "DtoD" }; /* the last three: unified memory */
	const uint32_t way = number32(rows, M_COPY_KIND);
	struct kineto_gpu gpu;
	char name[96];

	if (!read_gpu(reader, rows, &gpu, KINETO_COPY))
		return;
	snprintf(name, sizeof name, "Memcpy %s (%s -> %s)", way < COUNT(ways) ? ways[way] : "",
		memory_of(rows, M_SOURCE), memory_of(rows, M_TARGET));
	gpu.name = plain_text(reader, name);
	gpu.bytes = nsys_number(rows, M_BYTES) > 0 ? (uint64_t)nsys_number(rows, M_BYTES) : 0;
	*KINETO_NEW(reader->kineto, gpu, gpus) = gpu;
}

static const char *const set_columns[] = { GPU_COLUMNS, "bytes", "memKind" };

static void take_set(struct nsys_reader *reader, const struct nsys_rows *rows)
{
	struct kineto_gpu gpu;
	char name[48];

	if (!read_gpu(reader, rows, &gpu, KINETO_SET))
		return;
	snprintf(name, sizeof name, "Memset (%s)", memory_of(rows, G_OWN + 1));
	gpu.name = plain_text(reader, name);
	gpu.bytes = nsys_number(rows, M_BYTES) > 0 ? (uint64_t)nsys_number(rows, M_BYTES) : 0;
	*KINETO_NEW(reader->kineto, gpu, gpus) = gpu;
}

static const char *const graph_columns[] = { GPU_COLUMNS };

static void take_graph(struct nsys_reader *reader, const struct nsys_rows *rows)
{
	struct kineto_gpu gpu;

	if (!read_gpu(reader, rows, &gpu, KINETO_KERNEL))
		return;
	gpu.name = plain_text(reader, "whole graph");
	reader->kineto->whole_graphs++;
	*KINETO_NEW(reader->kineto, gpu, gpus) = gpu;
}

static const char *const sync_columns[] = { GPU_COLUMNS, "syncType", "eventId" };

static void take_sync(struct nsys_reader *reader, const struct nsys_rows *rows)
{
	static const char *const types[] = { "Sync", "Event Sync", "Stream Wait Event", "Stream Sync", "Context Sync" };
	const uint32_t type = number32(rows, G_OWN);
	struct kineto_gpu at;

	if (!read_gpu(reader, rows, &at, KINETO_KERNEL))
		return;
	*KINETO_NEW(reader->kineto, sync, syncs) = (struct kineto_sync){ .start = at.start,
		.duration = at.duration,
		.correlation = at.correlation,
		.name = plain_text(reader, types[type < COUNT(types) ? type : 0]),
		.stream = at.stream,
		.context = at.context,
		.process = at.process,
		.event = number32(rows, G_OWN + 1) };
}

static const char *const overhead_columns[] = { "start", "end", "globalTid" };

static void take_overhead(struct nsys_reader *reader, const struct nsys_rows *rows)
{
	struct span span;

	if (read_span(reader, rows, &span, false))
		*KINETO_NEW(reader->kineto, overhead, overheads) = (struct kineto_overhead){
			span.start, span.duration, process_of(reader, rows, 2) };
}

/* ---- all of it ---- */

void nsys_events_read(struct nsys_reader *reader)
{
	static const struct {
		const char *const *columns;
		unsigned count;
		void (*take)(struct nsys_reader *, const struct nsys_rows *);
	} ways[] = {
		/* in the order of nsys_event_tables */
		{ nvtx_columns, COUNT(nvtx_columns), take_nvtx },
		{ call_columns, COUNT(call_columns), take_call },
		{ call_columns, COUNT(call_columns), take_call },
		{ kernel_columns, COUNT(kernel_columns), take_kernel },
		{ copy_columns, COUNT(copy_columns), take_copy },
		{ set_columns, COUNT(set_columns), take_set },
		{ graph_columns, COUNT(graph_columns), take_graph },
		{ sync_columns, COUNT(sync_columns), take_sync },
		{ overhead_columns, COUNT(overhead_columns), take_overhead },
	};

	for (size_t i = 0; i < COUNT(ways); i++) {
		struct nsys_rows *rows = nsys_rows(reader->db, nsys_event_tables[i], ways[i].columns, ways[i].count);

		while (nsys_rows_next(rows))
			ways[i].take(reader, rows);
		nsys_rows_end(rows);
	}
}
