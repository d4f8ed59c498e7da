/* SPDX-License-Identifier: MIT
 * The simulated NCCL: ranks in one process and in several, what they exchange, and what becomes of
 * one that is left alone.
 */
#include <dirent.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/check_cuda.h"
#include "libraries/nccl_api.h"

ncclResult_t ncclGetUniqueId(ncclUniqueId *id);
ncclResult_t ncclCommInitRank(ncclComm_t *comm, int ranks, ncclUniqueId id, int rank);
ncclResult_t ncclCommInitAll(ncclComm_t *comms, int ranks, const int *devices);
ncclResult_t ncclCommSplit(
	ncclComm_t comm, int color, int key, ncclComm_t *made, ncclConfig_t *config);
ncclResult_t ncclCommDestroy(ncclComm_t comm);
ncclResult_t ncclCommAbort(ncclComm_t comm);
ncclResult_t ncclCommGetAsyncError(ncclComm_t comm, ncclResult_t *error);
ncclResult_t ncclCommCount(ncclComm_t comm, int *ranks);
ncclResult_t ncclCommUserRank(ncclComm_t comm, int *rank);
ncclResult_t ncclGroupStart(void);
ncclResult_t ncclGroupEnd(void);
ncclResult_t ncclAllReduce(const void *from, void *to, size_t count, ncclDataType_t type,
	ncclRedOp_t op, ncclComm_t comm, cudaStream_t stream);
ncclResult_t ncclReduce(const void *from, void *to, size_t count, ncclDataType_t type,
	ncclRedOp_t op, int root, ncclComm_t comm, cudaStream_t stream);
ncclResult_t ncclReduceScatter(const void *from, void *to, size_t count, ncclDataType_t type,
	ncclRedOp_t op, ncclComm_t comm, cudaStream_t stream);
ncclResult_t ncclBroadcast(const void *from, void *to, size_t count, ncclDataType_t type, int root,
	ncclComm_t comm, cudaStream_t stream);
ncclResult_t ncclAllGather(const void *from, void *to, size_t count, ncclDataType_t type,
	ncclComm_t comm, cudaStream_t stream);
ncclResult_t ncclSend(const void *from, size_t count, ncclDataType_t type, int peer,
	ncclComm_t comm, cudaStream_t stream);
ncclResult_t ncclRecv(void *to, size_t count, ncclDataType_t type, int peer, ncclComm_t comm,
	cudaStream_t stream);

#define RANKS 2
#define LARGE ((size_t)300000) /* floats: more than what lies between two ranks at once */

static char names[16][128];
static size_t kernels, copies;

static void on_call(struct sim_scope *scope)
{
	(void)scope;
}

static void on_work(const struct sim_work *work)
{
	copies += work->kind == SIM_COPY;
	if (work->kind == SIM_KERNEL && kernels < 16)
		strncpy(names[kernels++], work->name, sizeof(names[0]) - 1);
}

static void on_memory(const struct sim_memory *memory)
{
	(void)memory;
}

static void on_sync(const struct sim_sync *sync)
{
	(void)sync;
}

static void on_event(const struct sim_event_record *event)
{
	(void)event;
}

static void on_resource(const struct sim_resource *resource)
{
	(void)resource;
}

static const struct sim_tools tools = { on_call, on_call, on_work, on_memory, on_sync, on_event,
	on_resource, NULL };

/* Device memory that holds the values. */
static float *device(const float *values, size_t count)
{
	float *memory;

	OK(cudaMalloc((void **)&memory, count * sizeof(*memory)));
	OK(cudaMemcpy(memory, values, count * sizeof(*memory), cudaMemcpyHostToDevice));
	return memory;
}

static float value(const float *memory, size_t index)
{
	float got;

	OK(cudaMemcpy(&got, memory + index, sizeof(got), cudaMemcpyDeviceToHost));
	return got;
}

/* All collectives of one rank; the other is in another process. */
static void exchange(ncclComm_t comm, int rank)
{
	float *own = device((const float[]){ (float)rank + 1, 10, 20, 30 }, 4),
	      *all = device((const float[8]){ 0 }, 8);
	float *large = device(calloc(LARGE, sizeof(float)), LARGE);

	OK(ncclAllReduce(own, all, 4, ncclFloat32, ncclSum, comm, NULL));
	ck_assert(value(all, 0) == 3 && value(all, 3) == 60);
	OK(ncclAllReduce(own, all, 4, ncclFloat32, ncclAvg, comm, NULL));
	ck_assert(value(all, 0) == 1.5f && value(all, 1) == 10);
	OK(ncclAllReduce(own, all, 4, ncclFloat32, ncclMax, comm, NULL));
	ck_assert(value(all, 0) == 2);
	OK(ncclAllGather(own, all, 1, ncclFloat32, comm, NULL));
	ck_assert(value(all, 0) == 1 && value(all, 1) == 2);
	OK(ncclReduceScatter(own, all, 2, ncclFloat32, ncclSum, comm, NULL));
	ck_assert(value(all, 0) == (rank ? 40 : 3) && value(all, 1) == (rank ? 60 : 20));
	OK(ncclBroadcast(own, all, 1, ncclFloat32, 1, comm, NULL));
	ck_assert(value(all, 0) == 2);
	OK(ncclReduce(own, all, 1, ncclFloat32, ncclProd, 0, comm, NULL));
	ck_assert(value(all, 0) == 2);
	OK(cudaMemcpy(large + LARGE - 1, own, sizeof(float), cudaMemcpyDeviceToDevice));
	OK(ncclAllReduce(large, large, LARGE, ncclFloat32, ncclSum, comm, NULL));
	ck_assert(value(large, LARGE - 1) == 3 && value(large, 0) == 0);
	if (rank == 0)
		OK(ncclSend(large, LARGE, ncclFloat32, 1, comm, NULL));
	else
		OK(ncclRecv(large, LARGE, ncclFloat32, 0, comm, NULL));
	ck_assert(value(large, LARGE - 1) == 3);
}

START_TEST(two_processes_exchange_values)
{
	ncclUniqueId id;
	ncclComm_t comm;
	int rank, status = 0, ranks, own;
	pid_t child;

	/* Before CUDA is used: a child could not use it afterwards. */
	OK(ncclGetUniqueId(&id));
	child = fork();
	rank = child == 0;
	OK(ncclCommInitRank(&comm, RANKS, id, rank));
	OK(ncclCommCount(comm, &ranks));
	OK(ncclCommUserRank(comm, &own));
	ck_assert_int_eq(ranks, RANKS);
	ck_assert_int_eq(own, rank);
	exchange(comm, rank);
	OK(ncclCommDestroy(comm));
	if (child == 0)
		_exit(0);
	ck_assert_int_eq(waitpid(child, &status, 0), child);
	ck_assert_int_eq(status, 0);
}
END_TEST

START_TEST(ranks_of_one_process_exchange_in_a_group)
{
	ncclComm_t comms[RANKS];
	cudaStream_t streams[RANKS];
	float *own[RANKS];

	OK(ncclCommInitAll(comms, RANKS, (const int[]){ 0, 0 }));
	for (int i = 0; i < RANKS; i++) {
		OK(cudaStreamCreate(&streams[i]));
		own[i] = device((const float[]){ (float)i + 1 }, 1);
	}
	sim_tools_set(&tools);
	OK(ncclGroupStart());
	for (int i = 0; i < RANKS; i++) {
		OK(ncclAllReduce(own[i], own[i], 1, ncclFloat32, ncclSum, comms[i], streams[i]));
		OK(ncclAllReduce(own[i], own[i], 1, ncclFloat32, ncclSum, comms[i], streams[i]));
	}
	ck_assert_uint_eq(kernels, 0);
	OK(ncclGroupEnd());
	ck_assert(value(own[0], 0) == 3 && value(own[1], 0) == 3);
	/* One kernel a stream, whatever the group holds. */
	ck_assert_uint_eq(kernels, RANKS);
	ck_assert_str_eq(names[0],
		"_Z39ncclDevKernel_AllReduce_Sum_f32_RING_LL24ncclDevKernelArgsStorageILm4096EE");
}
END_TEST

START_TEST(both_send_before_they_receive_within_a_group)
{
	ncclComm_t comms[RANKS];
	float *from[RANKS], *to[RANKS];

	OK(ncclCommInitAll(comms, RANKS, (const int[]){ 0, 0 }));
	for (int i = 0; i < RANKS; i++) {
		from[i] = device(calloc(LARGE, sizeof(float)), LARGE);
		to[i] = device(calloc(LARGE, sizeof(float)), LARGE);
		OK(cudaMemcpy(from[i] + LARGE - 1, &(float){ (float)i + 1 }, sizeof(float),
			cudaMemcpyHostToDevice));
	}
	OK(ncclGroupStart());
	for (int i = 0; i < RANKS; i++) {
		OK(ncclSend(from[i], LARGE, ncclFloat32, 1 - i, comms[i], NULL));
		OK(ncclRecv(to[i], LARGE, ncclFloat32, 1 - i, comms[i], NULL));
	}
	OK(ncclGroupEnd());
	ck_assert(value(to[0], LARGE - 1) == 2 && value(to[1], LARGE - 1) == 1);
}
END_TEST

START_TEST(one_rank_alone_copies_and_launches_nothing)
{
	float *from = device((const float[]){ 7 }, 1), *to = device((const float[]){ 0 }, 1);
	ncclComm_t comm;

	OK(ncclCommInitAll(&comm, 1, NULL));
	sim_tools_set(&tools);
	OK(ncclAllReduce(from, to, 1, ncclFloat32, ncclSum, comm, NULL));
	ck_assert_uint_eq(kernels, 0);
	ck_assert_uint_eq(copies, 1);
	OK(ncclAllReduce(from, from, 1, ncclFloat32, ncclSum, comm, NULL));
	ck_assert_uint_eq(copies, 1);
	ck_assert(value(to, 0) == 7);
}
END_TEST

/* What two ranks make of a number of 16 bits each. */
static unsigned halves(uint16_t a, uint16_t b, ncclDataType_t type, ncclRedOp_t op)
{
	static ncclComm_t comms[RANKS];
	static uint16_t *memory;
	uint16_t values[] = { a, b };

	if (!memory) {
		OK(ncclCommInitAll(comms, RANKS, (const int[]){ 0, 0 }));
		OK(cudaMalloc((void **)&memory, sizeof(values)));
	}
	OK(cudaMemcpy(memory, values, sizeof(values), cudaMemcpyHostToDevice));
	OK(ncclGroupStart());
	for (int i = 0; i < RANKS; i++)
		OK(ncclAllReduce(memory + i, memory + i, 1, type, op, comms[i], NULL));
	OK(ncclGroupEnd());
	OK(cudaMemcpy(values, memory, sizeof(values), cudaMemcpyDeviceToHost));
	ck_assert_uint_eq(values[0], values[1]);
	return values[0];
}

START_TEST(narrow_floats_are_rounded_to_the_nearest)
{
	/* 1 + 1 = 2; 1 + 2^-11 is half way and goes to the even 1; 1 + 3 * 2^-11 goes up to 1 +
	 * 2^-9. */
	ck_assert_uint_eq(halves(0x3c00, 0x3c00, ncclFloat16, ncclSum), 0x4000);
	ck_assert_uint_eq(halves(0x3c00, 0x1000, ncclFloat16, ncclSum), 0x3c00);
	ck_assert_uint_eq(halves(0x3c00, 0x1600, ncclFloat16, ncclSum), 0x3c02);
	/* The smallest ones have no leading 1; the largest overflow to infinity. */
	ck_assert_uint_eq(halves(0x0001, 0x0001, ncclFloat16, ncclSum), 0x0002);
	ck_assert_uint_eq(halves(0x03ff, 0x0001, ncclFloat16, ncclSum), 0x0400);
	ck_assert_uint_eq(halves(0x7bff, 0x7bff, ncclFloat16, ncclSum), 0x7c00);
	ck_assert_uint_eq(halves(0x3f80, 0xbf80, ncclBfloat16, ncclSum), 0x0000);
	ck_assert_uint_eq(halves(0x0001, 0x0002, ncclBfloat16, ncclSum), 0x0003);
	ck_assert_uint_eq(halves(0x4000, 0x4040, ncclBfloat16, ncclProd), 0x40c0);
}
END_TEST

START_TEST(colors_split_a_communicator)
{
	ncclUniqueId id;
	ncclComm_t comm, made;
	int rank, status = 0, ranks;
	pid_t child;

	OK(ncclGetUniqueId(&id));
	child = fork();
	rank = child == 0;
	OK(ncclCommInitRank(&comm, RANKS, id, rank));
	/* With the order of the ranks turned. */
	OK(ncclCommSplit(comm, 5, -rank, &made, NULL));
	OK(ncclCommUserRank(made, &ranks));
	ck_assert_int_eq(ranks, 1 - rank);
	OK(ncclCommSplit(made, rank, 0, &made, NULL));
	OK(ncclCommCount(made, &ranks));
	ck_assert_int_eq(ranks, 1);
	OK(ncclCommSplit(comm, rank ? 0 : NCCL_SPLIT_NOCOLOR, 0, &made, NULL));
	ck_assert((made != NULL) == (rank == 1));
	if (child == 0)
		_exit(0);
	ck_assert_int_eq(waitpid(child, &status, 0), child);
	ck_assert_int_eq(status, 0);
}
END_TEST

START_TEST(a_rank_whose_process_ended_is_a_remote_error)
{
	float *memory;
	ncclUniqueId id;
	ncclComm_t comm;
	ncclResult_t error;
	pid_t child;
	int rank;

	OK(ncclGetUniqueId(&id));
	child = fork();
	rank = child == 0;
	OK(ncclCommInitRank(&comm, RANKS, id, rank));
	if (child == 0)
		_exit(0);
	ck_assert_int_eq(waitpid(child, NULL, 0), child);
	memory = device((const float[]){ 1 }, 1);
	FAILS(ncclAllReduce(memory, memory, 1, ncclFloat32, ncclSum, comm, NULL), ncclRemoteError);
	OK(ncclCommGetAsyncError(comm, &error));
	ck_assert_int_eq(error, ncclRemoteError);
}
END_TEST

static void *abort_soon(void *comm)
{
	usleep(20000);
	ncclCommAbort(comm);
	return NULL;
}

START_TEST(an_abort_by_another_thread_ends_the_wait)
{
	float *memory = device((const float[]){ 1 }, 1);
	ncclComm_t comms[RANKS];
	pthread_t thread;

	OK(ncclCommInitAll(comms, RANKS, (const int[]){ 0, 0 }));
	ck_assert_int_eq(pthread_create(&thread, NULL, abort_soon, comms[0]), 0);
	FAILS(ncclAllReduce(memory, memory, 1, ncclFloat32, ncclSum, comms[0], NULL),
		ncclInternalError);
	ck_assert_int_eq(pthread_join(thread, NULL), 0);
}
END_TEST

static int left_behind(void)
{
	DIR *folder = opendir("/dev/shm");
	int count = 0;

	for (struct dirent *entry; folder && (entry = readdir(folder));)
		count += strstr(entry->d_name, "cudasim-nccl-") != NULL;
	if (folder)
		closedir(folder);
	return count;
}

START_TEST(once_all_ranks_have_met_no_file_is_left)
{
	int before = left_behind();
	ncclComm_t comms[RANKS];

	OK(ncclCommInitAll(comms, RANKS, (const int[]){ 0, 0 }));
	ck_assert_int_le(left_behind(), before);
}
END_TEST

START_TEST(what_is_wrong_is_refused)
{
	float *memory = device((const float[]){ 1 }, 1);
	ncclUniqueId id = { "../../tmp/x" };
	ncclComm_t comm;

	FAILS(ncclCommInitRank(&comm, 1, id, 0), ncclInvalidArgument);
	OK(ncclGetUniqueId(&id));
	FAILS(ncclCommInitRank(&comm, 2, id, 2), ncclInvalidArgument);
	OK(ncclCommInitRank(&comm, 1, id, 0));
	FAILS(ncclAllReduce(memory, memory, 1, ncclNumTypes, ncclSum, comm, NULL),
		ncclInvalidArgument);
	FAILS(ncclSend(memory, 1, ncclFloat32, 1, comm, NULL), ncclInvalidArgument);
	FAILS(ncclGroupEnd(), ncclInvalidUsage);
}
END_TEST

SUITE("NCCL", two_processes_exchange_values, ranks_of_one_process_exchange_in_a_group,
	both_send_before_they_receive_within_a_group, one_rank_alone_copies_and_launches_nothing,
	narrow_floats_are_rounded_to_the_nearest, colors_split_a_communicator,
	a_rank_whose_process_ended_is_a_remote_error, an_abort_by_another_thread_ends_the_wait,
	once_all_ranks_have_met_no_file_is_left, what_is_wrong_is_refused)
