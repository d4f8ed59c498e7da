/* SPDX-License-Identifier: MIT
 * nccl_ranks RANK RANKS FILE: one rank of a job on NCCL. Rank 0 makes the unique id and writes it
 * to FILE. Prints a value that each operation yields.
 */
#include <cuda_runtime_api.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef struct {
	char bytes[128];
} unique_id;

enum { FLOAT = 7, SUM = 0 };

int ncclGetUniqueId(unique_id *id);
int ncclCommInitRank(void **comm, int ranks, unique_id id, int rank);
int ncclCommSplit(void *comm, int color, int key, void **made, void *config);
int ncclCommDestroy(void *comm);
int ncclGroupStart(void);
int ncclGroupEnd(void);
int ncclAllReduce(const void *from, void *to, size_t count, int type, int operation, void *comm,
	cudaStream_t stream);
int ncclAllGather(
	const void *from, void *to, size_t count, int type, void *comm, cudaStream_t stream);
int ncclReduceScatter(const void *from, void *to, size_t count, int type, int operation, void *comm,
	cudaStream_t stream);
int ncclBroadcast(const void *from, void *to, size_t count, int type, int root, void *comm,
	cudaStream_t stream);
int ncclSend(const void *from, size_t count, int type, int peer, void *comm, cudaStream_t stream);
int ncclRecv(void *to, size_t count, int type, int peer, void *comm, cudaStream_t stream);

#define COUNT 262144u /* floats of a buffer: 1 MiB */

static void check(int result, const char *what)
{
	if (!result)
		return;
	fprintf(stderr, "%s: %d\n", what, result);
	exit(1);
}
#define CHECK(call) check((int)(call), #call)

static unique_id exchange_id(int rank, const char *path)
{
	char partial[4096];
	unique_id id;
	FILE *file;

	if (rank == 0) {
		CHECK(ncclGetUniqueId(&id));
		snprintf(partial, sizeof partial, "%s.partial", path);
		file = fopen(partial, "wb");
		check(!file || fwrite(&id, sizeof id, 1, file) != 1 || fclose(file), "id");
		check(rename(partial, path), "rename");
		return id;
	}
	while (!(file = fopen(path, "rb")))
		usleep(1000);
	check(fread(&id, sizeof id, 1, file) != 1, "id");
	fclose(file);
	return id;
}

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
