/* Settings from the environment, the one lock, the clock, the log, and what a fork leaves. */
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "core/core.h"
#include "core/entry.h"

#define SECOND_NS 1000000000u
#define SPIN_NS 60000u /* a sleep shorter than this would oversleep by more */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct settings values = { .memory = (size_t)16 << 30, .devices = 1 };
static FILE *log_file;
static uint64_t realtime_offset_ns;
static bool forked;

static uint64_t clock_ns(clockid_t clock)
{
	struct timespec now;

	clock_gettime(clock, &now);
	return (uint64_t)now.tv_sec * SECOND_NS + (uint64_t)now.tv_nsec;
}

static uint64_t setting(const char *name, uint64_t otherwise)
{
	const char *text = getenv(name);

	return text && *text ? strtoull(text, NULL, 0) : otherwise;
}

static void open_log(const char *path)
{
	if (!path || !*path)
		return;
	log_file = strcmp(path, "2") == 0 ? stderr : fopen(path, "ae");
	if (log_file)
		setvbuf(log_file, NULL, _IOLBF, 0);
}

/* The tightest of a few brackets: whoever runs between two readings would shift one clock against
 * the other. */
static uint64_t realtime_offset(void)
{
	uint64_t best = 0, width = UINT64_MAX;

	for (int i = 0; i < 5; i++) {
		uint64_t before = clock_ns(CLOCK_MONOTONIC), realtime = clock_ns(CLOCK_REALTIME),
			 after = clock_ns(CLOCK_MONOTONIC);

		if (after - before >= width)
			continue;
		width = after - before;
		best = realtime - before - width / 2;
	}
	return best;
}

/* Runs when the library is loaded: the program sees one set of settings, whatever it sets later. */
__attribute__((constructor)) static void read_settings(void)
{
	uint64_t devices = setting("SIM_DEVICES", 1);

	values.devices = devices >= 1 && devices <= SIM_DEVICES_MAX ? (int)devices : 1;
	if (setting("SIM_NO_DEVICE", 0))
		values.devices = 0;
	values.memory = (size_t)setting("SIM_MEM", (uint64_t)16 << 30);
	values.context = (size_t)setting("SIM_CONTEXT", 0);
	values.other = (size_t)setting("SIM_OTHER", 0);
	values.kernel_ns = setting("SIM_KERNEL_NS", 0);
	values.fail_malloc = setting("SIM_FAIL_MALLOC", 0);
	values.query_ns = setting("SIM_QUERY_NS", 0);
	values.fault = setting("SIM_FAULT", 0);
	values.say_stubs = setting("SIM_STUBS", 0) != 0;
	realtime_offset_ns = realtime_offset();
	open_log(getenv("SIM_LOG"));
}

const struct settings *settings(void)
{
	return &values;
}

void core_lock(void)
{
	pthread_mutex_lock(&lock);
}

void core_unlock(void)
{
	pthread_mutex_unlock(&lock);
}

/* The monotonic clock moved to CLOCK_REALTIME once: a step of the wall clock must not reorder work.
 */
SIM_EXPORT uint64_t sim_time_ns(void)
{
	return clock_ns(CLOCK_MONOTONIC) + realtime_offset_ns;
}

static void sleep_until(uint64_t time_ns)
{
	uint64_t at = time_ns - realtime_offset_ns;
	struct timespec when = {
		.tv_sec = (time_t)(at / SECOND_NS),
		.tv_nsec = (long)(at % SECOND_NS),
	};

	while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &when, NULL) == EINTR)
		;
}

void wait_until(uint64_t time_ns)
{
	if (time_ns > sim_time_ns() + SPIN_NS)
		sleep_until(time_ns - SPIN_NS);
	while (sim_time_ns() < time_ns)
		sched_yield();
}

void log_line(const char *format, ...)
{
	va_list arguments;

	if (!log_file)
		return;
	va_start(arguments, format);
	vfprintf(log_file, format, arguments);
	va_end(arguments);
}

static void in_child(void)
{
	forked = true;
}

void watch_forks(void)
{
	pthread_atfork(NULL, NULL, in_child);
}

SIM_EXPORT bool sim_forked(void)
{
	return forked;
}

void *zalloc(size_t bytes)
{
	void *memory = calloc(1, bytes ? bytes : 1);

	if (!memory) {
		fprintf(stderr, "cudasim: out of host memory\n");
		abort();
	}
	return memory;
}

void *grow(void *old, size_t bytes)
{
	void *memory = realloc(old, bytes);

	if (!memory) {
		fprintf(stderr, "cudasim: out of host memory\n");
		abort();
	}
	return memory;
}
