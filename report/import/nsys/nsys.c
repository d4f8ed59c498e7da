/* SPDX-License-Identifier: MIT */
#include "report/import/nsys/nsys.h"
#include "collector/trace_format.h"
#include "report/base/alloc.h"
#include "report/base/hash_index.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define COUNT(array) ((unsigned)(sizeof(array) / sizeof *(array)))

/* ---- numbers ---- */

static struct hash_slot *nsys_id_slot(const struct nsys_id_map *map, uint64_t key)
{
	struct hash_slot *slot = hash_index_first(&map->index, hash_u64(key));

	while (slot->number && map->pairs[slot->number - 1].key != key)
		slot = hash_index_next(&map->index, slot);
	return slot;
}

uint32_t *nsys_id_map_slot(struct nsys_id_map *map, uint64_t key)
{
	struct hash_slot *slot;

	hash_index_reserve(&map->index);
	slot = nsys_id_slot(map, key);
	if (!slot->number) {
		ARRAY_GROW(map->pairs, map->room, map->index.count + 1);
		map->pairs[map->index.count].key = key;
		hash_index_add(&map->index, slot, hash_u64(key), (uint32_t)map->index.count + 1);
	}
	return &map->pairs[slot->number - 1].value;
}

uint32_t nsys_id_map_value(const struct nsys_id_map *map, uint64_t key)
{
	const uint32_t number = map->index.room ? nsys_id_slot(map, key)->number : 0;

	return number ? map->pairs[number - 1].value : 0;
}

void nsys_id_map_free(struct nsys_id_map *map)
{
	hash_index_free(&map->index);
	free(map->pairs);
}

/* A global thread id has the thread id in its low 24 bits, below 24 bits of the process id. */
uint32_t nsys_pid(int64_t global)
{
	return (uint32_t)((uint64_t)global >> 24 & 0xffffff);
}

uint32_t nsys_process(struct nsys_reader *reader, int64_t global)
{
	uint32_t *known = nsys_id_map_slot(&reader->process_of_id, (uint64_t)global >> 24);

	if (!*known) {
		char number[16];

		snprintf(number, sizeof number, "%u", nsys_pid(global));
		*EVENT_ROWS_ADD(reader->imported, process, processes) = (struct imported_process){
			string_table_intern(reader->imported->texts, number, strlen(number))
		};
		*known = (uint32_t)reader->process_of_id.index.count;
	}
	return *known - 1;
}

static bool is_process(const struct nsys_reader *reader, int64_t global)
{
	return nsys_id_map_value(&reader->process_of_id, (uint64_t)global >> 24) != 0;
}

static void add_nsys_metadata(struct nsys_reader *reader, const char *key, struct string_view value)
{
	struct string_table *texts = reader->imported->texts;

	*EVENT_ROWS_ADD(reader->imported, metadata, metadata) = (struct imported_metadata){
		.key = string_table_intern(texts, key, strlen(key)),
		.value = string_table_intern(texts, value.bytes, value.length)
	};
}

static void read_producer(struct nsys_reader *reader)
{
	struct nsys_rows *rows = nsys_rows_open(
		reader->db, "EXPORT_META_DATA", (const char *const[]){ "name", "value" }, 2);
	char *producer = reader->imported->producer;

	strcpy(producer, "Nsight Systems");
	while (nsys_rows_next(rows)) {
		const struct string_view name = nsys_rows_text(rows, 0),
					 value = nsys_rows_text(rows, 1);

		if (name.length == 22 && !memcmp(name.bytes, "EXPORT_PRODUCT_VERSION", 22) &&
			value.length < 60)
			snprintf(producer, sizeof reader->imported->producer, "Nsight Systems %s",
				value.bytes);
	}
	nsys_rows_close(rows);
}

/* Sets base_ns to the Unix time at which the session began. It stays 0 if the file does not have
 * it. */
static void read_session_start(struct nsys_reader *reader)
{
	struct nsys_rows *rows = nsys_rows_open(reader->db, "TARGET_INFO_SESSION_START_TIME",
		(const char *const[]){ "utcEpochNs" }, 1);

	while (nsys_rows_next(rows))
		if (!reader->imported->base_ns)
			reader->imported->base_ns = nsys_rows_number(rows, 0);
	nsys_rows_close(rows);
}

/* Reads all rows, as read_session_start does: damage is noticed only where a row is read. */
static void read_host(struct nsys_reader *reader)
{
	struct nsys_rows *rows = nsys_rows_open(
		reader->db, "TARGET_INFO_SYSTEM_ENV", (const char *const[]){ "name", "value" }, 2);
	bool found = false;

	while (nsys_rows_next(rows)) {
		const struct string_view name = nsys_rows_text(rows, 0);

		if (!found && name.length == 8 && !memcmp(name.bytes, "Hostname", 8)) {
			add_nsys_metadata(reader, "host", nsys_rows_text(rows, 1));
			found = true;
		}
	}
	nsys_rows_close(rows);
}

/* Adds the names of processes that have events. The table holds every process of the machine. */
static void read_processes(struct nsys_reader *reader)
{
	struct nsys_rows *rows = nsys_rows_open(
		reader->db, "PROCESSES", (const char *const[]){ "globalPid", "name" }, 2);
	char key[32], all[512];
	size_t used = 0, count = 0;

	while (nsys_rows_next(rows)) {
		const struct string_view name = nsys_rows_text(rows, 1);

		if (!is_process(reader, nsys_rows_number(rows, 0)))
			continue;
		snprintf(key, sizeof key, "process.%u", nsys_pid(nsys_rows_number(rows, 0)));
		add_nsys_metadata(reader, key, name);
		count++;
		if (used < sizeof all - 100)
			used += (size_t)snprintf(all + used, sizeof all - used, "%s%u %.60s",
				used ? ", " : "", nsys_pid(nsys_rows_number(rows, 0)), name.bytes);
	}
	nsys_rows_close(rows);
	if (count > 1)
		add_nsys_metadata(
			reader, "import.processes", (struct string_view){ all, (uint32_t)used });
}

/* Parses `74e128b2-90b6-...`, possibly with other letters before it. */
static void read_uuid(struct string_view text, uint8_t *uuid)
{
	size_t digits = 32;

	while (text.length-- > 0 && digits > 0) {
		const char letter = text.bytes[text.length];
		const int digit = letter >= '0' && letter <= '9'   ? letter - '0'
				  : letter >= 'a' && letter <= 'f' ? letter - 'a' + 10
								   : -1;

		if (digit >= 0) {
			digits--;
			uuid[digits / 2] |= (uint8_t)(digits % 2 ? digit : digit << 4);
		}
	}
}

/* The id of a device is CUDA's number, if the file has it. */
static void read_devices(struct nsys_reader *reader)
{
	static const char *const columns[] = { "id", "cuDevice", "name", "totalMemory",
		"computeMajor", "computeMinor", "smCount", "threadsPerWarp", "maxWarpsPerSm",
		"maxThreadsPerBlock", "maxRegistersPerSm", "maxRegistersPerBlock", "maxShmemPerSm",
		"maxShmemPerBlock", "uuid" };
	struct nsys_rows *rows = nsys_rows_open(
		reader->db, "TARGET_INFO_GPU", columns, COUNT(columns));
	struct event_rows *imported = reader->imported;

	while (nsys_rows_next(rows)) {
		uint64_t of[COUNT(columns)];
		const struct string_view name = nsys_rows_text(rows, 2);

		for (unsigned i = 0; i < COUNT(columns); i++)
			of[i] = nsys_rows_number(rows, i) > 0 ? (uint64_t)nsys_rows_number(rows, i)
							      : 0;
		*EVENT_ROWS_ADD(imported, device, devices) = (struct imported_device){
			.id = nsys_rows_has_value(rows, 1) ? of[1] : of[0],
			.name = string_table_intern(imported->texts, name.bytes, name.length),
			.memory_bytes = of[3],
			.major = of[4],
			.minor = of[5],
			.multiprocessors = of[6],
			.warp_threads = of[7],
			.threads_per_sm = of[7] * (of[8] < 1024 ? of[8] : 0),
			.threads_per_block = of[9],
			.registers_per_sm = of[10],
			.registers_per_block = of[11],
			.shared_per_sm = of[12],
			.shared_per_block = of[13]
		};
		read_uuid(nsys_rows_text(rows, 14),
			imported->devices[imported->device_count - 1].uuid);
	}
	nsys_rows_close(rows);
}

/* Adds the system's names of threads that have events. */
static void read_threads(struct nsys_reader *reader)
{
	struct nsys_rows *rows = nsys_rows_open(
		reader->db, "ThreadNames", (const char *const[]){ "globalTid", "nameId" }, 2);
	struct event_rows *imported = reader->imported;
	struct string_view name;

	while (nsys_rows_next(rows)) {
		const uint32_t thread = nsys_id_map_value(
			&reader->thread_of_id, (uint64_t)nsys_rows_number(rows, 0));

		if (thread && nsys_rows_has_value(rows, 1) &&
			nsys_database_string(reader->db, nsys_rows_number(rows, 1), &name))
			*EVENT_ROWS_ADD(imported, instant,
				instants) = (struct imported_instant){ .time = reader->earliest,
				.name = string_table_intern(
					imported->texts, name.bytes, name.length),
				.thread = thread - 1,
				.kind = TRACE_OBJECT };
	}
	nsys_rows_close(rows);
}

static bool is_known_table(const char *table)
{
	for (size_t i = 0; nsys_event_tables[i]; i++)
		if (!strcmp(nsys_event_tables[i], table))
			return true;
	return false;
}

static uint64_t count_table_rows(struct nsys_database *db, const char *table)
{
	struct nsys_rows *rows = nsys_rows_open(db, table, NULL, 0);
	uint64_t count = 0;

	while (nsys_rows_next(rows))
		count++;
	nsys_rows_close(rows);
	return count;
}

/* Returns what the rows of a table are, if that is worth saying. */
static const char *words_for_table(const char *table)
{
	return !strcmp(table, "SCHED_EVENTS") ? "thread switches (SCHED_EVENTS)" : table;
}

/* Counts the rows of event tables that are not imported. */
static void count_unread_tables(struct nsys_reader *reader)
{
	struct event_rows *imported = reader->imported;
	const char *table;

	for (size_t i = 0; (table = nsys_database_table(reader->db, i)); i++) {
		uint64_t count;

		if (is_known_table(table) ||
			!(nsys_database_has_column(reader->db, table, "start") ||
				nsys_database_has_column(reader->db, table, "timestamp")))
			continue;
		count = count_table_rows(reader->db, table);
		table = words_for_table(table);
		imported->events += count;
		if (count)
			*EVENT_ROWS_ADD(imported, skip, skips) = (struct imported_skip){
				.category = string_table_intern(
					imported->texts, table, strlen(table)),
				.events = count
			};
	}
}

static void close_open_ranges(struct nsys_reader *reader)
{
	struct event_rows *imported = reader->imported;

	for (size_t i = 0; i < reader->open_count; i++) {
		struct imported_range *range = &imported->ranges[reader->open[i]];

		range->duration = (uint64_t)(reader->latest - range->start);
	}
	imported->unended += reader->open_count;
}

/* Returns true if the database has any of nsys's tables. An export contains only tables with
 * rows. */
static bool is_export(struct nsys_reader *reader)
{
	bool found = nsys_database_has_column(reader->db, "StringIds", "value") &&
		     (nsys_database_has_column(reader->db, "EXPORT_META_DATA", "value") ||
			     nsys_database_has_column(
				     reader->db, "TARGET_INFO_SESSION_START_TIME", "utcEpochNs"));

	for (size_t i = 0; nsys_event_tables[i] && !found; i++)
		found = nsys_database_has_column(reader->db, nsys_event_tables[i], "start");
	return found;
}

static void note_database_damage(struct nsys_reader *reader)
{
	struct event_rows *imported = reader->imported;
	const char *table, *problem = nsys_database_problem(reader->db, &table);
	uint32_t kept;

	if (!problem)
		return;
	kept = string_table_intern(imported->texts, problem, strlen(problem));
	imported->truncated = true;
	imported->problem = string_table_get(imported->texts, kept).bytes;
	snprintf(imported->problem_table, sizeof imported->problem_table, "%s", table);
}

static void read_nsys_tables(struct nsys_reader *reader)
{
	read_producer(reader);
	read_session_start(reader);
	nsys_events_read(reader);
	nsys_samples_read(reader);
	close_open_ranges(reader);
	read_host(reader);
	read_processes(reader);
	read_devices(reader);
	read_threads(reader);
	count_unread_tables(reader);
	note_database_damage(reader);
}

static void nsys_reader_free(struct nsys_reader *reader)
{
	nsys_database_close(reader->db);
	nsys_id_map_free(&reader->thread_of_id);
	nsys_id_map_free(&reader->process_of_id);
	nsys_id_map_free(&reader->text_of_id);
	nsys_id_map_free(&reader->domain_of_id);
	free(reader->open);
}

bool nsys_read(struct event_rows *imported, int fd, char *problem, size_t problem_bytes)
{
	struct nsys_reader reader = {
		.imported = imported, .earliest = INT64_MAX, .latest = INT64_MIN
	};
	bool good;

	*imported = (struct event_rows){ .texts = string_table_new(), .counts_from_start = true };
	reader.db = nsys_database_open(fd, problem, problem_bytes);
	if (!reader.db)
		return false;
	good = is_export(&reader);
	if (good)
		read_nsys_tables(&reader);
	else
		snprintf(problem, problem_bytes,
			"is an SQLite database, but not an export of Nsight Systems");
	nsys_reader_free(&reader);
	return good;
}
