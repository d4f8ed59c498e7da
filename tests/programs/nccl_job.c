/* SPDX-License-Identifier: MIT
 * nccl_job RANK FOLDER STEPS [HANG ABSENT]: one of eight ranks of a job on NCCL, as 2 x 2 x 2. Two
 * neighbours share tensors (tp), two blocks of these are stages of a pipeline (pp), and two
 * pipelines share the data (dp). In a step, each rank calls on one CUDA stream:
 *
 *	an all-reduce of 4 KiB in tp and one of 8 KiB in dp, which alternate on two CUDA streams
 *	a send of 16 KiB from the first stage to the second
 *	an all-reduce of 4 bytes of all ranks
 *
 * Unique ids are files in FOLDER. Communicators of two ranks have names, as PyTorch gives them. In the last step rank ABSENT stays in its range `load`, before
 * the call HANG: init (of a communicator), collective (of dp), send, receive or split. Each other
 * rank goes on until it waits for it.
 */
#include "nccl_program.h"
#include <cuda_runtime_api.h>
#include <nvtx3/nvToolsExt.h>
#include <string.h>

#define RANKS 8

enum { TP, PP, DP, WORLD, COMMUNICATORS };
static const char *const names[COMMUNICATORS] = { "tp", "pp", "dp", "world" };

struct job {
	int rank, absent;
	const char *folder, *hang;
	void *comms[COMMUNICATORS];
	float *from, *to;
	cudaStream_t streams[2];
};

/* Stays here for good if this is the rank that the others are to wait for. */
static void may_hang(const struct job *job, const char *where, int is_last)
{
	if (!is_last || job->rank != job->absent || strcmp(job->hang, where))
		return;
	nvtxRangePushA("load");
	while (pause())
		;
}

static void *make(const struct job *job, int which, const char *suffix)
{
	const int rank = which == WORLD ? job->rank : job->rank >> which & 1,
		  others = which == WORLD ? 0 : job->rank & ~(1 << which);
	char path[4096], name[32];
	struct config config = CONFIG;
	unique_id id;
	void *comm;

	snprintf(path, sizeof path, "%s/%s%d%s", job->folder, names[which], others, suffix);
	id = exchange_id(rank, path);
	if (which == WORLD) {
		CHECK(ncclCommInitRank(&comm, RANKS, id, rank));
		return comm;
	}
	snprintf(name, sizeof name, "mesh_%s:%d", names[which], others);
	config.name = name;
	CHECK(ncclCommInitRankConfig(&comm, 2, id, rank, &config));
	return comm;
}

static void reduce(const struct job *job, int which, size_t count, int stream)
{
	CHECK(ncclAllReduce(
		job->from, job->to, count, FLOAT, SUM, job->comms[which], job->streams[stream]));
}

static void step(const struct job *job, int number, int is_last)
{
	nvtxRangePushA("step");
	reduce(job, TP, 1024, number % 2);
	may_hang(job, "collective", is_last);
	reduce(job, DP, 2048, number % 2);
	if (job->rank & 1 << PP) {
		may_hang(job, "receive", is_last);
		CHECK(ncclRecv(job->to, 4096, FLOAT, 0, job->comms[PP], job->streams[0]));
	} else {
		may_hang(job, "send", is_last);
		CHECK(ncclSend(job->from, 4096, FLOAT, 1, job->comms[PP], job->streams[0]));
	}
	reduce(job, WORLD, 1, 0);
	nvtxRangePop();
}

int main(int argc, char **argv)
{
	struct job job = { .absent = -1, .hang = "" };
	void *half;
	int steps;

	if (argc < 4)
		return 2;
	job.rank = atoi(argv[1]);
	job.folder = argv[2];
	steps = atoi(argv[3]);
	if (argc > 5) {
		job.hang = argv[4];
		job.absent = atoi(argv[5]);
	}
	CHECK(cudaSetDevice(0));
	for (int i = 0; i < 2; i++)
		CHECK(cudaStreamCreate(&job.streams[i]));
	CHECK(cudaMalloc((void **)&job.from, 16384));
	CHECK(cudaMalloc((void **)&job.to, 16384));
	CHECK(cudaMemset(job.from, 0, 16384));
	for (int which = 0; which < COMMUNICATORS; which++)
		job.comms[which] = make(&job, which, "");
	for (int i = 0; i < steps; i++)
		step(&job, i, i == steps - 1);
	may_hang(&job, "init", 1);
	make(&job, WORLD, "again");
	may_hang(&job, "split", 1);
	CHECK(ncclCommSplit(job.comms[WORLD], job.rank & 1, 0, &half, NULL));
	for (int i = 0; i < 2; i++)
		CHECK(cudaStreamSynchronize(job.streams[i]));
	printf("rank %d ends\n", job.rank);
	return 0;
}
