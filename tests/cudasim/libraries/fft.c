/* SPDX-License-Identifier: MIT
 * The simulated cuFFT: plans and transforms, as PyTorch makes them (cufftXtMakePlanMany). One
 * kernel a dimension. Where cuFFT's header is, this file is compiled a second time, with
 * SIM_REAL_HEADERS, against it.
 */
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include <cuda_runtime_api.h>
#include <library_types.h>

#include "libraries/library.h"

#ifdef SIM_REAL_HEADERS
#include <cufftXt.h>
_Static_assert(CUFFT_SUCCESS == 0 && CUFFT_INVALID_PLAN == 1 && CUFFT_ALLOC_FAILED == 2, "results");
_Static_assert(
	CUFFT_INVALID_VALUE == 4 && CUFFT_EXEC_FAILED == 6 && CUFFT_SETUP_FAILED == 7, "results");
#else
typedef int cufftHandle;
typedef enum {
	CUFFT_SUCCESS = 0,
	CUFFT_INVALID_PLAN = 1,
	CUFFT_ALLOC_FAILED = 2,
	CUFFT_INVALID_VALUE = 4,
	CUFFT_EXEC_FAILED = 6,
	CUFFT_SETUP_FAILED = 7,
} cufftResult;
#endif

#pragma GCC diagnostic ignored "-Wunused-parameter"

#define PLANS_MAX 4096 /* at once */
#define RANK_MAX 3
#define THREADS 128

struct plan {
	bool used;
	int rank;
	long long sizes[RANK_MAX];
	uint64_t elements; /* of all transforms */
	bool is_double;
	cudaStream_t stream;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct plan plans[PLANS_MAX]; /* a handle is an index and one more */

#define FFT_API(name, proto, args) LIBRARY_API(cufftResult, name, proto, args, CUFFT_SETUP_FAILED)

static struct plan *plan_of(cufftHandle handle)
{
	return handle > 0 && handle <= PLANS_MAX && plans[handle - 1].used ? &plans[handle - 1]
									   : NULL;
}

FFT_API(cufftCreate, (cufftHandle * handle), (handle))
{
	cufftResult result = CUFFT_ALLOC_FAILED;

	if (library_ready() != 0)
		return CUFFT_SETUP_FAILED;
	pthread_mutex_lock(&lock);
	for (int i = 0; i < PLANS_MAX && result != CUFFT_SUCCESS; i++) {
		if (plans[i].used)
			continue;
		plans[i] = (struct plan){ .used = true };
		*handle = i + 1;
		result = CUFFT_SUCCESS;
	}
	pthread_mutex_unlock(&lock);
	return result;
}

FFT_API(cufftDestroy, (cufftHandle plan), (plan))
{
	struct plan *p = plan_of(plan);

	if (!p)
		return CUFFT_INVALID_PLAN;
	pthread_mutex_lock(&lock);
	p->used = false;
	pthread_mutex_unlock(&lock);
	return CUFFT_SUCCESS;
}

FFT_API(cufftSetAutoAllocation, (cufftHandle plan, int autoAllocate), (plan, autoAllocate))
{
	return plan_of(plan) ? CUFFT_SUCCESS : CUFFT_INVALID_PLAN;
}

FFT_API(cufftSetStream, (cufftHandle plan, cudaStream_t stream), (plan, stream))
{
	struct plan *p = plan_of(plan);

	if (!p)
		return CUFFT_INVALID_PLAN;
	p->stream = stream;
	return CUFFT_SUCCESS;
}

FFT_API(cufftSetWorkArea, (cufftHandle plan, void *workArea), (plan, workArea))
{
	return plan_of(plan) ? CUFFT_SUCCESS : CUFFT_INVALID_PLAN;
}

FFT_API(cufftXtMakePlanMany,
	(cufftHandle plan, int rank, long long int *n, long long int *inembed,
		long long int istride, long long int idist, cudaDataType inputtype,
		long long int *onembed, long long int ostride, long long int odist,
		cudaDataType outputtype, long long int batch, size_t *workSize,
		cudaDataType executiontype),
	(plan, rank, n, inembed, istride, idist, inputtype, onembed, ostride, odist, outputtype,
		batch, workSize, executiontype))
{
	struct plan *p = plan_of(plan);

	if (!p)
		return CUFFT_INVALID_PLAN;
	if (rank < 1 || rank > RANK_MAX || batch < 1)
		return CUFFT_INVALID_VALUE;
	p->rank = rank;
	p->elements = (uint64_t)batch;
	for (int i = 0; i < rank; i++) {
		if (n[i] < 1)
			return CUFFT_INVALID_VALUE;
		p->sizes[i] = n[i];
		p->elements *= (uint64_t)n[i];
	}
	p->is_double = executiontype == CUDA_C_64F || executiontype == CUDA_R_64F;
	*workSize = (size_t)p->elements * (p->is_double ? 16 : 8);
	return CUFFT_SUCCESS;
}

/* Sizes that are a product of small primes have kernels of their own, the others go another way. */
static bool is_smooth(long long n)
{
	static const int primes[] = { 2, 3, 5, 7 };

	for (size_t i = 0; i < sizeof(primes) / sizeof(primes[0]); i++)
		while (n % primes[i] == 0)
			n /= primes[i];
	return n == 1;
}

static void name_kernel(
	char *name, size_t bytes, const struct plan *plan, long long size, bool first)
{
	char letter = plan->is_double ? 'd' : 'f';

	if (is_smooth(size))
		snprintf(name, bytes,
			"_Z%sILj%lldE3EPTILj8EELj8ELj%uEL9padding_t1EL9twiddle_t0EL20loadstore_"
			"modifier_t2EL8layout_t%dEj%cEv18"
			"kernel_arguments_tIT6_E",
			first ? "10vector_fft" : "11regular_fft", size, size < 64 ? 2u : 4u,
			first ? 1 : 0, letter);
	else
		snprintf(name, bytes,
			"_Z13bluestein_fftILj%lldELj8EL8layout_t%dEj%cEv18kernel_arguments_tIT2_E",
			size, first ? 1 : 0, letter);
}

FFT_API(cufftXtExec, (cufftHandle plan, void *input, void *output, int direction),
	(plan, input, output, direction))
{
	struct plan *p = plan_of(plan);
	char name[256];
	struct library_kernel kernel = { .name = name, .block = { THREADS, 1, 1 } };

	if (!p || p->rank == 0)
		return CUFFT_INVALID_PLAN;
	kernel.grid = library_grid(p->elements, THREADS, 8, 65535);
	for (int i = p->rank - 1; i >= 0; i--) {
		name_kernel(name, sizeof(name), p, p->sizes[i], i == p->rank - 1);
		if (library_launch(&kernel, p->stream) != 0)
			return CUFFT_EXEC_FAILED;
	}
	return CUFFT_SUCCESS;
}
