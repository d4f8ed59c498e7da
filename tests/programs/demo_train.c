/*
 * demo_train [STEPS]: a program shaped like the training of a small transformer, for trying pperf
 * on.
 *
 * NVTX ranges name steps, layers and operators. Batches arrive on a stream of their own, the loss
 * leaves on another, the optimizer is a CUDA graph. A step frees what it allocates, all but one: in
 * the last step but one the sequences are twice as long, the attention's workspaces of two windows
 * no longer fit, and larger ones are allocated beside them while the old ones stay in a cache that
 * nobody empties. Which call that was is what `pperf-report critical -m reserved` answers.
 *
 * The last line says what it did, so that tests can compare (graph_*: what the graph's launches
 * did). Plain C, linked with the shared CUDA runtime (the simulated one: see kernels.h), or CUDA
 * C++ by nvcc -x cu -cudart shared.
 */
#include <nvtx3/nvToolsExt.h>
#include <stdio.h>
#include <stdlib.h>

#include "kernels.h"

#define LAYERS 4
#define WINDOWS 2
#define CACHED 16
#define MIB ((size_t)1 << 20)
#define BATCH_BYTES (4 * MIB)
#define WEIGHT_BYTES (96 * MIB) /* a layer: weights, gradients, two moments */
#define CHECKPOINT_BYTES (8 * MIB)
#define ACTIVATION_BYTES (16 * MIB) /* an operator's output */
#define WORKSPACE_BYTES (48 * MIB)  /* a window of the usual length */
#define LONG_BYTES (384 * MIB)      /* a window of twice the length */

#define CHECK(call) check((call), #call, __LINE__)

KERNEL(gemm)
KERNEL(gelu)
KERNEL(layer_norm)
KERNEL(softmax)
KERNEL(gemm_backward)
KERNEL(gelu_backward)
KERNEL(softmax_backward)
KERNEL(cross_entropy)
KERNEL(adam)

static struct {
	unsigned long launches, graph_launches, graph_kernels, graph_sets, graph_set_bytes;
	unsigned long h2d, d2h, d2d, sets;
	unsigned long h2d_bytes, d2h_bytes, d2d_bytes, set_bytes;
	unsigned long allocations, alloc_bytes, frees, free_bytes;
} did;

static cudaStream_t compute, loading, reporting;
static cudaEvent_t loaded;
static float *host_batch, *host_loss;
static float *batch, *loss;
static float *weights[LAYERS][4];
static float *activations[LAYERS][3];
static cudaGraphExec_t optimizer;

/* Workspaces that attention keeps for the next step. */
static struct {
	float *memory;
	size_t bytes;
	int in_use;
} cache[CACHED];

static void check(cudaError_t error, const char *call, int line)
{
	if (error == cudaSuccess)
		return;
	fprintf(stderr, "demo_train: line %d: %s: %s\n", line, call, cudaGetErrorString(error));
	exit(1);
}

static void push(const char *format, int number)
{
	char name[64];

	snprintf(name, sizeof(name), format, number);
	nvtxRangePushA(name);
}

static void pop(void)
{
	nvtxRangePop();
}

static float *allocate(size_t bytes)
{
	float *memory;

	CHECK(cudaMalloc((void **)&memory, bytes));
	did.allocations++;
	did.alloc_bytes += bytes;
	return memory;
}

static void release(float *memory, size_t bytes)
{
	CHECK(cudaFree(memory));
	did.frees++;
	did.free_bytes += bytes;
}

static void launched(cudaError_t error)
{
	CHECK(error);
	did.launches++;
}

#define RUN(kernel, blocks, shared, data, bytes) \
	launched(LAUNCH(kernel, (blocks), 256, (shared), compute, (data), (bytes) / sizeof(float)))

static void linear(float *output)
{
	nvtxRangePushA("linear");
	RUN(gemm, 16896, 16384, output, ACTIVATION_BYTES);
	pop();
}

static void activation(float *output)
{
	nvtxRangePushA("gelu");
	RUN(gelu, 4224, 0, output, ACTIVATION_BYTES);
	pop();
}

static void norm(float *output)
{
	nvtxRangePushA("norm");
	RUN(layer_norm, 4224, 1024, output, ACTIVATION_BYTES);
	pop();
}

/* The first workspace that is free and large enough; else a new one, which stays. */
static float *workspace(size_t bytes)
{
	int i;

	for (i = 0; i < CACHED && cache[i].memory; i++) {
		if (cache[i].in_use || cache[i].bytes < bytes)
			continue;
		cache[i].in_use = 1;
		return cache[i].memory;
	}
	if (i == CACHED) {
		fprintf(stderr, "demo_train: the cache of workspaces is full\n");
		exit(1);
	}
	cache[i].memory = allocate(bytes);
	cache[i].bytes = bytes;
	cache[i].in_use = 1;
	return cache[i].memory;
}

static void workspaces_done(void)
{
	for (int i = 0; i < CACHED; i++)
		cache[i].in_use = 0;
}

static void attention(int window_count, size_t window_bytes)
{
	nvtxRangePushA("attention");
	for (int i = 0; i < window_count; i++) {
		float *scores;

		push("window: %d", i);
		nvtxRangePushA("scores");
		scores = workspace(window_bytes);
		RUN(gemm, 16896, 16384, scores, window_bytes);
		RUN(softmax, 4224, 2048, scores, window_bytes);
		pop();
		pop();
	}
	workspaces_done();
	pop();
}

static void forward(size_t window_bytes)
{
	nvtxRangePushA("forward");
	CHECK(cudaStreamWaitEvent(compute, loaded, 0));
	for (int layer = 0; layer < LAYERS; layer++) {
		push("layers.%d", layer);
		norm(activations[layer][0]);
		/* Only the third layer looks at the whole sequence. */
		attention(WINDOWS, layer == 2 ? window_bytes : WORKSPACE_BYTES);
		linear(activations[layer][1]);
		activation(activations[layer][2]);
		pop();
	}
	nvtxRangePushA("loss");
	CHECK(cudaMemsetAsync(loss, 0, sizeof(float), compute));
	did.sets++;
	did.set_bytes += sizeof(float);
	RUN(cross_entropy, 132, 0, loss, sizeof(float));
	pop();
	pop();
}

static void backward(void)
{
	nvtxRangePushA("backward");
	for (int layer = LAYERS - 1; layer >= 0; layer--) {
		float *gradient;

		push("layers.%d", layer);
		gradient = allocate(ACTIVATION_BYTES);
		RUN(gelu_backward, 4224, 0, gradient, ACTIVATION_BYTES);
		RUN(gemm_backward, 16896, 16384, weights[layer][1], WEIGHT_BYTES);
		RUN(softmax_backward, 4224, 2048, activations[layer][1], ACTIVATION_BYTES);
		release(gradient, ACTIVATION_BYTES);
		pop();
	}
	pop();
}

/* One graph for all layers: Adam, then gradients to zero. */
static void capture_optimizer(void)
{
	cudaGraph_t graph;

	nvtxRangePushA("capture");
	CHECK(cudaStreamBeginCapture(compute, cudaStreamCaptureModeThreadLocal));
	for (int layer = 0; layer < LAYERS; layer++) {
		CHECK(LAUNCH(adam, 8448, 256, 0, compute, weights[layer][0],
			WEIGHT_BYTES / sizeof(float)));
		CHECK(cudaMemsetAsync(weights[layer][1], 0, WEIGHT_BYTES, compute));
	}
	CHECK(cudaStreamEndCapture(compute, &graph));
	CHECK(cudaGraphInstantiateWithFlags(&optimizer, graph, 0));
	CHECK(cudaGraphDestroy(graph));
	pop();
}

static void optimize(void)
{
	nvtxRangePushA("optimizer");
	if (!optimizer)
		capture_optimizer();
	CHECK(cudaGraphLaunch(optimizer, compute));
	did.graph_launches++;
	did.graph_kernels += LAYERS;
	did.graph_sets += LAYERS;
	did.graph_set_bytes += LAYERS * WEIGHT_BYTES;
	pop();
}

static void load_batch(void)
{
	nvtxRangePushA("load batch");
	CHECK(cudaMemcpyAsync(batch, host_batch, BATCH_BYTES, cudaMemcpyHostToDevice, loading));
	did.h2d++;
	did.h2d_bytes += BATCH_BYTES;
	CHECK(cudaEventRecord(loaded, loading));
	pop();
}

static void report_loss(void)
{
	nvtxRangePushA("report loss");
	CHECK(cudaStreamSynchronize(compute));
	CHECK(cudaMemcpyAsync(host_loss, loss, sizeof(float), cudaMemcpyDeviceToHost, reporting));
	did.d2h++;
	did.d2h_bytes += sizeof(float);
	CHECK(cudaStreamSynchronize(reporting));
	pop();
}

/* Every fourth step keeps a copy of the first weights. */
static void checkpoint(void)
{
	nvtxRangePushA("checkpoint");
	CHECK(cudaMemcpyAsync(
		weights[0][3], weights[0][0], CHECKPOINT_BYTES, cudaMemcpyDeviceToDevice, compute));
	did.d2d++;
	did.d2d_bytes += CHECKPOINT_BYTES;
	pop();
}

static void step(int number, size_t window_bytes)
{
	push("step: %d", number);
	load_batch();
	forward(window_bytes);
	backward();
	optimize();
	if (number % 4 == 3)
		checkpoint();
	report_loss();
	pop();
}

static void prepare(void)
{
	CHECK(cudaStreamCreate(&compute));
	CHECK(cudaStreamCreateWithFlags(&loading, cudaStreamNonBlocking));
	CHECK(cudaStreamCreateWithFlags(&reporting, cudaStreamNonBlocking));
	CHECK(cudaEventCreateWithFlags(&loaded, cudaEventDisableTiming));
	CHECK(cudaMallocHost((void **)&host_batch, BATCH_BYTES));
	CHECK(cudaMallocHost((void **)&host_loss, sizeof(float)));
	batch = allocate(BATCH_BYTES);
	loss = allocate(sizeof(float));
	for (int layer = 0; layer < LAYERS; layer++) {
		for (int i = 0; i < 4; i++)
			weights[layer][i] = allocate(WEIGHT_BYTES);
		for (int i = 0; i < 3; i++)
			activations[layer][i] = allocate(ACTIVATION_BYTES);
	}
	for (int i = 0; i < WINDOWS; i++)
		workspace(WORKSPACE_BYTES);
	workspaces_done();
}

/* Only the weights: a program's end does not wait for tidiness. */
static void tidy(void)
{
	for (int layer = 0; layer < LAYERS; layer++)
		for (int i = 0; i < 4; i++)
			release(weights[layer][i], WEIGHT_BYTES);
	CHECK(cudaGraphExecDestroy(optimizer));
	CHECK(cudaDeviceSynchronize());
}

static void say(void)
{
	printf("demo_train: launches=%lu graph_launches=%lu graph_kernels=%lu graph_sets=%lu "
	       "graph_set_bytes=%lu"
	       " h2d=%lu h2d_bytes=%lu d2h=%lu d2h_bytes=%lu d2d=%lu d2d_bytes=%lu sets=%lu "
	       "set_bytes=%lu"
	       " allocs=%lu alloc_bytes=%lu frees=%lu free_bytes=%lu\n",
		did.launches, did.graph_launches, did.graph_kernels, did.graph_sets,
		did.graph_set_bytes, did.h2d, did.h2d_bytes, did.d2h, did.d2h_bytes, did.d2d,
		did.d2d_bytes, did.sets, did.set_bytes, did.allocations, did.alloc_bytes, did.frees,
		did.free_bytes);
}

int main(int argc, char **argv)
{
	int steps = argc > 1 ? atoi(argv[1]) : 8;

	if (steps < 2) {
		fprintf(stderr, "usage: demo_train [STEPS]  (at least 2)\n");
		return 64;
	}
	prepare();
	nvtxRangePushA("training");
	for (int i = 0; i < steps; i++)
		step(i, i == steps - 2 ? LONG_BYTES : WORKSPACE_BYTES);
	pop();
	tidy();
	say();
	return 0;
}
