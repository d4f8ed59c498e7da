/* SPDX-License-Identifier: MIT
 *
 * Rules about device memory and PyTorch's tensors: growth from step to step, one step that needs
 * far more, and running out of memory. Rules about memory that no tensor holds are in
 * waste_rules.c, others in capacity_rules.c.
 *
 * What grows, where and why is what report/analysis/memory_leaks.h found.
 */
#include "report/analysis/allocation_sites.h"
#include "report/analysis/memory_leaks.h"
#include "report/analysis/oom_cause.h"
#include "report/analysis/step_stats.h"
#include "report/base/alloc.h"
#include "report/base/compare.h"
#include "report/diagnose/diagnosis_internal.h"
#include "report/run/call_stack.h"
#include <math.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#define SPIKE_STEPS_MIN 5u
#define FRAMES_SHOWN 3u

const struct memory_level *diagnose_tensor_level(const struct diagnosis *diagnosis)
{
	const uint32_t device = diagnosis->profile->totals.level_device;

	return memory_owners_tensors(diagnosis->profile->memory, device);
}

/* ---- who holds memory ---- */

/* The path that held most when memory ran out, over the sites of one level. */
struct top_holder {
	uint32_t node; /* 0: none */
	uint64_t bytes;
	const struct memory_site *site; /* the largest one of the path */
};

static struct top_holder find_oom_holder(
	const struct diagnosis *diagnosis, const struct memory_level *level)
{
	const struct memory_owners *memory = diagnosis->profile->memory;
	const struct tree *tree = diagnosis->profile->tree;
	uint64_t *held = xcalloc(tree->count * sizeof *held);
	uint32_t *same = nodes_in_any_step(tree);
	struct top_holder top = { .node = 0 };

	for (uint32_t i = 0; i < memory->site_count; i++) {
		const struct memory_site *site = &memory->sites[i];
		const uint64_t bytes = site->flow.at_oom;
		const uint32_t node = same[site->node];

		if (&memory->levels[site->level] != level || !bytes)
			continue;
		held[node] += bytes;
		if (held[node] <= top.bytes)
			continue;
		if (node != top.node || !top.site || bytes > top.site->flow.at_oom)
			top.site = site;
		top.node = node;
		top.bytes = held[node];
	}
	free(held);
	free(same);
	return top;
}

void diagnose_python_lines(struct diagnosis *diagnosis, uint32_t stack, char *text, size_t room)
{
	struct process *process = diagnosis->process;
	const uint32_t frames = stack ? call_stack_frames(process, stack) : 0;
	char *frame = xcalloc(CALL_STACK_TEXT);
	size_t used = 0, length;

	*text = '\0';
	for (uint32_t i = 0, shown = 0; i < frames && shown < FRAMES_SHOWN; i++) {
		call_stack_frame(process, stack, i, false, frame, CALL_STACK_TEXT);
		if (!strstr(frame, ".py:") || strstr(frame, "/site-packages/") ||
			strstr(frame, "/dist-packages/") || strstr(frame, "/lib/python"))
			continue;
		length = call_stack_frame(process, stack, i, true, frame, CALL_STACK_TEXT);
		finding_set_text(text + used, room - used, "%s%s",
			shown++ ? " < " : "; allocated at ",
			diagnose_escaped(diagnosis, frame, length));
		used = strlen(text);
	}
	free(frame);
}

/* ---- growth ---- */

/* Appends after how many more steps the device's memory is used up at this rate. */
static void predict_end(
	struct diagnosis *diagnosis, const struct memory_leak *leak, char *text, size_t room)
{
	const uint64_t steps = memory_leak_steps_left(diagnosis->process, leak);

	*text = '\0';
	if (steps)
		finding_set_text(text, room,
			"; at this rate the GPU's %s are used up after another %s (modelled)",
			diagnose_bytes(diagnosis, leak->capacity_bytes),
			diagnose_plural(diagnosis, steps, "step"));
}

static const char *leak_advice(enum leak_cause cause)
{
	static const char *const advice[] = {
		[LEAK_UNKNOWN] =
			"Look for what keeps memory alive: lists, caches and histories that only "
			"grow.",
		[LEAK_GRAPH] =
			"Look for what keeps outputs alive with their graph: outputs or losses "
			"that are kept without .detach(), retain_graph=True, evaluation without "
			"torch.no_grad().",
		[LEAK_SCALAR] =
			"Keep the number and not the tensor: use .item() or .detach() where the "
			"scalar of each step is stored. The tensor keeps the whole graph.",
		[LEAK_PINNED] = "Free pinned buffers (cudaFreeHost), or allocate them once and use "
				"them again.",
		[LEAK_MANAGED] = "Free managed memory (cudaFree), or allocate it once before the "
				 "steps.",
		[LEAK_CUDA] = "Free what each step allocates (cudaFree), or allocate it once "
			      "before the steps.",
	};

	return advice[cause];
}

static void explain_growth(
	struct diagnosis *diagnosis, struct finding *finding, const struct memory_leak *leak)
{
	const struct memory_path *path = leak->path_count ? leak->paths[0].path : NULL;
	const struct memory_growth *growth = &leak->held->growth;
	char lines[256] = "", end[160], share[96] = "", scalar[96] = "";

	if (path) {
		SET_TEXT(share, "; %.0f %% of it by the path below",
			fmin(100, 100 * path->growth.rate / growth->rate));
		diagnose_python_lines(diagnosis, path->stack, lines, sizeof lines);
		finding->node = path->node;
	}
	if (leak->scalar)
		SET_TEXT(scalar, "; one scalar a step keeps it: %s",
			diagnose_node(diagnosis, leak->scalar->node));
	predict_end(diagnosis, leak, end, sizeof end);
	SET_TEXT(finding->evidence,
		"%s of %s left %s; %s of what steps left there is held at the end%s%s%s%s",
		diagnose_count(diagnosis, growth->left),
		diagnose_plural(diagnosis, growth->late, "late step"),
		diagnose_bytes(diagnosis, (uint64_t)llround(growth->rate)),
		diagnose_bytes(diagnosis, leak->left_bytes), share, lines, scalar, end);
	SET_TEXT(finding->next, "%s%s",
		*lines || leak->held->kind != MEMORY_TENSOR
			? ""
			: "PPERF_PYSTACKS=alloc records the line of every tensor. ",
		leak_advice(leak->cause));
}

/* The rules about memory that grows. Each leak belongs to one of them. */
static enum leak_cause rule_of_leak(const struct memory_leak *leak)
{
	return leak->held->kind == TRACE_MEMORY_PINNED ? LEAK_PINNED
	       : leak->cause == LEAK_SCALAR            ? LEAK_SCALAR
						       : LEAK_UNKNOWN;
}

/* Returns the fastest leak of a rule; NULL: there is none. */
static const struct memory_leak *find_leak(struct process *process, enum leak_cause rule)
{
	const struct memory_leaks *leaks = memory_leaks_possible(process) ? memory_leaks_of(process)
									  : NULL;

	for (size_t i = 0; leaks && i < leaks->count && leaks->leaks[i].is_leak; i++)
		if (rule_of_leak(&leaks->leaks[i]) == rule)
			return &leaks->leaks[i];
	return NULL;
}

static const char *leaking_kind(const struct memory_leak *leak)
{
	return leak->held->kind == MEMORY_TENSOR         ? "Tensor memory"
	       : leak->held->kind == TRACE_MEMORY_PINNED ? "Pinned memory of the host"
	       : memory_is_device(leak->held->kind)      ? "Device memory"
							 : "Memory";
}

static void check_growth(struct diagnosis *diagnosis, struct finding *finding, enum leak_cause rule)
{
	const char *unchecked = memory_leaks_unchecked(diagnosis->process);
	const struct memory_leak *leak;

	if (unchecked) {
		finding_set_unchecked(finding, unchecked);
		return;
	}
	leak = find_leak(diagnosis->process, rule);
	if (!leak)
		return;
	finding_set_found(finding, CONFIDENCE_HIGH);
	SET_TEXT(finding->reason, "sign test over %zu late steps: p %.2g", leak->held->growth.late,
		leak->held->growth.p);
	SET_TEXT(finding->sentence, "%s grows: each step leaves %s allocated%s.",
		leaking_kind(leak),
		diagnose_bytes(diagnosis, (uint64_t)llround(leak->held->growth.rate)),
		rule == LEAK_SCALAR ? ", because it keeps a scalar with the graph that made it"
				    : "");
	explain_growth(diagnosis, finding, leak);
	SET_TEXT(finding->view, "memory --growth");
	finding->count = leak->held->growth.late;
	finding->impact_bytes = leak->left_bytes;
}

void diagnose_memory_growth(struct diagnosis *diagnosis, struct finding *finding)
{
	check_growth(diagnosis, finding, LEAK_UNKNOWN);
}

void diagnose_scalar_keeps_graph(struct diagnosis *diagnosis, struct finding *finding)
{
	check_growth(diagnosis, finding, LEAK_SCALAR);
}

void diagnose_pinned_growth(struct diagnosis *diagnosis, struct finding *finding)
{
	check_growth(diagnosis, finding, LEAK_PINNED);
}

/* ---- spike ---- */

static const struct step_stats *highest_step(const struct step_table *table, size_t offset)
{
	const struct step_stats *highest = NULL;
	int64_t most = -1, peak;

	for (size_t i = 0; i < table->count; i++) {
		memcpy(&peak, (const char *)&table->steps[i] + offset, sizeof peak);
		if (table->steps[i].step->kind != STEP_USUAL || peak <= most)
			continue;
		most = peak;
		highest = &table->steps[i];
	}
	return highest;
}

/* Returns the node that reached the tensors' peak, if this was in `step`, else 0. */
static uint32_t peak_node_in(const struct diagnosis *diagnosis, const struct step *step)
{
	const struct memory_level *level = diagnose_tensor_level(diagnosis);

	if (!level || level->peak_ns < step->begin_ns || level->peak_ns > step->end_ns)
		return 0;
	return level->pool.peak_node;
}

static void explain_spike(struct diagnosis *diagnosis, struct finding *finding,
	const struct step_stats *step, uint64_t peak, uint64_t median, bool of_tensors)
{
	finding_set_found(finding, CONFIDENCE_HIGH);
	SET_TEXT(finding->reason, "measured, %s",
		of_tensors ? "PyTorch's own totals" : "the program's allocations");
	SET_TEXT(finding->sentence, "Step %llu needs %.1f times the memory of the other steps.",
		(unsigned long long)step->step->number, (double)peak / (double)median);
	SET_TEXT(finding->evidence, "%s %s in step %llu; the median of %s is %s",
		of_tensors ? "tensors held" : "the program held", diagnose_bytes(diagnosis, peak),
		(unsigned long long)step->step->number,
		diagnose_plural(diagnosis, diagnosis->facts.steady_steps, "steady-state step"),
		diagnose_bytes(diagnosis, median));
	SET_TEXT(finding->next,
		"Look at what is special about that step: a longer sequence or a larger batch "
		"(limit or bucket lengths), an evaluation, a checkpoint. The largest step decides "
		"which batch size fits.");
	SET_TEXT(finding->view, "steps");
	finding->node = peak_node_in(diagnosis, step->step);
	finding->count = 1;
	finding->impact_bytes = peak - median;
	finding->has_example = true;
	finding->example_ns = step->step->begin_ns;
}

void diagnose_memory_spike(struct diagnosis *diagnosis, struct finding *finding)
{
	const struct step_table *table = diagnose_step_table(diagnosis);
	const bool of_tensors = table->has_allocated;
	const size_t offset = of_tensors ? offsetof(struct step_stats, allocated_peak)
					 : offsetof(struct step_stats, reserved_peak);
	int64_t *const values = xcalloc((table->usual + 1) * sizeof *values), median, spread, most;

	diagnosis->facts.steady_steps = table->usual;
	step_table_values(table, offset, values);
	spread = step_spread(values, table->usual);
	median = step_median(values, table->usual); /* sorts */
	most = table->usual ? values[table->usual - 1] : 0;
	/* A spike is one step. Sizes that differ in every second step are the program's way. */
	if (steps_overlap(diagnosis->process->steps))
		finding_set_unchecked(finding, "steps of several threads overlap");
	else if (table->usual < SPIKE_STEPS_MIN)
		finding_set_unchecked(finding, "too few steady-state steps to detect an outlier");
	else if (median > 0 && (double)(most - median) > 5 * 1.4826 * (double)spread &&
		 diagnose_is_share((uint64_t)most, (uint64_t)median, LIMIT_SPIKE))
		explain_spike(diagnosis, finding, highest_step(table, offset), (uint64_t)most,
			(uint64_t)median, of_tensors);
	free(values);
}

/* ---- out of memory ---- */

/* Sets what does not depend on who reported the failure. It costs the run, not time. */
static void set_exhausted(struct finding *finding, uint32_t node, uint64_t at_ns, uint64_t bytes)
{
	finding->state = FINDING_FOUND;
	finding->ends_run = true;
	finding->confidence = CONFIDENCE_HIGH;
	finding->node = node;
	finding->impact_bytes = bytes;
	finding->has_example = true;
	finding->example_ns = at_ns;
	SET_TEXT(finding->view, "memory");
}

/* Writes which operator or range allocated most of what was live, with its Python lines. */
static void name_oom_holder(
	struct diagnosis *diagnosis, const struct memory_level *level, char *text, size_t room)
{
	struct top_holder top = { .node = 0 };
	char lines[256];

	*text = '\0';
	if (level)
		top = find_oom_holder(diagnosis, level);
	if (!top.node)
		return;
	diagnose_python_lines(diagnosis, top.site->stack, lines, sizeof lines);
	finding_set_text(text, room, "; most of it was allocated by %s: %s%s",
		diagnose_node(diagnosis, top.node), diagnose_bytes(diagnosis, top.bytes), lines);
}

/* Puts the cause before the evidence and its remedy in place of the general one. */
static void add_cause(
	struct diagnosis *diagnosis, struct finding *finding, const struct oom_cause *cause)
{
	char text[OOM_CAUSE_TEXT], evidence[sizeof finding->evidence];
	const struct style_settings *style = &diagnosis->options->style;

	oom_cause_sentence(cause, style->iec, style->ascii, text);
	if (!*text)
		return;
	finding_set_text(evidence, sizeof evidence, "%s", finding->evidence);
	SET_TEXT(finding->evidence, "%s; %s", text, evidence);
	SET_TEXT(finding->next, "%s", oom_cause_advice(cause));
}

static void set_torch_oom(struct diagnosis *diagnosis, struct finding *finding)
{
	const struct memory_owners *memory = diagnosis->profile->memory;
	const struct memory_oom *oom = &memory->ooms[memory->oom_count - 1];
	const struct oom_cause cause = oom_cause_of_torch(diagnosis->process, oom);
	char holder[400];

	set_exhausted(finding, oom->node, oom->time_ns, oom->requested_bytes);
	finding->count = memory->counts.ooms;
	SET_TEXT(finding->sentence, "PyTorch ran out of memory on GPU %u: %s were requested.",
		oom->device, diagnose_bytes(diagnosis, oom->requested_bytes));
	name_oom_holder(
		diagnosis, memory_owners_tensors(memory, oom->device), holder, sizeof holder);
	SET_TEXT(finding->evidence, "%s; tensors held %s of %s that PyTorch had reserved%s",
		diagnose_plural(diagnosis, memory->counts.ooms, "failed request"),
		diagnose_bytes(diagnosis, oom->allocated), diagnose_bytes(diagnosis, oom->reserved),
		holder);
	SET_TEXT(finding->reason, "PyTorch's allocator reported it");
	SET_TEXT(finding->next,
		"See what was live at that time (column `at OOM`): smaller batches, activation "
		"checkpointing, or no references to old tensors; against unallocated reserved "
		"memory PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True.");
	add_cause(diagnosis, finding, &cause);
}

static void set_capacity(struct diagnosis *diagnosis, struct finding *finding,
	const struct failed_allocation *failed)
{
	const struct trace_device *device = process_device(diagnosis->process, failed->device);

	if (memory_is_device(failed->kind) && device && device->memory_bytes > failed->held)
		SET_TEXT(finding->evidence,
			"this process had allocated %s of the GPU's %s, so at most %s were free",
			diagnose_bytes(diagnosis, failed->held),
			diagnose_bytes(diagnosis, device->memory_bytes),
			diagnose_bytes(diagnosis, device->memory_bytes - failed->held));
	else
		SET_TEXT(finding->evidence, "this process had allocated %s of %s memory",
			diagnose_bytes(diagnosis, failed->held), memory_kind_name(failed->kind));
}

static const struct memory_level *level_of_failed(
	const struct memory_owners *memory, const struct failed_allocation *failed)
{
	for (uint32_t i = 0; i < memory->level_count; i++)
		if (memory->levels[i].kind == failed->kind &&
			memory->levels[i].device == failed->device)
			return &memory->levels[i];
	return NULL;
}

static void set_failed_allocation(struct diagnosis *diagnosis, struct finding *finding,
	const struct failed_allocation *failed)
{
	const struct trace_text api = reader_name(diagnosis->process->reader, failed->api);
	const struct oom_cause cause = oom_cause_of_call(diagnosis->process, failed);
	char holder[400];
	size_t used;

	set_exhausted(finding, failed->node, failed->time_ns, failed->requested_bytes);
	finding->count = diagnosis->profile->memory->counts.failed_allocations;
	SET_TEXT(finding->sentence, "%s of %s failed: out of memory.",
		diagnose_escaped(diagnosis, api.bytes, api.length),
		diagnose_bytes(diagnosis, failed->requested_bytes));
	set_capacity(diagnosis, finding, failed);
	name_oom_holder(diagnosis, level_of_failed(diagnosis->profile->memory, failed), holder,
		sizeof holder);
	used = strlen(finding->evidence);
	finding_set_text(finding->evidence + used, sizeof finding->evidence - used, "%s", holder);
	SET_TEXT(finding->reason, "the call returned the error, and as much was not allocated "
				  "later");
	SET_TEXT(finding->next, "See what was live at that time (column `at OOM`): free what is "
				"no longer used, reuse buffers, or allocate less at once.");
	add_cause(diagnosis, finding, &cause);
}

/* Says why the rule was not checked: calls of other tools come without sizes. */
static void set_no_levels(struct diagnosis *diagnosis, struct finding *finding)
{
	const uint64_t count = max_u64(
		diagnosis->facts.allocation_calls[0], diagnosis->facts.allocation_calls[1]);

	if (count)
		SET_TEXT(finding->reason,
			"the trace has %s that allocate, free or register memory, but not the "
			"sizes",
			diagnose_plural(diagnosis, count, "call"));
	else
		SET_TEXT(finding->reason, "the trace has no allocations");
	finding->state = FINDING_UNCHECKED;
}

void diagnose_out_of_memory(struct diagnosis *diagnosis, struct finding *finding)
{
	const struct memory_owners *memory = diagnosis->profile->memory;
	const struct failed_allocation *failed = memory_owners_last_failed(memory);

	if (memory->oom_count)
		set_torch_oom(diagnosis, finding);
	else if (failed)
		set_failed_allocation(diagnosis, finding, failed);
	else if (!memory->level_count)
		set_no_levels(diagnosis, finding);
}
