/* SPDX-License-Identifier: MIT
 * Recording on a machine whose pages are larger than ours: this program tells the collector so.
 */
#include "tests/support/collector_fixture.h"

#include "collector/stream/ranges.h"
#include "collector/stream/stream.h"
#include "collector/file/trace_file.h"

#include <check.h>
#include <dlfcn.h>
#include <sys/auxv.h>
#include <unistd.h>

static long pretended;

/* Instead of the C library's. A sanitizer asks before it is ready for instrumented code. */
__attribute__((no_sanitize("address", "undefined"))) long sysconf(int name)
{
	long (*real)(int);

	if (name == _SC_PAGESIZE)
		return pretended ? pretended : (long)getauxval(AT_PAGESZ);
	*(void **)&real = dlsym(RTLD_NEXT, "sysconf");
	return real(name);
}

START_TEST(pages_of_64_kilobytes_waste_none)
{
	struct trace_reader *reader;
	struct trace_event event;
	uint64_t pushes = 0;

	pretended = 65536;
	collector_start(0);
	for (int i = 0; i < 400000; i++) {
		range_push(0, "fill", NULL);
		range_pop(0);
		if (i % 100000 == 0)
			stream_end(); /* as a thread does that ends */
	}
	collector_finish();
	reader = collector_open_trace();
	while (reader_next(reader, &event) > 0)
		pushes += event.kind == TRACE_PUSH;
	ck_assert_uint_eq(pushes, 400000);
	ck_assert(reader_integrity(reader)->complete);
	ck_assert_uint_eq(reader_header(reader)->page_bytes, 65536);
	/* 8 bytes a pair; header, dictionary and one slot. */
	ck_assert_uint_lt(trace_header()->end, 400000 * 9 + 4 * 65536);
	reader_close(reader);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("pages");
	TCase *tests = tcase_create("pages");
	SRunner *runner;
	int failed;

	tcase_set_timeout(tests, 60);
	tcase_add_checked_fixture(tests, NULL, collector_remove_folder);
	tcase_add_test(tests, pages_of_64_kilobytes_waste_none);
	suite_add_tcase(suite, tests);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_ENV);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed != 0;
}
