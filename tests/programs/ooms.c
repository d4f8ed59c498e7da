/*
 * ooms WAY: runs out of device memory in a known way, in known places, and is killed at once by
 * SIGKILL. WAY: large (one request larger than the GPU), leak (20 MB more after each step), others
 * (the test lets another process hold most of the GPU), threads (as large, while three threads are
 * in ranges of their own), capture (as large, while a stream is captured), retry (frees what it
 * keeps and asks again, with success; is not killed).
 */
#include <nvtx3/nvToolsExt.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cuda_runtime_api.h>

#define MB ((size_t)1 << 20)

static pthread_barrier_t inside, over;

static void *take(size_t bytes)
{
	void *memory = NULL;

	return cudaMalloc(&memory, bytes) == cudaSuccess ? memory : NULL;
}

static void leak(void)
{
	for (int step = 0;; step++) {
		char name[32];
		void *activations, *kept;

		snprintf(name, sizeof name, "step: %d", step);
		nvtxRangePushA(name);
		nvtxRangePushA("forward");
		activations = take(60 * MB);
		nvtxRangePop();
		nvtxRangePushA("history");
		kept = activations ? take(20 * MB) : NULL;
		if (!kept)
			return;
		nvtxRangePop();
		cudaFree(activations);
		nvtxRangePop();
	}
}

static void large(void)
{
	nvtxRangePushA("load");
	take(100 * MB);
	nvtxRangePushA("table");
	take(4096 * MB);
}

static void others(void)
{
	nvtxRangePushA("load");
	take(100 * MB);
	take(1024 * MB);
}

static void capture(void)
{
	cudaGraph_t graph;
	cudaStream_t stream;

	if (cudaStreamCreate(&stream) ||
		cudaStreamBeginCapture(stream, cudaStreamCaptureModeRelaxed))
		return;
	large();
	if (cudaStreamEndCapture(stream, &graph))
		abort();
}

static void retry(void)
{
	void *cached[4];

	nvtxRangePushA("load");
	for (int i = 0; i < 4; i++)
		cached[i] = take(100 * MB);
	nvtxRangePushA("batch");
	if (take(300 * MB) || cudaGetLastError() != cudaErrorMemoryAllocation)
		abort();
	for (int i = 0; i < 4; i++)
		cudaFree(cached[i]);
	take(300 * MB);
	nvtxRangePop();
	nvtxRangePop();
}

static void *work(void *name)
{
	nvtxRangePushA(name);
	nvtxRangePushA("inner");
	pthread_barrier_wait(&inside);
	pthread_barrier_wait(&over);
	return NULL;
}

static void on_threads(void)
{
	static char names[][8] = { "load 1", "load 2", "load 3" };
	pthread_t thread;

	pthread_barrier_init(&inside, NULL, 4);
	pthread_barrier_init(&over, NULL, 4);
	for (int i = 0; i < 3; i++)
		pthread_create(&thread, NULL, work, names[i]);
	pthread_barrier_wait(&inside);
	large();
}

int main(int argc, char **argv)
{
	static const struct {
		const char *name;
		void (*run)(void);
	} ways[] = { { "large", large }, { "leak", leak }, { "others", others },
		{ "threads", on_threads }, { "capture", capture }, { "retry", retry } };

	for (size_t i = 0; argc == 2 && i < sizeof ways / sizeof ways[0]; i++) {
		if (strcmp(argv[1], ways[i].name))
			continue;
		nvtxRangePushA("train");
		ways[i].run();
		if (ways[i].run != retry)
			raise(SIGKILL);
		nvtxRangePop();
		return 0;
	}
	return 2;
}
