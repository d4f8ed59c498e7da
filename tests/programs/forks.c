/* SPDX-License-Identifier: MIT
 * forks HOW COUNT: a range is open; COUNT children are made by fork, thread (fork beside a thread
 * that records), nested (children of children), clone (the system call itself), vfork or spawn, or
 * silent (fork; the child calls nothing). Every child but the last four kinds opens and closes a
 * range called after its number.
 */
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include <nvtx3/nvToolsExt.h>

extern char **environ;
static volatile bool stop;

static void child(int number)
{
	char name[32];

	snprintf(name, sizeof name, "child %d", number);
	nvtxRangePushA(name);
	nvtxRangePop();
	nvtxRangePop(); /* what the parent opened is the parent's alone */
}

static pid_t make_child(const char *how, int number, int left)
{
	char *arguments[] = { "true", NULL };
	pid_t pid = -1;

	if (!strcmp(how, "spawn"))
		return posix_spawnp(&pid, "true", NULL, NULL, arguments, environ) ? -1 : pid;
	if (!strcmp(how, "vfork")) {
		pid = vfork();
		if (pid == 0) {
			execvp("true", arguments);
			_exit(127);
		}
		return pid;
	}
	if (!strcmp(how, "clone")) {
		pid = (pid_t)syscall(SYS_clone, SIGCHLD, NULL, NULL, NULL, NULL);
		if (pid == 0) {
			child(number);
			_exit(0);
		}
		return pid;
	}
	pid = fork();
	if (pid == 0) {
		if (strcmp(how, "silent"))
			child(number);
		if (!strcmp(how, "nested") && left > 1) {
			pid_t next = make_child(how, number + 1, left - 1);
			int status = 0;

			waitpid(next, &status, 0);
			exit(WEXITSTATUS(status));
		}
		exit(0);
	}
	return pid;
}

static void *record(void *unused)
{
	while (!stop) {
		nvtxRangePushA("beside");
		nvtxRangePop();
		usleep(50);
	}
	return unused;
}

int main(int count, char **arguments)
{
	const char *how = count > 1 ? arguments[1] : "fork";
	int children = count > 2 ? atoi(arguments[2]) : 1, bad = 0;
	bool beside = !strcmp(how, "thread"), nested = !strcmp(how, "nested");
	pthread_t thread;

	nvtxRangePushA("parent");
	if (beside && pthread_create(&thread, NULL, record, NULL))
		return 2;
	for (int i = 0; i < (nested ? 1 : children); i++) {
		pid_t pid = make_child(how, i, children);
		int status = 1;

		if (pid < 0 || waitpid(pid, &status, 0) != pid || status)
			bad++;
	}
	stop = true;
	if (beside)
		pthread_join(thread, NULL);
	nvtxRangePushA("afterwards");
	nvtxRangePop();
	nvtxRangePop();
	return bad != 0;
}
