/* SPDX-License-Identifier: MIT
 * A table by the handle's hash, in which a handle is at most PROBES slots from its own.
 */
#include "preload/nccl/communicators.h"

#include "collector/file/dictionary.h"
#include "preload/cuda/driver_query.h"

#include <string.h>

#define NCCL_BUSY ((uintptr_t)1)
#define PROBES 64u
#define NAME_BYTES_MAX 256u

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

static uint32_t new_communicator_id(void)
{
	return atomic_fetch_add(&communicator_count, 1) + 1;
}

const char *nccl_config_name(const struct nccl_config *config)
{
	return config && config->size >= sizeof *config && config->magic == NCCL_CONFIG_MAGIC &&
			       config->version >= NCCL_CONFIG_WITH_NAME && config->comm_name &&
			       *config->comm_name
		       ? config->comm_name
		       : NULL;
}

static void put_communicator(
	uint32_t id, uint64_t key, uint32_t ranks, uint32_t rank, uint32_t device, const char *name)
{
	struct trace_communicator record = { .head = { .size = sizeof record,
						     .kind = TRACE_COMMUNICATOR },
		.key = key,
		.communicator = id,
		.ranks = ranks,
		.rank = rank,
		.device = device,
		.name = name ? name_id(name, strnlen(name, NAME_BYTES_MAX)) : 0 };

	dictionary_put(&record.head, 1);
}

uint32_t nccl_communicator_announce(uint64_t key, uint32_t ranks, uint32_t rank, const char *name)
{
	const uint32_t id = new_communicator_id();

	put_communicator(id, key, ranks, rank, driver_device(), name);
	return id;
}

void nccl_communicator_add(void *handle, uint32_t id, uint64_t key, uint32_t ranks, uint32_t rank)
{
	struct nccl_communicator *one;

	if ((uintptr_t)handle <= NCCL_BUSY)
		return;
	nccl_communicator_remove(handle);
	one = claim_slot((uintptr_t)handle);
	if (!one)
		return;
	one->id = id ? id : new_communicator_id();
	one->key = key;
	one->ranks = ranks;
	one->rank = rank;
	atomic_store(&one->sequence, 0);
	atomic_store(&one->splits, 0);
	atomic_store(&one->written, id != 0);
	atomic_store_explicit(&one->handle, (uintptr_t)handle, memory_order_release);
}

struct nccl_communicator *nccl_communicator_of(void *handle)
{
	struct nccl_communicator *one = nccl_communicator_find(handle);

	if (one)
		return one;
	nccl_communicator_add(handle, 0, 0, 0, 0);
	return nccl_communicator_find(handle);
}

void nccl_communicator_write(
	const struct nccl_real *real, void *handle, struct nccl_communicator *one, const char *name)
{
	int ranks = 0, rank = 0, device = -1;

	if (atomic_load_explicit(&one->written, memory_order_acquire) ||
		atomic_exchange(&one->written, true))
		return;
	if (!one->ranks && real->ncclCommCount && real->ncclCommUserRank &&
		real->ncclCommCount(handle, &ranks) == NCCL_SUCCESS &&
		real->ncclCommUserRank(handle, &rank) == NCCL_SUCCESS && ranks > 0 && rank >= 0) {
		one->ranks = (uint32_t)ranks;
		one->rank = (uint32_t)rank;
	}
	if (real->ncclCommCuDevice && real->ncclCommCuDevice(handle, &device) != NCCL_SUCCESS)
		device = -1;
	put_communicator(one->id, one->key, one->ranks, one->rank, (uint32_t)device, name);
}
