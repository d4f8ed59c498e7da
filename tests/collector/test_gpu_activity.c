/* SPDX-License-Identifier: MIT
 * Activity records laid out by hand, as each release of CUPTI writes them, and what becomes of them
 * in the trace. Offsets and lengths stand here as numbers, apart from the library's own structs.
 */
#include "collector/cupti/correlation.h"
#include "collector/cupti/session_state.h"
#include "collector/cupti/activity_records.h"
#include "collector/cupti/kernel_names.h"
#include "collector/stream/stream.h"
#include "collector/file/trace_file.h"

#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

enum {
	MEMCPY = 1,
	MEMSET = 2,
	DRIVER = 4,
	RUNTIME = 5,
	CONTEXT = 9,
	KERNEL = 10,
	OVERHEAD = 17,
	PEER = 22,
	EVENT = 36,
	SYNC = 38,
	MEMORY = 49
};

static const uint32_t versions[] = { 19, 20, 21, 22, 23, 24, 26, 27, 28, 130000, 130001, 130100,
	130400 };
#define VERSIONS ((int)(sizeof versions / sizeof *versions))

static struct cupti_library cupti;
static uint8_t buffer[65536] __attribute__((aligned(8)));
static size_t valid, incomplete; /* incomplete: offset of a record that is not whole; 0: none */
static char folder[64], path[128];

/* ---- a CUPTI of any version ---- */

static size_t length_of(uint32_t kind)
{
	uint32_t v = cupti.version;

	switch (kind) {
	case KERNEL:
		return v < 130000 ? 208 : v < 130100 ? 216 : v < 130400 ? 224 : 240;
	case MEMCPY:
		return v < 26 ? 88 : 96;
	case PEER:
		return 96;
	case MEMSET:
		return 88;
	case MEMORY:
		return v < 24 ? 120 : 128;
	case SYNC:
		return v < 26 ? 40 : 56;
	case EVENT:
		return v < 26 ? 24 : 56;
	case OVERHEAD:
		return v < 20 ? 40 : v < 22 ? 48 : 56;
	case DRIVER:
	case RUNTIME:
		return 40;
	case CONTEXT:
		return v < 23 ? 16 : v < 26 ? 24 : 32;
	}
	return 64;
}

static int next_record(uint8_t *from, size_t bytes, void **record)
{
	size_t at = *record ? (size_t)((uint8_t *)*record - from) + length_of(*(uint32_t *)*record)
			    : 0;

	if (at >= bytes)
		return 12;
	if (incomplete && at >= incomplete)
		return 21;
	*record = from + at;
	return 0;
}

static int callback_name(int domain, uint32_t cbid, const char **name)
{
	*name = domain == 1 && cbid == 19 ? "cuModuleLoadData" : "cudaMalloc";
	return 0;
}

static uint8_t *record(uint32_t kind)
{
	uint8_t *at = buffer + valid;

	memset(at, 0xee, length_of(kind)); /* what is not laid out must not be read */
	memcpy(at, &kind, 4);
	valid += length_of(kind);
	ck_assert_uint_le(valid, sizeof buffer);
	return at;
}

static void put8(uint8_t *at, size_t offset, uint8_t value)
{
	at[offset] = value;
}

static void put32(uint8_t *at, size_t offset, uint32_t value)
{
	memcpy(at + offset, &value, 4);
}

static void put64(uint8_t *at, size_t offset, uint64_t value)
{
	memcpy(at + offset, &value, 8);
}

static uint8_t *kernel(const char *name, uint64_t start, uint32_t correlation)
{
	uint8_t *at = record(KERNEL);

	put8(at, 6, 40), put8(at, 7, 0); /* registers */
	put64(at, 16, start), put64(at, 24, start + 500);
	put32(at, 40, 1), put32(at, 44, 2), put32(at, 48, 7); /* device, context, stream */
	for (uint32_t i = 0; i < 6; i++)
		put32(at, 52 + 4 * i, 10 + i); /* grid, block */
	put32(at, 76, 1024), put32(at, 80, 2048), put32(at, 84, 96);
	put32(at, 92, correlation);
	put64(at, 104, (uintptr_t)name);
	put32(at, 140, 65536);
	put64(at, 144, 0), put32(at, 156, 0);
	return at;
}

/* ---- the trace, read back ---- */

static uint8_t *file;
static size_t file_bytes;

static const struct trace_head *found(uint32_t kind, int number)
{
	struct trace_header *header = (void *)file;

	for (size_t at = header->header_bytes; at + sizeof(struct trace_block) <= file_bytes;) {
		struct trace_block *block = (void *)(file + at);
		uint8_t *word = (uint8_t *)(block + 1), *end = word + block->used;

		if (block->magic != TRACE_BLOCK_MAGIC) {
			at += TRACE_ALIGN;
			continue;
		}
		while (word < end) {
			struct trace_head *head = (void *)word;
			uint32_t first = *(uint32_t *)(void *)word;

			if (first & 3 || first == 0) {
				word += (first & 3) == 3 ? 8 : 4;
				continue;
			}
			if (head->kind == kind && number-- == 0)
				return head;
			word += head->size;
		}
		at += block->extent;
	}
	return NULL;
}

static const void *need(uint32_t kind, int number)
{
	const void *it = found(kind, number);

	ck_assert_msg(it != NULL, "record %d of kind %u is not in the trace", number, kind);
	return it;
}

static const char *name_of(uint32_t id)
{
	const struct trace_name *name;
	static char text[256];

	for (int i = 0; (name = (const void *)found(TRACE_NAME, i)); i++)
		if (name->name == id) {
			snprintf(text, sizeof text, "%.*s", (int)name->bytes,
				(const char *)(name + 1));
			return text;
		}
	return "";
}

static const struct trace_gpu_batch *open_trace(void)
{
	struct stat status;
	int fd;

	if (file)
		munmap(file, file_bytes);
	fd = open(path, O_RDONLY);
	ck_assert_int_ge(fd, 0);
	fstat(fd, &status);
	file_bytes = (size_t)status.st_size;
	file = mmap(NULL, file_bytes, PROT_READ, MAP_SHARED, fd, 0);
	close(fd);
	ck_assert(file != MAP_FAILED);
	return need(TRACE_GPU_BATCH, 0);
}

/* Converts what was laid out, and opens the trace. */
static const struct trace_gpu_batch *convert(uint64_t dropped)
{
	activity_records_read(&cupti, buffer, valid, dropped);
	return open_trace();
}

static void begin(void)
{
	static struct trace_settings settings = { .limit_bytes = 1 << 30, .run_id = 1 };
	static struct cupti_session session;

	snprintf(folder, sizeof folder, "/tmp/pperf-activity-XXXXXX");
	ck_assert(mkdtemp(folder) != NULL);
	snprintf(path, sizeof path, "%s/trace.bin", folder);
	snprintf(settings.output, sizeof settings.output, "%s", path);
	stream_configure(&settings);
	cupti.version = 130001;
	cupti.next_record = next_record;
	cupti.callback_name = callback_name;
	session.library = cupti;
	cupti_session = &session;
}

static void end(void)
{
	unlink(path);
	rmdir(folder);
}

/* ---- the tests; those with a loop run once for each version ---- */

START_TEST(a_kernel_is_read)
{
	const struct trace_kernel *k;

	cupti.version = versions[_i];
	kernel("_Z4gemmv", 1000, 77);
	kernel("_Z4axpyv", 2000, 78);
	ck_assert_uint_eq(convert(0)->records, 2);
	k = need(TRACE_KERNEL, 0);
	ck_assert_uint_eq(k->gpu.start_ns, 1000);
	ck_assert_uint_eq(k->gpu.end_ns, 1500);
	ck_assert_uint_eq(k->gpu.correlation, 77);
	ck_assert_uint_eq(k->gpu.graph_node, 0);
	ck_assert_uint_eq(k->gpu.device, 1);
	ck_assert_uint_eq(k->gpu.context, 2);
	ck_assert_uint_eq(k->gpu.stream, 7);
	for (uint32_t i = 0; i < 3; i++) {
		ck_assert_uint_eq(k->grid[i], 10 + i);
		ck_assert_uint_eq(k->block[i], 13 + i);
	}
	ck_assert_uint_eq(k->registers, 40);
	ck_assert_uint_eq(k->static_shared_bytes, 1024);
	ck_assert_uint_eq(k->dynamic_shared_bytes, 2048);
	ck_assert_uint_eq(k->local_bytes, 96);
	ck_assert_uint_eq(k->shared_carveout_bytes, 65536);
	ck_assert_str_eq(name_of(k->name), "_Z4gemmv");
	ck_assert_str_eq(
		name_of(((const struct trace_kernel *)need(TRACE_KERNEL, 1))->name), "_Z4axpyv");
}
END_TEST

START_TEST(a_kernel_of_a_graph_has_its_node)
{
	const struct trace_kernel *k;
	uint8_t *at = kernel("k", 1, 9);

	cupti.version = versions[_i];
	put64(at, 144, UINT64_C(0x500000003)), put32(at, 156, 4);
	convert(0);
	k = need(TRACE_KERNEL, 0);
	ck_assert_uint_eq(k->gpu.graph_node, UINT64_C(0x500000003));
	ck_assert_uint_eq(k->gpu.graph, 4);
}
END_TEST

START_TEST(copies_and_memsets_are_read)
{
	const struct trace_gpu_copy *copy;
	uint8_t *at;

	cupti.version = versions[_i];
	at = record(MEMCPY);
	put8(at, 4, 1), put8(at, 5, 1), put8(at, 6, 3), put8(at, 7, 1);
	put64(at, 8, UINT64_C(1) << 33), put64(at, 16, 100), put64(at, 24, 200);
	put32(at, 32, 0), put32(at, 36, 1), put32(at, 40, 13), put32(at, 44, 5), put64(at, 64, 0),
		put32(at, 72, 0);
	at = record(PEER);
	put8(at, 4, 10), put8(at, 5, 3), put8(at, 6, 3), put8(at, 7, 0);
	put64(at, 8, 4096), put64(at, 16, 300), put64(at, 24, 400);
	put32(at, 32, 1), put32(at, 36, 2), put32(at, 40, 14), put32(at, 44, 1), put32(at, 52, 3),
		put32(at, 60, 6);
	put64(at, 72, 8), put32(at, 80, 2);
	at = record(MEMSET);
	put32(at, 4, 0xab), put64(at, 8, 777), put64(at, 16, 500), put64(at, 24, 600);
	put32(at, 32, 0), put32(at, 36, 1), put32(at, 40, 7), put32(at, 44, 8);
	put8(at, 48, 1), put8(at, 49, 0), put8(at, 50, 3), put8(at, 51, 0), put64(at, 64, 0),
		put32(at, 72, 0);
	ck_assert_uint_eq(convert(0)->records, 3);

	copy = need(TRACE_GPU_COPY, 0);
	ck_assert_uint_eq(copy->bytes, UINT64_C(1) << 33);
	ck_assert_uint_eq(copy->copy_kind, TRACE_COPY_HTOD);
	ck_assert_uint_eq(copy->source_kind, TRACE_MEMORY_PAGEABLE);
	ck_assert_uint_eq(copy->target_kind, TRACE_MEMORY_DEVICE);
	ck_assert_uint_eq(copy->async, 1);
	ck_assert_uint_eq(copy->other_device, UINT32_MAX);
	ck_assert_uint_eq(copy->gpu.correlation, 5);
	ck_assert_uint_eq(copy->gpu.stream, 13);
	ck_assert_uint_eq(copy->gpu.end_ns, 200);
	copy = need(TRACE_GPU_COPY, 1);
	ck_assert_uint_eq(copy->copy_kind, TRACE_COPY_PTOP);
	ck_assert_uint_eq(copy->gpu.device, 1);
	ck_assert_uint_eq(copy->other_device, 3);
	ck_assert_uint_eq(copy->gpu.correlation, 6);
	ck_assert_uint_eq(copy->gpu.graph_node, 8);
	ck_assert_uint_eq(copy->gpu.graph, 2);
	ck_assert_uint_eq(copy->async, 0);
	copy = need(TRACE_GPU_SET, 0);
	ck_assert_uint_eq(copy->bytes, 777);
	ck_assert_uint_eq(copy->value, 0xab);
	ck_assert_uint_eq(copy->target_kind, TRACE_MEMORY_DEVICE);
	ck_assert_uint_eq(copy->async, 1);
	ck_assert_uint_eq(copy->gpu.correlation, 8);
}
END_TEST

START_TEST(waits_and_events_are_read)
{
	const struct trace_gpu_sync *sync;
	uint8_t *at;

	cupti.version = versions[_i];
	at = record(SYNC);
	put32(at, 4, 2), put64(at, 8, 10), put64(at, 16, 20), put32(at, 24, 3), put32(at, 28, 1),
		put32(at, 32, 7), put32(at, 36, 55);
	at = record(EVENT);
	put32(at, 4, 4), put32(at, 8, 1), put32(at, 12, 13), put32(at, 16, 56);
	if (cupti.version >= 26)
		put64(at, 40, 999);
	convert(0);
	sync = need(TRACE_GPU_SYNC, 0);
	ck_assert_uint_eq(sync->type, TRACE_SYNC_STREAM_WAIT);
	ck_assert_uint_eq(sync->start_ns, 10);
	ck_assert_uint_eq(sync->end_ns, 20);
	ck_assert_uint_eq(sync->correlation, 3);
	ck_assert_uint_eq(sync->stream, 7);
	ck_assert_uint_eq(sync->event, 55);
	sync = need(TRACE_GPU_SYNC, 1);
	ck_assert_uint_eq(sync->type, TRACE_EVENT_RECORD);
	ck_assert_uint_eq(sync->correlation, 4);
	ck_assert_uint_eq(sync->stream, 13);
	ck_assert_uint_eq(sync->event, 56);
	ck_assert_uint_eq(sync->start_ns, cupti.version >= 26 ? 999 : 0);
}
END_TEST

/* The result came with 12.8. A wait that failed stays a wait. */
START_TEST(queries_that_find_work_unfinished_are_left_out)
{
	uint8_t *at;

	cupti.version = versions[_i];
	for (uint32_t result = 600; result <= 700; result += 100) {
		at = record(SYNC);
		put32(at, 4, 1), put64(at, 8, 10), put64(at, 16, 20), put32(at, 24, result);
		if (cupti.version >= 26)
			put32(at, 48, result);
	}
	ck_assert_uint_eq(convert(0)->records, cupti.version >= 26 ? 1 : 2);
	ck_assert_uint_eq(((const struct trace_gpu_sync *)need(TRACE_GPU_SYNC, 0))->correlation,
		cupti.version >= 26 ? 700 : 600);
	ck_assert_uint_eq(((struct trace_header *)(void *)file)->lost[TRACE_LOST_CUPTI_UNREAD], 0);
}
END_TEST

START_TEST(memory_calls_and_overhead_are_read)
{
	const struct trace_gpu_memory *memory;
	const struct trace_api *api;
	const struct trace_overhead *overhead;
	uint8_t *at;

	cupti.version = versions[_i];
	at = record(MEMORY);
	put32(at, 4, 2), put32(at, 8, 3), put32(at, 12, 21), put64(at, 16, 0x7f0000000000),
		put64(at, 24, 512), put64(at, 32, 1234);
	put32(at, 52, 1), put32(at, 56, 2), put32(at, 60, UINT32_MAX);
	at = record(DRIVER);
	put32(at, 4, 19), put64(at, 8, 40), put64(at, 16, 50), put32(at, 28, 4711),
		put32(at, 32, 22), put32(at, 36, 700);
	at = record(OVERHEAD);
	put32(at, 4, 5 << 16), put32(at, 8, 2), put32(at, 12, 1), put32(at, 16, 4712),
		put64(at, 24, 60), put64(at, 32, 70);
	if (cupti.version >= 20)
		put32(at, 40, 23);
	convert(0);
	memory = need(TRACE_GPU_MEMORY, 0);
	ck_assert_uint_eq(memory->operation, 2);
	ck_assert_uint_eq(memory->memory_kind, TRACE_MEMORY_DEVICE);
	ck_assert_uint_eq(memory->address, 0x7f0000000000);
	ck_assert_uint_eq(memory->bytes, 512);
	ck_assert_uint_eq(memory->time_ns, 1234);
	ck_assert_uint_eq(memory->correlation, 21);
	ck_assert_uint_eq(memory->device, 1);
	api = need(TRACE_API, 0);
	ck_assert_uint_eq(api->domain, 1);
	ck_assert_uint_eq(api->cbid, 19);
	ck_assert_uint_eq(api->tid, 4711);
	ck_assert_uint_eq(api->correlation, 22);
	ck_assert_uint_eq(api->result, 700);
	ck_assert_str_eq(name_of(api->name), "cuModuleLoadData");
	overhead = need(TRACE_OVERHEAD, 0);
	ck_assert_uint_eq(overhead->type, 5 << 16);
	ck_assert_uint_eq(overhead->tid, 4712);
	ck_assert_uint_eq(overhead->end_ns, 70);
	ck_assert_uint_eq(overhead->correlation, cupti.version >= 20 ? 23 : 0);
}
END_TEST

START_TEST(a_context_goes_to_the_dictionary)
{
	const struct trace_context *context;
	uint8_t *at;

	cupti.version = versions[_i];
	at = record(CONTEXT);
	put32(at, 4, 1), put32(at, 8, 0), put8(at, 14, 7), put8(at, 15, 0);
	ck_assert_uint_eq(convert(0)->records, 1);
	context = need(TRACE_CONTEXT, 0);
	ck_assert_uint_eq(context->context, 1);
	ck_assert_uint_eq(context->device, 0);
	ck_assert_uint_eq(context->stream, UINT32_MAX);
	ck_assert_uint_eq(context->null_stream, 7);
}
END_TEST

START_TEST(an_untimed_kernel_stays)
{
	const struct trace_kernel *k;
	uint8_t *at = kernel("k", 0, 5);

	put64(at, 24, 0);
	convert(0);
	k = need(TRACE_KERNEL, 0);
	ck_assert_uint_eq(k->gpu.start_ns | k->gpu.end_ns, 0);
	ck_assert_uint_eq(k->gpu.correlation, 5);
}
END_TEST

START_TEST(ids_of_records_go_beyond_32_bits)
{
	const struct trace_kernel *k;

	correlation_of_call(UINT32_MAX);
	correlation_of_call(2 + (uint32_t)CORRELATION_STEP);
	kernel("before", 1, UINT32_MAX - 3);
	kernel("after", 2, 2);
	convert(0);
	k = need(TRACE_KERNEL, 0);
	ck_assert_uint_eq(k->gpu.correlation, UINT32_MAX - 3);
	k = need(TRACE_KERNEL, 1);
	ck_assert_uint_eq(k->gpu.correlation, (UINT64_C(1) << 32) + 2);
}
END_TEST

START_TEST(dropped_records_are_counted)
{
	kernel("k", 1, 1);
	ck_assert_uint_eq(convert(17)->dropped, 17);
	ck_assert_uint_eq(
		((struct trace_header *)(void *)file)->lost[TRACE_LOST_CUPTI_DROPPED], 17);
}
END_TEST

START_TEST(records_of_kinds_not_enabled_are_counted)
{
	const struct trace_gpu_batch *batch;

	kernel("k", 1, 1);
	record(200);
	record(200);
	kernel("k", 2, 2);
	batch = convert(0);
	ck_assert_uint_eq(batch->records, 2);
	ck_assert_uint_eq(batch->unread, 0);
	ck_assert_ptr_nonnull(found(TRACE_KERNEL, 1));
	ck_assert_uint_eq(((struct trace_header *)(void *)file)->lost[TRACE_LOST_CUPTI_UNREAD], 2);
}
END_TEST

START_TEST(a_buffer_that_ends_in_half_a_record_is_read_up_to_there)
{
	const struct trace_gpu_batch *batch;

	kernel("k", 1, 1);
	incomplete = valid;
	kernel("k", 2, 2);
	batch = convert(0);
	ck_assert_uint_eq(batch->records, 1);
	ck_assert_uint_eq(batch->unread, 1);
	ck_assert_ptr_null(found(TRACE_KERNEL, 1));
	ck_assert_uint_eq(((struct trace_header *)(void *)file)->lost[TRACE_LOST_CUPTI_UNREAD], 1);
}
END_TEST

/* As a sandbox that lets no process read another's memory, not even its own by that call. */
static void forbid_process_vm_readv(void)
{
	struct sock_filter rules[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_process_vm_readv, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	const struct sock_fprog program = { sizeof rules / sizeof *rules, rules };

	ck_assert_int_eq(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), 0);
	ck_assert_int_eq(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program), 0);
	ck_assert_int_eq(process_vm_readv(getpid(), NULL, 0, NULL, 0, 0), -1);
	ck_assert_int_eq(errno, EPERM);
}

/* 0: as it is; 1: in a sandbox. */
START_TEST(names_of_unloaded_modules_do_no_harm)
{
	long page = sysconf(_SC_PAGESIZE);
	char *module = mmap(
		NULL, (size_t)page * 3, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	const struct trace_kernel *k;
	char *across = module + page - 3;

	strcpy(across, "_Z6acrossv"); /* over the border of two pages */
	kernel(across, 1, 1);
	kernel(module + 2 * page, 2, 2);
	mprotect(module + 2 * page, (size_t)page, PROT_NONE);
	if (_i)
		forbid_process_vm_readv();
	kernel_names_module_unloads();
	convert(0);
	k = need(TRACE_KERNEL, 0);
	ck_assert_str_eq(name_of(k->name), "_Z6acrossv");
	k = need(TRACE_KERNEL, 1);
	ck_assert_uint_eq(k->name, 0);
	munmap(module, (size_t)page * 3);
}
END_TEST

/* After an unload each name is read once, until a module is loaded or unloaded. */
START_TEST(names_are_read_again_only_when_modules_have_changed)
{
	const char *const expected[] = { "_Z5firstv", "_Z5firstv", "_Z6secondv", NULL };
	const size_t page = (size_t)sysconf(_SC_PAGESIZE);
	char *module = mmap(NULL, page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	strcpy(module, "_Z5firstv");
	kernel(module, 1, 1);
	kernel_names_module_unloads();
	activity_records_read(&cupti, buffer, valid, 0);
	mprotect(module, page, PROT_NONE);
	activity_records_read(&cupti, buffer, valid, 0); /* it cannot be read */
	mprotect(module, page, PROT_READ | PROT_WRITE);
	strcpy(module, "_Z6secondv");
	kernel_names_module_loaded();
	activity_records_read(&cupti, buffer, valid, 0);
	mprotect(module, page, PROT_NONE);
	kernel_names_module_unloads();
	activity_records_read(&cupti, buffer, valid, 0);
	open_trace();
	for (int i = 0; i < 4; i++) {
		const struct trace_kernel *k = need(TRACE_KERNEL, i);

		if (expected[i])
			ck_assert_str_eq(name_of(k->name), expected[i]);
		else
			ck_assert_uint_eq(k->name, 0);
	}
	munmap(module, page);
}
END_TEST

static int next_record_sets_errno(uint8_t *records, size_t bytes, void **record)
{
	errno = EPROTO;
	return next_record(records, bytes, record);
}

/* 0: an empty buffer; 1: a buffer with a kernel. */
START_TEST(reading_a_buffer_keeps_errno)
{
	cupti.next_record = next_record_sets_errno;
	if (_i)
		kernel("kernel", 1, 1);
	errno = ENOTTY;
	activity_records_read(&cupti, buffer, valid, 0);
	ck_assert_int_eq(errno, ENOTTY);
}
END_TEST

/* A page that is read by one thread, and answers when it may. */
static char *slow_page;
static atomic_bool is_read, may_be_read, unloaded;

static void answer(int number)
{
	(void)number;
	atomic_store(&is_read, true);
	while (!atomic_load(&may_be_read))
		;
	mprotect(slow_page, (size_t)sysconf(_SC_PAGESIZE), PROT_READ);
}

static void *read_it(void *unused)
{
	activity_records_read(&cupti, buffer, valid, 0);
	return unused;
}

static void *unload_it(void *unused)
{
	kernel_names_module_unloads();
	atomic_store(&unloaded, true);
	return unused;
}

START_TEST(a_module_stays_until_the_name_that_is_being_read_has_been)
{
	const struct sigaction action = { .sa_handler = answer };
	const size_t page = (size_t)sysconf(_SC_PAGESIZE);
	pthread_t reader, unloader;

	slow_page = mmap(NULL, page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	strcpy(slow_page, "_Z4slowv");
	mprotect(slow_page, page, PROT_NONE);
	kernel(slow_page, 1, 1);
	sigaction(SIGSEGV, &action, NULL);
	ck_assert_int_eq(pthread_create(&reader, NULL, read_it, NULL), 0);
	while (!atomic_load(&is_read))
		;
	ck_assert_int_eq(pthread_create(&unloader, NULL, unload_it, NULL), 0);
	usleep(20000);
	ck_assert(!atomic_load(&unloaded));
	atomic_store(&may_be_read, true);
	pthread_join(unloader, NULL);
	pthread_join(reader, NULL);
	open_trace();
	ck_assert_str_eq(
		name_of(((const struct trace_kernel *)need(TRACE_KERNEL, 0))->name), "_Z4slowv");
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("gpu activity");
	TCase *cases = tcase_create("gpu activity"), *real = tcase_create("of a real kernel");
	SRunner *runner = srunner_create(suite);
	int failed;

	tcase_add_checked_fixture(cases, begin, end);
	tcase_add_checked_fixture(real, begin, end);
	tcase_add_loop_test(cases, a_kernel_is_read, 0, VERSIONS);
	tcase_add_loop_test(cases, a_kernel_of_a_graph_has_its_node, 0, VERSIONS);
	tcase_add_loop_test(cases, copies_and_memsets_are_read, 0, VERSIONS);
	tcase_add_loop_test(cases, waits_and_events_are_read, 0, VERSIONS);
	tcase_add_loop_test(cases, queries_that_find_work_unfinished_are_left_out, 0, VERSIONS);
	tcase_add_loop_test(cases, memory_calls_and_overhead_are_read, 0, VERSIONS);
	tcase_add_loop_test(cases, a_context_goes_to_the_dictionary, 0, VERSIONS);
	tcase_add_test(cases, an_untimed_kernel_stays);
	tcase_add_test(cases, ids_of_records_go_beyond_32_bits);
	tcase_add_test(cases, dropped_records_are_counted);
	tcase_add_loop_test(cases, reading_a_buffer_keeps_errno, 0, 2);
	tcase_add_test(cases, records_of_kinds_not_enabled_are_counted);
	tcase_add_test(cases, a_buffer_that_ends_in_half_a_record_is_read_up_to_there);
	suite_add_tcase(suite, cases);
	tcase_add_loop_test(real, names_of_unloaded_modules_do_no_harm, 0, 2);
	tcase_add_test(real, names_are_read_again_only_when_modules_have_changed);
	tcase_add_test(real, a_module_stays_until_the_name_that_is_being_read_has_been);
	tcase_set_tags(real, "real-kernel"); /* emulators leave it out */
	suite_add_tcase(suite, real);
	srunner_run_all(runner, CK_ENV);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed != 0;
}
