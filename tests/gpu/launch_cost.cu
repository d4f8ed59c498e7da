// SPDX-License-Identifier: MIT
// launch_cost: what a launch, a memset and a graph's launch cost the thread that makes them, in nanoseconds: of many short bursts (the queue never
// fills, so nothing waits for the GPU) the median and the least.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cuda_runtime.h>
#include <vector>

static const int bursts = 201, calls = 100;

__global__ void nothing()
{
}

static void check(cudaError_t error)
{
	if (error == cudaSuccess)
		return;
	fprintf(stderr, "launch_cost: %s\n", cudaGetErrorString(error));
	exit(1);
}

template <class Call> static void measure(const char *what, const char *end, Call call)
{
	std::vector<double> times;

	for (int burst = 0; burst < bursts; burst++) {
		auto start = std::chrono::steady_clock::now();
		for (int i = 0; i < calls; i++)
			call();
		times.push_back(std::chrono::duration<double, std::nano>(std::chrono::steady_clock::now() - start).count() / calls);
		check(cudaDeviceSynchronize());
	}
	std::sort(times.begin(), times.end());
	printf("\"%s\": {\"median_ns\": %.1f, \"least_ns\": %.1f}%s", what, times[bursts / 2], times[0], end);
}

int main()
{
	cudaStream_t stream;
	cudaGraph_t graph;
	cudaGraphExec_t exec;
	void *data;

	check(cudaStreamCreate(&stream));
	check(cudaMalloc(&data, 4096));
	check(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
	for (int i = 0; i < 20; i++)
		nothing<<<1, 32, 0, stream>>>();
	check(cudaStreamEndCapture(stream, &graph));
	check(cudaGraphInstantiateWithFlags(&exec, graph, 0));
	printf("{");
	measure("launch", ", ", [&] { nothing<<<1, 32, 0, stream>>>(); });
	measure("memset", ", ", [&] { check(cudaMemsetAsync(data, 0, 64, stream)); });
	measure("graph_launch", "}\n", [&] { check(cudaGraphLaunch(exec, stream)); });
	check(cudaGetLastError());
	return 0;
}
