/* SPDX-License-Identifier: MIT
 * test_unwind.c: the callers of a thread are found at every instruction, as libgcc's unwinder finds
 * them, and without unwind rules too.
 */
#include "collector/sample/unwind.h"

#include <alloca.h>
#include <check.h>
#include <dlfcn.h>
#include <errno.h>
#include <link.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdio.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>
#include <unwind.h>

#ifdef __x86_64__ /* there are no unwind rules on other processors */

#define ADDRESSES_MAX 600

static struct unwinder *unwinder;
static struct unwind_stack ours;

static void begin(void)
{
	if (!unwinder)
		unwinder = unwinder_open();
	ck_assert_ptr_nonnull(unwinder);
	unwinder_update(unwinder);
}

static void take_registers(struct unwind_start *start, const ucontext_t *context)
{
	static const int of[UNWIND_REGISTERS] = { REG_RAX, REG_RDX, REG_RCX, REG_RBX, REG_RSI,
		REG_RDI, REG_RBP, REG_RSP, REG_R8, REG_R9, REG_R10, REG_R11, REG_R12, REG_R13,
		REG_R14, REG_R15, REG_RIP };

	*start = (struct unwind_start){ .registers.known = UNWIND_ALL_KNOWN };
	for (int i = 0; i < UNWIND_REGISTERS; i++)
		start->registers.value[i] = (uint64_t)context->uc_mcontext.gregs[of[i]];
}

/* ---- against libgcc, at each instruction ---- */

struct oracle {
	uint64_t pc, address[ADDRESSES_MAX];
	unsigned count;
	bool begun;
};

static _Unwind_Reason_Code collect(struct _Unwind_Context *context, void *data)
{
	struct oracle *o = data;
	uint64_t address = _Unwind_GetIP(context);

	o->begun |= address == o->pc;
	if (o->begun && address && o->count < ADDRESSES_MAX)
		o->address[o->count++] = address;
	return _URC_NO_REASON;
}

static struct compared {
	unsigned samples, equal, lost, cut, guessed, deepest;
	struct unwind_stack wrong;
	struct oracle expected;
} compared;
static bool with_copy;

/* Where the signal came at the first instruction of the code that handlers return to, the frame of
 * this very handler has the address of the interrupted instruction, too. */
static void leave_out_trampoline(struct oracle *o, unsigned frames)
{
	if (o->count != frames + 1 || o->address[1] != o->pc)
		return;
	o->count--;
	memmove(o->address, o->address + 1, o->count * sizeof *o->address);
}

/* Copies the words of a stack. Compiled without AddressSanitizer, which would report the zones that
 * it puts around variables; memcpy() would be its own. */
__attribute__((no_sanitize("address"))) static void copy_stack(
	uint64_t *to, uint64_t address, size_t bytes)
{
	const volatile uint64_t *from = (const volatile uint64_t *)(uintptr_t)address;

	for (size_t i = 0; i < bytes / sizeof *to; i++)
		to[i] = from[i];
}

/* Interrupted anywhere, the thread looks at its own stack in both ways. */
static void compare(int signal_number, siginfo_t *info, void *data)
{
	static uint64_t copy[512];
	static struct oracle oracle;
	static atomic_flag busy = ATOMIC_FLAG_INIT;
	const int saved = errno;
	struct unwind_start start;

	(void)signal_number, (void)info;
	if (atomic_flag_test_and_set(&busy)) /* another thread is in this function */
		return;
	take_registers(&start, data);
	oracle = (struct oracle){ .pc = start.registers.value[UNWIND_RETURN] };
	_Unwind_Backtrace(collect, &oracle);
	if (with_copy && ((uintptr_t)start.registers.value[UNWIND_RSP] & 0xfff) < 0xf00) {
		start.stack_bytes = 0xf00 - (start.registers.value[UNWIND_RSP] & 0xfff);
		copy_stack(copy, start.registers.value[UNWIND_RSP], start.stack_bytes);
		start.stack = (const uint8_t *)copy;
	}
	compared.samples++;
	if (!oracle.count) { /* libgcc itself did not get as far as the interrupted function */
		compared.lost++;
		compared.equal++;
		atomic_flag_clear(&busy);
		errno = saved;
		return;
	}
	unwinder_begin(unwinder, &start);
	unwinder_walk(unwinder, &ours);
	compared.cut += ours.cut;
	compared.guessed += ours.guessed;
	compared.deepest = ours.frames > compared.deepest ? ours.frames : compared.deepest;
	leave_out_trampoline(&oracle, ours.frames);
	if (ours.frames == oracle.count &&
		!memcmp(ours.address, oracle.address, ours.frames * sizeof *ours.address)) {
		compared.equal++;
	} else {
		compared.wrong = ours;
		compared.expected = oracle;
	}
	atomic_flag_clear(&busy);
	errno = saved;
}

static void describe(uint64_t address, char *text, size_t room)
{
	Dl_info at = { 0 };

	dladdr((void *)address, &at);
	snprintf(text, room, "%#lx %s+%#lx %s", address, at.dli_sname ? at.dli_sname : "?",
		address - (uint64_t)(at.dli_saddr ? at.dli_saddr : at.dli_fbase),
		at.dli_fname ? at.dli_fname : "?");
}

static void print_wrong(void)
{
	char a[256], b[256];

	for (unsigned i = 0; i < compared.wrong.frames || i < compared.expected.count; i++) {
		describe(i < compared.wrong.frames ? compared.wrong.address[i] : 0, a, sizeof a);
		describe(i < compared.expected.count ? compared.expected.address[i] : 0, b,
			sizeof b);
		fprintf(stderr, "  %-60s | %s\n", a, b);
	}
}

static volatile uint64_t sink;

/* Runs `work` until it was interrupted `samples` times. */
static void interrupt(void (*work)(void), unsigned samples)
{
	const struct sigaction action = { .sa_sigaction = compare,
		.sa_flags = SA_SIGINFO | SA_RESTART };
	const struct itimerval every = { { 0, 1000 }, { 0, 1000 } }, never = { { 0, 0 }, { 0, 0 } };

	begin();
	memset(&compared, 0, sizeof compared);
	sigaction(SIGPROF, &action, NULL);
	setitimer(ITIMER_PROF, &every, NULL);
	while (compared.samples < samples)
		work();
	setitimer(ITIMER_PROF, &never, NULL);
}

static void expect_all_equal(void)
{
	if (compared.equal != compared.samples)
		print_wrong();
	ck_assert_uint_eq(compared.equal, compared.samples);
	ck_assert_uint_le(compared.lost, compared.samples / 20);
	ck_assert_uint_eq(compared.cut, 0);
	ck_assert_uint_eq(compared.guessed, 0);
}

static void on_a_copy_too(void (*work)(void), unsigned samples)
{
	with_copy = false;
	interrupt(work, samples);
	expect_all_equal();
	with_copy = true;
	interrupt(work, samples);
	expect_all_equal();
}

/* ---- what is interrupted ---- */

static __attribute__((noinline)) uint64_t recurse(unsigned depth)
{
	volatile uint64_t room[7] = { depth };

	return depth ? recurse(depth - 1) + room[0] : sink;
}
static void recursion(void)
{
	sink += recurse(300);
}

static int by_value(const void *a, const void *b)
{
	const int x = *(const int *)a, y = *(const int *)b;

	return x < y ? -1 : x > y;
}
static void library_calls(void)
{
	char text[64];
	int numbers[64];

	for (int i = 0; i < 64; i++)
		numbers[i] = (i * 7919) % 64;
	qsort(numbers, 64, sizeof *numbers, by_value);
	snprintf(text, sizeof text, "%d %s %.3f", numbers[3], "text", (double)numbers[5]);
	free(malloc((size_t)numbers[9] + 1));
	sink += strlen(text) + (uint64_t)atoi("12") + (uint64_t)strtod("1.5", NULL);
}

/* The frame's size is not known to the compiler, so its CFA is relative to rbp. */
static __attribute__((noinline)) void dynamic_frame(unsigned bytes)
{
	char *room = alloca(bytes);

	memset(room, (int)bytes, bytes);
	sink += (uint64_t)room[bytes / 2] + recurse(3);
}
static void dynamic_frames(void)
{
	for (unsigned bytes = 16; bytes < 2000; bytes += 100)
		dynamic_frame(bytes);
}

/* The stack is aligned, so the CFA is an expression in the middle of the function. */
static __attribute__((noinline)) void aligned_frame(unsigned n)
{
	__attribute__((aligned(64))) volatile uint64_t lines[16];
	char *room = alloca(n + 16);

	for (unsigned i = 0; i < 16; i++)
		lines[i] = i + n;
	memset(room, (int)lines[3], n);
	sink += lines[n & 15] + (uint64_t)room[1] + recurse(2);
}
static void aligned_frames(void)
{
	for (unsigned i = 0; i < 100; i++)
		aligned_frame(i);
}

static void clock_calls(void)
{
	struct timespec now;

	for (int i = 0; i < 100; i++)
		clock_gettime(CLOCK_MONOTONIC, &now);
	sink += (uint64_t)now.tv_nsec + (uint64_t)syscall(SYS_getppid);
}

static jmp_buf back;
static __attribute__((noinline, noreturn)) void leave(void)
{
	sink++;
	longjmp(back, 1);
}
/* The call of a function that does not return is the last instruction of its caller. */
static __attribute__((noinline)) void tail_without_return(int how)
{
	sink += recurse(1);
	if (how)
		leave();
}
static void calls_that_do_not_return(void)
{
	if (!setjmp(back))
		tail_without_return(1);
}

static void call_handler(int signal_number)
{
	(void)signal_number;
	sink += recurse(5);
}
/* A handler on a stack of its own is interrupted. */
static void handlers(void)
{
	static char room[65536];
	const stack_t stack = { .ss_sp = room, .ss_size = sizeof room };
	const struct sigaction action = { .sa_handler = call_handler, .sa_flags = SA_ONSTACK };

	sigaltstack(&stack, NULL);
	sigaction(SIGUSR1, &action, NULL);
	for (int i = 0; i < 20; i++)
		raise(SIGUSR1);
}

static const struct {
	const char *name;
	void (*work)(void);
} works[] = { { "recursion", recursion }, { "library calls", library_calls },
	{ "dynamic frames", dynamic_frames }, { "aligned frames", aligned_frames },
	{ "clock calls", clock_calls }, { "calls that do not return", calls_that_do_not_return },
	{ "handlers", handlers } };
#define WORKS ((int)(sizeof works / sizeof *works))

START_TEST(callers_are_those_that_libgcc_finds_at_every_instruction)
{
	on_a_copy_too(works[_i].work, 100);
}
END_TEST

static void *run_recursion(void *data)
{
	recursion();
	return data;
}
static void thread_in_recursion(void)
{
	pthread_attr_t attributes;
	pthread_t thread;

	pthread_attr_init(&attributes);
	pthread_attr_setstacksize(&attributes, (size_t)256 << 10);
	ck_assert_int_eq(pthread_create(&thread, &attributes, run_recursion, NULL), 0);
	pthread_join(thread, NULL);
	pthread_attr_destroy(&attributes);
}
START_TEST(a_thread_with_a_small_stack_is_followed_to_its_start)
{
	on_a_copy_too(thread_in_recursion, 200);
	ck_assert_uint_gt(compared.deepest, 250);
}
END_TEST

static void deep_recursion(void)
{
	sink += recurse(5000);
}
START_TEST(a_stack_of_more_frames_than_the_limit_is_cut)
{
	interrupt(deep_recursion, 300);
	ck_assert_uint_gt(compared.cut, 0);
	ck_assert_uint_eq(compared.deepest, UNWIND_FRAMES_MAX);
}
END_TEST

/* ---- code without rules ---- */

/* Calls the function in rdi, in code for which there are no rules. As compiled and hand-written code
 * do, it leaves `depth` words on the stack, and may use rbp for something else. */
static void *make_code(const uint8_t *bytes, size_t count)
{
	uint8_t *code = mmap(
		NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	ck_assert_ptr_ne(code, MAP_FAILED);
	memcpy(code, bytes, count);
	ck_assert_int_eq(mprotect(code, 4096, PROT_READ | PROT_EXEC), 0);
	return code;
}

/* push rbp; push rbx; xor ebp,ebp; sub rsp,128; push 0; call rdi; add rsp,136; pop rbx; pop rbp; ret
 */
static const uint8_t calls_on[] = { 0x55, 0x53, 0x31, 0xed, 0x48, 0x81, 0xec, 0x80, 0, 0, 0, 0x6a,
	0, 0xff, 0xd7, 0x48, 0x81, 0xc4, 0x88, 0, 0, 0, 0x5b, 0x5d, 0xc3 };
/* push rbp; mov ebp,esi; sub rsp,256; loop: dec ebp; jnz loop; add rsp,256; pop rbp; ret */
static const uint8_t counts[] = { 0x55, 0x89, 0xf5, 0x48, 0x81, 0xec, 0, 1, 0, 0, 0xff, 0xcd, 0x75,
	0xfc, 0x48, 0x81, 0xc4, 0, 1, 0, 0, 0x5d, 0xc3 };

/* push rbp; sub rsp,16384; xor ebp,ebp; call rdi; add rsp,16384; pop rbp; ret */
static const uint8_t calls_with_room[] = { 0x55, 0x48, 0x81, 0xec, 0, 0x40, 0, 0, 0x31, 0xed, 0xff,
	0xd7, 0x48, 0x81, 0xc4, 0, 0x40, 0, 0, 0x5d, 0xc3 };
/* push rbp; mov rbp,rsp; sub rsp,16384; and rsp,-4096; mov [rsp+120],rbp; xor ebp,ebp; call rdi; mov
 * rsp,[rsp+120]; pop rbp; ret */
static const uint8_t calls_aligned[] = { 0x55, 0x48, 0x89, 0xe5, 0x48, 0x81, 0xec, 0, 0x40, 0, 0,
	0x48, 0x81, 0xe4, 0, 0xf0, 0xff, 0xff, 0x48, 0x89, 0x6c, 0x24, 0x78, 0x31, 0xed, 0xff, 0xd7,
	0x48, 0x8b, 0x64, 0x24, 0x78, 0x5d, 0xc3 };

static void (*jit_count)(void *, unsigned);
static void (*jit_call)(void (*)(void));

static __attribute__((noinline)) void call_code(void)
{
	jit_count(NULL, 100000);
	sink++;
}
static __attribute__((noinline)) void call_code_with_dynamic_frame(unsigned bytes)
{
	char *room = alloca(bytes);

	memset(room, 1, bytes);
	jit_count(NULL, 100000);
	sink += (uint64_t)room[0];
}
static __attribute__((noinline)) void code_without_rules(void)
{
	call_code();
	call_code_with_dynamic_frame(200);
	sink++; /* so that it does not end in a jump */
}

/* Whether the stack ends as the test's own stack does. */
static bool ends_as(const struct unwind_stack *a, const struct unwind_stack *b, unsigned frames)
{
	return a->frames >= frames && b->frames >= frames &&
	       !memcmp(&a->address[a->frames - frames], &b->address[b->frames - frames],
		       frames * sizeof *a->address);
}

static struct unwind_stack reference;
static unsigned jit_samples, jit_right, jit_complete;

static void take_reference(void)
{
	struct unwind_start start;
	ucontext_t here;

	getcontext(&here);
	take_registers(&start, &here);
	unwinder_begin(unwinder, &start);
	unwinder_walk(unwinder, &reference);
}

static void compare_ends(int signal_number, siginfo_t *info, void *data)
{
	struct unwind_start start;
	const ucontext_t *context = data;
	const uint64_t pc = (uint64_t)context->uc_mcontext.gregs[REG_RIP];

	(void)signal_number, (void)info;
	if (pc - (uint64_t)(uintptr_t)jit_count >= sizeof counts)
		return;
	take_registers(&start, data);
	unwinder_begin(unwinder, &start);
	unwinder_walk(unwinder, &ours);
	jit_samples++;
	jit_complete += !ours.cut;
	/* The caller, its caller, the test, and what called that. */
	jit_right += ours.guessed && ours.frames == reference.frames + 2 &&
		     ends_as(&ours, &reference, reference.frames - 2);
}

/* Overwrites return addresses that earlier calls have left below the caller's frame. */
static __attribute__((noinline)) void clear_stack_below(void)
{
	volatile char room[32768];

	for (size_t i = 0; i < sizeof room; i++)
		room[i] = 0;
}

START_TEST(code_without_rules_is_passed_by_a_search)
{
	/* On a stack of its own, the handler leaves no return addresses where the search looks. The
	 * sampler's thread leaves none either. */
	static char handler_stack[1 << 18];
	const stack_t own_stack = { .ss_sp = handler_stack, .ss_size = sizeof handler_stack };
	const struct sigaction action = { .sa_sigaction = compare_ends,
		.sa_flags = SA_SIGINFO | SA_RESTART | SA_ONSTACK };
	const struct itimerval every = { { 0, 1000 }, { 0, 1000 } }, never = { { 0, 0 }, { 0, 0 } };

	begin();
	ck_assert_int_eq(sigaltstack(&own_stack, NULL), 0);
	*(void **)&jit_count = make_code(counts, sizeof counts);
	take_reference();
	ck_assert(!reference.cut && !reference.guessed);
	sigaction(SIGPROF, &action, NULL);
	clear_stack_below();
	setitimer(ITIMER_PROF, &every, NULL);
	while (jit_samples < 200)
		code_without_rules();
	setitimer(ITIMER_PROF, &never, NULL);
	ck_assert_uint_eq(jit_complete, jit_samples);
	ck_assert_uint_eq(jit_right, jit_samples);
}
END_TEST

static void look_from_here(void)
{
	ucontext_t here;
	struct unwind_start start;

	getcontext(&here);
	take_registers(&start, &here);
	unwinder_begin(unwinder, &start);
	unwinder_walk(unwinder, &ours);
}
static void through_code_once_more(void)
{
	jit_call(look_from_here);
	sink++;
}
static void through_code_twice(void)
{
	jit_call(through_code_once_more);
	sink++;
}
START_TEST(two_searches_are_made_and_not_three)
{
	begin();
	*(void **)&jit_call = make_code(calls_on, sizeof calls_on);
	take_reference();
	jit_call(look_from_here);
	ck_assert(ours.guessed && !ours.cut && ends_as(&ours, &reference, reference.frames - 2));
	jit_call(through_code_once_more);
	ck_assert(ours.guessed && !ours.cut && ends_as(&ours, &reference, reference.frames - 2));
	jit_call(through_code_twice);
	ck_assert(ours.guessed && ours.cut);
}
END_TEST

/* Leaves return addresses of indirect calls below the caller's frame, 24 KiB deep. */
static void leave_return_addresses(unsigned depth)
{
	static void (*volatile again)(unsigned) = leave_return_addresses;
	volatile char room[480] = { 0 };

	if (depth)
		again(depth - 1);
	room[depth] = 1;
	sink += (uint64_t)room[depth];
}
/* Overwrites what was left right below the caller's frame, and not what is further down. */
static __attribute__((noinline)) void clear_some_below(void)
{
	volatile char room[12288];

	for (size_t i = 0; i < sizeof room; i++)
		room[i] = 0;
}

/* The callers of what earlier calls have left are zeros here. */
START_TEST(what_earlier_calls_have_left_is_no_caller_without_callers)
{
	begin();
	*(void **)&jit_call = make_code(calls_with_room, sizeof calls_with_room);
	take_reference();
	leave_return_addresses(48);
	clear_some_below();
	jit_call(look_from_here);
	ck_assert(ours.guessed && !ours.cut);
	ck_assert_uint_eq(ours.frames, reference.frames + 1);
	ck_assert(ends_as(&ours, &reference, reference.frames - 2));
}
END_TEST

/* Here they are those of the frame that is searched. */
START_TEST(the_caller_of_code_that_aligns_its_stack_is_above_the_former_stack_pointer)
{
	begin();
	*(void **)&jit_call = make_code(calls_aligned, sizeof calls_aligned);
	take_reference();
	leave_return_addresses(48);
	jit_call(look_from_here);
	ck_assert(ours.guessed && !ours.cut);
	ck_assert_uint_eq(ours.frames, reference.frames + 1);
	ck_assert(ends_as(&ours, &reference, reference.frames - 2));
}
END_TEST

/* A frame relative to rbp, while rbp is not known, as of a blocked thread. */
static __attribute__((noinline)) void look_without_registers(unsigned bytes)
{
	char *room = alloca(bytes);
	ucontext_t here;
	struct unwind_start start;

	memset(room, 2, bytes);
	getcontext(&here);
	take_registers(&start, &here);
	start.registers.known = 1u << UNWIND_RSP | 1u << UNWIND_RETURN;
	unwinder_begin(unwinder, &start);
	unwinder_walk(unwinder, &ours);
	sink += (uint64_t)room[0];
}
START_TEST(a_frame_of_unknown_size_is_found_without_its_frame_pointer)
{
	begin();
	take_reference();
	look_without_registers(500);
	ck_assert(ours.guessed && !ours.cut);
	ck_assert_uint_eq(ours.frames, reference.frames);
	ck_assert(ends_as(&ours, &reference, reference.frames - 2));
}
END_TEST

#endif

static Suite *unwind_suite(void)
{
	Suite *s = suite_create("unwind");
	TCase *t = tcase_create("unwind");

#ifdef __x86_64__
	tcase_set_timeout(t, 120);
	tcase_add_loop_test(t, callers_are_those_that_libgcc_finds_at_every_instruction, 0, WORKS);
	tcase_add_test(t, a_thread_with_a_small_stack_is_followed_to_its_start);
	tcase_add_test(t, a_stack_of_more_frames_than_the_limit_is_cut);
	tcase_add_test(t, code_without_rules_is_passed_by_a_search);
	tcase_add_test(t, two_searches_are_made_and_not_three);
	tcase_add_test(t, what_earlier_calls_have_left_is_no_caller_without_callers);
	tcase_add_test(
		t, the_caller_of_code_that_aligns_its_stack_is_above_the_former_stack_pointer);
	tcase_add_test(t, a_frame_of_unknown_size_is_found_without_its_frame_pointer);
#endif
	suite_add_tcase(s, t);
	return s;
}

int main(void)
{
	SRunner *r = srunner_create(unwind_suite());
	int failed;

	srunner_run_all(r, CK_ENV);
	failed = srunner_ntests_failed(r);
	srunner_free(r);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
