// SPDX-License-Identifier: MIT
// library_calls COUNT: cuBLAS, which carries a CUDA runtime of its own that no symbol shows, called on two streams between kernels of the program's own.
// How many kernels a call of cuBLAS is, only cuBLAS knows; the program says what it launched itself.
#include <cstdio>
#include <cstdlib>
#include <cublas_v2.h>
#include <cuda_runtime.h>
#include <nvtx3/nvToolsExt.h>

static const int side = 256;

__global__ void own_kernel(float *data, int count)
{
	int i = blockIdx.x * blockDim.x + threadIdx.x;

	if (i < count)
		data[i] = data[i] * 0.5f + 1.0f;
}

static void check(int error, const char *call)
{
	if (error == 0)
		return;
	fprintf(stderr, "library_calls: %s: %d\n", call, error);
	exit(1);
}
#define CHECK(call) check((int)(call), #call)

int main(int argc, char **argv)
{
	int count = argc > 1 ? atoi(argv[1]) : 10;
	const float one = 1, zero = 0;
	cudaStream_t streams[2];
	cublasHandle_t blas;
	float *matrix[3];

	CHECK(cublasCreate(&blas));
	for (auto &stream : streams)
		CHECK(cudaStreamCreate(&stream));
	for (auto &m : matrix) {
		CHECK(cudaMalloc(&m, side * side * sizeof *m));
		CHECK(cudaMemset(m, 0, side * side * sizeof *m));
	}
	for (int i = 0; i < count; i++) {
		nvtxRangePushA("multiply");
		CHECK(cublasSetStream(blas, streams[i % 2]));
		CHECK(cublasSgemm(blas, CUBLAS_OP_N, CUBLAS_OP_T, side, side, side, &one, matrix[0], side, matrix[1], side, &zero, matrix[2], side));
		nvtxRangePop();
		nvtxRangePushA("own");
		own_kernel<<<side, side, 0, streams[i % 2]>>>(matrix[2], side * side);
		CHECK(cudaGetLastError());
		nvtxRangePop();
	}
	CHECK(cudaDeviceSynchronize());
	CHECK(cublasDestroy(blas));
	printf("{\"multiplications\": %d, \"own_kernels\": %d}\n", count, count);
	return 0;
}
