/* SPDX-License-Identifier: MIT
 * cupti_guest_buffer.h: the buffers of another client of CUPTI's (cupti_guest.h), asked of its own callback and
 * given back to the other.
 *
 * One that is not full waits for the next records. Whoever fills it takes it out first; who finds none there asks the
 * guest for another. The guest always holds one while it has kinds enabled: Kineto does not flush before it was asked
 * for a buffer.
 *
 * Threads: any. No lock is held across a call to the guest.
 */
#ifndef PPERF_COLLECTOR_CUPTI_CLIENT_BUFFERS_H
#define PPERF_COLLECTOR_CUPTI_CLIENT_BUFFERS_H

#include "collector/cupti/abi.h"

#include <stddef.h>
#include <stdint.h>

struct client_buffer {
	uint8_t *memory; /* NULL: none */
	size_t bytes, used;
};

/* The guest's callbacks, from now on. */
void client_buffers_set_callbacks(
	cupti_buffer_requested requested, cupti_buffer_completed completed);

/* The one that waits; that of nobody if there is none. */
struct client_buffer client_buffer_acquire(void);
/* For the next records; or the guest gets it as it is, where another thread has left one. */
void client_buffer_release(const struct client_buffer *buffer);
/* Where `bytes` more go, in this one or, once that is full, in another; NULL: nowhere. */
uint8_t *client_buffer_reserve(struct client_buffer *buffer, size_t bytes);

/* One waits from now on. */
void client_buffers_prefetch(void);
/* The guest gets the one that waits, as it is. */
void client_buffers_complete(void);

/* The guest's callbacks, called as CUPTI calls them. Without: there is no buffer, and one that is completed is forgotten. */
void client_buffer_forward_request(uint8_t **buffer, size_t *bytes, size_t *max_records);
void client_buffer_forward_complete(
	void *context, uint32_t stream, uint8_t *buffer, size_t bytes, size_t valid);

#endif
