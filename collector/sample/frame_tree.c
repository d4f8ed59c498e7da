/* SPDX-License-Identifier: MIT
 * The nodes are in memory that doubles and is never freed, all of it together less than twice the
 * last. It is empty in a forked child. A hash table of ids finds a child by its parent and content.
 * Most frames of a stack are those of the stack before. Their ids are near each other, so the child
 * that was found last below each frame is tried first: it needs fewer cache lines than the table.
 */
#include "collector/sample/frame_tree.h"

#include "collector/file/dictionary.h"
#include "collector/process/fork_wiped_memory.h"

#include <pthread.h>
#include <stdbool.h>
#include <string.h>

#define LOCK_TRIES 1000u /* some 10 us: the lock is rarely held for longer */
#define FIRST_ROOM 4096u /* frames; a power of two */

struct frame_key {
	uint32_t parent, is_python;
	union {
		uint64_t address;
		struct trace_python_frame at;
	};
};

static struct frame_tree {
	pthread_mutex_t lock;
	uint32_t count, room; /* ids are 1 .. count */
	struct frame_key *keys;
	uint32_t *index; /* 2 * room ids, 0: free */
	uint32_t *last;  /* room + 1: the child of each id that was found last, 0: none */
} * tree;

static uint64_t hash_word(uint64_t value, uint64_t more)
{
	value = (value ^ more) * UINT64_C(0x9e3779b97f4a7c15);
	return value ^ value >> 32;
}

static uint64_t hash_key(const struct frame_key *key)
{
	uint64_t words[sizeof *key / 8], value = 0;

	memcpy(words, key, sizeof words);
	for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
		value = hash_word(value, words[i]);
	return value;
}

static uint32_t *find_place(const struct frame_key *key)
{
	uint64_t at = hash_key(key);

	for (;; at++) {
		uint32_t *place = &tree->index[at & (2 * tree->room - 1)];

		if (!*place || !memcmp(&tree->keys[*place - 1], key, sizeof *key))
			return place;
	}
}

static bool grow(void)
{
	const uint32_t room = tree->room ? 2 * tree->room : FIRST_ROOM;
	struct frame_key *keys = fork_wiped_alloc(room * sizeof *keys);
	uint32_t *index = fork_wiped_alloc(2 * (size_t)room * sizeof *index),
		 *last = fork_wiped_alloc(((size_t)room + 1) * sizeof *last);

	if (!keys || !index || !last)
		return false;
	if (tree->count) {
		memcpy(keys, tree->keys, tree->count * sizeof *keys);
		memcpy(last, tree->last, (tree->count + 1) * sizeof *last);
	}
	tree->keys = keys;
	tree->index = index;
	tree->last = last;
	tree->room = room;
	for (uint32_t id = 1; id <= tree->count; id++)
		*find_place(&keys[id - 1]) = id;
	return true;
}

static void write_frame(uint32_t id, const struct frame_key *key)
{
	struct trace_frame native = { { sizeof native, TRACE_FRAME, 0, 0 }, id, key->parent,
		key->address };
	struct trace_python_node python = { { sizeof python, TRACE_PYTHON_FRAME, 0, 0 }, id,
		key->parent, key->at };

	dictionary_put(key->is_python ? &python.head : &native.head, 0);
}

/* Returns the id of the key, a new one if need be; 0: no room. Under the lock. */
static uint32_t key_id(const struct frame_key *key)
{
	const uint32_t last = tree->count ? tree->last[key->parent] : 0;
	uint32_t *place;

	if (last && !memcmp(&tree->keys[last - 1], key, sizeof *key))
		return last;
	if (tree->count == FRAMES_MAX || (tree->count == tree->room && !grow()))
		return 0;
	place = find_place(key);
	if (!*place) {
		tree->keys[tree->count++] = *key;
		*place = tree->count;
		write_frame(tree->count, key);
	}
	tree->last[key->parent] = *place;
	return *place;
}

static struct frame_tree *allocate_tree(void)
{
	struct frame_tree *there = __atomic_load_n(&tree, __ATOMIC_ACQUIRE), *fresh;

	if (there || !(fresh = fork_wiped_alloc(sizeof *fresh)))
		return there;
	return __atomic_compare_exchange_n(
		       &tree, &there, fresh, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)
		       ? fresh
		       : there;
}

/* Under the lock. `frames`: struct trace_python_frame if `is_python`, else addresses; the innermost
 * first. */
static uint32_t innermost_id(uint32_t parent, bool is_python, const void *frames, uint32_t count)
{
	struct frame_key key;

	memset(&key, 0, sizeof key);
	key.parent = parent;
	key.is_python = is_python;
	for (uint32_t i = count; i-- > 0;) {
		if (is_python)
			key.at = ((const struct trace_python_frame *)frames)[i];
		else
			key.address = ((const uint64_t *)frames)[i];
		if (!(key.parent = key_id(&key)))
			break;
	}
	return key.parent;
}

static uint32_t id_when_free(uint32_t parent, bool is_python, const void *frames, uint32_t count)
{
	uint32_t id;

	if (!allocate_tree())
		return 0;
	pthread_mutex_lock(&tree->lock);
	id = innermost_id(parent, is_python, frames, count);
	pthread_mutex_unlock(&tree->lock);
	return id;
}

uint32_t frame_native_id(uint32_t parent, const uint64_t *addresses, uint32_t count)
{
	return id_when_free(parent, false, addresses, count);
}

uint32_t frame_python_id(uint32_t parent, const struct trace_python_frame *frames, uint32_t count)
{
	return id_when_free(parent, true, frames, count);
}

uint32_t frame_python_id_at_once(const struct trace_python_frame *frames, uint32_t count)
{
	uint32_t id;

	if (!allocate_tree())
		return 0;
	for (unsigned i = 1; pthread_mutex_trylock(&tree->lock); i++)
		if (i == LOCK_TRIES)
			return 0;
	id = innermost_id(0, true, frames, count);
	pthread_mutex_unlock(&tree->lock);
	return id;
}

/* Returns how many of a Python frame and its callers are entry frames. Under the lock. */
static uint32_t count_entries(uint32_t frame)
{
	uint32_t entries = 0;

	for (; frame && frame <= tree->count; frame = tree->keys[frame - 1].parent)
		entries += tree->keys[frame - 1].is_python && tree->keys[frame - 1].at.reserved;
	return entries;
}

uint32_t frame_python_entries(uint32_t frame)
{
	uint32_t entries;

	if (!tree)
		return 0;
	pthread_mutex_lock(&tree->lock);
	entries = count_entries(frame);
	pthread_mutex_unlock(&tree->lock);
	return entries;
}

uint32_t frame_python_outer(uint32_t frame, uint32_t entries)
{
	if (!tree)
		return 0;
	pthread_mutex_lock(&tree->lock);
	for (uint32_t left = count_entries(frame); frame && left > entries;
		frame = tree->keys[frame - 1].parent)
		left -= tree->keys[frame - 1].at.reserved;
	pthread_mutex_unlock(&tree->lock);
	return frame;
}

uint32_t frame_count(void)
{
	const struct frame_tree *there = __atomic_load_n(&tree, __ATOMIC_ACQUIRE);

	return there ? there->count : 0;
}
