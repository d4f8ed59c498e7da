/* SPDX-License-Identifier: MIT
 *
 * Rules about device memory and PyTorch's tensors: growth from step to step, one step that needs
 * far more, memory that no tensor holds, and running out of memory.
 *
 * Growth is the median slope over the steady-state steps (Theil and Sen), if the test of Mann and
 * Kendall finds a trend with p below 0.005. The path that holds it is the one that holds most of
 * what steady-state steps allocated: at the end of the trace, or at the peak if all was freed at
 * the end.
 */
#include "report/analysis/allocation_sites.h"
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

#define TREND_STEPS_MIN 6u   /* fewer steps cannot reach TREND_Z */
#define TREND_STEPS_MAX 512u /* of more, the last ones are examined */
#define TREND_Z 2.576        /* of the standard normal distribution: p below 0.005 */
#define SPIKE_STEPS_MIN 5u
#define FRAMES_SHOWN 3u

static const struct memory_level *tensor_level(const struct diagnosis *diagnosis)
{
	const uint32_t device = diagnosis->profile->totals.level_device;

	return memory_owners_tensors(diagnosis->profile->memory, device);
}

/* ---- who holds memory ---- */

enum held_when { HELD_AT_END, HELD_AT_PEAK, HELD_AT_OOM };

static uint64_t site_held(const struct memory_site *site, enum held_when when)
{
	return when == HELD_AT_END    ? site->flow.held
	       : when == HELD_AT_PEAK ? site->flow.at_peak
				      : site->flow.at_oom;
}

/* Returns true if steady-state steps may have made what the site holds: it is in no other section
 * of the run, and made an allocation in every second step at least. */
static bool may_grow(const struct diagnosis *diagnosis, const struct memory_site *site)
{
	const struct tree *tree = diagnosis->profile->tree;
	uint32_t root = site->node;

	while (tree->nodes[root].parent)
		root = tree->nodes[root].parent;
	return !tree->nodes[root].outside && site->flow.allocs * 2 >= diagnosis->facts.steady_steps;
}

/* The path that holds most, over the sites of one level. */
struct top_holder {
	uint32_t node; /* 0: none */
	uint64_t bytes, sum_bytes;
	const struct memory_site *site; /* the largest one of the path */
};

/* `in_steps`: looks only at what steady-state steps allocated. */
static struct top_holder find_holder(const struct diagnosis *diagnosis,
	const struct memory_level *level, enum held_when when, bool in_steps)
{
	const struct memory_owners *memory = diagnosis->profile->memory;
	const struct tree *tree = diagnosis->profile->tree;
	uint64_t *held = xcalloc(tree->count * sizeof *held);
	uint32_t *same = nodes_in_any_step(tree);
	struct top_holder top = { .node = 0 };

	for (uint32_t i = 0; i < memory->site_count; i++) {
		const struct memory_site *site = &memory->sites[i];
		const uint64_t bytes = site_held(site, when);
		const uint32_t node = in_steps ? site->node : same[site->node];

		if (&memory->levels[site->level] != level || !bytes ||
			(in_steps && !may_grow(diagnosis, site)))
			continue;
		top.sum_bytes += bytes;
		held[node] += bytes;
		if (held[node] <= top.bytes)
			continue;
		if (node != top.node || !top.site || bytes > site_held(top.site, when))
			top.site = site;
		top.node = node;
		top.bytes = held[node];
	}
	free(held);
	free(same);
	return top;
}

/* Writes the innermost lines of the program's own Python code of a stack, as `; allocated at
 * train.py:6 Net.forward < train.py:14 <module>`. Writes nothing if the trace has none. */
static void list_python_lines(
	struct diagnosis *diagnosis, const struct memory_site *site, char *text, size_t room)
{
	struct process *process = diagnosis->process;
	const uint32_t frames = site ? call_stack_frames(process, site->stack) : 0;
	char *frame = xcalloc(CALL_STACK_TEXT);
	size_t used = 0, length;

	*text = '\0';
	for (uint32_t i = 0, shown = 0; i < frames && shown < FRAMES_SHOWN; i++) {
		call_stack_frame(process, site->stack, i, false, frame, CALL_STACK_TEXT);
		if (!strstr(frame, ".py:") || strstr(frame, "/site-packages/") ||
			strstr(frame, "/dist-packages/") || strstr(frame, "/lib/python"))
			continue;
		length = call_stack_frame(process, site->stack, i, true, frame, CALL_STACK_TEXT);
		finding_set_text(text + used, room - used, "%s%s",
			shown++ ? " < " : "; allocated at ",
			diagnose_escaped(diagnosis, frame, length));
		used = strlen(text);
	}
	free(frame);
}

/* ---- growth ---- */

/* Returns true if `values` rise by more than chance explains (Mann and Kendall). */
static bool has_upward_trend(const int64_t *values, size_t count)
{
	const double n = (double)count, deviation = sqrt(n * (n - 1) * (2 * n + 5) / 18);
	int64_t sum = 0;

	for (size_t i = 0; i < count; i++)
		for (size_t later = i + 1; later < count; later++)
			sum += COMPARE(values[later], values[i]);
	return count >= TREND_STEPS_MIN && (double)(sum - 1) > TREND_Z * deviation;
}

/* Returns the slope, in bytes per step, of the level at the end of steady-state steps (Theil-Sen,
 * the last TREND_STEPS_MAX steps). Returns 0 if there is no upward trend, or if the growth has
 * stopped. `*peak_bytes`: the highest of these levels, of all steady-state steps. `offset`: of the
 * level in struct step_stats. */
static uint64_t growth_per_step(const struct step_table *table, size_t offset, uint64_t *peak_bytes)
{
	int64_t *const values = xcalloc((table->usual + 1) * sizeof *values), *ends = values;
	size_t count = table->usual;
	double slope = 0;

	step_table_values(table, offset, values);
	*peak_bytes = 0;
	for (size_t i = 0; i < count; i++)
		*peak_bytes = max_u64(*peak_bytes, values[i] > 0 ? (uint64_t)values[i] : 0);
	if (count > TREND_STEPS_MAX) {
		ends += count - TREND_STEPS_MAX;
		count = TREND_STEPS_MAX;
	}
	/* If the growth has stopped, it is no leak: for example, a cache is full. */
	if (has_upward_trend(ends, count)) {
		slope = step_trend(ends, count);
		if (step_trend(ends + count / 2, count - count / 2) * 4 < slope)
			slope = 0;
	}
	free(values);
	return slope >= 1 ? (uint64_t)llround(slope) : 0;
}

/* Appends after how many more steps the device's memory is used up at this rate. */
static void predict_end(struct diagnosis *diagnosis, uint64_t per_step, char *text, size_t room)
{
	const struct profile_totals *totals = &diagnosis->profile->totals;
	const struct trace_device *device = process_device(
		diagnosis->process, totals->level_device);
	const uint64_t held = totals->reserved_peak > 0 ? (uint64_t)totals->reserved_peak : 0;

	*text = '\0';
	if (device && device->memory_bytes > held + per_step)
		finding_set_text(text, room,
			"; at this rate the GPU's %s are used up after another %s (modelled)",
			diagnose_bytes(diagnosis, device->memory_bytes),
			diagnose_plural(
				diagnosis, (device->memory_bytes - held) / per_step, "step"));
}

static void explain_growth(
	struct diagnosis *diagnosis, struct finding *finding, uint64_t per_step, bool of_tensors)
{
	const struct memory_level *level = of_tensors ? tensor_level(diagnosis) : NULL;
	struct top_holder top = { .node = 0 };
	char lines[256] = "", end[160], holder[160] = "";
	enum held_when when = HELD_AT_END;

	if (level) {
		top = find_holder(diagnosis, level, when, true);
		/* Python frees what it holds at the end of the program. */
		if (top.sum_bytes < per_step * diagnosis->facts.steady_steps / 2)
			top = find_holder(diagnosis, level, when = HELD_AT_PEAK, true);
	}
	if (top.node) {
		SET_TEXT(holder, "; of what such steps allocated, the path below holds most: %s %s",
			diagnose_bytes(diagnosis, top.bytes),
			when == HELD_AT_END ? "at the end" : "at the peak");
		list_python_lines(diagnosis, top.site, lines, sizeof lines);
	}
	predict_end(diagnosis, per_step, end, sizeof end);
	SET_TEXT(finding->evidence, "%s more after each of %s%s%s%s",
		diagnose_bytes(diagnosis, per_step),
		diagnose_plural(diagnosis, diagnosis->facts.steady_steps, "steady-state step"),
		holder, lines, end);
	SET_TEXT(finding->next,
		"%sLook for what keeps tensors alive: losses or outputs that are kept without "
		".item() or .detach(), lists and caches that only grow, retain_graph=True. "
		"torch.cuda.memory._record_memory_history shows each allocation.",
		*lines || !of_tensors ? ""
				      : "PPERF_PYSTACKS=alloc records the line of every tensor. ");
	finding->node = top.node;
}

void diagnose_memory_growth(struct diagnosis *diagnosis, struct finding *finding)
{
	const struct step_table *table = diagnose_step_table(diagnosis);
	const bool of_tensors = table->has_allocated;
	const size_t examined = table->usual < TREND_STEPS_MAX ? table->usual : TREND_STEPS_MAX;
	uint64_t peak_bytes, per_step;

	if (table->usual < TREND_STEPS_MIN) {
		finding_set_unchecked(finding, "too few steady-state steps to detect a trend");
		return;
	}
	diagnosis->facts.steady_steps = table->usual;
	per_step = growth_per_step(table,
		of_tensors ? offsetof(struct step_stats, allocated_end)
			   : offsetof(struct step_stats, reserved_end),
		&peak_bytes);
	if (!diagnose_is_share(per_step * examined, peak_bytes, LIMIT_GROWTH))
		return;
	finding_set_found(finding, of_tensors ? CONFIDENCE_HIGH : CONFIDENCE_MEDIUM);
	SET_TEXT(finding->reason, "%s over %s%zu steady-state steps, p below 0.005 (Mann-Kendall)",
		of_tensors ? "PyTorch's own totals" : "the program's allocations",
		examined < table->usual ? "the last " : "", examined);
	SET_TEXT(finding->sentence,
		"Memory grows: after each steady-state step %s %s more than after the one before.",
		of_tensors ? "tensors hold" : "the program holds",
		diagnose_bytes(diagnosis, per_step));
	explain_growth(diagnosis, finding, per_step, of_tensors);
	SET_TEXT(finding->view, "memory");
	finding->count = examined;
	finding->impact_bytes = per_step * examined;
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
	const struct memory_level *level = tensor_level(diagnosis);

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

/* ---- fragmentation ---- */

void diagnose_memory_fragmentation(struct diagnosis *diagnosis, struct finding *finding)
{
	const struct memory_level *level = tensor_level(diagnosis);
	const struct memory_pool *pool = level ? &level->pool : NULL;
	uint64_t unused;

	if (!pool || !pool->peak) {
		finding_set_unchecked(finding, "the trace has no tensors of PyTorch's allocator");
		return;
	}
	unused = pool->reserved_at_peak > pool->peak ? pool->reserved_at_peak - pool->peak : 0;
	if (unused < LIMIT_UNUSED_BYTES ||
		!diagnose_is_share(unused, pool->reserved_at_peak, LIMIT_UNUSED))
		return;
	finding_set_found(finding, CONFIDENCE_MEDIUM);
	SET_TEXT(finding->reason,
		"measured; cached blocks that later steps use again are part of it");
	SET_TEXT(finding->sentence,
		"PyTorch reserves %s more than tensors hold when they hold most: %s of what it "
		"reserved.",
		diagnose_bytes(diagnosis, unused),
		diagnose_share(diagnosis, unused, pool->reserved_at_peak));
	SET_TEXT(finding->evidence, "at the peak of tensors: %s reserved, %s in tensors",
		diagnose_bytes(diagnosis, pool->reserved_at_peak),
		diagnose_bytes(diagnosis, pool->peak));
	SET_TEXT(finding->next,
		"Sizes that change from step to step fragment the cache: "
		"PYTORCH_ALLOC_CONF=expandable_segments:True, pad to a few sizes, allocate "
		"growing buffers once.");
	SET_TEXT(finding->view, "memory");
	finding->node = pool->peak_node;
	finding->count = 1;
	finding->impact_bytes = unused;
	finding->has_example = true;
	finding->example_ns = level->peak_ns;
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
	struct diagnosis *diagnosis, const struct memory_oom *oom, char *text, size_t room)
{
	const struct memory_level *level = memory_owners_tensors(
		diagnosis->profile->memory, oom->device);
	struct top_holder top = { .node = 0 };
	char lines[256];

	*text = '\0';
	if (level)
		top = find_holder(diagnosis, level, HELD_AT_OOM, false);
	if (!top.node)
		return;
	list_python_lines(diagnosis, top.site, lines, sizeof lines);
	finding_set_text(text, room, "; most of it was allocated by %s: %s%s",
		diagnose_name(diagnosis, diagnosis->profile->tree->nodes[top.node].name),
		diagnose_bytes(diagnosis, top.bytes), lines);
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
	name_oom_holder(diagnosis, oom, holder, sizeof holder);
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

static void set_failed_allocation(struct diagnosis *diagnosis, struct finding *finding,
	const struct failed_allocation *failed)
{
	const struct trace_text api = reader_name(diagnosis->process->reader, failed->api);
	const struct oom_cause cause = oom_cause_of_call(diagnosis->process, failed);

	set_exhausted(finding, failed->node, failed->time_ns, failed->requested_bytes);
	finding->count = diagnosis->profile->memory->counts.failed_allocations;
	SET_TEXT(finding->sentence, "%s of %s failed: out of memory.",
		diagnose_escaped(diagnosis, api.bytes, api.length),
		diagnose_bytes(diagnosis, failed->requested_bytes));
	set_capacity(diagnosis, finding, failed);
	SET_TEXT(finding->reason, "the call returned the error, and as much was not allocated "
				  "later");
	SET_TEXT(finding->next, "See what was live at that time (column `at OOM`): free what is "
				"no longer used, reuse buffers, or allocate less at once.");
	add_cause(diagnosis, finding, &cause);
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
		finding_set_unchecked(finding, "the trace has no allocations");
}
