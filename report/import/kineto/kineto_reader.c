/* SPDX-License-Identifier: MIT
 * Reads the outer form of the file: an object with events and metadata, or an array of events.
 */
#include "report/import/kineto/kineto_reader.h"
#include "report/base/alloc.h"
#include "report/import/kineto/kineto.h"
#include <stdlib.h>

/* Metadata of the file that are kept, with their META keys in the trace. */
static const struct {
	const char *key, *metadata;
} metadata[] = {
	{ "cuda_runtime_version", "version.cuda_runtime" },
	{ "cuda_driver_version", "version.cuda_driver" },
	{ "cupti_version", "version.cupti" },
	{ "hip_runtime_version", "version.hip_runtime" },
	{ "hip_driver_version", "version.hip_driver" },
	{ "roctracer_version", "version.roctracer" },
	{ "trace_id", "kineto.trace_id" },
};

static const struct {
	const char *key, *metadata;
} distributed[] = {
	{ "rank", "rank" },
	{ "world_size", "distributed.world_size" },
	{ "backend", "distributed.backend" },
	{ "nccl_version", "version.nccl" },
};

uint32_t kineto_intern(struct kineto_reader *reader, const struct json_text *text)
{
	size_t length;

	if (text->form != JSON_STRING || !text->escaped)
		return string_table_intern(reader->imported->texts, text->bytes, text->length);
	array_grow_zeroed(&reader->plain, &reader->plain_room, text->length + 1, 1);
	length = json_unescape(text, reader->plain);
	return string_table_intern(reader->imported->texts, reader->plain, length);
}

void kineto_add_metadata(
	struct kineto_reader *reader, const char *key, const struct json_text *value)
{
	struct event_rows *imported = reader->imported;

	if (value->form != JSON_STRING && value->form != JSON_NUMBER)
		return;
	*ARRAY_ADD(imported->metadata, imported->metadata_room,
		imported->metadata_count) = (struct imported_metadata){
		.key = string_table_intern(imported->texts, key, strlen(key)),
		.value = kineto_intern(reader, value)
	};
}

static void read_distributed(struct kineto_reader *reader, const struct json_text *object)
{
	struct json_scanner scan = { .at = object->bytes, .end = object->bytes + object->length };
	struct json_text key, value, groups = { .form = JSON_NONE };
	uint64_t world = 0;

	for (bool more = json_open(&scan, '{'); more; more = json_next(&scan, '}')) {
		if (!json_key(&scan, &key) || !json_value(&scan, &value))
			return;
		if (json_is(&key, "pg_config"))
			groups = value;
		else if (json_is(&key, "world_size"))
			json_unsigned(&value, &world);
		for (size_t i = 0; i < sizeof distributed / sizeof *distributed; i++)
			if (json_is(&key, distributed[i].key))
				kineto_add_metadata(reader, distributed[i].metadata, &value);
	}
	kineto_read_groups(reader, &groups, world);
}

/* Kineto's keys of device properties. Some were renamed, so a property may have two. */
static const struct {
	const char *key;
	size_t offset;
} device_keys[] = {
	{ "id", offsetof(struct imported_device, id) },
	{ "totalGlobalMem", offsetof(struct imported_device, memory_bytes) },
	{ "computeMajor", offsetof(struct imported_device, major) },
	{ "major", offsetof(struct imported_device, major) },
	{ "computeMinor", offsetof(struct imported_device, minor) },
	{ "minor", offsetof(struct imported_device, minor) },
	{ "numSms", offsetof(struct imported_device, multiprocessors) },
	{ "multiProcessorCount", offsetof(struct imported_device, multiprocessors) },
	{ "warpSize", offsetof(struct imported_device, warp_threads) },
	{ "maxThreadsPerMultiprocessor", offsetof(struct imported_device, threads_per_sm) },
	{ "maxThreadsPerMultiProcessor", offsetof(struct imported_device, threads_per_sm) },
	{ "maxThreadsPerBlock", offsetof(struct imported_device, threads_per_block) },
	{ "regsPerMultiprocessor", offsetof(struct imported_device, registers_per_sm) },
	{ "regsPerBlock", offsetof(struct imported_device, registers_per_block) },
	{ "sharedMemPerMultiprocessor", offsetof(struct imported_device, shared_per_sm) },
	{ "maxSharedMemoryPerMultiProcessor", offsetof(struct imported_device, shared_per_sm) },
	{ "sharedMemPerBlock", offsetof(struct imported_device, shared_per_block) },
};

/* Adds the device that `object` describes. Unknown keys are skipped, and missing properties are 0.
 * Adds nothing if the object is damaged. */
static void read_kineto_device(struct kineto_reader *reader, struct json_text object)
{
	struct json_scanner scan = { .at = object.bytes, .end = object.bytes + object.length };
	struct event_rows *imported = reader->imported;
	struct imported_device device = { .name = 0 };
	struct json_text key, value;

	for (bool more = json_open(&scan, '{'); more; more = json_next(&scan, '}')) {
		if (!json_key(&scan, &key) || !json_value(&scan, &value))
			return;
		if (json_is(&key, "name"))
			device.name = kineto_intern(reader, &value);
		for (size_t i = 0; i < sizeof device_keys / sizeof *device_keys; i++)
			if (json_is(&key, device_keys[i].key))
				json_unsigned(&value, (uint64_t *)(void *)((char *)&device +
									   device_keys[i].offset));
	}
	if (!scan.problem)
		*ARRAY_ADD(
			imported->devices, imported->device_room, imported->device_count) = device;
}

static void read_kineto_devices(struct kineto_reader *reader, const struct json_text *array)
{
	struct json_scanner scan = { .at = array->bytes, .end = array->bytes + array->length };
	struct json_text value;

	for (bool more = json_open(&scan, '['); more; more = json_next(&scan, ']')) {
		if (!json_value(&scan, &value))
			return;
		if (value.form == JSON_OBJECT)
			read_kineto_device(reader, value);
	}
}

/* Reads metadata outside of the events. */
static void read_metadata(
	struct kineto_reader *reader, const struct json_text *key, const struct json_text *value)
{
	struct event_rows *imported = reader->imported;

	if (value->form == JSON_OBJECT && json_is(key, "distributedInfo"))
		read_distributed(reader, value);
	else if (value->form == JSON_ARRAY &&
		 (json_is(key, "deviceProperties") || json_is(key, "computeProperties")))
		read_kineto_devices(reader, value);
	else if (json_is(key, "baseTimeNanoseconds"))
		json_signed(value, &imported->base_ns);
	for (size_t i = 0; i < sizeof metadata / sizeof *metadata; i++)
		if (json_is(key, metadata[i].key))
			kineto_add_metadata(reader, metadata[i].metadata, value);
	imported->is_kineto |= json_is(key, "schemaVersion") || json_is(key, "deviceProperties") ||
			       json_is(key, "baseTimeNanoseconds") || json_is(key, "traceName");
}

/* Adds an event after which the file ends, possibly after its comma. The event itself is whole. */
static void add_last_event(struct kineto_reader *reader)
{
	struct json_scanner *scan = &reader->window.scan;

	if (scan->problem != JSON_MORE)
		return;
	scan->problem = NULL;
	if (kineto_event_read(reader))
		kineto_add_event(reader);
	scan->problem = JSON_MORE;
}

/* Reads the events. An event is added only when the bytes after it are loaded too. */
static bool read_events(struct kineto_reader *reader)
{
	struct read_window *window = &reader->window;
	struct json_scanner *scan = &window->scan;
	const char *from = scan->at;
	bool more = true;

	reader->has_events = true;
	while (!json_open(scan, '[')) {
		if (!scan->problem)
			return true;
		if (!read_window_extend(window, from))
			return false;
		from = scan->at;
	}
	while (more) {
		bool whole;

		from = scan->at;
		whole = kineto_event_read(reader);
		if (whole) {
			more = json_next(scan, ']');
			if (!scan->problem) {
				kineto_add_event(reader);
				continue;
			}
		}
		if (scan->problem != JSON_MORE)
			return false;
		if (!read_window_extend(window, from)) {
			if (whole)
				add_last_event(reader);
			return false;
		}
		more = true;
	}
	return true;
}

/* Reads one member of the outer object. */
static bool read_trace_member(struct kineto_reader *reader)
{
	struct json_scanner *scan = &reader->window.scan;
	struct json_text key, value;
	const char *from = scan->at;

	for (;;) {
		if (json_key(scan, &key)) {
			if (json_is(&key, "traceEvents") && json_peek(scan) == '[')
				return read_events(reader);
			if (!scan->problem && json_value(scan, &value)) {
				read_metadata(reader, &key, &value);
				return true;
			}
		}
		if (scan->problem != JSON_MORE || !read_window_extend(&reader->window, from))
			return false;
		from = scan->at;
	}
}

static bool next_member(struct kineto_reader *reader)
{
	struct json_scanner *scan = &reader->window.scan;
	const char *from = scan->at;
	bool more = json_next(scan, '}');

	while (scan->problem == JSON_MORE && read_window_extend(&reader->window, from)) {
		from = scan->at;
		more = json_next(scan, '}');
	}
	return more;
}

static void read_outer(struct kineto_reader *reader)
{
	struct json_scanner *scan = &reader->window.scan;

	if (json_peek(scan) == '[') {
		read_events(reader);
		return;
	}
	for (bool more = json_open(scan, '{'); more; more = next_member(reader))
		if (!read_trace_member(reader))
			return;
}

/* Returns true if the file may be a trace of torch.profiler. Otherwise `problem` says what it
 * is. */
static bool is_chrome_trace(const struct kineto_reader *reader)
{
	struct event_rows *imported = reader->imported;

	if (reader->has_events && (imported->is_kineto || imported->range_count ||
					  imported->call_count || imported->gpu_count))
		return true;
	if (!reader->has_events && reader->window.scan.problem)
		imported->problem = "is not readable JSON";
	else
		imported->problem =
			reader->has_events
				? "is a Chrome trace in JSON, but not one of torch.profiler"
				: "is JSON without trace events";
	return false;
}

static void note_damage(
	struct event_rows *imported, struct read_window *window, const char *gzip_problem)
{
	const char *problem = window->scan.problem;

	imported->truncated = true;
	imported->problem_at = read_window_offset(window);
	imported->problem = problem == JSON_MORE && gzip_problem ? gzip_problem : problem;
}

bool kineto_read(struct event_rows *imported, struct gzip_file *file)
{
	struct kineto_reader reader = { .imported = imported, .latest_time = INT64_MIN };
	bool good;

	*imported = (struct event_rows){ .texts = string_table_new() };
	read_window_open(&reader.window, file);
	if (reader.window.used >= 3 && !memcmp(reader.window.bytes, "\xef\xbb\xbf", 3))
		reader.window.scan.at += 3;
	read_outer(&reader);
	kineto_finish_events(&reader);
	if (reader.window.scan.problem)
		note_damage(imported, &reader.window, gzip_file_problem(file));
	imported->nonstandard_values = reader.window.scan.nonstandard_values;
	good = is_chrome_trace(&reader);
	read_window_close(&reader.window);
	free(reader.plain);
	return good;
}
