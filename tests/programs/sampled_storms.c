/* SPDX-License-Identifier: MIT
 * Does what is hard to sample, beside a thread that uses CPU time, for the tests of CPU samples.
 *
 *   sampled_storms loads COUNT LIBRARY   loads the library, calls its function, unloads it
 *   sampled_storms jumps SECONDS         longjmp out of a deep recursion, and siglongjmp out of a
 *                                        handler on an alternate stack
 *   sampled_storms made SECONDS          code made at run time, which has no unwind rules; ends
 *                                        with 77 where its instructions are not known
 *   sampled_storms forks COUNT           children that end at once
 *   sampled_storms small COUNT           threads with the smallest stack that there may be
 *   sampled_storms refuse CALL COMMAND   executes the command where a filter refuses this system
 *                                        call with EPERM, as those of containers do
 *
 * Prints `done`.
 */
#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static volatile unsigned long sink;
static volatile bool stop;

static double cpu_time(void)
{
	struct timespec t;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static __attribute__((noinline)) void spend(unsigned long count)
{
	for (unsigned long i = 0; i < count; i++)
		sink += i;
}

static void *spend_until_stop(void *unused)
{
	while (!stop)
		spend(10000);
	return unused;
}

static bool loads(long count, const char *path)
{
	for (long i = 0; i < count; i++) {
		void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
		void (*function)(unsigned long);

		if (!library)
			return false;
		*(void **)&function = dlsym(library, "spend_in_library");
		function(20000);
		dlclose(library);
	}
	return true;
}

/* ---- jumps ---- */

static jmp_buf outside;
static sigjmp_buf outside_of_handler;

static __attribute__((noinline)) unsigned long recurse(unsigned depth)
{
	volatile char room[200];

	room[depth % 200] = 1;
	if (depth)
		return recurse(depth - 1) + (unsigned long)room[depth % 200];
	spend(20000);
	if (!stop)
		longjmp(outside, 1);
	return 0;
}

static void leave_handler(int number)
{
	spend(20000);
	siglongjmp(outside_of_handler, number);
}

static void jumps(double seconds)
{
	static char room[65536];
	const stack_t stack = { .ss_sp = room, .ss_size = sizeof room };
	struct sigaction action = { .sa_handler = leave_handler, .sa_flags = SA_ONSTACK };

	sigaltstack(&stack, NULL);
	sigaction(SIGUSR1, &action, NULL);
	while (cpu_time() < seconds) {
		if (!setjmp(outside))
			recurse(100);
		if (!sigsetjmp(outside_of_handler, 1))
			raise(SIGUSR1);
	}
}

/* ---- code made at run time ---- */

static __attribute__((noinline)) void called_back(void)
{
	spend(20000);
}

static int made(double seconds)
{
#ifdef __x86_64__
	static const uint8_t code[] = {
		0x53,             /* push %rbx */
		0x48, 0x89, 0xfb, /* mov %rdi, %rbx: the function to call */
		0x48, 0x89, 0xf1, /* mov %rsi, %rcx: so many iterations before */
		0x48, 0xff, 0xc9, /* dec %rcx */
		0x75, 0xfb,       /* jne to the line before */
		0xff, 0xd3,       /* call *%rbx */
		0x5b,             /* pop %rbx */
		0xc3,             /* ret */
	};
	void *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	void (*function)(void (*)(void), unsigned long);

	if (page == MAP_FAILED)
		return 1;
	memcpy(page, code, sizeof code);
	if (mprotect(page, 4096, PROT_READ | PROT_EXEC))
		return 77;
	*(void **)&function = page;
	while (cpu_time() < seconds)
		function(called_back, 20000);
	return 0;
#else
	(void)seconds;
	return 77;
#endif
}

/* ---- processes and threads ---- */

static bool forks(long count)
{
	bool good = true;

	for (long i = 0; i < count && good; i++) {
		const pid_t child = fork();
		int status = 1;

		if (!child)
			_exit(0);
		good = child > 0 && waitpid(child, &status, 0) == child && !status;
	}
	return good;
}

static void *spend_little(void *unused)
{
	spend(1000000);
	return unused;
}

static bool small(long count)
{
	pthread_attr_t smallest;
	pthread_t thread;

	pthread_attr_init(&smallest);
	if (pthread_attr_setstacksize(&smallest, (size_t)PTHREAD_STACK_MIN))
		return false;
	for (long i = 0; i < count; i++)
		if (pthread_create(&thread, &smallest, spend_little, NULL) ||
			pthread_join(thread, NULL))
			return false;
	return true;
}

static int refuse(const char *call, char **command)
{
	const bool reads = !strcmp(call, "process_vm_readv");
	struct sock_filter steps[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K,
			reads ? SYS_process_vm_readv : SYS_perf_event_open, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	const struct sock_fprog filter = { 4, steps };

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ||
		prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter))
		return 77;
	execvp(*command, command);
	return 127;
}

static int storm(const char *mode, const char *number, const char *path)
{
	if (!strcmp(mode, "loads"))
		return !loads(atol(number), path);
	if (!strcmp(mode, "made"))
		return made(atof(number));
	if (!strcmp(mode, "forks"))
		return !forks(atol(number));
	if (!strcmp(mode, "small"))
		return !small(atol(number));
	if (strcmp(mode, "jumps") != 0)
		return 2;
	jumps(atof(number));
	return 0;
}

int main(int count, char **arguments)
{
	pthread_t beside;
	int status;

	if (count < 3)
		return 2;
	if (!strcmp(arguments[1], "refuse"))
		return refuse(arguments[2], arguments + 3);
	if (pthread_create(&beside, NULL, spend_until_stop, NULL))
		return 1;
	status = storm(arguments[1], arguments[2], count > 3 ? arguments[3] : "");
	stop = true;
	pthread_join(beside, NULL);
	puts("done");
	return status;
}
