/*
 * The client's buffers: requested when a record has no room, filled, and handed back when they are
 * full or flushed. What finds no room is counted as dropped.
 *
 * Buffers are kept in slots: one for each thread where buffers are per thread, else one for all,
 * and one for the worker. A thread that ends leaves its slot, with what is in it, to the next
 * thread.
 */
#include "cupti/parts.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

struct buffer {
	uint8_t *bytes; /* NULL: none */
	size_t size;
	size_t used;
	size_t limit; /* records it may hold, 0: as many as there is room for */
	size_t count;
	struct buffer *next; /* in the list of full ones */
};

struct slot {
	struct buffer buffer;
	struct slot *next;
	bool taken;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static CUpti_BuffersCallbackRequestFunc request;
static CUpti_BuffersCallbackCompleteFunc complete;
static atomic_bool registered;
static struct slot shared, worker;
static struct slot *threads;
static struct buffer *full, **full_end = &full;
static atomic_ullong dropped, put, delivered;

static pthread_once_t once = PTHREAD_ONCE_INIT;
static pthread_key_t thread_ends;
static _Thread_local struct slot *own;

static void give_up_slot(void *slot)
{
	pthread_mutex_lock(&lock);
	((struct slot *)slot)->taken = false;
	pthread_mutex_unlock(&lock);
}

static void create_key(void)
{
	if (pthread_key_create(&thread_ends, give_up_slot))
		abort();
}

static struct slot *take_slot(void)
{
	struct slot *slot = threads;

	while (slot && slot->taken)
		slot = slot->next;
	if (!slot) {
		slot = calloc(1, sizeof *slot);
		if (!slot)
			abort();
		slot->next = threads;
		threads = slot;
	}
	slot->taken = true;
	return slot;
}

static struct slot *slot_of(enum buffer_owner owner)
{
	if (!activity_per_thread())
		return &shared;
	if (owner == BUFFER_DEVICE)
		return &worker;
	if (!own) {
		pthread_once(&once, create_key);
		own = take_slot();
		pthread_setspecific(thread_ends, own);
	}
	return own;
}

static void seal(struct buffer *buffer)
{
	struct buffer *sealed = malloc(sizeof *sealed);

	if (!sealed)
		abort();
	*sealed = *buffer;
	sealed->next = NULL;
	*full_end = sealed;
	full_end = &sealed->next;
	buffer->bytes = NULL;
}

static void append(struct buffer *buffer, const uint8_t *bytes, size_t length)
{
	memcpy(buffer->bytes + buffer->used, bytes, length);
	buffer->used += length;
	buffer->count++;
}

static bool has_room(const struct buffer *buffer, size_t length)
{
	return buffer->bytes && buffer->size - buffer->used >= length &&
	       (!buffer->limit || buffer->count < buffer->limit);
}

/* Before 12.9 the library did not survive a client that had no buffer for it. */
static void check_decline(void)
{
	sigset_t crash;

	if (switches()->version >= CUPTI_12_9)
		return;
	fprintf(stderr, "simulated CUPTI: no buffer given; versions before 12.9 crash here\n");
	sigemptyset(&crash);
	sigaddset(&crash, SIGSEGV);
	pthread_sigmask(SIG_UNBLOCK, &crash, NULL); /* the worker blocks all signals */
	raise(SIGSEGV);
}

static void put_request_overhead(struct buffer *buffer, uint64_t start_ns, uint64_t end_ns)
{
	const struct sim_scope *scope = sim_current_scope();
	struct record record;

	if (switches()->version < CUPTI_12_6 || !activity_on(CUPTI_ACTIVITY_KIND_OVERHEAD, 0))
		return;
	record_overhead(&record, CUPTI_ACTIVITY_OVERHEAD_ACTIVITY_BUFFER_REQUEST, start_ns, end_ns,
		scope ? scope->correlation : 0);
	if (has_room(buffer, record.length))
		append(buffer, record.bytes, record.length);
}

/* Asks the client for a buffer. False: it has none. */
static bool open_buffer(struct buffer *buffer)
{
	uint64_t start_ns = clock_now();

	memset(buffer, 0, sizeof *buffer);
	entry_in_buffer_callback(1);
	request(&buffer->bytes, &buffer->size, &buffer->limit);
	entry_in_buffer_callback(-1);
	if (!buffer->bytes) {
		check_decline();
		return false;
	}
	if ((uintptr_t)buffer->bytes % 8) {
		fprintf(stderr, "simulated CUPTI: the client's buffer is not 8-byte aligned\n");
		abort();
	}
	if (!activity_zeroed())
		memset(buffer->bytes, 0, buffer->size);
	put_request_overhead(buffer, start_ns, clock_now());
	return true;
}

enum outcome { STORED, STORED_AND_SEALED, DECLINED };

/* The lock is held. */
static enum outcome store(struct buffer *buffer, const uint8_t *bytes, size_t length)
{
	bool sealed = false;

	if (buffer->bytes && !has_room(buffer, length)) {
		seal(buffer);
		sealed = true;
	}
	if (!buffer->bytes && !open_buffer(buffer)) {
		dropped++;
		return DECLINED;
	}
	if (has_room(buffer, length))
		append(buffer, bytes, length);
	else
		dropped++;
	return sealed ? STORED_AND_SEALED : STORED;
}

static void after_store(enum outcome outcome)
{
	if (outcome == STORED_AND_SEALED)
		worker_wake();
	if (outcome == DECLINED)
		subscriber_state(CUPTI_CBID_STATE_WARNING, CUPTI_ERROR_OUT_OF_MEMORY,
			"no activity buffer was given: records are dropped");
}

static bool is_lost(uint64_t nth)
{
	const struct switches *switches_ = switches();

	if (switches_->silent_drop && nth % switches_->silent_drop == 0)
		return true;
	if (switches_->drop && nth % switches_->drop == 0) {
		dropped++;
		return true;
	}
	return false;
}

static enum outcome put_unknown(struct buffer *buffer)
{
	uint8_t bytes[UNKNOWN_BYTES];
	uint32_t kind = UNKNOWN_KIND;

	memset(bytes, 0xa5, sizeof bytes);
	memcpy(bytes, &kind, sizeof kind);
	return store(buffer, bytes, sizeof bytes);
}

void buffer_put(enum buffer_owner owner, const struct record *record)
{
	unsigned unknown = switches()->unknown;
	enum outcome outcome;
	uint64_t nth;

	if (!record->length || !registered)
		return;
	nth = ++put;
	if (is_lost(nth))
		return;
	pthread_mutex_lock(&lock);
	outcome = store(&slot_of(owner)->buffer, record->bytes, record->length);
	if (outcome != DECLINED && unknown && nth % unknown == 0)
		put_unknown(&slot_of(owner)->buffer);
	pthread_mutex_unlock(&lock);
	after_store(outcome);
}

void buffer_put_incomplete(const struct record *const *records, size_t count)
{
	struct buffer *buffer;

	if (!registered || !count)
		return;
	pthread_mutex_lock(&lock);
	buffer = &slot_of(BUFFER_DEVICE)->buffer;
	for (size_t i = 0; i < count; i++) {
		uint8_t bytes[CUPTI_RECORD_MAX];

		memcpy(bytes, records[i]->bytes, sizeof bytes);
		memset(bytes, 0, sizeof(uint32_t));
		store(buffer, bytes, records[i]->length);
	}
	if (buffer->bytes)
		seal(buffer);
	pthread_mutex_unlock(&lock);
}

/* SIM_CUPTI_INVALID: makes a reader of this buffer stop halfway. */
static void spoil(struct buffer *buffer)
{
	size_t at = 0;

	for (size_t i = 0; i < buffer->count / 2; i++) {
		uint32_t kind;

		memcpy(&kind, buffer->bytes + at, sizeof kind);
		at += record_length(kind);
	}
	memset(buffer->bytes + at, 0, sizeof(uint32_t));
}

static void *call_complete(void *data)
{
	const struct buffer *buffer = data;

	entry_in_buffer_callback(1);
	complete(NULL, 0, buffer->bytes, buffer->size, buffer->used);
	entry_in_buffer_callback(-1);
	return NULL;
}

static bool complete_elsewhere(struct buffer *buffer)
{
	pthread_t thread;

	return !pthread_create(&thread, NULL, call_complete, buffer) && !pthread_join(thread, NULL);
}

static void hand_over(struct buffer *buffer)
{
	unsigned invalid = switches()->invalid;

	if (invalid && ++delivered % invalid == 0)
		spoil(buffer);
	if (!switches()->fresh_threads || !complete_elsewhere(buffer))
		call_complete(buffer);
}

static void seal_all(void)
{
	if (shared.buffer.bytes)
		seal(&shared.buffer);
	for (struct slot *slot = threads; slot; slot = slot->next)
		if (slot->buffer.bytes)
			seal(&slot->buffer);
	if (worker.buffer.bytes)
		seal(&worker.buffer);
}

void buffer_deliver(bool all)
{
	struct buffer *buffer;

	pthread_mutex_lock(&lock);
	if (all)
		seal_all();
	buffer = full;
	full = NULL;
	full_end = &full;
	pthread_mutex_unlock(&lock);
	while (buffer) {
		struct buffer *next = buffer->next;

		hand_over(buffer);
		free(buffer);
		buffer = next;
	}
}

bool buffer_registered(void)
{
	return registered;
}

void buffer_clear(void)
{
	pthread_mutex_lock(&lock);
	registered = false;
	seal_all();
	while (full) {
		struct buffer *next = full->next;

		free(full);
		full = next;
	}
	full_end = &full;
	pthread_mutex_unlock(&lock);
}

SIM_EXPORT CUptiResult cuptiActivityRegisterCallbacks(
	CUpti_BuffersCallbackRequestFunc requested, CUpti_BuffersCallbackCompleteFunc completed)
{
	CUptiResult result = entry(__func__);

	if (!requested || !completed)
		return CUPTI_ERROR_INVALID_PARAMETER;
	if (result)
		return result;
	pthread_mutex_lock(&lock);
	request = requested;
	complete = completed;
	registered = true;
	pthread_mutex_unlock(&lock);
	return CUPTI_SUCCESS;
}

SIM_EXPORT CUptiResult cuptiActivityGetNumDroppedRecords(
	CUcontext context, uint32_t stream, size_t *count)
{
	(void)context;
	(void)stream;
	if (!count)
		return CUPTI_ERROR_INVALID_PARAMETER;
	*count = (size_t)atomic_exchange(&dropped, 0);
	return CUPTI_SUCCESS;
}

SIM_EXPORT CUptiResult cuptiActivityGetNextRecord(
	uint8_t *buffer, size_t valid, CUpti_Activity **record)
{
	size_t at = 0;
	uint32_t kind;

	if (!buffer || !record)
		return CUPTI_ERROR_INVALID_PARAMETER;
	if (*record)
		at = (size_t)((uint8_t *)*record - buffer) + record_length((*record)->kind);
	if (at >= valid)
		return CUPTI_ERROR_MAX_LIMIT_REACHED;
	memcpy(&kind, buffer + at, sizeof kind);
	if (!record_length(kind) || record_length(kind) > valid - at)
		return CUPTI_ERROR_INVALID_KIND;
	*record = (CUpti_Activity *)(void *)(buffer + at);
	return CUPTI_SUCCESS;
}
