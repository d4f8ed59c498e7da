/* SPDX-License-Identifier: MIT
 * cupti_guest_buffer.c: see cupti_guest_buffer.h.
 */
#include "collector/cupti/client_buffers.h"

#include "collector/process/signal_guard.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

static _Atomic(cupti_buffer_requested) on_requested;
static _Atomic(cupti_buffer_completed) on_completed;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* of what follows */
static struct guest_buffer waits;

void guest_buffers_of(cupti_buffer_requested requested, cupti_buffer_completed completed)
{
	atomic_store(&on_requested, requested);
	atomic_store(&on_completed, completed);
}

void guest_buffer_request(uint8_t **buffer, size_t *bytes, size_t *most_records)
{
	cupti_buffer_requested ask = atomic_load(&on_requested);

	*buffer = NULL;
	*bytes = 0;
	*most_records = 0;
	if (ask)
		ask(buffer, bytes, most_records);
}

void guest_buffer_complete(void *context, uint32_t stream, uint8_t *buffer, size_t bytes, size_t valid)
{
	cupti_buffer_completed tell = atomic_load(&on_completed);

	if (buffer && tell)
		tell(context, stream, buffer, bytes, valid);
}

static void complete(const struct guest_buffer *buffer)
{
	guest_buffer_complete(NULL, 0, buffer->memory, buffer->bytes, buffer->used);
}

static struct guest_buffer request(void)
{
	struct guest_buffer buffer = { NULL, 0, 0 };
	size_t most; /* as many as fit: a bound on their number is not kept */

	guest_buffer_request(&buffer.memory, &buffer.bytes, &most);
	return buffer;
}

struct guest_buffer guest_buffer_take(void)
{
	struct guest_buffer taken;
	struct quiet quiet;

	quiet_begin(&quiet);
	pthread_mutex_lock(&lock);
	taken = waits;
	waits = (struct guest_buffer) { NULL, 0, 0 };
	pthread_mutex_unlock(&lock);
	quiet_end(&quiet);
	return taken;
}

void guest_buffer_leave(const struct guest_buffer *buffer)
{
	struct quiet quiet;
	bool left;

	if (!buffer->memory)
		return;
	quiet_begin(&quiet);
	pthread_mutex_lock(&lock);
	left = !waits.memory;
	if (left)
		waits = *buffer;
	pthread_mutex_unlock(&lock);
	quiet_end(&quiet);
	if (!left)
		complete(buffer);
}

uint8_t *guest_buffer_room(struct guest_buffer *buffer, size_t bytes)
{
	if (buffer->memory && buffer->bytes - buffer->used < bytes) {
		complete(buffer);
		buffer->memory = NULL;
	}
	if (!buffer->memory)
		*buffer = request();
	if (!buffer->memory || buffer->bytes < bytes)
		return NULL;
	buffer->used += bytes;
	return buffer->memory + buffer->used - bytes;
}

void guest_buffers_hold(void)
{
	struct guest_buffer buffer = guest_buffer_take();

	if (!buffer.memory)
		buffer = request();
	guest_buffer_leave(&buffer);
}

void guest_buffers_give(void)
{
	struct guest_buffer left = guest_buffer_take();

	complete(&left);
}
