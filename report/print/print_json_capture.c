/* SPDX-License-Identifier: MIT
 * print_json_capture.c: of the envelope, what was recorded, how, and on what.
 */
#include "report/print/print_json_parts.h"
#include <stdio.h>
#include <string.h>

static void put_versions(struct out *out, const struct process *process)
{
	static const char *const names[] = { "pperf", "torch", "python", "cuda_runtime", "cuda_driver", "cupti" };
	bool first = true;

	out_char(out, '{');
	for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
		char key[64];

		snprintf(key, sizeof key, "version.%s", names[i]);
		print_json_key(out, names[i], &first);
		print_json_text_or_null(out, process_meta(process, key));
	}
	out_char(out, '}');
}

static void put_uuid(struct out *out, const uint8_t *uuid)
{
	static const uint8_t unknown[16];
	char text[64];
	size_t used = (size_t)snprintf(text, sizeof text, "GPU-");

	if (!memcmp(uuid, unknown, sizeof unknown)) {
		out_string(out, "null");
		return;
	}
	for (int i = 0; i < 16; i++)
		used += (size_t)snprintf(text + used, sizeof text - used, "%s%02x",
			i == 4 || i == 6 || i == 8 || i == 10 ? "-" : "", uuid[i]);
	print_json_string(out, text);
}

static void put_devices(struct out *out, const struct process *process)
{
	const struct trace_device *device;

	out_char(out, '[');
	for (uint32_t i = 0; (device = reader_dictionary(process->reader, TRACE_DEVICE, i)); i++) {
		const struct trace_text name = reader_name(process->reader, device->name);
		bool first = true;

		out_string(out, i ? ", {" : "{");
		print_json_member(out, "id", device->device, &first);
		print_json_key(out, "name", &first);
		out_json_text(out, name.bytes, name.length);
		print_json_key(out, "uuid", &first);
		put_uuid(out, device->uuid);
		print_json_key(out, "simulated", &first);
		out_string(out, device_is_simulated(process->reader, device) ? "true" : "false");
		print_json_member(out, "multiprocessors", device->multiprocessors, &first);
		print_json_member(out, "memory_bytes", device->memory_bytes, &first);
		out_char(out, '}');
	}
	out_char(out, ']');
}

static void put_sources(struct out *out, const struct process *process)
{
	static const char *const names[] = { "nvtx", "torch_ops", "torch_modules", "torch_memory", "python_stacks",
		"cuda_symbols", "cupti" };
	bool first = true;

	out_char(out, '{');
	for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
		struct trace_text state;
		char key[64];

		snprintf(key, sizeof key, "source.%s", names[i]);
		state = process_meta(process, key);
		print_json_key(out, names[i], &first);
		if (state.known)
			out_json_text(out, state.bytes, state.length);
		else
			print_json_string(out, "absent");
	}
	out_char(out, '}');
}

/* What was found; not what --steps asks for. */
static void put_steps(struct out *out, const struct steps *steps)
{
	bool first = true;

	out_char(out, '{');
	print_json_member(out, "count", steps->count, &first);
	print_json_member(out, "warmup", steps->warm_up, &first);
	print_json_member(out, "unfinished", steps->unfinished, &first);
	print_json_key(out, "evidence", &first);
	print_json_text_or_null(out, print_json_text_of(steps->evidence));
	print_json_key(out, "confidence", &first);
	print_json_string(out, steps_confidence_name(steps->confidence));
	print_json_key(out, "reason", &first);
	print_json_text_or_null(out, print_json_text_of(steps->reason));
	print_json_key(out, "own_ranges", &first);
	out_string(out, steps->own_ranges ? "true" : "false");
	print_json_member(out, "p50_ns", steps->p50_ns, &first);
	print_json_member(out, "min_ns", steps->min_ns, &first);
	print_json_member(out, "max_ns", steps->max_ns, &first);
	print_json_member(out, "sum_ns", steps->sum_ns, &first);
	print_json_member(out, "captures", steps->captures, &first);
	out_char(out, '}');
}

/* When CUPTI was another client's. */
static void put_away(struct out *out, const struct away *away)
{
	const struct away_span *spans = away->spans[AWAY_TRACE];
	bool first = true;

	out_char(out, '{');
	print_json_member(out, "ns", away->ns, &first);
	print_json_key(out, "spans", &first);
	out_char(out, '[');
	for (size_t i = 0; i < away->count; i++) {
		const bool ended = spans[i].end_ns != UINT64_MAX;
		bool part_first = true;

		out_string(out, i ? ", {" : "{");
		print_json_member(out, "begin_ns", spans[i].begin_ns, &part_first);
		print_json_key(out, "end_ns", &part_first);
		if (ended)
			out_unsigned(out, spans[i].end_ns);
		else
			out_string(out, "null");
		out_char(out, '}');
	}
	out_string(out, "]}");
}

/* What PPERF_SCHEDULE had recorded, and what was not. */
static void put_windows(struct out *out, const struct windows *windows)
{
	bool first = true, inner_first = true;

	out_char(out, '{');
	print_json_key(out, "schedule", &first);
	print_json_text_or_null(out, windows->schedule);
	print_json_member(out, "steps", windows->steps, &first);
	print_json_member(out, "recorded_ns", windows->ns, &first);
	print_json_key(out, "recorded", &first);
	out_char(out, '[');
	for (size_t i = 0; i < windows->count; i++) {
		const struct window *window = &windows->windows[i];
		bool part_first = true;

		out_string(out, i ? ", {" : "{");
		print_json_member(out, "first_step", window->first, &part_first);
		print_json_member(out, "steps", window->steps, &part_first);
		print_json_member(out, "warmup", window->warmup, &part_first);
		print_json_member(out, "begin_ns", window->begin_ns, &part_first);
		print_json_member(out, "end_ns", window->end_ns, &part_first);
		print_json_key(out, "ended", &part_first);
		out_string(out, window->ended ? "true" : "false");
		out_char(out, '}');
	}
	out_char(out, ']');
	print_json_key(out, "skipped", &first);
	out_char(out, '{');
	for (int kind = 0; kind < TRACE_SKIP_KINDS; kind++)
		print_json_member(out, windows_skip_name((enum trace_skip_kind)kind), windows->skipped[kind].events, &inner_first);
	out_char(out, '}');
	print_json_member(out, "skipped_cost_ns", windows->cost_ns, &first);
	out_char(out, '}');
}

static void put_rank(struct out *out, int64_t rank)
{
	if (rank >= 0)
		out_signed(out, rank);
	else
		out_string(out, "null");
}

static void put_processes(struct out *out, const struct processes *processes)
{
	out_char(out, '[');
	for (size_t i = 0; i < processes->count; i++) {
		const struct process *process = &processes->all[i];
		bool first = true;

		out_string(out, i ? ", {" : "{");
		print_json_member(out, "pid", process->pid, &first);
		print_json_key(out, "rank", &first);
		put_rank(out, process->rank);
		print_json_key(out, "file", &first);
		print_json_string(out, process->path);
		print_json_key(out, "command", &first);
		print_json_string(out, process->command);
		print_json_member(out, "start_unix_ns", process->start_unix_ns, &first);
		print_json_member(out, "duration_ns", process->wall_ns, &first);
		print_json_member(out, "gpu_sum_ns", process->gpu_ns, &first);
		print_json_member(out, "events", process->events, &first);
		print_json_key(out, "shown", &first);
		out_string(out, process->shown ? "true" : "false");
		print_json_key(out, "complete", &first);
		out_string(out, process->complete ? "true" : "false");
		out_char(out, '}');
	}
	out_char(out, ']');
}

/* Of the first process shown. */
void print_json_capture(struct out *out, const struct processes *processes)
{
	const struct process *process = &processes->all[0];
	bool first = true;

	out_char(out, '{');
	print_json_key(out, "command", &first);
	print_json_text_or_null(out, process_meta(process, "command"));
	print_json_member(out, "pid", process->pid, &first);
	print_json_key(out, "rank", &first);
	put_rank(out, process->rank);
	print_json_member(out, "start_unix_ns", process->start_unix_ns, &first);
	print_json_member(out, "duration_ns", reader_duration_ns(process->reader), &first);
	print_json_key(out, "host", &first);
	print_json_text_or_null(out, process_meta(process, "host"));
	print_json_key(out, "versions", &first);
	put_versions(out, process);
	print_json_key(out, "compile_mode", &first);
	out_string(out, "null");
	print_json_key(out, "devices", &first);
	put_devices(out, process);
	print_json_key(out, "sources", &first);
	put_sources(out, process);
	if (process->windows) {
		print_json_key(out, "window", &first);
		put_windows(out, process->windows);
	}
	if (process->away) {
		print_json_key(out, "away", &first);
		put_away(out, process->away);
	}
	if (process->steps) {
		print_json_key(out, "steps", &first);
		put_steps(out, process->steps);
	}
	print_json_key(out, "processes", &first);
	put_processes(out, processes);
	out_char(out, '}');
}
