/* SPDX-License-Identifier: MIT
 * cuda_guest WHAT [COUNT]: a program that uses CUDA in one of the ways that are hard on whoever
 * listens in. It prints what it can know by itself.
 *
 *	asks         asks for devices, makes no context
 *	works        COUNT kernels, waits
 *	hidden       the same and memory, a copy and a memset, by functions that are looked up, so that no symbol of ours is in the way
 *	robs         works, takes CUPTI's buffers by a function that it looks up, works
 *	idles        works, waits a while, is killed
 *	leaves       works, leaves by _exit
 *	busy         kernels without a pause for COUNT ms; prints the time, is killed
 *	unfinished   COUNT kernels, exits without waiting for them
 *	faults       COUNT kernels, waits, tries one more; prints the errors, exits
 *	finalizes    works, takes CUPTI's buffers as robs does, works, waits for COUNT ms, finalizes CUPTI, waits, is killed
 *	outlasts     works, waits for four and a half seconds, is killed
 *	thread_exits works, and exits from another thread
 *	forks        works, then has children that end in several ways
 *	captures     COUNT kernels into a graph, launched twice; then one outside of it
 *	devices      on each device one kernel more than on the one before, COUNT on the first, and memory of as many MiB; a
 *	             copy from each to the next
 *	tasks        how many threads there are: before CUDA, after asking, with a context; and whether those that are not its own take signals
 */
#include "kernels.h"

#include <dirent.h>
#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#ifndef SIM_MAJOR
#define SIM_MAJOR (CUDART_VERSION / 1000) /* nvcc, for a real device */
#endif
#define BYTES 4096u
#define CHECK(call) check((call), #call)

KERNEL(guest_kernel)

static void check(cudaError_t error, const char *call)
{
	if (error == cudaSuccess)
		return;
	fprintf(stderr, "cuda_guest: %s: %d\n", call, (int)error);
	exit(1);
}

static void work(int count)
{
	float *data;

	CHECK(cudaMalloc((void **)&data, BYTES));
	for (int i = 0; i < count; i++)
		CHECK(LAUNCH(guest_kernel, 1, 32, 0, 0, data, BYTES / 4));
	CHECK(cudaDeviceSynchronize());
}

static void nap(long ms)
{
	struct timespec time = { ms / 1000, ms % 1000 * 1000000 };

	nanosleep(&time, NULL);
}

static void asks(int count)
{
	(void)count;
	CHECK(cudaGetDeviceCount(&count));
	printf("devices %d\n", count);
}

static void works(int count)
{
	work(count);
	printf("worked %d\n", count);
}

#define MIB 1048576u

/* On a device: memory that is kept, kernels. */
static float *use_device(int device, int count)
{
	float *data;

	CHECK(cudaSetDevice(device));
	CHECK(cudaMalloc((void **)&data, (size_t)(count + device) * MIB));
	for (int i = 0; i < count + device; i++)
		CHECK(LAUNCH(guest_kernel, 1, 32, 0, 0, data, BYTES / 4));
	return data;
}

static void devices(int count)
{
	float *before = NULL, *data;
	int all = 0;

	CHECK(cudaGetDeviceCount(&all));
	for (int device = 0; device < all; device++) {
		data = use_device(device, count);
		if (before)
			CHECK(cudaMemcpyPeerAsync(data, device, before, device - 1, BYTES, 0));
		before = data;
	}
	for (int device = 0; device < all; device++) {
		CHECK(cudaSetDevice(device));
		CHECK(cudaDeviceSynchronize());
	}
	printf("used %d devices\n", all);
}

static void *look_up(const char *name)
{
	void *library = dlopen(
		SIM_MAJOR == 12 ? "libcudart.so.12" : "libcudart.so.13", RTLD_LAZY | RTLD_NOLOAD);
	void *function = library ? dlsym(library, name) : NULL;

	if (!function)
		exit(2);
	return function;
}

static void hidden(int count)
{
	cudaError_t (*take)(void **, size_t),
		(*launch)(const void *, dim3, dim3, void **, size_t, cudaStream_t), (*give)(void *);
	cudaError_t (*copy)(void *, const void *, size_t, enum cudaMemcpyKind),
		(*set)(void *, int, size_t);
	unsigned long length = BYTES / 4;
	char host[BYTES / 2] = "";
	void *data, *args[] = { &data, &length };
	dim3 grid = { 3, 2, 1 }, block = { 64, 1, 1 };

	*(void **)&take = look_up("cudaMalloc");
	*(void **)&launch = look_up("cudaLaunchKernel");
	*(void **)&give = look_up("cudaFree");
	*(void **)&copy = look_up("cudaMemcpy");
	*(void **)&set = look_up("cudaMemset");
	CHECK(take(&data, BYTES));
	CHECK(set(data, 7, BYTES / 4));
	CHECK(copy(data, host, sizeof(host), cudaMemcpyHostToDevice));
	for (int i = 0; i < count; i++)
		CHECK(launch((const void *)&guest_kernel, grid, block, args, 256, NULL));
	CHECK(cudaDeviceSynchronize());
	CHECK(give(data));
	printf("worked %d in the dark\n", count);
}

static void request_buffer(unsigned char **buffer, size_t *bytes, size_t *records)
{
	*bytes = 1 << 20;
	*buffer = (unsigned char *)malloc(*bytes);
	*records = 0;
}

static void complete_buffer(
	void *context, unsigned stream, unsigned char *buffer, size_t bytes, size_t valid)
{
	(void)context, (void)stream, (void)bytes, (void)valid;
	free(buffer);
}

static void *cupti_function(const char *function)
{
	char name[32];
	void *cupti;

	snprintf(name, sizeof name, "libcupti.so.%d", SIM_MAJOR);
	cupti = dlopen(name, RTLD_LAZY | RTLD_NOLOAD);
	return cupti ? dlsym(cupti, function) : NULL;
}

static void take_buffers(void)
{
	int (*take)(void (*)(unsigned char **, size_t *, size_t *),
		void (*)(void *, unsigned, unsigned char *, size_t, size_t)) = NULL;

	*(void **)&take = cupti_function("cuptiActivityRegisterCallbacks");
	if (take)
		take(request_buffer, complete_buffer);
}

static void robs(int count)
{
	work(count);
	nap(400); /* what there is arrives */
	take_buffers();
	work(count);
	puts("worked");
}

static void finalizes(int milliseconds)
{
	int (*finalize)(void) = NULL;

	work(5);
	nap(400);
	take_buffers();
	work(5);
	nap(milliseconds);
	*(void **)&finalize = cupti_function("cuptiFinalize");
	if (finalize)
		finalize();
	nap(500);
	raise(SIGKILL);
}

static void idles(int count)
{
	work(count);
	puts("worked");
	fflush(stdout);
	nap(400);
	raise(SIGKILL);
}

static void outlasts(int count)
{
	work(count);
	nap(4500);
	raise(SIGKILL);
}

static uint64_t now_ns(clockid_t clock)
{
	struct timespec now;

	clock_gettime(clock, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static float *launch(int count)
{
	float *data;

	CHECK(cudaMalloc((void **)&data, BYTES));
	for (int i = 0; i < count; i++)
		CHECK(LAUNCH(guest_kernel, 1, 32, 0, 0, data, BYTES / 4));
	return data;
}

static void busy(int milliseconds)
{
	uint64_t until = now_ns(CLOCK_MONOTONIC) + (uint64_t)milliseconds * 1000000u;
	float *data = launch(1);

	while (now_ns(CLOCK_MONOTONIC) < until)
		CHECK(LAUNCH(guest_kernel, 1, 32, 0, 0, data, BYTES / 4));
	printf("%llu\n", (unsigned long long)now_ns(CLOCK_REALTIME));
	fflush(stdout);
	raise(SIGKILL);
}

static void unfinished(int count)
{
	launch(count);
	printf("launched %d\n", count);
	exit(7);
}

static void faults(int count)
{
	float *data = launch(count);
	cudaError_t error = cudaDeviceSynchronize();

	printf("%d %d", (int)error, (int)LAUNCH(guest_kernel, 1, 32, 0, 0, data, BYTES / 4));
	printf(" %d\n", (int)cudaFree(data));
	exit(9);
}

static void leaves(int count)
{
	work(count);
	nap(400);
	_exit(3);
}

static void *exit_4(void *unused)
{
	(void)unused;
	exit(4);
}

static void thread_exits(int count)
{
	pthread_t thread;

	work(count);
	pthread_create(&thread, NULL, exit_4, NULL);
	for (;;)
		pause();
}

static void wait_for(const char *how, pid_t child)
{
	int status = 0;

	for (int i = 0; i < 100 && waitpid(child, &status, WNOHANG) == 0; i++)
		nap(50);
	if (kill(child, SIGKILL) == 0) {
		waitpid(child, &status, 0);
		printf("a child that ends by %s hangs\n", how);
	} else {
		printf("a child that ends by %s: %d\n", how, status);
	}
}

static void forks(int count)
{
	pid_t child;

	work(count);
	fflush(stdout);
	child = fork();
	if (child == 0)
		exit(5);
	wait_for("exit", child);
	fflush(stdout);
	child = fork();
	if (child == 0)
		_exit(6);
	wait_for("_exit", child);
	fflush(stdout);
	child = fork();
	if (child == 0) {
		cudaError_t error = cudaFree(NULL);

		exit(error == cudaSuccess ? 1 : 7);
	}
	wait_for("using CUDA", child);
	work(count);
	printf("worked %d twice\n", count);
}

static void captures(int count)
{
	cudaStream_t stream;
	cudaGraph_t graph;
	cudaGraphExec_t exec;
	float *data;

	CHECK(cudaMalloc((void **)&data, BYTES));
	CHECK(cudaStreamCreate(&stream));
	CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
	for (int i = 0; i < count; i++)
		CHECK(LAUNCH(guest_kernel, 1, 32, 0, stream, data, BYTES / 4));
	CHECK(cudaMemsetAsync(data, 0, BYTES, stream));
	CHECK(cudaStreamEndCapture(stream, &graph));
	CHECK(cudaGraphInstantiateWithFlags(&exec, graph, 0));
	CHECK(cudaGraphLaunch(exec, stream));
	CHECK(cudaGraphLaunch(exec, stream));
	CHECK(LAUNCH(guest_kernel, 1, 32, 0, stream, data, BYTES / 4));
	CHECK(cudaStreamSynchronize(stream));
	printf("captured %d\n", count);
}

/* Threads of this process, and of them those that would take a signal; the first is the program's
 * own. */
static void say_tasks(const char *when)
{
	DIR *tasks = opendir("/proc/self/task");
	int all = 0, open = 0;

	for (struct dirent *entry; tasks && (entry = readdir(tasks));) {
		char path[300], line[256];
		unsigned long long blocked = 0;
		FILE *status;

		if (entry->d_name[0] == '.')
			continue;
		snprintf(path, sizeof(path), "/proc/self/task/%s/status", entry->d_name);
		status = fopen(path, "r");
		while (status && fgets(line, sizeof(line), status))
			if (!strncmp(line, "SigBlk:", 7))
				blocked = strtoull(line + 7, NULL, 16);
		if (status)
			fclose(status);
		all++;
		open += atoi(entry->d_name) != getpid() && !(blocked & 1ull << (SIGINT - 1));
	}
	if (tasks)
		closedir(tasks);
	printf("%s: %d threads, %d that take signals\n", when, all, open);
}

static void tasks(int count)
{
	say_tasks("before CUDA");
	CHECK(cudaGetDeviceCount(&count));
	say_tasks("after asking");
	CHECK(cudaFree(NULL));
	nap(50);
	say_tasks("with a context");
}

static const struct {
	const char *name;
	void (*run)(int count);
} ways[] = {
	{ "asks", asks },
	{ "works", works },
	{ "hidden", hidden },
	{ "robs", robs },
	{ "idles", idles },
	{ "leaves", leaves },
	{ "busy", busy },
	{ "unfinished", unfinished },
	{ "faults", faults },
	{ "finalizes", finalizes },
	{ "outlasts", outlasts },
	{ "thread_exits", thread_exits },
	{ "forks", forks },
	{ "captures", captures },
	{ "devices", devices },
	{ "tasks", tasks },
};

int main(int argc, char **argv)
{
	for (size_t i = 0; argc > 1 && i < sizeof(ways) / sizeof(ways[0]); i++)
		if (!strcmp(argv[1], ways[i].name)) {
			ways[i].run(argc > 2 ? atoi(argv[2]) : 1);
			return 0;
		}
	fprintf(stderr, "usage: cuda_guest WHAT [COUNT]\n");
	return 64;
}
