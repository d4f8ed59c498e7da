/* SPDX-License-Identifier: MIT
 * bench_views.c [MEGABYTES]: what each view costs on a trace of ranges, launches and kernels,
 * against the one that takes a single fold (kernels), whose speed bench_fold.c holds; and, told
 * only, against the least that could be called a fold of the same events: 16 bytes an event in
 * memory, a stack, a hash table of places, a table of correlation ids. Processor time of whole
 * processes, in turns, and the most memory; exits with 1 if a gate is missed.
 *
 * The events: ranges nested 5 deep, 996 chains of names, in the innermost a launch and its kernel;
 * about 6000 places.
 */
#include "tests/support/block_writer.h"

#include <libgen.h>
#include <spawn.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum {
	DEPTH = 5,
	CHAINS = 996,
	NAMES = CHAINS + DEPTH,
	KERNEL_NAME = NAMES + 1,
	API_NAME,
	DEVICE_NAME,
	ROUNDS = 3,
	SLOTS = 1 << 17,
	IN_FLIGHT = 1 << 12,
	BATCH_MOST = 480
};
#define MEGABYTES 40u
#define CHAIN_BYTES 270u /* about */
#define TIMES_MOST 5.0   /* folds: views may take several passes */
#define DIFF_MOST 8.0    /* of each of its traces: it finds what each step and instance took, too */
#define MEMORY_MOST \
	(128u << 10) /* KiB: nodes, samples, what sorters hold; whatever the trace has */

extern char **environ;

enum event_kind { PUSH, POP, LAUNCH, KERNEL };

struct event {
	uint64_t stamp; /* KERNEL: its duration */
	uint32_t id, kind;
};

/* How one chain goes. */
static uint64_t stamp_after(uint64_t stamp)
{
	return stamp + 20 + ((stamp * 2654435761u) >> 28 & 31);
}

/* ---- the reference ---- */

struct place {
	uint32_t id, parent;
	uint64_t count, sum, self, least, most, gpu, kernels;
};

struct reference {
	struct place places[CHAINS * DEPTH + 8];
	struct {
		uint64_t key;
		uint32_t place;
	} slots[SLOTS];
	uint32_t launched[IN_FLIGHT], stack[64], depth, count;
	uint64_t begin[64], inner[64];
};

static uint32_t child(struct reference *fold, uint32_t parent, uint32_t id)
{
	const uint64_t key = (uint64_t)(parent + 1) << 32 | id;
	size_t i = key * 0x9e3779b97f4a7c15u >> 40 & (SLOTS - 1);

	while (fold->slots[i].key && fold->slots[i].key != key)
		i = (i + 1) & (SLOTS - 1);
	if (!fold->slots[i].key) {
		fold->slots[i].key = key;
		fold->slots[i].place = ++fold->count;
		fold->places[fold->count] = (struct place){
			.id = id, .parent = parent, .least = UINT64_MAX
		};
	}
	return fold->slots[i].place;
}

static void end_range(struct reference *fold, uint64_t stamp)
{
	struct place *place = &fold->places[fold->stack[fold->depth]];
	const uint64_t duration = stamp - fold->begin[fold->depth];

	place->count++;
	place->sum += duration;
	place->self += duration - fold->inner[fold->depth];
	place->least = duration < place->least ? duration : place->least;
	place->most = duration > place->most ? duration : place->most;
	fold->inner[--fold->depth] += duration;
}

static void fold_event(struct reference *fold, const struct event *event)
{
	struct place *place;

	switch (event->kind) {
	case PUSH:
		fold->stack[fold->depth + 1] = child(fold, fold->stack[fold->depth], event->id);
		fold->depth++;
		fold->begin[fold->depth] = event->stamp;
		fold->inner[fold->depth] = 0;
		break;
	case POP:
		end_range(fold, event->stamp);
		break;
	case LAUNCH:
		fold->launched[event->id % IN_FLIGHT] = fold->stack[fold->depth];
		break;
	default:
		place = &fold->places[fold->launched[event->id % IN_FLIGHT]];
		place->gpu += event->stamp;
		place->kernels++;
	}
}

static double cpu_seconds(int who)
{
	struct rusage use;

	getrusage(who, &use);
	return (double)(use.ru_utime.tv_sec + use.ru_stime.tv_sec) +
	       (double)(use.ru_utime.tv_usec + use.ru_stime.tv_usec) / 1e6;
}

static double run_reference(const struct event *events, size_t count, uint64_t kernels)
{
	struct reference *fold = calloc(1, sizeof *fold);
	const double start = cpu_seconds(RUSAGE_SELF);
	uint64_t seen = 0;

	if (!fold)
		abort();
	for (size_t i = 0; i < count; i++)
		fold_event(fold, &events[i]);
	for (uint32_t i = 1; i <= fold->count; i++)
		seen += fold->places[i].kernels;
	free(fold);
	if (seen != kernels) {
		fprintf(stderr, "the reference lost count\n");
		exit(2);
	}
	return cpu_seconds(RUSAGE_SELF) - start;
}

/* ---- the same events, as they are asked for and as a trace ---- */

struct source {
	struct block_writer *writer;
	struct event *events;
	size_t count;
	uint64_t stamp, last, gpu_ns;
	struct trace_kernel batch[BATCH_MOST];
	uint32_t batched;
};

static void put_name(struct block_writer *writer, uint32_t id, const char *text)
{
	struct trace_name *record = block_writer_record(
		writer, TRACE_NAME, sizeof *record + strlen(text));

	record->name = id;
	record->bytes = (uint32_t)strlen(text);
	memcpy(record + 1, text, strlen(text));
}

static void put_dictionary(struct block_writer *writer)
{
	struct trace_device *device;
	char text[32];

	for (uint32_t name = 1; name <= NAMES; name++) {
		snprintf(text, sizeof text, "range_%u_of_many", name);
		put_name(writer, name, text);
	}
	put_name(writer, KERNEL_NAME, "void elementwise_kernel<4, add>(int, add)");
	put_name(writer, API_NAME, "cudaLaunchKernel");
	put_name(writer, DEVICE_NAME, "a device for measurements");
	device = block_writer_record(writer, TRACE_DEVICE, sizeof *device);
	device->name = DEVICE_NAME;
	device->multiprocessors = 100;
	block_writer_seal(writer, TRACE_DICT, 0);
	for (uint32_t node = 1; node <= CHAINS * DEPTH; node++) {
		struct trace_node *record = block_writer_record(writer, TRACE_NODE, sizeof *record);

		record->head.node = node;
		record->parent = (node - 1) % DEPTH ? node - 1 : 0;
		record->name = (node - 1) / DEPTH + (node - 1) % DEPTH + 1;
		record->kind = TRACE_NODE_RANGE;
		if (writer->used > BLOCK_WRITER_PAYLOAD - 64)
			block_writer_seal(writer, TRACE_DICT, 0);
	}
	block_writer_seal(writer, TRACE_DICT, 0);
}

static void put_word(struct source *source, uint32_t word)
{
	word |= (uint32_t)(source->stamp - source->last) << 2;
	memcpy(source->writer->payload + source->writer->used, &word, sizeof word);
	source->writer->used += sizeof word;
	source->last = source->stamp;
}

static void put_event(struct source *source, enum event_kind kind, uint64_t stamp, uint32_t id)
{
	source->events[source->count++] = (struct event){ stamp, id, kind };
}

static void put_launch(struct source *source, uint32_t node, uint32_t correlation)
{
	struct trace_launch *launch = block_writer_record(
		source->writer, TRACE_LAUNCH, sizeof *launch);
	const uint64_t start = UINT64_C(1700000000000000000) + source->stamp + 5,
		       wait = source->gpu_ns > start ? source->gpu_ns : start,
		       took = 60 + correlation % 97;

	launch->call.head.node = node;
	launch->call.stamp = source->last = source->stamp;
	launch->call.duration = 4;
	launch->call.correlation = correlation;
	launch->call.api = API_NAME;
	source->batch[source->batched++] = (struct trace_kernel){
		.gpu = { .head = { .size = sizeof(struct trace_kernel), .kind = TRACE_KERNEL },
			.start_ns = wait,
			.end_ns = wait + took,
			.correlation = correlation,
			.stream = 7 },
		.grid = { 1 + correlation % 7, 1, 1 },
		.block = { 128, 1, 1 },
		.registers = 32,
		.name = KERNEL_NAME
	};
	source->gpu_ns = wait + took;
	put_event(source, LAUNCH, source->stamp, correlation);
}

/* What the GPU did reaches the trace later, in pieces. */
static void put_batch(struct source *source)
{
	struct trace_gpu_batch *batch;

	block_writer_begin(source->writer, source->stamp);
	batch = block_writer_record(source->writer, TRACE_GPU_BATCH, sizeof *batch);
	batch->stamp = source->stamp;
	batch->records = source->batched;
	for (uint32_t i = 0; i < source->batched; i++) {
		const struct trace_kernel *kernel = &source->batch[i];

		memcpy(block_writer_record(source->writer, TRACE_KERNEL, sizeof *kernel), kernel,
			sizeof *kernel);
		put_event(source, KERNEL, kernel->gpu.end_ns - kernel->gpu.start_ns,
			(uint32_t)kernel->gpu.correlation);
	}
	source->batched = 0;
	block_writer_seal(source->writer, TRACE_CHUNK, 2);
}

static void put_chain(struct source *source, uint32_t chain, uint32_t correlation)
{
	for (uint32_t depth = 0; depth < DEPTH; depth++) {
		source->stamp = stamp_after(source->stamp);
		put_word(source, 1 | (chain * DEPTH + depth + 1) << 16);
		put_event(source, PUSH, source->stamp, chain + depth + 1);
	}
	source->stamp = stamp_after(source->stamp);
	put_launch(source, (chain + 1) * DEPTH, correlation);
	for (uint32_t depth = 0; depth < DEPTH; depth++) {
		source->stamp = stamp_after(source->stamp);
		put_word(source, 2);
		put_event(source, POP, source->stamp, 0);
	}
}

static void make(struct source *source, const char *path, uint32_t chains)
{
	source->stamp = source->last = 1000;
	source->writer = block_writer_open(path);
	put_dictionary(source->writer);
	block_writer_begin(source->writer, source->stamp);
	for (uint32_t i = 0; i < chains; i++) {
		put_chain(source, i % CHAINS, i + 1);
		if (source->batched < BATCH_MOST &&
			source->writer->used < BLOCK_WRITER_PAYLOAD - 512 && i + 1 < chains)
			continue;
		block_writer_seal(source->writer, TRACE_CHUNK, 1);
		put_batch(source);
		block_writer_begin(source->writer, source->stamp);
	}
	block_writer_seal(source->writer, TRACE_CHUNK, 1);
}

/* ---- the views ---- */

static const char *const views[][4] = { { "summary" }, { "tree" }, { "tree", "-f", "json" },
	{ "table" }, { "table", "--by", "module" }, { "table", "--by", "category" },
	{ "table", "--by", "thread" }, { "table", "--by", "stream" }, { "table", "--by", "step" },
	{ "critical" }, { "kernels" }, { "memory" }, { "memory", "--map" }, { "api" }, { "steps" },
	{ "streams" }, { "categories" }, { "distribution", "range_7_of_many" }, { "idle" },
	{ "queue" }, { "overlap" }, { "roofline" }, { "diff" }, { "info" } };
enum { VIEWS = sizeof views / sizeof *views };

struct cost {
	double seconds[ROUNDS];
	long kib;
};

static bool run_view(const char *report, const char *const *view, const char *trace,
	struct cost *cost, unsigned round)
{
	const bool two = strcmp(view[0], "diff") == 0;
	char *argv[12] = { (char *)(uintptr_t)report };
	posix_spawn_file_actions_t actions;
	struct rusage use;
	int used = 1, status;
	pid_t child;

	for (int i = 0; i < 4 && view[i]; i++)
		argv[used++] = (char *)(uintptr_t)view[i];
	argv[used++] = (char *)(uintptr_t)trace;
	if (two)
		argv[used++] = (char *)(uintptr_t)trace;
	posix_spawn_file_actions_init(&actions);
	posix_spawn_file_actions_addopen(&actions, 1, "/dev/null", 1 /* O_WRONLY */, 0);
	posix_spawn_file_actions_addopen(&actions, 2, "/dev/null", 1, 0);
	if (posix_spawn(&child, report, &actions, NULL, argv, environ) ||
		wait4(child, &status, 0, &use) != child) {
		perror(report);
		exit(2);
	}
	posix_spawn_file_actions_destroy(&actions);
	cost->seconds[round] = (double)(use.ru_utime.tv_sec + use.ru_stime.tv_sec) +
			       (double)(use.ru_utime.tv_usec + use.ru_stime.tv_usec) / 1e6;
	cost->kib = use.ru_maxrss > cost->kib ? use.ru_maxrss : cost->kib;
	return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

static int by_value(const void *a, const void *b)
{
	const double left = *(const double *)a, right = *(const double *)b;

	return (left > right) - (left < right);
}

static double middle(double *values)
{
	qsort(values, ROUNDS, sizeof *values, by_value);
	return values[ROUNDS / 2];
}

static int tell(struct cost *costs, double reference)
{
	double single = 0;
	int missed = 0;

	for (unsigned i = 0; i < VIEWS; i++)
		if (strcmp(views[i][0], "kernels") == 0)
			single = middle(costs[i].seconds);

	for (unsigned i = 0; i < VIEWS; i++) {
		const bool two = strcmp(views[i][0], "diff") == 0;
		const double seconds = middle(costs[i].seconds) / (two ? 2 : 1),
			     most = two ? DIFF_MOST : TIMES_MOST;
		const bool good = seconds <= most * single && costs[i].kib <= (long)MEMORY_MOST;

		printf("%-6s %-14s %-16s %6.2f folds (at most %g)  %5ld MiB (at most %u)  %.1f x "
		       "the reference\n",
			good ? "ok" : "MISSED", views[i][0],
			!views[i][1]  ? ""
			: views[i][2] ? views[i][2]
				      : views[i][1],
			seconds / single, most, costs[i].kib >> 10, MEMORY_MOST >> 10,
			seconds / reference);
		missed += !good;
	}
	return missed;
}

int main(int argc, char **argv)
{
	const uint32_t megabytes = argc > 1 ? (uint32_t)strtoul(argv[1], NULL, 10) : MEGABYTES,
		       chains = megabytes * 1000000 / CHAIN_BYTES;
	const char *path = "bench-views.bin";
	static struct cost costs[VIEWS];
	static struct source source;
	double reference[ROUNDS], usual;
	char report[4096];
	uint64_t bytes;

	snprintf(report, sizeof report, "%s/../../pperf-report", dirname(argv[0]));
	source.events = malloc((size_t)chains * (2 * DEPTH + 2) * sizeof *source.events);
	if (!source.events)
		abort();
	make(&source, path, chains);
	bytes = block_writer_close(source.writer, 2);
	for (unsigned round = 0; round < ROUNDS; round++) {
		reference[round] = run_reference(source.events, source.count, chains);
		for (unsigned i = 0; i < VIEWS; i++)
			if (!run_view(report, views[i], path, &costs[i], round)) {
				printf("MISSED %s: it failed\n", views[i][0]);
				unlink(path);
				return 1;
			}
	}
	unlink(path);
	usual = middle(reference);
	printf("a trace of %.0f MB, %zu million events; the reference takes %.3f s\n",
		(double)bytes / 1e6, source.count / 1000000, usual);
	free(source.events);
	return tell(costs, usual) != 0;
}
