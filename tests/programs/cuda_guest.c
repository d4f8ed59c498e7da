/* SPDX-License-Identifier: MIT
 * cuda_guest WHAT [COUNT]: a program that uses CUDA in one of the ways that are hard on whoever
 * listens in. It prints what it can know by itself.
 *
 *	asks         asks for devices, makes no context
 *	works        COUNT kernels, waits
 *	hidden       the same and memory, a copy and a memset, by functions that are looked up, so that no symbol of ours is in the way
 *	robs         works, takes CUPTI's buffers by a function that it looks up, works
 *	clocked      works, is CUPTI's second client with a clock of its own for COUNT kernels, works
 *	grows        works, and takes COUNT MiB of memory in as many steps of 50 ms
 *	misfires     launches COUNT kernels with more threads than a block can have, unseen by symbols
 *	queries      asks COUNT times for an event while a kernel runs, and once more afterwards
 *	idles        works, waits a while, is killed
 *	returns      works, waits half a second, works
 *	leaves       works, leaves by _exit
 *	busy         kernels without a pause for COUNT ms; prints the time, is killed
 *	unfinished   COUNT kernels, exits without waiting for them
 *	faults       COUNT kernels, waits, tries one more; prints the errors, exits
 *	finalizes    works, takes CUPTI's buffers as robs does, works, waits for COUNT ms, finalizes CUPTI, waits, is killed
 *	outlasts     works, waits for four and a half seconds, is killed
 *	thread_exits works, and exits from another thread
 *	forks        works, then has children that end in several ways
 *	captures     COUNT kernels and a memset after the first into a graph, launched twice; then one outside of it
 *	devices      on each device one kernel more than on the one before, COUNT on the first, and memory of as many MiB; a
 *	             copy from each to the next
 *	marks        a kernel, then an event, then nothing for COUNT milliseconds
 *	looks_up     what dlerror returns after CUDA calls
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

static void grows(int count)
{
	for (int i = 0; i < count; i++) {
		char *leaked = (char *)malloc(1 << 20);

		if (leaked)
			memset(leaked, 1, 1 << 20);
		work(1);
		nap(50);
	}
}

static void misfires(int count)
{
	cudaError_t (*take)(void **, size_t);
	cudaError_t (*launch)(const void *, dim3, dim3, void **, size_t, cudaStream_t);
	unsigned long length = BYTES / 4;
	void *data, *args[] = { &data, &length };
	dim3 grid = { 1, 1, 1 }, block = { 4096, 1, 1 };
	int refused = 0;

	*(void **)&take = look_up("cudaMalloc");
	*(void **)&launch = look_up("cudaLaunchKernel");
	CHECK(take(&data, BYTES));
	for (int i = 0; i < count; i++)
		refused += launch((const void *)&guest_kernel, grid, block, args, 0, NULL) !=
			   cudaSuccess;
	printf("%d refused\n", refused);
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

/* A day behind CLOCK_REALTIME. */
static unsigned long long day_before(void)
{
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	return (unsigned long long)(now.tv_sec - 86400) * 1000000000u +
	       (unsigned long long)now.tv_nsec;
}

#define CONCURRENT_KERNEL 10
#define START_AT 16 /* offset of CUpti_ActivityKernel9.start */

static int (*next_record)(unsigned char *buffer, size_t valid, void **record);
static int kernels_seen, kernels_timed;

/* Counts kernels, and those of them whose start is within a minute of now by day_before(). */
static void count_kernels(
	void *context, unsigned stream, unsigned char *buffer, size_t bytes, size_t valid)
{
	void *record = NULL;

	while (next_record(buffer, valid, &record) == 0) {
		unsigned long long start;

		if (*(unsigned *)record != CONCURRENT_KERNEL)
			continue;
		memcpy(&start, (char *)record + START_AT, sizeof start);
		kernels_seen++;
		kernels_timed += start && day_before() - start < 60000000000u;
	}
	complete_buffer(context, stream, buffer, bytes, valid);
}

/* The symbols are those that a library linked with libcupti would get. */
static void clocked(int count)
{
	char name[32];
	int (*take)(void (*)(unsigned char **, size_t *, size_t *),
		void (*)(void *, unsigned, unsigned char *, size_t, size_t)) = NULL;
	int (*set_clock)(unsigned long long (*)(void)) = NULL;
	int (*enable)(int) = NULL, (*disable)(int) = NULL, (*flush)(unsigned) = NULL;

	work(count);
	nap(400);
	snprintf(name, sizeof name, "libcupti.so.%d", SIM_MAJOR);
	dlopen(name, RTLD_LAZY | RTLD_GLOBAL);
	*(void **)&take = dlsym(RTLD_DEFAULT, "cuptiActivityRegisterCallbacks");
	*(void **)&set_clock = dlsym(RTLD_DEFAULT, "cuptiActivityRegisterTimestampCallback");
	*(void **)&enable = dlsym(RTLD_DEFAULT, "cuptiActivityEnable");
	*(void **)&disable = dlsym(RTLD_DEFAULT, "cuptiActivityDisable");
	*(void **)&flush = dlsym(RTLD_DEFAULT, "cuptiActivityFlushAll");
	*(void **)&next_record = dlsym(RTLD_DEFAULT, "cuptiActivityGetNextRecord");
	take(request_buffer, count_kernels);
	set_clock(day_before);
	enable(CONCURRENT_KERNEL);
	work(count);
	disable(CONCURRENT_KERNEL);
	flush(1);
	printf("%d kernels, %d timed\n", kernels_seen, kernels_timed);
	work(count);
}

static void queries(int count)
{
	cudaEvent_t event;
	float *data;
	int unfinished = 0;

	CHECK(cudaMalloc((void **)&data, BYTES));
	CHECK(cudaEventCreate(&event));
	CHECK(LAUNCH(guest_kernel, 1, 32, 0, 0, data, BYTES / 4));
	CHECK(cudaEventRecord(event, 0));
	for (int i = 0; i < count; i++)
		unfinished += cudaEventQuery(event) == cudaErrorNotReady;
	CHECK(cudaEventSynchronize(event));
	CHECK(cudaEventQuery(event));
	printf("%d unfinished\n", unfinished);
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

static void returns(int count)
{
	works(count);
	nap(500);
	works(count);
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
	for (int i = 0; i < count; i++) {
		CHECK(LAUNCH(guest_kernel, 1, 32, 0, stream, data, BYTES / 4));
		if (i == 0)
			CHECK(cudaMemsetAsync(data, 0, BYTES, stream));
	}
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

/* An event is recorded when all other work has been reported, and nothing follows for a while. */
static void marks(int ms)
{
	cudaEvent_t event;

	CHECK(cudaEventCreate(&event));
	work(1);
	CHECK(cudaDeviceSynchronize());
	nap(400);
	CHECK(cudaEventRecord(event, 0));
	nap(ms);
	printf("marked\n");
}

/* What dlerror returns after CUDA calls. */
static void looks_up(int count)
{
	cudaStream_t stream;
	float *data;

	CHECK(cudaGetDeviceCount(&count));
	printf("count: %s\n", dlerror());
	CHECK(cudaMalloc((void **)&data, BYTES));
	printf("malloc: %s\n", dlerror());
	CHECK(LAUNCH(guest_kernel, 1, 32, 0, 0, data, BYTES / 4));
	printf("launch: %s\n", dlerror());
	CHECK(cudaStreamCreate(&stream));
	CHECK(cudaMemsetAsync(data, 0, BYTES, stream));
	CHECK(cudaStreamSynchronize(stream));
	printf("memset: %s\n", dlerror());
	CHECK(cudaFree(data));
	printf("free: %s\n", dlerror());
}

static const struct {
	const char *name;
	void (*run)(int count);
} ways[] = {
	{ "asks", asks },
	{ "works", works },
	{ "hidden", hidden },
	{ "robs", robs },
	{ "clocked", clocked },
	{ "grows", grows },
	{ "misfires", misfires },
	{ "queries", queries },
	{ "idles", idles },
	{ "returns", returns },
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
	{ "looks_up", looks_up },
	{ "marks", marks },
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
