/*
 * known_work THREADS STREAMS ITERATIONS: does work of every kind in known numbers, and says in JSON
 * how much of it was done in which path of NVTX ranges. The paths are the same in all threads, and
 * no name has a number in it, so a report has one row a path; each path's numbers are its own,
 * without those below it.
 *
 * What a graph holds is counted apart (graph_*): its launch is one call, its work is the device's.
 * Linked with the shared CUDA runtime (the simulated one: see kernels.h), or by nvcc -x cu -cudart
 * shared.
 */
#include <nvtx3/nvToolsExt.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels.h"

#define STREAMS_MAX 16
#define THREADS_MAX 64
#define BYTES ((size_t)1 << 20)
#define DEPTH_MAX 4

#define CHECK(call) check((call), #call, __LINE__)

KERNEL(forward_kernel)
KERNEL(layer_kernel)
KERNEL(backward_kernel)
KERNEL(graph_kernel)

enum count {
	LAUNCHES,
	GRAPH_LAUNCHES,
	H2D,
	H2D_BYTES,
	D2H,
	D2H_BYTES,
	D2D,
	D2D_BYTES,
	SETS,
	SET_BYTES,
	ALLOCATIONS,
	ALLOCATION_BYTES,
	FREES,
	FREE_BYTES,
	GRAPH_KERNELS,
	GRAPH_H2D,
	GRAPH_H2D_BYTES,
	GRAPH_SETS,
	GRAPH_SET_BYTES,
	COUNTS
};

static const char *const count_names[COUNTS] = {
	"launches",
	"graph_launches",
	"h2d",
	"h2d_bytes",
	"d2h",
	"d2h_bytes",
	"d2d",
	"d2d_bytes",
	"sets",
	"set_bytes",
	"allocs",
	"alloc_bytes",
	"frees",
	"free_bytes",
	"graph_kernels",
	"graph_h2d",
	"graph_h2d_bytes",
	"graph_sets",
	"graph_set_bytes",
};

enum path {
	WORKER,
	SETUP,
	CAPTURE,
	LOAD,
	FORWARD,
	LAYER,
	BACKWARD,
	ZERO,
	REPLAY,
	STORE,
	MOVE,
	SCRATCH,
	PATHS
};

static const char *const path_names[PATHS][DEPTH_MAX] = {
	{ "worker" },
	{ "worker", "setup" },
	{ "worker", "setup", "capture" },
	{ "worker", "step", "load" },
	{ "worker", "step", "forward" },
	{ "worker", "step", "forward", "layer" },
	{ "worker", "step", "backward" },
	{ "worker", "step", "backward", "zero" },
	{ "worker", "step", "replay" },
	{ "worker", "step", "store" },
	{ "worker", "step", "store", "move" },
	{ "worker", "step", "scratch" },
};

/* One thread's work on one stream. */
struct lane {
	cudaStream_t stream;
	cudaGraphExec_t graph;
	float *device, *other, *host;
};

struct worker {
	pthread_t thread;
	struct lane lanes[STREAMS_MAX];
	unsigned long did[PATHS][COUNTS];
};

static struct worker workers[THREADS_MAX];
static int thread_count, stream_count, iterations;
static unsigned long total[PATHS][COUNTS];

static void check(cudaError_t error, const char *call, int line)
{
	if (error == cudaSuccess)
		return;
	fprintf(stderr, "known_work: line %d: %s: %s\n", line, call, cudaGetErrorString(error));
	exit(1);
}

static void did(struct worker *w, enum path path, enum count what, unsigned long n)
{
	w->did[path][what] += n;
}

static float *allocate(struct worker *w, enum path path, size_t bytes)
{
	float *memory;

	CHECK(cudaMalloc((void **)&memory, bytes));
	did(w, path, ALLOCATIONS, 1);
	did(w, path, ALLOCATION_BYTES, bytes);
	return memory;
}

static void release(struct worker *w, enum path path, float *memory, size_t bytes)
{
	CHECK(cudaFree(memory));
	did(w, path, FREES, 1);
	did(w, path, FREE_BYTES, bytes);
}

#define RUN(w, path, kernel, lane, blocks)                                                     \
	do {                                                                                   \
		CHECK(LAUNCH(                                                                  \
			kernel, (blocks), 128, 0, (lane)->stream, (lane)->device, BYTES / 8)); \
		did((w), (path), LAUNCHES, 1);                                                 \
	} while (0)

/* The graph: a copy in, two kernels, a set. Capturing calls launch functions, but launches nothing.
 */
static void capture(struct lane *lane)
{
	cudaGraph_t graph;

	nvtxRangePushA("capture");
	CHECK(cudaStreamBeginCapture(lane->stream, cudaStreamCaptureModeThreadLocal));
	CHECK(cudaMemcpyAsync(
		lane->device, lane->host, BYTES / 4, cudaMemcpyHostToDevice, lane->stream));
	CHECK(LAUNCH(graph_kernel, 64, 128, 0, lane->stream, lane->device, BYTES / 8));
	CHECK(LAUNCH(graph_kernel, 32, 128, 0, lane->stream, lane->device, BYTES / 8));
	CHECK(cudaMemsetAsync(lane->other, 0, BYTES / 2, lane->stream));
	CHECK(cudaStreamEndCapture(lane->stream, &graph));
	CHECK(cudaGraphInstantiateWithFlags(&lane->graph, graph, 0));
	CHECK(cudaGraphDestroy(graph));
	nvtxRangePop();
}

static void set_up(struct worker *w)
{
	nvtxRangePushA("setup");
	for (int i = 0; i < stream_count; i++) {
		struct lane *lane = &w->lanes[i];

		CHECK(cudaStreamCreateWithFlags(&lane->stream, cudaStreamNonBlocking));
		lane->device = allocate(w, SETUP, BYTES);
		lane->other = allocate(w, SETUP, BYTES);
		CHECK(cudaMallocHost((void **)&lane->host, BYTES));
		memset(lane->host, 0, BYTES);
		capture(lane);
	}
	nvtxRangePop();
}

static void load(struct worker *w, struct lane *lane)
{
	nvtxRangePushA("load");
	CHECK(cudaMemcpyAsync(
		lane->device, lane->host, BYTES, cudaMemcpyHostToDevice, lane->stream));
	did(w, LOAD, H2D, 1);
	did(w, LOAD, H2D_BYTES, BYTES);
	nvtxRangePop();
}

static void forward(struct worker *w, struct lane *lane)
{
	nvtxRangePushA("forward");
	RUN(w, FORWARD, forward_kernel, lane, 256);
	for (int i = 0; i < 3; i++) {
		nvtxRangePushA("layer");
		RUN(w, LAYER, layer_kernel, lane, 132);
		RUN(w, LAYER, layer_kernel, lane, 264);
		nvtxRangePop();
	}
	nvtxRangePop();
}

static void backward(struct worker *w, struct lane *lane)
{
	nvtxRangePushA("backward");
	for (int i = 0; i < 4; i++)
		RUN(w, BACKWARD, backward_kernel, lane, 132);
	nvtxRangePushA("zero");
	CHECK(cudaMemsetAsync(lane->other, 0, BYTES, lane->stream));
	did(w, ZERO, SETS, 1);
	did(w, ZERO, SET_BYTES, BYTES);
	nvtxRangePop();
	nvtxRangePop();
}

static void replay(struct worker *w, struct lane *lane)
{
	nvtxRangePushA("replay");
	CHECK(cudaGraphLaunch(lane->graph, lane->stream));
	did(w, REPLAY, GRAPH_LAUNCHES, 1);
	did(w, REPLAY, GRAPH_KERNELS, 2);
	did(w, REPLAY, GRAPH_H2D, 1);
	did(w, REPLAY, GRAPH_H2D_BYTES, BYTES / 4);
	did(w, REPLAY, GRAPH_SETS, 1);
	did(w, REPLAY, GRAPH_SET_BYTES, BYTES / 2);
	nvtxRangePop();
}

static void store(struct worker *w, struct lane *lane)
{
	nvtxRangePushA("store");
	nvtxRangePushA("move");
	CHECK(cudaMemcpyAsync(
		lane->other, lane->device, BYTES / 2, cudaMemcpyDeviceToDevice, lane->stream));
	did(w, MOVE, D2D, 1);
	did(w, MOVE, D2D_BYTES, BYTES / 2);
	nvtxRangePop();
	CHECK(cudaMemcpyAsync(
		lane->host, lane->other, BYTES / 2, cudaMemcpyDeviceToHost, lane->stream));
	did(w, STORE, D2H, 1);
	did(w, STORE, D2H_BYTES, BYTES / 2);
	nvtxRangePop();
}

static void scratch(struct worker *w)
{
	float *memory;

	nvtxRangePushA("scratch");
	memory = allocate(w, SCRATCH, 3 * BYTES);
	release(w, SCRATCH, memory, 3 * BYTES);
	nvtxRangePop();
}

static void step(struct worker *w)
{
	nvtxRangePushA("step");
	for (int i = 0; i < stream_count; i++) {
		load(w, &w->lanes[i]);
		forward(w, &w->lanes[i]);
		backward(w, &w->lanes[i]);
		replay(w, &w->lanes[i]);
		store(w, &w->lanes[i]);
	}
	scratch(w);
	nvtxRangePop();
}

static void tidy(struct worker *w)
{
	for (int i = 0; i < stream_count; i++) {
		struct lane *lane = &w->lanes[i];

		CHECK(cudaStreamSynchronize(lane->stream));
		CHECK(cudaGraphExecDestroy(lane->graph));
		release(w, WORKER, lane->device, BYTES);
		release(w, WORKER, lane->other, BYTES);
		CHECK(cudaFreeHost(lane->host));
		CHECK(cudaStreamDestroy(lane->stream));
	}
}

static void *work(void *data)
{
	struct worker *w = (struct worker *)data;

	nvtxRangePushA("worker");
	set_up(w);
	for (int i = 0; i < iterations; i++)
		step(w);
	tidy(w);
	nvtxRangePop();
	return NULL;
}

static void say_counts(const unsigned long *counts)
{
	for (int i = 0; i < COUNTS; i++)
		printf(", \"%s\": %lu", count_names[i], counts[i]);
	printf("}");
}

static void say_path(enum path path)
{
	printf("%s\n  {\"path\": [", path ? "," : "");
	for (int i = 0; i < DEPTH_MAX && path_names[path][i]; i++)
		printf("%s\"%s\"", i ? ", " : "", path_names[path][i]);
	printf("]");
	say_counts(total[path]);
}

static void say(void)
{
	unsigned long all[COUNTS] = { 0 };

	printf("{\"threads\": %d, \"streams\": %d, \"iterations\": %d, \"paths\": [", thread_count,
		stream_count, iterations);
	for (int path = 0; path < PATHS; path++) {
		for (int t = 0; t < thread_count; t++)
			for (int i = 0; i < COUNTS; i++)
				total[path][i] += workers[t].did[path][i];
		for (int i = 0; i < COUNTS; i++)
			all[i] += total[path][i];
		say_path((enum path)path);
	}
	printf("],\n \"total\": {\"paths\": %d", PATHS);
	say_counts(all);
	printf("}\n");
}

static int number(const char *text, int most)
{
	int n = atoi(text);

	return n >= 1 && n <= most ? n : 0;
}

int main(int argc, char **argv)
{
	if (argc == 4) {
		thread_count = number(argv[1], THREADS_MAX);
		stream_count = number(argv[2], STREAMS_MAX);
		iterations = number(argv[3], 1 << 30);
	}
	if (!thread_count || !stream_count || !iterations) {
		fprintf(stderr,
			"usage: known_work THREADS STREAMS ITERATIONS  (1 to %d, 1 to %d, 1 or "
			"more)\n",
			THREADS_MAX, STREAMS_MAX);
		return 64;
	}
	for (int i = 0; i < thread_count; i++)
		if (pthread_create(&workers[i].thread, NULL, work, &workers[i]) != 0)
			return 1;
	for (int i = 0; i < thread_count; i++)
		pthread_join(workers[i].thread, NULL);
	CHECK(cudaDeviceSynchronize());
	say();
	return 0;
}
