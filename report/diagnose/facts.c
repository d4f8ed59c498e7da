/* SPDX-License-Identifier: MIT
 *
 * Collects the facts that rules look at: from one pass over a process's activities, and from the
 * rows of `idle`.
 */
#include "report/views/idle.h"
#include "report/analysis/collective_rates.h"
#include "report/base/spill_list.h"
#include "report/views/overlap.h"
#include "report/analysis/tree_categories.h"
#include "report/table/column.h"
#include "report/diagnose/diagnosis_internal.h"
#include "report/base/alloc.h"
#include "report/base/compare.h"
#include "report/analysis/step_idle.h"
#include "report/analysis/stream_table.h"
#include "report/table/computed_row.h"
#include <stdlib.h>
#include <string.h>

#define GAPS_MAX 8192u /* the longest gaps are read one by one; all others are shorter */

/* The last GPU operation of a CUDA stream. */
struct last_work {
	uint64_t begin_ns, end_ns, duration_ns, bytes;
	uint32_t owner;
	bool is_copy; /* from device to device, in some range */
};

/* What the name of a call says about it, or-ed. */
enum call_class { CALL_CLASSIFIED = 1, CALL_WAITS = 2, CALL_ALLOCATES = 4, CALL_QUERIES = 8 };

struct facts_pass {
	struct diagnosis *diagnosis;
	struct activities *activities;
	struct stream_table streams;
	struct last_work *last; /* by number of the stream in `streams` */
	size_t last_room;
	const struct first_calls *first; /* what is allocated in these is nothing that recurs */
	uint8_t *category;               /* by node */
	struct category_lookup *lookup;  /* by the full names of kernels */
	/* by string id of the name: enum call_class; 0: not classified yet */
	uint8_t *call_classes;
	size_t call_classes_room;
	unsigned gemm;
};

void occurrences_add(struct occurrences *occurrences, uint32_t node, uint32_t name, uint64_t at_ns,
	uint64_t duration_ns)
{
	struct occurrences_at_node *at_node;

	ARRAY_GROW(occurrences->of_node, occurrences->room, (size_t)node + 1);
	at_node = &occurrences->of_node[node];
	if (!at_node->total_ns || duration_ns > at_node->longest_ns) {
		at_node->longest_ns = duration_ns;
		at_node->longest_at_ns = at_ns;
	}
	/* 1 ns more for each, so that calls without duration are counted by node */
	at_node->total_ns += duration_ns + 1;
	occurrences->total_ns += duration_ns;
	if (!occurrences->count++ || duration_ns > occurrences->longest_ns) {
		occurrences->longest_ns = duration_ns;
		occurrences->longest_at_ns = at_ns;
		occurrences->longest_name = name;
	}
}

uint32_t occurrences_top_node(const struct occurrences *occurrences)
{
	uint32_t most = 0;

	for (uint32_t node = 1; node < occurrences->room; node++)
		if (occurrences->of_node[node].total_ns >
			(most ? occurrences->of_node[most].total_ns : 0))
			most = node;
	return most;
}

void occurrences_set_example(const struct occurrences *occurrences, struct finding *finding)
{
	finding->has_example = finding->node < occurrences->room &&
			       occurrences->of_node[finding->node].total_ns;
	finding->example_ns = finding->has_example
				      ? occurrences->of_node[finding->node].longest_at_ns
				      : 0;
}

void occurrences_set_node(const struct occurrences *occurrences, struct finding *finding)
{
	finding->node = occurrences_top_node(occurrences);
	occurrences_set_example(occurrences, finding);
}

const struct occurrences *call_occurrences_shown(const struct call_occurrences *calls)
{
	return calls->recorded.count >= calls->reported.count ? &calls->recorded : &calls->reported;
}

bool diagnose_is_steady(const struct diagnosis *diagnosis, uint32_t step, uint64_t at_ns)
{
	const struct steps *steps = diagnosis->process->steps;

	if (!diagnosis->facts.has_steps)
		return at_ns >= diagnosis->facts.steady_from_ns &&
		       at_ns < diagnosis->facts.steady_to_ns;
	return step < steps->count && steps->steps[step].kind == STEP_USUAL;
}

struct gpu_span {
	uint64_t begin_ns, end_ns;
};

/* Returns from when to when GPUs had work; of a trace without GPU work the whole. */
static struct gpu_span span_of_gpus(const struct diagnosis *diagnosis)
{
	const struct timeline_device *devices;
	struct timeline *timeline = diagnosis->profile->timeline;
	const size_t count = timeline ? timeline_devices(timeline, &devices) : 0;
	const uint64_t start = diagnosis->process->start_unix_ns;
	uint64_t first = UINT64_MAX, last = 0;

	for (size_t i = 0; i < count; i++) {
		first = min_u64(first, devices[i].all.first_ns);
		last = max_u64(last, devices[i].all.last_ns);
	}
	return (struct gpu_span){
		.begin_ns = count && first > start ? first - start : 0,
		.end_ns = count && last > start ? last - start : diagnosis->profile->totals.wall_ns,
	};
}

static void find_steady(struct diagnosis *diagnosis)
{
	struct diagnose_facts *facts = &diagnosis->facts;
	const struct steps *steps = diagnosis->process->steps;
	const struct gpu_span span = span_of_gpus(diagnosis);
	const uint64_t whole_ns = span.end_ns - span.begin_ns;

	facts->has_steps = steps && steps->sum_ns > 0 && !steps_overlap(steps);
	facts->steady_from_ns = span.begin_ns + whole_ns / 1000 * LIMIT_STEADY_FROM;
	facts->steady_to_ns = span.end_ns;
	facts->whole_ns = whole_ns;
	facts->steady_ns = facts->has_steps ? steps->window_sum_ns
					    : span.end_ns - facts->steady_from_ns;
}

/* Returns true if `name` matches one of the patterns. NULL ends the list. */
static bool matches_any(struct string_view name, const char *const *patterns)
{
	for (; *patterns; patterns++)
		if (category_matches(*patterns, name.bytes, name.length))
			return true;
	return false;
}

/* Returns true for queries that libraries make before they launch, and need to make only once. */
static bool is_query(struct string_view name)
{
	static const char *const patterns[] = { "cudaFuncGetAttributes*", "cuFuncGetAttribute*",
		"*OccupancyMax*", "*OccupancyAvailable*", "*GetDeviceProperties*",
		"cudaDeviceGetAttribute*", "cuDeviceGetAttribute*", "cudaPointerGetAttributes*",
		"cuPointerGetAttribute*", "cudaMemGetInfo*", "cuMemGetInfo*", "*Heuristic*",
		"*WorkspaceSize*", "cudnnFind*", "cudnnGet*Algorithm*", NULL };

	return matches_any(name, patterns);
}

/* Returns true for calls that allocate from, or free to, the driver. Stream-ordered allocation from
 * a pool is left out because it costs little. */
static bool is_allocation(struct string_view name)
{
	static const char *const patterns[] = { "cudaMalloc*", "cudaFree*", "cuMemAlloc*",
		"cuMemFree*", "cudaHostAlloc*", "cudaHostRegister*", "cudaHostUnregister*",
		"cuMemCreate*", "cuMemMap*", "cuMemUnmap*", "cuMemRelease*", NULL };

	return matches_any(name, patterns) && !category_matches("*Async*", name.bytes, name.length);
}

static bool is_wait(struct string_view name)
{
	return category_matches("*Synchronize*", name.bytes, name.length);
}

static uint8_t classify_call(struct facts_pass *pass, uint32_t name)
{
	const struct string_view text = string_table_get(pass->diagnosis->process->texts, name);
	uint8_t *kind;

	ARRAY_GROW(pass->call_classes, pass->call_classes_room, (size_t)name + 1);
	kind = &pass->call_classes[name];
	if (!*kind)
		*kind = (uint8_t)(CALL_CLASSIFIED | (is_wait(text) ? CALL_WAITS : 0) |
				  (is_allocation(text)     ? CALL_ALLOCATES
					  : is_query(text) ? CALL_QUERIES
							   : 0));
	return *kind;
}

static void add_call_occurrence(struct call_occurrences *calls, const struct activity *call)
{
	struct occurrences *occurrences = activity_is_call(call) ? &calls->recorded
								 : &calls->reported;

	occurrences_add(occurrences, call->owner, call->name, call->begin_ns, call->duration_ns);
	occurrences->bytes += call->kind == ACTIVITY_ALLOC ? call->bytes : 0;
}

static void facts_add_call(struct facts_pass *pass, const struct activity *call)
{
	struct diagnose_facts *facts = &pass->diagnosis->facts;
	const uint8_t kind = classify_call(pass, call->name);

	facts->calls++;
	if (call->captured)
		return;
	blocking_add_call(pass->diagnosis, call);
	if (call->kind == ACTIVITY_WAIT || kind & CALL_WAITS)
		add_call_occurrence(&facts->waits, call);
	if (kind & CALL_ALLOCATES)
		facts->allocation_calls[activity_is_call(call)]++;
	if (!diagnose_is_steady(pass->diagnosis, call->step, call->begin_ns))
		return;
	if (kind & CALL_ALLOCATES) {
		if (!first_calls_span(pass->first, call->tid, call->begin_ns, call->end_ns))
			add_call_occurrence(&facts->allocations, call);
	} else if (kind & CALL_QUERIES) {
		add_call_occurrence(&facts->queries, call);
		*ARRAY_ADD(facts->query_calls, facts->query_call_room,
			facts->query_call_count) = (struct query_call){ .begin_ns = call->begin_ns,
			.duration_ns = call->duration_ns,
			.tid = call->tid,
			.recorded = activity_is_call(call) };
	}
}

/* Returns true if `node` is `outer` or below it. A node's id is larger than its parent's. */
static bool is_within(const struct tree *tree, uint32_t node, uint32_t outer)
{
	while (node > outer)
		node = tree->nodes[node].parent;
	return node && node == outer;
}

/* Returns true if the copy belongs to the matrix product after it. Then one operator is in the
 * other, or both are in the operator around the product. */
static bool share_operator(const struct tree *tree, uint32_t copy, uint32_t product)
{
	const uint32_t around = tree->nodes[product].parent;

	return is_within(tree, copy, product) || is_within(tree, product, copy) ||
	       (around && tree->nodes[around].kind == NODE_OP && is_within(tree, copy, around));
}

static void facts_add_copy(struct facts_pass *pass, const struct activity *copy)
{
	struct diagnose_facts *facts = &pass->diagnosis->facts;
	const bool to_host = copy->copy_kind == TRACE_COPY_DTOH,
		   to_device = copy->copy_kind == TRACE_COPY_HTOD;
	const uint32_t kind = to_host ? copy->target_kind : copy->source_kind;

	if (copy->copy_kind == TRACE_COPY_DTOD)
		occurrences_add(&facts->device_copies, copy->owner, copy->name, copy->begin_ns,
			copy->duration_ns);
	if (!to_host && !to_device)
		return;
	facts->host_copies++;
	facts->known_copies += kind != TRACE_MEMORY_UNKNOWN;
	if (kind != TRACE_MEMORY_PAGEABLE)
		return;
	occurrences_add(
		&facts->pageable, copy->owner, copy->name, copy->begin_ns, copy->duration_ns);
	facts->pageable.bytes += copy->bytes;
	if (to_host)
		occurrences_add(&facts->pageable_to_host, copy->owner, copy->name, copy->begin_ns,
			copy->duration_ns);
}

static void facts_add_kernel(
	struct facts_pass *pass, const struct activity *kernel, const struct last_work *before)
{
	struct diagnose_facts *facts = &pass->diagnosis->facts;
	const struct tree *tree = pass->diagnosis->profile->tree;

	facts->kernels++;
	facts->own_launches += kernel->has_call && !kernel->of_graph;
	facts->communications += kernel->communicates;
	variability_add(pass->diagnosis, kernel);
	if (!kernel->of_graph && kernel->has_call && kernel->duration_ns < LIMIT_TINY_NS) {
		occurrences_add(&facts->tiny, kernel->owner, kernel->name, kernel->begin_ns,
			kernel->duration_ns);
		occurrences_add(&facts->tiny_calls, kernel->owner, kernel->name,
			kernel->call_begin_ns, kernel->call_end_ns - kernel->call_begin_ns);
	}
	if (!before->is_copy || !kernel->in_range || pass->category[kernel->node] != pass->gemm ||
		!share_operator(tree, before->owner, kernel->owner))
		return;
	occurrences_add(&facts->before_gemm, kernel->owner, kernel->name, before->begin_ns,
		before->duration_ns);
	facts->before_gemm.bytes += before->bytes;
	*ARRAY_ADD(facts->gemm_copies, facts->gemm_copy_room,
		facts->gemm_copy_count) = before->begin_ns;
}

static void facts_add_work(struct facts_pass *pass, const struct activity *work)
{
	const uint32_t stream_index = stream_table_number(
		&pass->streams, work->device, work->stream);
	struct last_work *last;

	ARRAY_GROW(pass->last, pass->last_room, (size_t)stream_index + 1);
	last = &pass->last[stream_index];
	pass->diagnosis->facts.operations++;
	pass->diagnosis->facts.category_ns[category_lookup_of(
		pass->lookup, pass->diagnosis->process->reader, work->node, work->trace_name)] +=
		work->duration_ns;
	pass->diagnosis->facts.launched += work->has_call;
	blocking_add_work(pass->diagnosis, work, last->end_ns);
	if (work->kind == ACTIVITY_COPY)
		facts_add_copy(pass, work);
	if (work->kind == ACTIVITY_KERNEL)
		facts_add_kernel(pass, work, last);
	*last = (struct last_work){ .begin_ns = work->begin_ns,
		.end_ns = max_u64(last->end_ns, work->end_ns),
		.duration_ns = work->duration_ns,
		.bytes = work->bytes,
		.owner = work->owner,
		.is_copy = work->kind == ACTIVITY_COPY && work->copy_kind == TRACE_COPY_DTOD &&
			   work->in_range };
}

static unsigned find_category(const struct categories *categories, const char *name)
{
	unsigned category = 0;

	while (category < categories_count(categories) &&
		strcmp(categories_name(categories, category), name) != 0)
		category++;
	return category;
}

static bool is_counted_call(const struct activities *activities, const struct activity *one)
{
	return (activity_is_call(one) && one->counts) ||
	       (one->kind == ACTIVITY_API && activities_count_at(activities, one->begin_ns));
}

static void add_fact(void *context, const struct activity *one)
{
	struct facts_pass *pass = context;

	if (activity_is_work(one) && one->timed && one->counts)
		facts_add_work(pass, one);
	else if (is_counted_call(pass->activities, one))
		facts_add_call(pass, one);
}

static void end_facts(void *context)
{
	struct facts_pass *pass = context;

	pass->diagnosis->facts.calls += activities_left_out(pass->activities);
	stream_table_free(&pass->streams);
	free(pass->last);
	free(pass->category);
	category_lookup_free(pass->lookup);
	free(pass->call_classes);
	free(pass);
}

static struct activity_visitor facts_begin(
	struct diagnosis *diagnosis, struct activities *activities)
{
	const struct categories *categories = diagnosis->process->categories;
	struct facts_pass *pass = xcalloc(sizeof *pass);

	*pass = (struct facts_pass){ .diagnosis = diagnosis,
		.activities = activities,
		.first = first_calls_of(diagnosis->process),
		.category = categories_of_tree(
			categories, diagnosis->profile->tree, diagnosis->process->texts),
		.lookup = category_lookup_new(
			categories, diagnosis->profile->tree, diagnosis->process->texts),
		.gemm = find_category(categories, "GEMM") };
	diagnosis->facts.category_ns = xcalloc(
		categories_count(categories) * sizeof *diagnosis->facts.category_ns);
	return (struct activity_visitor){ .context = pass, .add = add_fact, .end = end_facts };
}

static const struct cell *idle_cell(const struct row *row, const char *key)
{
	return computed_row_cell(row->of.computed, column_find(key, strlen(key)));
}

/* Returns true if most of the gap is before the first step. What a program does to get ready is
 * judged separately. */
static bool is_before_first_step(const struct steps *steps, uint64_t at, uint64_t length)
{
	return steps && steps->count && at + length / 2 < steps->steps[0].begin_ns;
}

/* Keeps what the host did during the longest wait of launched work. */
static void note_host_call(struct diagnosis *diagnosis, const struct row *row, uint64_t length_ns)
{
	const struct cell *call = idle_cell(row, "host_call");

	if (length_ns <= diagnosis->facts.waiting_gaps.longest_ns)
		return;
	SET_TEXT(diagnosis->facts.host_call, "%s",
		call ? diagnose_escaped(diagnosis, call->text.bytes, call->text.length) : "");
	diagnosis->facts.waiting_stream = computed_row_number(row, "stream");
	diagnosis->facts.waiting_stack = row->of.computed->launch_stack;
}

static void add_event_gap(
	struct diagnose_facts *facts, const struct row *row, uint64_t at_ns, uint64_t length_ns)
{
	unsigned event = GAP_EVENT_KNOWN;

	while (event < GAP_EVENT_COUNT &&
		!computed_row_is(row, "waits_for", gap_event_name((enum gap_event)event)))
		event++;
	if (event == GAP_EVENT_COUNT)
		return;
	occurrences_add(&facts->event_gaps, row->node, 0, at_ns, length_ns);
	facts->event_ns[event] += length_ns;
}

static void note_longest_gap(struct diagnosis *diagnosis, const struct row *row,
	enum gap_cause cause, uint64_t length_ns)
{
	struct diagnose_facts *facts = &diagnosis->facts;
	const struct cell *call = idle_cell(row, "blocked_by");

	if (length_ns <= facts->cause_longest_ns[cause])
		return;
	facts->cause_longest_ns[cause] = length_ns;
	if (cause == GAP_SYNC && call)
		SET_TEXT(facts->blocked_by, "%s",
			diagnose_escaped(diagnosis, call->text.bytes, call->text.length));
}

static void keep_long_gap(
	struct diagnose_facts *facts, const struct row *row, uint64_t at_ns, uint64_t length_ns)
{
	*ARRAY_ADD(facts->long_gaps, facts->long_gap_room,
		facts->long_gap_count) = (struct long_launch_gap){ .at_ns = at_ns,
		.length_ns = length_ns,
		.node = row->node,
		.tid = (uint32_t)computed_row_number(row, "thread") };
}

static void facts_add_gap(struct diagnosis *diagnosis, const struct row *row, enum gap_cause cause)
{
	struct diagnose_facts *facts = &diagnosis->facts;
	const uint64_t length = computed_row_number(row, "gap_ns"),
		       at = computed_row_number(row, "start_ns");
	const bool before = is_before_first_step(diagnosis->process->steps, at, length);

	note_longest_gap(diagnosis, row, cause, length);
	if (cause == GAP_LAUNCH || cause == GAP_LATENCY)
		*ARRAY_ADD(facts->launch_gaps, facts->launch_gap_room,
			facts->launch_gap_count) = (struct launch_gap){ .at_ns = at,
			.length_ns = length };
	if (cause == GAP_LAUNCH || cause == GAP_LATENCY)
		occurrences_add(length < LIMIT_LONG_GAP_NS ? &facts->launch_short
				: before                   ? &facts->launch_long_before_steps
							   : &facts->launch_long,
			row->node, 0, at, length);
	if ((cause == GAP_LAUNCH || cause == GAP_LATENCY) && length >= LIMIT_LONG_GAP_NS && !before)
		keep_long_gap(facts, row, at, length);
	if (cause == GAP_FIRST)
		first_call_gap_add(diagnosis, row, at, length);
	if (cause == GAP_SYNC)
		occurrences_add(&facts->sync_gaps, row->node, 0, at, length);
	if ((cause == GAP_EVENT || cause == GAP_UNEXPLAINED) && length >= LIMIT_HELD_NS) {
		note_host_call(diagnosis, row, length);
		occurrences_add(&facts->waiting_gaps, row->node, 0, at, length);
		add_event_gap(facts, row, at, length);
	}
}

/* Adds a row of a cause at one node. */
static void facts_add_idle_node(
	struct diagnose_facts *facts, const struct row *row, enum gap_cause cause)
{
	const uint64_t idle_ns = computed_row_number(row, "gap_ns");

	if (idle_ns > facts->cause_node_ns[cause]) {
		facts->cause_node_ns[cause] = idle_ns;
		facts->cause_node[cause] = row->node;
	}
	if (cause != GAP_LAUNCH && cause != GAP_LATENCY)
		return;
	ARRAY_GROW(facts->launch_idle_of_node, facts->launch_idle_room, (size_t)row->node + 1);
	facts->launch_idle_of_node[row->node] += idle_ns;
}

/* Keeps the longest wait of a GPU's first operation. */
static void note_first_wait(struct diagnose_facts *facts, const struct row *row)
{
	const uint64_t ns = computed_row_number(row, "unknown_ns");

	if (ns <= facts->first_wait.ns)
		return;
	facts->first_wait = (struct first_wait_fact){ .ns = ns,
		.at_ns = computed_row_number(row, "start_ns"),
		.stream = computed_row_number(row, "stream"),
		.node = row->node,
		.stack = row->of.computed->launch_stack };
}

/* Returns the cause of a row of the view `idle`. GAP_CAUSE_COUNT: it has none. */
static unsigned cause_of_row(const struct row *row)
{
	const struct string_view name = computed_row_text(row, "cause");
	unsigned cause = 0;

	if (string_view_is(name, IDLE_HOST_NAME))
		return GAP_LAUNCH;
	while (cause < GAP_CAUSE_COUNT &&
		!string_view_is(name, gap_cause_name((enum gap_cause)cause)))
		cause++;
	return cause;
}

static void facts_add_idle_row(struct diagnosis *diagnosis, const struct row *row)
{
	struct diagnose_facts *facts = &diagnosis->facts;
	const unsigned cause = cause_of_row(row);

	if (computed_row_is(row, "kind", "before"))
		note_first_wait(facts, row);
	if (cause == GAP_CAUSE_COUNT)
		return;
	if (computed_row_is(row, "kind", "cause")) {
		facts->cause_ns[cause] += computed_row_number(row, "gap_ns");
		facts->cause_gaps[cause] += computed_row_number(row, "gaps");
	} else if (computed_row_is(row, "kind", "gap")) {
		facts_add_gap(diagnosis, row, (enum gap_cause)cause);
	} else {
		facts_add_idle_node(facts, row, (enum gap_cause)cause);
	}
}

/* Reads the rows of the view `idle`: all causes and nodes, and the longest gaps one by one. */
static void facts_read_idle(
	struct diagnosis *diagnosis, const struct options *options, struct idle_report *idle)
{
	struct rows rows = { .count = 0 };

	idle_report_add_rows(options, idle, &rows);
	for (size_t i = 0; i < rows.count; i++) {
		facts_add_idle_row(diagnosis, &rows.rows[i]);
		host_activity_add_row(diagnosis, &rows.rows[i]);
	}
	free(rows.rows);
}

/* Who receives idle time. */
struct idle_receivers {
	struct idle_report *report; /* NULL: the trace has no timeline */
	struct bound_pass *bound;
	struct spill_list *late_idle;
};

static void keep_late_idle(struct spill_list *list, const struct idle_part *part)
{
	const enum gap_cause cause = part->part.cause;

	if (cause == GAP_KERNELS || cause == GAP_EVENT || cause == GAP_UNEXPLAINED ||
		cause == GAP_UNKNOWN)
		return;
	*(struct late_idle *)spill_list_push(
		list) = (struct late_idle){ .begin_ns = part->part.begin_ns,
		.end_ns = part->part.end_ns,
		.length_ns = part->length_ns,
		.device = part->ended_by->device,
		.tid = part->ended_by->tid,
		.cause = cause };
}

static void receive_idle(void *context, const struct idle_part *part)
{
	const struct idle_receivers *receivers = context;

	run_bound_add_idle(receivers->bound, part);
	keep_late_idle(receivers->late_idle, part);
	if (receivers->report)
		idle_report_add(receivers->report, part);
}

/* Reads the activities once for the facts, idle time, overlap, collectives and the verdict. */
static void facts_read_activities(struct diagnosis *diagnosis)
{
	struct process *process = diagnosis->process;
	const struct options options = diagnose_row_options(diagnosis->options, "idle", GAPS_MAX);
	struct activities *activities = activities_read_without_launches(process);
	struct bound_pass *bound = diagnosis->bound_pass = run_bound_begin(process);
	struct overlap *overlap = diagnosis->overlap = overlap_begin();
	struct collective_list *collectives = diagnosis->collectives = collective_list_new();
	struct idle_receivers receivers = {
		.late_idle = spill_list_new(sizeof(struct late_idle), "idle times"),
		.report = process->profile->timeline
				  ? idle_report_begin(&options, process, activities)
				  : NULL,
		.bound = bound,
	};
	const struct activity_visitor visitors[] = { facts_begin(diagnosis, activities),
		idle_parts_begin(process, activities, receive_idle, &receivers),
		receivers.report ? idle_report_ends(receivers.report)
				 : (struct activity_visitor){ .add = NULL },
		run_bound_work(bound), run_bound_ends(bound), run_bound_path(bound),
		overlap_visitor(overlap), collective_list_visitor(collectives) };

	diagnosis->late_idle = receivers.late_idle;
	diagnosis->work.list = spill_list_new(sizeof(struct work_time), "times of GPU work");
	activities_visit(activities, visitors, sizeof visitors / sizeof *visitors);
	activities_free(activities);
	blocking_find_reads(diagnosis);
	if (receivers.report) {
		facts_read_idle(diagnosis, &options, receivers.report);
		idle_report_free(receivers.report);
	}
}

void diagnose_facts_read(struct diagnosis *diagnosis)
{
	const struct profile_totals *totals = &diagnosis->profile->totals;

	diagnosis->facts = (struct diagnose_facts){ .busy_ns = totals->gpu_busy_ns,
		.idle_ns = totals->gpu_idle_ns,
		.span_ns = totals->gpu_busy_ns + totals->gpu_idle_ns + totals->gpu_unknown_ns,
		.run_ns = reader_duration_ns(diagnosis->process->reader) };
	find_steady(diagnosis);
	variability_pick_kernel(diagnosis);
	facts_read_activities(diagnosis);
}

const struct run_bound *diagnose_bound(struct diagnosis *diagnosis)
{
	if (diagnosis->bound_pass)
		diagnosis->bound = run_bound_finish(diagnosis->options, diagnosis->bound_pass);
	diagnosis->bound_pass = NULL;
	return &diagnosis->bound;
}

const struct rows *diagnose_overlap_rows(struct diagnosis *diagnosis)
{
	const struct options options = diagnose_row_options(
		diagnosis->options, "overlap", UINT32_MAX);

	if (diagnosis->overlap)
		overlap_add_rows(
			&options, diagnosis->process, diagnosis->overlap, &diagnosis->overlap_rows);
	overlap_free(diagnosis->overlap);
	diagnosis->overlap = NULL;
	return &diagnosis->overlap_rows;
}

const struct step_table *diagnose_step_table(struct diagnosis *diagnosis)
{
	return step_table_of(diagnosis->process);
}

void diagnose_facts_free(struct diagnosis *diagnosis)
{
	struct diagnose_facts *facts = &diagnosis->facts;
	struct occurrences *const all[] = { &facts->tiny, &facts->tiny_calls, &facts->pageable,
		&facts->before_gemm, &facts->allocations.recorded, &facts->allocations.reported,
		&facts->queries.recorded, &facts->queries.reported, &facts->waits.recorded,
		&facts->waits.reported, &facts->launch_short, &facts->launch_long,
		&facts->launch_long_before_steps, &facts->sync_gaps, &facts->waiting_gaps,
		&facts->event_gaps, &facts->first.gaps, &facts->pageable_to_host,
		&facts->device_copies };

	for (size_t i = 0; i < sizeof all / sizeof *all; i++)
		free(all[i]->of_node);
	blocking_free(facts);
	free(facts->long_gaps);
	free(facts->first.idle_ns);
	free(facts->launch_gaps);
	free(facts->gemm_copies);
	free(facts->variable.medians);
	free(facts->launch_idle_of_node);
	free(facts->query_calls);
	free(facts->category_ns);
	*facts = (struct diagnose_facts){ .operations = 0 };
	run_bound_drop(diagnosis->bound_pass);
	overlap_free(diagnosis->overlap);
	collective_list_free(diagnosis->collectives);
	spill_list_free(diagnosis->late_idle);
	blocking_free_work(&diagnosis->work);
	free(diagnosis->overlap_rows.rows);
}
