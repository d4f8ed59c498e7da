/* SPDX-License-Identifier: MIT
 * lib_harms_program: what libpperf must never be. By HARM it prints, crashes, takes the program's
 * children's ends (children), leaves a file, changes the status, leaves a process behind, moves
 * descriptors, or is slow: each of which the tests of hosts must notice.
 */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static void be_slow(void)
{
	const struct timespec while_ = { 0, 20000000 };

	nanosleep(&while_, NULL);
}

static void leave_a_process(void)
{
	if (fork() == 0) {
		for (int fd = 0; fd < 64; fd++)
			close(fd);
		sleep(5);
		_exit(0);
	}
}

static void end_otherwise(void)
{
	_exit(9);
}

__attribute__((constructor)) static void begin(void)
{
	const char *how = getenv("HARM");

	if (!how)
		return;
	if (!strcmp(how, "prints"))
		puts("hello from the library");
	else if (!strcmp(how, "complains"))
		fputs("hello from the library\n", stderr);
	else if (!strcmp(how, "crashes"))
		raise(SIGSEGV);
	else if (!strcmp(how, "children"))
		signal(SIGCHLD, SIG_IGN);
	else if (!strcmp(how, "file"))
		close(open("trace.bin", O_CREAT | O_WRONLY, 0600));
	else if (!strcmp(how, "status"))
		atexit(end_otherwise);
	else if (!strcmp(how, "process"))
		leave_a_process();
	else if (!strcmp(how, "descriptor"))
		dup2(open("/dev/null", O_RDONLY), 3);
	else if (!strcmp(how, "slow"))
		be_slow();
}
