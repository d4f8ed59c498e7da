/* SPDX-License-Identifier: MIT
 * kineto_read.c: the file's outer form: an object with the events and facts, or an array of events alone.
 */
#include "report/import/kineto/kineto_reader.h"
#include "report/base/alloc.h"
#include "report/base/gzip_file.h"
#include <stdlib.h>

/* Facts of the file that are worth keeping, as the trace's own facts are called. */
static const struct {
	const char *key, *fact;
} facts[] = {
	{ "cuda_runtime_version", "version.cuda_runtime" },
	{ "cuda_driver_version", "version.cuda_driver" },
	{ "cupti_version", "version.cupti" },
	{ "hip_runtime_version", "version.hip_runtime" },
	{ "hip_driver_version", "version.hip_driver" },
	{ "roctracer_version", "version.roctracer" },
	{ "trace_id", "kineto.trace_id" },
};

static const struct {
	const char *key, *fact;
} distributed[] = {
	{ "rank", "rank" },
	{ "world_size", "distributed.world_size" },
	{ "backend", "distributed.backend" },
	{ "nccl_version", "version.nccl" },
};

uint32_t kineto_text(struct kineto_reader *reader, const struct json_text *text)
{
	size_t length;

	if (text->form != '"' || !text->escaped)
		return text_id(reader->kineto->texts, text->bytes, text->length);
	grow(&reader->plain, &reader->plain_room, text->length + 1, 1);
	length = json_unescape(text, reader->plain);
	return text_id(reader->kineto->texts, reader->plain, length);
}

void kineto_fact(struct kineto_reader *reader, const char *key, const struct json_text *value)
{
	struct kineto *kineto = reader->kineto;

	if (value->form != '"' && value->form != '0')
		return;
	grow(&kineto->facts, &kineto->fact_room, kineto->fact_count + 1, sizeof *kineto->facts);
	kineto->facts[kineto->fact_count++] = (struct kineto_fact){
		.key = text_id(kineto->texts, key, strlen(key)), .value = kineto_text(reader, value)
	};
}

static void take_distributed(struct kineto_reader *reader, const struct json_text *object)
{
	struct json_scan scan = { .at = object->bytes, .end = object->bytes + object->length };
	struct json_text key, value;

	for (bool more = json_open(&scan, '{'); more; more = json_next(&scan, '}')) {
		if (!json_key(&scan, &key) || !json_value(&scan, &value))
			return;
		for (size_t i = 0; i < sizeof distributed / sizeof *distributed; i++)
			if (json_is(&key, distributed[i].key))
				kineto_fact(reader, distributed[i].fact, &value);
	}
}

/* What Kineto has called the same thing over the years. */
static const struct {
	const char *key;
	size_t offset;
} device_keys[] = {
	{ "id", offsetof(struct kineto_device, id) },
	{ "totalGlobalMem", offsetof(struct kineto_device, memory_bytes) },
	{ "computeMajor", offsetof(struct kineto_device, major) },
	{ "major", offsetof(struct kineto_device, major) },
	{ "computeMinor", offsetof(struct kineto_device, minor) },
	{ "minor", offsetof(struct kineto_device, minor) },
	{ "numSms", offsetof(struct kineto_device, multiprocessors) },
	{ "multiProcessorCount", offsetof(struct kineto_device, multiprocessors) },
	{ "warpSize", offsetof(struct kineto_device, warp_threads) },
	{ "maxThreadsPerMultiprocessor", offsetof(struct kineto_device, threads_per_sm) },
	{ "maxThreadsPerMultiProcessor", offsetof(struct kineto_device, threads_per_sm) },
	{ "maxThreadsPerBlock", offsetof(struct kineto_device, threads_per_block) },
	{ "regsPerMultiprocessor", offsetof(struct kineto_device, registers_per_sm) },
	{ "regsPerBlock", offsetof(struct kineto_device, registers_per_block) },
	{ "sharedMemPerMultiprocessor", offsetof(struct kineto_device, shared_per_sm) },
	{ "maxSharedMemoryPerMultiProcessor", offsetof(struct kineto_device, shared_per_sm) },
	{ "sharedMemPerBlock", offsetof(struct kineto_device, shared_per_block) },
};

static void take_device(struct kineto_reader *reader, struct json_text object)
{
	struct json_scan scan = { .at = object.bytes, .end = object.bytes + object.length };
	struct kineto *kineto = reader->kineto;
	struct kineto_device device = { .name = 0 };
	struct json_text key, value;

	for (bool more = json_open(&scan, '{'); more; more = json_next(&scan, '}')) {
		if (!json_key(&scan, &key) || !json_value(&scan, &value))
			return;
		if (json_is(&key, "name"))
			device.name = kineto_text(reader, &value);
		for (size_t i = 0; i < sizeof device_keys / sizeof *device_keys; i++)
			if (json_is(&key, device_keys[i].key))
				json_unsigned(&value, (uint64_t *)(void *)((char *)&device + device_keys[i].offset));
	}
	grow(&kineto->devices, &kineto->device_room, kineto->device_count + 1, sizeof *kineto->devices);
	kineto->devices[kineto->device_count++] = device;
}

static void take_devices(struct kineto_reader *reader, const struct json_text *array)
{
	struct json_scan scan = { .at = array->bytes, .end = array->bytes + array->length };
	struct json_text value;

	for (bool more = json_open(&scan, '['); more; more = json_next(&scan, ']')) {
		if (!json_value(&scan, &value))
			return;
		if (value.form == '{')
			take_device(reader, value);
	}
}

/* A fact beside the events. */
static void take_fact(struct kineto_reader *reader, const struct json_text *key, const struct json_text *value)
{
	struct kineto *kineto = reader->kineto;

	if (value->form == '{' && json_is(key, "distributedInfo"))
		take_distributed(reader, value);
	else if (value->form == '[' && (json_is(key, "deviceProperties") || json_is(key, "computeProperties")))
		take_devices(reader, value);
	else if (json_is(key, "baseTimeNanoseconds"))
		json_signed(value, &kineto->base_ns);
	for (size_t i = 0; i < sizeof facts / sizeof *facts; i++)
		if (json_is(key, facts[i].key))
			kineto_fact(reader, facts[i].fact, value);
	kineto->known |= json_is(key, "schemaVersion") || json_is(key, "deviceProperties") ||
			 json_is(key, "baseTimeNanoseconds") || json_is(key, "traceName");
}

/* The file ends behind an event, or behind its comma: that one is whole. */
static void take_last(struct kineto_reader *reader)
{
	struct json_scan *scan = &reader->window.scan;

	if (scan->problem != JSON_MORE)
		return;
	scan->problem = NULL;
	if (kineto_event_read(reader))
		kineto_event_take(reader);
	scan->problem = JSON_MORE;
}

/* The events, one after the other; one is taken in when what follows it is at hand too. */
static bool read_events(struct kineto_reader *reader)
{
	struct window *window = &reader->window;
	struct json_scan *scan = &window->scan;
	const char *from = scan->at;
	bool more = true;

	reader->has_events = true;
	while (!json_open(scan, '[')) {
		if (!scan->problem)
			return true;
		if (!window_more(window, from))
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
				kineto_event_take(reader);
				continue;
			}
		}
		if (scan->problem != JSON_MORE)
			return false;
		if (!window_more(window, from)) {
			if (whole)
				take_last(reader);
			return false;
		}
		more = true;
	}
	return true;
}

/* One key of the outer object. */
static bool read_member(struct kineto_reader *reader)
{
	struct json_scan *scan = &reader->window.scan;
	struct json_text key, value;
	const char *from = scan->at;

	for (;;) {
		if (json_key(scan, &key)) {
			if (json_is(&key, "traceEvents") && json_peek(scan) == '[')
				return read_events(reader);
			if (!scan->problem && json_value(scan, &value)) {
				take_fact(reader, &key, &value);
				return true;
			}
		}
		if (scan->problem != JSON_MORE || !window_more(&reader->window, from))
			return false;
		from = scan->at;
	}
}

static bool next_member(struct kineto_reader *reader)
{
	struct json_scan *scan = &reader->window.scan;
	const char *from = scan->at;
	bool more = json_next(scan, '}');

	while (scan->problem == JSON_MORE && window_more(&reader->window, from)) {
		from = scan->at;
		more = json_next(scan, '}');
	}
	return more;
}

static void read_outer(struct kineto_reader *reader)
{
	struct json_scan *scan = &reader->window.scan;

	if (json_peek(scan) == '[') {
		read_events(reader);
		return;
	}
	for (bool more = json_open(scan, '{'); more; more = next_member(reader))
		if (!read_member(reader))
			return;
}

/* Whether this can be meant as a trace at all; `problem` says what it is. */
static bool is_trace(const struct kineto_reader *reader)
{
	struct kineto *kineto = reader->kineto;

	if (reader->has_events && (kineto->known || kineto->range_count || kineto->call_count || kineto->gpu_count))
		return true;
	if (!reader->has_events && reader->window.scan.problem)
		kineto->problem = "is not JSON that can be read";
	else
		kineto->problem = reader->has_events ? "is a trace in Chrome's JSON, but not one of torch.profiler"
						     : "is JSON without trace events";
	return false;
}

bool kineto_read(struct kineto *kineto, struct unpacked *file)
{
	struct kineto_reader reader = { .kineto = kineto, .latest = INT64_MIN };
	bool good;

	*kineto = (struct kineto){ .texts = texts_new() };
	window_open(&reader.window, file);
	if (reader.window.used >= 3 && !memcmp(reader.window.bytes, "\xef\xbb\xbf", 3))
		reader.window.scan.at += 3;
	read_outer(&reader);
	kineto_events_end(&reader);
	if (reader.window.scan.problem) {
		kineto->cut = true;
		kineto->broken_at = window_offset(&reader.window);
		kineto->problem = reader.window.scan.problem == JSON_MORE && unpacked_problem(file)
					  ? unpacked_problem(file)
					  : reader.window.scan.problem;
	}
	kineto->odd = reader.window.scan.odd;
	good = is_trace(&reader);
	window_close(&reader.window);
	free(reader.plain);
	return good;
}

void kineto_free(struct kineto *kineto)
{
	texts_free(kineto->texts);
#define X(type, rows) free(kineto->rows);
	KINETO_ROWS(X)
#undef X
}
