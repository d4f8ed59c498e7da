/* SPDX-License-Identifier: MIT
 * The two ids of a driver call inside a runtime call: which one our trace has, which one another
 * client gets, under each rule of CUPTI, and when neither is found.
 */
#include "collector/cupti/call_ids.h"
#include "collector/cupti/client.h"
#include "collector/cupti/session_state.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

#define LAUNCH 211u /* of the runtime */
#define MALLOC 20u
#define GET_DEVICE 17u

static struct cupti_session session;
static struct cupti_config config;
static int enabled;

static int callback_name(int domain, uint32_t cbid, const char **name)
{
	*name = domain == CUPTI_RUNTIME && cbid == LAUNCH       ? "cudaLaunchKernel_v7000"
		: domain == CUPTI_RUNTIME && cbid == MALLOC     ? "cudaMalloc_v3020"
		: domain == CUPTI_RUNTIME && cbid == GET_DEVICE ? "cudaGetDevice_v3020"
								: NULL;
	return *name ? CUPTI_OK : CUPTI_INVALID_PARAMETER;
}

static int enable_callback(uint32_t on, void *subscriber, int domain, uint32_t cbid)
{
	(void)subscriber;
	ck_assert_int_eq(domain, CUPTI_RUNTIME);
	ck_assert(cbid == LAUNCH || cbid == MALLOC);
	enabled += on ? 1 : -1;
	return CUPTI_OK;
}

static void set_up(void)
{
	session.library.callback_name = callback_name;
	session.library.enable_callback = enable_callback;
	session.config = &config;
	session.running = true;
	cupti_session = &session;
	call_ids_follow_runtime(true);
}

static void runtime_call(uint32_t site, uint32_t id)
{
	call_ids_on_runtime_call(&(struct cupti_call){ .site = site, .correlation = id });
}

/* A runtime call `id` that makes the driver call `id` + 1. Returns the id in our trace. */
static uint32_t launch(uint32_t id)
{
	uint32_t ours;

	runtime_call(CUPTI_ENTER, id);
	ours = call_ids_on_driver_call(id + 1);
	runtime_call(CUPTI_EXIT, id);
	return ours;
}

START_TEST(only_runtime_calls_that_make_driver_calls_of_ours_are_followed)
{
	ck_assert_int_eq(enabled, 2);
	ck_assert(call_ids_owns_callback(CUPTI_RUNTIME, LAUNCH));
	ck_assert(!call_ids_owns_callback(CUPTI_RUNTIME, GET_DEVICE));
	call_ids_follow_runtime(true);
	ck_assert_int_eq(enabled, 2);
	call_ids_follow_runtime(false);
	ck_assert_int_eq(enabled, 0);
	ck_assert(!call_ids_owns_callback(CUPTI_RUNTIME, LAUNCH));
}
END_TEST

START_TEST(until_the_rule_is_known_both_ids_lead_to_the_call)
{
	ck_assert_uint_eq(launch(10), 11);
	for (uint32_t id = 10; id <= 11; id++) {
		ck_assert_uint_eq(call_ids_for_trace(id), 11);
		ck_assert_uint_eq(call_ids_for_client(id), 10);
	}
}
END_TEST

START_TEST(records_may_carry_the_driver_call_s_id)
{
	launch(10);
	call_ids_on_gpu_record(11);
	ck_assert_uint_eq(launch(20), 21);
	ck_assert_uint_eq(call_ids_for_trace(21), 21);
	ck_assert_uint_eq(call_ids_for_client(21), 20);
}
END_TEST

START_TEST(records_may_carry_the_runtime_call_s_id)
{
	launch(10);
	call_ids_on_gpu_record(10);
	ck_assert_uint_eq(call_ids_for_trace(10), 11); /* as it was written before */
	ck_assert_uint_eq(launch(20), 20);
	ck_assert_uint_eq(call_ids_for_trace(20), 20);
	ck_assert_uint_eq(call_ids_for_client(20), 20);
}
END_TEST

START_TEST(a_driver_call_without_an_id_has_that_of_its_runtime_call)
{
	runtime_call(CUPTI_ENTER, 10);
	ck_assert_uint_eq(call_ids_on_driver_call(0), 10);
	runtime_call(CUPTI_EXIT, 10);
	ck_assert_uint_eq(call_ids_on_driver_call(0), 0);
}
END_TEST

/* CUPTI leaves 0 out. */
START_TEST(ids_may_wrap)
{
	runtime_call(CUPTI_ENTER, UINT32_MAX);
	ck_assert_uint_eq(call_ids_on_driver_call(1), 1);
	runtime_call(CUPTI_EXIT, UINT32_MAX);
	ck_assert_uint_eq(call_ids_for_client(1), UINT32_MAX);
	ck_assert_uint_eq(call_ids_for_trace(UINT32_MAX), 1);
}
END_TEST

START_TEST(an_older_call_with_the_same_slot_is_not_taken_for_it)
{
	launch(10);
	ck_assert_uint_eq(call_ids_for_client(11 + (1u << 17)), 11 + (1u << 17));
	ck_assert_uint_eq(call_ids_for_trace(10 + (1u << 17)), 10 + (1u << 17));
}
END_TEST

START_TEST(a_driver_call_of_the_program_has_one_id)
{
	launch(10);
	ck_assert_uint_eq(call_ids_on_driver_call(30), 30);
	call_ids_on_gpu_record(30); /* teaches nothing */
	ck_assert_uint_eq(call_ids_for_client(30), 30);
	ck_assert_uint_eq(call_ids_for_trace(10), 11);
}
END_TEST

START_TEST(a_runtime_call_without_an_end_is_forgotten_with_its_callbacks)
{
	runtime_call(CUPTI_ENTER, 10);
	call_ids_follow_runtime(false);
	ck_assert_uint_eq(call_ids_on_driver_call(12), 12);
	ck_assert_uint_eq(call_ids_for_client(12), 12);
}
END_TEST

START_TEST(with_records_of_nested_driver_calls_the_client_gets_all_ids_unchanged)
{
	launch(10);
	call_ids_on_driver_record(30);
	ck_assert_uint_eq(call_ids_for_client(11), 10);
	call_ids_on_driver_record(11);
	ck_assert_uint_eq(call_ids_for_client(11), 11);
}
END_TEST

START_TEST(our_own_calls_are_marked)
{
	call_ids_follow_own(true);
	call_ids_own_call = true;
	ck_assert_uint_eq(call_ids_on_driver_call(5), 5);
	call_ids_own_call = false;
	call_ids_on_driver_call(6);
	ck_assert(call_ids_is_own(5));
	ck_assert(!call_ids_is_own(6) && !call_ids_is_own(7));
	ck_assert_uint_eq(call_ids_for_client(5), 5);
	ck_assert_uint_eq(call_ids_for_trace(5), 5);
}
END_TEST

START_TEST(records_of_neither_id_are_noticed)
{
	launch(100);
	for (int i = 0; i < 100; i++)
		call_ids_on_gpu_record(50); /* of a call before the session */
	for (uint32_t i = 0; i < 15; i++)
		call_ids_on_gpu_record(200 + i);
	ck_assert(!call_ids_fail());
	call_ids_on_gpu_record(0);
	ck_assert(call_ids_fail());
}
END_TEST

START_TEST(once_an_id_was_found_unknown_ones_are_no_failure)
{
	launch(100);
	call_ids_on_gpu_record(101);
	for (uint32_t i = 0; i < 100; i++)
		call_ids_on_gpu_record(200 + i);
	ck_assert(!call_ids_fail());
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("call ids");
	TCase *tests = tcase_create("all");
	SRunner *runner;
	int failed;

	tcase_add_checked_fixture(tests, set_up, NULL);
	tcase_add_test(tests, only_runtime_calls_that_make_driver_calls_of_ours_are_followed);
	tcase_add_test(tests, until_the_rule_is_known_both_ids_lead_to_the_call);
	tcase_add_test(tests, records_may_carry_the_driver_call_s_id);
	tcase_add_test(tests, records_may_carry_the_runtime_call_s_id);
	tcase_add_test(tests, a_driver_call_without_an_id_has_that_of_its_runtime_call);
	tcase_add_test(tests, ids_may_wrap);
	tcase_add_test(tests, an_older_call_with_the_same_slot_is_not_taken_for_it);
	tcase_add_test(tests, a_driver_call_of_the_program_has_one_id);
	tcase_add_test(tests, a_runtime_call_without_an_end_is_forgotten_with_its_callbacks);
	tcase_add_test(
		tests, with_records_of_nested_driver_calls_the_client_gets_all_ids_unchanged);
	tcase_add_test(tests, our_own_calls_are_marked);
	tcase_add_test(tests, records_of_neither_id_are_noticed);
	tcase_add_test(tests, once_an_id_was_found_unknown_ones_are_no_failure);
	suite_add_tcase(suite, tests);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_ENV);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
