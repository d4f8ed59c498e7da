/* SPDX-License-Identifier: MIT
 *
 * Writes the object "capture": what was recorded, how, and on which devices.
 */
#include "report/print/print_json.h"
#include <stdio.h>
#include <string.h>

static void capture_versions(struct json_writer *json, const struct process *process)
{
	static const char *const names[] = { "pperf", "torch", "python", "cuda_runtime",
		"cuda_driver", "cupti" };

	json_put_begin(json, "versions", '{');
	for (size_t i = 0; i < sizeof names / sizeof *names; i++)
		json_put_text(json, names[i],
			trace_text_or_null(reader_meta_of(process->reader, "version", names[i])));
	json_write_end(json, '}');
}

static void capture_uuid(struct json_writer *json, const uint8_t *uuid)
{
	static const uint8_t unknown[16];
	char text[64];
	size_t used = (size_t)snprintf(text, sizeof text, "GPU-");

	for (int i = 0; i < 16; i++)
		used += (size_t)snprintf(text + used, sizeof text - used, "%s%02x",
			i == 4 || i == 6 || i == 8 || i == 10 ? "-" : "", uuid[i]);
	json_put_string(json, "uuid", memcmp(uuid, unknown, sizeof unknown) ? text : NULL);
}

static void capture_device(
	struct json_writer *json, const struct process *process, const struct trace_device *device)
{
	const struct trace_text name = reader_name(process->reader, device->name);

	json_write_begin(json, '{');
	json_put_unsigned(json, "id", device->device);
	json_put_text(json, "name", (struct string_view){ name.bytes, name.length });
	capture_uuid(json, device->uuid);
	json_put_bool(json, "simulated", device_is_simulated(process->reader, device));
	json_put_unsigned(json, "multiprocessors", device->multiprocessors);
	json_put_unsigned(json, "memory_bytes", device->memory_bytes);
	json_write_end(json, '}');
}

static void capture_devices(struct json_writer *json, const struct process *process)
{
	const struct trace_device *device;

	json_put_begin(json, "devices", '[');
	for (uint32_t i = 0; (device = reader_dictionary(process->reader, TRACE_DEVICE, i)); i++)
		capture_device(json, process, device);
	json_write_end(json, ']');
}

static void capture_sources(struct json_writer *json, const struct process *process)
{
	json_put_begin(json, "sources", '{');
	for (size_t i = 0; i < TRACE_SOURCES; i++) {
		const char *const name = trace_source_names[i];
		const struct trace_text state = reader_meta_of(process->reader, "source", name);

		if (!state.known && !strcmp(name, "roctracer")) /* AMD's files only */
			continue;
		if (state.known)
			json_put_text(json, name, trace_text_or_null(state));
		else
			json_put_string(json, name, "absent");
	}
	json_write_end(json, '}');
}

static const char *text_or_null(const char *text)
{
	return *text ? text : NULL;
}

/* The steps found, whatever --steps selects. */
static void capture_step_threads(struct json_writer *json, const struct steps *steps)
{
	json_put_begin(json, "threads", '[');
	for (size_t i = 0; i < steps->thread_count; i++) {
		const struct steps_thread *thread = &steps->threads[i];

		json_write_begin(json, '{');
		json_put_unsigned(json, "tid", thread->tid);
		json_put_unsigned(json, "count", thread->count);
		json_put_unsigned(json, "usual", thread->usual);
		json_put_unsigned(json, "p50_ns", thread->p50_ns);
		json_put_unsigned(json, "p95_ns", thread->p95_ns);
		json_put_unsigned(json, "max_ns", thread->max_ns);
		json_write_end(json, '}');
	}
	json_write_end(json, ']');
}

static void capture_steps(struct json_writer *json, const struct steps *steps)
{
	json_put_begin(json, "steps", '{');
	json_put_unsigned(json, "count", steps->count);
	json_put_unsigned(json, "warmup", steps->warm_up);
	json_put_unsigned(json, "unfinished", steps->unfinished);
	json_put_string(json, "evidence", text_or_null(steps->evidence));
	json_put_string(json, "confidence", steps_confidence_name(steps->confidence));
	json_put_string(json, "reason", text_or_null(steps->reason));
	json_put_bool(json, "own_ranges", steps->own_ranges);
	json_put_unsigned(json, "p50_ns", steps->p50_ns);
	json_put_unsigned(json, "min_ns", steps->min_ns);
	json_put_unsigned(json, "max_ns", steps->max_ns);
	json_put_unsigned(json, "sum_ns", steps->sum_ns);
	json_put_unsigned(json, "captures", steps->captures);
	json_put_unsigned(json, "edges", steps->edges);
	if (steps_overlap(steps))
		capture_step_threads(json, steps);
	json_write_end(json, '}');
}

/* The time in which CUPTI was handed over to another client. */
static void capture_handover(struct json_writer *json, const struct handover_list *handovers)
{
	const struct handover_span *spans = handovers->spans[HANDOVER_TRACE_TIME];

	json_put_begin(json, "away", '{');
	json_put_unsigned(json, "ns", handovers->ns);
	json_put_begin(json, "spans", '[');
	for (size_t i = 0; i < handovers->count; i++) {
		json_write_begin(json, '{');
		json_put_unsigned(json, "begin_ns", spans[i].begin_ns);
		json_put_known_unsigned(
			json, "end_ns", spans[i].end_ns, spans[i].end_ns != UINT64_MAX);
		json_write_end(json, '}');
	}
	json_write_end(json, ']');
	json_write_end(json, '}');
}

static void capture_recording_window(
	struct json_writer *json, const struct recording_window *window)
{
	json_write_begin(json, '{');
	json_put_unsigned(json, "first_step", window->first);
	json_put_unsigned(json, "steps", window->steps);
	json_put_unsigned(json, "warmup", window->warmup);
	json_put_unsigned(json, "begin_ns", window->begin_ns);
	json_put_unsigned(json, "end_ns", window->end_ns);
	json_put_bool(json, "ended", window->ended);
	json_write_end(json, '}');
}

/* What a ring no longer holds (PPERF_RING). */
static void capture_ring(struct json_writer *json, struct trace_reader *reader)
{
	const struct trace_ring *ring = &reader_header(reader)->ring;

	json_put_begin(json, "ring", '{');
	json_put_unsigned(json, "bytes", ring->bytes);
	json_put_unsigned(json, "overwritten_events", ring->events);
	json_put_unsigned(json, "overwritten_bytes", ring->chunk_bytes);
	json_put_unsigned(json, "early_gpu_records", reader_early_gpu_records(reader));
	json_put_unsigned(json, "unlisted_records", ring->unlisted);
	json_write_end(json, '}');
}

/* The recording windows of PPERF_SCHEDULE, and the events skipped outside of them; or the window of
 * PPERF_RING. */
static void capture_windows(struct json_writer *json, const struct recording_windows *windows,
	struct trace_reader *reader)
{
	json_put_begin(json, "window", '{');
	json_put_text(json, "schedule", trace_text_or_null(windows->schedule));
	json_put_unsigned(json, "steps", windows->steps);
	json_put_unsigned(json, "recorded_ns", windows->ns);
	json_put_begin(json, "recorded", '[');
	for (size_t i = 0; i < windows->count; i++)
		capture_recording_window(json, &windows->windows[i]);
	json_write_end(json, ']');
	json_put_begin(json, "skipped", '{');
	for (int kind = 0; kind < TRACE_SKIP_KINDS; kind++)
		json_put_unsigned(json, recording_windows_skip_name((enum trace_skip_kind)kind),
			windows->skipped[kind].events);
	json_write_end(json, '}');
	json_put_unsigned(json, "skipped_cost_ns", windows->cost_ns);
	if (windows->ring)
		capture_ring(json, reader);
	json_write_end(json, '}');
}

static void capture_process(struct json_writer *json, const struct process *process)
{
	json_write_begin(json, '{');
	json_put_unsigned(json, "pid", process->pid);
	json_put_known_signed(json, "rank", process->rank, process->rank >= 0);
	json_put_string(json, "file", process->path);
	json_put_string(json, "command", process->command);
	json_put_unsigned(json, "start_unix_ns", process->start_unix_ns);
	json_put_unsigned(json, "duration_ns", process->wall_ns);
	json_put_unsigned(json, "gpu_sum_ns", process->gpu_ns);
	json_put_unsigned(json, "events", process->events);
	json_put_bool(json, "shown", process->shown);
	json_put_bool(json, "complete", process->complete);
	json_write_end(json, '}');
}

/* Describes the first process shown. */
void print_json_capture(struct output *out, const struct processes *processes)
{
	struct json_writer writer = { .out = out, .spaced = true }, *json = &writer;
	const struct process *process = &processes->all[0];

	json_write_begin(json, '{');
	json_put_text(json, "command", trace_text_or_null(process_meta(process, "command")));
	json_put_unsigned(json, "pid", process->pid);
	json_put_known_signed(json, "rank", process->rank, process->rank >= 0);
	json_put_unsigned(json, "start_unix_ns", process->start_unix_ns);
	json_put_unsigned(json, "duration_ns", reader_duration_ns(process->reader));
	json_put_text(json, "host", trace_text_or_null(process_meta(process, "host")));
	capture_versions(json, process);
	json_put_string(json, "compile_mode", NULL);
	capture_devices(json, process);
	capture_sources(json, process);
	if (process->windows)
		capture_windows(json, process->windows, process->reader);
	if (process->handovers)
		capture_handover(json, process->handovers);
	if (process->steps)
		capture_steps(json, process->steps);
	json_put_begin(json, "processes", '[');
	for (size_t i = 0; i < processes->count; i++)
		capture_process(json, &processes->all[i]);
	json_write_end(json, ']');
	json_write_end(json, '}');
}
