/* SPDX-License-Identifier: MIT
 * interrupted HOW: ranges of ever new names, in which a signal comes at any moment. HOW says what
 * its handler does: exit; jump (back into the loop, 300 times; then another thread goes on, and
 * this one); leave (the same out of ranges of one name); fork (each child goes on with what was
 * interrupted; or: interrupted fork TIMES); stop (waits until another thread has made ten names,
 * 300 times). Or cancel: threads that are cancelled before they begin have no cancellation point
 * but the one at their end; prints how many came there.
 */
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>
#include <nvtx3/nvToolsExt.h>

enum { TIMES = 300 };

static atomic_int made, came, rounds;
static sigjmp_buf loop;

static void make_names(int count)
{
	char name[32];

	while (count-- > 0) {
		snprintf(name, sizeof name, "name %d", atomic_fetch_add(&made, 1));
		nvtxRangePushA(name);
		nvtxRangePop();
	}
}

static void leave(int number)
{
	(void)number;
	exit(0);
}

static void jump(int number)
{
	(void)number;
	siglongjmp(loop, 1);
}

static volatile sig_atomic_t in_child, bad;

static void fork_here(int number)
{
	pid_t child = fork();
	int status = -1;

	(void)number;
	if (!child)
		in_child = 1;
	else if (child < 0 || waitpid(child, &status, 0) != child || status)
		bad++;
}

/* As a garbage collector stops a thread, and goes on itself. */
static void stop(int number)
{
	int before = atomic_load(&rounds);

	(void)number;
	atomic_fetch_add(&came, 1);
	while (atomic_load(&rounds) == before)
		;
}

static void on_signal(int number, void (*handler)(int))
{
	struct sigaction action = { .sa_handler = handler };

	sigaction(number, &action, NULL);
}

static void make_after(void)
{
	for (int i = 0; i < 1000; i++) {
		nvtxRangePushA("after");
		nvtxRangePop();
	}
}

static void interrupt_after(long microseconds)
{
	const struct itimerval once = { { 0, 0 }, { 0, microseconds } };

	setitimer(ITIMER_REAL, &once, NULL);
}

static void *other_thread(void *unused)
{
	make_names(1000);
	return unused;
}

static void *stopped_thread(void *unused)
{
	make_names(1 << 30);
	return unused;
}

static void *cancelled_thread(void *unused)
{
	pthread_setcancelstate(PTHREAD_CANCEL_ENABLE, NULL);
	make_names(2000);
	atomic_fetch_add(&came, 1);
	pthread_testcancel();
	return unused;
}

static int run_jump(void)
{
	static volatile int jumps;
	pthread_t thread;

	on_signal(SIGALRM, jump);
	if (sigsetjmp(loop, 1))
		jumps++;
	if (jumps < TIMES) {
		interrupt_after(50 + jumps);
		make_names(1 << 30);
	}
	make_after();
	return pthread_create(&thread, NULL, other_thread, NULL) || pthread_join(thread, NULL);
}

/* Nearly always in the quick ways. */
static int run_leave(void)
{
	static volatile int jumps;

	on_signal(SIGALRM, jump);
	if (sigsetjmp(loop, 1))
		jumps++;
	if (jumps < TIMES) {
		interrupt_after(50 + jumps);
		for (;;) {
			nvtxRangePushA("once more");
			nvtxRangePop();
		}
	}
	make_after();
	return 0;
}

static int run_fork(int times)
{
	const nvtxEventAttributes_t event = {
		.version = NVTX_VERSION, .size = NVTX_EVENT_ATTRIB_STRUCT_SIZE, .category = 1
	};

	nvtxMarkA("the trace is there");
	on_signal(SIGALRM, fork_here);
	for (int forks = 0; forks < times && !in_child; forks++) {
		interrupt_after(100 + forks);
		for (int i = 0; i < 3000 && !in_child; i++) {
			nvtxRangePushA("narrow");
			nvtxRangePushEx(&event);
			nvtxRangePop();
			nvtxRangePop();
		}
	}
	make_names(10);
	if (in_child)
		_exit(0);
	return bad != 0;
}

static int run_stop(void)
{
	pthread_t thread;

	on_signal(SIGUSR1, stop);
	if (pthread_create(&thread, NULL, stopped_thread, NULL))
		return 2;
	for (int i = 0; i < TIMES; i++) {
		pthread_kill(thread, SIGUSR1);
		while (atomic_load(&came) == i)
			;
		make_names(10);
		atomic_fetch_add(&rounds, 1);
	}
	_exit(0);
}

/* Disabled until it was asked for, so that it is pending from the beginning. */
static void *pending_thread(void *unused)
{
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, NULL);
	while (!atomic_load(&rounds))
		;
	return cancelled_thread(unused);
}

static int run_cancel(void)
{
	pthread_t threads[8];

	for (int i = 0; i < 8; i++)
		if (pthread_create(&threads[i], NULL, pending_thread, NULL))
			return 2;
	for (int i = 0; i < 8; i++)
		pthread_cancel(threads[i]);
	atomic_store(&rounds, 1);
	for (int i = 0; i < 8; i++)
		pthread_join(threads[i], NULL);
	make_names(10);
	printf("%d\n", atomic_load(&came));
	return 0;
}

int main(int count, char **arguments)
{
	const char *how = count > 1 ? arguments[1] : "exit";

	if (!strcmp(how, "cancel"))
		return run_cancel();
	nvtxInitialize(NULL);
	if (!strcmp(how, "jump"))
		return run_jump();
	if (!strcmp(how, "leave"))
		return run_leave();
	if (!strcmp(how, "fork"))
		return run_fork(count > 2 ? atoi(arguments[2]) : TIMES);
	if (!strcmp(how, "stop"))
		return run_stop();
	on_signal(SIGALRM, leave);
	interrupt_after(count > 2 ? atol(arguments[2]) : 5000);
	make_names(1 << 30);
	return 1;
}
