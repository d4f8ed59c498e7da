/* SPDX-License-Identifier: MIT */
#include "report/import/nsys/nsys.h"
#include "collector/trace_format.h"
#include "report/base/alloc.h"
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define COUNT(array) ((unsigned)(sizeof(array) / sizeof *(array)))

/* ---- numbers ---- */

static uint32_t *slot_of(const struct nsys_map *map, uint64_t key)
{
	size_t i = (key * 0x9e3779b97f4a7c15u >> 20) & (map->room - 1);

	while (map->pairs[i].value && map->pairs[i].key != key)
		i = (i + 1) & (map->room - 1);
	map->pairs[i].key = key;
	return &map->pairs[i].value;
}

uint32_t *nsys_map_at(struct nsys_map *map, uint64_t key)
{
	uint32_t *value = map->room ? slot_of(map, key) : NULL;
	const struct nsys_map old = *map;

	if (value && (*value || (map->count + 1) * 2 <= map->room)) {
		map->count += !*value;
		return value;
	}
	map->room = old.room ? old.room * 2 : 64;
	map->pairs = need(map->room * sizeof *map->pairs);
	for (size_t i = 0; i < old.room; i++)
		if (old.pairs[i].value)
			*slot_of(map, old.pairs[i].key) = old.pairs[i].value;
	free(old.pairs);
	map->count++;
	return slot_of(map, key);
}

/* A thread's global number ends in 24 bits of its id, below 24 bits of its process's. */
uint32_t nsys_pid(int64_t global)
{
	return (uint32_t)((uint64_t)global >> 24 & 0xffffff);
}

uint32_t nsys_process(struct nsys_reader *reader, int64_t global)
{
	uint32_t *known = nsys_map_at(&reader->processes, (uint64_t)global >> 24);

	if (!*known) {
		char number[16];

		snprintf(number, sizeof number, "%u", nsys_pid(global));
		*KINETO_NEW(reader->kineto, process, processes) =
			(struct kineto_process){ text_id(reader->kineto->texts, number, strlen(number)) };
		*known = (uint32_t)reader->processes.count;
	}
	return *known - 1;
}

static bool is_process(const struct nsys_reader *reader, int64_t global)
{
	const struct nsys_map *map = &reader->processes;

	return map->room && *slot_of(map, (uint64_t)global >> 24);
}

/* ---- what is known of the run ---- */

static void fact(struct nsys_reader *reader, const char *key, struct text value)
{
	struct texts *texts = reader->kineto->texts;

	*KINETO_NEW(reader->kineto, fact, facts) = (struct kineto_fact){
		.key = text_id(texts, key, strlen(key)), .value = text_id(texts, value.bytes, value.length)
	};
}

static void read_maker(struct nsys_reader *reader)
{
	struct nsys_rows *rows = nsys_rows(reader->db, "EXPORT_META_DATA", (const char *const[]){ "name", "value" }, 2);
	char *maker = reader->kineto->maker;

	strcpy(maker, "Nsight Systems");
	while (nsys_rows_next(rows)) {
		const struct text name = nsys_bytes(rows, 0), value = nsys_bytes(rows, 1);

		if (name.length == 22 && !memcmp(name.bytes, "EXPORT_PRODUCT_VERSION", 22) && value.length < 60)
			snprintf(maker, sizeof reader->kineto->maker, "Nsight Systems %s", value.bytes);
	}
	nsys_rows_end(rows);
}

static void read_start(struct nsys_reader *reader)
{
	struct nsys_rows *rows = nsys_rows(
		reader->db, "TARGET_INFO_SESSION_START_TIME", (const char *const[]){ "utcEpochNs" }, 1);

	while (nsys_rows_next(rows))
		if (!reader->kineto->base_ns)
			reader->kineto->base_ns = nsys_number(rows, 0);
	nsys_rows_end(rows);
}

static void read_host(struct nsys_reader *reader)
{
	struct nsys_rows *rows = nsys_rows(
		reader->db, "TARGET_INFO_SYSTEM_ENV", (const char *const[]){ "name", "value" }, 2);
	bool found = false;

	while (nsys_rows_next(rows)) {
		const struct text name = nsys_bytes(rows, 0);

		if (!found && name.length == 8 && !memcmp(name.bytes, "Hostname", 8)) {
			fact(reader, "host", nsys_bytes(rows, 1));
			found = true;
		}
	}
	nsys_rows_end(rows);
}

/* Only those which have events: the table holds every process of the machine. */
static void read_processes(struct nsys_reader *reader)
{
	struct nsys_rows *rows = nsys_rows(reader->db, "PROCESSES", (const char *const[]){ "globalPid", "name" }, 2);
	char key[32], all[512];
	size_t used = 0, count = 0;

	while (nsys_rows_next(rows)) {
		const struct text name = nsys_bytes(rows, 1);

		if (!is_process(reader, nsys_number(rows, 0)))
			continue;
		snprintf(key, sizeof key, "process.%u", nsys_pid(nsys_number(rows, 0)));
		fact(reader, key, name);
		count++;
		if (used < sizeof all - 100)
			used += (size_t)snprintf(all + used, sizeof all - used, "%s%u %.60s", used ? ", " : "",
				nsys_pid(nsys_number(rows, 0)), name.bytes);
	}
	nsys_rows_end(rows);
	if (count > 1)
		fact(reader, "import.processes", (struct text){ all, (uint32_t)used });
}

/* `74e128b2-90b6-...`, perhaps with other letters before it. */
static void read_uuid(struct text text, uint8_t *uuid)
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

/* A device is called what CUDA calls it, where that is said. */
static void read_devices(struct nsys_reader *reader)
{
	static const char *const columns[] = { "id", "cuDevice", "name", "totalMemory", "computeMajor", "computeMinor",
		"smCount", "threadsPerWarp", "maxWarpsPerSm", "maxThreadsPerBlock", "maxRegistersPerSm",
		"maxRegistersPerBlock", "maxShmemPerSm", "maxShmemPerBlock", "uuid" };
	struct nsys_rows *rows = nsys_rows(reader->db, "TARGET_INFO_GPU", columns, COUNT(columns));
	struct kineto *kineto = reader->kineto;

	while (nsys_rows_next(rows)) {
		uint64_t of[COUNT(columns)];
		const struct text name = nsys_bytes(rows, 2);

		for (unsigned i = 0; i < COUNT(columns); i++)
			of[i] = nsys_number(rows, i) > 0 ? (uint64_t)nsys_number(rows, i) : 0;
		*KINETO_NEW(kineto, device, devices) = (struct kineto_device){ .id = nsys_has(rows, 1) ? of[1] : of[0],
			.name = text_id(kineto->texts, name.bytes, name.length),
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
			.shared_per_block = of[13] };
		read_uuid(nsys_bytes(rows, 14), kineto->devices[kineto->device_count - 1].uuid);
	}
	nsys_rows_end(rows);
}

/* Of threads that have events: the system's names for them. */
static void read_threads(struct nsys_reader *reader)
{
	struct nsys_rows *rows = nsys_rows(
		reader->db, "ThreadNames", (const char *const[]){ "globalTid", "nameId" }, 2);
	struct kineto *kineto = reader->kineto;
	struct text name;

	while (nsys_rows_next(rows)) {
		const uint32_t thread = reader->threads.room
						? *slot_of(&reader->threads, (uint64_t)nsys_number(rows, 0))
						: 0;

		if (thread && nsys_has(rows, 1) && nsys_db_string(reader->db, nsys_number(rows, 1), &name))
			*KINETO_NEW(kineto, moment, moments) = (struct kineto_moment){ .time = reader->earliest,
				.name = text_id(kineto->texts, name.bytes, name.length),
				.thread = thread - 1,
				.kind = TRACE_OBJECT };
	}
	nsys_rows_end(rows);
}

/* ---- what is in no view ---- */

static bool is_read(const char *table)
{
	for (size_t i = 0; nsys_event_tables[i]; i++)
		if (!strcmp(nsys_event_tables[i], table))
			return true;
	return false;
}

/* Tables of events that nobody asks for, by their names. */
static void count_others(struct nsys_reader *reader)
{
	struct kineto *kineto = reader->kineto;
	const char *table;

	for (size_t i = 0; (table = nsys_db_table(reader->db, i)); i++) {
		struct nsys_rows *rows;
		uint64_t count = 0;

		if (is_read(table) ||
			!(nsys_db_has(reader->db, table, "start") || nsys_db_has(reader->db, table, "timestamp")))
			continue;
		rows = nsys_rows(reader->db, table, NULL, 0);
		while (nsys_rows_next(rows))
			count++;
		nsys_rows_end(rows);
		kineto->events += count;
		if (count)
			*KINETO_NEW(kineto, left_out, left_outs) = (struct kineto_left_out){
				text_id(kineto->texts, table, strlen(table)), count
			};
	}
}

/* ---- all of it ---- */

static void end_open(struct nsys_reader *reader)
{
	struct kineto *kineto = reader->kineto;

	for (size_t i = 0; i < reader->open_count; i++) {
		struct kineto_range *range = &kineto->ranges[reader->open[i]];

		range->duration = (uint64_t)(reader->latest - range->start);
	}
	kineto->not_ended += reader->open_count;
}

/* Any of its own tables will do: an export has only those that have rows. */
static bool is_export(struct nsys_reader *reader)
{
	bool found = nsys_db_has(reader->db, "StringIds", "value") &&
		     (nsys_db_has(reader->db, "EXPORT_META_DATA", "value") ||
			     nsys_db_has(reader->db, "TARGET_INFO_SESSION_START_TIME", "utcEpochNs"));

	for (size_t i = 0; nsys_event_tables[i] && !found; i++)
		found = nsys_db_has(reader->db, nsys_event_tables[i], "start");
	return found;
}

static void read_all(struct nsys_reader *reader)
{
	const char *problem, *table;
	struct kineto *kineto = reader->kineto;

	read_maker(reader);
	read_start(reader);
	nsys_events_read(reader);
	end_open(reader);
	read_host(reader);
	read_processes(reader);
	read_devices(reader);
	read_threads(reader);
	count_others(reader);
	problem = nsys_db_problem(reader->db, &table);
	if (problem) {
		struct text kept = text_of(kineto->texts, text_id(kineto->texts, problem, strlen(problem)));

		kineto->cut = true;
		kineto->problem = kept.bytes;
		snprintf(kineto->broken_in, sizeof kineto->broken_in, "%s", table);
	}
}

bool nsys_read(struct kineto *kineto, int fd, char *problem, size_t problem_bytes)
{
	struct nsys_reader reader = { .kineto = kineto, .earliest = INT64_MAX, .latest = INT64_MIN };
	bool good;

	*kineto = (struct kineto){ .texts = texts_new() };
	reader.db = nsys_db_open(fd, problem, problem_bytes);
	if (!reader.db)
		return false;
	good = is_export(&reader);
	if (good)
		read_all(&reader);
	else
		snprintf(problem, problem_bytes, "is an SQLite database, but not one that Nsight Systems exported");
	nsys_db_close(reader.db);
	free(reader.threads.pairs);
	free(reader.processes.pairs);
	free(reader.texts.pairs);
	free(reader.domains.pairs);
	free(reader.open);
	return good;
}
