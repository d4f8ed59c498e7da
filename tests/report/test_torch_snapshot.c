/* SPDX-License-Identifier: MIT
 * test_torch_snapshot.c: a snapshot of PyTorch's allocator is read without being executed; what was
 * allocated before its history is found by undoing it; damaged and hostile ones are refused.
 */
#include "report/import/snapshot/torch_snapshot.h"
#include "report/text/pickle_reader.h"
#include "tests/support/import_samples.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

static uint64_t dice = 88172645463325252u;

static size_t roll(size_t below)
{
	dice ^= dice << 13;
	dice ^= dice >> 7;
	dice ^= dice << 17;
	return below ? (size_t)(dice % below) : 0;
}

static struct pickle *read_bytes(const char *bytes, size_t length, char problem[160])
{
	problem[0] = '\0';
	return pickle_read((const unsigned char *)bytes, length, problem, 160);
}

#define READ(text, problem) read_bytes(text, sizeof text - 1, problem)

/* What pickle.dumps writes of {"a": [1, -2, 2**63, 300, True, None], "b": ("x",)}, protocol 4. */
START_TEST(plain_data_are_read)
{
	static const char bytes[] =
		"\x80\x04\x95\x2b\0\0\0\0\0\0\0}\x94(\x8c\1a\x94]\x94(K\1J\xfe\xff\xff\xff"
		"\x8a\x09\0\0\0\0\0\0\0\x80\0M\x2c\x01\x88Ne\x8c\1b\x94\x8c\1x\x94\x85\x94u.";
	static const int64_t wanted[] = { 1, -2, INT64_MIN, 300, 1 };
	char problem[160];
	struct pickle *pickle = READ(bytes, problem);
	uint32_t list;
	int64_t integer;

	ck_assert_msg(pickle != NULL, "%s", problem);
	list = pickle_member(pickle, pickle_root(pickle), "a");
	ck_assert_uint_eq(pickle_count(pickle, pickle_root(pickle)), 2);
	ck_assert_uint_eq(pickle_count(pickle, list), 6);
	for (uint32_t i = 0; i < 5; i++) {
		ck_assert(pickle_integer(pickle, pickle_item(pickle, list, i), &integer));
		ck_assert_int_eq(integer, wanted[i]);
	}
	ck_assert(!pickle_integer(pickle, pickle_item(pickle, list, 5), &integer));
	list = pickle_member(pickle, pickle_root(pickle), "b");
	ck_assert_uint_eq(pickle_text(pickle, pickle_item(pickle, list, 0)).length, 1);
	ck_assert_uint_eq(pickle_member(pickle, pickle_root(pickle), "c"), 0);
	ck_assert_uint_eq(pickle_item(pickle, list, 1), 0);
	pickle_free(pickle);
}
END_TEST

/* os.system("true") in the ways in which a pickle can call it, and other opcodes. */
START_TEST(nothing_is_executed)
{
	static const struct {
		const char *bytes;
		size_t length;
		const char *opcode;
	} hostile[] = {
#define HOSTILE(text, opcode) { text, sizeof text - 1, opcode }
		HOSTILE("\x80\2cos\nsystem\n(X\4\0\0\0truetR.", "0x63"),
		HOSTILE("\x80\4\x8c\2os\x8c\6system\x93(\x8c\4truetR.", "0x93"),
		HOSTILE("\x80\2(X\4\0\0\0trueios\nsystem\n.", "0x69"),
		HOSTILE("\x80\2}}b.", "0x62"),
		HOSTILE("\x80\2X\1\0\0\0aQ.", "0x51"),
		HOSTILE("\x80\2)\x81.", "0x81"),
		HOSTILE("\x80\2\x82\1.", "0x82"),
		HOSTILE("\x80\5\x97.", "0x97"),
		HOSTILE("\x80\2}o.", "0x6f"),
	};
	char problem[160];

	for (size_t i = 0; i < sizeof hostile / sizeof *hostile; i++) {
		ck_assert_ptr_null(read_bytes(hostile[i].bytes, hostile[i].length, problem));
		ck_assert_msg(strstr(problem, hostile[i].opcode) != NULL, "%zu: %s", i, problem);
		ck_assert_ptr_nonnull(strstr(problem, "it is not executed"));
	}
}
END_TEST

/* Stack, marks and memo that are not there. */
START_TEST(a_pickle_that_is_wrong_is_refused)
{
	char problem[160];

	ck_assert_ptr_null(READ("", problem));
	ck_assert_ptr_null(READ("\x80\2.", problem));
	ck_assert_ptr_null(READ("\x80\2]].", problem));
	ck_assert_ptr_null(READ("\x80\2e.", problem));
	ck_assert_ptr_null(READ("\x80\2(e.", problem));
	ck_assert_ptr_null(READ("\x80\2K\1K\1a.", problem));
	ck_assert_ptr_null(READ("\x80\2}(K\1u.", problem));
	ck_assert_ptr_null(READ("\x80\2\x87.", problem));
	ck_assert_ptr_null(READ("\x80\2h\5.", problem));
	ck_assert_ptr_null(READ("\x80\2]r\xff\xff\xff\xff.", problem));
	ck_assert_ptr_null(READ("\x80\2q\1.", problem));
	ck_assert_ptr_null(READ("\x80\2X\xff\xff\xff\x7f.", problem));
	ck_assert_ptr_null(READ("\x80\2\x8d\xff\xff\xff\xff\xff\xff\xff\xff.", problem));
	ck_assert_str_eq(problem, "is a pickle that ends in the middle");
}
END_TEST

/* A list that contains itself is read, and a caller that asks for items ends. */
START_TEST(a_list_may_contain_itself)
{
	char problem[160];
	struct pickle *pickle = READ("\x80\2]q\0h\0a.", problem);
	struct event_rows rows;

	ck_assert_ptr_nonnull(pickle);
	ck_assert_uint_eq(pickle_item(pickle, pickle_root(pickle), 0), pickle_root(pickle));
	pickle_free(pickle);
	ck_assert(!torch_snapshot_parse(
		&rows, (const unsigned char *)"\x80\2]q\0h\0a.", 9, problem, sizeof problem));
	ck_assert_str_eq(problem, "is a pickle, but no snapshot of torch.cuda.memory");
	event_rows_free(&rows);
}
END_TEST

static struct event_rows parse_sample(void)
{
	size_t bytes;
	unsigned char *sample = sample_torch_snapshot(&bytes);
	struct event_rows rows;
	char problem[160] = "";

	ck_assert_msg(
		torch_snapshot_parse(&rows, sample, bytes, problem, sizeof problem), "%s", problem);
	free(sample);
	return rows;
}

/* At the end one segment of 20 MiB with a tensor of 1 MiB at its begin. The history has the free of
 * a second tensor, an allocation of a third one and its free, and a request that failed. */
START_TEST(what_was_allocated_before_the_history_is_known)
{
	static const struct {
		enum imported_memory_kind kind;
		uint64_t address;
		int64_t bytes;
		uint64_t allocated;
	} wanted[] = {
		{ IMPORTED_SEGMENT, 0x10000000, 20 << 20, 0 },
		{ IMPORTED_TENSOR, 0x10000000, 1 << 20, 1 << 20 },
		{ IMPORTED_TENSOR, 0x10100000, 2 << 20, 3 << 20 },
		{ IMPORTED_TENSOR, 0x10100000, -(2 << 20), 1 << 20 },
		{ IMPORTED_TENSOR, 0x10100000, 4 << 20, 5 << 20 },
		{ IMPORTED_TENSOR, 0x10100000, -(4 << 20), 1 << 20 },
		{ IMPORTED_OOM, 0, 64 << 20, 1 << 20 },
	};
	struct event_rows rows = parse_sample();

	ck_assert_uint_eq(rows.memory_count, sizeof wanted / sizeof *wanted);
	for (size_t i = 0; i < rows.memory_count; i++) {
		const struct imported_memory *memory = &rows.memories[i];

		ck_assert_int_eq(memory->kind, wanted[i].kind);
		ck_assert_int_eq(memory->bytes, wanted[i].bytes);
		ck_assert_uint_eq(memory->allocated, wanted[i].allocated);
		ck_assert_uint_eq(memory->reserved, 20 << 20);
		if (wanted[i].kind != IMPORTED_OOM)
			ck_assert_uint_eq(memory->address, wanted[i].address);
	}
	ck_assert_int_eq(rows.memories[0].time, rows.memories[3].time);
	ck_assert_int_eq(rows.memories[4].time - rows.memories[3].time, 5000);
	ck_assert_str_eq(
		string_table_get(rows.texts, rows.memories[4].stack).bytes, "train.py(7): step;");
	event_rows_free(&rows);
}
END_TEST

/* Cut at every byte, and with any bytes changed: refused or read, within bounds. */
START_TEST(damaged_snapshots_are_refused_or_read)
{
	size_t bytes;
	unsigned char *sample = sample_torch_snapshot(&bytes), *copy = malloc(bytes);
	struct event_rows rows;
	char problem[160];

	for (size_t cut = 0; cut < bytes; cut++) {
		memcpy(copy, sample, cut);
		ck_assert(!torch_snapshot_parse(&rows, copy, cut, problem, sizeof problem));
		ck_assert_uint_gt(strlen(problem), 0);
		event_rows_free(&rows);
	}
	for (unsigned i = 0; i < 20000; i++) {
		memcpy(copy, sample, bytes);
		for (size_t changes = 1 + roll(4); changes-- > 0;)
			copy[roll(bytes)] = (unsigned char)roll(256);
		torch_snapshot_parse(&rows, copy, bytes, problem, sizeof problem);
		ck_assert_uint_le(rows.memory_count, bytes);
		event_rows_free(&rows);
	}
	free(copy);
	free(sample);
}
END_TEST

/* A pickle that a test writes. */
struct written {
	unsigned char *bytes;
	size_t count, room;
};

static void put(struct written *to, const char *bytes, size_t count)
{
	if (to->count + count > to->room) {
		to->room = (to->count + count) * 2;
		to->bytes = realloc(to->bytes, to->room);
		ck_assert_ptr_nonnull(to->bytes);
	}
	memcpy(to->bytes + to->count, bytes, count);
	to->count += count;
}

#define PUT(to, text) put(to, text, sizeof text - 1)

static void put_text(struct written *to, const char *text)
{
	const char head[] = { '\x8c', (char)strlen(text) };

	put(to, head, 2);
	put(to, text, strlen(text));
}

static size_t most_kib(void)
{
	struct rusage usage;

	getrusage(RUSAGE_SELF, &usage);
	return (size_t)usage.ru_maxrss;
}

/* A list in a list in a list, a million deep: nothing follows them by recursion. */
START_TEST(depth_is_no_matter)
{
	enum { DEEP = 1000000 };
	struct written file = { .bytes = NULL };
	struct event_rows rows;
	char problem[160];
	struct pickle *pickle;

	PUT(&file, "\x80\2");
	for (int i = 0; i < DEEP; i++)
		PUT(&file, "]");
	for (int i = 1; i < DEEP; i++)
		PUT(&file, "a");
	PUT(&file, ".");
	pickle = read_bytes((char *)file.bytes, file.count, problem);
	ck_assert_msg(pickle != NULL, "%s", problem);
	ck_assert_uint_eq(pickle_count(pickle, pickle_root(pickle)), 1);
	pickle_free(pickle);
	ck_assert(!torch_snapshot_parse(&rows, file.bytes, file.count, problem, sizeof problem));
	event_rows_free(&rows);
	free(file.bytes);
}
END_TEST

/* Begins a snapshot whose first memo entry is a frame of a file with a long name, and whose list of
 * events is open. */
static void begin_bomb(struct written *file, size_t name_bytes)
{
	const char length[4] = { (char)name_bytes, (char)(name_bytes >> 8),
		(char)(name_bytes >> 16), 0 };

	PUT(file, "\x80\2}(");
	put_text(file, "frame");
	PUT(file, "}(");
	put_text(file, "filename");
	PUT(file, "X");
	put(file, length, 4);
	for (size_t i = 3; i < name_bytes; i++)
		PUT(file, "x");
	PUT(file, ".py");
	put_text(file, "line");
	PUT(file, "K\1");
	put_text(file, "name");
	put_text(file, "f");
	PUT(file, "uq\0");
	put_text(file, "segments");
	PUT(file, "]");
	put_text(file, "device_traces");
	PUT(file, "](](");
}

static void end_bomb(struct written *file)
{
	PUT(file, "eeu.");
}

/* AddressSanitizer keeps what was freed, up to 256 MiB. */
#ifdef __SANITIZE_ADDRESS__
#define SANITIZER_FACTOR 4u
#else
#define SANITIZER_FACTOR 1u
#endif

/* Each event has 128 times the same frame, of a file whose name has 200 KB: 26 MB of text an event,
 * and 5 GB in all. */
START_TEST(shared_frames_take_no_more_than_the_file_allows)
{
	struct written file = { .bytes = NULL };
	struct event_rows rows;
	char problem[160];
	const size_t before = most_kib();

	begin_bomb(&file, 200000);
	for (int event = 0; event < 2000; event++) {
		const char line[] = { 'K', (char)(event % 100) };

		PUT(&file, "}(");
		put_text(&file, "action");
		put_text(&file, "alloc");
		put_text(&file, "size");
		put(&file, line, 2);
		put_text(&file, "addr");
		put(&file, line, 2);
		put_text(&file, "frames");
		PUT(&file, "](");
		for (int frame = 0; frame < 128 - event % 64; frame++)
			PUT(&file, "h\0");
		PUT(&file, "eu");
	}
	end_bomb(&file);
	ck_assert_msg(torch_snapshot_parse(&rows, file.bytes, file.count, problem, sizeof problem),
		"%s", problem);
	ck_assert_uint_ge(rows.events, 2000);
	ck_assert_uint_lt(most_kib() - before, (200u << 10) * SANITIZER_FACTOR);
	event_rows_free(&rows);
	free(file.bytes);
}
END_TEST

/* All events are one dictionary with as many entries: each key would be compared 10^10 times. */
START_TEST(a_large_shared_dictionary_takes_no_long_time)
{
	enum { ENTRIES = 100000, EVENTS = 100000 };
	struct written file = { .bytes = NULL };
	struct event_rows rows;
	char problem[160], key[16];

	PUT(&file, "\x80\2}(");
	put_text(&file, "large");
	PUT(&file, "}(");
	for (int entry = 0; entry < ENTRIES; entry++) {
		snprintf(key, sizeof key, "%d", entry);
		put_text(&file, key);
		PUT(&file, "K\1");
	}
	PUT(&file, "uq\0");
	put_text(&file, "segments");
	PUT(&file, "]");
	put_text(&file, "device_traces");
	PUT(&file, "](](");
	for (int event = 0; event < EVENTS; event++)
		PUT(&file, "h\0");
	end_bomb(&file);
	ck_assert_msg(torch_snapshot_parse(&rows, file.bytes, file.count, problem, sizeof problem),
		"%s", problem);
	ck_assert_uint_eq(rows.events, EVENTS);
	event_rows_free(&rows);
	free(file.bytes);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("torch_snapshot");
	TCase *tests = tcase_create("torch_snapshot");
	SRunner *runner;
	int failed;

	tcase_add_test(tests, plain_data_are_read);
	tcase_add_test(tests, nothing_is_executed);
	tcase_add_test(tests, a_pickle_that_is_wrong_is_refused);
	tcase_add_test(tests, a_list_may_contain_itself);
	tcase_add_test(tests, what_was_allocated_before_the_history_is_known);
	tcase_add_test(tests, damaged_snapshots_are_refused_or_read);
	tcase_add_test(tests, depth_is_no_matter);
	tcase_add_test(tests, shared_frames_take_no_more_than_the_file_allows);
	tcase_add_test(tests, a_large_shared_dictionary_takes_no_long_time);
	tcase_set_timeout(tests, 120);
	suite_add_tcase(suite, tests);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed > 0;
}
