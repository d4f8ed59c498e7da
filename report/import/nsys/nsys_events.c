/* SPDX-License-Identifier: MIT
 * Reads the tables with times: NVTX, MPI, calls, GPU work, waits, and the profiler's overhead.
 */
#include "collector/trace_format.h"
#include "report/base/alloc.h"
#include "report/base/compare.h"
#include "report/import/nsys/nsys.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define COUNT(array) ((unsigned)(sizeof(array) / sizeof *(array)))

/* nsys's numbers of the kinds in NVTX_EVENTS. */
enum {
	NVTX_CATEGORY = 33,
	NVTX_MARK,
	NVTX_THREAD = 39,
	NVTX_PUSH_POP = 59,
	NVTX_START_END,
	NVTX_DOMAIN = 75,
	NVTX_DOMAIN_END
};

const char *const nsys_event_tables[] = { "NVTX_EVENTS", "CUPTI_ACTIVITY_KIND_RUNTIME",
	"CUPTI_ACTIVITY_KIND_DRIVER", "CUPTI_ACTIVITY_KIND_KERNEL", "CUPTI_ACTIVITY_KIND_MEMCPY",
	"CUPTI_ACTIVITY_KIND_MEMSET", "CUPTI_ACTIVITY_KIND_GRAPH_TRACE",
	"CUPTI_ACTIVITY_KIND_SYNCHRONIZATION", "PROFILER_OVERHEAD", "MPI_P2P_EVENTS",
	"MPI_COLLECTIVES_EVENTS", "MPI_START_WAIT_EVENTS", "MPI_OTHER_EVENTS", NSYS_SAMPLES, NULL };

struct nsys_times {
	int64_t start;
	uint64_t duration;
};

/* Reads start and end from columns 0 and 1, and counts the event. Counts it as unreadable and
 * returns false if the times are not valid. `may_be_open`: the end may be missing. */
static bool read_nsys_times(struct nsys_reader *reader, const struct nsys_rows *rows,
	struct nsys_times *span, bool may_be_open)
{
	const int64_t start = nsys_rows_number(rows, 0), end = nsys_rows_number(rows, 1),
		      far = INT64_MAX / 4;
	const bool ended = nsys_rows_has_value(rows, 1);

	reader->imported->events++;
	if (!nsys_rows_has_value(rows, 0) || start > far || start < -far ||
		(!ended && !may_be_open) || (ended && (end < start || end > far))) {
		reader->imported->unreadable++;
		return false;
	}
	span->start = start;
	span->duration = ended ? (uint64_t)(end - start) : IMPORTED_NOT_ENDED;
	reader->earliest = start < reader->earliest ? start : reader->earliest;
	reader->latest = start > reader->latest ? start : reader->latest;
	reader->latest = ended && end > reader->latest ? end : reader->latest;
	return true;
}

static uint32_t nsys_rows_number32(const struct nsys_rows *rows, unsigned column)
{
	const int64_t number = nsys_rows_number(rows, column);

	return number < 0 ? 0 : number < UINT32_MAX ? (uint32_t)number : UINT32_MAX;
}

uint32_t nsys_string_column(
	struct nsys_reader *reader, const struct nsys_rows *rows, unsigned column)
{
	const int64_t id = nsys_rows_number(rows, column);
	uint32_t *known, text = 0;
	struct string_view string;

	if (!nsys_rows_has_value(rows, column))
		return 0;
	known = nsys_id_map_slot(&reader->text_of_id, (uint64_t)id);
	if (!*known) {
		if (nsys_database_string(reader->db, id, &string))
			text = string_table_intern(
				reader->imported->texts, string.bytes, string.length);
		*known = text + 1;
	}
	return *known - 1;
}

static uint32_t intern_text(struct nsys_reader *reader, const char *text)
{
	return string_table_intern(reader->imported->texts, text, strlen(text));
}

static uint32_t thread_of_row(
	struct nsys_reader *reader, const struct nsys_rows *rows, unsigned column)
{
	const int64_t global = nsys_rows_number(rows, column);
	uint32_t *known = nsys_id_map_slot(&reader->thread_of_id, (uint64_t)global);
	struct event_rows *imported = reader->imported;
	char number[16];

	if (!*known) {
		struct imported_thread thread = { .process = nsys_process(reader, global) };

		snprintf(number, sizeof number, "%u", nsys_pid(global));
		thread.pid = intern_text(reader, number);
		snprintf(number, sizeof number, "%u", (unsigned)(global & 0xffffff));
		thread.tid = intern_text(reader, number);
		*EVENT_ROWS_ADD(imported, thread, threads) = thread;
		*known = (uint32_t)imported->thread_count;
	}
	return *known - 1;
}

/* Returns the process of a row. Old versions do not have it. Then it is the process that made
 * the first call. */
static uint32_t process_of_row(
	struct nsys_reader *reader, const struct nsys_rows *rows, unsigned column)
{
	return nsys_rows_has_value(rows, column)
		       ? nsys_process(reader, nsys_rows_number(rows, column))
		       : reader->caller;
}

void nsys_skip(struct nsys_reader *reader, const char *what, uint64_t events)
{
	struct event_rows *imported = reader->imported;
	const uint32_t category = intern_text(reader, what);
	size_t i = 0;

	while (i < imported->skip_count && imported->skips[i].category != category)
		i++;
	if (i == imported->skip_count)
		*EVENT_ROWS_ADD(
			imported, skip, skips) = (struct imported_skip){ .category = category };
	imported->skips[i].events += events;
}

enum { V_START, V_END, V_TYPE, V_TEXT, V_TEXT_ID, V_THREAD, V_END_THREAD, V_DOMAIN };
static const char *const nvtx_columns[] = { "start", "end", "eventType", "text", "textId",
	"globalTid", "endGlobalTid", "domainId" };

static uint32_t nvtx_text(struct nsys_reader *reader, const struct nsys_rows *rows)
{
	const struct string_view text = nsys_rows_text(rows, V_TEXT);

	return nsys_rows_has_value(rows, V_TEXT)
		       ? string_table_intern(reader->imported->texts, text.bytes, text.length)
		       : nsys_string_column(reader, rows, V_TEXT_ID);
}

/* Returns the row + 1 of a domain, or 0 for the default domain. Domains beyond 65535 share the
 * last row. */
static uint16_t domain_of_row(struct nsys_reader *reader, const struct nsys_rows *rows)
{
	const uint64_t id = nsys_rows_number32(rows, V_DOMAIN);
	struct event_rows *imported = reader->imported;
	uint32_t *known;

	if (!id)
		return 0;
	known = nsys_id_map_slot(
		&reader->domain_of_id, (uint64_t)process_of_row(reader, rows, V_THREAD) << 32 | id);
	if (!*known) {
		if (imported->domain_count < UINT16_MAX)
			*EVENT_ROWS_ADD(imported, domain, domains) = (struct imported_domain){ 0 };
		*known = (uint32_t)imported->domain_count;
	}
	return (uint16_t)*known;
}

static void add_nested_range(
	struct nsys_reader *reader, const struct nsys_rows *rows, const struct nsys_times *span)
{
	struct event_rows *imported = reader->imported;
	struct imported_range range = { .start = span->start,
		.duration = span->duration,
		.sequence = IMPORTED_NO_SEQUENCE,
		.name = nvtx_text(reader, rows),
		.thread = thread_of_row(reader, rows, V_THREAD),
		.kind = TRACE_NODE_RANGE,
		.domain = domain_of_row(reader, rows) };

	if (span->duration == IMPORTED_NOT_ENDED) {
		*ARRAY_ADD(reader->open, reader->open_room,
			reader->open_count) = imported->range_count;
	}
	*EVENT_ROWS_ADD(imported, range, ranges) = range;
}

static void add_instant(struct nsys_reader *reader, const struct nsys_rows *rows, int64_t time,
	enum trace_kind kind, uint64_t id)
{
	const bool elsewhere = kind == TRACE_END && nsys_rows_has_value(rows, V_END_THREAD);
	struct imported_instant instant = { .time = time,
		.id = id,
		.name = nvtx_text(reader, rows),
		.thread = thread_of_row(reader, rows, elsewhere ? V_END_THREAD : V_THREAD),
		.kind = (uint16_t)kind,
		.domain = domain_of_row(reader, rows) };

	*EVENT_ROWS_ADD(reader->imported, instant, instants) = instant;
}

static void add_nvtx_row(struct nsys_reader *reader, const struct nsys_rows *rows)
{
	const int64_t type = nsys_rows_number(rows, V_TYPE);
	uint16_t domain;
	struct nsys_times span;

	if (!read_nsys_times(reader, rows, &span, true))
		return;
	switch (type) {
	case NVTX_PUSH_POP:
		add_nested_range(reader, rows, &span);
		break;
	case NVTX_START_END:
		add_instant(reader, rows, span.start, TRACE_START, ++reader->spans);
		if (span.duration != IMPORTED_NOT_ENDED)
			add_instant(reader, rows, span.start + (int64_t)span.duration, TRACE_END,
				reader->spans);
		else
			reader->imported->unended++;
		break;
	case NVTX_MARK:
		add_instant(reader, rows, span.start, TRACE_MARK, 0);
		break;
	case NVTX_THREAD:
		add_instant(reader, rows, span.start, TRACE_OBJECT, 0);
		break;
	case NVTX_DOMAIN:
		domain = domain_of_row(reader, rows);
		if (domain)
			reader->imported->domains[domain - 1].name = nvtx_text(reader, rows);
		break;
	case NVTX_DOMAIN_END:
		break;
	default:
		nsys_skip(reader,
			type == NVTX_CATEGORY ? "names of NVTX categories"
					      : "NVTX events of other kinds",
			1);
	}
}

enum { C_START, C_END, C_NAME, C_THREAD, C_CORRELATION, C_RESULT };
static const char *const call_columns[] = { "start", "end", "nameId", "globalTid", "correlationId",
	"returnValue" };

/* Removes the version suffix: `cudaMalloc_v3020` is cudaMalloc as of CUDA 3.2. */
static uint32_t without_version(struct nsys_reader *reader, uint32_t name)
{
	const struct string_view text = string_table_get(reader->imported->texts, name);
	uint32_t length = text.length;

	while (length > 0 && text.bytes[length - 1] >= '0' && text.bytes[length - 1] <= '9')
		length--;
	if (text.length - length < 4 || length < 3 || memcmp(text.bytes + length - 2, "_v", 2))
		return name;
	return string_table_intern(reader->imported->texts, text.bytes, length - 2);
}

static void add_nsys_call(struct nsys_reader *reader, const struct nsys_rows *rows)
{
	struct imported_call call = { .name = without_version(
					      reader, nsys_string_column(reader, rows, C_NAME)) };
	struct nsys_times span;

	if (!read_nsys_times(reader, rows, &span, false))
		return;
	call.start = span.start;
	call.duration = span.duration;
	call.correlation = nsys_rows_number32(rows, C_CORRELATION);
	call.result = nsys_rows_number32(rows, C_RESULT);
	call.thread = thread_of_row(reader, rows, C_THREAD);
	if (!reader->imported->call_count)
		reader->caller = reader->imported->threads[call.thread].process;
	*EVENT_ROWS_ADD(reader->imported, call, calls) = call;
}

enum {
	G_START,
	G_END,
	G_CORRELATION,
	G_PROCESS,
	G_DEVICE,
	G_CONTEXT,
	G_STREAM,
	G_GRAPH_NODE,
	G_GRAPH,
	G_OWN
};
#define GPU_COLUMNS                                                                        \
	"start", "end", "correlationId", "globalPid", "deviceId", "contextId", "streamId", \
		"graphNodeId", "graphId"

static bool read_gpu_columns(struct nsys_reader *reader, const struct nsys_rows *rows,
	struct imported_gpu *gpu, enum imported_gpu_kind kind)
{
	struct nsys_times span;

	if (!read_nsys_times(reader, rows, &span, false))
		return false;
	*gpu = (struct imported_gpu){ .start = span.start,
		.duration = span.duration,
		.correlation = nsys_rows_number32(rows, G_CORRELATION),
		.graph_node = (uint64_t)nsys_rows_number(rows, G_GRAPH_NODE),
		.device = nsys_rows_number32(rows, G_DEVICE),
		.context = nsys_rows_number32(rows, G_CONTEXT),
		.stream = nsys_rows_number32(rows, G_STREAM),
		.graph = nsys_rows_number32(rows, G_GRAPH),
		.kind = (uint16_t)kind,
		.process = process_of_row(reader, rows, G_PROCESS) };
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
static const char *const kernel_columns[] = { GPU_COLUMNS, "mangledName", "demangledName",
	"shortName", "gridX", "gridY", "gridZ", "blockX", "blockY", "blockZ", "registersPerThread",
	"staticSharedMemory", "dynamicSharedMemory" };

/* Returns the mangled name if there is one, because it contains most information. A mangled
 * or demangled name that begins with `[` is no function's name and is passed over. */
static uint32_t nsys_kernel_name(struct nsys_reader *reader, const struct nsys_rows *rows)
{
	uint32_t name = 0;

	for (unsigned column = K_MANGLED; column <= K_SHORT && !name; column++) {
		name = nsys_string_column(reader, rows, column);
		if (column < K_SHORT &&
			*string_table_get(reader->imported->texts, name).bytes == '[')
			name = 0;
	}
	return name;
}

static void add_nsys_kernel(struct nsys_reader *reader, const struct nsys_rows *rows)
{
	struct imported_gpu gpu;

	if (!read_gpu_columns(reader, rows, &gpu, IMPORTED_KERNEL))
		return;
	gpu.name = nsys_kernel_name(reader, rows);
	for (unsigned i = 0; i < 3; i++) {
		gpu.grid[i] = nsys_rows_number32(rows, K_GRID + i);
		gpu.block[i] = nsys_rows_number32(rows, K_BLOCK + i);
	}
	gpu.registers = nsys_rows_number32(rows, K_REGISTERS);
	gpu.static_shared = nsys_rows_number32(rows, K_STATIC);
	gpu.shared = nsys_rows_number32(rows, K_DYNAMIC);
	*EVENT_ROWS_ADD(reader->imported, gpu, gpus) = gpu;
}

static const char *nsys_memory_kind(const struct nsys_rows *rows, unsigned column)
{
	static const char *const kinds[] = { "Pageable", "Pinned", "Device", "Array", "Managed",
		"Device Static", "Managed Static" };
	const uint32_t kind = nsys_rows_number32(rows, column);

	return nsys_rows_has_value(rows, column) && kind < COUNT(kinds) ? kinds[kind] : "Unknown";
}

enum { M_BYTES = G_OWN, M_COPY_KIND, M_SOURCE, M_TARGET };
static const char *const copy_columns[] = { GPU_COLUMNS, "bytes", "copyKind", "srcKind",
	"dstKind" };

static void add_nsys_copy(struct nsys_reader *reader, const struct nsys_rows *rows)
{
	static const char *const directions[] = { "", "HtoD", "DtoH", "HtoA", "AtoH", "AtoA",
		"AtoD", "DtoA", "DtoD", "HtoH", "PtoP", "HtoD", "DtoH",
		/* The last three are copies of unified memory. */
		"DtoD" };
	const uint32_t way = nsys_rows_number32(rows, M_COPY_KIND);
	struct imported_gpu gpu;
	char name[96];

	if (!read_gpu_columns(reader, rows, &gpu, IMPORTED_COPY))
		return;
	snprintf(name, sizeof name, "Memcpy %s (%s -> %s)",
		way < COUNT(directions) ? directions[way] : "", nsys_memory_kind(rows, M_SOURCE),
		nsys_memory_kind(rows, M_TARGET));
	gpu.name = intern_text(reader, name);
	gpu.bytes = nsys_rows_number(rows, M_BYTES) > 0 ? (uint64_t)nsys_rows_number(rows, M_BYTES)
							: 0;
	*EVENT_ROWS_ADD(reader->imported, gpu, gpus) = gpu;
}

static const char *const set_columns[] = { GPU_COLUMNS, "bytes", "memKind" };

static void add_nsys_memset(struct nsys_reader *reader, const struct nsys_rows *rows)
{
	struct imported_gpu gpu;
	char name[48];

	if (!read_gpu_columns(reader, rows, &gpu, IMPORTED_MEMSET))
		return;
	snprintf(name, sizeof name, "Memset (%s)", nsys_memory_kind(rows, G_OWN + 1));
	gpu.name = intern_text(reader, name);
	gpu.bytes = nsys_rows_number(rows, M_BYTES) > 0 ? (uint64_t)nsys_rows_number(rows, M_BYTES)
							: 0;
	*EVENT_ROWS_ADD(reader->imported, gpu, gpus) = gpu;
}

static const char *const graph_columns[] = { GPU_COLUMNS };

static void add_nsys_graph(struct nsys_reader *reader, const struct nsys_rows *rows)
{
	struct imported_gpu gpu;

	if (!read_gpu_columns(reader, rows, &gpu, IMPORTED_KERNEL))
		return;
	gpu.name = intern_text(reader, "whole graph");
	reader->imported->unsplit_graphs++;
	*EVENT_ROWS_ADD(reader->imported, gpu, gpus) = gpu;
}

static const char *const sync_columns[] = { GPU_COLUMNS, "syncType", "eventId" };

static void add_nsys_sync(struct nsys_reader *reader, const struct nsys_rows *rows)
{
	static const char *const types[] = { "Sync", "Event Sync", "Stream Wait Event",
		"Stream Sync", "Context Sync" };
	const uint32_t type = nsys_rows_number32(rows, G_OWN);
	struct imported_gpu at;

	if (!read_gpu_columns(reader, rows, &at, IMPORTED_KERNEL))
		return;
	*EVENT_ROWS_ADD(reader->imported, sync, syncs) = (struct imported_sync){ .start = at.start,
		.duration = at.duration,
		.correlation = at.correlation,
		.name = intern_text(reader, types[type < COUNT(types) ? type : 0]),
		.stream = at.stream,
		.context = at.context,
		.process = at.process,
		.event = nsys_rows_number32(rows, G_OWN + 1) };
}

static const char *const overhead_columns[] = { "start", "end", "globalTid" };

static void add_nsys_overhead(struct nsys_reader *reader, const struct nsys_rows *rows)
{
	struct nsys_times span;

	if (read_nsys_times(reader, rows, &span, false))
		*EVENT_ROWS_ADD(reader->imported, overhead, overheads) = (struct imported_overhead){
			span.start, span.duration, process_of_row(reader, rows, 2)
		};
}

enum { MPI_START, MPI_END, MPI_NAME, MPI_THREAD };
static const char *const mpi_columns[] = { "start", "end", "textId", "globalTid" };

/* Adds a row of nsys's own tables of MPI as a range in the domain MPI, as nsys writes the NVTX
 * ranges of MPI where it has no such tables. */
static void add_mpi_call(struct nsys_reader *reader, const struct nsys_rows *rows)
{
	struct event_rows *imported = reader->imported;
	struct nsys_times span;

	if (!read_nsys_times(reader, rows, &span, true))
		return;
	if (!reader->mpi_domain) {
		reader->first_mpi_range = imported->range_count;
		if (imported->domain_count < UINT16_MAX)
			*EVENT_ROWS_ADD(imported, domain,
				domains) = (struct imported_domain){ intern_text(reader, "MPI") };
		reader->mpi_domain = (uint16_t)imported->domain_count;
	}
	*EVENT_ROWS_ADD(imported, range, ranges) = (struct imported_range){ .start = span.start,
		.duration = span.duration,
		.sequence = IMPORTED_NO_SEQUENCE,
		.name = nsys_string_column(reader, rows, MPI_NAME),
		.thread = thread_of_row(reader, rows, MPI_THREAD),
		.kind = TRACE_NODE_RANGE,
		.domain = reader->mpi_domain };
}

static int compare_mpi_rows(const void *a, const void *b)
{
	const struct imported_range *left = a, *right = b;

	if (left->thread != right->thread)
		return left->thread < right->thread ? -1 : 1;
	if (left->start != right->start)
		return left->start < right->start ? -1 : 1;
	if (left->duration != right->duration)
		return left->duration < right->duration ? -1 : 1;
	return COMPARE(left->name, right->name);
}

/* A wait for several requests has a row for each of them, and a call that sends and receives one
 * for each direction. Keeps one of them. */
static void merge_mpi_rows(struct nsys_reader *reader)
{
	struct event_rows *imported = reader->imported;
	const size_t first = reader->first_mpi_range;
	struct imported_range *ranges = imported->ranges;
	size_t kept = first;

	if (!reader->mpi_domain)
		return;
	qsort(ranges + first, imported->range_count - first, sizeof *ranges, compare_mpi_rows);
	for (size_t i = first; i < imported->range_count; i++) {
		if (kept > first && !compare_mpi_rows(&ranges[kept - 1], &ranges[i]))
			continue;
		if (ranges[i].duration == IMPORTED_NOT_ENDED)
			*ARRAY_ADD(reader->open, reader->open_room, reader->open_count) = kept;
		ranges[kept++] = ranges[i];
	}
	if (kept < imported->range_count)
		nsys_skip(reader, "more rows of one MPI call", imported->range_count - kept);
	imported->range_count = kept;
}

void nsys_events_read(struct nsys_reader *reader)
{
	static const struct {
		const char *const *columns;
		unsigned count;
		void (*add)(struct nsys_reader *, const struct nsys_rows *);
	} readers[] = {
		/* in the order of nsys_event_tables */
		{ nvtx_columns, COUNT(nvtx_columns), add_nvtx_row },
		{ call_columns, COUNT(call_columns), add_nsys_call },
		{ call_columns, COUNT(call_columns), add_nsys_call },
		{ kernel_columns, COUNT(kernel_columns), add_nsys_kernel },
		{ copy_columns, COUNT(copy_columns), add_nsys_copy },
		{ set_columns, COUNT(set_columns), add_nsys_memset },
		{ graph_columns, COUNT(graph_columns), add_nsys_graph },
		{ sync_columns, COUNT(sync_columns), add_nsys_sync },
		{ overhead_columns, COUNT(overhead_columns), add_nsys_overhead },
		{ mpi_columns, COUNT(mpi_columns), add_mpi_call },
		{ mpi_columns, COUNT(mpi_columns), add_mpi_call },
		{ mpi_columns, COUNT(mpi_columns), add_mpi_call },
		{ mpi_columns, COUNT(mpi_columns), add_mpi_call },
	};

	for (size_t i = 0; i < COUNT(readers); i++) {
		struct nsys_rows *rows = nsys_rows_open(
			reader->db, nsys_event_tables[i], readers[i].columns, readers[i].count);

		while (nsys_rows_next(rows))
			readers[i].add(reader, rows);
		nsys_rows_close(rows);
	}
	merge_mpi_rows(reader);
}
