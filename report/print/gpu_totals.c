/* SPDX-License-Identifier: MIT
 * print_gpus.c: what each GPU of each process did as a whole, and each of its streams.
 */
#include "report/text/json_writer.h"
#include "report/print/print.h"

/* unknown_ns: of the device's whole span; only imported traces have work without a launch, and those no such time. */
static void put_work(struct emit *emit, const struct timeline_work *work, uint64_t unknown_ns)
{
	const uint64_t span = work->last_ns - work->first_ns, rest = span - work->busy_ns;
	const uint64_t unknown = unknown_ns < rest ? unknown_ns : rest;

	emit_put_unsigned(emit, "records", work->records);
	emit_put_unsigned(emit, "span_ns", span);
	emit_put_unsigned(emit, "sum_ns", work->sum_ns);
	emit_put_unsigned(emit, "busy_ns", work->busy_ns);
	emit_put_unsigned(emit, "idle_ns", rest - unknown);
	emit_put_unsigned(emit, "unknown_ns", unknown);
	emit_put_unsigned(emit, "kernel_ns", work->kernel_ns);
	emit_put_unsigned(emit, "computation_ns", work->computation_ns);
	emit_put_unsigned(emit, "communication_ns", work->communication_ns);
	emit_put_unsigned(emit, "exposed_communication_ns", work->exposed_communication_ns);
	emit_put_unsigned(emit, "copy_ns", work->copy_ns);
	emit_put_unsigned(emit, "exposed_copy_ns", work->exposed_copy_ns);
}

static void put_streams(struct emit *emit, const struct timeline_device *device)
{
	emit_key(emit, "streams");
	emit_begin(emit, '[');
	for (size_t i = 0; i < device->stream_count; i++) {
		const struct timeline_stream *stream = &device->streams[i];

		emit_begin(emit, '{');
		emit_put_unsigned(emit, "context", stream->context);
		emit_put_unsigned(emit, "stream", stream->stream);
		emit_put_unsigned(emit, "records", stream->records);
		emit_put_unsigned(emit, "sum_ns", stream->sum_ns);
		emit_put_unsigned(emit, "busy_ns", stream->busy_ns);
		emit_end(emit, '}');
	}
	emit_end(emit, ']');
}

static void put_device(struct emit *emit, const struct process *process, const struct timeline_device *device)
{
	emit_begin(emit, '{');
	emit_put_unsigned(emit, "pid", process->pid);
	emit_put_unsigned(emit, "device", device->device);
	put_work(emit, &device->all, device->unknown_ns);
	emit_key(emit, "launched");
	emit_begin(emit, '{');
	put_work(emit, &device->launched, device->unknown_ns);
	emit_end(emit, '}');
	put_streams(emit, device);
	emit_end(emit, '}');
}

void print_json_gpus(const struct processes *processes, struct out *out)
{
	struct emit emit = { .out = out };

	emit_begin(&emit, '[');
	for (size_t i = 0; i < processes->shown; i++) {
		const struct timeline_device *devices;
		const size_t count = timeline_devices(processes->all[i].fold->timeline, &devices);

		for (size_t j = 0; j < count; j++)
			put_device(&emit, &processes->all[i], &devices[j]);
	}
	emit_end(&emit, ']');
}
