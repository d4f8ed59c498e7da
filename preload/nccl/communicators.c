/* SPDX-License-Identifier: MIT
 * A table by the handle's hash, in which a handle is at most PROBES slots from its own.
 */
#include "preload/nccl/communicators.h"

#include "collector/file/dictionary.h"
#include "preload/cuda/driver_query.h"

#define NCCL_BUSY ((uintptr_t)1)
#define PROBES 64u

static struct nccl_communicator communicators[NCCL_COMMUNICATORS_MAX];
static _Atomic uint32_t communicator_count;

uint64_t nccl_key(uint64_t key, const void *from, size_t bytes)
{
	const unsigned char *at = from;

	/* FNV-1a */
	key = key ? key : UINT64_C(0xcbf29ce484222325);
	for (size_t i = 0; i < bytes; i++)
		key = (key ^ at[i]) * UINT64_C(0x100000001b3);
	return key ? key : 1;
}

static struct nccl_communicator *communicator_slot(uintptr_t handle, uint32_t probe)
{
	const uint64_t hash = handle * UINT64_C(0x9e3779b97f4a7c15) >> 32;

	return &communicators[(hash + probe) % NCCL_COMMUNICATORS_MAX];
}

struct nccl_communicator *nccl_communicator_find(void *handle)
{
	const uintptr_t wanted = (uintptr_t)handle;

	for (uint32_t i = 0; i < PROBES && wanted > NCCL_BUSY; i++) {
		struct nccl_communicator *one = communicator_slot(wanted, i);

		if (atomic_load_explicit(&one->handle, memory_order_acquire) == wanted)
			return one;
	}
	return NULL;
}

void nccl_communicator_remove(void *handle)
{
	struct nccl_communicator *one = nccl_communicator_find(handle);

	if (one)
		atomic_store_explicit(&one->handle, 0, memory_order_release);
}

static struct nccl_communicator *claim_slot(uintptr_t handle)
{
	for (uint32_t i = 0; i < PROBES; i++) {
		struct nccl_communicator *one = communicator_slot(handle, i);
		uintptr_t none = 0;

		if (atomic_compare_exchange_strong(&one->handle, &none, NCCL_BUSY))
			return one;
	}
	return NULL;
}

void nccl_communicator_add(void *handle, uint64_t key, uint32_t ranks, uint32_t rank)
{
	struct nccl_communicator *one;

	if ((uintptr_t)handle <= NCCL_BUSY)
		return;
	nccl_communicator_remove(handle);
	one = claim_slot((uintptr_t)handle);
	if (!one)
		return;
	one->id = atomic_fetch_add(&communicator_count, 1) + 1;
	one->key = key;
	one->ranks = ranks;
	one->rank = rank;
	one->device = UINT32_MAX;
	atomic_store(&one->sequence, 0);
	atomic_store(&one->splits, 0);
	atomic_store(&one->written, false);
	atomic_store_explicit(&one->handle, (uintptr_t)handle, memory_order_release);
}

/* Queries what the communicator's begin did not show. The call before succeeded, so it is ready. */
static void query_communicator(
	const struct nccl_real *real, void *handle, struct nccl_communicator *one)
{
	int ranks = 0, rank = 0, device = -1;

	if (!one->ranks && real->ncclCommCount && real->ncclCommUserRank &&
		real->ncclCommCount(handle, &ranks) == NCCL_SUCCESS &&
		real->ncclCommUserRank(handle, &rank) == NCCL_SUCCESS && ranks > 0 && rank >= 0) {
		one->ranks = (uint32_t)ranks;
		one->rank = (uint32_t)rank;
	}
	if (real->ncclCommCuDevice && real->ncclCommCuDevice(handle, &device) == NCCL_SUCCESS)
		one->device = (uint32_t)device;
}

struct nccl_communicator *nccl_communicator_of_call(const struct nccl_real *real, void *handle)
{
	struct nccl_communicator *one = nccl_communicator_find(handle);
	struct trace_communicator record = { .head = { .size = sizeof record,
						     .kind = TRACE_COMMUNICATOR } };

	if (!one) {
		nccl_communicator_add(handle, 0, 0, 0);
		one = nccl_communicator_find(handle);
	}
	if (!one || atomic_load_explicit(&one->written, memory_order_acquire))
		return one;
	query_communicator(real, handle, one);
	if (atomic_exchange(&one->written, true))
		return one;
	record.key = one->key;
	record.communicator = one->id;
	record.ranks = one->ranks;
	record.rank = one->rank;
	record.device = one->device;
	dictionary_put(&record.head, 1);
	return one;
}
