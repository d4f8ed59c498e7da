/* SPDX-License-Identifier: MIT
 * describes_itself: prints all that a program can see of itself, and that a library in it must not
 * change: descriptors it gets, signal handlers and mask, threads, locale, limits, umask, folder,
 * errno across NVTX calls, what the system calls answer. Echoes its input; exits with 42. Its
 * environment goes to the file named by its first argument.
 */
#include <errno.h>
#include <dirent.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <locale.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>
#include <nvtx3/nvToolsExt.h>

extern char **environ;
static bool begun;
static int readings;

/* Instead of the C library's: counts what others than this program read of the environment once
 * main has begun. */
char *getenv(const char *name)
{
	const size_t bytes = strlen(name);
	Dl_info own, caller;

	if (begun && dladdr(&begun, &own) && dladdr(__builtin_return_address(0), &caller) &&
		own.dli_fbase != caller.dli_fbase)
		readings++;
	for (char **variable = environ; variable && *variable; variable++)
		if (!strncmp(*variable, name, bytes) && (*variable)[bytes] == '=')
			return *variable + bytes + 1;
	return NULL;
}

static void show_signals(void)
{
	sigset_t mask, pending;

	sigprocmask(SIG_SETMASK, NULL, &mask);
	sigpending(&pending);
	for (int i = 1; i < 65; i++) {
		struct sigaction action;

		if (sigaction(i, NULL, &action))
			continue;
		printf("signal %d: %s%s%s\n", i,
			action.sa_handler == SIG_DFL   ? "default"
			: action.sa_handler == SIG_IGN ? "ignored"
						       : "caught",
			sigismember(&mask, i) ? ", blocked" : "",
			sigismember(&pending, i) ? ", pending" : "");
	}
}

static void show_limits(void)
{
	for (int i = 0; i < RLIM_NLIMITS; i++) {
		struct rlimit limit;

		if (!getrlimit((__rlimit_resource_t)i, &limit))
			printf("limit %d: %llu %llu\n", i, (unsigned long long)limit.rlim_cur,
				(unsigned long long)limit.rlim_max);
	}
}

static int count_entries(const char *folder)
{
	DIR *directory = opendir(folder);
	int count = 0;

	if (!directory)
		return -1;
	while (readdir(directory))
		count++;
	closedir(directory);
	return count - 2;
}

static void show_process(void)
{
	char folder[4096];
	mode_t mask = umask(022);
	int first = open("/dev/null", O_RDONLY), second = open("/dev/null", O_WRONLY);

	printf("descriptors %d %d, umask %o, folder %s, locale %s, dumpable %d\n", first, second,
		(unsigned)mask, getcwd(folder, sizeof folder) ? folder : "?",
		setlocale(LC_ALL, NULL), prctl(PR_GET_DUMPABLE));
	printf("threads %d, priority %d, interval timers %d\n", count_entries("/proc/self/task"),
		getpriority(PRIO_PROCESS, 0), getitimer(ITIMER_REAL, &(struct itimerval){ 0 }));
	close(first);
	close(second);
}

static void show_errno(void)
{
	nvtxRangePushA("the first call initialises");
	nvtxRangePop();
	for (int i = 0; i < 20000; i++) {
		errno = 1234;
		nvtxRangePushA("errno");
		nvtxMarkA("errno");
		nvtxRangePop();
		nvtxRangeEnd(nvtxRangeStartA("errno"));
		if (errno != 1234) {
			printf("errno became %d in round %d\n", errno, i);
			return;
		}
	}
	printf("errno stays %d\n", errno);
}

static void show_children(void)
{
	int status = -1;
	pid_t pid;

	fflush(stdout);
	pid = fork();
	if (pid == 0) {
		nvtxRangePushA("child");
		nvtxRangePop();
		_exit(7);
	}
	waitpid(pid, &status, 0);
	printf("child %d, another child %d, shell %d\n", status, waitpid(-1, NULL, 0),
		system("exit 3"));
}

static void write_environment(const char *path)
{
	FILE *file = fopen(path, "w");

	for (char **variable = environ; file && *variable; variable++)
		fprintf(file, "%s\n", *variable);
	if (file)
		fclose(file);
}

int main(int count, char **arguments)
{
	char line[256];

	begun = true;
	if (count > 1)
		write_environment(arguments[1]);
	show_signals();
	show_limits();
	show_process();
	show_errno();
	show_process();
	show_signals();
	show_children();
	while (fgets(line, sizeof line, stdin))
		printf("read: %s", line);
	printf("the environment was read %d times by others\n", readings);
	fprintf(stderr, "to stderr\n");
	return 42;
}
