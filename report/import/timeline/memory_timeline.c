/* SPDX-License-Identifier: MIT */
#include "report/import/timeline/memory_timeline.h"
#include "report/base/alloc.h"
#include "report/base/compare.h"
#include "report/import/kineto/read_window.h"
#include <stdio.h>
#include <stdlib.h>

#define NAMED_CATEGORIES 8u
#define CATEGORIES_MAX 64u /* PyTorch has NAMED_CATEGORIES */
#define COLUMNS_MAX (CATEGORIES_MAX + 1)
#define BYTES_MAX (INT64_C(1) << 60)
#define MADE_ADDRESS (UINT64_C(1) << 62) /* added to made-up addresses; no device has such */
#define EVENT_NUMBERS 4u                 /* of an event: time, action, bytes, category */

/* A part of an increase, with the time at which it was freed. */
struct piece {
	int64_t bytes;
	size_t number; /* of the part */
	size_t time;   /* of the event, an index of `times` */
	uint32_t category;
	bool frees;
};

/* What is allocated of an increase and not freed yet. */
struct open_part {
	int64_t bytes;
	size_t time;
};

/* The increases of a category that are not freed as a whole, the latest last. */
struct category_parts {
	struct open_part *open;
	size_t count, room;
	int64_t level;
};

struct timeline_reader {
	struct event_rows *imported;
	struct read_window window;
	int64_t *times; /* the first array: times in us, or the first event */
	size_t time_count, time_room;
	struct category_parts parts[CATEGORIES_MAX];
	struct piece *pieces;
	size_t piece_count, piece_room, part_number;
	uint64_t negative, earlier; /* earlier: events before the first time */
	uint32_t places[CATEGORIES_MAX];
	bool is_event; /* the first array is an event */
	bool has_numbers, is_other;
};

bool memory_timeline_begins(const unsigned char *head, size_t bytes)
{
	size_t at = bytes >= 3 && !memcmp(head, "\xef\xbb\xbf", 3) ? 3 : 0;

	for (int brackets = 0; at < bytes; at++) {
		if (memchr(" \t\r\n", head[at], 4))
			continue;
		if (head[at] != '[')
			return false;
		if (++brackets == 2)
			return true;
	}
	return false;
}

/* ---- values ---- */

/* These three are json_open, json_next and json_peek for what may begin beyond the window. */
static bool open_array(struct timeline_reader *reader)
{
	struct json_scanner *scan = &reader->window.scan;
	const char *from = scan->at;
	bool open = json_open(scan, '[');

	while (scan->problem == JSON_MORE && read_window_extend(&reader->window, from)) {
		from = scan->at;
		open = json_open(scan, '[');
	}
	return open;
}

static bool next_in_array(struct timeline_reader *reader)
{
	struct json_scanner *scan = &reader->window.scan;
	const char *from = scan->at;
	bool more = json_next(scan, ']');

	while (scan->problem == JSON_MORE && read_window_extend(&reader->window, from)) {
		from = scan->at;
		more = json_next(scan, ']');
	}
	return more;
}

static char peek(struct timeline_reader *reader)
{
	struct json_scanner *scan = &reader->window.scan;
	const char *from = scan->at;
	char next = json_peek(scan);

	while (scan->problem == JSON_MORE && read_window_extend(&reader->window, from)) {
		from = scan->at;
		next = json_peek(scan);
	}
	return next;
}

/* Reads a number. What is none, or no integer, sets is_other. */
static bool read_number(struct timeline_reader *reader, int64_t *number)
{
	struct json_scanner *scan = &reader->window.scan;
	struct json_text value;
	const char *from = scan->at;

	while (!json_value(scan, &value)) {
		if (scan->problem != JSON_MORE || !read_window_extend(&reader->window, from))
			return false;
		from = scan->at;
	}
	if (value.form == JSON_NUMBER && json_signed(&value, number) && *number > -BYTES_MAX * 4 &&
		*number < BYTES_MAX * 4)
		return true;
	reader->is_other = true;
	return false;
}

/* ---- rows ---- */

static uint32_t place_of(struct timeline_reader *reader, uint32_t category)
{
	static const char *const names[NAMED_CATEGORIES] = { "parameters", "optimizer state",
		"inputs", "temporary tensors", "activations", "gradients", "autograd's details",
		"unknown" };
	char number[32];

	if (!reader->places[category]) {
		snprintf(number, sizeof number, "category %u", category);
		reader->places[category] = string_table_intern(reader->imported->texts,
			category < NAMED_CATEGORIES ? names[category] : number,
			strlen(category < NAMED_CATEGORIES ? names[category] : number));
	}
	return reader->places[category];
}

static void add_row(struct timeline_reader *reader, int64_t time, int64_t bytes, uint64_t address,
	uint32_t category)
{
	*EVENT_ROWS_ADD(
		reader->imported, memory, memories) = (struct imported_memory){ .time = time,
		.bytes = bytes,
		.address = address,
		.type = 1,
		.kind = IMPORTED_TENSOR,
		.place = place_of(reader, category) };
}

/* ---- events ---- */

static bool is_action(int64_t number)
{
	return number >= 1 && number <= 4;
}

static void add_event(struct timeline_reader *reader, const int64_t *event)
{
	struct event_rows *imported = reader->imported;

	imported->events++;
	if (event[3] < 0 || event[3] >= CATEGORIES_MAX || event[2] <= -BYTES_MAX ||
		event[2] >= BYTES_MAX || !is_action(event[1])) {
		imported->unreadable++;
		return;
	}
	if (!event[2])
		return;
	/* Of memory from before the recording, the time is known when all is read. */
	reader->earlier += event[0] < 0;
	add_row(reader, event[0] < 0 ? -1 : event[0], event[2], 0, (uint32_t)event[3]);
}

static void set_earlier_times(struct timeline_reader *reader)
{
	struct event_rows *imported = reader->imported;
	int64_t first = INT64_MAX;

	for (size_t i = 0; i < imported->memory_count; i++)
		if (imported->memories[i].time >= 0 && imported->memories[i].time < first)
			first = imported->memories[i].time;
	for (size_t i = 0; i < imported->memory_count && reader->earlier; i++)
		if (imported->memories[i].time < 0)
			imported->memories[i].time = first == INT64_MAX ? 0 : first;
}

/* Reads the rest of an array of numbers to `numbers`, at most `most`. `more`: it has one. Returns
 * how many there were, or SIZE_MAX if it is damaged or has more. */
static size_t read_numbers(struct timeline_reader *reader, bool more, int64_t *numbers, size_t most)
{
	size_t count = 0;

	for (; more; more = next_in_array(reader)) {
		if (count == most)
			reader->is_other = true;
		if (count == most || !read_number(reader, &numbers[count++]))
			return SIZE_MAX;
	}
	return reader->window.scan.problem ? SIZE_MAX : count;
}

/* Reads the events after the first, which was read to `times`. The second is open. */
static void read_events(struct timeline_reader *reader)
{
	int64_t event[EVENT_NUMBERS];
	bool open = true;

	do {
		const size_t count = read_numbers(reader, open, event, EVENT_NUMBERS);

		if (count == SIZE_MAX)
			return;
		if (count != EVENT_NUMBERS) {
			reader->is_other = true;
			return;
		}
		add_event(reader, event);
	} while (next_in_array(reader) && (open = open_array(reader)));
}

/* ---- sizes ---- */

static void add_piece(struct timeline_reader *reader, const struct piece *piece)
{
	*ARRAY_ADD(reader->pieces, reader->piece_room, reader->piece_count) = *piece;
}

/* Frees what was allocated last, `bytes` of it. */
static void free_parts(
	struct timeline_reader *reader, uint32_t category, size_t time, int64_t bytes)
{
	struct category_parts *parts = &reader->parts[category];

	while (bytes && parts->count) {
		struct open_part *part = &parts->open[parts->count - 1];
		struct piece piece = { .bytes = part->bytes < bytes ? part->bytes : bytes,
			.number = reader->part_number++,
			.time = part->time,
			.category = category };

		add_piece(reader, &piece);
		piece.time = time;
		piece.frees = true;
		add_piece(reader, &piece);
		part->bytes -= piece.bytes;
		bytes -= piece.bytes;
		parts->count -= !part->bytes;
	}
}

static void set_level(struct timeline_reader *reader, uint32_t category, size_t time, int64_t level)
{
	struct category_parts *parts = &reader->parts[category];
	const int64_t before = parts->level;

	if (level < 0 || level >= BYTES_MAX / CATEGORIES_MAX) {
		reader->negative += level < 0;
		reader->imported->unreadable += level >= 0;
		level = level < 0 ? 0 : before;
	}
	parts->level = level;
	if (level > before)
		*ARRAY_ADD(parts->open, parts->room,
			parts->count) = (struct open_part){ level - before, time };
	else
		free_parts(reader, category, time, before - level);
}

/* By time; of one time what is freed first, as both took place since the time before. */
static int compare_pieces(const void *left, const void *right)
{
	const struct piece *a = left, *b = right;

	if (a->time != b->time)
		return a->time < b->time ? -1 : 1;
	if (a->frees != b->frees)
		return a->frees ? -1 : 1;
	return (a->number > b->number) - (a->number < b->number);
}

static void add_pieces(struct timeline_reader *reader)
{
	for (uint32_t category = 0; category < CATEGORIES_MAX; category++)
		for (size_t i = 0; i < reader->parts[category].count; i++) {
			const struct open_part *part = &reader->parts[category].open[i];

			add_piece(reader, &(struct piece){ part->bytes, reader->part_number++,
						  part->time, category, false });
		}
	if (reader->piece_count)
		qsort(reader->pieces, reader->piece_count, sizeof *reader->pieces, compare_pieces);
	for (size_t i = 0; i < reader->piece_count; i++) {
		const struct piece *piece = &reader->pieces[i];

		add_row(reader, reader->times[piece->time],
			piece->frees ? -piece->bytes : piece->bytes,
			MADE_ADDRESS + ((uint64_t)piece->number + 1) * 512, piece->category);
	}
}

/* Times become ns. Returns false if they are no times, or do not rise. */
static bool check_times(struct timeline_reader *reader)
{
	for (size_t i = 0; i < reader->time_count; i++) {
		if (reader->times[i] < 0 || reader->times[i] > INT64_MAX / 4000 ||
			(i && reader->times[i] * 1000 < reader->times[i - 1]))
			return false;
		reader->times[i] *= 1000;
	}
	return true;
}

/* Reads the rows of sizes. The array of them is open and has one. The first column is always 0, the
 * others are the categories. */
static void read_sizes(struct timeline_reader *reader)
{
	int64_t sizes[COLUMNS_MAX];
	size_t time = 0;
	bool more = true;

	if (!check_times(reader)) {
		reader->is_other = true;
		return;
	}
	for (; more; more = next_in_array(reader)) {
		const size_t columns = peek(reader) == '['
					       ? read_numbers(reader, open_array(reader), sizes,
							 COLUMNS_MAX)
					       : SIZE_MAX;

		if (columns == SIZE_MAX || time >= reader->time_count) {
			reader->is_other = !reader->window.scan.problem;
			return;
		}
		for (uint32_t i = 1; i < columns; i++)
			set_level(reader, i - 1, time, sizes[i]);
		reader->imported->events++;
		time++;
	}
	if (!reader->window.scan.problem && time == reader->time_count)
		next_in_array(reader); /* the end of the file */
	else
		reader->is_other |= !reader->window.scan.problem;
}

/* ---- the file ---- */

/* Reads the first inner array: all times, or the first event. */
static bool read_first_array(struct timeline_reader *reader)
{
	for (bool more = open_array(reader); more; more = next_in_array(reader)) {
		int64_t number;

		if (!read_number(reader, &number))
			return false;
		*ARRAY_ADD(reader->times, reader->time_room, reader->time_count) = number;
	}
	return !reader->window.scan.problem;
}

/* The second array has arrays in a file of sizes, else numbers. Where the file ends before that,
 * the first array is an event if its numbers can be one. */
static void read_outer(struct timeline_reader *reader)
{
	bool more;

	if (!open_array(reader) || peek(reader) != '[' || !read_first_array(reader))
		return;
	reader->is_event = reader->time_count == EVENT_NUMBERS;
	more = next_in_array(reader) && open_array(reader);
	if (more)
		reader->is_event &= peek(reader) != '[';
	else if (reader->is_event && reader->window.scan.problem)
		reader->is_event = is_action(reader->times[1]);
	reader->has_numbers = more || reader->is_event;
	if (reader->is_event)
		add_event(reader, reader->times);
	if (reader->is_event && more)
		read_events(reader);
	else if (reader->has_numbers && !reader->is_event)
		read_sizes(reader);
}

static void add_negative(struct timeline_reader *reader)
{
	static const char name[] = "negative sizes";

	if (reader->negative)
		*EVENT_ROWS_ADD(reader->imported, skip, skips) = (struct imported_skip){
			.category = string_table_intern(
				reader->imported->texts, name, sizeof name - 1),
			.events = reader->negative
		};
}

static void finish(struct timeline_reader *reader, const char *gzip_problem)
{
	struct event_rows *imported = reader->imported;
	const char *problem = reader->window.scan.problem;

	add_pieces(reader);
	set_earlier_times(reader);
	add_negative(reader);
	if (!problem)
		return;
	imported->truncated = true;
	imported->problem_at = read_window_offset(&reader->window);
	imported->problem = problem == JSON_MORE && gzip_problem ? gzip_problem : problem;
}

static void timeline_free(struct timeline_reader *reader)
{
	for (size_t i = 0; i < CATEGORIES_MAX; i++)
		free(reader->parts[i].open);
	free(reader->pieces);
	free(reader->times);
	read_window_close(&reader->window);
}

bool memory_timeline_read(struct event_rows *imported, struct gzip_file *file)
{
	struct timeline_reader *reader = xcalloc(sizeof *reader);
	bool good;

	*imported = (struct event_rows){ .texts = string_table_new() };
	reader->imported = imported;
	*EVENT_ROWS_ADD(imported, thread, threads) = (struct imported_thread){
		.pid = string_table_intern(imported->texts, "1", 1),
		.tid = string_table_intern(imported->texts, "1", 1)
	};
	snprintf(imported->producer, sizeof imported->producer, "torch.profiler (memory timeline)");
	read_window_open(&reader->window, file);
	if (reader->window.used >= 3 && !memcmp(reader->window.bytes, "\xef\xbb\xbf", 3))
		reader->window.scan.at += 3;
	read_outer(reader);
	finish(reader, gzip_file_problem(file));
	good = reader->has_numbers && !reader->is_other;
	if (!good)
		imported->problem =
			reader->is_other || !reader->time_count
				? "is JSON without trace events"
				: "is a memory timeline of torch.profiler that ends in its times";
	timeline_free(reader);
	free(reader);
	return good;
}
