/* SPDX-License-Identifier: MIT
 * `pperf top`: what a running program does now. Each second it reads the records that were added to
 * the trace. The program does nothing for it.
 *
 * The first pass reads the whole file, for the levels of memory and for what each place holds.
 * Later ones read the payloads that are new, or were added to.
 */
#include "report/live/live_trace.h"

#include "report/base/alloc.h"
#include "report/base/error.h"
#include "report/run/process.h"
#include "report/text/format_number.h"
#include "report/text/label_pattern.h"
#include "report/tui/state.h"
#include "report/tui/terminal.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define DEVICES_MAX 128u
#define ROWS_ONCE 20u
#define PATH_PARTS 4u
#define KEY_BYTES 200u
#define GROWING_MIN 3u /* intervals in a row in which a place held more */

/* What a place did in the last interval, and what it holds. */
struct place {
	uint64_t calls, cpu_ns, gpu_ns, alloc_bytes;
	int64_t held, held_before;
	uint32_t growing; /* intervals in a row in which it held more at the end */
};

struct held {
	uint64_t address, bytes;
	uint32_t node, space; /* space: 0 free, 1 tensor, 2 CUDA allocation */
};

struct launch {
	uint64_t correlation;
	uint32_t node;
};

#define LAUNCHES 65536u /* a power of two: launches whose GPU records are awaited */

struct top {
	const char *path;
	/* A place is a path with the patterns of the ranges' labels. Its number is the id of its
	 * key: the number of the place above it, in 4 bytes, then its pattern. 0: no range. */
	struct string_table *keys;
	struct place *places;
	size_t place_room;
	uint32_t place_count;
	uint32_t *place_of_node; /* of a node of the trace; 0: not known yet */
	size_t node_room;
	struct held *held; /* open addressing */
	size_t held_slots, held_count;
	struct launch launches[LAUNCHES];
	uint64_t device_bytes[DEVICES_MAX], tensor_bytes[DEVICES_MAX], reserved[DEVICES_MAX];
	uint64_t since_stamp; /* records up to this one were counted */
	uint64_t since_ns, until_ns;
	uint64_t events, gpu_records, ooms, failed_allocations;
	uint64_t unknown_frees, lost, overwritten;
	bool first_pass;
};

static struct held *held_slot(const struct top *top, uint64_t address, uint32_t space)
{
	size_t at = ((address >> 4 ^ space) * UINT64_C(0x9e3779b97f4a7c15) >> 20) &
		    (top->held_slots - 1);

	while (top->held[at].space &&
		(top->held[at].address != address || top->held[at].space != space))
		at = (at + 1) & (top->held_slots - 1);
	return &top->held[at];
}

static void grow_held(struct top *top)
{
	struct held *old = top->held;
	const size_t slots = top->held_slots;

	if (top->held_count * 2 < slots)
		return;
	top->held_slots = slots ? slots * 2 : 1024;
	top->held = xcalloc(top->held_slots * sizeof *top->held);
	top->held_count = 0;
	for (size_t i = 0; i < slots; i++)
		if (old[i].space && old[i].bytes != UINT64_MAX) {
			*held_slot(top, old[i].address, old[i].space) = old[i];
			top->held_count++;
		}
	free(old);
}

/* Returns the place of a pattern below another place. */
static uint32_t child_place(struct top *top, uint32_t parent, struct trace_text name)
{
	const size_t length = name.length < KEY_BYTES ? name.length : KEY_BYTES;
	char key[sizeof parent + KEY_BYTES];
	uint32_t place;

	memcpy(key, &parent, sizeof parent);
	place = string_table_intern(top->keys, key,
		sizeof parent + label_fold(name.bytes, length, key + sizeof parent));
	array_grow_zeroed(&top->places, &top->place_room, (size_t)place + 1, sizeof *top->places);
	if (place >= top->place_count)
		top->place_count = place + 1;
	return place;
}

/* Finds the place of every node. A parent comes before its children. */
static void find_places(struct top *top, struct trace_reader *reader)
{
	const uint32_t nodes = reader_node_count(reader);

	array_grow_zeroed(&top->place_of_node, &top->node_room, nodes, sizeof *top->place_of_node);
	array_grow_zeroed(&top->places, &top->place_room, 1, sizeof *top->places);
	top->place_count += !top->place_count;
	for (uint32_t node = 1; node + 1 < nodes; node++) {
		const struct trace_node_info *info = reader_node(reader, node);

		if (!top->place_of_node[node])
			top->place_of_node[node] = child_place(top,
				top->place_of_node[info->parent], reader_name(reader, info->name));
	}
}

static struct place *place_at(struct top *top, uint32_t place)
{
	return &top->places[place < top->place_count ? place : 0];
}

static struct place *place_of(struct top *top, uint32_t node)
{
	return place_at(top, node < top->node_room ? top->place_of_node[node] : 0);
}

/* A freed entry keeps its slot with UINT64_MAX bytes, until the table grows. */
static bool remove_held(struct top *top, uint64_t address, uint32_t space, uint64_t *bytes)
{
	struct held *held = top->held_slots ? held_slot(top, address, space) : NULL;

	if (!held || !held->space || held->bytes == UINT64_MAX)
		return false;
	place_of(top, held->node)->held -= (int64_t)held->bytes;
	*bytes = held->bytes;
	held->bytes = UINT64_MAX;
	return true;
}

/* Returns the bytes of a block that was held at the address. */
static uint64_t add_held(
	struct top *top, uint64_t address, uint32_t space, uint64_t bytes, uint32_t node)
{
	struct held *held;
	uint64_t replaced = 0;

	remove_held(top, address, space, &replaced);
	grow_held(top);
	held = held_slot(top, address, space);
	top->held_count += !held->space;
	*held = (struct held){ address, bytes, node, space };
	place_of(top, node)->held += (int64_t)bytes;
	place_of(top, node)->alloc_bytes += bytes;
	return replaced;
}

/* Forgets what is held: the ring's window begins anew, and its first records restate it. */
static void forget_held(struct top *top)
{
	memset(top->held, 0, top->held_slots * sizeof *top->held);
	top->held_count = 0;
	memset(top->device_bytes, 0, sizeof top->device_bytes);
	for (uint32_t i = 0; i < top->place_count; i++)
		top->places[i].held = top->places[i].held_before = 0;
}

static void add_tensor(struct top *top, const struct trace_event *event)
{
	const struct trace_tensor *record = event->record;
	const uint32_t device = record->device % DEVICES_MAX;
	uint64_t bytes;

	top->tensor_bytes[device] = record->allocated;
	top->reserved[device] = record->reserved;
	if (record->head.flags & TRACE_TENSOR_LEVEL)
		return;
	if (record->bytes >= 0)
		add_held(top, record->address, 1, (uint64_t)record->bytes, event->node);
	else if (!remove_held(top, record->address, 1, &bytes))
		top->unknown_frees++;
}

static bool is_device_memory(const struct trace_memory *record)
{
	return record->memory_kind == TRACE_MEMORY_DEVICE ||
	       record->memory_kind == TRACE_MEMORY_DEVICE_STATIC;
}

/* Only device memory is kept. The release of other memory finds nothing. */
static void add_allocation(struct top *top, const struct trace_event *event)
{
	const struct trace_memory *record = event->record;
	const uint32_t device = record->call.device % DEVICES_MAX;
	uint64_t bytes = 0;

	if (record->call.result || !record->address) {
		top->failed_allocations += event->kind == TRACE_ALLOC && record->call.result == 2;
	} else if (event->kind == TRACE_ALLOC && is_device_memory(record)) {
		top->device_bytes[device] += record->bytes - add_held(top, record->address, 2,
								     record->bytes, event->node);
	} else if (event->kind == TRACE_FREE && remove_held(top, record->address, 2, &bytes)) {
		top->device_bytes[device] -= bytes < top->device_bytes[device]
						     ? bytes
						     : top->device_bytes[device];
	}
}

static void add_launch(struct top *top, const struct trace_event *event)
{
	const struct trace_call *call = event->record;

	if (call->correlation)
		top->launches[call->correlation % LAUNCHES] = (struct launch){ call->correlation,
			event->node };
}

static void add_gpu_work(
	struct top *top, struct trace_reader *reader, const struct trace_event *event)
{
	const struct trace_gpu *record = event->record;
	const struct launch *launch = &top->launches[record->correlation % LAUNCHES];
	uint64_t start, end;

	top->gpu_records++;
	if (!reader_gpu_times(reader, record->start_ns, record->end_ns, &start, &end))
		return;
	place_of(top, launch->correlation == record->correlation ? launch->node : 0)->gpu_ns +=
		end - start;
}

/* The time of a range that closes, as far as it is in the interval. */
static void add_range(struct top *top, const struct trace_event *event)
{
	const uint64_t begin = event->begin_ns > top->since_ns ? event->begin_ns : top->since_ns;
	struct place *place = place_of(top, event->node);

	place->calls++;
	place->cpu_ns += event->time_ns > begin ? event->time_ns - begin : 0;
}

static void add_event(struct top *top, struct trace_reader *reader, const struct trace_event *event)
{
	top->events += event->kind <= EVENT_POP;
	switch (event->kind) {
	case EVENT_POP:
		add_range(top, event);
		break;
	case TRACE_TENSOR:
		add_tensor(top, event);
		break;
	case TRACE_TENSOR_OOM:
		top->ooms++;
		break;
	case TRACE_ALLOC:
	case TRACE_FREE:
		add_allocation(top, event);
		break;
	case TRACE_LAUNCH:
	case TRACE_GRAPH_LAUNCH:
	case TRACE_COPY:
	case TRACE_SET:
		add_launch(top, event);
		break;
	case TRACE_KERNEL:
	case TRACE_GPU_COPY:
	case TRACE_GPU_SET:
		add_gpu_work(top, reader, event);
		break;
	default:
		break;
	}
}

/* Begins an interval. Levels and what is held stay. */
static void begin_interval(struct top *top)
{
	for (uint32_t i = 0; i < top->place_count; i++) {
		struct place *place = &top->places[i];

		place->held_before = place->held;
		place->calls = place->cpu_ns = place->gpu_ns = place->alloc_bytes = 0;
	}
	top->events = top->gpu_records = 0;
}

static void end_interval(struct top *top)
{
	for (uint32_t i = 0; i < top->place_count; i++) {
		struct place *place = &top->places[i];

		if (place->held > place->held_before)
			place->growing++;
		else if (place->held < place->held_before)
			place->growing = 0;
	}
}

/* Reads what was added. Returns the reader, which has the names, or NULL with `error`. */
static struct trace_reader *read_interval(struct top *top, char error[READER_ERROR_BYTES])
{
	struct trace_reader *reader = reader_open_since(top->path, top->since_stamp, error);
	struct trace_event event;
	uint64_t last = top->since_ns;

	if (!reader)
		return NULL;
	top->first_pass = !top->since_stamp;
	find_places(top, reader);
	begin_interval(top);
	if (reader_window_begin_ns(reader) && top->held)
		forget_held(top);
	if (top->first_pass)
		top->since_ns = reader_window_begin_ns(reader);
	while (reader_next(reader, &event) > 0) {
		if (event.time_ns <= top->since_ns && !top->first_pass)
			continue;
		last = event.time_ns > last ? event.time_ns : last;
		if (event.kind != EVENT_LEFT_OPEN && event.kind != EVENT_STREAM_END)
			add_event(top, reader, &event);
	}
	top->until_ns = last;
	top->since_stamp = reader_last_stamp(reader);
	top->lost = reader_integrity(reader)->lost_events;
	top->overwritten = reader_header(reader)->ring.events;
	end_interval(top);
	return reader;
}

/* ---- the screen ---- */

/* Writes the last parts of the place's path. */
static void path_text(const struct top *top, uint32_t place, char *out, size_t room)
{
	struct string_view parts[PATH_PARTS];
	uint32_t count = 0;
	size_t used = 0;

	if (!place)
		snprintf(out, room, "(no range)");
	while (place && count < PATH_PARTS) {
		parts[count] = string_table_get(top->keys, place);
		memcpy(&place, parts[count++].bytes, sizeof place);
	}
	if (place)
		used = (size_t)snprintf(out, room, "... / ");
	while (count-- > 0 && used < room)
		used += (size_t)snprintf(out + used, room - used, "%.*s%s",
			(int)(parts[count].length - sizeof place),
			parts[count].bytes + sizeof place, count ? " / " : "");
}

struct ranked {
	uint32_t place;
	uint64_t value;
};

static int compare_ranked(const void *left, const void *right)
{
	const struct ranked *a = left, *b = right;

	if (a->value != b->value)
		return a->value < b->value ? 1 : -1;
	return (a->place > b->place) - (a->place < b->place);
}

/* What places are ordered by: GPU time if there is any, else CPU time; or growth. */
static uint64_t place_value(const struct place *place, bool by_growth, bool has_gpu)
{
	if (by_growth)
		return place->growing >= GROWING_MIN && place->held > 0 ? (uint64_t)place->held : 0;
	return has_gpu ? place->gpu_ns : place->cpu_ns;
}

static struct ranked *rank_places(const struct top *top, bool by_growth, uint32_t *count)
{
	struct ranked *ranked = xcalloc((top->place_count + 1) * sizeof *ranked);

	*count = 0;
	for (uint32_t i = 0; i < top->place_count; i++) {
		const uint64_t value = place_value(
			&top->places[i], by_growth, top->gpu_records != 0);

		if (value)
			ranked[(*count)++] = (struct ranked){ i, value };
	}
	qsort(ranked, *count, sizeof *ranked, compare_ranked);
	return ranked;
}

/* Where the lines of the screen go: to the terminal, or to stdout. */
struct page {
	struct tui_canvas canvas;
	unsigned line, lines, width;
	bool terminal;
};

__attribute__((format(printf, 3, 4))) static void put_line(
	struct page *page, enum tui_paint paint, const char *format, ...)
{
	char line[1024];
	va_list arguments;

	if (page->line >= page->lines)
		return;
	va_start(arguments, format);
	vsnprintf(line, sizeof line, format, arguments);
	va_end(arguments);
	for (char *at = line; *at; at++)
		if ((unsigned char)*at < ' ' || *at == 127)
			*at = '?';
	if (strlen(line) > page->width)
		line[page->width] = '\0';
	if (page->terminal)
		page->canvas.put(page->canvas.context, page->line, 0, paint, line, strlen(line));
	else
		puts(line);
	page->line++;
}

/* A time of the interval as a share of it. */
static double share(const struct top *top, uint64_t ns)
{
	const uint64_t all = top->until_ns - top->since_ns;

	return all ? 100.0 * (double)ns / (double)all : 0;
}

static double per_second(const struct top *top, uint64_t count)
{
	const uint64_t all = top->until_ns - top->since_ns;

	return all ? (double)count * 1e9 / (double)all : 0;
}

static void put_levels(const struct top *top, struct page *page)
{
	char device_bytes[64], tensors[64], reserved[64];

	for (uint32_t i = 0; i < DEVICES_MAX; i++) {
		if (!top->device_bytes[i] && !top->reserved[i])
			continue;
		format_with_unit(
			device_bytes, UNIT_BYTES, (int64_t)top->device_bytes[i], false, true);
		format_with_unit(tensors, UNIT_BYTES, (int64_t)top->tensor_bytes[i], false, true);
		format_with_unit(reserved, UNIT_BYTES, (int64_t)top->reserved[i], false, true);
		if (top->reserved[i])
			put_line(page, TUI_PLAIN,
				"GPU %u     %s allocated by CUDA calls; PyTorch: %s reserved, %s "
				"in "
				"tensors",
				i, device_bytes, reserved, tensors);
		else
			put_line(page, TUI_PLAIN, "GPU %u     %s allocated by CUDA calls", i,
				device_bytes);
	}
}

static void put_head(const struct top *top, struct trace_reader *reader, struct page *page)
{
	const struct trace_header *header = reader_header(reader);
	char interval[64], from[64];

	format_with_unit(
		interval, UNIT_TIME, (int64_t)(top->until_ns - top->since_ns), false, true);
	format_with_unit(from, UNIT_TIME, (int64_t)top->since_ns, false, true);
	put_line(page, TUI_BOLD, "process   %u, %s%s", header->pid, top->path,
		header->flags & TRACE_ENDED ? " (ended)" : "");
	put_line(page, TUI_PLAIN, "interval  %s%s%s; %.0f events/s, %.0f GPU records/s", interval,
		top->first_pass ? ", all that the trace holds" : " from ",
		top->first_pass ? "" : from, per_second(top, top->events),
		per_second(top, top->gpu_records));
	for (uint32_t i = 0; i < reader_dictionary_count(reader, TRACE_DEVICE); i++)
		if (device_is_simulated(reader, reader_dictionary(reader, TRACE_DEVICE, i)))
			put_line(page, TUI_DIM,
				"GPU %u     simulated: its times are not measurements", i);
	put_levels(top, page);
	if (top->ooms || top->failed_allocations)
		put_line(page, TUI_BAD,
			"memory    ran out %" PRIu64 " times in PyTorch; %" PRIu64
			" CUDA allocations failed for lack of memory",
			top->ooms, top->failed_allocations);
	if (top->lost || top->overwritten)
		put_line(page, top->lost ? TUI_BAD : TUI_DIM,
			"trace     %" PRIu64 " events lost, %" PRIu64 " overwritten in the ring",
			top->lost, top->overwritten);
}

static void put_places(const struct top *top, struct page *page, unsigned rows, bool by_growth)
{
	uint32_t count;
	struct ranked *ranked = rank_places(top, by_growth, &count);
	char path[512], alloc[64], held[64];

	put_line(page, TUI_PLAIN, "%s", "");
	if (by_growth && count)
		put_line(page, TUI_BOLD,
			"%10s  places that held more in each of the last intervals", "held");
	else if (!by_growth)
		put_line(page, TUI_BOLD, "%6s %6s %10s %12s  %s", "gpu%", "cpu%", "calls/s",
			"allocated/s", count ? "place" : "no place had work");
	for (uint32_t i = 0; i < count && i < rows; i++) {
		const struct place *place = &top->places[ranked[i].place];

		path_text(top, ranked[i].place, path, sizeof path);
		format_with_unit(alloc, UNIT_BYTES,
			clamp_to_i64(per_second(top, place->alloc_bytes)), false, true);
		format_with_unit(held, UNIT_BYTES, place->held, false, true);
		if (by_growth)
			put_line(page, TUI_WARM, "%10s  %s", held, path);
		else
			put_line(page, TUI_PLAIN, "%6.1f %6.1f %10.0f %12s  %s",
				share(top, place->gpu_ns), share(top, place->cpu_ns),
				per_second(top, place->calls), alloc, path);
	}
	free(ranked);
}

static void put_screen(const struct top *top, struct trace_reader *reader, struct page *page)
{
	const unsigned rows = page->terminal && page->lines > 14 ? page->lines - 14 : ROWS_ONCE;

	put_head(top, reader, page);
	put_places(top, page, rows, false);
	put_places(top, page, 5, true);
}

/* ---- running ---- */

static bool process_ended(const struct trace_reader *reader)
{
	return reader_header(reader)->flags & TRACE_ENDED;
}

/* Prints two intervals' worth as text: what was recorded in `seconds`, or the whole trace if the
 * program has ended. */
static int print_once(struct top *top, double seconds, char error[READER_ERROR_BYTES])
{
	struct page page = { .lines = 1000, .width = 1000 };
	struct trace_reader *reader = read_interval(top, error);

	if (reader && !process_ended(reader)) {
		reader_close(reader);
		top->since_ns = top->until_ns;
		nanosleep(&(struct timespec){ (time_t)seconds,
				  (long)((seconds - (double)(time_t)seconds) * 1e9) },
			NULL);
		reader = read_interval(top, error);
	}
	if (!reader)
		return STATUS_UNREADABLE;
	put_screen(top, reader, &page);
	reader_close(reader);
	return STATUS_OK;
}

static int run_terminal(struct top *top, double seconds, char error[READER_ERROR_BYTES])
{
	struct trace_reader *reader;
	int key = 0;

	terminal_open(true);
	do {
		struct page page = { .terminal = true };

		reader = read_interval(top, error);
		if (!reader)
			break;
		terminal_size(&page.width, &page.lines);
		page.canvas = terminal_begin_frame();
		put_screen(top, reader, &page);
		page.line = page.lines - 1;
		put_line(&page, TUI_DIM, "q ends");
		terminal_end_frame();
		reader_close(reader);
		top->since_ns = top->until_ns;
		key = terminal_key_within((unsigned)(seconds * 1000));
	} while (key != 'q' && key != TERMINAL_CLOSED && key != TUI_ESCAPE);
	terminal_close();
	return reader ? STATUS_OK : STATUS_UNREADABLE;
}

static const char usage[] = "usage: pperf top [--once] [--interval SECONDS] PID|FILE\n"
			    "       shows what the program does now: GPU and CPU time, calls and "
			    "allocations of places,\n"
			    "       levels of memory, places that hold more and more. --once "
			    "prints one interval as text.\n";

static int refuse(const char *text)
{
	fprintf(stderr, "pperf top: %s\n", text);
	return STATUS_UNREADABLE;
}

int live_top(int count, char **arguments)
{
	static struct top top;
	static char path[LIVE_PATH_BYTES];
	char error[READER_ERROR_BYTES];
	const char *target = NULL;
	double seconds = 1;
	bool once = false;
	int status;

	for (int i = 0; i < count; i++) {
		if (!strcmp(arguments[i], "--help") || !strcmp(arguments[i], "-h")) {
			fputs(usage, stdout);
			return STATUS_OK;
		}
		if (!strcmp(arguments[i], "--once"))
			once = true;
		else if (!strcmp(arguments[i], "--interval") && i + 1 < count)
			seconds = strtod(arguments[++i], NULL);
		else if (arguments[i][0] != '-' && !target)
			target = arguments[i];
		else
			target = "";
	}
	if (!target || !*target || !(seconds >= 0.1 && seconds <= 3600)) {
		fputs(usage, stderr);
		return STATUS_USAGE;
	}
	top.path = target;
	top.keys = string_table_new();
	if (live_trace_pid(target)) {
		if (!live_trace_find(live_trace_pid(target), path, error))
			return refuse(error);
		top.path = path;
	}
	if (!once && !(isatty(STDIN_FILENO) && isatty(STDOUT_FILENO)))
		return refuse("needs a terminal; --once prints text");
	status = once ? print_once(&top, seconds, error) : run_terminal(&top, seconds, error);
	return status == STATUS_OK ? status : refuse(error);
}
