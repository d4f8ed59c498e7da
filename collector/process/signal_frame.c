/* SPDX-License-Identifier: MIT
 * On x86-64 a handler returns to a function of libc, the restorer, whose address the kernel reports
 * with each handler. That address is searched on the part of the stack that is in use. Other
 * processors return to the vdso, and there any handler counts.
 */
#include "collector/process/signal_frame.h"

#include <errno.h>
#include <signal.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#define SIGNALS 64
#define MASK_BYTES 8              /* the kernel's signal set */
#define RESTORERS_MAX 4u          /* different ones: of libc, and of runtimes without it */
#define COPY_BYTES 2048u          /* of the stack that is copied at a time */
#define SEARCH_BYTES (256u << 10) /* of the stack that is searched */

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
/* Whether one of the words is on the stack from `at` on. It is read through the kernel, because
 * where the stack ends is known to libc only, which may allocate memory to find it. Returns true if
 * the stack cannot be read. */
static bool stack_has(uintptr_t at, const uintptr_t *words, unsigned count)
{
	uintptr_t copy[COPY_BYTES / sizeof(uintptr_t)];
	ssize_t got = 0;

	for (size_t read = 0; read < SEARCH_BYTES; read += COPY_BYTES) {
		struct iovec local = { copy, COPY_BYTES },
			     remote = { (void *)(at + read), COPY_BYTES };

		got = process_vm_readv(getpid(), &local, 1, &remote, 1, 0);
		if (got <= 0)
			return read == 0;
		for (size_t i = 0; i < (size_t)got / sizeof *copy; i++)
			for (unsigned k = 0; k < count; k++)
				if (copy[i] == words[k])
					return true;
	}
	return false;
}
#endif

/* Not inlined: the stack is searched from the caller's frame on. What it has found itself is in its
 * own frame. */
__attribute__((noinline)) bool signal_frame_is_below(void)
{
	uintptr_t restorers[RESTORERS_MAX];
	const int saved = errno;
	const unsigned count = find_restorers(restorers);
	stack_t handlers;
	bool below = count > 0;

	if (below && !sigaltstack(NULL, &handlers) && !(handlers.ss_flags & SS_ONSTACK)) {
#if defined(__x86_64__)
		below = stack_has((uintptr_t)__builtin_frame_address(0), restorers, count);
#endif
	}
	errno = saved;
	return below;
}
