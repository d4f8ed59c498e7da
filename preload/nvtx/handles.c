/* SPDX-License-Identifier: MIT
 * A handle is the interned copy of its own content, so the same content has the same address.
 */
#include "preload/nvtx/handles.h"

#include "collector/file/dictionary.h"
#include "collector/file/intern_table.h"
#include "collector/process/signal_guard.h"
#include "collector/stream/stream.h"
#include "preload/nvtx/chained_tool.h"

#include <pthread.h>
#include <string.h>

static struct intern_table handles; /* contents: struct nvtx_handle */
static struct intern_table aliases; /* contents: a handle of the chained tool */
static const struct nvtx_handle **alias_chunks[INTERN_CHUNKS]; /* the handle of each alias */
static uint32_t serials;
/* Locked only within a signal guard. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

void nvtx_handles_forked(void)
{
	pthread_mutex_init(&lock, NULL);
}

/* Returns the id of `bytes`, which are added if they are new. 0: no memory, or the table is full.
 * Called under the lock. */
static uint32_t intern_locked(struct intern_table *table, const void *bytes, size_t count)
{
	uint32_t hash = intern_hash(bytes, count), id = intern_find(table, bytes, count, hash);

	if (id)
		return id;
	id = intern_prepare(table, bytes, count, hash);
	if (id)
		intern_publish(table, id);
	return id;
}

static const struct nvtx_handle *intern_handle(struct nvtx_handle key)
{
	struct signal_guard guard;
	uint32_t id;

	signal_guard_begin(&guard);
	pthread_mutex_lock(&lock);
	id = intern_locked(&handles, &key, sizeof key);
	pthread_mutex_unlock(&lock);
	signal_guard_end(&guard);
	return id ? (const struct nvtx_handle *)(const void *)intern_entry(&handles, id)->bytes
		  : NULL;
}

const struct nvtx_handle *nvtx_handle_make(
	enum nvtx_handle_kind kind, uint32_t domain, const char *text)
{
	struct nvtx_handle key = { .kind = (uint32_t)kind, .domain = domain };
	const struct nvtx_handle *handle;

	if (!stream_enter_dictionary_only())
		return NULL;
	key.name = name_id_always(text, strlen(text));
	if (kind == NVTX_HANDLE_DOMAIN)
		key.domain = key.name;
	if (kind == NVTX_HANDLE_RESOURCE || kind == NVTX_HANDLE_LOCK)
		key.serial = __atomic_add_fetch(&serials, 1, __ATOMIC_RELAXED);
	handle = intern_handle(key);
	stream_leave();
	return handle;
}

static const struct nvtx_handle **alias_slot(uint32_t id)
{
	const struct nvtx_handle ***chunk = &alias_chunks[(id - 1) / INTERN_CHUNK];

	if (!*chunk)
		__atomic_store_n(chunk, intern_alloc(&aliases, INTERN_CHUNK * sizeof **chunk),
			__ATOMIC_RELEASE);
	return *chunk ? &(*chunk)[(id - 1) % INTERN_CHUNK] : NULL;
}

void nvtx_handle_alias(const struct nvtx_handle *handle, const void *chained_handle)
{
	const struct nvtx_handle **slot;
	struct signal_guard guard;
	uint32_t id;

	if (!handle || !chained_handle || !stream_enter_dictionary_only())
		return;
	signal_guard_begin(&guard);
	pthread_mutex_lock(&lock);
	id = intern_locked(&aliases, &chained_handle, sizeof chained_handle);
	slot = id ? alias_slot(id) : NULL;
	if (slot)
		__atomic_store_n(slot, handle, __ATOMIC_RELEASE);
	pthread_mutex_unlock(&lock);
	signal_guard_end(&guard);
	stream_leave();
}

static const struct nvtx_handle *find_alias(const void *program_handle)
{
	uint32_t id = intern_find(&aliases, &program_handle, sizeof program_handle,
		intern_hash(&program_handle, sizeof program_handle));
	const struct nvtx_handle **chunk = id ? __atomic_load_n(
							&alias_chunks[(id - 1) / INTERN_CHUNK],
							__ATOMIC_ACQUIRE)
					      : NULL;

	return chunk ? __atomic_load_n(&chunk[(id - 1) % INTERN_CHUNK], __ATOMIC_ACQUIRE) : NULL;
}

const struct nvtx_handle *nvtx_handle_of(const void *program_handle)
{
	const struct nvtx_handle *alias;

	if (!program_handle || !nvtx_chained())
		return program_handle;
	alias = find_alias(program_handle);
	return alias;
}

uint32_t nvtx_domain_of(const void *program_handle)
{
	const struct nvtx_handle *handle = nvtx_handle_of(program_handle);

	return handle ? handle->domain : 0;
}

const char *nvtx_handle_chars(const struct nvtx_handle *handle)
{
	size_t bytes;

	return handle && handle->name ? name_text(handle->name, &bytes) : "";
}
