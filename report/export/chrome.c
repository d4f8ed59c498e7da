/* SPDX-License-Identifier: MIT
 *
 * Chrome's trace format as PyTorch's profiler (Kineto) writes it: its categories, names, arguments
 * and metadata, so that the tools that read its traces read ours. Times are microseconds with three
 * decimals since baseTimeNanoseconds. Processes and threads are numbers, and what is on one thread
 * nests. CPU samples, which Kineto has none of, are the format's `samples` and `stackFrames`.
 */
#include "report/base/alloc.h"
#include "report/base/error.h"
#include "report/export/chrome_event.h"
#include "report/export/export.h"
#include "report/export/record_samples.h"
#include "report/text/json_writer.h"
#include <stdio.h>
#include <stdlib.h>

#define BROWSER_BYTES_MAX 500000000u /* of JSON: strings of V8 have 2^29 characters at most */
#define GPUS_MAX 64u                 /* of one process */

/* ---- what is known of the run ---- */

static void put_known(struct json_writer *json, const char *key, uint64_t value)
{
	if (value)
		json_put_unsigned(json, key, value);
}

static void put_device(
	struct json_writer *json, struct trace_reader *reader, const struct trace_device *device)
{
	const struct trace_text name = reader_name(reader, device->name);

	json_write_begin(json, '{');
	json_put_unsigned(json, "id", device->device);
	if (name.known)
		json_put_text(json, "name", (struct string_view){ name.bytes, name.length });
	put_known(json, "totalGlobalMem", device->memory_bytes);
	put_known(json, "computeMajor", device->compute_major);
	if (device->compute_major)
		json_put_unsigned(json, "computeMinor", device->compute_minor);
	put_known(json, "maxThreadsPerBlock", device->max_threads_per_block);
	put_known(json, "maxThreadsPerMultiprocessor", device->max_threads_per_sm);
	put_known(json, "regsPerBlock", device->registers_per_block);
	put_known(json, "regsPerMultiprocessor", device->registers_per_sm);
	put_known(json, "warpSize", device->warp_threads);
	put_known(json, "sharedMemPerBlock", device->shared_bytes_per_block);
	put_known(json, "sharedMemPerMultiprocessor", device->shared_bytes_per_sm);
	put_known(json, "numSms", device->multiprocessors);
	json_write_end(json, '}');
}

/* Processes of one machine usually use the same GPUs: each number is written once. */
static bool was_put(const struct processes *processes, size_t before, uint32_t device)
{
	for (size_t i = 0; i < before; i++)
		if (process_device(&processes->all[i], device))
			return true;
	return false;
}

static void put_devices(struct json_writer *json, const struct processes *processes)
{
	const struct trace_device *device;

	json_put_begin(json, "deviceProperties", '[');
	for (size_t i = 0; i < processes->shown; i++) {
		struct trace_reader *reader = processes->all[i].reader;

		for (uint32_t k = 0; (device = reader_dictionary(reader, TRACE_DEVICE, k)); k++)
			if (!was_put(processes, i, device->device))
				put_device(json, reader, device);
	}
	json_write_end(json, ']');
}

/* Writes a fact about the process: a number if it is one. */
static void put_meta(
	struct json_writer *json, const struct process *process, const char *key, const char *meta)
{
	const struct trace_text value = reader_meta(process->reader, meta);
	uint64_t number;

	if (reader_meta_number(process->reader, meta, &number))
		json_put_unsigned(json, key, number);
	else if (value.known)
		json_put_text(json, key, trace_text_or_null(value));
}

static void put_distributed(struct json_writer *json, const struct process *process)
{
	if (process->rank < 0)
		return;
	json_put_begin(json, "distributedInfo", '{');
	json_put_unsigned(json, "rank", (uint64_t)process->rank);
	put_meta(json, process, "world_size", "distributed.world_size");
	put_meta(json, process, "backend", "distributed.backend");
	put_meta(json, process, "nccl_version", "version.nccl");
	json_write_end(json, '}');
}

static void put_head(struct output *out, const struct processes *processes, uint64_t base_unix_ns)
{
	struct json_writer json = { .out = out };
	const struct process *first = &processes->all[0];

	json_write_begin(&json, '{');
	json_put_unsigned(&json, "schemaVersion", 1);
	json_put_string(&json, "displayTimeUnit", "ms");
	put_devices(&json, processes);
	if (processes->shown == 1)
		put_distributed(&json, first);
	put_meta(&json, first, "cuda_runtime_version", "version.cuda_runtime");
	put_meta(&json, first, "cuda_driver_version", "version.cuda_driver");
	put_meta(&json, first, "cupti_version", "version.cupti");
	put_meta(&json, first, "hip_runtime_version", "version.hip_runtime");
	put_meta(&json, first, "hip_driver_version", "version.hip_driver");
	put_meta(&json, first, "roctracer_version", "version.roctracer");
	put_meta(&json, first, "trace_id", "kineto.trace_id");
	json_put_unsigned(&json, "baseTimeNanoseconds", base_unix_ns);
	json_write_key(&json, "traceEvents");
	output_char(out, '[');
}

/* ---- names of processes and threads ---- */

/* Names a process, or with a tid a thread. */
static void put_name(struct chrome *chrome, const char *what, uint64_t pid, uint64_t tid,
	const char *key, struct string_view name)
{
	chrome_begin(chrome, 'M', NULL, chrome_view(what), pid, tid, 0);
	chrome_arg_text(chrome, key, name);
	chrome_end(chrome);
}

static void put_sort_index(
	struct chrome *chrome, const char *what, uint64_t pid, uint64_t tid, uint64_t index)
{
	chrome_begin(chrome, 'M', NULL, chrome_view(what), pid, tid, 0);
	chrome_arg(chrome, "sort_index", index);
	chrome_end(chrome);
}

static void put_lane_name(struct chrome *chrome, const struct record_lane *lane)
{
	const uint64_t pid = chrome->first_gpu_pid + lane->device,
		       tid = chrome_stream_tid(lane->stream, lane->lane, lane->kind);
	static const char *const kinds[] = { "", " waits", " annotations" };
	char name[64];
	int length = lane->stream == UINT32_MAX
			     ? snprintf(name, sizeof name, "host%s", kinds[lane->kind])
			     : snprintf(name, sizeof name, "stream %u%s", lane->stream,
				       kinds[lane->kind]);

	if (lane->lane > (lane->kind == LANE_ANNOTATION))
		length += snprintf(
			name + length, sizeof name - (size_t)length, " (%u)", lane->lane + 1);
	put_name(chrome, "thread_name", pid, tid, "name",
		(struct string_view){ name, (uint32_t)length });
	put_sort_index(chrome, "thread_sort_index", pid, tid, tid);
}

static void put_device_names(struct chrome *chrome)
{
	size_t count;
	const struct record_lane *lanes = record_events_lanes(chrome->events, &count);
	const struct string_view name = chrome_view(process_name(chrome->process));
	char label[32];

	for (size_t i = 0; i < count; i++) {
		size_t before = 0;

		while (before < i && lanes[before].device != lanes[i].device)
			before++;
		put_lane_name(chrome, &lanes[i]);
		if (before < i)
			continue;
		snprintf(label, sizeof label, "GPU %u", lanes[i].device);
		put_name(chrome, "process_name", chrome->first_gpu_pid + lanes[i].device, 0, "name",
			name);
		put_name(chrome, "process_labels", chrome->first_gpu_pid + lanes[i].device, 0,
			"labels", chrome_view(label));
		put_sort_index(chrome, "process_sort_index",
			chrome->first_gpu_pid + lanes[i].device, 0, 5000000 + i);
	}
}

static void put_thread_names(struct chrome *chrome)
{
	struct trace_reader *reader = chrome->process->reader;
	char name[32];

	for (uint32_t i = 0; i < reader_stream_count(reader); i++) {
		const uint32_t tid = reader_stream(reader, i)->tid;

		snprintf(name, sizeof name, "thread %u", tid);
		put_name(chrome, "thread_name", chrome->pid, tid, "name", chrome_view(name));
		put_sort_index(chrome, "thread_sort_index", chrome->pid, tid, tid);
	}
}

static void put_process_names(struct chrome *chrome)
{
	const char *command = chrome->process->command;

	put_name(chrome, "process_name", chrome->pid, 0, "name",
		chrome_view(*command ? command : process_name(chrome->process)));
	put_name(chrome, "process_labels", chrome->pid, 0, "labels", chrome_view("CPU"));
	put_sort_index(chrome, "process_sort_index", chrome->pid, 0, chrome->pid);
}

/* ---- processes ---- */

/* Returns the pid of a process, or another number if a process before it has the same. */
static uint32_t unique_pid(const struct processes *processes, size_t index)
{
	uint32_t pid = processes->all[index].pid;

	for (size_t i = 0; i < index; i++)
		if (processes->all[i].pid == pid)
			return 100000000u + (uint32_t)index;
	return pid;
}

/* Returns what is added to the numbers of GPUs, so that no process has that pid: 0 for the first
 * process, as in files of PyTorch's profiler. */
static uint64_t first_gpu_pid(const struct processes *processes, size_t index)
{
	const uint64_t first = index * GPUS_MAX;

	for (size_t i = 0; i < processes->shown; i++)
		if (processes->all[i].pid - first < GPUS_MAX)
			return 200000000u + first;
	return first;
}

/* A trace that was imported without annotations of GPU work gets none, as older versions of Kineto
 * write none: some readers take them for steps of their own. */
static void put_annotations(struct chrome *chrome)
{
	struct trace_reader *reader = chrome->process->reader;
	const struct gpu_annotation *annotation;

	if (reader_meta(reader, "import.format").known &&
		!reader_meta(reader, "kineto.gpu_annotations").known)
		return;
	while (!chrome->out->error && (annotation = record_events_next_annotation(chrome->events)))
		chrome_put_annotation(chrome, annotation);
}

/* ---- CPU samples ---- */

/* What is written after the events, of all processes. */
struct chrome_samples {
	struct record_samples **of; /* by process; NULL: it has none */
	uint64_t *first_frame;      /* added to the numbers of its frames: unique in the file */
};

static void read_samples(struct chrome_samples *samples, struct processes *processes)
{
	uint64_t frames = 0;

	samples->of = xcalloc(processes->shown * sizeof *samples->of + 1);
	samples->first_frame = xcalloc(processes->shown * sizeof *samples->first_frame + 1);
	for (size_t i = 0; i < processes->shown; i++) {
		samples->of[i] = record_samples_read(&processes->all[i]);
		samples->first_frame[i] = frames;
		frames += samples->of[i] ? samples->of[i]->stacks->count : 0;
	}
}

/* A thread without a stream has no name so far, and readers drop samples of threads that they do
 * not know. */
static void put_sampled_thread_names(struct chrome *chrome)
{
	const struct profile *profile = chrome->process->profile;
	struct trace_reader *reader = chrome->process->reader;
	char name[32];

	for (size_t i = 0; i < profile->sampled_thread_count; i++) {
		const uint32_t tid = profile->sampled_threads[i].tid;
		uint32_t stream = 0;

		while (stream < reader_stream_count(reader) &&
			reader_stream(reader, stream)->tid != tid)
			stream++;
		if (stream < reader_stream_count(reader))
			continue;
		snprintf(name, sizeof name, "thread %u", tid);
		put_name(chrome, "thread_name", chrome->pid, tid, "name", chrome_view(name));
	}
}

static void put_stack_frame(
	struct output *out, const struct record_samples *samples, uint32_t number, uint64_t first)
{
	const struct stack_frame *frame = &samples->stacks->all[number];
	const struct string_view name = record_frame_name(samples, frame),
				 file = record_frame_file(samples, frame);
	char line[24] = "";

	output_string(out, first + number == 1 ? "\n\"" : ",\n\"");
	output_unsigned(out, first + number);
	output_string(out, "\":{\"name\":");
	output_json_text(out, name.bytes, name.length);
	output_string(out, ",\"category\":");
	output_json_text(out, file.bytes, file.length);
	if (frame->caller) {
		output_string(out, ",\"parent\":\"");
		output_unsigned(out, first + frame->caller);
		output_char(out, '"');
	}
	if (frame->frame.line) {
		snprintf(line, sizeof line, ",\"line\":%u", frame->frame.line);
		output_string(out, line);
	}
	output_char(out, '}');
}

static void put_stack_frames(
	struct output *out, const struct processes *processes, const struct chrome_samples *samples)
{
	output_string(out, ",\"stackFrames\":{");
	for (size_t i = 0; i < processes->shown; i++)
		for (uint32_t k = 1; samples->of[i] && k < samples->of[i]->stacks->count; k++)
			put_stack_frame(out, samples->of[i], k, samples->first_frame[i]);
	output_char(out, '}');
}

static void put_sample(struct output *out, const struct record_sample *sample, uint32_t pid,
	uint64_t at_ns, uint64_t frame)
{
	output_string(out, "{\"name\":\"");
	output_string(out, record_sample_state(sample));
	output_string(out, "\",\"pid\":");
	output_unsigned(out, pid);
	output_string(out, ",\"tid\":");
	output_unsigned(out, sample->tid);
	output_string(out, ",\"sf\":");
	output_unsigned(out, frame);
	output_string(out, ",\"weight\":");
	output_unsigned(out, sample->weight_ns);
	output_string(out, ",\"ts\":");
	chrome_put_microseconds(out, at_ns);
	output_char(out, '}');
}

/* Writes `stackFrames` and `samples` of the trace event format. The weights are nanoseconds. */
static void put_samples(struct output *out, const struct processes *processes,
	const struct chrome_samples *samples, uint64_t base_unix_ns)
{
	struct record_sample sample;
	bool any = false;

	put_stack_frames(out, processes, samples);
	output_string(out, ",\"samples\":[");
	for (size_t i = 0; i < processes->shown; i++)
		while (samples->of[i] && record_samples_next(samples->of[i], &sample)) {
			output_string(out, any ? ",\n" : "\n");
			put_sample(out, &sample, unique_pid(processes, i),
				sample.at_ns + processes->all[i].start_unix_ns - base_unix_ns,
				samples->first_frame[i] + sample.frame);
			any = true;
		}
	output_char(out, ']');
}

static bool any_samples(const struct processes *processes)
{
	for (size_t i = 0; i < processes->shown; i++)
		if (process_has_samples(&processes->all[i]))
			return true;
	return false;
}

/* Writes the samples of all processes after the events, if there are any. */
static void put_all_samples(struct output *out, struct processes *processes, uint64_t base_unix_ns)
{
	struct chrome_samples samples;

	if (!any_samples(processes))
		return;
	read_samples(&samples, processes);
	put_samples(out, processes, &samples, base_unix_ns);
	for (size_t i = 0; i < processes->shown; i++)
		record_samples_free(samples.of[i]);
	free(samples.of);
	free(samples.first_frame);
}

/* ---- all of a process ---- */

static void put_process(struct chrome *chrome, const struct options *options)
{
	struct record_event event;
	uint64_t untimed;

	chrome->events = record_events_read(chrome->process, options);
	put_process_names(chrome);
	while (!chrome->out->error && record_events_next(chrome->events, &event)) {
		if (event.host)
			chrome_put_host(chrome, event.host);
		else
			chrome_put_gpu(chrome, event.gpu);
	}
	put_annotations(chrome);
	put_thread_names(chrome);
	put_sampled_thread_names(chrome);
	put_device_names(chrome);
	untimed = record_events_untimed(chrome->events);
	if (untimed)
		warn_user("%s: %llu GPU operations without times are left out",
			chrome->process->path, (unsigned long long)untimed);
	record_events_free(chrome->events);
}

static void warn_of_size(uint64_t bytes)
{
	if (bytes > BROWSER_BYTES_MAX)
		warn_user("the file has %llu MB of JSON, and browsers stop at about 500 MB: use "
			  "--steps or export perfetto",
			(unsigned long long)(bytes / 1000000));
}

void export_chrome(const struct options *options, struct processes *processes, struct output *out)
{
	struct chrome chrome = { .out = out };
	uint64_t base_unix_ns = UINT64_MAX; /* a whole second: HTA rounds to microseconds */

	for (size_t i = 0; i < processes->shown; i++)
		if (processes->all[i].start_unix_ns < base_unix_ns)
			base_unix_ns = processes->all[i].start_unix_ns;
	base_unix_ns -= base_unix_ns % 1000000000;
	put_head(out, processes, base_unix_ns);
	for (size_t i = 0; i < processes->shown; i++) {
		chrome.process = &processes->all[i];
		chrome.pid = unique_pid(processes, i);
		chrome.first_id = (uint64_t)i << 40;
		chrome.first_gpu_pid = first_gpu_pid(processes, i);
		chrome.shift_ns = processes->all[i].start_unix_ns - base_unix_ns;
		memset(chrome.groups_written, 0, sizeof chrome.groups_written);
		put_process(&chrome, options);
	}
	output_string(out, "\n]");
	put_all_samples(out, processes, base_unix_ns);
	output_string(out, "}\n");
	warn_of_size(out->flushed + out->used);
}
