/* SPDX-License-Identifier: MIT
 * What programs call of NCCL, whose header is not needed to build them.
 */
#ifndef PPERF_TESTS_PROGRAMS_NCCL_PROGRAM_H
#define PPERF_TESTS_PROGRAMS_NCCL_PROGRAM_H

#include <cuda_runtime_api.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

typedef struct {
	char bytes[128];
} unique_id;

enum { FLOAT = 7, SUM = 0 };

/* ncclConfig_t of NCCL 2.27. */
struct config {
	size_t size;
	unsigned magic, version;
	int blocking, sizes[3];
	const char *net;
	int share, traffic;
	const char *name;
	int others[4];
};
#define CONFIG                                                                                    \
	{                                                                                         \
		sizeof(struct config), 0xcafebeef, 22703, INT_MIN, { INT_MIN, INT_MIN, INT_MIN }, \
			NULL, INT_MIN, INT_MIN, NULL,                                             \
		{                                                                                 \
			INT_MIN, INT_MIN, INT_MIN, INT_MIN                                        \
		}                                                                                 \
	}

int ncclGetUniqueId(unique_id *id);
int ncclCommInitRank(void **comm, int ranks, unique_id id, int rank);
int ncclCommInitRankConfig(void **comm, int ranks, unique_id id, int rank, void *config);
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

static inline void check(int result, const char *what)
{
	if (!result)
		return;
	fprintf(stderr, "%s: %d\n", what, result);
	exit(1);
}
#define CHECK(call) check((int)(call), #call)

/* Rank 0 makes the unique id and writes it to the file `path`; the others read it. */
static inline unique_id exchange_id(int rank, const char *path)
{
	char partial[4200];
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

#endif
