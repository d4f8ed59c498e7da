/* SPDX-License-Identifier: MIT
 * Reads in which range another thread is, without stopping it.
 */
#ifndef PPERF_COLLECTOR_STREAM_PEER_H
#define PPERF_COLLECTOR_STREAM_PEER_H

#include <stdbool.h>
#include <stdint.h>

struct stream;

/* Returns the stream of the thread with this kernel id; NULL: it has none. The memory is never
 * freed, but may become another thread's stream. Any thread may call it, not in a signal handler.
 */
struct stream *stream_peer_find(uint32_t tid);

/* Stores the node of the innermost range that is open on thread `tid`, 0 if none is. Returns false
 * if `peer` is no longer its stream, or if that node is not known because the range began while
 * recording was paused. Takes no lock. */
bool stream_peer_node(const struct stream *peer, uint32_t tid, uint32_t *node);

/* Returns a number that grows when a thread of this process gets a stream. */
uint64_t stream_peer_count(void);

#endif
