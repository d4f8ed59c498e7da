/* SPDX-License-Identifier: MIT
 * counts_system_calls LIBRARY COMMAND...: runs the command under the library ("": without one) and
 * prints how many system calls its threads made after exec and how many pages were put in place for
 * it. Exits as the command does; 77 where it may not be traced.
 */
#include <stdio.h>
#include <stdlib.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#define OPTIONS                                                                      \
	((void *)(PTRACE_O_TRACESYSGOOD | PTRACE_O_TRACECLONE | PTRACE_O_TRACEEXEC | \
		  PTRACE_O_EXITKILL))

static int start(char **arguments)
{
	setenv("LD_PRELOAD", arguments[1],
		1); /* also an empty one: what is done before exec is the same */
	if (ptrace(PTRACE_TRACEME, 0, NULL, NULL))
		_exit(77);
	raise(SIGSTOP);
	execv(arguments[2], arguments + 2);
	_exit(127);
}

/* What the thread that has stopped with `status` is to be sent on with. */
static int signal_for(int status)
{
	const int signal = WSTOPSIG(status);

	return status >> 16 || signal == SIGTRAP || signal == (SIGTRAP | 0x80) || signal == SIGSTOP
		       ? 0
		       : signal;
}

int main(int count, char **arguments)
{
	unsigned long stops = 0;
	struct rusage use;
	int status, started = 0;
	pid_t child = count > 2 ? fork() : -1, thread;

	if (child == 0)
		return start(arguments);
	if (child < 0)
		return 2;
	if (wait4(child, &status, 0, NULL) != child || !WIFSTOPPED(status))
		return 77;
	if (ptrace(PTRACE_SETOPTIONS, child, NULL, OPTIONS) ||
		ptrace(PTRACE_SYSCALL, child, NULL, NULL))
		return 77;
	while ((thread = wait4(-1, &status, __WALL, &use)) > 0) {
		if (thread == child && !WIFSTOPPED(status))
			break;
		if (!WIFSTOPPED(status))
			continue;
		started |= status >> 8 == (SIGTRAP | PTRACE_EVENT_EXEC << 8);
		stops += started && WSTOPSIG(status) == (SIGTRAP | 0x80);
		ptrace(PTRACE_SYSCALL, thread, NULL, (void *)(long)signal_for(status));
	}
	printf("%lu %ld\n", stops / 2, use.ru_minflt);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}
