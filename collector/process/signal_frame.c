/* SPDX-License-Identifier: MIT
 * On x86-64 a handler returns to a function of libc, the restorer, whose address the kernel reports
 * with each handler. That address is searched on the part of the stack that is in use. Other
 * processors return to the vdso, and there any handler counts.
 */
#include "collector/process/signal_frame.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <unistd.h>

#define SIGNALS 64
#define MASK_BYTES 8     /* the kernel's signal set */
#define RESTORERS_MAX 4u /* different ones: of libc, and of runtimes without it */

/* As the kernel has it on x86-64 (sigaction(2), section C library/kernel differences). */
struct kernel_action {
	uintptr_t handler;
	unsigned long flags;
	uintptr_t restorer;
	uint64_t mask;
};

/* Collects the different restorers of all handlers. Returns their number. */
static unsigned find_restorers(uintptr_t restorers[RESTORERS_MAX])
{
	struct kernel_action action;
	unsigned count = 0, i;

	for (int number = 1; number <= SIGNALS; number++) {
		if (syscall(SYS_rt_sigaction, number, NULL, &action, MASK_BYTES) ||
			action.handler == (uintptr_t)SIG_DFL ||
			action.handler == (uintptr_t)SIG_IGN)
			continue;
		for (i = 0; i < count && restorers[i] != action.restorer; i++)
			;
		if (i == count && count < RESTORERS_MAX)
			restorers[count++] = action.restorer;
	}
	return count;
}

#if defined(__x86_64__)
/* Whether one of the words is on the stack of this thread, above the caller's frame. Returns true
 * if the stack is not known. */
static __attribute__((no_sanitize_address)) bool stack_has(const uintptr_t *words, unsigned count)
{
	const uintptr_t *at = __builtin_frame_address(0), *end;
	pthread_attr_t attributes;
	void *stack = NULL;
	size_t bytes = 0;

	if (pthread_getattr_np(pthread_self(), &attributes))
		return true;
	pthread_attr_getstack(&attributes, &stack, &bytes);
	pthread_attr_destroy(&attributes);
	end = (const uintptr_t *)(const void *)((const char *)stack + bytes);
	if ((const void *)at < stack || at >= end)
		return true;
	for (; at < end; at++)
		for (unsigned i = 0; i < count; i++)
			if (*at == words[i])
				return true;
	return false;
}
#endif

bool signal_frame_is_below(void)
{
	uintptr_t restorers[RESTORERS_MAX];
	const int saved = errno;
	const unsigned count = find_restorers(restorers);
	stack_t handlers;
	bool below = count > 0;

	if (below && !sigaltstack(NULL, &handlers) && !(handlers.ss_flags & SS_ONSTACK)) {
#if defined(__x86_64__)
		below = stack_has(restorers, count);
#endif
	}
	errno = saved;
	return below;
}
