/* SPDX-License-Identifier: MIT
 * The layout of records and of the first page of a ring is that of linux/perf_event.h. The event is
 * the task clock, which is a timer and needs no hardware counter, so it works in virtual machines.
 */
#include "collector/sample/perf_ring.h"

#include "collector/process/clock.h"
#include "collector/process/thread_clock.h"
#include "collector/process/fork_wiped_memory.h"
#include "collector/process/private_files.h"

#include <errno.h>
#include <linux/perf_event.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#define STACKS_IN_RING 8u       /* with 4, 5 % were lost at 999 Hz on a busy machine */
#define STACKS_IN_RING_MIN 2u   /* where little memory may be locked */
#define TRIAL_PERIOD_NS 20000u  /* the trial takes some hundred microseconds */
#define TRIAL_LIMIT_NS 5000000u /* of CPU time */
#define RECORD_BYTES_MAX 65536u /* the size in a record's head has 16 bits */

/* The registers that are copied, in the kernel's order (asm/perf_regs.h), and the DWARF number of
 * each. The segment registers in the middle are not copied. */
#define COPIED_REGISTERS UINT64_C(0xff01ff)
static const uint8_t dwarf_numbers[] = { 0, 3, 2, 1, 4, 5, 6, 7, 16, 8, 9, 10, 11, 12, 13, 14, 15 };
#define COPIED_COUNT (sizeof dwarf_numbers)

/* The first page of a ring. */
struct perf_ring {
	struct perf_event_mmap_page page;
};

static struct {
	uint64_t period_ns;
	int descriptor;  /* of the epoll instance, plus 1; 0: none */
	uint8_t *record; /* one that is not in one piece in its ring */
} rings;

/* ---- opening ---- */

static int open_event(uint32_t tid, uint64_t period_ns, uint32_t stack_bytes)
{
	struct perf_event_attr attributes = {
		.size = sizeof attributes,
		.type = PERF_TYPE_SOFTWARE,
		.config = PERF_COUNT_SW_TASK_CLOCK,
		.sample_period = period_ns,
		.sample_type = PERF_SAMPLE_TIME | PERF_SAMPLE_REGS_USER | PERF_SAMPLE_STACK_USER,
		.sample_regs_user = COPIED_REGISTERS,
		.sample_stack_user = stack_bytes,
		.exclude_kernel = 1,
		.exclude_hv = 1,
		.use_clockid = 1,
		.clockid = CLOCK_MONOTONIC,
		.wakeup_events = 1,
	};

	return (int)syscall(SYS_perf_event_open, &attributes, (pid_t)tid, -1, -1,
		(unsigned long)PERF_FLAG_FD_CLOEXEC);
}

/* Returns the size of a ring for `stacks` stacks: a power of two pages. */
static size_t ring_bytes(unsigned stacks, uint32_t stack_bytes)
{
	size_t bytes = (size_t)sysconf(_SC_PAGESIZE);

	while (bytes < (size_t)stacks * stack_bytes)
		bytes *= 2;
	return bytes;
}

/* Maps the ring of an event, a smaller one if little memory may be locked. Returns NULL with errno:
 * ENOBUFS if no more may be locked. The kernel counts what all processes of a user lock. */
static struct perf_ring *map_ring(int event, uint32_t stack_bytes)
{
	const size_t page = (size_t)sysconf(_SC_PAGESIZE);
	void *ring = MAP_FAILED;

	for (unsigned stacks = STACKS_IN_RING; stacks >= STACKS_IN_RING_MIN && ring == MAP_FAILED;
		stacks /= 2)
		ring = mmap(NULL, page + ring_bytes(stacks, stack_bytes), PROT_READ | PROT_WRITE,
			MAP_SHARED, event, 0);
	if (ring != MAP_FAILED)
		return ring;
	if (errno == EPERM)
		errno = ENOBUFS;
	return NULL;
}

static int open_ring(
	struct perf_ring **ring, uint32_t tid, uint64_t period_ns, uint32_t stack_bytes)
{
	/* Samples are reported once for each wake-up; a thread's end is reported once too. */
	struct epoll_event wanted = { .events = EPOLLIN | EPOLLET };
	const int event = open_event(tid, period_ns, stack_bytes);
	int failed = 0;

	*ring = NULL;
	if (event < 0)
		return errno;
	*ring = map_ring(event, stack_bytes);
	if (!*ring)
		failed = errno;
	else if (rings.descriptor)
		epoll_ctl(rings.descriptor - 1, EPOLL_CTL_ADD, event, &wanted);
	close(event);
	return failed;
}

int perf_ring_open(struct perf_ring **ring, uint32_t tid, uint32_t stack_bytes)
{
	const int saved = errno;
	const int failed = open_ring(ring, tid, rings.period_ns, stack_bytes);

	errno = saved;
	return failed;
}

void perf_ring_close(struct perf_ring *ring)
{
	if (ring)
		munmap(ring, ring->page.data_offset + ring->page.data_size);
}

/* ---- reading ---- */

/* Returns the bytes of the record at `at`, in one piece. */
static const uint8_t *record_at(struct perf_ring *ring, uint64_t at, size_t bytes)
{
	const uint8_t *data = (const uint8_t *)ring + ring->page.data_offset;
	const size_t size = ring->page.data_size, from = at & (size - 1);

	if (from + bytes <= size)
		return data + from;
	memcpy(rings.record, data + from, size - from);
	memcpy(rings.record + (size - from), data, bytes - (size - from));
	return rings.record;
}

static uint64_t word_at(const uint8_t *bytes, size_t index)
{
	uint64_t word;

	memcpy(&word, bytes + 8 * index, 8);
	return word;
}

static void read_registers(struct unwind_registers *registers, const uint8_t *words)
{
	for (size_t i = 0; i < COPIED_COUNT; i++)
		registers->value[dwarf_numbers[i]] = word_at(words, i);
	registers->known = UNWIND_ALL_KNOWN;
}

/* The body of a sample: time, kind of registers, registers, size of the stack's room, the room, how
 * much of it is used. */
static void read_sample(struct perf_sample *sample, const uint8_t *body, size_t bytes)
{
	const size_t stack_at = 8 * (COPIED_COUNT + 3);
	uint64_t room;

	sample->is_sample = true;
	sample->taken_ns = word_at(body, 0);
	if (word_at(body, 1) != PERF_SAMPLE_REGS_ABI_64 || bytes < stack_at)
		return;
	sample->has_registers = true;
	read_registers(&sample->start.registers, body + 16);
	room = word_at(body, COPIED_COUNT + 2);
	if (!room || room > bytes - stack_at - 8)
		return;
	sample->start.stack = body + stack_at;
	sample->start.stack_bytes = word_at(body + stack_at + room, 0);
	if (sample->start.stack_bytes > room)
		sample->start.stack_bytes = room;
}

/* Reads the record at `at`. Returns its size, 0 if it is damaged. */
static size_t read_record(
	struct perf_ring *ring, uint64_t at, uint64_t head, struct perf_sample *sample)
{
	struct perf_event_header header;
	const uint8_t *record;

	memcpy(&header, record_at(ring, at, sizeof header), sizeof header);
	if (header.size < sizeof header + 16 || header.size > head - at)
		return header.size >= sizeof header && header.size <= head - at ? header.size : 0;
	record = record_at(ring, at, header.size) + sizeof header;
	if (header.type == PERF_RECORD_SAMPLE)
		read_sample(sample, record, header.size - sizeof header);
	else if (header.type == PERF_RECORD_LOST)
		sample->lost += word_at(record, 1);
	return header.size;
}

/* What was read last is released only now, because the caller has used the bytes in the ring. */
bool perf_ring_read(struct perf_ring *ring, struct perf_sample *sample)
{
	const uint64_t head = __atomic_load_n(&ring->page.data_head, __ATOMIC_ACQUIRE);
	uint64_t at = sample->next ? sample->next : ring->page.data_tail;
	size_t bytes;

	__atomic_store_n(&ring->page.data_tail, at, __ATOMIC_RELEASE);
	*sample = (struct perf_sample){ .taken_ns = 0 };
	while (at < head && !sample->is_sample) {
		bytes = read_record(ring, at, head, sample);
		at = bytes ? at + bytes : head;
	}
	sample->next = at;
	if (!sample->is_sample && !sample->lost)
		__atomic_store_n(&ring->page.data_tail, at, __ATOMIC_RELEASE);
	return sample->is_sample || sample->lost;
}

/* ---- waiting ---- */

bool perf_rings_can_wait(void)
{
	const int saved = errno;

	rings.descriptor = private_files_here() ? epoll_create1(EPOLL_CLOEXEC) + 1 : 0;
	errno = saved;
	return rings.descriptor;
}

bool perf_rings_wait(unsigned limit_ms)
{
	struct epoll_event events[16];
	const int saved = errno;
	int ready = -1;

	if (rings.descriptor)
		ready = epoll_wait(rings.descriptor - 1, events, 16, (int)limit_ms);
	/* The program was stopped, by a debugger or by SIGSTOP. */
	if (ready < 0 && errno == EINTR)
		ready = 0;
	errno = saved;
	return ready >= 0;
}

/* ---- the trial ---- */

/* Reads the ring for TRIAL_LIMIT_NS, or until it has a sample. Makes no system call, because the
 * kernel gives no sample for the time in one. */
static bool read_for_a_while(struct perf_ring *ring, struct perf_sample *sample)
{
	const uint64_t end_ns = clock_monotonic_ns() + TRIAL_LIMIT_NS;

	while (clock_monotonic_ns() < end_ns)
		if (perf_ring_read(ring, sample))
			return true;
	return false;
}

/* Uses CPU time until a sample is in the ring. Returns whether it has registers and a stack. A
 * thread that waits for a core uses no CPU time, so its limit is not one of the clock. */
static bool sample_arrives(struct perf_ring *ring, uint32_t stack_bytes)
{
	struct perf_sample sample = { .taken_ns = 0 };
	uint64_t begin_ns, now_ns;

	if (!cpu_clock_ns(CLOCK_THREAD_CPUTIME_ID, &begin_ns))
		return false;
	do {
		if (read_for_a_while(ring, &sample))
			break;
	} while (cpu_clock_ns(CLOCK_THREAD_CPUTIME_ID, &now_ns) &&
		 now_ns - begin_ns < TRIAL_LIMIT_NS);
	return sample.has_registers && (!stack_bytes || sample.start.stack_bytes);
}

static int try_own_thread(uint32_t stack_bytes)
{
	struct perf_ring *ring;
	int failed = open_ring(&ring, 0, TRIAL_PERIOD_NS, stack_bytes);

	if (failed)
		return failed;
	failed = sample_arrives(ring, stack_bytes) ? 0 : ENODATA;
	perf_ring_close(ring);
	return failed;
}

int perf_rings_begin(uint64_t period_ns, uint32_t stack_bytes)
{
	const int saved = errno;
	int failed;

#ifndef __x86_64__
	return ENOSYS;
#endif
	rings.period_ns = period_ns;
	if (!rings.record)
		rings.record = fork_kept_alloc(RECORD_BYTES_MAX);
	failed = rings.record ? try_own_thread(stack_bytes) : ENOMEM;
	errno = saved;
	return failed;
}

void perf_rings_set_period(uint64_t period_ns)
{
	rings.period_ns = period_ns;
}

const char *perf_ring_error_name(int error)
{
	static const struct {
		int error;
		char name[8];
	} names[] = { { EPERM, "EPERM" }, { EACCES, "EACCES" }, { ENOSYS, "ENOSYS" },
		{ EMFILE, "EMFILE" }, { ENFILE, "ENFILE" }, { ENOMEM, "ENOMEM" },
		{ EINVAL, "EINVAL" }, { ENODATA, "ENODATA" }, { ENOENT, "ENOENT" },
		{ ENODEV, "ENODEV" }, { E2BIG, "E2BIG" }, { EBUSY, "EBUSY" },
		{ ENOBUFS, "EPERM" } };

	for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
		if (names[i].error == error)
			return names[i].name;
	return "error";
}
