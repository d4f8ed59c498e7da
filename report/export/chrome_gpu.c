/* SPDX-License-Identifier: MIT
 *
 * Events of the GPUs: kernels, copies, memsets, waits of CUDA streams, and arrows from launches.
 */
#include "report/export/chrome_event.h"
#include "report/export/kineto_names.h"
#include "report/gpu/occupancy.h"
#include <stdio.h>

/* Lane n of a CUDA stream has the tid n * LANE_TIDS + stream. Waits and annotations are KIND_TIDS
 * and twice as much above. */
#define LANE_TIDS 1000000000u
#define KIND_TIDS 250000000u

uint64_t chrome_stream_tid(uint32_t stream, uint32_t lane, enum record_lane_kind kind)
{
	return (uint64_t)lane * LANE_TIDS + kind * (uint64_t)KIND_TIDS + stream % KIND_TIDS;
}

static uint64_t tid_of(const struct gpu_event *gpu)
{
	return gpu->kind == TRACE_GPU_SYNC
		       ? chrome_stream_tid(gpu->record.sync.stream, gpu->lane, LANE_SYNC)
		       : chrome_stream_tid(gpu->record.gpu.stream, gpu->lane, LANE_WORK);
}

static double volume_of(const uint32_t sides[3])
{
	return (double)sides[0] * sides[1] * sides[2];
}

/* Adds what a launch configuration gives on its device. */
static void args_occupancy(struct chrome *chrome, const struct trace_kernel *kernel)
{
	const struct trace_device *device = process_device(chrome->process, kernel->gpu.device);
	const double blocks = volume_of(kernel->grid), threads = volume_of(kernel->block);
	struct occupancy occupancy;
	double percent;

	if (!device || !device->multiprocessors || !device->warp_threads)
		return;
	chrome_arg_begin(chrome, "blocks per SM");
	output_double(chrome->out, blocks / device->multiprocessors);
	chrome_arg_begin(chrome, "warps per SM");
	output_double(
		chrome->out, blocks * threads / device->warp_threads / device->multiprocessors);
	if (!occupancy_of(device, kernel, &occupancy))
		return;
	percent = occupancy.waves_per_sm < 1 ? occupancy.theoretical * occupancy.waves_per_sm
					     : occupancy.theoretical;
	chrome_arg(chrome, "est. achieved occupancy %", (uint64_t)(percent * 100 + 0.5));
}

/* Adds the process group of a collective's stream, which the trace has once per stream. Its first
 * sequence number is written with the first collective. */
static void args_group(struct chrome *chrome, const struct gpu_event *gpu, struct string_view name)
{
	const uint32_t stream = gpu->record.gpu.stream;
	struct trace_text group, sequence;
	const char *ranks;
	char key[64];

	if (!memmem(name.bytes, name.length, "nccl", 4))
		return;
	snprintf(key, sizeof key, "stream.%u.%u.group", gpu->device, stream);
	group = reader_meta(chrome->process->reader, key);
	ranks = group.known ? memchr(group.bytes, ' ', group.length) : NULL;
	if (!ranks)
		return;
	chrome_arg_text(chrome, "Process Group Name",
		(struct string_view){ group.bytes, (uint32_t)(ranks - group.bytes) });
	ranks++;
	chrome_arg_text(chrome, "Process Group Ranks",
		(struct string_view){ ranks, (uint32_t)(group.bytes + group.length - ranks) });
	snprintf(key, sizeof key, "stream.%u.%u.sequence", gpu->device, stream);
	sequence = reader_meta(chrome->process->reader, key);
	if (!sequence.known || chrome->groups_written[stream % 64])
		return;
	chrome->groups_written[stream % 64] = true;
	chrome_arg_text(chrome, "Seq", (struct string_view){ sequence.bytes, sequence.length });
}

static void args_kernel(struct chrome *chrome, const struct trace_kernel *kernel)
{
	chrome_arg(chrome, "registers per thread", kernel->registers);
	chrome_arg(chrome, "shared memory",
		(uint64_t)kernel->static_shared_bytes + kernel->dynamic_shared_bytes);
	chrome_arg_triple(chrome, "grid", kernel->grid);
	chrome_arg_triple(chrome, "block", kernel->block);
	if (kernel->local_bytes)
		chrome_arg(chrome, "local memory per thread", kernel->local_bytes);
	args_occupancy(chrome, kernel);
}

static void args_copy(struct chrome *chrome, const struct gpu_event *gpu)
{
	const uint64_t ns = gpu->end_ns - gpu->begin_ns;

	chrome_arg(chrome, "bytes", gpu->record.copy.bytes);
	if (!ns)
		return;
	chrome_arg_begin(chrome, "memory bandwidth (GB/s)");
	output_double(chrome->out, (double)gpu->record.copy.bytes / (double)ns);
}

static void args_stream(struct chrome *chrome, const struct trace_gpu *work)
{
	chrome_arg(chrome, "device", work->device);
	chrome_arg(chrome, "context", work->context);
	chrome_arg(chrome, "stream", work->stream);
}

static void args_ids(struct chrome *chrome, const struct gpu_event *gpu)
{
	const struct trace_gpu *work = &gpu->record.gpu;

	if (work->graph_node) {
		chrome_arg(chrome, "graph id", work->graph);
		chrome_arg(chrome, "graph node id", work->graph_node);
	}
	if (work->correlation)
		chrome_arg(chrome, "correlation", work->correlation);
	if (gpu->range_number)
		chrome_arg(chrome, "External id", gpu->range_number);
}

static void put_work(struct chrome *chrome, const struct gpu_event *gpu)
{
	const uint64_t pid = chrome->first_gpu_pid + gpu->device;
	const bool is_kernel = gpu->kind == TRACE_KERNEL;
	char copy[KINETO_NAME_BYTES];
	struct string_view name;

	if (is_kernel) {
		name = record_kernel_name(chrome->events, &gpu->record.kernel);
	} else {
		kineto_copy_name(copy, &gpu->record.copy);
		name = chrome_view(copy);
	}
	chrome_begin(chrome, 'X',
		is_kernel                    ? "kernel"
		: gpu->kind == TRACE_GPU_SET ? "gpu_memset"
					     : "gpu_memcpy",
		name, pid, tid_of(gpu), gpu->begin_ns);
	chrome_duration(chrome, gpu->end_ns - gpu->begin_ns);
	args_stream(chrome, &gpu->record.gpu);
	if (is_kernel)
		args_kernel(chrome, &gpu->record.kernel);
	else
		args_copy(chrome, gpu);
	if (is_kernel)
		args_group(chrome, gpu, name);
	args_ids(chrome, gpu);
	chrome_end(chrome);
	if (gpu->launch_tid)
		chrome_put_arrow(
			chrome, 'f', pid, tid_of(gpu), gpu->record.gpu.correlation, gpu->begin_ns);
}

/* Adds a CUDA stream: -1 where none is meant, as in a wait of the host for a context. */
static void arg_stream(struct chrome *chrome, const char *key, uint32_t stream)
{
	chrome_arg_signed(chrome, key, stream == UINT32_MAX ? -1 : (int64_t)stream);
}

static void put_sync(struct chrome *chrome, const struct gpu_event *gpu)
{
	const struct trace_gpu_sync *sync = &gpu->record.sync;

	chrome_begin(chrome, 'X', "cuda_sync", chrome_view(kineto_sync_name(sync->type)),
		chrome->first_gpu_pid + gpu->device, tid_of(gpu), gpu->begin_ns);
	chrome_duration(chrome, gpu->end_ns - gpu->begin_ns);
	chrome_arg_string(chrome, "cuda_sync_kind", kineto_sync_name(sync->type));
	chrome_arg(chrome, "device", gpu->device);
	chrome_arg(chrome, "context", sync->context);
	arg_stream(chrome, "stream", sync->stream);
	if (sync->correlation)
		chrome_arg(chrome, "correlation", sync->correlation);
	if (sync->event)
		chrome_arg(chrome, "wait_on_cuda_event_id", sync->event);
	if (gpu->waited_correlation) {
		arg_stream(chrome, "wait_on_stream", gpu->waited_stream);
		chrome_arg(chrome, "wait_on_cuda_event_record_corr_id", gpu->waited_correlation);
	}
	chrome_end(chrome);
}

void chrome_put_annotation(struct chrome *chrome, const struct gpu_annotation *annotation)
{
	const enum record_lane_kind kind = annotation->lane ? LANE_ANNOTATION : LANE_WORK;

	chrome_begin(chrome, 'X', "gpu_user_annotation",
		record_annotation_name(chrome->events, annotation),
		chrome->first_gpu_pid + annotation->device,
		chrome_stream_tid(annotation->stream, annotation->lane, kind),
		annotation->begin_ns);
	chrome_duration(chrome, annotation->end_ns - annotation->begin_ns);
	chrome_arg(chrome, "External id", annotation->range_number);
	chrome_end(chrome);
}

void chrome_put_gpu(struct chrome *chrome, const struct gpu_event *gpu)
{
	if (gpu->kind == TRACE_GPU_SYNC)
		put_sync(chrome, gpu);
	else
		put_work(chrome, gpu);
}
