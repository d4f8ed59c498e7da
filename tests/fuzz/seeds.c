/* SPDX-License-Identifier: MIT
 * seeds.c: seeds FOLDER: inputs for each harness to begin with, made here so that none need be
 * kept: FOLDER/X for fuzz_X.
 */
#include "report/run/kept_process.h"
#include "report/trace/record_check.h"
#include "tests/support/import_samples.h"
#include "tests/support/kept_program.h"
#include "tests/support/run_report.h"
#include "tests/support/training_trace.h"

#include <elf.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

enum { MAIN = 1, OTHER = 2, GPU = 3 }; /* streams */

static const char *folder;

static void fail(const char *what)
{
	perror(what);
	exit(2);
}

/* A seed: what comes before it, then the bytes. */
static void put(const char *kind, const char *name, const void *head, size_t head_bytes,
	const void *bytes, size_t count)
{
	char path[4096];
	FILE *file;

	snprintf(path, sizeof path, "%s/%s", folder, kind);
	mkdir(path, 0700);
	snprintf(path, sizeof path, "%s/%s/%s", folder, kind, name);
	file = fopen(path, "wb");
	if (!file || fwrite(head, 1, head_bytes, file) != head_bytes ||
		fwrite(bytes, 1, count, file) != count || fclose(file))
		fail(path);
}

/* ---- traces ---- */

static const uint16_t record_bytes[TRACE_KINDS] = {
#define X(kind, type, timed, text) [TRACE_##kind] = sizeof(struct type),
	TRACE_RECORDS(X)
#undef X
};

/* A record of every kind that streams have, with texts where there may be some. */
static struct trace_builder *every_kind(void)
{
	struct trace_builder *builder = builder_new();

	build_push(builder, MAIN, 10, "step");
	build_push(builder, MAIN, 20, "layer");
	for (unsigned kind = TRACE_CLOCK + 1; kind < TRACE_KINDS; kind++) {
		struct trace_range *range;

		if (kind == TRACE_OPEN || kind == TRACE_PUSH || kind == TRACE_POP_AT ||
			kind_is_dictionary(kind))
			continue;
		range = build_record(builder, MAIN, kind, record_bytes[kind] + 13u, 100 + kind);
		if (kind != TRACE_START && kind != TRACE_MARK)
			continue;
		range->head.flags = TRACE_HAS_TEXT;
		range->text_bytes = 13;
		memcpy(range + 1, "inline text \xff", 13);
	}
	build_pop(builder, MAIN, 500);
	build_seal(builder, MAIN, SEAL_WHOLE);
	build_pop_at(builder, MAIN, 600, 0);
	return builder;
}

static void build_stacks(struct trace_builder *builder)
{
	static const char path[] = "/nowhere/lib.so";
	const uint64_t addresses[] = { 0x7f0000001020, 0x7f0000001090 };
	const struct trace_python_frame frame = { .function = build_name(builder, "Net.forward"),
		.file = build_name(builder, "/home/me/train.py"),
		.line = 7 };
	struct trace_stack *stack = build_dictionary(
		builder, TRACE_STACK, sizeof *stack + sizeof addresses);
	struct trace_python_stack *python;
	struct trace_mixed_stack *mixed;
	struct trace_module *module;

	stack->stack = 1;
	stack->frames = 2;
	memcpy(stack + 1, addresses, sizeof addresses);
	python = build_dictionary(builder, TRACE_PYTHON_STACK, sizeof *python + sizeof frame);
	python->stack = 2;
	python->frames = 1;
	memcpy(python + 1, &frame, sizeof frame);
	mixed = build_dictionary(builder, TRACE_MIXED_STACK, sizeof *mixed);
	mixed->stack = 3;
	mixed->native = 1;
	mixed->python = 2;
	module = build_dictionary(builder, TRACE_MODULE, sizeof *module + sizeof path + 20);
	module->start = module->bias = 0x7f0000000000;
	module->end = 0x7f0000100000;
	module->path_bytes = sizeof path - 1;
	module->build_id_bytes = 20;
	memcpy(module + 1, path, sizeof path - 1);
}

static void build_facts(struct trace_builder *builder)
{
	const uint32_t name = build_name(builder, "loss");
	struct trace_counter *counter = build_dictionary(builder, TRACE_COUNTER, sizeof *counter);
	struct trace_context *context;

	counter->counter = 1;
	counter->name = name;
	context = build_dictionary(builder, TRACE_CONTEXT, sizeof *context);
	context->context = 1;
	context->stream = 7;
	build_dictionary(builder, TRACE_GRAPH_NODE, sizeof(struct trace_graph_node));
	build_dictionary(builder, TRACE_GRAPH_EXEC, sizeof(struct trace_graph_exec));
	build_meta(builder, "exe", "/usr/bin/python3");
	build_meta(builder, "argv", "python3 train.py");
	build_meta(builder, "host", "h");
	build_meta(builder, "env.PPERF_MAX", "4G");
}

/* Steps whose work is launched, copied, waited for and done; memory comes and goes. */
static struct trace_builder *gpu_steps(void)
{
	struct trace_memory *failed;
	struct trace_device_memory *left;
	struct trace_builder *builder = builder_new();
	uint64_t at = 0, correlation = 0;

	build_device(builder, 0, "G");
	build_facts(builder);
	build_stacks(builder);
	for (uint32_t step = 0; step < 7; step++, at += 1000) {
		struct trace_gpu_batch *batch;
		char name[32];

		snprintf(name, sizeof name, "step %u", step);
		build_push(builder, MAIN, at + 10, name);
		build_push(builder, MAIN, at + 20, "layer");
		build_launch(builder, MAIN, at + 40, ++correlation)->call.stack = 1 + step % 2;
		build_copy(builder, MAIN, at + 50, TRACE_COPY, ++correlation, 64);
		build_alloc(builder, MAIN, at + 60, 0x1000, 4096);
		build_tensor(builder, MAIN, at + 70, 0x1000, 512, 512, 4096);
		build_tensor(builder, MAIN, at + 80, 0x1000, -512, 0, 4096);
		build_free(builder, MAIN, at + 90, 0x1000);
		build_pop(builder, MAIN, at + 100);
		build_pop(builder, MAIN, at + 900);
		batch = build_record(builder, GPU, TRACE_GPU_BATCH, sizeof *batch, at + 950);
		batch->records = 2;
		build_kernel(builder, GPU, at + 950, correlation - 1,
			step % 2 ? "_Z4gemmPfi" : "ncclDevKernel_AllReduce", at + 60,
			at + 200 + 10 * step);
		build_gpu_copy(builder, GPU, at + 950, TRACE_GPU_COPY, correlation, 64, at + 300,
			at + 400);
	}
	failed = build_memory(builder, MAIN, at, TRACE_ALLOC, 0, 1 << 20, TRACE_MEMORY_DEVICE, 0);
	failed->call.result = 2;
	left = build_record(builder, MAIN, TRACE_DEVICE_MEMORY, sizeof *left, at + 1);
	left->total_bytes = 8192;
	left->reason = TRACE_SAMPLE_FAILED;
	build_tensor_oom(builder, MAIN, at + 2, 1 << 20, 0, 4096);
	build_seal(builder, MAIN, SEAL_WHOLE);
	build_seal(builder, GPU, SEAL_WHOLE);
	return builder;
}

static struct trace_builder *steps_of_pytorch(void)
{
	struct training training = training_new();

	training.correlation = 1;
	training.backward_stream = OTHER;
	for (int step = 0; step < 6; step++)
		train_step(&training, "Net");
	return training.builder;
}

/* Gaps, copies, what is torn; a clock that is not the kernel's. */
static struct trace_builder *damaged(void)
{
	static const enum seal_kind seals[] = { SEAL_WHOLE, SEAL_TORN, SEAL_MISSING, SEAL_HOLE,
		SEAL_TWICE, SEAL_AND_SLOT, SEAL_TORN_SLOT };
	struct trace_builder *builder = builder_new();

	build_tsc(builder, 1, 3);
	for (uint32_t i = 0; i < 7; i++) {
		build_push(builder, MAIN, 100 * i + 10, "step");
		build_push(builder, OTHER, 100 * i + 10, "layer");
		build_pop(builder, MAIN, 100 * i + 50);
		build_seal(builder, MAIN, seals[i]);
		build_lost(builder, OTHER, i);
	}
	return builder;
}

/* What was counted and not recorded. */
static struct trace_builder *counted(void)
{
	struct trace_builder *builder = builder_new();
	struct trace_total rows[2] = { { .calls = 5, .ticks = 100, .longest = 50 },
		{ .calls = 2, .ticks = 30, .longest = 20 } };

	rows[0].node = build_node(builder, 0, "step", NULL, TRACE_NODE_RANGE);
	rows[1].node = build_node(builder, rows[0].node, "layer", "d", TRACE_NODE_OP);
	build_push_node(builder, MAIN, 10, rows[0].node);
	build_pop(builder, MAIN, 500);
	build_block(builder, TRACE_TOTALS, rows, sizeof rows);
	return builder;
}

/* A ring, of which the begin was overwritten, stopped after a slow step. */
static struct trace_builder *ring(void)
{
	struct trace_builder *builder = builder_new();
	struct trace_header *header = builder_header(builder);
	const enum trace_window_edge edges[] = { TRACE_WINDOW_RESTATES, TRACE_WINDOW_RESTATED };

	build_push(builder, MAIN, 10, "step");
	for (uint64_t at = 100; at <= 300; at += 200)
		for (int i = 0; i < 2; i++) {
			struct trace_window *record = build_record(
				builder, MAIN, TRACE_WINDOW, sizeof *record, at + (uint64_t)i);

			record->edge = edges[i];
			if (at == 100 && i == 0)
				header->ring.window_stamp = record->stamp;
			if (i == 0)
				build_tensor(builder, MAIN, at, 0x2000, 1024, 1024, 4096);
		}
	build_pop(builder, MAIN, 500);
	header->ring.bytes = 1 << 20;
	header->ring.chunks = header->ring.events = 3;
	header->control.stop = TRACE_STOP_SLOW_STEP;
	build_block(builder, TRACE_UNUSED, "", 0);
	return builder;
}

static const unsigned char screens[][8] = {
	{ 0, 0, 0, 1, 4, 0, 0, 0 },
	{ 1, 1, 1, 0, 3, 1, 0, 0 },
	{ 2, 0, 2, 2, 0, 2, 0, 0 },
	{ 3, 2, 4, 3, 1, 3, 0, 0 },
	{ 3, 1, 9, 3, 3, 0, 0, 0 },
	{ 4, 1, 0, 0, 0, 0, 0, 0 },
	{ 5, 1, 0, 4, 0, 0, 0, 0 },
	{ 6, 0, 16, 5, 0, 0, 0, 0 },
	{ 7, 1, 0, 6, 0, 0, 0, 0 },
	{ 8, 2, 0, 7, 0, 0, 0, 0 },
	{ 9, 1, 0, 0, 0, 0, 0, 0 },
	{ 10, 1, 0, 0, 0, 0, 0, 0 },
	{ 11, 1, 0, 0, 0, 0, 0, 1 },
	{ 12, 1, 0, 0, 0, 0, 0, 0 },
	{ 13, 0, 0, 0, 0, 0, 0, 0 },
	{ 14, 1, 0, 0, 0, 0, 0, 0 },
	{ 15, 1, 0, 0, 0, 0, 0, 0 },
	{ 16, 1, 1, 0, 0, 0, 0, 0 },
	{ 17, 1, 32, 0, 0, 0, 0, 0 },
	{ 18, 1, 0, 0, 0, 0, 0, 0 },
	{ 19, 2, 0, 0, 0, 0, 0, 0 },
	{ 19, 1, 32, 0, 0, 0, 0, 0 },
};

/* Some keys, for a screen of 80 columns and 24 rows. */
static const char keys[] = "\20\74\26jjljl/a\rhsnmc?qvde";

/* The same, of two traces. */
static const char compared[] = "\20\74\232jjljl/a\rhsnmc?qvde";

/* A program with ranges whose thread was sampled, with Python frames and native ones. */
static struct trace_builder *sampled(void)
{
	struct trace_builder *builder = builder_new();
	const uint32_t function = build_name(builder, "train"), file = build_name(builder, "/a.py");
	struct trace_sample_python *exact;

	for (uint32_t id = 1; id < 9; id++) {
		struct trace_python_node *python = build_dictionary(
			builder, TRACE_PYTHON_FRAME, sizeof *python);
		struct trace_frame *native;

		python->frame = 2 * id;
		python->parent = 2 * id - 2;
		python->at = (struct trace_python_frame){ function, file, id, id & 1 };
		native = build_dictionary(builder, TRACE_FRAME, sizeof *native);
		native->frame = 2 * id + 1;
		native->parent = 2 * id - 1;
		native->address = 0x401000 + id;
	}
	for (uint32_t i = 0; i < 32; i++) {
		struct trace_sample *sample;
		struct trace_sampled_thread *thread;

		build_push(builder, MAIN, 100 * i + 10, i % 2 ? "load" : "step");
		thread = build_record(
			builder, OTHER, TRACE_SAMPLED_THREAD, sizeof *thread, 100 * i + 20);
		thread->tid = 1000 + MAIN;
		thread->cpu_ns = 160 * i;
		thread->name = function;
		sample = build_record(builder, OTHER, TRACE_SAMPLE, sizeof *sample, 100 * i + 30);
		sample->ago = i % 5 * 7;
		sample->tid = 1000 + MAIN;
		sample->state = i % 5;
		sample->weight = 10;
		sample->python = i % 18;
		sample->native = i % 17 | 1;
		sample->pc = 0x401000 + i;
		sample->head.flags = (uint8_t)(i & ~1u);
		exact = build_record(
			builder, MAIN, TRACE_SAMPLE_PYTHON, sizeof *exact, 100 * i + 40);
		exact->since = BUILDER_START + 100 * i + 10;
		exact->python = 4;
		build_pop(builder, MAIN, 100 * i + 50);
	}
	return builder;
}

static void put_trace(const char *name, struct trace_builder *builder)
{
	size_t bytes;
	const unsigned char *trace = builder_bytes(builder, &bytes);
	char path[64];

	for (size_t i = 0; i < sizeof screens / sizeof *screens; i++) {
		snprintf(path, sizeof path, "%s-%zu", name, i);
		put("trace", path, screens[i], sizeof *screens, trace, bytes);
	}
	put("tui", name, keys, 3u + (unsigned char)*keys, trace, bytes);
	snprintf(path, sizeof path, "%s-compared", name);
	put("tui", path, compared, 3u + (unsigned char)*compared, trace, bytes);
	builder_free(builder);
}

static void traces(void)
{
	put_trace("every", every_kind());
	put_trace("gpu", gpu_steps());
	put_trace("pytorch", steps_of_pytorch());
	put_trace("damaged", damaged());
	put_trace("counted", counted());
	put_trace("ring", ring());
	put_trace("sampled", sampled());
}

/* ---- files of other tools ---- */

static void foreign(void)
{
	unsigned char packed[16384], *export, *snapshot;
	z_stream stream = { .next_in = (unsigned char *)(uintptr_t)sample_kineto,
		.avail_in = (unsigned)sample_kineto_bytes(),
		.next_out = packed,
		.avail_out = sizeof packed };
	size_t bytes, snapshot_bytes;
	char name[16];

	snapshot = sample_torch_snapshot(&snapshot_bytes);
	export = sample_nsys_export(&bytes);
	if (deflateInit2(&stream, 6, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY) != Z_OK ||
		deflate(&stream, Z_FINISH) != Z_STREAM_END)
		fail("deflate");
	for (char view = 0; view < 14; view++) {
		snprintf(name, sizeof name, "json-%d", view);
		put("import", name, &view, 1, sample_kineto, sample_kineto_bytes());
		snprintf(name, sizeof name, "gzip-%d", view);
		put("import", name, &view, 1, packed, stream.total_out);
		snprintf(name, sizeof name, "nsys-%d", view);
		put("nsys", name, &view, 1, export, bytes);
		snprintf(name, sizeof name, "snapshot-%d", view);
		put("snapshot", name, &view, 1, snapshot, snapshot_bytes);
		snprintf(name, sizeof name, "sizes-%d", view);
		put("timeline", name, &view, 1, sample_timeline_sizes,
			strlen(sample_timeline_sizes));
		snprintf(name, sizeof name, "events-%d", view);
		put("timeline", name, &view, 1, sample_timeline_events,
			strlen(sample_timeline_events));
	}
	deflateEnd(&stream);
	free(export);
	free(snapshot);
}

struct image {
	Elf64_Ehdr header;
	struct {
		Elf64_Nhdr head;
		char name[4], id[20];
	} note;
	Elf64_Sym table[4];
	char names[64];
	Elf64_Phdr segment;
	Elf64_Shdr sections[4]; /* null, note, symbols, strings */
};

static void library(const char *name, uint32_t table_type)
{
	struct image image = {
		.header = { .e_ident = { ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64,
				    ELFDATA2LSB, EV_CURRENT },
			.e_type = ET_DYN,
			.e_machine = EM_X86_64,
			.e_version = EV_CURRENT,
			.e_ehsize = sizeof image.header,
			.e_phentsize = sizeof image.segment,
			.e_phnum = 1,
			.e_phoff = offsetof(struct image, segment),
			.e_shentsize = sizeof *image.sections,
			.e_shnum = 4,
			.e_shoff = offsetof(struct image, sections) },
		.note = { .head = { .n_namesz = 4, .n_descsz = 20, .n_type = NT_GNU_BUILD_ID },
			.name = "GNU" },
		.names = "\0_Z4gemmPfi\0local\0_ZN2at6native3addEv",
		.segment = { .p_type = PT_NOTE,
			.p_offset = offsetof(struct image, note),
			.p_filesz = sizeof image.note,
			.p_align = 4 },
		.sections = { [1] = { .sh_type = SHT_NOTE,
				      .sh_offset = offsetof(struct image, note),
				      .sh_size = sizeof image.note,
				      .sh_addralign = 4 },
			[2] = { .sh_type = table_type,
				.sh_offset = offsetof(struct image, table),
				.sh_size = sizeof image.table,
				.sh_link = 3,
				.sh_entsize = sizeof *image.table,
				.sh_addralign = 8 },
			[3] = { .sh_type = SHT_STRTAB,
				.sh_offset = offsetof(struct image, names),
				.sh_size = sizeof image.names,
				.sh_addralign = 1 } },
	};
	static const uint32_t names[] = { 0, 1, 12, 18 };
	const uint64_t address = 0x1010;

	memset(image.note.id, 'B', sizeof image.note.id);
	for (uint32_t i = 1; i < 4; i++)
		image.table[i] = (Elf64_Sym){ .st_name = names[i],
			.st_value = 0x1000u * i,
			.st_size = 0x100,
			.st_shndx = 7,
			.st_info = (unsigned char)(STB_GLOBAL << 4 | STT_FUNC) };
	put("elf", name, &address, sizeof address, &image, sizeof image);
}

/* ---- texts ---- */

static void texts(void)
{
	static const char *const some[] = { "_ZN2at6native27unrolled_elementwise_kernelILi4EEEvPf",
		"_RNvC1a1b", "void at::native::add<4>(float*, int)",
		"main::{lambda(int)#2}::operator()(int) const", "track - kf: 71", "layers.7.attn.0",
		"Torch-Compiled Region: 3/1", "\x1b[31m\xff\xe2\x80\xae\xe4\xb8\xad\xe6\x96\x87",
		"=cmd()",
		"{\"a\": [1, 2.5e3, \"\\u00e4\\ud83d\\ude00\"], \"b\": {\"c\": null}, \"n\": "
		"1711964646000000.125}",
		"[1, \"0x1f\", -7, NaN, 1e400]", "*gemm*\nsm90_xmma_gemm_f16",
		"_ZN3c104implL3fooIJNS0_1aEEEEvT_" };
	char name[32];

	for (size_t i = 0; i < sizeof some / sizeof *some; i++)
		for (unsigned char taker = 0; taker < 7; taker++)
			for (unsigned char more = 0; more < 2; more++) {
				const unsigned char head[] = {
					(unsigned char)(taker | more << 4 | more << 5), more
				};

				snprintf(name, sizeof name, "%zu-%u-%u", i, taker, more);
				put("text", name, head, sizeof head, some[i], strlen(some[i]));
			}
}

static size_t own_file(const char *path, char *room, size_t bytes)
{
	FILE *file = fopen(path, "rb");

	if (!file)
		fail("seeds runs in the project's folder");
	bytes = fread(room, 1, bytes, file);
	fclose(file);
	return bytes;
}

/* The profile of a small trace, as the cache has it; for each view one. */
static void kept_profiles(void)
{
	static const struct options options = { .device = -1, .rank = -1, .format = FORMAT_JSON };
	struct trace_builder *builder = kept_program();
	struct process process = { .categories = categories_read(NULL) };
	char path[4096], name[32], error[READER_ERROR_BYTES], *kept = NULL;
	size_t bytes;
	FILE *file = open_memstream(&kept, &bytes);

	snprintf(path, sizeof path, "%s/kept-trace", folder);
	builder_write(builder, path);
	builder_free(builder);
	process.path = path;
	if (!process_read(&process, &options, error) || !kept_process_encode(&process, file))
		fail("the profile of a small trace");
	fclose(file);
	for (char view = 0; view < 14; view++) {
		snprintf(name, sizeof name, "view-%d", view);
		put("kept", name, &view, 1, kept, bytes);
	}
	unlink(path);
	free(kept);
	categories_free((struct categories *)process.categories);
	process_close(&process);
	free(process.command);
}

static void user_files(void)
{
	static const char arguments[] = "table\n-f\njson\n--by\nshape\n--steps\n1-7\n-n\n5\n--min-"
					"percent\n0.5\n--width\n80\n--focus\na/b\\/c\ntrace.bin";
	static const char baseline[] =
		"{\"schema\":\"pperf.baseline/"
		"1\",\"basis\":\"step\",\"steps\":5,\"figures\":[{\"name\":\"cpu\",\"unit\":\"ns\","
		"\"value\":250.5,\"rows\":[[\"Net\",200],[\"Net/"
		"aten::mm\",1.5]]},{\"name\":\"wall\",\"unit\":\"ns\",\"value\":280,\"rows\":[]}]}";
	static const char peaks[] = "# a GPU\ndevice G* sms=132 fp32=66.9 fp16=989.4 "
				    "memory=4000\narch 9.0 fp32=256 bf16=4096\n";
	char text[65536];
	size_t bytes = own_file("report/gpu/work_categories.rules", text, sizeof text);

	put("files", "arguments", "\0", 1, arguments, sizeof arguments - 1);
	put("files", "rules", "\1", 1, text, bytes);
	put("files", "rules-few", "\1", 1, text, bytes < 1500 ? bytes : 1500);
	put("files", "baseline", "\2", 1, baseline, sizeof baseline - 1);
	put("files", "baseline-json", "\6", 1, baseline, sizeof baseline - 1);
	put("files", "peaks-few", "\3", 1, peaks, sizeof peaks - 1);
	put("files", "peaks-json", "\7", 1, peaks, sizeof peaks - 1);
	bytes = own_file("report/analysis/gpu_peaks.table", text, sizeof text);
	put("files", "peaks", "\3", 1, text, bytes);
}

int main(int argc, char **argv)
{
	if (argc != 2)
		return fputs("seeds FOLDER\n", stderr), 2;
	folder = argv[1];
	mkdir(folder, 0700);
	traces();
	foreign();
	library("symtab", SHT_SYMTAB);
	library("dynsym", SHT_DYNSYM);
	texts();
	user_files();
	kept_profiles();
	return 0;
}
