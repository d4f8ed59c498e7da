/* SPDX-License-Identifier: MIT
 *
 * Writes totals of each GPU of each process, and of each CUDA stream, as JSON.
 */
#include "report/text/json_writer.h"
#include "report/print/print.h"

static void json_gpu_work(
	struct json_writer *json, const struct timeline_work *work, uint64_t unknown_ns)
{
	const uint64_t span = work->last_ns - work->first_ns, rest = span - work->busy_ns;

	json_put_unsigned(json, "records", work->records);
	json_put_unsigned(json, "span_ns", span);
	json_put_unsigned(json, "sum_ns", work->sum_ns);
	json_put_unsigned(json, "busy_ns", work->busy_ns);
	json_put_unsigned(json, "idle_ns", rest - unknown_ns);
	json_put_unsigned(json, "unknown_ns", unknown_ns);
	json_put_unsigned(json, "kernel_ns", work->kernel_ns);
	json_put_unsigned(json, "computation_ns", work->computation_ns);
	json_put_unsigned(json, "communication_ns", work->communication_ns);
	json_put_unsigned(json, "exposed_communication_ns", work->exposed_communication_ns);
	json_put_unsigned(json, "copy_ns", work->copy_ns);
	json_put_unsigned(json, "exposed_copy_ns", work->exposed_copy_ns);
}

static void json_gpu_streams(struct json_writer *json, const struct timeline_device *device)
{
	json_put_begin(json, "streams", '[');
	for (size_t i = 0; i < device->stream_count; i++) {
		const struct timeline_cuda_stream *stream = &device->streams[i];

		json_write_begin(json, '{');
		json_put_unsigned(json, "context", stream->context);
		json_put_unsigned(json, "stream", stream->stream);
		json_put_unsigned(json, "records", stream->records);
		json_put_unsigned(json, "sum_ns", stream->sum_ns);
		json_put_unsigned(json, "busy_ns", stream->busy_ns);
		json_write_end(json, '}');
	}
	json_write_end(json, ']');
}

static void json_gpu_device(struct json_writer *json, const struct process *process,
	const struct timeline_device *device)
{
	json_write_begin(json, '{');
	json_put_unsigned(json, "pid", process->pid);
	json_put_unsigned(json, "device", device->device);
	json_gpu_work(json, &device->all, device->unknown_ns);
	json_put_begin(json, "launched", '{');
	json_gpu_work(json, &device->launched, device->unknown_launched_ns);
	json_write_end(json, '}');
	json_gpu_streams(json, device);
	json_write_end(json, '}');
}

void print_json_gpus(const struct processes *processes, struct output *out)
{
	struct json_writer json = { .out = out };

	json_write_begin(&json, '[');
	for (size_t i = 0; i < processes->shown; i++) {
		const struct timeline_device *devices;
		const size_t count = timeline_devices(
			processes->all[i].profile->timeline, &devices);

		for (size_t j = 0; j < count; j++)
			json_gpu_device(&json, &processes->all[i], &devices[j]);
	}
	json_write_end(&json, ']');
}
