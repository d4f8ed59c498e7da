/* SPDX-License-Identifier: MIT */
#include "report/text/pager.h"
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

static bool allowed;
static pid_t running; /* 0: none */
static int pager_fd = -1;
static void (*on_interrupt)(int), (*on_quit)(int); /* handlers before the pager was started */

void pager_allow(bool allow)
{
	allowed = allow;
}

bool pager_is_running(void)
{
	return running > 0;
}

static bool program_exists(const char *program)
{
	const char *path = getenv("PATH"), *end;
	char file[4096];

	for (path = path ? path : "/usr/bin:/bin"; *path; path = *end ? end + 1 : end) {
		end = strchrnul(path, ':');
		snprintf(file, sizeof file, "%.*s/%s", (int)(end - path < 3000 ? end - path : 3000),
			path, program);
		if (access(file, X_OK) == 0)
			return true;
	}
	return false;
}

/* Returns the pager's command, or NULL if there is none. */
static const char *pager_command(void)
{
	const char *pager = getenv("PPERF_PAGER");

	if (!pager)
		pager = getenv("PAGER");
	if (!pager)
		return program_exists("less") ? "less" : NULL;
	return *pager && strcmp(pager, "cat") != 0 ? pager : NULL;
}

/* Returns the number of lines on a terminal of `width` columns. Characters are counted instead
 * of columns, so lines that wrap may be counted slightly wrong. */
static size_t count_lines(const char *bytes, size_t count, unsigned width)
{
	size_t lines = 0, in_line = 0;

	for (size_t i = 0; i < count; i++) {
		in_line += ((unsigned char)bytes[i] & 0xc0) != 0x80;
		if (bytes[i] == '\n') {
			lines += 1 + (in_line - 1 ? (in_line - 2) / width : 0);
			in_line = 0;
		}
	}
	return lines + (in_line > 0);
}

bool pager_wanted(const char *bytes, size_t count)
{
	struct winsize size = { .ws_row = 0 };

	if (!allowed || running || isatty(STDOUT_FILENO) != 1 || !pager_command())
		return false;
	if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) || size.ws_row == 0)
		size.ws_row = 24;
	/* One line is for the shell's next prompt. */
	return count_lines(bytes, count, size.ws_col ? size.ws_col : 80) + 1 > size.ws_row;
}

static void wait_at_exit(void)
{
	const char *name;

	pager_finish(&name);
}

static void ignore_terminal_signals(void)
{
	on_interrupt = signal(SIGINT, SIG_IGN);
	on_quit = signal(SIGQUIT, SIG_IGN);
}

static void restore_terminal_signals(void)
{
	signal(SIGINT, on_interrupt);
	signal(SIGQUIT, on_quit);
}

static void init_default_signals(posix_spawnattr_t *attributes)
{
	sigset_t defaults;

	sigemptyset(&defaults);
	sigaddset(&defaults, SIGINT);
	sigaddset(&defaults, SIGQUIT);
	sigaddset(&defaults, SIGPIPE);
	posix_spawnattr_init(attributes);
	posix_spawnattr_setsigdefault(attributes, &defaults);
	posix_spawnattr_setflags(attributes, POSIX_SPAWN_SETSIGDEF);
}

/* Starts the pager with the default actions of SIGINT, SIGQUIT and SIGPIPE. This process ignores
 * the first two already, so that ^C affects only the pager, and waits for it. */
static pid_t spawn_pager(const char *program, int from)
{
	posix_spawn_file_actions_t actions;
	posix_spawnattr_t attributes;
	char *const arguments[] = { (char[]){ "sh" }, (char[]){ "-c" }, (char *)(uintptr_t)program,
		NULL };
	pid_t pid = -1;

	init_default_signals(&attributes);
	posix_spawn_file_actions_init(&actions);
	posix_spawn_file_actions_adddup2(&actions, from, STDIN_FILENO);
	if (posix_spawn(&pid, "/bin/sh", &actions, &attributes, arguments, environ))
		pid = -1;
	posix_spawn_file_actions_destroy(&actions);
	posix_spawnattr_destroy(&attributes);
	return pid;
}

int pager_start(void)
{
	static bool registered;
	const char *program = pager_command();
	int ends[2];

	if (!program || pipe2(ends, O_CLOEXEC))
		return -1;
	setenv("LESS", "FRX", 0);
	setenv("LV", "-c", 0);
	/* Under sudo, less must not run commands as the other user. */
	if (getenv("SUDO_UID"))
		setenv("LESSSECURE", "1", 0);
	ignore_terminal_signals();
	running = spawn_pager(program, ends[0]);
	close(ends[0]);
	if (running < 0) {
		running = 0;
		restore_terminal_signals();
		close(ends[1]);
		return -1;
	}
	if (!registered)
		atexit(wait_at_exit);
	registered = true;
	return pager_fd = ends[1];
}

bool pager_finish(const char **name)
{
	int status = 0;

	*name = pager_command();
	if (!running)
		return true;
	close(pager_fd);
	while (waitpid(running, &status, 0) < 0 && errno == EINTR)
		continue;
	running = 0;
	restore_terminal_signals();
	return !WIFEXITED(status) || (WEXITSTATUS(status) != 126 && WEXITSTATUS(status) != 127);
}
