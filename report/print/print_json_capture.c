/* SPDX-License-Identifier: MIT
 *
 * Writes the object `capture`: what was recorded, how, and on which devices.
 */
#include "report/print/print_json.h"
#include <stdio.h>
#include <string.h>

static void capture_versions(struct output *out, const struct process *process)
{
	static const char *const names[] = { "pperf", "torch", "python", "cuda_runtime",
		"cuda_driver", "cupti" };
	bool first = true;

	output_char(out, '{');
	for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
		char key[64];

		snprintf(key, sizeof key, "version.%s", names[i]);
		print_json_key(out, names[i], &first);
		print_json_text_or_null(out, process_meta(process, key));
	}
	output_char(out, '}');
}

static void capture_uuid(struct output *out, const uint8_t *uuid)
{
	static const uint8_t unknown[16];
	char text[64];
	size_t used = (size_t)snprintf(text, sizeof text, "GPU-");

	if (!memcmp(uuid, unknown, sizeof unknown)) {
		output_string(out, "null");
		return;
	}
	for (int i = 0; i < 16; i++)
		used += (size_t)snprintf(text + used, sizeof text - used, "%s%02x",
			i == 4 || i == 6 || i == 8 || i == 10 ? "-" : "", uuid[i]);
	print_json_string(out, text);
}

static void capture_device(
	struct output *out, const struct process *process, const struct trace_device *device)
{
	const struct trace_text name = reader_name(process->reader, device->name);
	bool first = true;

	output_char(out, '{');
	print_json_member(out, "id", device->device, &first);
	print_json_key(out, "name", &first);
	output_json_text(out, name.bytes, name.length);
	print_json_key(out, "uuid", &first);
	capture_uuid(out, device->uuid);
	print_json_bool(out, "simulated", device_is_simulated(process->reader, device), &first);
	print_json_member(out, "multiprocessors", device->multiprocessors, &first);
	print_json_member(out, "memory_bytes", device->memory_bytes, &first);
	output_char(out, '}');
}

static void capture_devices(struct output *out, const struct process *process)
{
	const struct trace_device *device;

	output_char(out, '[');
	for (uint32_t i = 0; (device = reader_dictionary(process->reader, TRACE_DEVICE, i)); i++) {
		if (i)
			output_string(out, ", ");
		capture_device(out, process, device);
	}
	output_char(out, ']');
}

static void capture_sources(struct output *out, const struct process *process)
{
	static const char *const names[] = { "nvtx", "torch_ops", "torch_modules", "torch_memory",
		"python_stacks", "cuda_symbols", "cupti", "roctracer" };
	bool first = true;

	output_char(out, '{');
	for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
		struct trace_text state;
		char key[64];

		snprintf(key, sizeof key, "source.%s", names[i]);
		state = process_meta(process, key);
		if (!state.known && !strcmp(names[i], "roctracer")) /* AMD's files only */
			continue;
		print_json_key(out, names[i], &first);
		if (state.known)
			output_json_text(out, state.bytes, state.length);
		else
			print_json_string(out, "absent");
	}
	output_char(out, '}');
}

/* The steps found, whatever --steps selects. */
static void capture_steps(struct output *out, const struct steps *steps)
{
	bool first = true;

	output_char(out, '{');
	print_json_member(out, "count", steps->count, &first);
	print_json_member(out, "warmup", steps->warm_up, &first);
	print_json_member(out, "unfinished", steps->unfinished, &first);
	print_json_key(out, "evidence", &first);
	print_json_text_or_null(out, print_json_text_of(steps->evidence));
	print_json_key(out, "confidence", &first);
	print_json_string(out, steps_confidence_name(steps->confidence));
	print_json_key(out, "reason", &first);
	print_json_text_or_null(out, print_json_text_of(steps->reason));
	print_json_bool(out, "own_ranges", steps->own_ranges, &first);
	print_json_member(out, "p50_ns", steps->p50_ns, &first);
	print_json_member(out, "min_ns", steps->min_ns, &first);
	print_json_member(out, "max_ns", steps->max_ns, &first);
	print_json_member(out, "sum_ns", steps->sum_ns, &first);
	print_json_member(out, "captures", steps->captures, &first);
	output_char(out, '}');
}

/* Writes a number, or null if it is UINT64_MAX. */
static void capture_number(struct output *out, const char *key, uint64_t value, bool *first)
{
	print_json_key(out, key, first);
	if (value != UINT64_MAX)
		output_unsigned(out, value);
	else
		output_string(out, "null");
}

/* The time in which CUPTI was handed over to another client. */
static void capture_handover(struct output *out, const struct handover_list *handovers)
{
	const struct handover_span *spans = handovers->spans[HANDOVER_TRACE_TIME];
	bool first = true;

	output_char(out, '{');
	print_json_member(out, "ns", handovers->ns, &first);
	print_json_key(out, "spans", &first);
	output_char(out, '[');
	for (size_t i = 0; i < handovers->count; i++) {
		bool part_first = true;

		output_string(out, i ? ", {" : "{");
		print_json_member(out, "begin_ns", spans[i].begin_ns, &part_first);
		capture_number(out, "end_ns", spans[i].end_ns, &part_first);
		output_char(out, '}');
	}
	output_string(out, "]}");
}

static void capture_recording_window(struct output *out, const struct recording_window *window)
{
	bool first = true;

	output_char(out, '{');
	print_json_member(out, "first_step", window->first, &first);
	print_json_member(out, "steps", window->steps, &first);
	print_json_member(out, "warmup", window->warmup, &first);
	print_json_member(out, "begin_ns", window->begin_ns, &first);
	print_json_member(out, "end_ns", window->end_ns, &first);
	print_json_bool(out, "ended", window->ended, &first);
	output_char(out, '}');
}

static void capture_skipped(struct output *out, const struct recording_windows *windows)
{
	bool first = true;

	output_char(out, '{');
	for (int kind = 0; kind < TRACE_SKIP_KINDS; kind++)
		print_json_member(out, recording_windows_skip_name((enum trace_skip_kind)kind),
			windows->skipped[kind].events, &first);
	output_char(out, '}');
}

/* The recording windows of PPERF_SCHEDULE, and the events skipped outside of them. */
static void capture_windows(struct output *out, const struct recording_windows *windows)
{
	bool first = true;

	output_char(out, '{');
	print_json_key(out, "schedule", &first);
	print_json_text_or_null(out, windows->schedule);
	print_json_member(out, "steps", windows->steps, &first);
	print_json_member(out, "recorded_ns", windows->ns, &first);
	print_json_key(out, "recorded", &first);
	output_char(out, '[');
	for (size_t i = 0; i < windows->count; i++) {
		if (i)
			output_string(out, ", ");
		capture_recording_window(out, &windows->windows[i]);
	}
	output_char(out, ']');
	print_json_key(out, "skipped", &first);
	capture_skipped(out, windows);
	print_json_member(out, "skipped_cost_ns", windows->cost_ns, &first);
	output_char(out, '}');
}

static void capture_rank(struct output *out, int64_t rank)
{
	if (rank >= 0)
		output_signed(out, rank);
	else
		output_string(out, "null");
}

static void capture_process(struct output *out, const struct process *process)
{
	bool first = true;

	output_char(out, '{');
	print_json_member(out, "pid", process->pid, &first);
	print_json_key(out, "rank", &first);
	capture_rank(out, process->rank);
	print_json_key(out, "file", &first);
	print_json_string(out, process->path);
	print_json_key(out, "command", &first);
	print_json_string(out, process->command);
	print_json_member(out, "start_unix_ns", process->start_unix_ns, &first);
	print_json_member(out, "duration_ns", process->wall_ns, &first);
	print_json_member(out, "gpu_sum_ns", process->gpu_ns, &first);
	print_json_member(out, "events", process->events, &first);
	print_json_bool(out, "shown", process->shown, &first);
	print_json_bool(out, "complete", process->complete, &first);
	output_char(out, '}');
}

static void capture_processes(struct output *out, const struct processes *processes)
{
	output_char(out, '[');
	for (size_t i = 0; i < processes->count; i++) {
		if (i)
			output_string(out, ", ");
		capture_process(out, &processes->all[i]);
	}
	output_char(out, ']');
}

/* Describes the first process shown. */
void print_json_capture(struct output *out, const struct processes *processes)
{
	const struct process *process = &processes->all[0];
	bool first = true;

	output_char(out, '{');
	print_json_key(out, "command", &first);
	print_json_text_or_null(out, process_meta(process, "command"));
	print_json_member(out, "pid", process->pid, &first);
	print_json_key(out, "rank", &first);
	capture_rank(out, process->rank);
	print_json_member(out, "start_unix_ns", process->start_unix_ns, &first);
	print_json_member(out, "duration_ns", reader_duration_ns(process->reader), &first);
	print_json_key(out, "host", &first);
	print_json_text_or_null(out, process_meta(process, "host"));
	print_json_key(out, "versions", &first);
	capture_versions(out, process);
	print_json_key(out, "compile_mode", &first);
	output_string(out, "null");
	print_json_key(out, "devices", &first);
	capture_devices(out, process);
	print_json_key(out, "sources", &first);
	capture_sources(out, process);
	if (process->windows) {
		print_json_key(out, "window", &first);
		capture_windows(out, process->windows);
	}
	if (process->handovers) {
		print_json_key(out, "away", &first);
		capture_handover(out, process->handovers);
	}
	if (process->steps) {
		print_json_key(out, "steps", &first);
		capture_steps(out, process->steps);
	}
	print_json_key(out, "processes", &first);
	capture_processes(out, processes);
	output_char(out, '}');
}
