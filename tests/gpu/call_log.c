/* SPDX-License-Identifier: MIT
 * call_log.c: what a program asks of CUDA and what CUPTI tells of it, counted, without pperf. The
 * driver loads it by CUDA_INJECTION64_PATH; at the end it writes to the file CALL_LOG, a line each,
 * sorted:
 *
 *	call runtime cudaMalloc                     3     the program's calls, and libraries'
 *	call driver cuMemAlloc_v2 in cudaMalloc     3     calls that were made inside of others
 *	record kernel id of driver                  7     whose id a record carries: driver's, runtime's, both's, nobody's
 *	record kernel of a graph's node             0
 *	record kernel on stream 7                   7
 *	buffer on a thread of the program           1
 *
 * A test of the simulated device runs the same program there: where the two files differ, the
 * simulation is wrong.
 */
#include <cupti.h>
#include <dlfcn.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BUFFER_BYTES (8u << 20)
#define LINES_MOST 8192u
#define LINE_BYTES 160u
#define DEEPEST 16u
#define IDS (1u << 20)

int InitializeInjection(void);

/* Their prototypes are the header's; the library is the program's own. */
#define FUNCTIONS(X)                      \
	X(cuptiSubscribe)                 \
	X(cuptiEnableDomain)              \
	X(cuptiActivityEnable)            \
	X(cuptiActivityRegisterCallbacks) \
	X(cuptiActivityGetNextRecord)     \
	X(cuptiActivityFlushAll)
#define X(name) __typeof__(&name) name##_;
static struct {
	FUNCTIONS(X)
} cupti;
#undef X

static struct line {
	char text[LINE_BYTES];
	unsigned long count;
} lines[LINES_MOST];
static size_t line_count;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

enum { OF_DRIVER = 1, OF_RUNTIME = 2 };
static unsigned char id_of[IDS]; /* by correlation id: whose it is */

static __thread struct {
	const char *inside[DEEPEST];
	unsigned depth;
	bool calls; /* this thread is one of the program's */
} thread;

/* The lock is held. */
static void count(const char *text)
{
	size_t at = 0;

	for (const char *c = text; *c; c++)
		at = at * 31 + (unsigned char)*c;
	for (at %= LINES_MOST; lines[at].count && strcmp(lines[at].text, text) != 0;)
		at = (at + 1) % LINES_MOST;
	if (!lines[at].count) {
		if (line_count == LINES_MOST / 2)
			return;
		line_count++;
		snprintf(lines[at].text, LINE_BYTES, "%s", text);
	}
	lines[at].count++;
}

static void CUPTIAPI called(
	void *unused, CUpti_CallbackDomain domain, CUpti_CallbackId id, const void *data)
{
	const CUpti_CallbackData *call = data;
	const bool driver = domain == CUPTI_CB_DOMAIN_DRIVER_API;
	char text[LINE_BYTES];

	(void)unused;
	(void)id;
	if (domain != CUPTI_CB_DOMAIN_DRIVER_API && domain != CUPTI_CB_DOMAIN_RUNTIME_API)
		return;
	thread.calls = true;
	if (call->callbackSite == CUPTI_API_EXIT) {
		thread.depth -= thread.depth > 0;
		return;
	}
	snprintf(text, sizeof text, "call %s %s%s%s", driver ? "driver" : "runtime",
		call->functionName, thread.depth ? " in " : "",
		thread.depth ? thread.inside[(thread.depth - 1) % DEEPEST] : "");
	thread.inside[thread.depth++ % DEEPEST] = call->functionName;
	pthread_mutex_lock(&lock);
	count(text);
	id_of[call->correlationId % IDS] |= driver ? OF_DRIVER : OF_RUNTIME;
	pthread_mutex_unlock(&lock);
}

/* The lock is held. */
static void told(const char *kind, uint32_t correlation, uint32_t stream, uint64_t node)
{
	static const char *const owners[] = { "nobody", "driver", "runtime", "both" };
	char text[LINE_BYTES];

	snprintf(text, sizeof text, "record %s id of %s", kind,
		owners[id_of[correlation % IDS] & 3]);
	count(text);
	snprintf(text, sizeof text, "record %s on stream %u", kind, stream);
	count(text);
	if (node) {
		snprintf(text, sizeof text, "record %s of a graph's node", kind);
		count(text);
	}
}

static void told_other(uint32_t kind)
{
	char text[LINE_BYTES];

	snprintf(text, sizeof text, "record of kind %u", kind);
	count(text);
}

static void take(const CUpti_Activity *record)
{
	const CUpti_ActivityKernel9 *kernel = (const void *)record;
	const CUpti_ActivityMemcpy5 *copy = (const void *)record;
	const CUpti_ActivityMemset4 *set = (const void *)record;

	if (record->kind == CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL ||
		record->kind == CUPTI_ACTIVITY_KIND_KERNEL)
		told("kernel", kernel->correlationId, kernel->streamId, kernel->graphNodeId);
	else if (record->kind == CUPTI_ACTIVITY_KIND_MEMCPY)
		told("copy", copy->correlationId, copy->streamId, copy->graphNodeId);
	else if (record->kind == CUPTI_ACTIVITY_KIND_MEMSET)
		told("set", set->correlationId, set->streamId, set->graphNodeId);
	else
		told_other((uint32_t)record->kind);
}

static void CUPTIAPI asked(uint8_t **buffer, size_t *size, size_t *most)
{
	*buffer = aligned_alloc(64, BUFFER_BYTES);
	*size = *buffer ? BUFFER_BYTES : 0;
	*most = 0;
}

static void CUPTIAPI completed(
	CUcontext context, uint32_t stream, uint8_t *buffer, size_t size, size_t valid)
{
	CUpti_Activity *record = NULL;

	(void)context;
	(void)stream;
	(void)size;
	pthread_mutex_lock(&lock);
	count(thread.calls ? "buffer on a thread of the program" : "buffer on another thread");
	pthread_mutex_unlock(&lock);
	/* not under a lock that a callback takes */
	while (cupti.cuptiActivityGetNextRecord_(buffer, valid, &record) == CUPTI_SUCCESS) {
		pthread_mutex_lock(&lock);
		take(record);
		pthread_mutex_unlock(&lock);
	}
	free(buffer);
}

static int by_text(const void *a, const void *b)
{
	return strcmp(((const struct line *)a)->text, ((const struct line *)b)->text);
}

static void finish(void)
{
	const char *path = getenv("CALL_LOG");
	FILE *file;

	cupti.cuptiActivityFlushAll_(1);
	file = path ? fopen(path, "w") : NULL;
	if (!file)
		return;
	pthread_mutex_lock(&lock);
	qsort(lines, LINES_MOST, sizeof *lines, by_text);
	for (size_t i = 0; i < LINES_MOST; i++)
		if (lines[i].count)
			fprintf(file, "%s\t%lu\n", lines[i].text, lines[i].count);
	fclose(file);
}

static bool find(void)
{
	static const char *const names[] = { "libcupti.so.13", "libcupti.so.12" };
	void *library = NULL;

	for (size_t i = 0; i < 2 && !library; i++)
		library = dlopen(names[i], RTLD_LAZY | RTLD_NOLOAD);
	for (size_t i = 0; i < 2 && !library; i++)
		library = dlopen(names[i], RTLD_LAZY);
	if (!library)
		return false;
#define X(name)                                                  \
	if (!(*(void **)&cupti.name##_ = dlsym(library, #name))) \
		return false;
	FUNCTIONS(X)
#undef X
	return true;
}

__attribute__((visibility("default"))) int InitializeInjection(void)
{
	static const CUpti_ActivityKind kinds[] = { CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL,
		CUPTI_ACTIVITY_KIND_MEMCPY, CUPTI_ACTIVITY_KIND_MEMCPY2,
		CUPTI_ACTIVITY_KIND_MEMSET };
	CUpti_SubscriberHandle subscriber;

	if (!find() || cupti.cuptiSubscribe_(&subscriber, called, NULL) != CUPTI_SUCCESS) {
		fputs("call_log: CUPTI is not there, or not to be had\n", stderr);
		return 0;
	}
	cupti.cuptiEnableDomain_(1, subscriber, CUPTI_CB_DOMAIN_RUNTIME_API);
	cupti.cuptiEnableDomain_(1, subscriber, CUPTI_CB_DOMAIN_DRIVER_API);
	cupti.cuptiActivityRegisterCallbacks_(asked, completed);
	for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
		cupti.cuptiActivityEnable_(kinds[i]);
	atexit(finish);
	return 1;
}
