/* SPDX-License-Identifier: MIT
 *
 * Events of the GPUs: kernels, copies, memsets, waits of CUDA streams, and arrows from launches.
 */
#include "report/export/chrome_event.h"
#include "report/export/kineto_names.h"
#include "report/gpu/occupancy.h"
#include <stdio.h>

/* Lane n of a CUDA stream has the tid n * LANE_TIDS + stream, its waits are SYNC_TIDS above. */
#define LANE_TIDS 1000000000u
#define SYNC_TIDS 500000000u

uint64_t chrome_stream_tid(uint32_t stream, uint32_t lane, bool is_sync)
{
	return (uint64_t)lane * LANE_TIDS + (is_sync ? SYNC_TIDS : 0) + stream % SYNC_TIDS;
}

static uint64_t tid_of(const struct gpu_event *gpu)
{
	return gpu->kind == TRACE_GPU_SYNC
		       ? chrome_stream_tid(gpu->record.sync.stream, gpu->lane, true)
		       : chrome_stream_tid(gpu->record.gpu.stream, gpu->lane, false);
}

/* Adds what a launch configuration gives on its device. */
static void args_occupancy(struct chrome *chrome, const struct trace_kernel *kernel)
{
	const struct trace_device *device = process_device(chrome->process, kernel->gpu.device);
	struct occupancy occupancy;
	double blocks, warps, percent;

	if (!device || !occupancy_of(device, kernel, &occupancy) || !device->multiprocessors)
		return;
	blocks = (double)occupancy.blocks / device->multiprocessors;
	warps = occupancy.blocks_per_sm ? blocks * occupancy.active_warps / occupancy.blocks_per_sm
					: 0;
	percent = occupancy.waves_per_sm < 1 ? occupancy.theoretical * occupancy.waves_per_sm
					     : occupancy.theoretical;
	chrome_arg_begin(chrome, "blocks per SM");
	output_double(chrome->out, blocks);
	chrome_arg_begin(chrome, "warps per SM");
	output_double(chrome->out, warps);
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

static void put_sync(struct chrome *chrome, const struct gpu_event *gpu)
{
	const struct trace_gpu_sync *sync = &gpu->record.sync;

	chrome_begin(chrome, 'X', "cuda_sync", chrome_view(kineto_sync_name(sync->type)),
		chrome->first_gpu_pid + gpu->device, tid_of(gpu), gpu->begin_ns);
	chrome_duration(chrome, gpu->end_ns - gpu->begin_ns);
	chrome_arg_string(chrome, "cuda_sync_kind", kineto_sync_name(sync->type));
	chrome_arg(chrome, "device", gpu->device);
	chrome_arg(chrome, "context", sync->context);
	chrome_arg(chrome, "stream", sync->stream);
	if (sync->correlation)
		chrome_arg(chrome, "correlation", sync->correlation);
	if (sync->event)
		chrome_arg(chrome, "wait_on_cuda_event_id", sync->event);
	if (gpu->waited_correlation) {
		chrome_arg(chrome, "wait_on_stream", gpu->waited_stream);
		chrome_arg(chrome, "wait_on_cuda_event_record_corr_id", gpu->waited_correlation);
	}
	chrome_end(chrome);
}

void chrome_put_gpu(struct chrome *chrome, const struct gpu_event *gpu)
{
	if (gpu->kind == TRACE_GPU_SYNC)
		put_sync(chrome, gpu);
	else
		put_work(chrome, gpu);
}
