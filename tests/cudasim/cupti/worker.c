/*
 * CUPTI's own thread: holds the records of device work until the work is over, puts them into the
 * client's buffers and hands over the full ones. Flushing does the same on the caller's thread.
 *
 * Records come stream by stream, each stream in order: as from the real library, their order says
 * nothing about time across streams.
 */
#include "cupti/parts.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

enum {
	TICK_MS = 10,        /* how often the worker looks for completed work */
	WAKE_RECORDS = 2048, /* or when so many have come */
	HANG_SECONDS = 20,
};

struct records {
	struct record *at;
	size_t count;
	size_t room;
};

/* Held while work is completed and buffers are handed over. */
static pthread_mutex_t delivery = PTHREAD_MUTEX_INITIALIZER;
static struct records waiting;     /* under `delivery` */
static uint32_t shuffle_state = 1; /* under `delivery` */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t wake = PTHREAD_COND_INITIALIZER;
static struct records incoming; /* under `lock` */
static bool started;            /* under `lock` */
static bool woken;              /* under `lock` */
static uint32_t period_ms;      /* under `lock` */
static atomic_bool work_waits;

static void records_add(struct records *records, const struct record *record)
{
	if (records->count == records->room) {
		records->room = records->room ? records->room * 2 : 256;
		records->at = realloc(records->at, records->room * sizeof *records->at);
		if (!records->at)
			abort();
	}
	records->at[records->count++] = *record;
}

/* By stream; within one, as they were submitted, which is the order of the addresses. */
static int by_stream(const void *left, const void *right)
{
	const struct record *a = *(const struct record *const *)left;
	const struct record *b = *(const struct record *const *)right;

	if (a->stream != b->stream)
		return (a->stream > b->stream) - (a->stream < b->stream);
	return (a > b) - (a < b);
}

static void shuffle(const struct record **records, size_t count)
{
	for (size_t i = count; i > 1; i--) {
		const struct record *record = records[i - 1];
		size_t other;

		shuffle_state = shuffle_state * 1664525u + 1013904223u;
		other = (shuffle_state >> 8) % i;
		records[i - 1] = records[other];
		records[other] = record;
	}
}

static void put_complete(const struct record **records, size_t count)
{
	if (switches()->shuffle)
		shuffle(records, count);
	else
		qsort(records, count, sizeof(void *), by_stream);
	for (size_t i = 0; i < count; i++)
		buffer_put(BUFFER_DEVICE, records[i]);
}

static void take_incoming(void)
{
	pthread_mutex_lock(&lock);
	for (size_t i = 0; i < incoming.count; i++)
		records_add(&waiting, &incoming.at[i]);
	incoming.count = 0;
	pthread_mutex_unlock(&lock);
}

/* Moves what is over, or `forced` also what is not, from `waiting` to the buffers. */
static void collect(bool forced)
{
	uint64_t now = sim_time_ns();
	uint64_t late_ns = switches()->late_ns;
	const struct record **over, **running;
	size_t overs = 0, runnings = 0, kept = 0;

	take_incoming();
	over = malloc((2 * waiting.count + 1) * sizeof(void *));
	if (!over)
		abort();
	running = over + waiting.count;
	for (size_t i = 0; i < waiting.count; i++) {
		if (waiting.at[i].due_ns + late_ns <= now)
			over[overs++] = &waiting.at[i];
		else if (forced && waiting.at[i].due_ns > now)
			running[runnings++] = &waiting.at[i];
	}
	put_complete(over, overs);
	buffer_put_incomplete(running, runnings);
	for (size_t i = 0; i < waiting.count; i++)
		if (waiting.at[i].due_ns + late_ns > now && !(forced && waiting.at[i].due_ns > now))
			waiting.at[kept++] = waiting.at[i];
	waiting.count = kept;
	work_waits = kept > 0;
	free(over);
}

static void deliver(bool all, bool forced)
{
	pthread_mutex_lock(&delivery);
	collect(forced);
	buffer_deliver(all && (forced || !switches()->whole || !work_waits));
	pthread_mutex_unlock(&delivery);
}

static struct timespec in_ms(uint32_t ms)
{
	struct timespec until;

	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_nsec += (long)(ms % 1000) * 1000000;
	until.tv_sec += ms / 1000 + until.tv_nsec / 1000000000;
	until.tv_nsec %= 1000000000;
	return until;
}

/* Sleeps until there may be something to do. */
static void wait_for_work(void)
{
	pthread_mutex_lock(&lock);
	if (!woken) {
		uint32_t ms = work_waits || incoming.count ? TICK_MS : period_ms;
		struct timespec until = in_ms(ms);

		if (ms)
			pthread_cond_timedwait(&wake, &lock, &until);
		else
			pthread_cond_wait(&wake, &lock);
	}
	woken = false;
	pthread_mutex_unlock(&lock);
}

static void *work_for_ever(void *unused)
{
	for (;;) {
		wait_for_work();
		deliver(false, false);
	}
	return unused;
}

/* The lock is held. Nothing says that the real library blocks signals in its threads, so the thread
 * has the mask of the thread that is calling. */
static void start_once(void)
{
	pthread_t thread;

	if (started || entry_forked())
		return;
	started = !pthread_create(&thread, NULL, work_for_ever, NULL);
	if (started)
		pthread_detach(thread);
}

void worker_start(void)
{
	pthread_mutex_lock(&lock);
	start_once();
	pthread_mutex_unlock(&lock);
}

/* Holds what the real library holds meanwhile: nothing is delivered any more. */
void worker_hang(void)
{
	pthread_mutex_lock(&delivery);
	for (;;)
		pause();
}

/* SIM_CUPTI_FORCED_WAITS */
static void wait_for_device(void)
{
	pthread_mutex_lock(&delivery);
	take_incoming();
	for (size_t i = 0; i < waiting.count; i++)
		while (waiting.at[i].due_ns > sim_time_ns())
			usleep(10000);
	pthread_mutex_unlock(&delivery);
}

static void wake_locked(void)
{
	start_once();
	woken = true;
	pthread_cond_signal(&wake);
}

void worker_wake(void)
{
	pthread_mutex_lock(&lock);
	wake_locked();
	pthread_mutex_unlock(&lock);
}

void worker_add(const struct record *record)
{
	if (!record->length || !buffer_registered())
		return;
	pthread_mutex_lock(&lock);
	records_add(&incoming, record);
	/* While work waits, the worker looks after it by itself. */
	if ((incoming.count == 1 && !work_waits) || incoming.count == WAKE_RECORDS)
		wake_locked();
	pthread_mutex_unlock(&lock);
}

void worker_period(uint32_t ms)
{
	pthread_mutex_lock(&lock);
	period_ms = ms;
	wake_locked();
	pthread_mutex_unlock(&lock);
}

void worker_flush(bool forced)
{
	deliver(true, forced);
}

void worker_clear(void)
{
	pthread_mutex_lock(&delivery);
	take_incoming();
	waiting.count = 0;
	work_waits = false;
	pthread_mutex_unlock(&delivery);
}

/* What a real child does for ever; a test wants to see that nobody calls it, not to wait. */
static void hang(void)
{
	if (switches()->hang_fork)
		sleep(HANG_SECONDS);
}

SIM_EXPORT CUptiResult cuptiActivityFlushAll(uint32_t flags)
{
	CUptiResult result = entry(__func__);

	if (entry_forked())
		hang();
	if (result)
		return result;
	if (!buffer_registered())
		return CUPTI_ERROR_INVALID_OPERATION;
	if (switches()->slow_flush_ms)
		usleep(switches()->slow_flush_ms * 1000u);
	if (flags & CUPTI_ACTIVITY_FLAG_FLUSH_FORCED ? switches()->hang_forced
						     : switches()->hang_flush)
		worker_hang();
	if (flags & CUPTI_ACTIVITY_FLAG_FLUSH_FORCED && switches()->forced_waits)
		wait_for_device();
	worker_flush(flags & CUPTI_ACTIVITY_FLAG_FLUSH_FORCED);
	return CUPTI_SUCCESS;
}

SIM_EXPORT CUptiResult cuptiActivityFlush(CUcontext context, uint32_t stream, uint32_t flags)
{
	(void)context;
	(void)stream;
	return cuptiActivityFlushAll(flags);
}

SIM_EXPORT CUptiResult cuptiActivityFlushPeriod(uint32_t ms)
{
	CUptiResult result = entry(__func__);

	if (!result)
		worker_period(ms);
	return result;
}
