/* SPDX-License-Identifier: MIT
 * test_import_damage.c: traces of other tools with bytes of them changed, dropped, repeated and moved, thousands of times:
 * each is refused or made into a trace that reads to its end, within bounds.
 */
#include "report/import.h"
#include "report/kineto_parts.h"
#include "report/kineto_trace.h"
#include "report/nsys.h"
#include "report/unpacked.h"

#include <check.h>
#include <fcntl.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include <zlib.h>

#define JSON_CASES 4000u
#define GZIP_CASES 500u
#define SQLITE_CASES 600u
#define SIZE_MOST (8u << 20) /* of what is made of a few thousand bytes */

static const char json[] =
	"{\"schemaVersion\": 1, \"deviceProperties\": [{\"id\": 0, \"name\": \"G\", \"numSms\": 132}], \"distributedInfo\": {\"rank\": 1},\n"
	"\"baseTimeNanoseconds\": 1711964646000000000, \"traceEvents\": [\n"
	"{\"ph\": \"M\", \"name\": \"process_name\", \"pid\": 7, \"tid\": 0, \"ts\": 0, \"args\": {\"name\": \"python3\"}},\n"
	"{\"ph\": \"X\", \"cat\": \"user_annotation\", \"name\": \"ProfilerStep#1\", \"pid\": 7, \"tid\": 1, \"ts\": 1.000, \"dur\": 900.5},\n"
	"{\"ph\": \"X\", \"cat\": \"python_function\", \"name\": \"a.py(3): f\", \"pid\": 7, \"tid\": 1, \"ts\": 2, \"dur\": 800},\n"
	"{\"ph\": \"X\", \"cat\": \"python_function\", \"name\": \"nn.Module: Net_0\", \"pid\": 7, \"tid\": 1, \"ts\": 3, \"dur\": 700},\n"
	"{\"ph\": \"X\", \"cat\": \"cpu_op\", \"name\": \"aten::mm\", \"pid\": 7, \"tid\": 1, \"ts\": 10.125, \"dur\": 50, \"args\": {\"External id\": 5, "
	"\"Input Dims\": [[8, 8], []], \"Call stack\": \"b.py(1): g;c.py(2): h\", \"Sequence number\": 4, \"Fwd thread id\": 0}},\n"
	"{\"ph\": \"X\", \"cat\": \"Operator\", \"name\": \"\\u00e4\\ud800\\\\\", \"pid\": 7, \"tid\": \"1\", \"ts\": 40, \"dur\": 50, \"args\": {\"External id\": 6}},\n"
	"{\"ph\": \"X\", \"cat\": \"cuda_runtime\", \"name\": \"cudaLaunchKernel\", \"pid\": 7, \"tid\": 1, \"ts\": 20, \"dur\": 5, \"args\": {\"correlation\": 1}},\n"
	"{\"ph\": \"X\", \"cat\": \"cuda_driver\", \"name\": \"cuGraphLaunch\", \"pid\": 7, \"tid\": 1, \"ts\": 30, \"dur\": 5, \"args\": {\"correlation\": 2}},\n"
	"{\"ph\": \"X\", \"cat\": \"Runtime\", \"name\": \"cudaMemcpyAsync\", \"pid\": 7, \"tid\": 1, \"ts\": 41, \"dur\": 5, \"args\": {\"External id\": 6}},\n"
	"{\"ph\": \"X\", \"cat\": \"kernel\", \"name\": \"gemm\", \"pid\": 0, \"tid\": 7, \"ts\": 60, \"dur\": 7.001, \"args\": {\"correlation\": 1, \"device\": 0, "
	"\"stream\": 7, \"grid\": [4, 1, 1], \"block\": [128, 1, 1], \"registers per thread\": 32, \"shared memory\": 1024}},\n"
	"{\"ph\": \"X\", \"cat\": \"Kernel\", \"name\": \"nccl\", \"pid\": 0, \"tid\": \"stream 9\", \"ts\": 62, \"dur\": 9, \"args\": {\"correlation\": 2}},\n"
	"{\"ph\": \"X\", \"cat\": \"gpu_memcpy\", \"name\": \"Memcpy HtoD (Pageable -> Device)\", \"pid\": 0, \"tid\": 7, \"ts\": 80, \"dur\": 3, "
	"\"args\": {\"External id\": 6, \"bytes\": 64}},\n"
	"{\"ph\": \"X\", \"cat\": \"cuda_sync\", \"name\": \"Stream Sync\", \"pid\": 0, \"tid\": 7, \"ts\": 85, \"dur\": 2, \"args\": {\"stream\": 7}},\n"
	"{\"ph\": \"i\", \"name\": \"[memory]\", \"pid\": 7, \"tid\": 1, \"ts\": 25, \"args\": {\"Bytes\": 512, \"Addr\": 4096, \"Device Type\": 1, "
	"\"Device Id\": 0, \"Total Allocated\": 512, \"Total Reserved\": 1024}},\n"
	"{\"ph\": \"i\", \"name\": \"[memory]\", \"pid\": 7, \"tid\": 1, \"ts\": 26, \"args\": {\"Bytes\": -512, \"Device Type\": 1, \"Device Id\": 0}},\n"
	"{\"ph\": \"s\", \"cat\": \"fwdbwd\", \"name\": \"fwdbwd\", \"id\": 1, \"pid\": 7, \"tid\": 1, \"ts\": 10.125},\n"
	"{\"ph\": \"f\", \"cat\": \"fwdbwd\", \"name\": \"fwdbwd\", \"id\": 1, \"pid\": 7, \"tid\": 2, \"ts\": 200, \"bp\": \"e\"},\n"
	"{\"ph\": \"X\", \"cat\": \"cpu_op\", \"name\": \"MmBackward0\", \"pid\": 7, \"tid\": 2, \"ts\": 200, \"dur\": 30, \"args\": {\"Sequence number\": 4, \"Fwd thread id\": 1}},\n"
	"{\"ph\": \"B\", \"cat\": \"cpu_op\", \"name\": \"begun\", \"pid\": 7, \"tid\": 1, \"ts\": 300}, {\"ph\": \"E\", \"pid\": 7, \"tid\": 1, \"ts\": 310}\n"
	"], \"traceName\": \"x\", \"odd\": NaN}\n";

static uint64_t dice = 88172645463325252u;

static size_t roll(size_t below)
{
	dice ^= dice << 13;
	dice ^= dice >> 7;
	dice ^= dice << 17;
	return below ? (size_t)(dice % below) : 0;
}

struct bytes {
	unsigned char *at;
	size_t count;
};

static const char *const words[] = { "9223372036854775807", "-1", "1e300", "-9.999e99", "\"", "\\", "{", "[", "]", "}", ",", ":", "null", "\"ts\": 1e18, ",
	"\"dur\": 1e17, ", "\"dur\": -5, ", "4294967296", "\"correlation\": 1, ", "\"pid\": \"\", ", "0.0000000005" };

/* A few of: a byte changed, a part dropped, a part repeated elsewhere, a word put in. */
static struct bytes damaged(const unsigned char *whole, size_t count, bool text)
{
	struct bytes made = { malloc(count * 2 + 4096), count };

	memcpy(made.at, whole, count);
	for (size_t times = 1 + roll(6); times-- > 0 && made.count;) {
		const size_t at = roll(made.count), length = roll(made.count - at < 300 ? made.count - at : 300);
		const char *word = words[roll(sizeof words / sizeof *words)];

		switch (roll(text ? 4 : 2)) {
		case 0:
			made.at[at] = (unsigned char)roll(256);
			break;
		case 1:
			made.at[at] ^= (unsigned char)(1u << roll(8));
			break;
		case 2:
			memmove(made.at + at, made.at + at + length, made.count - at - length);
			made.count -= length;
			break;
		default:
			memmove(made.at + at + strlen(word), made.at + at, made.count - at);
			memcpy(made.at + at, word, strlen(word));
			made.count += strlen(word);
		}
	}
	if (!roll(8))
		made.count = roll(made.count);
	return made;
}

static int file_of(struct bytes bytes)
{
	const int fd = memfd_create("damaged", MFD_CLOEXEC);

	ck_assert_int_eq((int64_t)write(fd, bytes.at, bytes.count), (int64_t)bytes.count);
	return fd;
}

/* SQLite wants a file with a name. */
static int named_file_of(struct bytes bytes, char *path, size_t room)
{
	const char *folder = getenv("TMPDIR");
	int fd;

	snprintf(path, room, "%s/damaged-XXXXXX", folder && *folder ? folder : "/tmp");
	fd = mkstemp(path);
	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq((int64_t)write(fd, bytes.at, bytes.count), (int64_t)bytes.count);
	return fd;
}

/* The trace made of it reads to its end. */
static void check_trace(struct kineto *kineto)
{
	const int fd = memfd_create("made", MFD_CLOEXEC);
	char path[64], error[READER_ERROR_BYTES];
	struct trace_reader *reader;
	struct trace_event event;
	int64_t latest = 0;
	int status;

	ck_assert(kineto_write(kineto, fd));
	ck_assert_int_lt(lseek(fd, 0, SEEK_END), SIZE_MOST);
	snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
	reader = reader_open(path, error);
	ck_assert_msg(reader != NULL, "%s", error);
	while ((status = reader_next(reader, &event)) > 0) {
		ck_assert_int_ge((int64_t)event.time_ns, latest);
		latest = (int64_t)event.time_ns;
	}
	ck_assert_int_eq(status, 0);
	reader_close(reader);
	close(fd);
}

static bool try_json(int fd)
{
	struct unpacked *file = unpacked_open(fd);
	struct kineto kineto;
	const bool good = kineto_read(&kineto, file);

	if (good)
		check_trace(&kineto);
	else
		ck_assert_ptr_nonnull(kineto.problem);
	kineto_free(&kineto);
	unpacked_close(file);
	return good;
}

START_TEST(json_with_damage_is_refused_or_read)
{
	size_t read = 0;

	for (unsigned i = 0; i < JSON_CASES; i++) {
		const struct bytes bytes = damaged((const unsigned char *)json, sizeof json - 1, true);

		read += try_json(file_of(bytes));
		free(bytes.at);
	}
	ck_assert_uint_gt(read, JSON_CASES / 2);
}
END_TEST

START_TEST(gzip_with_damage_is_refused_or_read)
{
	unsigned char packed[sizeof json + 1024];
	z_stream stream = { .next_in = (unsigned char *)(uintptr_t)json, .avail_in = sizeof json - 1, .next_out = packed, .avail_out = sizeof packed };

	ck_assert_int_eq(deflateInit2(&stream, 6, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY), Z_OK);
	ck_assert_int_eq(deflate(&stream, Z_FINISH), Z_STREAM_END);
	for (unsigned i = 0; i < GZIP_CASES; i++) {
		const struct bytes bytes = damaged(packed, stream.total_out, false);

		try_json(file_of(bytes));
		free(bytes.at);
	}
	deflateEnd(&stream);
}
END_TEST

static const char *const statements[] = {
	"CREATE TABLE StringIds (id INTEGER PRIMARY KEY, value TEXT)",
	"INSERT INTO StringIds VALUES (1, 'cudaLaunchKernel_v7000'), (2, '_Z4gemmPfi'), (3, 'forward'), (4, '[Unknown]')",
	"CREATE TABLE NVTX_EVENTS (start INTEGER, end INTEGER, eventType INTEGER, text TEXT, globalTid INTEGER, endGlobalTid INTEGER, textId INTEGER, domainId INTEGER)",
	"INSERT INTO NVTX_EVENTS VALUES (100, 9000, 59, 'step', 281474976710657, NULL, NULL, 0), (200, 8000, 59, NULL, 281474993487874, NULL, 3, 5)",
	"INSERT INTO NVTX_EVENTS VALUES (50, NULL, 75, 'domain', 281474976710657, NULL, NULL, 5), (300, 400, 60, 'span', 281474976710657, 281474976710658, NULL, 0), (350, NULL, 34, 'mark', 281474976710657, NULL, NULL, 0)",
	"CREATE TABLE CUPTI_ACTIVITY_KIND_RUNTIME (start INTEGER, end INTEGER, globalTid INTEGER, correlationId INTEGER, nameId INTEGER)",
	"INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME VALUES (500, 600, 281474976710657, 7, 1), (510, 620, 281474993487874, 7, 1)",
	"CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start INTEGER, end INTEGER, deviceId INTEGER, contextId INTEGER, streamId INTEGER, correlationId INTEGER, globalPid INTEGER, mangledName INTEGER, shortName INTEGER)",
	"INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (700, 900, 0, 1, 7, 7, 281474976710656, 2, 2), (710, 920, 0, 1, 7, 7, 281474993487872, 4, 2)",
	"CREATE TABLE CUPTI_ACTIVITY_KIND_MEMCPY (start INTEGER, end INTEGER, deviceId INTEGER, correlationId INTEGER, globalPid INTEGER, bytes INTEGER, copyKind INTEGER, srcKind INTEGER, dstKind INTEGER)",
	"INSERT INTO CUPTI_ACTIVITY_KIND_MEMCPY VALUES (1000, 1100, 0, 9, 281474976710656, 64, 1, 0, 2)",
	"CREATE TABLE PROCESSES (globalPid INTEGER, pid INTEGER, name TEXT)", "INSERT INTO PROCESSES VALUES (281474976710656, 0, 'python3')",
};

/* The bytes of a small export. */
static struct bytes export_bytes(void)
{
	sqlite3_int64 count = 0;
	struct bytes bytes;
	sqlite3 *db;

	ck_assert_int_eq(sqlite3_open(":memory:", &db), SQLITE_OK);
	ck_assert_int_eq(sqlite3_exec(db, "PRAGMA page_size = 512", NULL, NULL, NULL), SQLITE_OK);
	for (size_t i = 0; i < sizeof statements / sizeof *statements; i++)
		ck_assert_int_eq(sqlite3_exec(db, statements[i], NULL, NULL, NULL), SQLITE_OK);
	bytes.at = sqlite3_serialize(db, "main", &count, 0);
	bytes.count = (size_t)count;
	sqlite3_close(db);
	ck_assert_ptr_nonnull(bytes.at);
	return bytes;
}

START_TEST(databases_with_damage_are_refused_or_read)
{
	const struct bytes whole = export_bytes();
	size_t read = 0;

	for (unsigned i = 0; i < SQLITE_CASES; i++) {
		const struct bytes bytes = damaged(whole.at, whole.count, false);
		char path[256];
		const int fd = named_file_of(bytes, path, sizeof path);
		struct kineto kineto;
		char problem[320] = "";
		const bool good = nsys_read(&kineto, fd, problem, sizeof problem);

		for (uint32_t process = 0; good && process < kineto.process_count; process++) {
			struct kineto part = kineto_part(&kineto, process);

			check_trace(&part);
			kineto_part_free(&part);
		}
		if (!good)
			ck_assert_int_ne(*problem, '\0');
		read += good;
		kineto_free(&kineto);
		unlink(path);
		close(fd);
		free(bytes.at);
	}
	sqlite3_free(whole.at);
	ck_assert_uint_gt(read, SQLITE_CASES / 4);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("import_damage");
	TCase *all = tcase_create("all");
	SRunner *runner;
	int failed;

	tcase_add_test(all, json_with_damage_is_refused_or_read);
	tcase_add_test(all, gzip_with_damage_is_refused_or_read);
	tcase_add_test(all, databases_with_damage_are_refused_or_read);
	suite_add_tcase(suite, all);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_ENV);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed != 0;
}
