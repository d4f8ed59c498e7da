/* SPDX-License-Identifier: MIT
 * Uses CPU time in ways that are known, for the tests of CPU samples.
 *
 *   sampled split SECONDS     ranges `three` and `one` in turn, which use CPU time as 3 to 1
 *   sampled burn SECONDS      CPU time without any range
 *   sampled threads COUNT     so many short threads, four at a time
 *   sampled calls SECONDS     system calls that wait, between bursts of CPU time; prints which of
 *                             them were interrupted, and the signal sets of the process
 *   sampled waits SECONDS     threads that sleep, wait for a lock, for a pipe, and use CPU time
 *   sampled fork SECONDS      a child that uses CPU time, and is waited for
 *   sampled sleep SECONDS     nothing
 *
 * Prints the CPU time of the process in ns in the end, but for `calls`.
 */
#include <errno.h>
#include <nvtx3/nvToolsExt.h>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static volatile double sink;

static double clock_s(clockid_t clock)
{
	struct timespec t;

	clock_gettime(clock, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* Uses CPU time of this thread. */
static void burn(double seconds)
{
	const double end = clock_s(CLOCK_THREAD_CPUTIME_ID) + seconds;

	while (clock_s(CLOCK_THREAD_CPUTIME_ID) < end)
		for (int i = 0; i < 500; i++)
			sink += i * 1e-9;
}

static void split(double seconds)
{
	const double end = clock_s(CLOCK_THREAD_CPUTIME_ID) + seconds;

	while (clock_s(CLOCK_THREAD_CPUTIME_ID) < end) {
		nvtxRangePushA("three");
		burn(0.003);
		nvtxRangePop();
		nvtxRangePushA("one");
		burn(0.001);
		nvtxRangePop();
	}
}

static void *short_thread(void *unused)
{
	burn(0.0001);
	return unused;
}

static void threads(long count)
{
	pthread_t made[4];

	for (long i = 0; i < count; i += 4) {
		for (int k = 0; k < 4; k++)
			if (pthread_create(&made[k], NULL, short_thread, NULL))
				exit(3);
		for (int k = 0; k < 4; k++)
			pthread_join(made[k], NULL);
	}
}

/* ---- system calls that a signal would interrupt ---- */

static int sockets[2], ends[2], queue;
static sem_t semaphore;

static int call_poll(void)
{
	return poll(NULL, 0, 1);
}

static int call_epoll(void)
{
	struct epoll_event event;

	return epoll_wait(queue, &event, 1, 1);
}

static int call_nanosleep(void)
{
	const struct timespec wait = { 0, 1000000 };

	return nanosleep(&wait, NULL);
}

static int call_select(void)
{
	struct timeval wait = { 0, 1000 };

	return select(0, NULL, NULL, NULL, &wait);
}

static int call_recv(void)
{
	char byte;

	return (int)recv(sockets[0], &byte, 1, 0);
}

static int call_semaphore(void)
{
	struct timespec until;

	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_nsec += 1000000;
	until.tv_sec += until.tv_nsec / 1000000000;
	until.tv_nsec %= 1000000000;
	return sem_timedwait(&semaphore, &until);
}

static int call_read(void)
{
	char byte;

	return (int)read(ends[0], &byte, 1);
}

static int call_usleep(void)
{
	return usleep(1000);
}

static const struct {
	const char *name;
	int (*call)(void);
} calls[] = { { "poll", call_poll }, { "epoll_wait", call_epoll }, { "nanosleep", call_nanosleep },
	{ "select", call_select }, { "recv", call_recv }, { "sem_timedwait", call_semaphore },
	{ "read", call_read }, { "usleep", call_usleep } };
#define CALLS (sizeof calls / sizeof calls[0])

static void *write_bytes(void *unused)
{
	for (;;) {
		usleep(1500);
		if (write(ends[1], "x", 1) != 1)
			return unused;
	}
}

static void print_signals(void)
{
	char line[256];
	FILE *status = fopen("/proc/self/status", "r");

	while (status && fgets(line, sizeof line, status))
		if (!strncmp(line, "Sig", 3) && strncmp(line, "SigQ", 4))
			fputs(line, stdout);
	if (status)
		fclose(status);
}

static void interrupted_calls(double seconds)
{
	const double end = clock_s(CLOCK_MONOTONIC) + seconds;
	const struct timeval limit = { 0, 1000 };
	unsigned long interrupted[CALLS] = { 0 };
	pthread_t writer;

	if (socketpair(AF_UNIX, SOCK_STREAM, 0, sockets) || pipe(ends))
		exit(3);
	setsockopt(sockets[0], SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
	queue = epoll_create1(0);
	sem_init(&semaphore, 0, 0);
	pthread_create(&writer, NULL, write_bytes, NULL);
	while (clock_s(CLOCK_MONOTONIC) < end)
		for (size_t i = 0; i < CALLS; i++) {
			burn(0.0003);
			errno = 0;
			interrupted[i] += calls[i].call() < 0 && errno == EINTR;
		}
	for (size_t i = 0; i < CALLS; i++)
		printf("%s %lu\n", calls[i].name, interrupted[i]);
	print_signals();
}

/* ---- threads that wait ---- */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static double wait_seconds;

static void *wait_for_lock(void *unused)
{
	nvtxRangePushA("lock");
	pthread_mutex_lock(&lock);
	pthread_mutex_unlock(&lock);
	nvtxRangePop();
	return unused;
}

static void *wait_asleep(void *unused)
{
	nvtxRangePushA("sleep");
	usleep((useconds_t)(wait_seconds * 1e6));
	nvtxRangePop();
	return unused;
}

static void *wait_for_pipe(void *unused)
{
	char byte;

	nvtxRangePushA("pipe");
	if (read(ends[0], &byte, 1) != 1)
		exit(3);
	nvtxRangePop();
	return unused;
}

static void waits(double seconds)
{
	void *(*const bodies[])(void *) = { wait_for_lock, wait_asleep, wait_for_pipe };
	const double end = clock_s(CLOCK_MONOTONIC) + seconds;
	pthread_t made[3];

	wait_seconds = seconds;
	if (pipe(ends))
		exit(3);
	pthread_mutex_lock(&lock);
	for (int i = 0; i < 3; i++)
		pthread_create(&made[i], NULL, bodies[i], NULL);
	nvtxRangePushA("work");
	while (clock_s(CLOCK_MONOTONIC) < end)
		burn(0.001);
	nvtxRangePop();
	pthread_mutex_unlock(&lock);
	if (write(ends[1], "x", 1) != 1)
		exit(3);
	for (int i = 0; i < 3; i++)
		pthread_join(made[i], NULL);
}

static void fork_child(double seconds)
{
	pid_t child = fork();

	if (!child) {
		burn(seconds);
		exit(0);
	}
	waitpid(child, NULL, 0);
}

int main(int argc, char **argv)
{
	const double number = argc > 2 ? atof(argv[2]) : 0;
	const char *mode = argc > 1 ? argv[1] : "";

	if (!strcmp(mode, "split"))
		split(number);
	else if (!strcmp(mode, "burn"))
		burn(number);
	else if (!strcmp(mode, "threads"))
		threads((long)number);
	else if (!strcmp(mode, "calls"))
		interrupted_calls(number);
	else if (!strcmp(mode, "waits"))
		waits(number);
	else if (!strcmp(mode, "fork"))
		fork_child(number);
	else if (!strcmp(mode, "sleep"))
		usleep((useconds_t)(number * 1e6));
	else
		return 2;
	if (strcmp(mode, "calls"))
		printf("%.0f\n", clock_s(CLOCK_PROCESS_CPUTIME_ID) * 1e9);
	return 0;
}
