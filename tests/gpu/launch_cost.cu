// SPDX-License-Identifier: MIT
// launch_cost: what a launch, a memset and a graph's launch cost the thread that makes them, in
// nanoseconds: of many short bursts (the queue never fills, so nothing waits for the GPU) the
// median and the least.
//
// launch_cost grows SECONDS: launches kernels and a graph with a memset for so long, and prints the
// process's memory and processor time after each fifth of it.
#include <algorithm>
#include <cstring>
#include <ctime>
#include <thread>
#include <unistd.h>
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
		times.push_back(std::chrono::duration<double, std::nano>(
					std::chrono::steady_clock::now() - start)
					.count() /
				calls);
		check(cudaDeviceSynchronize());
	}
	std::sort(times.begin(), times.end());
	printf("\"%s\": {\"median_ns\": %.1f, \"least_ns\": %.1f}%s", what, times[bursts / 2],
		times[0], end);
}

static cudaGraphExec_t make_graph(cudaStream_t stream, void *set)
{
	cudaGraphExec_t exec;
	cudaGraph_t graph;

	check(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
	for (int i = 0; i < 20; i++)
		nothing<<<1, 32, 0, stream>>>();
	if (set)
		check(cudaMemsetAsync(set, 0, 64, stream));
	check(cudaStreamEndCapture(stream, &graph));
	check(cudaGraphInstantiateWithFlags(&exec, graph, 0));
	return exec;
}

static void print_usage(long launches)
{
	struct timespec cpu;
	long pages = 0, resident = 0;
	FILE *statm = fopen("/proc/self/statm", "r");

	if (statm && fscanf(statm, "%ld %ld", &pages, &resident) != 2)
		resident = 0;
	if (statm)
		fclose(statm);
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &cpu);
	printf("{\"launches\": %ld, \"resident_kib\": %ld, \"cpu_ms\": %ld}", launches,
		resident * sysconf(_SC_PAGESIZE) / 1024, cpu.tv_sec * 1000 + cpu.tv_nsec / 1000000);
}

// About 10,000 kernels a second.
static void grows(cudaStream_t stream, void *data, double seconds)
{
	cudaGraphExec_t exec = make_graph(stream, data);
	auto start = std::chrono::steady_clock::now();
	long launches = 0;

	printf("[");
	for (int part = 1; part <= 5; part++) {
		auto end = start + std::chrono::duration<double>(seconds * part / 5);
		while (std::chrono::steady_clock::now() < end) {
			for (int i = 0; i < 50; i++, launches++)
				nothing<<<1, 32, 0, stream>>>();
			for (int i = 0; i < 3; i++, launches++)
				check(cudaGraphLaunch(exec, stream));
			check(cudaStreamSynchronize(stream));
			std::this_thread::sleep_for(std::chrono::milliseconds(10));
		}
		print_usage(launches);
		printf(part < 5 ? ", " : "]\n");
	}
}

int main(int argc, char **argv)
{
	cudaStream_t stream;
	cudaGraphExec_t exec;
	void *data;

	check(cudaStreamCreate(&stream));
	check(cudaMalloc(&data, 4096));
	if (argc > 2 && !strcmp(argv[1], "grows")) {
		grows(stream, data, atof(argv[2]));
		return 0;
	}
	exec = make_graph(stream, NULL);
	printf("{");
	measure("launch", ", ", [&] { nothing<<<1, 32, 0, stream>>>(); });
	measure("memset", ", ", [&] { check(cudaMemsetAsync(data, 0, 64, stream)); });
	measure("graph_launch", "}\n", [&] { check(cudaGraphLaunch(exec, stream)); });
	check(cudaGetLastError());
	return 0;
}
