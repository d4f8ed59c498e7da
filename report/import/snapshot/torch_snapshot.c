/* SPDX-License-Identifier: MIT */
#include "report/import/snapshot/torch_snapshot.h"
#include "report/base/address_map.h"
#include "report/base/alloc.h"
#include "report/base/text_builder.h"
#include "report/text/pickle_reader.h"
#include "report/trace/trace_header.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define DEVICES_MAX 128u /* PyTorch is built for 120 at most */
#define FRAMES_MAX 128u
#define SNAPSHOT_BYTES_MAX (INT64_C(1) << 31)
/* An event takes more bytes than this, so a file with more events than its length divided by it
 * refers to the same list again and again. */
#define EVENT_BYTES_MIN 8u
/* Names of files and functions are cut at this. */
#define NAME_BYTES_MAX 1024u
/* Texts of call stacks that a file may have for each of its bytes, and beyond. Frames are shared
 * between stacks: real files have up to 10 for each byte. */
#define STACK_BYTES_PER_BYTE 32u
#define STACK_BYTES_ALLOWED (UINT64_C(16) << 20)

/* Memory that was allocated before the first event. */
struct earlier_memory {
	uint64_t address, bytes;
	uint32_t stack; /* a text */
};

/* The segments or the tensors of a device, at a point in time that moves back to the first
 * event. */
struct earlier_list {
	struct address_map map; /* by address: index in `all` */
	struct earlier_memory *all;
	size_t count, room;
};

struct snapshot_reading {
	const struct pickle *pickle;
	struct event_rows *imported;
	uint32_t *stack_of_frames; /* by value of the pickle: the text + 1; 0: not made yet */
	size_t stack_room;
	uint64_t events_left;
	uint64_t stack_bytes_left, stacks_left_out;
	uint32_t device;
	uint64_t allocated, reserved; /* of the device, after the last row */
	bool has_too_many;
};

/* ---- values ---- */

static int64_t member_integer(
	const struct snapshot_reading *reading, uint32_t value, const char *key)
{
	int64_t integer = 0;

	pickle_integer(reading->pickle, pickle_member(reading->pickle, value, key), &integer);
	return integer;
}

static bool member_is(
	const struct snapshot_reading *reading, uint32_t value, const char *key, const char *text)
{
	const struct string_view found = pickle_text(
		reading->pickle, pickle_member(reading->pickle, value, key));

	return found.bytes && found.length == strlen(text) &&
	       !memcmp(found.bytes, text, found.length);
}

/* Returns a size, or 0 for what is no size that memory can have. */
static uint64_t member_bytes(
	const struct snapshot_reading *reading, uint32_t value, const char *key)
{
	const int64_t bytes = member_integer(reading, value, key);

	return bytes > 0 && bytes < INT64_C(1) << 60 ? (uint64_t)bytes : 0;
}

static size_t name_bytes(struct string_view name)
{
	return name.length < NAME_BYTES_MAX ? name.length : NAME_BYTES_MAX;
}

static void add_frame(
	struct text_builder *text, const struct snapshot_reading *reading, uint32_t frame)
{
	const struct string_view file = pickle_text(reading->pickle,
					 pickle_member(reading->pickle, frame, "filename")),
				 name = pickle_text(reading->pickle,
					 pickle_member(reading->pickle, frame, "name"));
	const size_t begin = text->used;

	if (!file.bytes || file.length < 3 || memcmp(file.bytes + file.length - 3, ".py", 3))
		return;
	text_add_bytes(text, file.bytes, name_bytes(file));
	text_add(text, "(%lld): ", (long long)member_integer(reading, frame, "line"));
	if (name.bytes)
		text_add_bytes(text, name.bytes, name_bytes(name));
	for (size_t i = begin; i < text->used; i++)
		if (text->text[i] == ';') /* separates frames */
			text->text[i] = ',';
	text_add(text, ";");
}

/* Returns the text of the call stack of an event or a block; 0: it has none. Many have the same. */
static uint32_t stack_of(struct snapshot_reading *reading, uint32_t value)
{
	const uint32_t frames = pickle_member(reading->pickle, value, "frames"),
		       count = pickle_count(reading->pickle, frames);
	struct text_builder text = { .text = NULL };

	if (!frames || !count)
		return 0;
	ARRAY_GROW(reading->stack_of_frames, reading->stack_room, (size_t)frames + 1);
	if (reading->stack_of_frames[frames])
		return reading->stack_of_frames[frames] - 1;
	for (uint32_t i = 0; i < count && i < FRAMES_MAX; i++)
		add_frame(&text, reading, pickle_item(reading->pickle, frames, i));
	reading->stack_of_frames[frames] = 1;
	if (text.used > reading->stack_bytes_left) {
		reading->stacks_left_out++;
		text.used = 0;
	}
	reading->stack_bytes_left -= text.used;
	if (text.used)
		reading->stack_of_frames[frames] += string_table_intern(
			reading->imported->texts, text.text, text.used);
	free(text.text);
	return reading->stack_of_frames[frames] - 1;
}

/* ---- rows ---- */

static void add_row(struct snapshot_reading *reading, enum imported_memory_kind kind, int64_t time,
	uint64_t address, int64_t bytes, uint32_t stack)
{
	if (kind == IMPORTED_TENSOR)
		reading->allocated += (uint64_t)bytes;
	else if (kind == IMPORTED_SEGMENT)
		reading->reserved += (uint64_t)bytes;
	*EVENT_ROWS_ADD(
		reading->imported, memory, memories) = (struct imported_memory){ .time = time,
		.bytes = bytes,
		.address = address,
		.allocated = reading->allocated,
		.reserved = reading->reserved,
		.device = reading->device,
		.type = 1,
		.kind = (uint8_t)kind,
		.stack = stack,
		.has_totals = true };
}

/* What an event of the history does. */
enum trace_action {
	ACTION_OTHER,
	ACTION_ALLOCATE,
	ACTION_FREE,
	ACTION_ADD_SEGMENT,
	ACTION_REMOVE_SEGMENT,
	ACTION_OUT_OF_MEMORY
};

static enum trace_action action_of(const struct snapshot_reading *reading, uint32_t event)
{
	static const struct {
		const char *name;
		enum trace_action action;
	} actions[] = { { "alloc", ACTION_ALLOCATE }, { "free_requested", ACTION_FREE },
		{ "segment_alloc", ACTION_ADD_SEGMENT }, { "segment_map", ACTION_ADD_SEGMENT },
		{ "segment_free", ACTION_REMOVE_SEGMENT },
		{ "segment_unmap", ACTION_REMOVE_SEGMENT }, { "oom", ACTION_OUT_OF_MEMORY } };

	for (size_t i = 0; i < sizeof actions / sizeof *actions; i++)
		if (member_is(reading, event, "action", actions[i].name))
			return actions[i].action;
	return ACTION_OTHER;
}

static void add_event(
	struct snapshot_reading *reading, uint32_t event, int64_t time, uint64_t bytes)
{
	const enum trace_action action = action_of(reading, event);
	const uint64_t address = (uint64_t)member_integer(reading, event, "addr");
	const int64_t sign = action == ACTION_FREE || action == ACTION_REMOVE_SEGMENT ? -1 : 1;

	if (action == ACTION_OTHER || !bytes)
		return;
	add_row(reading,
		action == ACTION_OUT_OF_MEMORY                       ? IMPORTED_OOM
		: action == ACTION_ALLOCATE || action == ACTION_FREE ? IMPORTED_TENSOR
								     : IMPORTED_SEGMENT,
		time, address, sign * (int64_t)bytes, sign > 0 ? stack_of(reading, event) : 0);
}

/* ---- what was there before the first event ---- */

static void earlier_add(struct earlier_list *list, uint64_t address, uint64_t bytes, uint32_t stack)
{
	uint32_t index;

	if (!bytes || bytes > UINT64_MAX - address || list->count >= UINT32_MAX - 1)
		return;
	address_map_remove(&list->map, address, &index);
	*ARRAY_ADD(list->all, list->room, list->count) = (struct earlier_memory){ address, bytes,
		stack };
	address_map_insert(&list->map, address, (uint32_t)list->count - 1);
}

/* Removes a range of addresses: the memory that begins there, or a part of what is around it, such
 * as a piece of an expandable segment. */
static void earlier_remove(struct earlier_list *list, uint64_t address, uint64_t bytes)
{
	struct earlier_memory found;
	uint32_t index;

	if (!address_map_floor(&list->map, address, &index))
		return;
	found = list->all[index];
	if (address - found.address >= found.bytes)
		return;
	address_map_remove(&list->map, found.address, &index);
	earlier_add(list, found.address, address - found.address, found.stack);
	if (found.bytes - (address - found.address) > bytes)
		earlier_add(list, address + bytes, found.bytes - (address - found.address) - bytes,
			found.stack);
}

static void earlier_free(struct earlier_list *list)
{
	address_map_free(&list->map);
	free(list->all);
}

/* Adds the segments and blocks of the device at the end. A snapshot says nothing of the frames of a
 * segment that is older than the history. */
static void add_final(struct snapshot_reading *reading, uint32_t segments,
	struct earlier_list *reserved, struct earlier_list *tensors)
{
	for (uint32_t i = 0; i < pickle_count(reading->pickle, segments); i++) {
		const uint32_t segment = pickle_item(reading->pickle, segments, i),
			       blocks = pickle_member(reading->pickle, segment, "blocks");
		uint64_t at = (uint64_t)member_integer(reading, segment, "address");

		if ((uint64_t)member_integer(reading, segment, "device") != reading->device)
			continue;
		earlier_add(reserved, at, member_bytes(reading, segment, "total_size"),
			stack_of(reading, segment));
		for (uint32_t j = 0; j < pickle_count(reading->pickle, blocks); j++) {
			const uint32_t block = pickle_item(reading->pickle, blocks, j);
			const uint64_t bytes = member_bytes(reading, block, "size");

			if (!reading->events_left) {
				reading->has_too_many = true;
				return;
			}
			reading->events_left--;
			if (member_is(reading, block, "state", "active_allocated"))
				earlier_add(tensors, at, bytes, stack_of(reading, block));
			at += bytes;
		}
	}
}

/* Removes the tensor at an address. Returns its bytes, or `requested` if there is none: then the
 * file lacks its free. */
static uint64_t undo_allocation(struct earlier_list *tensors, uint64_t address, uint64_t requested)
{
	uint32_t index;

	if (address_map_remove(&tensors->map, address, &index))
		return tensors->all[index].bytes;
	return requested;
}

/* Returns the bytes of the event. */
static uint64_t undo_event(struct snapshot_reading *reading, uint32_t event,
	struct earlier_list *reserved, struct earlier_list *tensors)
{
	const uint64_t address = (uint64_t)member_integer(reading, event, "addr"),
		       bytes = member_bytes(reading, event, "size"),
		       rounded = (bytes + SNAPSHOT_ROUNDING - 1) & -(uint64_t)SNAPSHOT_ROUNDING;

	switch (action_of(reading, event)) {
	case ACTION_ALLOCATE:
		return undo_allocation(tensors, address, rounded);
	case ACTION_FREE:
		earlier_add(tensors, address, rounded, 0);
		return rounded;
	case ACTION_ADD_SEGMENT:
		earlier_remove(reserved, address, bytes);
		return bytes;
	case ACTION_REMOVE_SEGMENT:
		earlier_add(reserved, address, bytes, 0);
		return bytes;
	default:
		return bytes;
	}
}

static void add_earlier_rows(struct snapshot_reading *reading, const struct earlier_list *list,
	enum imported_memory_kind kind, int64_t time)
{
	struct address_cursor at = address_map_from(&list->map, 0);

	for (; !address_cursor_at_end(&at); address_cursor_next(&at)) {
		const struct earlier_memory *memory = &list->all[address_cursor_value(&at)];

		add_row(reading, kind, time, memory->address, (int64_t)memory->bytes,
			memory->stack);
	}
}

/* ---- devices ---- */

/* Returns the time of an event in ns. Events without one have that of the event before. */
static int64_t event_time(const struct snapshot_reading *reading, uint32_t event, int64_t before)
{
	const int64_t us = member_integer(reading, event, "time_us");

	return us > before / 1000 && us < INT64_MAX / 4000 ? us * 1000 : before;
}

static void add_device(struct snapshot_reading *reading, uint32_t segments, uint32_t events)
{
	const uint32_t count = pickle_count(reading->pickle, events);
	struct earlier_list reserved = { .count = 0 }, tensors = { .count = 0 };
	int64_t time = event_time(reading, pickle_item(reading->pickle, events, 0), 0);
	uint64_t *bytes;

	reading->allocated = reading->reserved = 0;
	if (count > reading->events_left) {
		reading->has_too_many = true;
		return;
	}
	reading->events_left -= count;
	add_final(reading, segments, &reserved, &tensors);
	bytes = xcalloc(((size_t)count + 1) * sizeof *bytes);
	for (uint32_t i = count; i-- > 0;)
		bytes[i] = undo_event(
			reading, pickle_item(reading->pickle, events, i), &reserved, &tensors);
	add_earlier_rows(reading, &reserved, IMPORTED_SEGMENT, time);
	add_earlier_rows(reading, &tensors, IMPORTED_TENSOR, time);
	for (uint32_t i = 0; i < count; i++) {
		const uint32_t event = pickle_item(reading->pickle, events, i);

		time = event_time(reading, event, time);
		add_event(reading, event, time, bytes[i]);
	}
	free(bytes);
	reading->imported->events += count;
	earlier_free(&reserved);
	earlier_free(&tensors);
}

static uint32_t device_count(
	const struct snapshot_reading *reading, uint32_t segments, uint32_t traces)
{
	uint32_t most = pickle_count(reading->pickle, traces);

	for (uint32_t i = 0; i < pickle_count(reading->pickle, segments); i++) {
		const int64_t device = member_integer(
			reading, pickle_item(reading->pickle, segments, i), "device");

		if (device >= most && device < DEVICES_MAX)
			most = (uint32_t)device + 1;
	}
	return most < DEVICES_MAX ? most : DEVICES_MAX;
}

static uint32_t intern(struct event_rows *imported, const char *text)
{
	return string_table_intern(imported->texts, text, strlen(text));
}

/* Reads a dictionary with `segments` and `device_traces`, or only a list of segments
 * (torch.cuda.memory_snapshot()). Returns false if it is neither. */
static bool read_snapshot(struct snapshot_reading *reading)
{
	const struct pickle *pickle = reading->pickle;
	const uint32_t root = pickle_root(pickle);
	uint32_t segments = pickle_member(pickle, root, "segments"),
		 traces = pickle_member(pickle, root, "device_traces");

	if (!segments && pickle_member(pickle, pickle_item(pickle, root, 0), "total_size"))
		segments = root;
	if (!segments)
		return false;
	*EVENT_ROWS_ADD(reading->imported, thread, threads) = (struct imported_thread){
		.pid = intern(reading->imported, "1"), .tid = intern(reading->imported, "1")
	};
	snprintf(reading->imported->producer, sizeof reading->imported->producer,
		"torch.cuda.memory snapshot");
	for (uint32_t device = 0; device < device_count(reading, segments, traces); device++) {
		reading->device = device;
		add_device(reading, segments, pickle_item(pickle, traces, device));
	}
	if (reading->stacks_left_out)
		*EVENT_ROWS_ADD(reading->imported, skip, skips) = (struct imported_skip){
			.category = intern(reading->imported, "call stacks beyond the limit"),
			.events = reading->stacks_left_out
		};
	return true;
}

bool torch_snapshot_parse(struct event_rows *imported, const unsigned char *bytes, size_t length,
	char *problem, size_t problem_bytes)
{
	struct snapshot_reading reading = { .imported = imported,
		.events_left = length / EVENT_BYTES_MIN,
		.stack_bytes_left = length * STACK_BYTES_PER_BYTE + STACK_BYTES_ALLOWED };
	struct pickle *pickle;
	bool good;

	*imported = (struct event_rows){ .texts = string_table_new() };
	pickle = pickle_read(bytes, length, problem, problem_bytes);
	reading.pickle = pickle;
	if (!pickle)
		return false;
	good = read_snapshot(&reading);
	if (!good)
		snprintf(problem, problem_bytes,
			"is a pickle, but no snapshot of torch.cuda.memory");
	if (reading.has_too_many) {
		snprintf(problem, problem_bytes, "is a snapshot that repeats its own lists");
		good = false;
	}
	pickle_free(pickle);
	free(reading.stack_of_frames);
	return good;
}

bool torch_snapshot_read(struct event_rows *imported, int fd, char *problem, size_t problem_bytes)
{
	struct stat status;
	unsigned char *bytes;
	bool good;

	if (fstat(fd, &status) || status.st_size <= 0 || status.st_size > SNAPSHOT_BYTES_MAX) {
		*imported = (struct event_rows){ .texts = string_table_new() };
		snprintf(problem, problem_bytes, "is empty, or longer than 2 GiB");
		return false;
	}
	bytes = xcalloc((size_t)status.st_size);
	/* What another process cuts off in the meantime stays 0, which is no opcode. */
	pread_all(fd, bytes, (size_t)status.st_size, 0);
	good = torch_snapshot_parse(
		imported, bytes, (size_t)status.st_size, problem, problem_bytes);
	free(bytes);
	return good;
}
