/* SPDX-License-Identifier: MIT
 * How ranks reach each other: a small file in shared memory, named by the communicator's id, with a
 * ring of bytes for every pair of ranks (and direction). Each ring has one writer and one reader,
 * which may be in one process or in two. The file's name is gone once all ranks have it open, so
 * nothing is left behind.
 */
#ifndef NCCL_CHANNEL_H
#define NCCL_CHANNEL_H

#include <stdbool.h>
#include <stddef.h>

#define CHANNEL_RANKS_MAX 64

struct channel;

/* Opens it (the first rank makes it); NULL: errno says why. Waits for nobody. */
struct channel *channel_open(const char *name, int ranks, int rank);
/* Whether all ranks have opened it. */
bool channel_complete(struct channel *channel);
/* Whether it will never be complete: the process of a rank that had opened it is no more. */
bool channel_abandoned(struct channel *channel);
/* Whether that rank has closed it, or its process is no more. What it has written can still be
 * read. */
bool channel_gone(struct channel *channel, int rank);
/* Moves as much as there is room for (or as there is) and gives the number of bytes, maybe 0. */
size_t channel_write(struct channel *channel, int to, const void *bytes, size_t count);
size_t channel_read(struct channel *channel, int from, void *bytes, size_t count);
/* From now on this rank is gone for the others; it may close later, or never. */
void channel_leave(struct channel *channel);
void channel_close(struct channel *channel);

#endif
