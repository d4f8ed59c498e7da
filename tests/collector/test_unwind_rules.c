/* SPDX-License-Identifier: MIT
 * test_unwind_rules.c: damaged unwind tables give no rule or a wrong one, and never a fault. Objects
 * may be loaded and unloaded while they are read.
 */
#include "collector/sample/blocked_thread.h"
#include "collector/sample/function_parts.h"
#include "collector/sample/unwind_expression.h"

#include <alloca.h>
#include <check.h>
#include <dlfcn.h>
#include <link.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

#ifdef __x86_64__
#define HAS_RULES true
#else
#define HAS_RULES false /* there are none on other processors */
#endif

static struct unwind_expressions expressions;
static struct unwind_scratch scratch;

/* ---- damaged tables ---- */

/* A copy of the tables of libc, and an object that they belong to. */
static struct code_object copied;
static uint8_t *copy;
static size_t copy_bytes;

static int find_libc(struct dl_phdr_info *object, size_t size, void *data)
{
	(void)size, (void)data;
	if (!strstr(object->dlpi_name, "libc.so"))
		return 0;
	for (int i = 0; i < object->dlpi_phnum; i++)
		if (object->dlpi_phdr[i].p_type == PT_GNU_EH_FRAME)
			copied.header = object->dlpi_addr + object->dlpi_phdr[i].p_vaddr;
	for (int i = 0; i < object->dlpi_phnum; i++) {
		const uint64_t from = object->dlpi_addr + object->dlpi_phdr[i].p_vaddr,
			       to = from + object->dlpi_phdr[i].p_memsz;

		if (object->dlpi_phdr[i].p_type == PT_LOAD && copied.header >= from &&
			copied.header < to) {
			copied.start = from;
			copied.end = to;
		}
	}
	return 1;
}

/* Copies the segment with the tables to the end of a mapping, so that what is behind it cannot be
 * read. Its addresses are relative to each other. */
static void copy_tables(void)
{
	const size_t page = 4096;
	uint8_t *mapped;

	copied = (struct code_object){ .start = 0 };
	dl_iterate_phdr(find_libc, NULL);
	ck_assert_uint_gt(copied.header, copied.start);
	copy_bytes = (copied.end - copied.start) & ~(page - 1);
	mapped = mmap(NULL, copy_bytes + page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
		-1, 0);
	ck_assert_ptr_ne(mapped, MAP_FAILED);
	ck_assert_int_eq(mprotect(mapped + copy_bytes, page, PROT_NONE), 0);
	memcpy(mapped, (const void *)(uintptr_t)copied.start, copy_bytes);
	copied.header = (uint64_t)(uintptr_t)mapped + (copied.header - copied.start);
	copied.start = (uint64_t)(uintptr_t)mapped;
	copied.end = copied.start + copy_bytes + page;
	copy = mapped;
}

static uint32_t random_state = 1;
static uint32_t next_random(uint32_t limit)
{
	random_state = random_state * 1664525u + 1013904223u;
	return (random_state >> 8) % limit;
}

/* Asks for the rules of functions of the table. Returns how many there are. */
static unsigned read_some(unsigned count)
{
	const uint8_t *table = (const uint8_t *)(uintptr_t)copied.header + 12;
	struct unwind_rule rule;
	unsigned found = 0;
	int32_t function;

	for (unsigned i = 0; i < count; i++) {
		memcpy(&function, table + 8u * next_random(2000), sizeof function);
		found += unwind_rule_read(&copied, copied.header + (uint64_t)(int64_t)function + 1,
			&rule, &expressions, &scratch);
	}
	return found;
}

START_TEST(a_copy_of_tables_has_the_rules)
{
	copy_tables();
	ck_assert_uint_ge(read_some(2000), 1990);
}
END_TEST

START_TEST(damaged_tables_never_fault)
{
	unsigned found = 0;

	copy_tables();
	for (int round = 0; round < 2000; round++) {
		const size_t near = copied.header - copied.start;

		for (int i = 0; i < 200; i++)
			copy[near + next_random((uint32_t)(copy_bytes - near))] = (uint8_t)
				next_random(256);
		copied.table_known = round % 7 != 0;
		object_memory_forget(&scratch.memory);
		expressions.count = 0;
		found += read_some(50);
	}
	ck_assert_uint_gt(found, 0); /* it has read instructions, and not only failed early */
}
END_TEST

START_TEST(tables_that_vanish_while_they_are_used_give_no_rule)
{
	copy_tables();
	ck_assert_uint_gt(read_some(100), 90);
	ck_assert_int_eq(mprotect(copy, copy_bytes, PROT_NONE), 0);
	object_memory_forget(&scratch.memory);
	{
		struct unwind_rule rule;

		ck_assert(!unwind_rule_read(&copied, copied.header, &rule, &expressions, &scratch));
	}
}
END_TEST

/* ---- expressions ---- */

static bool read_nothing(void *memory, uint64_t address, uint64_t *word)
{
	(void)memory, (void)address;
	*word = 7;
	return true;
}

START_TEST(the_expression_of_a_linkage_table_is_computed)
{
	/* rsp + 8 + ((rip & 15) >= 11) * 8 */
	static const struct unwind_expression plt = { 11,
		{ 0x77, 0x08, 0x80, 0x00, 0x3f, 0x1a, 0x3b, 0x2a, 0x33, 0x24, 0x22 } };
	struct unwind_registers registers = { .known = UNWIND_ALL_KNOWN };
	uint64_t result;

	registers.value[UNWIND_RSP] = 1000;
	registers.value[UNWIND_RETURN] = 0x100b;
	ck_assert(unwind_expression_compute(&plt, &registers, NULL, read_nothing, NULL, &result));
	ck_assert_uint_eq(result, 1016);
	registers.value[UNWIND_RETURN] = 0x1006;
	ck_assert(unwind_expression_compute(&plt, &registers, NULL, read_nothing, NULL, &result));
	ck_assert_uint_eq(result, 1008);
	registers.known &= ~(1u << UNWIND_RSP);
	ck_assert(!unwind_expression_compute(&plt, &registers, NULL, read_nothing, NULL, &result));
}
END_TEST

START_TEST(random_expressions_end)
{
	struct unwind_registers registers = { .known = UNWIND_ALL_KNOWN };
	struct unwind_expression e;
	uint64_t result, first = 3;
	unsigned good = 0;

	for (int i = 0; i < 300000; i++) {
		e.bytes = (uint8_t)next_random(UNWIND_EXPRESSION_BYTES_MAX + 1);
		for (unsigned k = 0; k < e.bytes; k++)
			e.code[k] = (uint8_t)next_random(i % 2 ? 256 : 0x60);
		good += unwind_expression_compute(
			&e, &registers, &first, read_nothing, NULL, &result);
	}
	ck_assert_uint_gt(good, 1000);
}
END_TEST

/* ---- objects that come and go ---- */

static atomic_bool stop;
static atomic_uint walks;

static void *walk_all_the_time(void *data)
{
	struct unwinder *u = unwinder_open();
	static struct unwind_stack stack;

	while (!stop) {
		unwinder_update(u);
		if (blocked_thread_walk(u, *(uint32_t *)data, &stack))
			walks++;
	}
	unwinder_close(u);
	return NULL;
}

START_TEST(objects_are_loaded_and_unloaded_while_stacks_are_walked)
{
	uint32_t self = (uint32_t)getpid();
	pthread_t walker;
	void *library;

	ck_assert_int_eq(pthread_create(&walker, NULL, walk_all_the_time, &self), 0);
	for (int i = 0; i < 10000; i++) {
		library = dlopen("libanl.so.1", RTLD_NOW);
		if (!library)
			library = dlopen("libutil.so.1", RTLD_NOW);
		ck_assert_ptr_nonnull(library);
		dlclose(library);
		if (i % 100 == 0)
			usleep(1000);
	}
	for (int i = 0; i < 1000 && !walks; i++)
		usleep(10000);
	stop = true;
	pthread_join(walker, NULL);
	ck_assert_uint_gt(walks, 0);
}
END_TEST

/* ---- blocked threads ---- */

static int ends[2];
static pthread_mutex_t held = PTHREAD_MUTEX_INITIALIZER;
static volatile int sink;
static uint32_t blocked_tid;

static void in_sleep(void)
{
	usleep(3000000);
}
static void in_futex(void)
{
	pthread_mutex_lock(&held);
	pthread_mutex_unlock(&held);
}
static void in_pipe(void)
{
	char byte;

	sink += (int)read(ends[0], &byte, 1);
}
static void in_poll(void)
{
	poll(NULL, 0, 3000);
}
static void (*const blocks[])(void) = { in_sleep, in_futex, in_pipe, in_poll };

static __attribute__((noinline)) void call_deep(unsigned depth, void (*block)(void))
{
	char *room = alloca(depth * 24 + 16);

	memset(room, (int)depth, depth * 24 + 16);
	if (depth)
		call_deep(depth - 1, block);
	else
		block();
	sink += room[depth];
}

static void *block_thread(void *block)
{
	__atomic_store_n(&blocked_tid, (uint32_t)syscall(SYS_gettid), __ATOMIC_RELEASE);
	call_deep(20, *(void (*const *)(void))block);
	return NULL;
}

START_TEST(the_stack_of_a_blocked_thread_is_complete)
{
	struct unwinder *u = unwinder_open();
	static struct unwind_stack stack;
	struct function_parts parts;
	uint32_t tid, own = 0;
	pthread_t thread;
	bool found = false;

	ck_assert_int_eq(pipe(ends), 0);
	pthread_mutex_lock(&held);
	ck_assert_int_eq(
		pthread_create(&thread, NULL, block_thread, (void *)(uintptr_t)&blocks[_i]), 0);
	unwinder_update(u);
	ck_assert(function_parts_find(u, (uint64_t)(uintptr_t)call_deep, &parts));
	for (int i = 0; i < 2000 && !found; i++) {
		usleep(1000);
		tid = __atomic_load_n(&blocked_tid, __ATOMIC_ACQUIRE);
		found = tid && blocked_thread_walk(u, tid, &stack);
		own = found ? function_parts_count_frames(&parts, &stack, 0) : 0;
		found = own > 0; /* it may have been blocked elsewhere before */
	}
	ck_assert_uint_eq(own, 21);
	ck_assert(!stack.cut);
	pthread_mutex_unlock(&held);
	ck_assert_int_eq(write(ends[1], "x", 1), 1);
	pthread_join(thread, NULL);
	unwinder_close(u);
}
END_TEST

static Suite *unwind_rules_suite(void)
{
	Suite *s = suite_create("unwind_rules");
	TCase *t = tcase_create("unwind_rules");

	tcase_set_timeout(t, 120);
	if (HAS_RULES) {
		tcase_add_test(t, a_copy_of_tables_has_the_rules);
		tcase_add_test(t, damaged_tables_never_fault);
		tcase_add_test(t, tables_that_vanish_while_they_are_used_give_no_rule);
		tcase_add_test(t, the_expression_of_a_linkage_table_is_computed);
		tcase_add_loop_test(t, the_stack_of_a_blocked_thread_is_complete, 0, 4);
	}
	tcase_add_test(t, random_expressions_end);
	tcase_add_test(t, objects_are_loaded_and_unloaded_while_stacks_are_walked);
	suite_add_tcase(s, t);
	return s;
}

int main(void)
{
	SRunner *r = srunner_create(unwind_rules_suite());
	int failed;

	srunner_run_all(r, CK_ENV);
	failed = srunner_ntests_failed(r);
	srunner_free(r);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
