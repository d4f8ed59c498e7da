/* SPDX-License-Identifier: MIT */
#include "collector/cupti/client_buffers.h"

#include "collector/cupti/client_clock.h"
#include "collector/process/signal_guard.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#define REQUESTS_MAX 16u

static _Atomic(cupti_buffer_requested) on_requested;
static _Atomic(cupti_buffer_completed) on_completed;
static pthread_mutex_t pending_lock = PTHREAD_MUTEX_INITIALIZER; /* guards what follows */
static struct client_buffer pending;
static struct client_request requests[REQUESTS_MAX]; /* not taken yet, the oldest first */
static uint32_t request_count;

void client_buffers_set_callbacks(
	cupti_buffer_requested requested, cupti_buffer_completed completed)
{
	atomic_store(&on_requested, requested);
	atomic_store(&on_completed, completed);
}

void client_buffer_forward_request(uint8_t **buffer, size_t *bytes, size_t *max_records)
{
	cupti_buffer_requested requested_callback = atomic_load(&on_requested);

	*buffer = NULL;
	*bytes = 0;
	*max_records = 0;
	if (requested_callback)
		requested_callback(buffer, bytes, max_records);
}

void client_buffer_forward_complete(
	void *context, uint32_t stream, uint8_t *buffer, size_t bytes, size_t valid)
{
	cupti_buffer_completed completed_callback = atomic_load(&on_completed);

	if (buffer && completed_callback)
		completed_callback(context, stream, buffer, bytes, valid);
}

static void complete_buffer(const struct client_buffer *buffer)
{
	client_buffer_forward_complete(NULL, 0, buffer->memory, buffer->bytes, buffer->used);
}

static void note_request(struct client_request request)
{
	struct signal_guard guard;

	request.end = client_clock_cupti_ns();
	request.thread = (uint32_t)syscall(SYS_gettid);
	signal_guard_begin(&guard);
	pthread_mutex_lock(&pending_lock);
	if (request_count < REQUESTS_MAX)
		requests[request_count++] = request;
	pthread_mutex_unlock(&pending_lock);
	signal_guard_end(&guard);
}

bool client_buffers_take_request(struct client_request *request)
{
	struct signal_guard guard;
	bool any;

	signal_guard_begin(&guard);
	pthread_mutex_lock(&pending_lock);
	any = request_count != 0;
	if (any) {
		*request = requests[0];
		memmove(requests, requests + 1, --request_count * sizeof requests[0]);
	}
	pthread_mutex_unlock(&pending_lock);
	signal_guard_end(&guard);
	return any;
}

static struct client_buffer request_buffer(void)
{
	struct client_request request = { .start = client_clock_cupti_ns() };
	struct client_buffer buffer = { NULL, 0, 0 };
	/* Ignored: a buffer gets as many records as fit in it. */
	size_t max_records_unused;

	client_buffer_forward_request(&buffer.memory, &buffer.bytes, &max_records_unused);
	note_request(request);
	return buffer;
}

struct client_buffer client_buffer_acquire(void)
{
	struct client_buffer acquired;
	struct signal_guard guard;

	signal_guard_begin(&guard);
	pthread_mutex_lock(&pending_lock);
	acquired = pending;
	pending = (struct client_buffer){ NULL, 0, 0 };
	pthread_mutex_unlock(&pending_lock);
	signal_guard_end(&guard);
	return acquired;
}

void client_buffer_release(const struct client_buffer *buffer)
{
	struct signal_guard guard;
	bool is_pending;

	if (!buffer->memory)
		return;
	signal_guard_begin(&guard);
	pthread_mutex_lock(&pending_lock);
	is_pending = !pending.memory;
	if (is_pending)
		pending = *buffer;
	pthread_mutex_unlock(&pending_lock);
	signal_guard_end(&guard);
	if (!is_pending)
		complete_buffer(buffer);
}

uint8_t *client_buffer_reserve(struct client_buffer *buffer, size_t bytes)
{
	if (buffer->memory && buffer->bytes - buffer->used < bytes) {
		complete_buffer(buffer);
		buffer->memory = NULL;
	}
	if (!buffer->memory)
		*buffer = request_buffer();
	if (!buffer->memory || buffer->bytes < bytes)
		return NULL;
	buffer->used += bytes;
	return buffer->memory + buffer->used - bytes;
}

void client_buffers_prefetch(void)
{
	struct client_buffer buffer = client_buffer_acquire();

	if (!buffer.memory)
		buffer = request_buffer();
	client_buffer_release(&buffer);
}

void client_buffers_complete(void)
{
	struct client_buffer buffer = client_buffer_acquire();

	complete_buffer(&buffer);
}
