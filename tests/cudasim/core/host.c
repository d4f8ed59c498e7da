/* Functions of the program that run in stream order: on one thread of ours, each when it is due. */
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>

#include "core/core.h"

struct call {
	uint64_t due_ns;
	struct op_host host;
	struct call *next; /* by due time */
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static struct call *queue; /* the first one is waiting for its time or running */
static bool started;

/* Takes the first call off when it has run, so that waiters see it until then. */
static void run_first(struct call *call)
{
	pthread_mutex_unlock(&lock);
	wait_until(call->due_ns);
	call->host.function(call->host.data);
	pthread_mutex_lock(&lock);
	for (struct call **at = &queue; *at; at = &(*at)->next) {
		if (*at != call)
			continue;
		*at = call->next;
		break;
	}
	free(call);
	pthread_cond_broadcast(&changed);
}

static void *run(void *unused)
{
	(void)unused;
	pthread_mutex_lock(&lock);
	for (;;) {
		if (queue)
			run_first(queue);
		else
			pthread_cond_wait(&changed, &lock);
	}
	return NULL;
}

/* The program's signals are its own threads' business. The lock must be held. */
static void start_once(void)
{
	pthread_t thread;
	sigset_t all, before;

	if (started)
		return;
	started = true;
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	if (pthread_create(&thread, NULL, run, NULL) != 0)
		abort();
	pthread_detach(thread);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
}

void host_enqueue(const struct op_host *host, uint64_t due_ns)
{
	struct call *call = zalloc(sizeof(*call));
	struct call **at = &queue;

	call->due_ns = due_ns;
	call->host = *host;
	pthread_mutex_lock(&lock);
	start_once();
	while (*at && (*at)->due_ns <= due_ns)
		at = &(*at)->next;
	call->next = *at;
	*at = call;
	pthread_cond_broadcast(&changed);
	pthread_mutex_unlock(&lock);
}

/* The lock must be held. */
static bool due_before(uint64_t due_ns)
{
	for (const struct call *call = queue; call; call = call->next)
		if (call->due_ns <= due_ns)
			return true;
	return false;
}

bool host_pending(uint64_t due_ns)
{
	bool pending;

	if (due_ns == 0)
		return false;
	pthread_mutex_lock(&lock);
	pending = due_before(due_ns);
	pthread_mutex_unlock(&lock);
	return pending;
}

void host_wait(uint64_t due_ns)
{
	if (due_ns == 0)
		return;
	pthread_mutex_lock(&lock);
	while (due_before(due_ns))
		pthread_cond_wait(&changed, &lock);
	pthread_mutex_unlock(&lock);
}
