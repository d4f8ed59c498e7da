/* SPDX-License-Identifier: MIT
 * test_tensor_events.c: what an observer of memory sees of tensors, at once and later.
 */
#include "report/base/threads.h"
#include "tests/support/profile_fixture.h"

#include <check.h>
#include <stdlib.h>

#define MB 1000000

/* What an observer of memory saw, in order. */
struct seen_memory {
	uint64_t sum, changes, marks;
};

static void add_seen(struct seen_memory *seen, uint64_t number)
{
	seen->sum = (seen->sum ^ number) * UINT64_C(0x100000001b3);
}

static void see_memory(void *context, const struct observed_memory *memory)
{
	struct seen_memory *seen = context;

	add_seen(seen, memory->event->kind);
	add_seen(seen, memory->event->time_ns);
	add_seen(seen, memory->at_ns);
	add_seen(seen, memory->address);
	add_seen(seen, ((const struct trace_head *)memory->event->record)->size);
	add_seen(seen, memory->change->allocated_bytes);
	add_seen(seen, memory->change->freed_bytes);
	add_seen(seen, memory->change->node);
	add_seen(seen, memory->change->freed_node);
	seen->changes++;
}

static void see_mark(void *context, const struct trace_event *event)
{
	struct seen_memory *seen = context;

	add_seen(seen, event->kind);
	add_seen(seen, seen->changes); /* those before it */
	seen->marks++;
}

static void forget_seen(void *context)
{
	*(struct seen_memory *)context = (struct seen_memory){ .sum = 0 };
}

#define ROUNDS 8000u /* more than a mebibyte */

/* Tensors of two threads in device memory that grows; a request fails now and then. */
static struct trace_builder *busy_allocator(void)
{
	struct trace_builder *builder = builder_new();
	uint64_t held = 0, at = 10;

	build_alloc(builder, 1, at, 0x100000000, 4 * MB);
	for (uint64_t i = 0; i < ROUNDS; i++) {
		const uint32_t thread = 1 + i % 2;
		const int64_t bytes = 512 * (1 + (int64_t)(i % 5));

		build_push(builder, thread, at += 10, i % 3 ? "a" : "b");
		held += (uint64_t)bytes;
		build_tensor(builder, thread, at += 10, 0x100000000 + i * 4096, bytes, held, 4 * MB);
		if (i % 1000 == 999) {
			build_tensor_oom(builder, thread, at += 10, 8 * MB, held, 4 * MB);
			build_alloc(builder, thread, at += 10, 0x200000000 + i * MB, MB);
		}
		build_pop(builder, thread, at += 10);
		if (i % 4 == 3) {
			held -= (uint64_t)bytes;
			build_tensor(builder, 3 - thread, at += 10, 0x100000000 + i * 4096, -bytes,
				held, 4 * MB);
		}
	}
	return builder;
}

static struct seen_memory seen_with(
	struct profile_fixture *fixture, unsigned cores, bool may_be_later)
{
	struct seen_memory seen = { .sum = 0 };
	const struct profile_observer observer = { .context = &seen,
		.restart = forget_seen,
		.memory = see_memory,
		.memory_mark = see_mark,
		.memory_may_be_later = may_be_later };
	struct profile_options options = fixture->profile->options;

	options.observer = &observer;
	threads_set_limit(cores);
	profile_free(profile_build(fixture->reader, fixture->texts, &options));
	return seen;
}

START_TEST(what_an_observer_sees_later_is_what_it_would_see_at_once)
{
	struct profile_fixture fixture = fixture_of(busy_allocator(), NULL);
	const struct seen_memory at_once = seen_with(&fixture, 1, false);

	ck_assert_uint_eq(at_once.changes, 1 + ROUNDS + ROUNDS / 4 + ROUNDS / 1000);
	ck_assert_uint_eq(at_once.marks, ROUNDS / 1000);
	for (unsigned cores = 1; cores <= 3; cores++) {
		const struct seen_memory later = seen_with(&fixture, cores, true);

		ck_assert_mem_eq(&later, &at_once, sizeof later);
	}
	fixture_free(&fixture);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("tensor_events");
	TCase *cases = tcase_create("observers");
	SRunner *runner = srunner_create(suite);
	int failed;

	tcase_set_timeout(cases, 60);
	tcase_add_test(cases, what_an_observer_sees_later_is_what_it_would_see_at_once);
	suite_add_tcase(suite, cases);
	srunner_run_all(runner, CK_ENV);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
