/* SPDX-License-Identifier: MIT */
#include "collector/sample/blocked_thread.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define TEXT_BYTES 256u

/* Reads what the kernel says of the thread. Returns its length; 0: nothing. */
static size_t read_state(uint32_t tid, char text[TEXT_BYTES])
{
	char path[48];
	ssize_t got;
	int file;

	snprintf(path, sizeof path, "/proc/self/task/%u/syscall", tid);
	file = open(path, O_RDONLY | O_CLOEXEC);
	if (file < 0)
		return 0;
	got = read(file, text, TEXT_BYTES - 1);
	close(file);
	text[got > 0 ? got : 0] = '\0';
	return got > 0 ? (size_t)got : 0;
}

/* Reads the last two words of a text `NUMBER ARGUMENTS... SP PC`. A running thread has none. */
static bool parse_state(const char *text, struct unwind_registers *registers)
{
	const char *pc = strrchr(text, ' '), *sp = pc;

	while (sp && sp > text && sp[-1] != ' ')
		sp--;
	if (!sp || sp == text)
		return false;
	registers->value[UNWIND_RSP] = strtoull(sp, NULL, 16);
	registers->value[UNWIND_RETURN] = strtoull(pc, NULL, 16);
	registers->known = 1u << UNWIND_RSP | 1u << UNWIND_RETURN;
	return registers->value[UNWIND_RSP] && registers->value[UNWIND_RETURN];
}

bool blocked_thread_walk(struct unwinder *u, uint32_t tid, struct unwind_stack *stack)
{
	struct unwind_start start = { .stack_bytes = 0 };
	char before[TEXT_BYTES], after[TEXT_BYTES];
	const int saved = errno;
	const size_t bytes = read_state(tid, before);
	bool stayed = false;

	if (bytes && parse_state(before, &start.registers)) {
		unwinder_begin(u, &start);
		unwinder_walk(u, stack);
		stayed = read_state(tid, after) == bytes && !memcmp(before, after, bytes);
	}
	errno = saved;
	return stayed;
}
