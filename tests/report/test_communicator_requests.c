/* SPDX-License-Identifier: MIT
 * test_communicator_requests.c: what a process requested of NCCL is counted as all ranks count it.
 */
#include "report/analysis/communicator_requests.h"

#include <check.h>
#include <stdlib.h>

static const struct trace_communicator communicators[] = {
	{ .key = 7, .communicator = 1, .ranks = 4, .rank = 2 },
	{ .key = 8, .communicator = 2, .ranks = 2 }
};

static struct communicator_requests two_communicators(void)
{
	struct communicator_requests requests = { .count = 0 };

	for (size_t i = 0; i < 2; i++)
		communicator_requests_add(
			&requests, &communicators[i], (struct trace_text){ "name", i ? 4 : 0, i });
	return requests;
}

static void count_call(struct communicator_requests *requests, size_t index,
	enum trace_nccl_operation operation, unsigned flags, uint64_t sequence, uint32_t peer)
{
	const struct trace_collective record = { .head = { .flags = (uint8_t)flags },
		.operation = operation,
		.sequence = sequence,
		.peer = peer };

	communicator_requests_count(requests, index, &communicators[index], &record);
}

START_TEST(a_call_counts_when_it_begins_or_is_in_a_group)
{
	struct communicator_requests requests = two_communicators();

	ck_assert_uint_eq(requests.all[0].count, 1);
	count_call(&requests, 0, TRACE_NCCL_ALL_REDUCE, TRACE_COLLECTIVE_BEGIN, 0, UINT32_MAX);
	count_call(&requests, 0, TRACE_NCCL_ALL_REDUCE, 0, 0, UINT32_MAX);
	count_call(&requests, 0, TRACE_NCCL_ALL_GATHER, TRACE_COLLECTIVE_GROUPED, 1, UINT32_MAX);
	count_call(&requests, 0, TRACE_NCCL_SPLIT, TRACE_COLLECTIVE_BEGIN, 2, UINT32_MAX);
	ck_assert_uint_eq(requests.all[0].count, 4);
	ck_assert_uint_eq(requests.all[0].operation, TRACE_NCCL_SPLIT);
	ck_assert_uint_eq(requests.all[1].count, 1);
	/* Calls that are not in the trace are in the sequence. */
	count_call(&requests, 1, TRACE_NCCL_ALL_REDUCE, TRACE_COLLECTIVE_BEGIN, 41, UINT32_MAX);
	ck_assert_uint_eq(requests.all[1].count, 43);
	communicator_requests_free(&requests);
}
END_TEST

START_TEST(sends_and_receives_count_by_pair_and_direction)
{
	struct communicator_requests requests = two_communicators();

	for (uint64_t i = 0; i < 6; i++)
		count_call(&requests, 0, i % 3 ? TRACE_NCCL_RECV : TRACE_NCCL_SEND,
			TRACE_COLLECTIVE_BEGIN, i, 3);
	count_call(&requests, 0, TRACE_NCCL_ALL_REDUCE, TRACE_COLLECTIVE_BEGIN, 6, UINT32_MAX);
	ck_assert_uint_eq(requests.count, 4);
	ck_assert_uint_eq(requests.all[0].count, 2);
	ck_assert_uint_eq(requests.all[2].from, 2);
	ck_assert_uint_eq(requests.all[2].to, 3);
	ck_assert_uint_eq(requests.all[2].count, 2);
	ck_assert_uint_eq(requests.all[3].from, 3);
	ck_assert_uint_eq(requests.all[3].count, 4);
	communicator_requests_free(&requests);
}
END_TEST

START_TEST(more_pairs_than_are_kept_are_noticed)
{
	struct communicator_requests requests = two_communicators();

	for (uint32_t i = 0; i < REQUEST_PAIRS_MAX; i++)
		count_call(&requests, 0, TRACE_NCCL_SEND, TRACE_COLLECTIVE_BEGIN, i, 100 + i);
	ck_assert(!requests.has_more_pairs);
	count_call(&requests, 0, TRACE_NCCL_SEND, TRACE_COLLECTIVE_BEGIN, 64, 99);
	ck_assert(requests.has_more_pairs);
	ck_assert_uint_eq(requests.count, 2 + REQUEST_PAIRS_MAX);
	communicator_requests_free(&requests);
}
END_TEST

START_TEST(a_communicator_is_being_made_until_its_call_returns)
{
	struct communicator_requests requests = two_communicators(), copy;

	count_call(&requests, 1, TRACE_NCCL_INIT, TRACE_COLLECTIVE_BEGIN, 0, UINT32_MAX);
	copy = communicator_requests_copy(&requests);
	ck_assert(copy.all[1].is_being_made && !copy.all[0].is_being_made);
	count_call(&requests, 1, TRACE_NCCL_INIT, 0, 0, UINT32_MAX);
	ck_assert(!requests.all[1].is_being_made);
	communicator_requests_free(&requests);
	communicator_requests_free(&copy);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("communicator_requests");
	TCase *cases = tcase_create("communicator_requests");
	SRunner *runner = srunner_create(suite);
	int failed;

	tcase_add_test(cases, a_call_counts_when_it_begins_or_is_in_a_group);
	tcase_add_test(cases, sends_and_receives_count_by_pair_and_direction);
	tcase_add_test(cases, more_pairs_than_are_kept_are_noticed);
	tcase_add_test(cases, a_communicator_is_being_made_until_its_call_returns);
	suite_add_tcase(suite, cases);
	srunner_run_all(runner, CK_ENV);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
