/* SPDX-License-Identifier: MIT */
#include "tests/support/run_report.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define PINNED                                                                                   \
	"env -u COLUMNS -u NO_COLOR -u FORCE_COLOR -u CLICOLOR_FORCE LC_ALL=C.UTF-8 TERM=xterm " \
	"TZ=UTC PPERF_CACHE=0"

static char folder[64], report[4200];
static char *kept[1024]; /* texts given to tests, freed by run_report_teardown() */
static size_t kept_count;

static void die(const char *what)
{
	perror(what);
	abort();
}

void run_report_setup(void)
{
	ssize_t length = readlink("/proc/self/exe", report, sizeof report - 64);
	char *slash;

	if (length < 0)
		die("/proc/self/exe");
	report[length] = '\0';
	/* Find the last one: BUILD/tests/report/test_X -> BUILD. */
	for (slash = report; (slash = strstr(slash, "/tests/")); slash++)
		length = slash - report;
	report[length] = '\0';
	strcat(report, "/pperf-report");
	strcpy(folder, "/tmp/pperf-report-test.XXXXXX");
	if (!mkdtemp(folder) || chdir(folder))
		die("mkdtemp");
}

void run_report_teardown(void)
{
	char command[128];

	snprintf(command, sizeof command, "rm -rf %s", folder);
	if (chdir("/") || system(command))
		die("rm");
	while (kept_count)
		free(kept[--kept_count]);
}

static char *whole_file(const char *path)
{
	FILE *file = fopen(path, "r");
	struct stat about;
	char *text;

	if (!file || fstat(fileno(file), &about))
		die(path);
	text = calloc(1, (size_t)about.st_size + 1);
	if (!text || fread(text, 1, (size_t)about.st_size, file) != (size_t)about.st_size)
		die(path);
	fclose(file);
	if (kept_count == sizeof kept / sizeof *kept)
		die("too many screens");
	return kept[kept_count++] = text;
}

static struct report_run run(const char *settings, const char *arguments, const char *out)
{
	const char *under = getenv("PPERF_TEST_UNDER"); /* an emulator */
	char command[8192];
	int status;

	snprintf(command, sizeof command,
		": > .out; " PINNED " %s %s %s %s > %s 2> .err < /dev/null", settings,
		under ? under : "", report, arguments, out);
	status = system(command);
	if (status < 0)
		die("system");
	return (struct report_run){ .out = whole_file(".out"),
		.err = whole_file(".err"),
		.status = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status) };
}

struct report_run run_report_with(const char *settings, const char *arguments)
{
	return run(settings, arguments, ".out");
}

struct report_run run_report_to(const char *path, const char *arguments)
{
	return run("", arguments, path);
}

struct report_run run_report(struct trace_builder *builder, const char *arguments)
{
	if (builder) {
		builder_write(builder, "trace.bin");
		builder_free(builder);
	}
	return run_report_with("", arguments);
}

struct trace_memory *build_memory(struct trace_builder *builder, uint32_t stream, uint64_t at,
	enum trace_kind kind, uint64_t address, uint64_t bytes, uint32_t memory_kind,
	uint32_t device)
{
	struct trace_memory *record = build_record(builder, stream, kind, sizeof *record, at);

	record->address = address;
	record->bytes = bytes;
	record->memory_kind = memory_kind;
	record->call.device = device;
	return record;
}

void build_alloc(struct trace_builder *builder, uint32_t stream, uint64_t at, uint64_t address,
	uint64_t bytes)
{
	build_memory(builder, stream, at, TRACE_ALLOC, address, bytes, TRACE_MEMORY_DEVICE, 0);
}

void build_free(struct trace_builder *builder, uint32_t stream, uint64_t at, uint64_t address)
{
	build_memory(builder, stream, at, TRACE_FREE, address, 0, TRACE_MEMORY_DEVICE, 0);
}

struct trace_tensor *build_tensor(struct trace_builder *builder, uint32_t stream, uint64_t at,
	uint64_t address, int64_t bytes, uint64_t allocated, uint64_t reserved)
{
	struct trace_tensor *record = build_record(
		builder, stream, address ? TRACE_TENSOR : TRACE_TENSOR_OOM, sizeof *record, at);

	record->address = address;
	record->bytes = bytes;
	record->allocated = allocated;
	record->reserved = reserved;
	return record;
}

struct trace_tensor *build_tensor_oom(struct trace_builder *builder, uint32_t stream, uint64_t at,
	uint64_t bytes, uint64_t allocated, uint64_t reserved)
{
	return build_tensor(builder, stream, at, 0, (int64_t)bytes, allocated, reserved);
}

struct trace_launch *build_launch(
	struct trace_builder *builder, uint32_t stream, uint64_t at, uint64_t correlation)
{
	const uint32_t api = build_name(builder, "cudaLaunchKernel");
	struct trace_launch *record = build_record(
		builder, stream, TRACE_LAUNCH, sizeof *record, at);

	record->call.duration = 5;
	record->call.correlation = correlation;
	record->call.api = api;
	return record;
}

struct trace_graph_launch *build_graph_launch(struct trace_builder *builder, uint32_t stream,
	uint64_t at, uint64_t correlation, uint32_t exec_id)
{
	const uint32_t api = build_name(builder, "cudaGraphLaunch");
	struct trace_graph_launch *record = build_record(
		builder, stream, TRACE_GRAPH_LAUNCH, sizeof *record, at);

	record->call.duration = 5;
	record->call.correlation = correlation;
	record->call.api = api;
	record->exec_id = exec_id;
	return record;
}

struct trace_copy *build_copy(struct trace_builder *builder, uint32_t stream, uint64_t at,
	enum trace_kind kind, uint64_t correlation, uint64_t bytes)
{
	const uint32_t api = build_name(
		builder, kind == TRACE_COPY ? "cudaMemcpyAsync" : "cudaMemsetAsync");
	struct trace_copy *record = build_record(builder, stream, kind, sizeof *record, at);

	record->call.duration = 5;
	record->call.correlation = correlation;
	record->call.api = api;
	record->bytes = bytes;
	record->copy_kind = kind == TRACE_COPY ? TRACE_COPY_HTOD : 0;
	return record;
}

static void fill_gpu(struct trace_gpu *gpu, uint64_t correlation, uint64_t start, uint64_t end)
{
	gpu->correlation = correlation;
	gpu->start_ns = end ? BUILDER_START_UNIX_NS + start : 0;
	gpu->end_ns = end ? BUILDER_START_UNIX_NS + end : 0;
	gpu->head.node = 0;
}

struct trace_kernel *build_kernel(struct trace_builder *builder, uint32_t stream, uint64_t at,
	uint64_t correlation, const char *name, uint64_t start, uint64_t end)
{
	const uint32_t id = build_name(builder, name);
	struct trace_kernel *record = build_record(
		builder, stream, TRACE_KERNEL, sizeof *record, at);

	fill_gpu(&record->gpu, correlation, start, end);
	record->name = id;
	for (int i = 0; i < 3; i++)
		record->grid[i] = record->block[i] = 1;
	record->grid[0] = 64;
	record->block[0] = 128;
	record->registers = 32;
	return record;
}

struct trace_gpu_copy *build_gpu_copy(struct trace_builder *builder, uint32_t stream, uint64_t at,
	enum trace_kind kind, uint64_t correlation, uint64_t bytes, uint64_t start, uint64_t end)
{
	struct trace_gpu_copy *record = build_record(builder, stream, kind, sizeof *record, at);

	fill_gpu(&record->gpu, correlation, start, end);
	record->bytes = bytes;
	record->copy_kind = kind == TRACE_GPU_COPY ? TRACE_COPY_HTOD : 0;
	return record;
}

struct trace_device *build_device(struct trace_builder *builder, uint32_t device, const char *name)
{
	const uint32_t id = build_name(builder, name);
	struct trace_device *record = build_dictionary(builder, TRACE_DEVICE, sizeof *record);

	*record = (struct trace_device){ .head = record->head,
		.device = device,
		.compute_major = 8,
		.multiprocessors = 108,
		.warp_threads = 32,
		.max_threads_per_sm = 2048,
		.max_blocks_per_sm = 32,
		.max_threads_per_block = 1024,
		.registers_per_sm = 65536,
		.registers_per_block = 65536,
		.shared_bytes_per_sm = 167936,
		.shared_bytes_per_block = 49152,
		.reserved_shared_bytes_per_block = 1024,
		.name = id,
		.memory_bytes = UINT64_C(80) << 30 };
	return record;
}

struct trace_api *build_api(
	struct trace_builder *builder, const char *name, uint64_t begin, uint64_t end)
{
	const uint32_t text = build_name(builder, name);
	struct trace_api *api = build_record(builder, 9, TRACE_API, sizeof *api, 0);

	api->start_ns = BUILDER_START_UNIX_NS + begin;
	api->end_ns = BUILDER_START_UNIX_NS + end;
	api->tid = 1001;
	api->name = text;
	return api;
}

void build_communicator(struct trace_builder *builder, uint32_t id, uint32_t ranks, uint32_t device)
{
	struct trace_communicator *record = build_dictionary(
		builder, TRACE_COMMUNICATOR, sizeof *record);

	record->key = id;
	record->communicator = id;
	record->ranks = ranks;
	record->device = device;
}

struct trace_collective *build_collective(struct trace_builder *builder, uint64_t at,
	enum trace_nccl_operation operation, uint64_t bytes, uint32_t communicator)
{
	struct trace_collective *record = build_record(
		builder, 1, TRACE_COLLECTIVE, sizeof *record, at);

	record->duration = 8;
	record->operation = operation;
	record->bytes = bytes;
	record->communicator = communicator;
	record->peer = UINT32_MAX;
	return record;
}
