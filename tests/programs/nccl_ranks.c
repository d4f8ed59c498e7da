/* SPDX-License-Identifier: MIT
 * nccl_ranks RANK RANKS FILE: one rank of a job on NCCL. Rank 0 makes the unique id and writes it
 * to FILE. Prints a value that each operation yields.
 */
#include "nccl_program.h"
#include <cuda_runtime_api.h>
#include <string.h>

#define COUNT 262144u /* floats of a buffer: 1 MiB */

static void show(const char *what, const float *memory)
{
	float value;

	CHECK(cudaMemcpy(&value, memory, sizeof value, cudaMemcpyDeviceToHost));
	printf("%s %g\n", what, (double)value);
}

static void collectives(float *from, float *to, int ranks, void *comm, cudaStream_t stream)
{
	const size_t part = COUNT / (size_t)ranks;

	for (int i = 0; i < 3; i++)
		CHECK(ncclAllReduce(from, to, COUNT, FLOAT, SUM, comm, stream));
	show("all-reduce", to);
	CHECK(ncclAllGather(from, to, part, FLOAT, comm, stream));
	CHECK(ncclReduceScatter(from, to, part, FLOAT, SUM, comm, stream));
	show("reduce-scatter", to);
	CHECK(ncclBroadcast(from, to, COUNT / 2, FLOAT, 0, comm, stream));
	show("broadcast", to);
}

static void groups(float *from, float *to, int ranks, void *comm, cudaStream_t stream)
{
	const size_t part = COUNT / (size_t)ranks;

	CHECK(ncclGroupStart());
	CHECK(ncclAllReduce(from, to, 1000, FLOAT, SUM, comm, stream));
	CHECK(ncclAllReduce(from + 1000, to + 1000, 3000, FLOAT, SUM, comm, stream));
	CHECK(ncclGroupEnd());
	show("group", to);
	CHECK(ncclGroupStart());
	for (int peer = 0; peer < ranks; peer++) {
		CHECK(ncclSend(from + (size_t)peer * part, part, FLOAT, peer, comm, stream));
		CHECK(ncclRecv(to + (size_t)peer * part, part, FLOAT, peer, comm, stream));
	}
	CHECK(ncclGroupEnd());
	show("all-to-all", to);
}

int main(int argc, char **argv)
{
	const int rank = argc > 3 ? atoi(argv[1]) : 0, ranks = argc > 3 ? atoi(argv[2]) : 1;
	float *from, *to, one = (float)rank + 1;
	void *comm, *half;
	cudaStream_t stream;

	CHECK(cudaSetDevice(0));
	CHECK(cudaStreamCreate(&stream));
	CHECK(cudaMalloc((void **)&from, COUNT * sizeof *from));
	CHECK(cudaMalloc((void **)&to, COUNT * sizeof *to));
	CHECK(cudaMemset(from, 0, COUNT * sizeof *from));
	CHECK(cudaMemcpy(from, &one, sizeof one, cudaMemcpyHostToDevice));
	CHECK(ncclCommInitRank(&comm, ranks, exchange_id(rank, argv[3]), rank));
	collectives(from, to, ranks, comm, stream);
	groups(from, to, ranks, comm, stream);
	CHECK(ncclCommSplit(comm, 0, rank, &half, NULL));
	CHECK(ncclAllReduce(from, to, COUNT / 4, FLOAT, SUM, half, stream));
	CHECK(cudaStreamSynchronize(stream));
	show("split", to);
	CHECK(ncclCommDestroy(half));
	CHECK(ncclCommDestroy(comm));
	return 0;
}
