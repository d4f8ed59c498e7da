/* SPDX-License-Identifier: MIT */
#include "report/views/missing_data.h"
#include "report/analysis/activities.h"
#include "report/base/compare.h"
#include "report/text/paragraph.h"
#include "report/views/source_reasons.h"
#include <stdlib.h>
#include <string.h>

/* What a view needs, and how each tool records it. */
struct needed_data {
	const char *what; /* after `the trace has no` */
	const char *kineto, *nsys, *own;
	/* META source.NAME, of which pperf's own trace says why it was not recorded */
	const char *sources[3];
};

static const struct needed_data gpu_work = {
	"GPU work",
	"record with torch.profiler.profile(activities=[ProfilerActivity.CPU, "
	"ProfilerActivity.CUDA])",
	"record with nsys profile --trace=cuda,nvtx",
	"record on a machine with a GPU and CUPTI (pperf doctor says what is missing)",
	{ "cupti", NULL, NULL },
};

static const struct needed_data memory_events = {
	"memory events",
	"record with torch.profiler.profile(profile_memory=True)",
	"memory usage is not read from exports of Nsight Systems; record with pperf run",
	"neither CUDA allocations nor tensors on a GPU were recorded",
	{ "torch_memory", "cuda_symbols", "cupti" },
};

static const struct needed_data cuda_calls = {
	"CUDA calls",
	"record with torch.profiler.profile(activities=[ProfilerActivity.CPU, "
	"ProfilerActivity.CUDA])",
	"record with nsys profile --trace=cuda",
	"the program called no CUDA function that pperf records",
	{ "cuda_symbols", "cupti", NULL },
};

static const struct needed_data ranges = {
	"ranges",
	"record with torch.profiler.profile(activities=[ProfilerActivity.CPU, ...]), or mark the "
	"program's phases with torch.profiler.record_function",
	"record with nsys profile --trace=cuda,nvtx, and mark the program's phases with NVTX",
	"mark the program's phases with NVTX",
	{ "nvtx", "torch_ops", "torch_modules" },
};

static const struct {
	const char *view;
	const struct needed_data *needs;
} view_needs[] = {
	{ "tree", &ranges },
	{ "table", &ranges },
	{ "kernels", &gpu_work },
	{ "memory", &memory_events },
	{ "api", &cuda_calls },
	{ "streams", &gpu_work },
	{ "queue", &gpu_work },
	{ "idle", &gpu_work },
	{ "overlap", &gpu_work },
	{ "critical-path", &gpu_work },
};

static const struct needed_data *needs_of(const char *view)
{
	for (size_t i = 0; i < sizeof view_needs / sizeof *view_needs; i++)
		if (strcmp(view_needs[i].view, view) == 0)
			return view_needs[i].needs;
	return NULL;
}

static struct trace_text meta_of_source(const struct process *process, const char *source)
{
	return reader_meta_of(process->reader, "source", source);
}

/* Returns true if the trace has what the view needs, so a selection left nothing. */
static bool has_needed(const struct process *process, const struct needed_data *needs)
{
	return needs == &gpu_work && process->gpu_ns > 0;
}

static bool is_recorded(const struct process *process, const char *source)
{
	const struct trace_text state = meta_of_source(process, source);

	return state.length == 2 && !memcmp(state.bytes, "on", 2);
}

/* Adds the reasons that pperf recorded. Returns false if there are none. */
static bool add_recorded_reasons(struct paragraph *line, const struct process *process,
	const struct needed_data *needs, const struct style *style)
{
	bool any = false;

	for (size_t i = 0; i < sizeof needs->sources / sizeof *needs->sources; i++) {
		struct text_builder advice = { .text = NULL };

		if (!needs->sources[i])
			break;
		source_add_advice(&advice, needs->sources[i],
			meta_of_source(process, needs->sources[i]), style->ascii);
		if (advice.text)
			paragraph_add(line, " %s", advice.text);
		any |= advice.text != NULL;
		free(advice.text);
	}
	return any;
}

/* Returns 1 for a function that allocates device memory, -1 for one that frees it, else 0. */
static int allocates(struct string_view name)
{
	static const struct {
		const char *prefix;
		int sign;
	} functions[] = { { "cudaMalloc", 1 }, { "cuMemAlloc", 1 }, { "hipMalloc", 1 },
		{ "cudaFree", -1 }, { "cuMemFree", -1 }, { "hipFree", -1 } };
	static const char host[] = "Host";

	for (size_t i = 0; i < sizeof functions / sizeof *functions; i++) {
		const size_t length = strlen(functions[i].prefix);

		if (name.length >= length && !memcmp(name.bytes, functions[i].prefix, length))
			return name.length >= length + 4 && !memcmp(name.bytes + length, host, 4)
				       ? 0
				       : functions[i].sign;
	}
	return 0;
}

/* Adds how often the program allocated and freed device memory, which is known without the sizes. A
 * call may have a record of its own and one of CUPTI: the more numerous ones are taken. */
static void add_allocation_calls(struct paragraph *line, struct process *process)
{
	struct activities *activities = activities_read(process);
	uint64_t counts[2][2] = { { 0 } }; /* by reported by CUPTI, freed */
	const struct activity *one;
	uint64_t allocated, freed;

	for (activities_rewind(activities); (one = activities_first(activities));
		activities_next(activities)) {
		const bool reported = one->kind == ACTIVITY_API;
		const int sign = one->kind <= ACTIVITY_API
					 ? allocates(string_table_get(process->texts, one->name))
					 : 0;

		if (sign && !one->result)
			counts[reported][sign < 0]++;
	}
	activities_free(activities);
	allocated = max_u64(counts[0][0], counts[1][0]);
	freed = max_u64(counts[0][1], counts[1][1]);
	if (allocated || freed)
		paragraph_add(line,
			"; device memory was allocated in %llu call%s and freed in %llu, of "
			"unknown sizes (pperf-report api)",
			(unsigned long long)allocated, allocated == 1 ? "" : "s",
			(unsigned long long)freed);
}

static void explain(
	struct process *process, const struct needed_data *needs, const struct style *style)
{
	static const char kineto[] = "torch.profiler";
	const struct trace_text format = process_meta(process, "import.format");
	const bool is_kineto = format.length >= strlen(kineto) &&
			       !memcmp(format.bytes, kineto, strlen(kineto));
	struct paragraph line = { .style = style };

	paragraph_add(&line, "the trace has no %s", needs->what);
	if (format.known)
		paragraph_add(&line, ": %s", is_kineto ? needs->kineto : needs->nsys);
	else if (needs == &memory_events && is_recorded(process, needs->sources[0]))
		paragraph_add(&line,
			": the program allocated no memory of a GPU (CPU tensors are not "
			"recorded)");
	else if (is_recorded(process, needs->sources[0]))
		paragraph_add(&line, ", although %s was recorded", needs->sources[0]);
	else if (!add_recorded_reasons(&line, process, needs, style))
		paragraph_add(&line, ": %s", needs->own);
	if (needs == &memory_events && format.known)
		add_allocation_calls(&line, process);
	paragraph_print(&line, "no rows");
}

void missing_data_explain(const struct report *report, const struct style *style)
{
	struct process *process = &report->processes->all[0];
	const struct needed_data *needs = needs_of(report->options->view->name);

	if (needs && !has_needed(process, needs))
		explain(process, needs, style);
	else
		output_string(style->out,
			"no rows: the trace has no data for this view (see pperf-report info)\n");
}
