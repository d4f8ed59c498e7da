/* SPDX-License-Identifier: MIT
 * What recording adds to an interposed call, against a runtime and a driver that do next to nothing
 * (tests/symbols), as multiples of the project's floor: an event pair of two time stamps and two
 * stores of 16 bytes, each behind a call through a pointer. All of it in turns in one process; the
 * median of the rounds that had the CPU to themselves.
 */
#include "collector/process/clock.h"
#include "collector/stream/stream.h"
#include "collector/file/trace_file.h"
#include "preload/cuda/traced_call.h"
#include "preload/cuda/real.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <libgen.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

enum { ROUNDS = 61, TRIES = 40 * ROUNDS, CALLS = 4000, RING = 4096, DEEP = 12 };

struct event {
	uint64_t stamp, tag;
};

static _Thread_local struct {
	struct event events[RING];
	unsigned next;
} ring;
static int missed;

static double now_ns(void)
{
	return (double)clock_monotonic_ns();
}

/* ---- the floor ---- */

static void floor_event(uint64_t tag)
{
	struct event *event = &ring.events[ring.next++ & (RING - 1)];

	event->stamp = clock_now();
	event->tag = tag;
}

static void floor_push(uint64_t tag)
{
	floor_event(tag);
}

static void floor_pop(uint64_t tag)
{
	floor_event(~tag);
}

static void (*volatile push)(uint64_t) = floor_push;
static void (*volatile pop)(uint64_t) = floor_pop;

static double floor_round(void)
{
	double start = now_ns();

	for (uint64_t i = 0; i < CALLS; i++) {
		push(i);
		pop(i);
	}
	return (now_ns() - start) / CALLS;
}

/* ---- calls, to the runtime itself and through ours ---- */

static int (*volatile call_malloc)(void **, size_t);
static int (*volatile call_free)(void *);
static int(*volatile call_launch) REAL_LAUNCH_PARAMETERS;
static int(*volatile call_kernel) REAL_LAUNCH_PARAMETERS;
static int (*volatile call_async)(void **, size_t, void *);

static double round_of(void (*body)(void))
{
	double start = now_ns();

	for (int i = 0; i < CALLS; i++)
		body();
	return (now_ns() - start) / CALLS;
}

static void do_malloc(void)
{
	void *p;

	call_malloc(&p, 256);
}

static void do_free(void)
{
	call_free(NULL);
}

static void do_launch(void)
{
	call_launch((const void *)(uintptr_t)do_free, (struct cuda_dim3){ 8, 1, 1 },
		(struct cuda_dim3){ 128, 1, 1 }, NULL, 0, NULL);
}

static void do_kernel(void)
{
	static const char *const handle = "_Z12a_kernel_of_nvcc_13PfS_ifiiiib";

	call_kernel(&handle, (struct cuda_dim3){ 8, 1, 1 }, (struct cuda_dim3){ 128, 1, 1 }, NULL,
		0, NULL);
}

static void do_async(void)
{
	void *p;

	call_async(&p, 256, NULL);
}

/* From a stack as deep as programs have them. */
__attribute__((noinline)) static void deeper(int depth, void (*body)(void))
{
	if (depth)
		deeper(depth - 1, body);
	else
		body();
	__asm__ volatile("" ::: "memory");
}

static void do_deep(void)
{
	deeper(DEEP, do_malloc);
}

static void use(const struct real *real)
{
	call_malloc = real->cudaMalloc;
	call_free = real->cudaFree;
	call_launch = real->cudaLaunchKernel;
	call_kernel = real->__cudaLaunchKernel;
	call_async = real->cudaMallocAsync;
}

static const struct real ours = {
	.cudaMalloc = cudaMalloc,
	.cudaFree = cudaFree,
	.cudaLaunchKernel = cudaLaunchKernel,
	.__cudaLaunchKernel = __cudaLaunchKernel,
	.cudaMallocAsync = cudaMallocAsync,
};

/* ---- the table ---- */

/* Gives the pages of what was sealed back, so that each round writes to pages that the machine has
 * at hand: how fast it finds new ones is not what is measured here. */
static void recycle(void)
{
	static uint64_t kept;
	const struct trace_header *header = trace_header();
	int fd;

	if (!header)
		return;
	if (!kept)
		/* slots and dictionary lie before it; later dictionary blocks are small and of no
		 * use here */
		kept = header->end;
	fd = open(trace_path(), O_WRONLY | O_CLOEXEC);
	if (fd < 0)
		return;
	fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, (off_t)kept,
		(off_t)(header->end - kept));
	close(fd);
}

static int compare(const void *a, const void *b)
{
	const double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static double median(double *values, int count)
{
	qsort(values, (size_t)count, sizeof *values, compare);
	return values[count / 2];
}

/* How often this thread was made to wait for another so far. */
static long interruptions(void)
{
	struct rusage use;

	return getrusage(RUSAGE_THREAD, &use) ? 0 : use.ru_nivcsw;
}

struct round {
	double floor, without, with; /* ns a call, or a pair */
};

static double floor_of(const struct round *round)
{
	return round->floor;
}

static double without_of(const struct round *round)
{
	return round->without;
}

static double ratio_of(const struct round *round)
{
	return (round->with - round->without) / round->floor;
}

static double middle(const struct round *rounds, int count, double (*of)(const struct round *))
{
	double values[ROUNDS];

	for (int i = 0; i < count; i++)
		values[i] = of(&rounds[i]);
	return median(values, count);
}

static double least_floor; /* that was ever seen */

static double see_floor(void)
{
	const double floor = floor_round();

	least_floor = least_floor && least_floor < floor ? least_floor : floor;
	return floor;
}

static struct round run_round(const struct real *bare, void (*body)(void))
{
	struct round round = { .floor = see_floor() };

	use(bare);
	round.without = round_of(body);
	use(&ours);
	round.with = round_of(body);
	recycle();
	return round;
}

/* Rounds in which the thread was interrupted, or the floor took longer than it can (a neighbour had
 * part of this CPU), count only if there are too few others. */
static int run_rounds(struct round *rounds, const struct real *bare, void (*body)(void))
{
	struct round busy[ROUNDS];
	int quiet = 0;

	use(&ours);
	round_of(body);
	for (int i = 0; i < TRIES && quiet < ROUNDS; i++) {
		const long before = interruptions();
		const struct round round = run_round(bare, body);

		if (interruptions() == before && round.floor <= 1.15 * least_floor)
			rounds[quiet++] = round;
		else
			busy[i % ROUNDS] = round;
	}
	if (quiet >= ROUNDS / 4)
		return quiet;
	memcpy(rounds, busy, sizeof busy);
	return ROUNDS;
}

static void measure(const char *name, const struct real *bare, void (*body)(void), double limit)
{
	struct round rounds[ROUNDS];
	const int count = run_rounds(rounds, bare, body);
	const double added = middle(rounds, count, ratio_of),
		     floor_ns = middle(rounds, count, floor_of);

	printf("%-6s %-52s %8.2f x floor (at most %g)  adds %.1f ns to %.1f, floor %.1f ns, %d "
	       "rounds\n",
		added <= limit ? "ok" : "MISSED", name, added, limit, added * floor_ns,
		middle(rounds, count, without_of), floor_ns, count);
	missed += added > limit;
}

static void begin_trace(void)
{
	static struct trace_settings settings = { .limit_bytes = (uint64_t)8 << 30, .run_id = 1 };

	if (!getcwd(settings.output, sizeof settings.output - 32))
		exit(2);
	strcat(settings.output, "/bench_cuda.bin");
	unlink(settings.output);
	stream_configure(&settings);
}

/* The stand-ins are beside this program. */
static void *load(const char *program, const char *name)
{
	char path[4200], folder[4096];
	void *library;

	snprintf(folder, sizeof folder, "%s", program);
	snprintf(path, sizeof path, "%s/../symbols/%s", dirname(folder), name);
	library = dlopen(path, RTLD_NOW | RTLD_GLOBAL);
	if (!library) {
		fprintf(stderr, "%s\n", dlerror());
		exit(2);
	}
	return library;
}

static void use_device(const char *program)
{
	void (*driver_use)(int);

	*(void **)&driver_use = dlsym(load(program, "driver/libcuda.so.1"), "driver_use");
	if (!driver_use)
		exit(2);
	driver_use(0);
	load(program, "13/libcudart.so.13");
}

int main(int count, char **arguments)
{
	char self[4096] = "";
	const struct real *bare;

	(void)count;
	(void)arguments;
	if (readlink("/proc/self/exe", self, sizeof self - 1) < 0)
		return 2;
	for (int i = 0; i < 4 * TRIES; i++)
		see_floor();
	begin_trace();
	use_device(self);
	call_configure(true, "off");
	bare = real_find(__builtin_return_address(0));
	measure("cudaMalloc, no stacks", bare, do_malloc, 2.5);
	measure("cudaFree, no stacks", bare, do_free, 2.5);
	measure("cudaMallocAsync, no stacks", bare, do_async, 2.5);
	measure("cudaLaunchKernel, no stacks", bare, do_launch, 2.5);
	measure("__cudaLaunchKernel (nvcc 13), no stacks", bare, do_kernel, 2.5);
	call_configure(true, "launch");
	call_prepare();
	measure("cudaMalloc with its stack", bare, do_malloc, 25);
	measure("cudaMalloc with its stack, 12 frames deeper", bare, do_deep, 25);
	measure("cudaLaunchKernel with its stack", bare, do_launch, 25);
	call_configure(false, "off");
	measure("cudaMalloc, PPERF_CUDA=0", bare, do_malloc, 2.5);
	unlink(trace_path());
	return missed ? 1 : 0;
}
