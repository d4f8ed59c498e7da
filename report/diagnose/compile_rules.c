/* SPDX-License-Identifier: MIT
 *
 * Rules about torch.compile: the overhead of calling compiled code, first compilations, and
 * recompilations.
 *
 * What the compiler does is ranges. The library records each compilation as
 * `torch.compile FUNCTION, frame 0, version 1`, where PyTorch's compile id is 0/1
 * (preload/torch/compile.h). Below it, and in traces of torch.profiler, are PyTorch's own ranges of
 * the compiler's phases (`(dynamo_timed)`). Only the outermost of these ranges are looked at. Their
 * time is the union over the threads, because the compiler has threads of its own.
 */
#include "report/analysis/host_ranges.h"
#include "report/gpu/work_categories.h"
#include "report/diagnose/diagnosis_internal.h"
#include "report/base/alloc.h"
#include "report/base/compare.h"
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FUNCTIONS_SHOWN 3u

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
		!diagnose_is_share(tax, wall, LIMIT_LITTLE)) {
		finding_set_small(finding, tax, LIMIT_LITTLE, wall, "the run");
		return;
	}
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
		"%s: outside of the compiled graphs %s (cache lookups %s, wrappers %s), of %s in "
		"compiled functions",
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

/* ---- the compiler's ranges ---- */

/* What a node is to these rules. */
enum compiler_class { OTHER, COMPILES, AUTOTUNES, CALLS_COMPILED };

static bool matches_one(
	const struct diagnosis *diagnosis, uint32_t node, const char *const *patterns)
{
	for (; *patterns; patterns++)
		if (range_name_matches(diagnosis, node, *patterns))
			return true;
	return false;
}

static bool is_autotuning(const struct diagnosis *diagnosis, uint32_t node)
{
	static const char *const patterns[] = { "*benchmark_all_configs*",
		"*coordinate_descent_tuning*", "*autotun*(dynamo_timed)*",
		"*AlgorithmSelectorCache*", NULL };

	return matches_one(diagnosis, node, patterns);
}

static bool is_compiling(const struct diagnosis *diagnosis, uint32_t node)
{
	const struct node *entry = &diagnosis->profile->tree->nodes[node];

	return (node_kind_class(entry->kind) == NODE_RANGES &&
		       host_range_kind(string_table_get(diagnosis->process->texts, entry->name)) ==
			       HOST_RANGE_COMPILATION) ||
	       is_autotuning(diagnosis, node);
}

/* Returns true for a range that is one compilation of a function. */
static bool is_whole_compilation(const struct diagnosis *diagnosis, uint32_t node)
{
	static const char *const patterns[] = { "torch.compile *", "*compile_inner*",
		"*_compile.compile*", "backward._backward_impl*", NULL };

	return matches_one(diagnosis, node, patterns);
}

/* Classifies the outermost nodes in which the compiler ran, and the calls of compiled code.
 * `classes`: by node. Returns whether there are any. */
static bool classify_nodes(const struct diagnosis *diagnosis, uint8_t *classes)
{
	const struct tree *tree = diagnosis->profile->tree;
	uint8_t *compiling = xcalloc(tree->count); /* in the node, or around it */
	bool found = false;

	for (uint32_t id = 1; id < tree->count; id++) {
		const bool inside = compiling[tree->nodes[id].parent];

		compiling[id] = inside || is_compiling(diagnosis, id);
		if (compiling[id] && !inside)
			classes[id] = is_autotuning(diagnosis, id) ? AUTOTUNES : COMPILES;
		else if (range_name_matches(diagnosis, id, "Torch-Compiled Region: *"))
			classes[id] = CALLS_COMPILED;
		found |= classes[id] != OTHER;
	}
	free(compiling);
	return found;
}

/* A function that was compiled. `frame`: PyTorch's number; UINT64_MAX: not known, and `name` is
 * that of the range. */
struct compiled_function {
	uint64_t frame, total_ns, compilations, most_versions;
	uint8_t *versions; /* by version: 1 if seen; owned */
	size_t versions_room;
	char name[128]; /* empty: not known */
	uint32_t node;
};

/* One outermost range of the compiler. */
struct compiler_run {
	uint64_t begin_ns, end_ns;
	uint32_t node;
	bool again, autotunes;
	bool is_compilation; /* false: a phase that ran outside of one, as on a thread of its own */
};

struct compiler_search {
	const struct diagnosis *diagnosis;
	uint8_t *classes, *seen; /* by node; seen: had an instance before */
	struct compiler_run *runs;
	size_t run_count, run_room;
	struct compiled_function *functions;
	size_t function_count, function_room;
};

/* The sums that the rules print. */
struct compiler_sums {
	uint64_t first_ns, again_ns, tuning_ns; /* unions; first: without again and tuning */
	uint64_t first, again, tuned;
	uint64_t longest_ns, longest_at_ns;
	uint32_t longest_node;
};

static struct compiled_function *find_function(
	struct compiler_search *search, uint64_t frame, const char *name)
{
	struct compiled_function *function;

	for (size_t i = 0; i < search->function_count; i++) {
		function = &search->functions[i];
		if (function->frame == frame &&
			(frame != UINT64_MAX || !strcmp(function->name, name)))
			return function;
	}
	ARRAY_GROW(search->functions, search->function_room, search->function_count + 1);
	function = &search->functions[search->function_count++];
	*function = (struct compiled_function){ .frame = frame };
	SET_TEXT(function->name, "%s", frame == UINT64_MAX ? name : "");
	return function;
}

#define VERSIONS_MAX 4096u /* of a function; PyTorch stops at 8 unless it is configured */

static void add_version(struct compiled_function *function, uint64_t version)
{
	if (version >= VERSIONS_MAX)
		return;
	ARRAY_GROW(function->versions, function->versions_room, (size_t)version + 1);
	function->most_versions += !function->versions[version];
	function->versions[version] = 1;
}

/* Copies the label of an instance. */
static void read_label(
	const struct diagnosis *diagnosis, uint32_t trace_node, char *label, size_t room)
{
	struct trace_reader *reader = diagnosis->process->reader;
	const struct trace_text text = reader_name(reader, reader_node(reader, trace_node)->name);
	const size_t length = text.length < room ? text.length : room - 1;

	if (text.known && length)
		memcpy(label, text.bytes, length);
	label[text.known ? length : 0] = '\0';
}

/* Parses `..., frame 0, version 1` and cuts it off. Returns false if the label has no such end. */
static bool cut_compile_id(char *label, uint64_t *frame, uint64_t *version)
{
	char *id = strstr(label, ", frame ");

	if (!id || sscanf(id, ", frame %" SCNu64 ", version %" SCNu64, frame, version) != 2)
		return false;
	*id = '\0';
	return true;
}

/* Returns what is compiled: the label without `torch.compile ` and `backward of `. */
static const char *function_of_label(const char *label)
{
	static const char *const prefixes[] = { "torch.compile ", "backward of " };

	for (size_t i = 0; i < sizeof prefixes / sizeof *prefixes; i++)
		if (!strncmp(label, prefixes[i], strlen(prefixes[i])))
			label += strlen(prefixes[i]);
	return label;
}

static void add_call(struct compiler_search *search, uint32_t trace_node)
{
	uint64_t frame, version;
	char label[256];

	read_label(search->diagnosis, trace_node, label, sizeof label);
	if (sscanf(label, "Torch-Compiled Region: %" SCNu64 "/%" SCNu64, &frame, &version) == 2)
		add_version(find_function(search, frame, ""), version);
}

static bool is_in_usual_step(const struct diagnosis *diagnosis, uint64_t at_ns)
{
	const struct step *step = diagnosis->facts.has_steps
					  ? steps_step_at(diagnosis->process->steps, at_ns)
					  : NULL;

	return step && step->kind == STEP_USUAL;
}

/* Adds a run to its function. Returns whether the function was compiled before. Without a compile
 * id, that is what a second instance of a node is taken for in a trace without steps. */
static bool add_to_function(struct compiler_search *search,
	const struct observed_instance *instance, struct compiler_run *run)
{
	uint64_t frame, version = 0;
	struct compiled_function *function;
	bool again = search->seen[instance->node] && !search->diagnosis->facts.has_steps;
	char label[256];

	search->seen[instance->node] = 1;
	read_label(search->diagnosis, instance->trace_node, label, sizeof label);
	if (cut_compile_id(label, &frame, &version)) {
		function = find_function(search, frame, "");
		SET_TEXT(function->name, "%.120s", function_of_label(label));
		add_version(function, version);
		again = version > 0;
	} else {
		if (!run->is_compilation)
			return false;
		function = find_function(search, UINT64_MAX, label);
	}
	run->is_compilation = true;
	function->compilations++;
	function->total_ns += instance->end_ns - instance->begin_ns;
	function->node = instance->node;
	return again;
}

static void add_instance(void *context, const struct observed_instance *instance)
{
	struct compiler_search *search = context;
	struct compiler_run *run;
	uint8_t class;

	if (instance->node >= search->diagnosis->profile->tree->count)
		return;
	class = search->classes[instance->node];
	if (class == CALLS_COMPILED)
		add_call(search, instance->trace_node);
	if (class != COMPILES && class != AUTOTUNES)
		return;
	ARRAY_GROW(search->runs, search->run_room, search->run_count + 1);
	run = &search->runs[search->run_count++];
	*run = (struct compiler_run){ .begin_ns = instance->begin_ns,
		.end_ns = instance->end_ns,
		.node = instance->node,
		.autotunes = class == AUTOTUNES,
		.is_compilation = is_whole_compilation(search->diagnosis, instance->node) };
	if (!run->autotunes)
		run->again = add_to_function(search, instance, run);
	run->again |= is_in_usual_step(search->diagnosis, instance->begin_ns);
}

static int by_begin(const void *a, const void *b)
{
	const struct compiler_run *left = a, *right = b;

	return COMPARE(left->begin_ns, right->begin_ns);
}

static int by_total(const void *a, const void *b)
{
	const struct compiled_function *left = a, *right = b;

	return left->total_ns == right->total_ns ? COMPARE(left->frame, right->frame)
						 : COMPARE(right->total_ns, left->total_ns);
}

/* Finds when the compiler ran, in one more pass. A node does not show it: steps that are ranges of
 * the program are one node, warm-up included. compiler_search_free() frees the result. */
static struct compiler_search *search_compiler(const struct diagnosis *diagnosis)
{
	const uint32_t nodes = diagnosis->profile->tree->count;
	struct compiler_search *search = xcalloc(sizeof *search);
	struct profile_observer observer = { .context = search, .closed = add_instance };
	struct profile_options options;

	search->diagnosis = diagnosis;
	search->classes = xcalloc(nodes);
	observer.closed_nodes = search->classes;
	observer.closed_node_count = nodes;
	search->seen = xcalloc(nodes);
	if (!classify_nodes(diagnosis, search->classes))
		return search;
	options = profile_options_for_observer(diagnosis->profile, &observer);
	profile_free(
		profile_build(diagnosis->process->reader, diagnosis->process->texts, &options));
	if (search->run_count)
		qsort(search->runs, search->run_count, sizeof *search->runs, by_begin);
	if (search->function_count)
		qsort(search->functions, search->function_count, sizeof *search->functions,
			by_total);
	return search;
}

static void compiler_search_free(struct compiler_search *search)
{
	for (size_t i = 0; i < search->function_count; i++)
		free(search->functions[i].versions);
	free(search->functions);
	free(search->runs);
	free(search->classes);
	free(search->seen);
	free(search);
}

/* Adds up the runs, sorted by begin. Time that several threads share counts once, for the run that
 * began first. `of_recompilations`: the longest run is that of recompilations, else that of the
 * other runs. */
static struct compiler_sums sum_runs(const struct compiler_search *search, bool of_recompilations)
{
	struct compiler_sums sums = { .first = 0 };
	uint64_t until = 0;

	for (size_t i = 0; i < search->run_count; i++) {
		const struct compiler_run *run = &search->runs[i];
		const uint64_t from = max_u64(run->begin_ns, until),
			       took = run->end_ns > from ? run->end_ns - from : 0;

		*(run->again             ? &sums.again_ns
			: run->autotunes ? &sums.tuning_ns
					 : &sums.first_ns) += took;
		sums.tuned += run->autotunes;
		sums.again += run->again && run->is_compilation;
		sums.first += !run->again && run->is_compilation;
		until = max_u64(until, run->end_ns);
		if (run->again == of_recompilations && took > sums.longest_ns) {
			sums.longest_ns = took;
			sums.longest_at_ns = run->begin_ns;
			sums.longest_node = run->node;
		}
	}
	return sums;
}

/* ---- findings ---- */

/* Writes the functions that took longest to compile: `f (net.py:3): 2 compilations, 1.2 s; ...`.
 * `again`: only functions with several versions. */
static void list_functions(struct diagnosis *diagnosis, const struct compiler_search *search,
	bool again, char *text, size_t room)
{
	size_t used = 0;
	unsigned shown = 0;

	*text = '\0';
	for (size_t i = 0; i < search->function_count && shown < FUNCTIONS_SHOWN; i++) {
		const struct compiled_function *function = &search->functions[i];

		if (!function->compilations || !*function->name ||
			(again && function->frame != UINT64_MAX && function->most_versions < 2))
			continue;
		finding_set_text(text + used, room - used, "; %s: %s, %s",
			diagnose_escaped(diagnosis, function->name, strlen(function->name)),
			diagnose_plural(diagnosis, function->compilations, "compilation"),
			diagnose_time(diagnosis, function->total_ns));
		used = strlen(text);
		shown++;
	}
}

static uint64_t additional_versions(const struct compiler_search *search, uint64_t *functions)
{
	uint64_t additional = 0;

	*functions = 0;
	for (size_t i = 0; i < search->function_count; i++)
		if (search->functions[i].most_versions > 1) {
			additional += search->functions[i].most_versions - 1;
			++*functions;
		}
	return additional;
}

static void set_compile_place(struct finding *finding, const struct compiler_sums *sums)
{
	SET_TEXT(finding->view, "tree -m cpu --focus");
	finding->at_path = true;
	finding->node = sums->longest_node;
	finding->has_example = sums->longest_ns > 0;
	finding->example_ns = sums->longest_at_ns;
}

void diagnose_compilation(struct diagnosis *diagnosis, struct finding *finding)
{
	struct compiler_search *search = search_compiler(diagnosis);
	const struct compiler_sums sums = sum_runs(search, false);
	char functions[400], tuning[128] = "";

	if (diagnose_is_share(
		    sums.first_ns + sums.tuning_ns, diagnosis->facts.run_ns, LIMIT_LITTLE)) {
		list_functions(diagnosis, search, false, functions, sizeof functions);
		finding_set_found(finding, CONFIDENCE_HIGH);
		SET_TEXT(finding->reason,
			"measured: the ranges of the compiler, of all threads, each interval once");
		SET_TEXT(finding->sentence,
			"torch.compile takes %s to compile functions for the first time%s.",
			diagnose_time(diagnosis, sums.first_ns + sums.tuning_ns),
			sums.tuning_ns ? ", autotuning included" : "");
		if (sums.tuning_ns)
			SET_TEXT(tuning, "; autotuning, apart from that: %s in %s",
				diagnose_plural(diagnosis, sums.tuned, "kernel"),
				diagnose_time(diagnosis, sums.tuning_ns));
		SET_TEXT(finding->evidence, "%s in %s%s%s",
			diagnose_plural(diagnosis, sums.first, "compilation"),
			diagnose_time(diagnosis, sums.first_ns), tuning, functions);
		SET_TEXT(finding->next,
			"Keep the compiler's caches between runs (TORCHINDUCTOR_CACHE_DIR, "
			"mega-cache), compile repeated blocks once (regional compilation), leave "
			"mode=\"max-autotune\" for long runs, and measure after warm-up.");
		finding->count = sums.first;
		finding->impact_ns = sums.first_ns + sums.tuning_ns;
		set_compile_place(finding, &sums);
	}
	compiler_search_free(search);
}

static void explain_recompilation(struct diagnosis *diagnosis, struct finding *finding,
	const struct compiler_search *search, const struct compiler_sums *sums)
{
	uint64_t functions, additional = additional_versions(search, &functions);
	char versions[128] = "", list[400];

	list_functions(diagnosis, search, true, list, sizeof list);
	if (additional)
		SET_TEXT(versions, "%s of %s",
			diagnose_plural(diagnosis, additional, "additional version"),
			diagnose_plural(diagnosis, functions, "function"));
	if (sums->again_ns)
		SET_TEXT(finding->evidence, "%s, in %s, the longest %s%s%s%s",
			diagnose_plural(diagnosis, sums->again, "compilation"),
			diagnose_time(diagnosis, sums->again_ns),
			diagnose_time(diagnosis, sums->longest_ns), additional ? "; " : "",
			versions, list);
	else
		SET_TEXT(finding->evidence, "%s; the trace does not show when they were compiled",
			versions);
	SET_TEXT(finding->sentence,
		sums->again_ns ? "torch.compile recompiles while the program runs%s."
			       : "The program switches between compiled versions%s.",
		additional ? sums->again_ns ? ", or switches between versions of one function"
					    : " of one function"
			   : "");
}

void diagnose_recompilation(struct diagnosis *diagnosis, struct finding *finding)
{
	struct compiler_search *search = search_compiler(diagnosis);
	const struct compiler_sums sums = sum_runs(search, true);
	uint64_t functions, additional = additional_versions(search, &functions);

	if (sums.again_ns || additional) {
		finding_set_found(
			finding, sums.again_ns && (additional || diagnosis->facts.has_steps)
					 ? CONFIDENCE_HIGH
					 : CONFIDENCE_MEDIUM);
		SET_TEXT(finding->reason, !sums.again_ns
						  ? "several versions of a function were called"
					  : finding->confidence == CONFIDENCE_HIGH
						  ? "measured: compilations of further versions, "
						    "and in steady-state steps"
						  : "no steps were found: each compilation except "
						    "the first of a node "
						    "counts");
		explain_recompilation(diagnosis, finding, search, &sums);
		SET_TEXT(finding->next,
			"TORCH_LOGS=recompiles shows which guard failed: mark changing sizes "
			"(torch._dynamo.mark_dynamic, dynamic=True), pad to a few sizes, keep "
			"changing "
			"Python numbers and flags out of compiled functions.");
		finding->count = sums.again ? sums.again : additional;
		finding->impact_ns = sums.again_ns;
		finding->upper_bound = finding->confidence != CONFIDENCE_HIGH;
		set_compile_place(finding, &sums);
		finding->at_path = finding->node != 0;
		if (!finding->node)
			SET_TEXT(finding->view, "tree -m cpu");
	}
	compiler_search_free(search);
}
