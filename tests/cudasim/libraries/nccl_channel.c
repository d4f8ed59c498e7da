/* SPDX-License-Identifier: MIT
 * nccl_channel.c: see nccl_channel.h.
 */
#include "libraries/nccl_channel.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define RING_BYTES ((uint64_t)64 << 10)
#define PATH_BYTES 256
#define LEFT (-1)

struct ring {
	uint64_t written; /* ever; only its writer changes it */
	char pad[56];     /* each counter in a cache line of its own */
	uint64_t read;    /* ever; only its reader changes it */
	char pad2[56];
	char bytes[RING_BYTES];
};

/* The file. All zero is its beginning. */
struct shared {
	int32_t joined;
	/* of the ranks; 0: has not come yet, LEFT: has gone */
	int32_t processes[CHANNEL_RANKS_MAX];
	struct ring rings[]; /* [from * ranks + to] */
};

struct channel {
	struct shared *shared;
	size_t bytes;
	int ranks, rank;
	char path[PATH_BYTES];
};

static int open_file(struct channel *channel, const char *name, const char *folder)
{
	snprintf(channel->path, sizeof(channel->path), "%s/cudasim-nccl-%s", folder, name);
	return open(channel->path, O_CREAT | O_RDWR | O_CLOEXEC, 0600);
}

struct channel *channel_open(const char *name, int ranks, int rank)
{
	struct channel *channel = calloc(1, sizeof(*channel));
	int file;

	if (!channel)
		return NULL;
	channel->ranks = ranks;
	channel->rank = rank;
	channel->bytes = sizeof(struct shared) +
			 (size_t)ranks * (size_t)ranks * sizeof(struct ring);
	file = open_file(channel, name, "/dev/shm");
	if (file < 0)
		file = open_file(channel, name, "/tmp");
	if (file >= 0 && ftruncate(file, (off_t)channel->bytes) == 0) {
		channel->shared = mmap(
			NULL, channel->bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
		close(file);
		if (channel->shared != MAP_FAILED) {
			__atomic_store_n(&channel->shared->processes[rank], (int32_t)getpid(),
				__ATOMIC_RELAXED);
			/* The last to come takes the name away: nobody needs it any more. */
			if (__atomic_add_fetch(&channel->shared->joined, 1, __ATOMIC_ACQ_REL) ==
				ranks)
				unlink(channel->path);
			return channel;
		}
	} else if (file >= 0) {
		close(file);
	}
	free(channel);
	return NULL;
}

bool channel_complete(struct channel *channel)
{
	return __atomic_load_n(&channel->shared->joined, __ATOMIC_ACQUIRE) >= channel->ranks;
}

bool channel_gone(struct channel *channel, int rank)
{
	int process = __atomic_load_n(&channel->shared->processes[rank], __ATOMIC_ACQUIRE);

	return process == LEFT || (process && kill((pid_t)process, 0) != 0 && errno == ESRCH);
}

bool channel_abandoned(struct channel *channel)
{
	for (int i = 0; i < channel->ranks; i++)
		if (channel_gone(channel, i))
			return true;
	return false;
}

static struct ring *ring_of(struct channel *channel, int from, int to)
{
	return &channel->shared->rings[from * channel->ranks + to];
}

static size_t least(uint64_t a, uint64_t b)
{
	return (size_t)(a < b ? a : b);
}

/* Acquire and release: what a counter says is there has been written, or has been read. */
size_t channel_write(struct channel *channel, int to, const void *bytes, size_t count)
{
	struct ring *ring = ring_of(channel, channel->rank, to);
	uint64_t at = ring->written,
		 room = RING_BYTES - (at - __atomic_load_n(&ring->read, __ATOMIC_ACQUIRE));
	size_t part = least(count, room), first = least(part, RING_BYTES - at % RING_BYTES);

	memcpy(ring->bytes + at % RING_BYTES, bytes, first);
	memcpy(ring->bytes, (const char *)bytes + first, part - first);
	__atomic_store_n(&ring->written, at + part, __ATOMIC_RELEASE);
	return part;
}

size_t channel_read(struct channel *channel, int from, void *bytes, size_t count)
{
	struct ring *ring = ring_of(channel, from, channel->rank);
	uint64_t at = ring->read, there = __atomic_load_n(&ring->written, __ATOMIC_ACQUIRE) - at;
	size_t part = least(count, there), first = least(part, RING_BYTES - at % RING_BYTES);

	memcpy(bytes, ring->bytes + at % RING_BYTES, first);
	memcpy((char *)bytes + first, ring->bytes, part - first);
	__atomic_store_n(&ring->read, at + part, __ATOMIC_RELEASE);
	return part;
}

void channel_leave(struct channel *channel)
{
	/* Release: what was written before is there for who sees that this rank has gone. */
	__atomic_store_n(&channel->shared->processes[channel->rank], LEFT, __ATOMIC_RELEASE);
	if (!channel_complete(channel))
		unlink(channel->path);
}

void channel_close(struct channel *channel)
{
	channel_leave(channel);
	munmap(channel->shared, channel->bytes);
	free(channel);
}
