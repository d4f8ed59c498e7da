/* SPDX-License-Identifier: MIT
 * nccl_operation.c: see nccl_operation.h.
 */
#include "libraries/nccl_operation.h"

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "libraries/nccl_channel.h"

#define THREADS 544           /* of NCCL's blocks */
#define CHANNEL_BYTES 1048576 /* that one block moves, about */
#define CHANNELS_MAX 24
#define SPINS 64     /* idle rounds before it sleeps */
#define SLEEP_US 50u /* in an idle round */

static _Thread_local struct nccl_operation *submitted, **last; /* of the open group */
static _Thread_local int depth;

struct nccl_operation *nccl_operation_new(ncclComm_t comm, void *stream, int transfers)
{
	struct nccl_operation *operation = library_new(sizeof(*operation));

	if (!operation)
		return NULL;
	operation->comm = comm;
	operation->stream = stream;
	operation->kernel = "";
	operation->transfers = calloc((size_t)transfers + 1, sizeof(*operation->transfers));
	if (operation->transfers)
		return operation;
	free(operation);
	return NULL;
}

static void add(struct nccl_operation *operation, struct nccl_transfer transfer)
{
	operation->transfers[operation->transfer_count++] = transfer;
}

void nccl_send(struct nccl_operation *operation, int peer, const void *bytes, size_t count)
{
	add(operation, (struct nccl_transfer){
			       .peer = peer, .bytes = (char *)(uintptr_t)bytes, .count = count });
}

void nccl_receive(struct nccl_operation *operation, int peer, void *bytes, size_t count)
{
	add(operation, (struct nccl_transfer){
			       .peer = peer, .receive = true, .bytes = bytes, .count = count });
}

static void discard(struct nccl_operation *operations)
{
	for (struct nccl_operation *next, *o = operations; o; o = next) {
		next = o->next;
		free(o->own);
		free(o->gathered);
		free(o->transfers);
		free(o);
	}
}

static size_t move(const struct nccl_operation *operation, struct nccl_transfer *t)
{
	struct channel *channel = operation->comm->channel;
	char *at = t->bytes + t->done;
	size_t left = t->count - t->done;

	return t->receive ? channel_read(channel, t->peer, at, left)
			  : channel_write(channel, t->peer, at, left);
}

/* What a pass over the group found. */
struct pass {
	bool moved, left;
	ncclResult_t result;
};

/* A peer that has gone has left nothing in the ring, if nothing comes when it is known to be gone.
 */
static void advance(struct nccl_operation *operation, struct nccl_transfer *t, bool suspicious,
	struct pass *pass)
{
	struct ncclComm *comm = operation->comm;
	uint64_t *blocked = &comm->blocked[t->receive], bit = (uint64_t)1 << t->peer;
	bool gone = suspicious && channel_gone(comm->channel, t->peer);
	size_t bytes;

	pass->left = true;
	/* Of what goes between two ranks, the first must be through before the next begins. */
	if (*blocked & bit)
		return;
	bytes = move(operation, t);
	t->done += bytes;
	if (bytes)
		pass->moved = true;
	else if (gone)
		pass->result = ncclRemoteError;
	if (t->done < t->count)
		*blocked |= bit;
}

static struct pass pass_over(struct nccl_operation *operations, bool suspicious)
{
	struct pass pass = { .result = ncclSuccess };

	for (struct nccl_operation *o = operations; o; o = o->next)
		o->comm->blocked[0] = o->comm->blocked[1] = 0;
	for (struct nccl_operation *o = operations; o; o = o->next) {
		if (__atomic_load_n(&o->comm->aborted, __ATOMIC_RELAXED))
			pass.result = ncclInternalError;
		if (!channel_complete(o->comm->channel)) {
			pass.left = true;
			if (suspicious && channel_abandoned(o->comm->channel))
				pass.result = ncclRemoteError;
			continue;
		}
		for (int i = 0; i < o->transfer_count; i++)
			if (o->transfers[i].done < o->transfers[i].count)
				advance(o, &o->transfers[i], suspicious, &pass);
	}
	return pass;
}

/* Moves all bytes of the group. */
static ncclResult_t move_all(struct nccl_operation *operations)
{
	for (int idle = 0;;) {
		struct pass pass = pass_over(operations, idle > SPINS);

		if (pass.result != ncclSuccess)
			return pass.result;
		if (!pass.left)
			return ncclSuccess;
		idle = pass.moved ? 0 : idle + 1;
		if (idle > SPINS)
			usleep(SLEEP_US);
		else if (idle)
			sched_yield();
	}
}

/* Launches the kernel that does the work of all operations of one communicator in one stream. */
static ncclResult_t launch(const struct nccl_operation *first)
{
	char name[160];
	uint64_t bytes = 0;
	struct library_kernel kernel = { .name = name, .block = { THREADS, 1, 1 } };

	for (const struct nccl_operation *o = first; o; o = o->next)
		if (o->comm == first->comm && o->stream == first->stream)
			bytes += o->bytes;
	snprintf(name, sizeof(name), "_Z%zuncclDevKernel_%s24ncclDevKernelArgsStorageILm4096EE",
		strlen("ncclDevKernel_") + strlen(first->kernel), first->kernel);
	kernel.grid = library_grid(bytes, 1, CHANNEL_BYTES, CHANNELS_MAX);
	return library_launch_on(first->comm->device, &kernel, first->stream) == 0
		       ? ncclSuccess
		       : ncclUnhandledCudaError;
}

static bool launched_before(
	const struct nccl_operation *operations, const struct nccl_operation *operation)
{
	for (const struct nccl_operation *o = operations; o != operation; o = o->next)
		if (o->kernel[0] && o->comm == operation->comm && o->stream == operation->stream)
			return true;
	return false;
}

static void settle(struct nccl_operation *operation)
{
	for (int i = 0; i < operation->transfer_count; i++)
		if (operation->transfers[i].receive && operation->kernel[0] && !operation->gathered)
			library_written(
				operation->transfers[i].bytes, operation->transfers[i].count);
	if (operation->finish)
		operation->finish(operation);
}

static ncclResult_t run(struct nccl_operation *operations)
{
	ncclResult_t result = operations ? move_all(operations) : ncclSuccess;

	for (struct nccl_operation *o = operations; o; o = o->next) {
		if (result == ncclSuccess)
			settle(o);
		if (result == ncclSuccess && o->kernel[0] && !launched_before(operations, o))
			result = launch(o);
		if (result != ncclSuccess)
			o->comm->error = result;
	}
	discard(operations);
	return result;
}

ncclResult_t nccl_run_now(struct nccl_operation *operation)
{
	return operation ? run(operation) : ncclSystemError;
}

ncclResult_t nccl_submit(struct nccl_operation *operation)
{
	if (!operation)
		return ncclSystemError;
	if (depth == 0)
		return run(operation);
	*(submitted ? last : &submitted) = operation;
	last = &operation->next;
	return ncclSuccess;
}

void nccl_group_begin(void)
{
	depth++;
}

ncclResult_t nccl_group_end(void)
{
	struct nccl_operation *operations = submitted;

	if (depth == 0)
		return ncclInvalidUsage;
	if (--depth > 0)
		return ncclSuccess;
	submitted = NULL;
	return run(operations);
}

ncclResult_t nccl_wait_complete(ncclComm_t comm)
{
	return nccl_submit(nccl_operation_new(comm, NULL, 0));
}
