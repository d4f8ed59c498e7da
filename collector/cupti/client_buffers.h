/* SPDX-License-Identifier: MIT
 * Requests buffers from the client (client.h) by its callback, and returns them to it by its other
 * callback when they are complete.
 *
 * A partly filled buffer is pending: it waits for the next records. A thread acquires it before it
 * adds records. A thread that finds none pending requests another from the client. While the client
 * has kinds enabled, pperf always holds one of its buffers, because Kineto does not flush before
 * the first request.
 *
 * Any thread may call. No lock is held across a call to the client.
 */
#ifndef PPERF_COLLECTOR_CUPTI_CLIENT_BUFFERS_H
#define PPERF_COLLECTOR_CUPTI_CLIENT_BUFFERS_H

#include "collector/cupti/abi.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct client_buffer {
	uint8_t *memory; /* NULL: none */
	size_t bytes, used;
};

/* A call of the client's callback that provides a buffer. */
struct client_request {
	uint64_t start, end; /* by CUPTI's clock */
	uint32_t thread;
};

/* Stores the client's callbacks. */
void client_buffers_set_callbacks(
	cupti_buffer_requested requested, cupti_buffer_completed completed);

/* Acquires the pending buffer. Returns an empty struct if there is none. */
struct client_buffer client_buffer_acquire(void);
/* Makes `buffer` pending. Completes it instead if another one is pending. Does nothing if it is
 * empty. */
void client_buffer_release(const struct client_buffer *buffer);
/* Reserves `bytes` in `*buffer`. If they do not fit, completes that buffer and requests another,
 * which replaces it. Returns NULL if the client provides no buffer, or one that is too small, which
 * then stays in `*buffer`. */
uint8_t *client_buffer_reserve(struct client_buffer *buffer, size_t bytes);

/* Requests a buffer if none is pending. */
void client_buffers_prefetch(void);
/* Completes the pending buffer. */
void client_buffers_complete(void);

/* Removes the oldest request from the list. At most 16 are kept, later ones are dropped. Returns
 * false if there is none. */
bool client_buffers_take_request(struct client_request *request);

/* Calls the client's callback that provides a buffer, as CUPTI does. Sets `*buffer` to NULL if the
 * client has no callbacks. */
void client_buffer_forward_request(uint8_t **buffer, size_t *bytes, size_t *max_records);
/* Calls the client's callback for a completed buffer, as CUPTI does. Without callbacks the buffer
 * is ignored. */
void client_buffer_forward_complete(
	void *context, uint32_t stream, uint8_t *buffer, size_t bytes, size_t valid);

#endif
