/*
 * tensors LIBRARY LIST MANNER: takes and gives back memory through a model of PyTorch's allocator
 * (lib_c10_cuda.c), which LIBRARY is and which is loaded as Python loads PyTorch's, in known places
 * on several threads; what the allocator reports is written to LIST. Prints what the functions that
 * PyTorch has for it were told. MANNER: native, old, async or silent; `exhaust` is native and goes
 * on until there is no memory.
 */
#include <dlfcn.h>
#include <nvtx3/nvToolsExt.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cuda_runtime_api.h>

#define THREADS 4
#define ROUNDS 50
#define KEPT 8

static struct {
	void (*begin)(const char *path, int manner);
	void (*end)(void);
	void *(*take)(size_t bytes, int device);
	void (*give)(void *address, int device);
	void (*cpu)(size_t bytes);
} model;

static void *kept[THREADS][KEPT];

static void load(const char *path)
{
	void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);

	if (!library) {
		fprintf(stderr, "%s\n", dlerror());
		exit(2);
	}
	*(void **)&model.begin = dlsym(library, "model_begin");
	*(void **)&model.end = dlsym(library, "model_end");
	*(void **)&model.take = dlsym(library, "model_malloc");
	*(void **)&model.give = dlsym(library, "model_free");
	*(void **)&model.cpu = dlsym(library, "model_cpu");
}

/* Every thread gives back what its neighbour took. */
static void *work(void *number)
{
	const uintptr_t me = (uintptr_t)number;
	const int device = me % 2;

	nvtxRangePushA("work");
	for (int i = 0; i < ROUNDS; i++) {
		nvtxRangePushA(i % 2 ? "odd" : "even");
		void *one = model.take(1000 * (size_t)(i + 1), device),
		     *two = model.take((size_t)3 << 20, device);

		model.give(one, device);
		model.give(two, device);
		nvtxRangePop();
	}
	nvtxRangePushA("keeps");
	for (int i = 0; i < KEPT; i++)
		kept[me][i] = model.take(4096 * (size_t)(i + 1), device);
	nvtxRangePop();
	nvtxRangePop();
	return NULL;
}

static void *clean(void *number)
{
	const uintptr_t other = ((uintptr_t)number + 2) % THREADS;

	nvtxRangePushA("clean");
	for (int i = 0; i < KEPT / 2; i++)
		model.give(kept[other][i], (int)other % 2);
	nvtxRangePop();
	return NULL;
}

static void on_threads(void *(*function)(void *))
{
	pthread_t threads[THREADS];

	for (uintptr_t i = 0; i < THREADS; i++)
		if (pthread_create(&threads[i], NULL, function, (void *)i))
			exit(3);
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
}

static void exhaust(void)
{
	nvtxRangePushA("train");
	nvtxRangePushA("weights");
	model.take((size_t)100 << 20, 0);
	nvtxRangePop();
	for (int step = 0;; step++) {
		char name[32];

		snprintf(name, sizeof name, "step: %d", step);
		nvtxRangePushA(name);
		nvtxRangePushA("forward");
		void *activations = model.take((size_t)60 << 20, 0);
		nvtxRangePop();
		nvtxRangePushA("history");
		void *history = activations ? model.take((size_t)20 << 20, 0) : NULL;
		nvtxRangePop();
		nvtxRangePop();
		if (!history)
			break;
		model.give(activations, 0);
	}
	nvtxRangePop();
}

int main(int argc, char **argv)
{
	static const char *const manners[] = { "native", "old", "async", "silent", "exhaust" };
	int manner = 0;

	if (argc != 4)
		return 2;
	while (manner < 4 && strcmp(argv[3], manners[manner]))
		manner++;
	if (cudaSetDevice(0))
		return 3;
	load(argv[1]);
	model.begin(argv[2], manner == 4 ? 0 : manner);
	if (manner == 4) {
		exhaust();
	} else {
		on_threads(work);
		on_threads(clean);
		model.cpu(777);
	}
	model.end();
	return 0;
}
