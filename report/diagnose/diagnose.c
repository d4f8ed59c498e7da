/* SPDX-License-Identifier: MIT
 *
 * The table of rules, how they are evaluated, and how their findings become rows.
 */
#include "report/diagnose/diagnose.h"
#include "report/diagnose/diagnosis_internal.h"
#include "report/diagnose/run_bound.h"
#include "report/analysis/host_events.h"
#include "report/analysis/memory_waste.h"
#include "report/analysis/memory_leaks.h"
#include "report/analysis/roofline_model.h"
#include "report/analysis/step_stats.h"
#include "report/analysis/sample_cells.h"
#include "report/base/compare.h"
#include "report/base/alloc.h"
#include "report/print/next_command.h"
#include "report/table/computed_row.h"
#include "report/table/kept_rows.h"
#include "report/base/escape.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const struct diagnose_rule diagnose_rules[] = {
	{ "launch-bound", "the GPU is idle because the host has not launched its next operation",
		NEED_TIMES | NEED_LAUNCHES | CHECK_STEPS_TOO | COSTS_GPU_TIME,
		diagnose_launch_bound },
	{ "host-bound", "the same, if most of that time is in intervals of 1 ms or more",
		NEED_TIMES | NEED_LAUNCHES | CHECK_STEPS_TOO | COSTS_GPU_TIME,
		diagnose_host_bound },
	{ "dominant-event", "one kernel (without GPU work: one operator) takes most of the time",
		CHECK_STEPS_TOO | COSTS_GPU_TIME | SHORTENS_GPU_WORK, diagnose_dominant_event },
	{ "exposed-communication", "the GPU communicates while nothing is computed",
		NEED_TIMES | CHECK_STEPS_TOO | COSTS_GPU_TIME | SHORTENS_GPU_WORK,
		diagnose_exposed_communication },
	{ "collective-waits", "collectives wait for another rank", NEED_TIMES | COSTS_GPU_TIME,
		diagnose_collective_waits },
	{ "tensor-cores-unused", "matrix products and convolutions in FP32 without tensor cores",
		NEED_TIMES | CHECK_STEPS_TOO | COSTS_GPU_TIME | SHORTENS_GPU_WORK,
		diagnose_tensor_cores },
	{ "tiny-calls", "many kernels that are shorter than the cost of a launch",
		NEED_TIMES | NEED_LAUNCHES | CHECK_STEPS_TOO | COSTS_GPU_TIME,
		diagnose_tiny_calls },
	{ "small-grids", "kernels with fewer blocks than multiprocessors",
		NEED_TIMES | CHECK_STEPS_TOO | COSTS_GPU_TIME | SHORTENS_GPU_WORK,
		diagnose_small_grids },
	{ "data-loading", "the GPU (without GPU work: the steps) waits for the next batch",
		CHECK_STEPS_TOO | COSTS_GPU_TIME, diagnose_data_loading },
	{ "cold-start", "the first steps, or first calls, are much slower", 0,
		diagnose_cold_start },
	{ "copy-before-gemm", "device-to-device copies before matrix products",
		NEED_TIMES | NEED_LAUNCHES | NEED_RANGES | CHECK_STEPS_TOO | COSTS_GPU_TIME |
			SHORTENS_GPU_WORK,
		diagnose_copy_before_gemm },
	{ "attribute-queries", "attribute and heuristics queries in steady state", NEED_CALLS,
		diagnose_attribute_queries },
	{ "synchronisation", "the GPU is idle because the host waits for it",
		NEED_TIMES | NEED_LAUNCHES | CHECK_STEPS_TOO | COSTS_GPU_TIME,
		diagnose_synchronisation },
	{ "blocking-calls", "the GPU is idle after calls in which the host waits for it",
		NEED_TIMES | NEED_LAUNCHES | COSTS_GPU_TIME, diagnose_blocking_calls },
	{ "pageable-copies", "copies from and to pageable host memory",
		NEED_TIMES | CHECK_STEPS_TOO | COSTS_GPU_TIME, diagnose_pageable_copies },
	{ "exposed-copies", "copies while no kernel runs",
		NEED_TIMES | CHECK_STEPS_TOO | COSTS_GPU_TIME | SHORTENS_GPU_WORK,
		diagnose_exposed_copies },
	{ "steady-allocation", "driver allocations or frees in steady state", NEED_CALLS,
		diagnose_steady_allocation },
	{ "compile-tax", "overhead of each call of a compiled function", NEED_RANGES,
		diagnose_compile_tax },
	{ "compilation", "first compilations by torch.compile, and autotuning", NEED_RANGES,
		diagnose_compilation },
	{ "recompilation", "compilation of further versions, or in steady state", NEED_RANGES,
		diagnose_recompilation },
	{ "memory-growth", "each step leaves more memory allocated", NEED_ALLOCATIONS | NEED_STEPS,
		diagnose_memory_growth },
	{ "scalar-keeps-graph", "each step keeps a scalar, such as a loss, with its whole graph",
		NEED_ALLOCATIONS | NEED_STEPS, diagnose_scalar_keeps_graph },
	{ "pinned-memory-growth", "each step leaves more pinned memory of the host",
		NEED_ALLOCATIONS | NEED_STEPS, diagnose_pinned_growth },
	{ "memory-spike", "one step needs far more memory than the others",
		NEED_MEMORY | NEED_STEPS, diagnose_memory_spike },
	{ "memory-fragmentation",
		"a request failed although enough was free inside segments, or PyTorch reserves "
		"much more than tensors hold",
		NEED_MEMORY, diagnose_memory_fragmentation },
	{ "pinned-segments", "small tensors that live long keep large segments", NEED_MEMORY,
		diagnose_pinned_segments },
	{ "dynamic-shapes", "sizes that change from step to step make the reserved memory grow",
		NEED_MEMORY, diagnose_dynamic_shapes },
	{ "idle-cache", "PyTorch keeps segments that have been empty for long", NEED_MEMORY,
		diagnose_idle_cache },
	{ "memory-outside-pytorch",
		"a library or an extension allocates device memory past PyTorch's allocator",
		NEED_MEMORY, diagnose_memory_outside },
	{ "optimizer-state-twice", "the states of two optimizers for the same parameters are held",
		NEED_MEMORY, diagnose_optimizer_twice },
	{ "activations-kept", "most of a nearly full GPU holds outputs for the backward pass",
		NEED_MEMORY, diagnose_activations_kept },
	{ "managed-memory", "the program needs more managed memory than the GPU has",
		NEED_ALLOCATIONS, diagnose_managed_memory },
	{ "other-process", "an allocation failed because something else uses the GPU's memory", 0,
		diagnose_other_process },
	{ "kernel-variability", "the same launch takes different times",
		NEED_TIMES | COSTS_GPU_TIME | SHORTENS_GPU_WORK, diagnose_kernel_variability },
	{ "forward-backward", "an unusual ratio of backward to forward time",
		NEED_TIMES | NEED_RANGES | CHECK_STEPS_TOO | COSTS_GPU_TIME | SHORTENS_GPU_WORK,
		diagnose_forward_backward },
	{ "event-wait", "the GPU is idle while launched work waits for an event of the trace",
		NEED_TIMES | NEED_LAUNCHES | COSTS_GPU_TIME, diagnose_event_wait },
	{ "unexplained-wait",
		"the GPU is idle while launched work waits, and the trace does not show for what",
		NEED_TIMES | NEED_LAUNCHES | COSTS_GPU_TIME, diagnose_unexplained_wait },
	{ "python-bound", "the busiest thread runs Python code outside of operators", NEED_SAMPLES,
		diagnose_python_bound },
	{ "garbage-collection", "Python's garbage collector takes CPU time", NEED_SAMPLES,
		diagnose_garbage_collection },
	{ "lock-wait", "a thread waits for Python's interpreter lock or a mutex", NEED_SAMPLES,
		diagnose_lock_wait },
	{ "oversubscribed-cores", "threads wait for a core", NEED_SAMPLES,
		diagnose_oversubscribed },
	{ "kernel-time", "the kernel takes CPU time: page faults, system calls", NEED_SAMPLES,
		diagnose_kernel_time },
	{ "profiler-cost", "overhead of the profiler", 0, diagnose_profiler_cost },
	{ "out-of-memory", "an allocation failed for want of memory", 0, diagnose_out_of_memory },
	{ .name = NULL },
};
static_assert(sizeof diagnose_rules / sizeof *diagnose_rules == DIAGNOSE_RULES + 1,
	"findings are kept by rule");

/* Returns what the trace lacks of `needs`, or NULL if it lacks nothing. */
static const char *missing_input(const struct diagnosis *diagnosis, unsigned needs)
{
	const struct diagnose_facts *facts = &diagnosis->facts;

	if ((needs & NEED_TIMES) && !facts->operations)
		return "the trace has no GPU work with timestamps";
	if ((needs & NEED_LAUNCHES) && !facts->launched)
		return "the trace has no launches of its GPU work";
	if ((needs & NEED_CALLS) && !facts->calls)
		return "the trace has no CUDA calls";
	if ((needs & NEED_MEMORY) && !diagnosis->profile->totals.has_tensors &&
		!diagnosis->profile->totals.reserved_peak)
		return "the trace has no device memory";
	if ((needs & NEED_ALLOCATIONS) && !diagnosis->profile->memory->level_count)
		return "the trace has no device memory";
	if ((needs & NEED_STEPS) &&
		(!diagnosis->process->steps || !diagnosis->process->steps->count))
		return NO_STEPS_FOUND;
	if ((needs & NEED_SAMPLES) && (!process_has_samples(diagnosis->process) ||
					      !diagnosis->profile->sampled_thread_count))
		return "the trace has no CPU samples (PPERF_SAMPLE=99)";
	if ((needs & NEED_RANGES) && !diagnosis->profile->totals.cpu_self_ns)
		return "the trace has no ranges or operators";
	return NULL;
}

/* Returns true if the cost of a finding is time of the GPUs, a part of their span. */
static bool costs_gpu_time(const struct finding *finding)
{
	return finding->diagnosis->facts.operations && finding->rule->needs & COSTS_GPU_TIME;
}

/* Returns the time that the cost of a finding is a share of: the span of the GPUs, or the duration
 * of the run on all GPUs. A cost that sums over several streams or threads may be longer. */
static uint64_t impact_base(const struct finding *finding)
{
	const struct diagnosis *diagnosis = finding->diagnosis;
	const struct timeline_device *devices;
	const uint64_t run_ns = diagnosis->facts.run_ns;
	const size_t count = timeline_devices(diagnosis->profile->timeline, &devices);

	if (finding->whole_ns)
		return finding->whole_ns;
	if (costs_gpu_time(finding))
		return diagnosis->facts.span_ns;
	return run_ns * (count ? count : 1);
}

/* Sets by how much less GPU work shortens the run: by what the rule has found (finding_set_gain),
 * and not by the host's part of the critical path. */
static void limit_gain(struct diagnosis *diagnosis, struct finding *finding)
{
	const struct run_bound *bound = diagnose_bound(diagnosis);
	const uint64_t most_ns = run_bound_gain_max(bound, finding->whole_ns);
	const size_t used = strlen(finding->evidence);
	const char *gain = "hardly at all";
	char host[64] = "";

	if (!bound->path_ns || !diagnosis->facts.operations)
		return;
	finding->gain_ns = min_u64(min_u64(finding->impact_ns, most_ns),
		finding->has_gain ? finding->gain_ns : UINT64_MAX);
	finding->has_gain = true;
	if (finding->gain_ns == finding->impact_ns)
		return;
	if (diagnose_is_share(finding->gain_ns, impact_base(finding), LIMIT_MINOR))
		gain = diagnose_time(diagnosis, finding->gain_ns);
	if (diagnose_is_share(bound->path_host_ns, bound->path_ns, LIMIT_MINOR))
		SET_TEXT(host, ", because the host has %s of the critical path",
			diagnose_share(diagnosis, bound->path_host_ns, bound->path_ns));
	finding_set_text(finding->evidence + used, sizeof finding->evidence - used,
		"; the run gets shorter %s%s%s%s", *gain == 'h' ? "" : "by at most ", gain,
		*gain == 'h' ? " without it" : "", host);
}

static void run_rule(struct diagnosis *diagnosis, struct finding *finding)
{
	const char *lacks = missing_input(diagnosis, finding->rule->needs);

	if (lacks)
		finding_set_unchecked(finding, lacks);
	else
		finding->rule->check(diagnosis, finding);
	/* What costs nothing is no finding. */
	if (finding->state == FINDING_FOUND && !finding->ends_run && !finding->impact_ns &&
		!finding->impact_bytes)
		finding->state = FINDING_NOTE;
	if (finding->state == FINDING_FOUND && finding->rule->needs & SHORTENS_GPU_WORK)
		limit_gain(diagnosis, finding);
}

/* Returns by how much a finding shortens the run at most. */
static uint64_t finding_gain(const struct finding *finding)
{
	return finding->has_gain ? finding->gain_ns : finding->impact_ns;
}

/* Returns the place of a finding in the list:
 *   0  the program ran out of memory, then why
 *   1  findings that cost 1 % of the run or more
 *   2  those of them that say nothing about the program: the cost of the profiler
 *   3  findings that cost bytes and no time
 *   4  notes
 *   5  findings that cost less than 1 % of the run
 *   6  rules that found nothing
 *   7  rules that were not checked */
static int finding_position(const struct finding *finding)
{
	static const int positions[] = {
		[FINDING_NOTE] = 4, [FINDING_CLEAR] = 6, [FINDING_UNCHECKED] = 7
	};

	if (finding->state != FINDING_FOUND)
		return positions[finding->state];
	if (finding->ends_run || finding->explains_end)
		return 0;
	if (!finding->impact_ns)
		return 3;
	if (!diagnose_is_share(finding_gain(finding), impact_base(finding), LIMIT_MINOR))
		return 5;
	return finding->last ? 2 : 1;
}

/* Orders by position, then by what can be gained, then by impact. Equal ones keep the order of the
 * table. */
static int by_state_and_impact(const void *a, const void *b)
{
	const struct finding *left = a, *right = b;

	if (finding_position(left) != finding_position(right))
		return finding_position(left) - finding_position(right);
	if (left->ends_run != right->ends_run)
		return left->ends_run ? -1 : 1;
	if (left->state == FINDING_FOUND && finding_gain(left) != finding_gain(right))
		return finding_gain(left) > finding_gain(right) ? -1 : 1;
	if (left->state == FINDING_FOUND && left->impact_ns != right->impact_ns)
		return left->impact_ns > right->impact_ns ? -1 : 1;
	if (left->state == FINDING_FOUND && left->impact_bytes != right->impact_bytes)
		return left->impact_bytes > right->impact_bytes ? -1 : 1;
	return COMPARE(left->rule, right->rule);
}

/* Appends the path of `node` as a word that --focus and `distribution` take. */
static void add_node_path(
	struct shell_command *command, const struct diagnosis *diagnosis, uint32_t node)
{
	const struct tree *tree = diagnosis->profile->tree;
	const size_t depth = tree->nodes[node].depth + 1u;
	uint32_t *nodes = xcalloc(depth * sizeof *nodes);
	struct trace_text *path = xcalloc(depth * sizeof *path);

	for (size_t i = depth; i-- && node; node = tree->nodes[node].parent)
		nodes[i] = node;
	for (size_t i = 0; i < depth; i++) {
		const struct string_view name = string_table_get(
			diagnosis->process->texts, tree->nodes[nodes[i]].name);

		path[i] = (struct trace_text){ name.bytes, name.length, true };
	}
	next_command_add_path(command, path, depth);
	free(nodes);
	free(path);
}

/* Appends the options that select data, since they decide what the figures are. */
static void add_selection(struct shell_command *command, const struct options *options)
{
	static const char *const forms[] = {
#define X(form, text) text,
		DEMANGLE_FORMS(X)
#undef X
	};

	next_command_add_files(command, options);
	if (options->all)
		text_add(&command->built, " --all");
	if (options->device >= 0)
		text_add(&command->built, " --device %lld", (long long)options->device);
	if (options->steps)
		text_add(&command->built, " --steps %llu-%llu",
			(unsigned long long)options->first_step,
			(unsigned long long)options->last_step);
	if (options->demangle != DEMANGLE_SHORT)
		text_add(&command->built, " --demangle %s", forms[options->demangle]);
}

static void set_command_cell(const struct diagnosis *diagnosis, struct computed_row *computed,
	const struct finding *finding)
{
	struct shell_command command = { .ascii = diagnosis->options->style.ascii };

	next_command_begin(&command, finding->view);
	if (finding->at_path && finding->node)
		add_node_path(&command, diagnosis, finding->node);
	add_selection(&command, diagnosis->options);
	computed_row_set_text(computed, "command", command.built.text, command.built.used);
	free(command.built.text);
}

static const char *finding_state_name(enum finding_state state)
{
	static const char *const kinds[] = { [FINDING_CLEAR] = "clear",
		[FINDING_UNCHECKED] = "not checked",
		[FINDING_NOTE] = "note",
		[FINDING_FOUND] = "finding" };

	return kinds[state];
}

static const char *confidence_name(enum finding_confidence confidence)
{
	static const char *const names[] = { "low", "medium", "high" };

	return names[confidence];
}

static void add_finding_row(
	struct process *process, struct rows *rows, const struct finding *finding)
{
	struct computed_row *computed = computed_row_new(
		process, finding->node, finding_state_name(finding->state));

	computed->row.tree = finding->diagnosis->profile->tree;
	computed->launch_stack = finding->stack;
	computed->is_second_place = finding->is_second_place;
	computed->is_duplicate = finding->is_duplicate;
	computed_row_set_name(computed, finding->rule->name, strlen(finding->rule->name));
	if (*finding->reason && finding->state != FINDING_CLEAR)
		computed_row_set_string(computed, "why", finding->reason);
	if (finding->state >= FINDING_NOTE) {
		computed_row_set_string(computed, "finding", finding->sentence);
		computed_row_set_string(computed, "evidence", finding->evidence);
		computed_row_set_string(computed, "next", finding->next);
		computed_row_set_string(
			computed, "confidence", confidence_name(finding->confidence));
		computed_row_set_unsigned(computed, "count", finding->count);
		set_command_cell(finding->diagnosis, computed, finding);
	}
	if (finding->impact_ns) {
		computed_row_set_unsigned(computed, "impact_ns", finding->impact_ns);
		computed_row_set_share(computed, "impact_share",
			min_u64(finding->impact_ns, impact_base(finding)), impact_base(finding));
		computed_row_set_string(computed, "impact_of",
			finding->whole_name       ? finding->whole_name
			: costs_gpu_time(finding) ? "the GPU span"
						  : "the run");
	}
	if (finding->impact_bytes)
		computed_row_set_unsigned(computed, "impact_bytes", finding->impact_bytes);
	if (finding->state != FINDING_CLEAR && (finding->impact_ns || finding->impact_bytes))
		computed_row_set_string(computed, "bound",
			finding->concerned     ? "concerned"
			: finding->together    ? "upper bound together"
			: finding->upper_bound ? "upper bound"
					       : "measured");
	if (finding->places_ns) {
		computed_row_set_share(computed, "share", finding->place_ns, finding->places_ns);
		computed_row_set_unsigned(computed, "share_of_ns", finding->places_ns);
		if (finding->places_name)
			computed_row_set_string(computed, "share_of", finding->places_name);
	}
	if (finding->has_gain) {
		computed_row_set_unsigned(computed, "gain_ns", finding->gain_ns);
		computed_row_set_share(computed, "gain_share",
			min_u64(finding->gain_ns, impact_base(finding)), impact_base(finding));
	}
	if (*finding->same_idle_as)
		computed_row_set_string(computed, "same_idle_as", finding->same_idle_as);
	if (finding->has_example && finding->state == FINDING_FOUND)
		computed_row_set_unsigned(computed, "start_ns", finding->example_ns);
	rows_add(rows, &computed->row);
}

static bool has_steps(const struct process *process)
{
	return process->steps && process->steps->count;
}

void diagnose_read_in(const struct options *options, struct shared_pass *pass)
{
	if (!pass->process->timeline)
		return;
	host_events_keep_in(pass);
	if (run_bound_needs_launches(pass->process, pass->process->timeline))
		activities_keep_in(pass);
	else
		activities_keep_without_launches_in(pass);
	roofline_read_in(options, pass);
	memory_waste_try_in(pass);
	if (has_steps(pass->process))
		step_table_read_in(pass);
}

/* Reads what most rules need in one pass over the trace, unless it is read. What is left out is
 * read when a rule needs it. */
static void read_in_one_pass(struct diagnosis *diagnosis, bool with_memory)
{
	struct process *process = diagnosis->process;
	struct shared_pass pass = { .process = process };
	const struct memory_level *level = diagnose_tensor_level(diagnosis);

	host_events_keep_in(&pass);
	if (run_bound_needs_launches(process, process->profile->timeline))
		activities_keep_in(&pass);
	else
		activities_keep_without_launches_in(&pass);
	if (with_memory) {
		roofline_read_in(diagnosis->options, &pass);
		if (level && level->pool.peak)
			memory_waste_read_in(&pass);
		if (has_steps(process))
			step_table_read_in(&pass);
		if (memory_leaks_possible(process))
			memory_lifetimes_read_in(&pass);
	}
	shared_pass_run(&pass);
}

/* `with_memory`: rules about memory and rooflines will be evaluated. */
static struct diagnosis *diagnosis_new(const struct options *options, struct processes *processes,
	struct process *process, bool with_memory)
{
	struct diagnosis *diagnosis = xcalloc(sizeof *diagnosis);

	diagnosis->options = options;
	diagnosis->processes = processes;
	diagnosis->process = process;
	diagnosis->profile = process->profile;
	read_in_one_pass(diagnosis, with_memory);
	diagnose_facts_read(diagnosis);
	return diagnosis;
}

static void diagnosis_free(struct diagnosis *diagnosis)
{
	run_bound_free(&diagnosis->bound);
	diagnose_facts_free(diagnosis);
	free(diagnosis);
}

/* Returns true if steady-state steps are a small part of the run and have to be checked on their
 * own. `options` then selects them. */
static bool has_small_steps(const struct diagnosis *diagnosis, struct options *options)
{
	const struct steps *steps = diagnosis->process->steps;
	const struct diagnose_facts *facts = &diagnosis->facts;
	size_t count = 0;

	if (!facts->has_steps || !facts->operations || options->steps ||
		diagnosis->process->windows ||
		diagnose_is_share(facts->steady_ns, facts->whole_ns, LIMIT_STEPS_SMALL))
		return false;
	for (size_t i = 0; i < steps->count; i++)
		if (steps->steps[i].kind == STEP_USUAL) {
			options->first_step = count++ ? options->first_step
						      : steps->steps[i].number;
			options->last_step = steps->steps[i].number;
		}
	options->steps = true;
	return count >= LIMIT_CALLS_FEW;
}

/* Evaluates a rule again on the steady-state steps, and replaces its finding if they show more. */
static void recheck_rule(struct diagnosis *of_steps, struct finding *finding)
{
	struct finding again = { .rule = finding->rule, .diagnosis = of_steps };
	char sentence[sizeof again.sentence];

	run_rule(of_steps, &again);
	if (again.state < FINDING_NOTE || again.state <= finding->state)
		return;
	SET_TEXT(sentence, "%s", again.sentence);
	SET_TEXT(again.sentence, "In steps %llu to %llu: %s",
		(unsigned long long)of_steps->options->first_step,
		(unsigned long long)of_steps->options->last_step, sentence);
	*finding = again;
}

/* Evaluates rules on the steady-state steps. `part` becomes a copy of the process with a profile of
 * these steps. That profile belongs to the process. Returns a diagnosis to be freed. */
static struct diagnosis *check_steps(const struct diagnosis *whole, const struct options *options,
	struct process *part, struct finding *findings)
{
	struct profile_options wanted = whole->profile->options;
	struct diagnosis *of_steps;

	wanted.steps = true;
	wanted.first_step = options->first_step;
	wanted.last_step = options->last_step;
	whole->process->usual_steps_profile = profile_build(
		whole->process->reader, whole->process->texts, &wanted);
	*part = *whole->process;
	part->profile = whole->process->usual_steps_profile;
	part->attachments = NULL;
	of_steps = diagnosis_new(options, whole->processes, part, false);
	for (size_t i = 0; i < DIAGNOSE_RULES; i++)
		if (findings[i].rule->needs & CHECK_STEPS_TOO && findings[i].state < FINDING_FOUND)
			recheck_rule(of_steps, &findings[i]);
	process_detach_all(part);
	return of_steps;
}

/* Drops the findings beyond --top from the rows from `first` on. */
static void hide_beyond_top(const struct options *options, struct rows *rows, size_t first)
{
	size_t kept = first;
	uint32_t found = 0;

	for (size_t i = first; i < rows->count && options->top; i++) {
		const struct row *row = &rows->rows[i];

		if (computed_row_is(row, "kind", finding_state_name(FINDING_FOUND)) &&
			found++ >= options->top)
			rows->hidden_by_top++;
		else
			rows->rows[kept++] = *row;
	}
	rows->count = options->top ? kept : rows->count;
}

static void add_class_row(
	struct process *process, struct rows *rows, const struct run_bound *bound, enum bound class)
{
	struct computed_row *computed = computed_row_new(process, 0, "class");

	computed_row_set_name(computed, bound_name(class), strlen(bound_name(class)));
	computed_row_set_unsigned(computed, "impact_ns", bound->ns[class]);
	computed_row_set_share(computed, "share", bound->ns[class], bound->whole_ns);
	rows_add(rows, &computed->row);
}

/* The rules that find a class of the verdict. Of two rules, that of the larger one of two classes
 * that are judged together. */
static const struct class_rule {
	enum bound class;
	void (*check)(struct diagnosis *diagnosis, struct finding *finding);
} class_rules[] = { { BOUND_LAUNCH, diagnose_launch_bound }, { BOUND_HOST, diagnose_host_bound },
	{ BOUND_COMMUNICATION, diagnose_exposed_communication },
	{ BOUND_COPIES, diagnose_exposed_copies }, { BOUND_DATA, diagnose_data_loading },
	{ BOUND_COMPILATION, diagnose_compilation }, { BOUND_FIRST, diagnose_cold_start },
	{ BOUND_ALLOCATION, diagnose_steady_allocation }, { BOUND_SYNC, diagnose_synchronisation },
	{ BOUND_EVENT, diagnose_event_wait }, { BOUND_UNEXPLAINED, diagnose_unexplained_wait } };

static struct finding *finding_of_class(struct finding *findings, enum bound class)
{
	for (size_t i = 0; i < sizeof class_rules / sizeof *class_rules; i++)
		for (size_t at = 0; class_rules[i].class == class && at < DIAGNOSE_RULES; at++)
			if (findings[at].rule->check == class_rules[i].check)
				return &findings[at];
	return NULL;
}

#define ANY_SHARE 1001u /* thousandths */

/* Sets what waits of launched work have of the critical path, where the GPU is hardly idle in them:
 * it ran work of other streams. */
static void note_path_waits(
	const struct run_bound *bound, struct finding *finding, enum path_kind kind)
{
	if (finding && finding->state == FINDING_CLEAR &&
		bound->path_of_kind[kind] > finding->impact_ns)
		finding_set_small(finding, bound->path_of_kind[kind], ANY_SHARE, bound->path_ns,
			PATH_TIME_NAME);
}

/* Sets what a class costs that the verdict lists, and whose rule found nothing. Where there is too
 * little GPU work for a verdict, a class that would have been the verdict is not small. */
static void note_small_classes(struct diagnosis *diagnosis, struct finding *findings)
{
	const struct run_bound *bound = diagnose_bound(diagnosis);

	for (enum bound class = BOUND_COMPUTE; class < BOUND_CLASSES; class ++) {
		struct finding *finding = finding_of_class(findings, class);
		const enum bound partner = run_bound_partner(class);
		const struct finding *other = finding_of_class(findings, partner);

		if (!finding || finding->state != FINDING_CLEAR || *finding->same_idle_as ||
			(bound->bound == BOUND_UNJUDGED &&
				run_bound_is_percent(run_bound_ns(bound, class), bound->whole_ns,
					BOUND_SHARE_MIN)) ||
			(other && (other->state != FINDING_CLEAR ||
					  bound->ns[partner] > bound->ns[class])))
			continue;
		finding_set_small(finding, run_bound_ns(bound, class), ANY_SHARE, bound->whole_ns,
			run_bound_time_name(bound));
	}
	note_path_waits(bound, finding_of_class(findings, BOUND_EVENT), PATH_EVENT);
	note_path_waits(bound, finding_of_class(findings, BOUND_UNEXPLAINED), PATH_UNEXPLAINED);
}

/* Returns the smallest gain of a finding that is 1 % of the run or more. */
static uint64_t least_gain(const struct finding *findings)
{
	uint64_t least_ns = UINT64_MAX;

	for (size_t i = 0; i < DIAGNOSE_RULES; i++)
		if (findings[i].state == FINDING_FOUND && finding_position(&findings[i]) == 1)
			least_ns = min_u64(least_ns, finding_gain(&findings[i]));
	return least_ns;
}

/* Reports classes that are below the thresholds of their rules, but cost more than a finding
 * that is reported: the list would hide the larger loss. After note_small_classes(). */
static void report_larger_classes(struct diagnosis *diagnosis, struct finding *findings)
{
	const uint64_t least_ns = least_gain(findings);

	diagnosis->reports_small = true;
	for (size_t i = 0; i < DIAGNOSE_RULES; i++) {
		struct finding again = { .rule = findings[i].rule, .diagnosis = diagnosis };

		if (findings[i].state != FINDING_CLEAR || findings[i].impact_ns <= least_ns ||
			!diagnose_is_share(
				findings[i].impact_ns, impact_base(&findings[i]), LIMIT_MINOR))
			continue;
		run_rule(diagnosis, &again);
		if (again.state == FINDING_FOUND)
			findings[i] = again;
	}
	diagnosis->reports_small = false;
}

/* Returns the finding about a class, or about the one that is judged together with it. NULL:
 * nothing was found. */
static const struct finding *found_of_class(struct finding *findings, enum bound class)
{
	const struct finding *own = class < BOUND_CLASSES ? finding_of_class(findings, class)
							  : NULL;

	if ((!own || own->state != FINDING_FOUND) && class < BOUND_CLASSES)
		own = finding_of_class(findings, run_bound_partner(class));
	return own && own->state == FINDING_FOUND ? own : NULL;
}

/* Says of findings about idle time that another finding has the same time. Both rules look at it
 * from another side: impacts are no sum. */
static void note_same_idle_time(struct diagnosis *diagnosis, struct finding *findings)
{
	for (size_t i = 0; i < DIAGNOSE_RULES; i++) {
		struct finding *finding = &findings[i];
		const struct finding *other = found_of_class(
			findings, (enum bound)finding->idle_of);
		const size_t used = strlen(finding->sentence);

		if (finding->state != FINDING_FOUND || !finding->idle_of_ns || !other)
			continue;
		SET_TEXT(finding->same_idle_as, "%s", other->rule->name);
		finding->is_duplicate = run_bound_is_percent(
			finding->idle_of_ns, finding->impact_ns, 95);
		if (finding->is_duplicate)
			finding_set_text(finding->sentence + used, sizeof finding->sentence - used,
				" This is the same idle time as in the finding %s.",
				other->rule->name);
		else
			finding_set_text(finding->sentence + used, sizeof finding->sentence - used,
				" %s of it is the same idle time as in the finding %s.",
				diagnose_time(diagnosis, finding->idle_of_ns), other->rule->name);
	}
}

/* Adds to the texts of findings which other finding they refer to, if it is printed with its
 * texts. */
static void add_references(struct finding *findings)
{
	for (size_t i = 0; i < DIAGNOSE_RULES; i++)
		for (size_t other = 0; findings[i].see && other < DIAGNOSE_RULES; other++) {
			const size_t used = strlen(findings[i].sentence);

			if (findings[other].state == FINDING_FOUND &&
				!strcmp(findings[other].rule->name, findings[i].see))
				finding_set_text(findings[i].sentence + used,
					sizeof findings[i].sentence - used, " See the finding %s.",
					findings[i].see);
		}
}

/* Says of a rule that found nothing that another has reported its class, because two classes that
 * are judged together have one finding: host-bound time is in launch-bound, or the reverse. Of
 * waits: if there are any of that class. */
static void note_reported_elsewhere(struct diagnosis *diagnosis, struct finding *findings)
{
	const struct run_bound *bound = diagnose_bound(diagnosis);

	for (enum bound class = BOUND_COMPUTE; class < BOUND_CLASSES; class ++) {
		struct finding *own = finding_of_class(findings, class);
		const struct finding *other = finding_of_class(findings, run_bound_partner(class));

		if (own && other && own->state == FINDING_CLEAR && other->state == FINDING_FOUND &&
			(bound->ns[class] || class == BOUND_LAUNCH || class == BOUND_HOST))
			SET_TEXT(own->same_idle_as, "%s", other->rule->name);
	}
}

/* Returns the first finding of the list if it gains 1 % of the run or more. */
static const struct finding *finding_to_begin_with(const struct finding *findings)
{
	for (size_t i = 0; i < DIAGNOSE_RULES; i++)
		if (findings[i].state == FINDING_FOUND && finding_position(&findings[i]) == 1)
			return &findings[i];
	return NULL;
}

/* Adds the row that says what bounds the run, and a row for each class of its time. */
static void add_bound_rows(struct diagnosis *diagnosis, struct finding *findings, struct rows *rows)
{
	const struct run_bound *bound = diagnose_bound(diagnosis);
	struct computed_row *computed = computed_row_new(diagnosis->process, 0, "verdict");
	struct finding text = { .rule = NULL, .diagnosis = diagnosis };

	run_bound_explain(diagnosis, bound, finding_to_begin_with(findings),
		found_of_class(findings, bound->bound), &text);
	computed_row_set_name(computed, bound_name(bound->bound), strlen(bound_name(bound->bound)));
	computed_row_set_string(computed, "finding", text.sentence);
	computed_row_set_string(computed, "evidence", text.evidence);
	computed_row_set_string(computed, "why", text.reason);
	if (*text.next)
		computed_row_set_string(computed, "next", text.next);
	computed_row_set_string(computed, "confidence", confidence_name(bound->confidence));
	computed_row_set_unsigned(computed, "count", bound->operations);
	set_command_cell(diagnosis, computed, &text);
	rows_add(rows, &computed->row);
	for (enum bound class = BOUND_COMPUTE; class < BOUND_CLASSES; class ++)
		if (bound->ns[class])
			add_class_row(diagnosis->process, rows, bound, class);
}

static void add_all_rows(const struct options *options, struct processes *processes,
	struct process *process, struct rows *rows)
{
	struct diagnosis *const whole = diagnosis_new(options, processes, process, true),
				*of_steps = NULL;
	struct finding *findings = xcalloc(DIAGNOSE_RULES * sizeof *findings);
	struct options narrowed = *options;
	struct process part;

	for (size_t i = 0; i < DIAGNOSE_RULES; i++) {
		findings[i].rule = &diagnose_rules[i];
		findings[i].diagnosis = whole;
		run_rule(whole, &findings[i]);
	}
	if (has_small_steps(whole, &narrowed))
		of_steps = check_steps(whole, &narrowed, &part, findings);
	if (whole->facts.operations) {
		note_small_classes(whole, findings);
		report_larger_classes(whole, findings);
	}
	note_same_idle_time(whole, findings);
	note_reported_elsewhere(whole, findings);
	add_references(findings);
	qsort(findings, DIAGNOSE_RULES, sizeof *findings, by_state_and_impact);
	if (whole->facts.operations)
		add_bound_rows(whole, findings, rows);
	for (size_t i = 0; i < DIAGNOSE_RULES; i++)
		add_finding_row(process, rows, &findings[i]);
	if (of_steps)
		diagnosis_free(of_steps);
	diagnosis_free(whole);
	free(findings);
}

/* The rows are kept of a trace that is alone: rules look at other ranks, too. */
static void diagnose_process(const struct options *options, struct processes *processes,
	struct process *process, struct rows *rows)
{
	const size_t first = rows->count;
	struct kept_rows kept = { .found = false };

	if (processes->count == 1)
		kept = kept_rows_begin(options, process, rows, "diagnose", false, NULL);
	if (!kept.found)
		add_all_rows(options, processes, process, rows);
	if (!kept.found && processes->count == 1)
		kept_rows_end(&kept);
	hide_beyond_top(options, rows, first);
}

void arrange_diagnose(const struct options *options, struct processes *processes, struct rows *rows)
{
	for (size_t i = 0; i < processes->shown; i++)
		diagnose_process(options, processes, &processes->all[i], rows);
}
