/* SPDX-License-Identifier: MIT
 *
 * Rules about the first steps, compilers and the cost of profiling.
 */
#include "report/gpu/work_categories.h"
#include "report/diagnose/diagnosis_internal.h"
#include "report/base/alloc.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void diagnose_cold_start(struct diagnosis *diagnosis, struct finding *finding)
{
	const struct steps *steps = diagnosis->process->steps;
	uint64_t extra = 0, longest = 0;

	if (steps->count < 3) {
		finding_set_unchecked(
			finding, "at least three steps are needed to detect slow first steps");
		return;
	}
	for (size_t i = 0; i < steps->count; i++) {
		const uint64_t took = steps->steps[i].end_ns - steps->steps[i].begin_ns;

		if (steps->steps[i].kind != STEP_WARM_UP)
			continue;
		extra += took > steps->p50_ns ? took - steps->p50_ns : 0;
		if (took > longest) {
			longest = took;
			finding->example_ns = steps->steps[i].begin_ns;
		}
	}
	if (!steps->warm_up || !extra)
		return;
	finding_set_found(finding, steps_usual(steps) >= 3 ? CONFIDENCE_HIGH : CONFIDENCE_MEDIUM);
	SET_TEXT(finding->reason, "compared with %zu steady-state steps; steps found by %s",
		steps_usual(steps),
		steps->evidence[0]
			? diagnose_escaped(diagnosis, steps->evidence, strlen(steps->evidence))
			: "repetition");
	SET_TEXT(finding->sentence,
		"The first %s much slower than later ones: they take %s more than %zu steady-state "
		"step%s.",
		steps->warm_up == 1 ? "step is" : "steps are", diagnose_time(diagnosis, extra),
		steps->warm_up, steps->warm_up == 1 ? "" : "s");
	SET_TEXT(finding->evidence, "%zu of %zu steps, the longest %s; a steady-state step %s",
		steps->warm_up, steps->count, diagnose_time(diagnosis, longest),
		diagnose_time(diagnosis, steps->p50_ns));
	SET_TEXT(finding->next,
		"Leave these steps out of measurements (warm-up in a schedule). To shorten them: "
		"warm up with the real shapes before serving, keep compiler caches, set "
		"CUDA_MODULE_LOADING=EAGER if the first call of each kernel is slow.");
	SET_TEXT(finding->view, "steps");
	finding->count = steps->warm_up;
	finding->impact_ns = extra;
	finding->has_example = true;
}

static bool range_name_matches(
	const struct diagnosis *diagnosis, uint32_t node, const char *pattern)
{
	const struct string_view name = string_table_get(
		diagnosis->process->texts, diagnosis->profile->tree->nodes[node].name);

	return node_kind_class(diagnosis->profile->tree->nodes[node].kind) == NODE_RANGES &&
	       category_matches(pattern, name.bytes, name.length);
}

/* The cost of calling compiled code, beside the code itself. */
struct compile_cost {
	uint64_t lookup_ns, wrapper_ns, region_ns, calls, lookups, most_ns;
	uint32_t node;
};

static struct compile_cost compile_cost_of(const struct diagnosis *diagnosis)
{
	const struct tree *tree = diagnosis->profile->tree;
	struct compile_cost compiled = { .node = 0 };

	for (uint32_t id = 1; id < tree->count; id++) {
		const struct node *node = &tree->nodes[id];
		uint64_t tax = 0;

		if (range_name_matches(diagnosis, id, "TorchDynamo Cache Lookup*")) {
			compiled.lookup_ns += tax = node->total_ns;
			compiled.lookups += node->calls;
		} else if (range_name_matches(diagnosis, id, "AOTDispatcher Runtime Wrapper*") ||
			   range_name_matches(diagnosis, id, "Pregraph bytecode*")) {
			compiled.wrapper_ns += tax = node->self_ns;
		} else if (range_name_matches(diagnosis, id, "Torch-Compiled Region*")) {
			compiled.wrapper_ns += tax = node->self_ns;
			compiled.region_ns += node->total_ns;
			compiled.calls += node->calls;
		}
		if (tax > compiled.most_ns) {
			compiled.most_ns = tax;
			compiled.node = id;
		}
	}
	return compiled;
}

void diagnose_compile_tax(struct diagnosis *diagnosis, struct finding *finding)
{
	const struct compile_cost compiled = compile_cost_of(diagnosis);
	const uint64_t tax = compiled.lookup_ns + compiled.wrapper_ns,
		       calls = compiled.calls > compiled.lookups ? compiled.calls
								 : compiled.lookups,
		       wall = diagnosis->profile->totals.wall_ns;
	/* Time of the host costs nothing while the GPU has enough to do. */
	const bool hidden = diagnose_is_share(
		diagnosis->facts.busy_ns, diagnosis->facts.span_ns, LIMIT_BUSY);

	if (!calls ||
		!diagnose_is_share(
			tax, compiled.region_ns + compiled.lookup_ns, LIMIT_COMPILE_SHARE) ||
		!diagnose_is_share(tax, wall, LIMIT_LITTLE))
		return;
	finding->state = hidden ? FINDING_NOTE : FINDING_FOUND;
	finding->confidence = diagnose_is_share(diagnosis->facts.idle_ns, diagnosis->facts.span_ns,
				      LIMIT_LAUNCH_IDLE)
				      ? CONFIDENCE_HIGH
				      : CONFIDENCE_MEDIUM;
	SET_TEXT(finding->reason,
		hidden ? "measured on the host; the GPU is busy meanwhile, which hides the overhead"
		: finding->confidence == CONFIDENCE_HIGH
			? "measured on the host; the GPU waits meanwhile"
			: "measured on the host; GPU work may hide part of it");
	SET_TEXT(finding->sentence,
		"Each call of a compiled function spends %s before its kernels, on guards, "
		"wrappers and bytecode around the graph.",
		diagnose_time(diagnosis, tax / calls));
	SET_TEXT(finding->evidence,
		"%s, %s outside the graphs themselves (cache lookups %s, wrappers %s) of %s in "
		"compiled regions",
		diagnose_plural(diagnosis, calls, "call"), diagnose_time(diagnosis, tax),
		diagnose_time(diagnosis, compiled.lookup_ns),
		diagnose_time(diagnosis, compiled.wrapper_ns),
		diagnose_time(diagnosis, compiled.region_ns));
	SET_TEXT(finding->next,
		"Compile larger regions (fullgraph=True, no graph breaks, the whole "
		"step), mode=\"reduce-overhead\", fewer guards "
		"(torch.compiler.set_stance, fixed attributes instead of globals).");
	SET_TEXT(finding->view, "tree -m cpu --focus");
	finding->at_path = true;
	finding_set_impact(finding, compiled.node, calls, tax);
}

static bool is_compiling(const struct diagnosis *diagnosis, uint32_t node)
{
	static const char *const patterns[] = { "*compile_inner*", "*_compile.compile*",
		"*dynamo_timed*", "*compile_fx*", "*create_aot_dispatcher*",
		"*aot_module_simplified*", NULL };

	for (const char *const *pattern = patterns; *pattern; pattern++)
		if (range_name_matches(diagnosis, node, *pattern))
			return true;
	return false;
}

struct recompilations {
	uint64_t total_ns, count, versions, longest_ns, longest_at_ns;
	uint32_t node;
};

/* Marks the outermost nodes in which the compiler ran, in `compiling` by node. Returns their
 * number. */
static uint32_t find_compiling(const struct diagnosis *diagnosis, uint8_t *compiling)
{
	const struct tree *tree = diagnosis->profile->tree;
	uint32_t count = 0;

	for (uint32_t id = 1; id < tree->count; id++) {
		uint32_t around = tree->nodes[id].parent;

		if (!is_compiling(diagnosis, id))
			continue;
		while (around && !is_compiling(diagnosis, around))
			around = tree->nodes[around].parent;
		compiling[id] = !around;
		count += !around;
	}
	return count;
}

static void find_versions(const struct diagnosis *diagnosis, struct recompilations *recompiled)
{
	const struct tree *tree = diagnosis->profile->tree;

	for (uint32_t id = 1; id < tree->count; id++) {
		const struct string_view name = string_table_get(
			diagnosis->process->texts, tree->nodes[id].name);

		/* The version is the last number: the labels `0/1` and `0/2` share one name that
		 * ends in `*`. */
		if (!range_name_matches(diagnosis, id, "Torch-Compiled Region*") ||
			name.bytes[name.length - 1] != '*' || tree->nodes[id].labels < 2)
			continue;
		recompiled->versions += tree->nodes[id].labels - 1;
		recompiled->node = recompiled->node ? recompiled->node : id;
	}
}

struct compiler_search {
	const struct diagnosis *diagnosis;
	struct recompilations *found;
	uint8_t *compiling, *seen; /* by node; seen: had an instance before */
};

static bool is_in_usual_step(const struct steps *steps, uint64_t at_ns)
{
	const struct step *step = steps_step_at(steps, at_ns);

	return step && step->kind == STEP_USUAL;
}

/* Counts an instance of the compiler in a steady-state step. Without steps, every instance but the
 * first of a node counts. */
static void check_instance(void *context, const struct observed_instance *instance)
{
	struct compiler_search *search = context;
	const struct diagnosis *diagnosis = search->diagnosis;
	const uint64_t took = instance->end_ns - instance->begin_ns;
	bool again;

	if (instance->node >= diagnosis->profile->tree->count || !search->compiling[instance->node])
		return;
	again = search->seen[instance->node];
	search->seen[instance->node] = 1;
	if (diagnosis->facts.has_steps)
		again = is_in_usual_step(diagnosis->process->steps, instance->begin_ns);
	if (!again)
		return;
	search->found->count++;
	search->found->total_ns += took;
	if (took < search->found->longest_ns)
		return;
	search->found->longest_ns = took;
	search->found->longest_at_ns = instance->begin_ns;
	search->found->node = instance->node;
}

/* Checks when each instance ran, in one more pass. A node does not show it: steps that are ranges
 * of the program are one node, warm-up included. */
static void find_recompilations(
	const struct diagnosis *diagnosis, struct recompilations *recompiled)
{
	struct compiler_search search = { .diagnosis = diagnosis,
		.found = recompiled,
		.compiling = xcalloc(diagnosis->profile->tree->count),
		.seen = xcalloc(diagnosis->profile->tree->count) };
	const struct profile_observer observer = { .context = &search, .closed = check_instance };
	const struct profile_options options = profile_options_for_observer(
		diagnosis->profile, &observer);

	if (find_compiling(diagnosis, search.compiling))
		profile_free(profile_build(
			diagnosis->process->reader, diagnosis->process->texts, &options));
	free(search.compiling);
	free(search.seen);
}

void diagnose_recompilation(struct diagnosis *diagnosis, struct finding *finding)
{
	struct recompilations recompiled = { .node = 0 };

	find_versions(diagnosis, &recompiled);
	find_recompilations(diagnosis, &recompiled);
	if (!recompiled.count && !recompiled.versions)
		return;
	finding_set_found(finding, recompiled.count && diagnosis->facts.has_steps
					   ? CONFIDENCE_HIGH
					   : CONFIDENCE_MEDIUM);
	SET_TEXT(finding->reason,
		finding->confidence == CONFIDENCE_HIGH ? "the compiler ran in steady-state steps"
		: recompiled.count
			? "no steps were found: each compilation except the first of a node counts"
			: "several versions of a function were called; the trace does not show "
			  "when they were compiled");
	SET_TEXT(finding->sentence, "torch.compile recompiles while the program runs%s.",
		recompiled.versions ? ", or switches between versions of one function" : "");
	SET_TEXT(finding->evidence, "%s, in %s, the longest %s; %s of compiled functions",
		diagnose_plural(diagnosis, recompiled.count, "compilation"),
		diagnose_time(diagnosis, recompiled.total_ns),
		diagnose_time(diagnosis, recompiled.longest_ns),
		diagnose_plural(diagnosis, recompiled.versions, "additional version"));
	SET_TEXT(finding->next,
		"TORCH_LOGS=recompiles shows which guard failed: mark changing sizes "
		"(torch._dynamo.mark_dynamic, dynamic=True), pad to a few sizes, keep changing "
		"Python numbers and flags out of compiled functions.");
	SET_TEXT(finding->view, "tree -m cpu --focus");
	finding->at_path = true;
	finding->node = recompiled.node;
	finding->count = recompiled.count + recompiled.versions;
	finding->impact_ns = recompiled.total_ns;
	finding->upper_bound = !diagnosis->facts.has_steps;
	finding->has_example = recompiled.count > 0;
	finding->example_ns = recompiled.longest_at_ns;
}

void diagnose_profiler_cost(struct diagnosis *diagnosis, struct finding *finding)
{
	const struct profile_totals *totals = &diagnosis->profile->totals;
	const bool imported = process_meta(diagnosis->process, "import.format").known;
	uint64_t event_ns;
	const uint64_t recording = process_recording_ns(diagnosis->process, &event_ns),
		       cost = totals->self_ns + totals->overhead_ns + recording,
		       /* All cover the whole run, even if only some steps are examined. */
		run = reader_duration_ns(diagnosis->process->reader);

	if (imported && !diagnosis->profile->counts.overhead_records) {
		finding_set_unchecked(
			finding, "the file does not record the overhead of profiling");
		return;
	}
	if (!diagnose_is_share(cost, run, LIMIT_COST))
		return;
	finding_set_found(finding, imported ? CONFIDENCE_MEDIUM : CONFIDENCE_HIGH);
	SET_TEXT(finding->reason,
		imported ? "as reported by the profiler; the cost of Python stacks and shapes on "
			   "the host is not included"
			 : "the profiler's own measurement, the sum over all threads; recording is "
			   "estimated");
	SET_TEXT(finding->sentence,
		"Profiling took %s of the run's time: host figures and idle times are larger than "
		"without it.",
		diagnose_share(diagnosis, cost, run));
	SET_TEXT(finding->evidence, "%s of CUPTI in %s%s%s%s%s, of %s",
		diagnose_time(diagnosis, totals->overhead_ns),
		diagnose_plural(diagnosis, diagnosis->profile->counts.overhead_records, "record"),
		imported ? "" : ", in pperf's own code ",
		imported ? "" : diagnose_time(diagnosis, totals->self_ns),
		recording ? ", recording events about " : "",
		recording ? diagnose_time(diagnosis, recording) : "",
		diagnose_time(diagnosis, run));
	SET_TEXT(finding->next,
		imported ? "Skip the first steps of the profile (schedule with warm-up), and "
			   "record without with_stack and record_shapes for comparison."
			 : "Record less for comparison: PPERF_OPS=totals, no call stacks, only "
			   "some steps (PPERF_SCHEDULE).");
	SET_TEXT(finding->view, "info");
	finding->count = diagnosis->profile->counts.overhead_records;
	finding->impact_ns = cost;
	finding->upper_bound = true;
}
