/* SPDX-License-Identifier: MIT
 * A word of a ring holds the sequence number and the node, so that a reader gets both or
 * neither. There is no lock that a fork could leave locked.
 */
#include "preload/torch/autograd_sequence.h"

#include "collector/process/fork_wiped_memory.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/mman.h>

#define NODE_BITS 20 /* node ids fit 20 bits: NODE_BUDGET */
#define NODE_MASK ((UINT64_C(1) << NODE_BITS) - 1)
/* Slots of the directory. A thread's slot is its number modulo THREADS; the last one to claim it
 * keeps it. */
#define DIRECTORY_SLOTS (1u << 16)
#define RINGS_MAX 16384u

struct sequence_ring {
	/* logical number of the thread; 0: no owner, the words are not valid */
	_Atomic uint64_t owner;
	/* 0: the thread still runs; else 1 + the number of threads that had ended before it */
	_Atomic uint64_t ended;
	_Atomic uint64_t words[TORCH_SEQUENCES];
};

static uint64_t (*logical_thread)(void);
static pthread_key_t end_key;
static bool end_key_made;

/* Inherited by a forked child, because inherited graphs may run there. */
static struct {
	struct sequence_ring *_Atomic by_thread[DIRECTORY_SLOTS];
	struct sequence_ring *_Atomic all[RINGS_MAX];
	_Atomic uint32_t count;
	_Atomic uint64_t ended;
} * rings;

/* The calling thread's ring.
 *   NULL     none yet
 *   NO_RING  none available, or the thread is ending */
static _Thread_local struct sequence_ring *mine __attribute__((tls_model("initial-exec")));
/* Its address is NO_RING. */
static _Alignas(struct sequence_ring) char no_ring;
#define NO_RING ((struct sequence_ring *)(void *)&no_ring)

/* ---- end of a thread ---- */

static void retire_ring(void *ring)
{
	mine = NO_RING;
	atomic_store_explicit(&((struct sequence_ring *)ring)->ended,
		atomic_fetch_add(&rings->ended, 1) + 1, memory_order_release);
}

void torch_sequence_configure(uint64_t (*current_thread)(void))
{
	if (logical_thread)
		return;
	if (!rings)
		rings = fork_kept_alloc(sizeof *rings);
	if (!end_key_made)
		end_key_made = !pthread_key_create(&end_key, retire_ring);
	if (rings && end_key_made)
		logical_thread = current_thread;
}

/* ---- ring of a thread ---- */

/* Returns the ring whose thread ended first, or NULL. `order`: its thread's number among the ended
 * ones; UINT64_MAX without a ring. */
static struct sequence_ring *first_ended_ring(uint64_t *order)
{
	uint32_t count = atomic_load(&rings->count);
	struct sequence_ring *oldest = NULL, *ring;
	uint64_t ended;

	*order = UINT64_MAX;
	for (uint32_t i = 0; i < count && i < RINGS_MAX; i++) {
		ring = atomic_load_explicit(&rings->all[i], memory_order_acquire);
		ended = ring ? atomic_load_explicit(&ring->ended, memory_order_acquire) : 0;
		if (ended && ended < *order) {
			*order = ended;
			oldest = ring;
		}
	}
	return oldest;
}

/* Returns the ring whose thread ended first, if more than TORCH_SEQUENCE_ENDED threads have
 * ended. Returns NULL if there is none. If two threads want the same ring, one gets it. */
static struct sequence_ring *reuse_ended_ring(void)
{
	uint64_t newest = atomic_load(&rings->ended), best;
	struct sequence_ring *oldest;

	if (newest <= TORCH_SEQUENCE_ENDED)
		return NULL;
	oldest = first_ended_ring(&best);
	if (!oldest || best + TORCH_SEQUENCE_ENDED > newest ||
		!atomic_compare_exchange_strong(&oldest->ended, &best, 0))
		return NULL;
	atomic_store(&oldest->owner, 0);
	if (madvise(oldest->words, sizeof oldest->words, MADV_DONTNEED) != 0)
		return NULL; /* the ring is lost: it has no owner and never ends */
	return oldest;
}

static struct sequence_ring *new_ring(void)
{
	struct sequence_ring *ring;
	uint32_t i = atomic_fetch_add(&rings->count, 1);

	if (i >= RINGS_MAX) {
		atomic_fetch_sub(&rings->count, 1);
		return NULL;
	}
	ring = fork_kept_alloc(sizeof *ring);
	atomic_store_explicit(&rings->all[i], ring, memory_order_release);
	return ring;
}

static void register_ring(struct sequence_ring *ring)
{
	const uint64_t thread = logical_thread();

	atomic_store(&ring->owner, thread);
	atomic_store_explicit(
		&rings->by_thread[thread % DIRECTORY_SLOTS], ring, memory_order_release);
}

static __attribute__((noinline)) struct sequence_ring *claim_ring(void)
{
	int saved = errno;
	struct sequence_ring *ring = NULL;

	if (!logical_thread)
		return NO_RING;
	ring = reuse_ended_ring();
	if (!ring)
		ring = new_ring();
	if (ring && pthread_setspecific(end_key, ring) == 0) {
		register_ring(ring);
		mine = ring;
	} else {
		mine = NO_RING;
	}
	errno = saved;
	return mine;
}

/* ---- recording and reading ---- */

void torch_sequence_record(uint64_t sequence, uint32_t node)
{
	struct sequence_ring *ring = mine;

	if (__builtin_expect(!ring, 0))
		ring = claim_ring();
	if (__builtin_expect(ring != NO_RING && sequence <= TORCH_SEQUENCE_MAX, 1))
		atomic_store_explicit(&ring->words[sequence % TORCH_SEQUENCES],
			sequence << NODE_BITS | (node & NODE_MASK), memory_order_release);
}

uint32_t torch_sequence_node(uint64_t thread, uint64_t sequence)
{
	const struct sequence_ring *ring =
		rings ? atomic_load_explicit(
				&rings->by_thread[thread % DIRECTORY_SLOTS], memory_order_acquire)
		      : NULL;
	uint64_t word;

	if (!ring || sequence > TORCH_SEQUENCE_MAX || atomic_load(&ring->owner) != thread)
		return 0;
	word = atomic_load(&ring->words[sequence % TORCH_SEQUENCES]);
	if (atomic_load(&ring->owner) != thread) /* reused meanwhile */
		return 0;
	return word >> NODE_BITS == sequence ? (uint32_t)(word & NODE_MASK) : 0;
}
