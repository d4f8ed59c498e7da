/* SPDX-License-Identifier: MIT
 * random_traces FOLDER COUNT SEED: writes COUNT traces FOLDER/000.bin, 001.bin, ... Equal seeds give
 * equal traces.
 *
 * Each has up to 3 devices with 3 CUDA streams each, 3 threads, nested ranges, start/end ranges that
 * overlap, kernels, communication, copies and memsets, waits of the host and of streams, CUDA graphs
 * with and without names of nodes, allocations, and CUPTI handovers. Launches and GPU records are
 * missing here and there, some records have no times, and some arrive late.
 */
#include "tests/support/run_report.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

enum { THREADS = 3, DEVICES = 3, STREAMS = 3, GPU = 9, STEPS_MAX = 6 };

struct scene {
	struct trace_builder *builder;
	uint64_t state; /* of the generator */
	uint64_t now_ns[THREADS], free_ns[DEVICES][STREAMS];
	uint64_t correlation, last_ns;
	unsigned threads, devices, streams;
	bool is_away;
};

/* xorshift64*: the same on every machine. */
static uint64_t draw(struct scene *scene, uint64_t below)
{
	scene->state ^= scene->state >> 12;
	scene->state ^= scene->state << 25;
	scene->state ^= scene->state >> 27;
	return (scene->state * 0x2545f4914f6cdd1du >> 33) % below;
}

static bool one_in(struct scene *scene, uint64_t many)
{
	return draw(scene, many) == 0;
}

/* Lets time pass on a thread and returns it. Rarely that is a millisecond or more. */
static uint64_t pass(struct scene *scene, unsigned thread)
{
	const uint64_t most = one_in(scene, 20) ? 3000000 : one_in(scene, 3) ? 60000 : 4000;

	scene->now_ns[thread] += 10 + draw(scene, most);
	return scene->now_ns[thread];
}

static void set_call(struct trace_call *call, uint64_t duration_ns, unsigned device)
{
	call->duration = duration_ns;
	call->device = device;
}

static uint64_t place_on_stream(struct scene *scene, unsigned device, unsigned stream,
	uint64_t ready_ns, uint64_t length_ns)
{
	uint64_t *free_ns = &scene->free_ns[device][stream];
	const uint64_t begin_ns = (ready_ns > *free_ns ? ready_ns : *free_ns) + draw(scene, 9000);

	*free_ns = begin_ns + length_ns;
	if (*free_ns > scene->last_ns)
		scene->last_ns = *free_ns;
	return begin_ns;
}

static void set_where(struct trace_gpu *gpu, unsigned device, unsigned stream)
{
	gpu->device = device;
	gpu->context = device + 1;
	gpu->stream = 7 + stream;
}

static void add_kernel(struct scene *scene, unsigned device, unsigned stream, uint64_t ready_ns,
	uint64_t correlation, uint64_t graph_node)
{
	static const char *const names[] = { "gemm", "softmax", "ncclDevKernel_AllReduce",
		"elementwise", "attention" };
	const uint64_t length_ns = 500 + draw(scene, one_in(scene, 4) ? 400000 : 20000);
	const uint64_t begin_ns = place_on_stream(scene, device, stream, ready_ns, length_ns);
	const bool untimed = one_in(scene, 60);
	struct trace_kernel *kernel;

	if (one_in(scene, 40))
		return; /* the record is missing */
	kernel = build_kernel(scene->builder, GPU, 0, correlation, names[draw(scene, 5)],
		untimed ? 0 : begin_ns, untimed ? 0 : begin_ns + length_ns);
	set_where(&kernel->gpu, device, stream);
	kernel->gpu.graph_node = graph_node;
}

static void launch_kernel(struct scene *scene, unsigned thread, unsigned device, unsigned stream)
{
	const uint64_t end_ns = pass(scene, thread) + 4000, correlation = ++scene->correlation;
	struct trace_launch *launch;

	scene->now_ns[thread] = end_ns;
	add_kernel(scene, device, stream, end_ns - 2000, correlation, 0);
	if (one_in(scene, 30))
		return; /* the launch is missing */
	launch = build_launch(scene->builder, thread + 1, end_ns, correlation);
	set_call(&launch->call, 4000, device);
	launch->stream = stream ? 100 + 10 * device + stream : 0;
}

static void launch_graph(struct scene *scene, unsigned thread, unsigned device, unsigned stream)
{
	const uint64_t end_ns = pass(scene, thread) + 15000, correlation = ++scene->correlation;
	const bool names_nodes = one_in(scene, 2);
	const unsigned nodes = 1 + (unsigned)draw(scene, 6);
	struct trace_graph_launch *launch;

	scene->now_ns[thread] = end_ns;
	for (unsigned i = 0; i < nodes; i++)
		add_kernel(scene, device, one_in(scene, 4) ? 0 : stream,
			end_ns - 9000 + i * draw(scene, 50000), correlation,
			names_nodes ? 500 + i : 0);
	launch = build_graph_launch(scene->builder, thread + 1, end_ns, correlation, 3);
	set_call(&launch->call, 15000, device);
	launch->stream = stream ? 100 + 10 * device + stream : 0;
}

/* A copy or a memset, with a call that may wait for it. */
static void copy(struct scene *scene, unsigned thread, unsigned device, unsigned stream)
{
	const enum trace_kind call = one_in(scene, 3) ? TRACE_SET : TRACE_COPY;
	const uint64_t correlation = ++scene->correlation, bytes = 64 + draw(scene, 1u << 20),
		       begin_ns = pass(scene, thread), length_ns = 400 + bytes / 10,
		       runs_ns = place_on_stream(scene, device, stream, begin_ns + 3000, length_ns);
	const bool waits = one_in(scene, 2);
	struct trace_gpu_copy *gpu;
	struct trace_copy *copied;

	scene->now_ns[thread] = waits ? runs_ns + length_ns + 2000 : begin_ns + 3000;
	copied = build_copy(
		scene->builder, thread + 1, scene->now_ns[thread], call, correlation, bytes);
	set_call(&copied->call, scene->now_ns[thread] - begin_ns, device);
	copied->stream = stream ? 100 + 10 * device + stream : 0;
	if (one_in(scene, 40))
		return;
	gpu = build_gpu_copy(scene->builder, GPU, 0,
		call == TRACE_SET ? TRACE_GPU_SET : TRACE_GPU_COPY, correlation, bytes, runs_ns,
		runs_ns + length_ns);
	set_where(&gpu->gpu, device, stream);
}

static void wait_for(struct scene *scene, unsigned thread, unsigned device, unsigned stream)
{
	static const struct {
		const char *name;
		enum trace_sync_type type;
	} waits[] = { { "cudaStreamWaitEvent", TRACE_SYNC_STREAM_WAIT },
		{ "cudaEventRecord", TRACE_EVENT_RECORD },
		{ "cudaStreamSynchronize", TRACE_SYNC_STREAM },
		{ "cudaDeviceSynchronize", TRACE_SYNC_CONTEXT } };
	const unsigned which = (unsigned)draw(scene, 4);
	const uint64_t begin_ns = pass(scene, thread),
		       until_ns = which < 2 ? 0 : scene->free_ns[device][stream];
	struct trace_sync *sync;

	scene->now_ns[thread] = (until_ns > begin_ns ? until_ns : begin_ns) + 1500;
	sync = build_record(
		scene->builder, thread + 1, TRACE_SYNC, sizeof *sync, scene->now_ns[thread]);
	set_call(&sync->call, scene->now_ns[thread] - begin_ns, device);
	sync->type = waits[which].type;
	sync->stream = stream ? 100 + 10 * device + stream : 0;
	sync->event = which < 2 ? 77 : 0;
	sync->call.api = build_name(scene->builder, waits[which].name);
	if (which == 0 && one_in(scene, 2)) /* the event comes late */
		scene->free_ns[device][stream] = begin_ns + draw(scene, 2000000);
}

static void allocate(struct scene *scene, unsigned thread, unsigned device)
{
	const uint64_t begin_ns = pass(scene, thread);
	struct trace_memory *memory;

	scene->now_ns[thread] = begin_ns + 2000 + draw(scene, 300000);
	memory = build_memory(scene->builder, thread + 1, scene->now_ns[thread], TRACE_ALLOC,
		0x10000 * ++scene->correlation, 64, TRACE_MEMORY_DEVICE, device);
	memory->call.duration = scene->now_ns[thread] - begin_ns;
	memory->call.api = build_name(scene->builder, "cudaMalloc");
}

static void hand_over(struct scene *scene, unsigned thread)
{
	const uint64_t now_ns = pass(scene, thread);
	struct trace_away *away;

	if (thread)
		return;
	away = build_record(scene->builder, thread + 1, TRACE_AWAY, sizeof *away, now_ns);
	away->edge = scene->is_away ? TRACE_AWAY_ENDS : TRACE_AWAY_BEGINS;
	away->realtime_ns = BUILDER_START_UNIX_NS + now_ns;
	scene->is_away = !scene->is_away;
}

static void do_something(struct scene *scene, unsigned thread, bool hands_over)
{
	const unsigned device = (unsigned)draw(scene, scene->devices),
		       stream = (unsigned)draw(scene, scene->streams);
	const uint64_t which = draw(scene, 20);

	if (which < 10)
		launch_kernel(scene, thread, device, stream);
	else if (which < 12)
		launch_graph(scene, thread, device, stream);
	else if (which < 15)
		copy(scene, thread, device, stream);
	else if (which < 18)
		wait_for(scene, thread, device, stream);
	else if (which < 19 || !hands_over)
		allocate(scene, thread, device);
	else
		hand_over(scene, thread);
}

/* One step: nested ranges with calls in them. A thread besides the first has other names. */
static void do_step(struct scene *scene, unsigned thread, unsigned step, bool hands_over)
{
	static const char *const inner[] = { "load", "forward", "backward" };
	char name[32];

	snprintf(name, sizeof name, thread ? "worker %u" : "step %u", step);
	build_push(scene->builder, thread + 1, pass(scene, thread), name);
	for (unsigned i = 0; i < 3; i++) {
		build_push(scene->builder, thread + 1, pass(scene, thread), inner[i]);
		for (uint64_t left = draw(scene, 6); left; left--)
			do_something(scene, thread, hands_over);
		build_pop(scene->builder, thread + 1, pass(scene, thread));
	}
	build_pop(scene->builder, thread + 1, pass(scene, thread));
	if (one_in(scene, 3))
		do_something(scene, thread, hands_over);
}

static void write_scene(const char *path, uint64_t seed)
{
	struct scene scene = { .builder = builder_new(),
		.state = seed * 0x9e3779b97f4a7c15u + 0x1234567u,
		.last_ns = 1 };
	const bool hands_over = one_in(&scene, 5);
	unsigned steps;

	scene.threads = 1 + (unsigned)draw(&scene, THREADS);
	scene.devices = 1 + (unsigned)draw(&scene, DEVICES);
	scene.streams = 1 + (unsigned)draw(&scene, STREAMS);
	steps = (unsigned)draw(&scene, STEPS_MAX + 1);
	if (hands_over)
		build_meta(scene.builder, "cupti.yielded", "1");
	for (unsigned device = 0; device < scene.devices; device++)
		build_device(scene.builder, device, "a GPU");
	for (unsigned step = 0; step < steps; step++)
		for (unsigned thread = 0; thread < scene.threads; thread++)
			do_step(&scene, thread, step, hands_over);
	for (unsigned thread = 0; thread < scene.threads; thread++)
		if (scene.now_ns[thread] > scene.last_ns)
			scene.last_ns = scene.now_ns[thread];
	build_push(scene.builder, 1, scene.last_ns + 1000, "end");
	build_pop(scene.builder, 1, scene.last_ns + 2000);
	builder_write(scene.builder, path);
	builder_free(scene.builder);
}

int main(int argc, char **argv)
{
	char path[4096];

	if (argc != 4)
		return 2;
	for (unsigned i = 0; i < (unsigned)atoi(argv[2]); i++) {
		snprintf(path, sizeof path, "%s/%03u.bin", argv[1], i);
		write_scene(path, strtoul(argv[3], NULL, 10) * 1000 + i);
	}
	return 0;
}
