/* SPDX-License-Identifier: MIT */
#include "collector/process/large_stack.h"

#include "collector/process/signal_guard.h"

#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

/* NVIDIA's libraries say nothing of the stack that they need. They are tested with the 8 MiB that a
 * thread usually has. */
#define ENOUGH_STACK_BYTES ((size_t)1 << 20)
#define LARGE_STACK_BYTES ((size_t)4 << 20) /* untouched pages take no memory */
#define GUARD_BYTES ((size_t)64 << 10)      /* at least one page of any page size */

/* Whether the main thread has enough stack below `here`. Its stack grows up to the resource limit,
 * and reading its attributes would read a file. AT_RANDOM is the address of bytes that the kernel
 * places where the stack begins. The thread may also run on another stack of the program, for tasks
 * or signals. */
static bool main_stack_is_enough(uintptr_t here)
{
	const uintptr_t begin = getauxval(AT_RANDOM);
	struct rlimit limit;

	return !getrlimit(RLIMIT_STACK, &limit) && limit.rlim_cur >= 2 * ENOUGH_STACK_BYTES &&
	       (!begin || (here < begin && begin - here <= limit.rlim_cur - ENOUGH_STACK_BYTES));
}

static bool stack_is_enough(void)
{
	const uintptr_t here = (uintptr_t)__builtin_frame_address(0);
	pthread_attr_t attributes;
	void *lowest = NULL;
	size_t bytes = 0;

	if (syscall(SYS_gettid) == getpid())
		return main_stack_is_enough(here);
	/* unknown; most threads have enough */
	if (pthread_getattr_np(pthread_self(), &attributes))
		return true;
	if (pthread_attr_getstack(&attributes, &lowest, &bytes))
		bytes = 0;
	pthread_attr_destroy(&attributes);
	return here - (uintptr_t)lowest < bytes && here - (uintptr_t)lowest >= ENOUGH_STACK_BYTES;
}

/* Calls `function` with the stack pointer at `top`, or returns false without a call. makecontext is
 * not used, because AddressSanitizer's version prints a warning into the program. Taking the frame
 * address forces a frame pointer, by which unwinders get back to the old stack. */
#if defined(__x86_64__)
static __attribute__((noinline)) bool switch_stack(
	char *top, void (*function)(void *), void *argument)
{
	if (!__builtin_frame_address(0))
		return false;
	__asm__ volatile(
		"movq %%rsp, %%rbx\n\tmovq %[top], %%rsp\n\tcallq *%[function]\n\tmovq %%rbx, %%rsp"
		: "+D"(argument), [top] "+S"(top), [function] "+d"(function)
		:
		: "rax", "rbx", "rcx", "r8", "r9", "r10", "r11", "xmm0", "xmm1", "xmm2", "xmm3",
		"xmm4", "xmm5", "xmm6", "xmm7", "xmm8", "xmm9", "xmm10", "xmm11", "xmm12", "xmm13",
		"xmm14", "xmm15", "memory", "cc");
	return true;
}
#elif defined(__aarch64__)
static __attribute__((noinline)) bool switch_stack(
	char *top, void (*function)(void *), void *argument)
{
	register void *first __asm__("x0") = argument;

	if (!__builtin_frame_address(0))
		return false;
	__asm__ volatile("mov x19, sp\n\tmov sp, %[top]\n\tblr %[function]\n\tmov sp, x19"
			 : "+r"(first)
			 : [top] "r"(top), [function] "r"(function)
			 : "x1", "x2", "x3", "x4", "x5", "x6", "x7", "x8", "x9", "x10", "x11",
			 "x12", "x13", "x14", "x15", "x16", "x17", "x18", "x19", "x30", "v0", "v1",
			 "v2", "v3", "v4", "v5", "v6", "v7", "v8", "v9", "v10", "v11", "v12", "v13",
			 "v14", "v15", "v16", "v17", "v18", "v19", "v20", "v21", "v22", "v23",
			 "v24", "v25", "v26", "v27", "v28", "v29", "v30", "v31", "memory", "cc");
	return true;
}
#else
static bool switch_stack(char *top, void (*function)(void *), void *argument)
{
	(void)top, (void)function, (void)argument;
	return false;
}
#endif

/* The program's signals are blocked meanwhile: a handler may look up its own stack and would find
 * itself outside all stacks it knows. */
void large_stack_run(void (*function)(void *), void *argument)
{
	const int saved = errno;
	char *memory = MAP_FAILED;
	struct signal_guard guard;

	if (!stack_is_enough())
		memory = mmap(NULL, GUARD_BYTES + LARGE_STACK_BYTES, PROT_READ | PROT_WRITE,
			MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_STACK, -1, 0);
	if (memory == MAP_FAILED) {
		function(argument);
	} else {
		signal_guard_begin(&guard);
		mprotect(memory, GUARD_BYTES, PROT_NONE);
		if (!switch_stack(memory + GUARD_BYTES + LARGE_STACK_BYTES, function, argument))
			function(argument);
		munmap(memory, GUARD_BYTES + LARGE_STACK_BYTES);
		signal_guard_end(&guard);
	}
	errno = saved;
}
