/* SPDX-License-Identifier: MIT
 *
 * Rules about calls of the host: queries for planning, memory, copies.
 */
#include "report/base/compare.h"
#include "report/base/spill_list.h"
#include "report/diagnose/diagnosis_internal.h"
#include "report/gpu/device_timeline.h"
#include "report/text/format_number.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void finding_trust_steady(const struct diagnosis *diagnosis, struct finding *finding)
{
	const bool one_step = diagnosis->facts.has_steps &&
			      steps_usual(diagnosis->process->steps) == 1;

	finding->confidence = one_step                     ? CONFIDENCE_MEDIUM
			      : diagnosis->facts.has_steps ? CONFIDENCE_HIGH
							   : CONFIDENCE_LOW;
	SET_TEXT(finding->reason, "%s",
		one_step ? "the trace has one step, which may not be typical"
		: diagnosis->facts.has_steps
			? "only steady-state steps count, without warm-up and the time between "
			  "steps"
			: "no steps were found: everything after the first quarter of the GPU's "
			  "span counts as steady state, without the longest call");
}

/* Returns what facts.steady_ns is the time of, for text. */
static const char *steady_name(const struct diagnosis *diagnosis)
{
	return diagnosis->facts.has_steps ? "the steady-state steps"
					  : "the last three quarters of the GPU span";
}

/* Returns the time of calls that recur. Without steps the longest call may be late start-up, and is
 * subtracted. */
static uint64_t recurring_ns(const struct diagnosis *diagnosis, const struct occurrences *calls)
{
	return diagnosis->facts.has_steps ? calls->total_ns : calls->total_ns - calls->longest_ns;
}

/* Reports calls in the steady part: their number, their time and the longest of them. */
static void report_steady_calls(
	struct diagnosis *diagnosis, struct finding *finding, const struct occurrences *calls)
{
	SET_TEXT(finding->evidence,
		"%s in the steady-state part of the trace (duration %s), taking %s; the longest %s "
		"(%s)",
		diagnose_plural(diagnosis, calls->count, "call"),
		diagnose_time(diagnosis, diagnosis->facts.steady_ns),
		diagnose_time(diagnosis, calls->total_ns),
		diagnose_time(diagnosis, calls->longest_ns),
		diagnose_name(diagnosis, calls->longest_name));
	SET_TEXT(finding->view, "api");
	finding_trust_steady(diagnosis, finding);
	finding->state = FINDING_FOUND;
	occurrences_set_node(calls, finding);
	finding->count = calls->count;
	finding->impact_ns = recurring_ns(diagnosis, calls);
}

COMPARE_BY_TWO(by_thread, struct query_call, tid, begin_ns)

/* Queries of one recorder, by thread and begin, and what launch-bound time they may cause. */
struct query_pass {
	const struct query_call *calls;
	size_t count;
	bool recorded;
	struct {
		uint32_t device;
		uint64_t counted_to_ns; /* queries before it are counted */
	} devices[TIMELINE_DEVICES];
	size_t device_count;
	uint64_t idle_ns;
};

/* Returns the time of the queries that a thread began in an interval. */
static uint64_t query_ns(
	const struct query_pass *pass, uint32_t tid, uint64_t from_ns, uint64_t to_ns)
{
	size_t low = 0, high = pass->count;
	uint64_t ns = 0;

	while (low < high) {
		const size_t middle = low + (high - low) / 2;
		const struct query_call *call = &pass->calls[middle];

		if (call->tid < tid || (call->tid == tid && call->begin_ns < from_ns))
			low = middle + 1;
		else
			high = middle;
	}
	for (; low < pass->count && pass->calls[low].tid == tid &&
		pass->calls[low].begin_ns < to_ns;
		low++)
		ns += pass->calls[low].recorded == pass->recorded ? pass->calls[low].duration_ns
								  : 0;
	return ns;
}

/* Adds of launch-bound time what the thread that launched next spent in queries since the
 * launch-bound time before. */
static void add_starved(struct query_pass *pass, const struct late_idle *idle)
{
	const size_t at = (size_t)((char *)device_slot(pass->devices, &pass->device_count,
					   sizeof *pass->devices, idle->device) -
				   (char *)pass->devices) /
			  sizeof *pass->devices;

	if (idle->cause != GAP_LAUNCH)
		return;
	pass->idle_ns += min_u64(idle->length_ns,
		query_ns(pass, idle->tid, pass->devices[at].counted_to_ns, idle->end_ns));
	pass->devices[at].counted_to_ns = idle->end_ns;
}

/* Returns for how long at most the GPU is idle because of queries: a host that is ahead of the GPU
 * loses nothing by them. */
static uint64_t starved_by_queries(struct diagnosis *diagnosis, const struct occurrences *calls)
{
	struct diagnose_facts *facts = &diagnosis->facts;
	struct query_pass pass = { .calls = facts->query_calls,
		.count = facts->query_call_count,
		.recorded = calls == &facts->queries.recorded };
	const struct late_idle *idle;

	qsort(facts->query_calls, facts->query_call_count, sizeof *facts->query_calls, by_thread);
	for (spill_list_rewind(diagnosis->late_idle);
		(idle = spill_list_next(diagnosis->late_idle));)
		add_starved(&pass, idle);
	return pass.idle_ns;
}

void diagnose_attribute_queries(struct diagnosis *diagnosis, struct finding *finding)
{
	const struct diagnose_facts *facts = &diagnosis->facts;
	const struct occurrences *calls = call_occurrences_shown(&facts->queries);
	uint64_t gain_ns = recurring_ns(diagnosis, calls);

	if (calls->count < LIMIT_CALLS_FEW ||
		!diagnose_is_share(gain_ns, facts->steady_ns, LIMIT_LITTLE))
		return;
	if (facts->operations)
		gain_ns = min_u64(gain_ns, starved_by_queries(diagnosis, calls));
	if (!diagnose_is_share(gain_ns, facts->steady_ns, LIMIT_LITTLE)) {
		finding_set_small(
			finding, gain_ns, LIMIT_LITTLE, facts->steady_ns, steady_name(diagnosis));
		return;
	}
	report_steady_calls(diagnosis, finding, calls);
	finding->impact_ns = gain_ns;
	SET_TEXT(finding->sentence, "Libraries repeat planning work: attribute, occupancy and "
				    "heuristics queries recur in the steady-state part.");
	SET_TEXT(finding->next,
		"Plan once: keep handles, plans and workspaces, keep shapes the same "
		"(torch.backends.cudnn.benchmark with fixed shapes), or capture %s, which makes no "
		"queries.",
		diagnose_traits(diagnosis).launches_graphs
			? "what makes these calls in a CUDA graph, too"
			: "the step in a CUDA graph");
	finding->upper_bound = true;
}

/* Reports idle time of the GPU. The host's time costs nothing while the GPU has work. */
static void idle_while_allocating(struct diagnosis *diagnosis, struct finding *finding)
{
	const struct diagnose_facts *facts = &diagnosis->facts;

	finding->state = FINDING_FOUND;
	finding->confidence = CONFIDENCE_HIGH;
	SET_TEXT(finding->reason,
		"the thread that launched next was in these calls while the GPU was idle");
	SET_TEXT(finding->sentence,
		"The GPU is idle while the host allocates or frees device memory.");
	SET_TEXT(finding->evidence, "%s idle of %s; in the whole trace %s, the longest %s",
		diagnose_time(diagnosis, finding->impact_ns),
		diagnose_time(diagnosis, finding->whole_ns),
		diagnose_plural(diagnosis, facts->cause_gaps[GAP_ALLOCATION], "such interval"),
		diagnose_time(diagnosis, facts->cause_longest_ns[GAP_ALLOCATION]));
	SET_TEXT(finding->view, "idle");
	finding_set_class_place(diagnosis, finding, BOUND_ALLOCATION, NULL, 0);
	if (!finding->node)
		finding->node = facts->cause_node[GAP_ALLOCATION];
	finding->count = facts->cause_gaps[GAP_ALLOCATION];
}

/* Returns true if calls in the steady part take much of it. */
static bool calls_while_steady(struct diagnosis *diagnosis, struct finding *finding)
{
	const struct diagnose_facts *facts = &diagnosis->facts;
	const struct occurrences *calls = call_occurrences_shown(&facts->allocations);

	if (calls->count < LIMIT_CALLS_FEW ||
		!diagnose_is_share(recurring_ns(diagnosis, calls), facts->steady_ns, LIMIT_LITTLE))
		return false;
	report_steady_calls(diagnosis, finding, calls);
	SET_TEXT(finding->sentence,
		"The program allocates from or frees to the driver in steady state: these calls "
		"take %s of the time, and each of them may stall the GPU.",
		diagnose_share(diagnosis, calls->total_ns, facts->steady_ns));
	finding->impact_bytes = calls->bytes;
	/* A call costs a GPU program nothing while the GPU has work. */
	finding->upper_bound = true;
	if (facts->operations)
		finding->impact_ns = min_u64(finding->impact_ns, facts->idle_ns);
	return true;
}

/* Returns true if the GPU is idle again and again while the host allocates or frees: one interval
 * with most of that time is nothing that recurs. */
static bool idle_repeatedly(struct diagnosis *diagnosis)
{
	const struct diagnose_facts *facts = &diagnosis->facts;

	return diagnosis->reports_small ||
	       (facts->cause_gaps[GAP_ALLOCATION] >= LIMIT_CALLS_FEW &&
		       (diagnose_bound(diagnosis)->steps > 1 ||
			       facts->cause_longest_ns[GAP_ALLOCATION] <=
				       facts->cause_ns[GAP_ALLOCATION] / 2));
}

void diagnose_steady_allocation(struct diagnosis *diagnosis, struct finding *finding)
{
	const struct diagnose_facts *facts = &diagnosis->facts;

	if (facts->operations && idle_repeatedly(diagnosis) &&
		/* Allocations before the first step are part of getting ready. */
		finding_set_class(diagnosis, finding, BOUND_ALLOCATION,
			diagnose_bound(diagnosis)->steps ? 0 : facts->cause_ns[GAP_ALLOCATION],
			LIMIT_WORTH))
		idle_while_allocating(diagnosis, finding);
	else if (!calls_while_steady(diagnosis, finding))
		return;
	SET_TEXT(finding->next, "Allocate once and reuse: %s.",
		diagnose_traits(diagnosis).uses_pytorch ? "no torch.cuda.empty_cache() in the "
							  "loop, and the same shapes in each step"
		: diagnose_traits(diagnosis).is_hip ? "buffers of the largest size, or a memory "
						      "pool (hipMallocAsync)"
						    : "buffers of the largest size, or a memory "
						      "pool (cudaMallocAsync)");
}

/* Notes pageable copies that take little time on the GPU, but for which the host is blocked. */
static void note_blocking_copies(struct diagnosis *diagnosis, struct finding *finding)
{
	const struct diagnose_facts *facts = &diagnosis->facts;
	const struct occurrences *copies = &facts->pageable;
	uint32_t node;
	const uint64_t blocked_ns = blocking_pageable_ns(facts, &node);

	if (!copies->count || !diagnose_is_share(blocked_ns, facts->span_ns, LIMIT_LITTLE))
		return;
	finding->state = FINDING_NOTE;
	finding->confidence = CONFIDENCE_HIGH;
	SET_TEXT(finding->reason, "CUPTI reports the memory kind of each copy");
	SET_TEXT(finding->sentence,
		"Copies from or to pageable memory take little time themselves, but the host waits "
		"for %s in the calls around them.",
		diagnose_time(diagnosis, blocked_ns));
	finding->see = "blocking-calls";
	SET_TEXT(finding->evidence, "%s of %s copies from or to the host, %s in %s",
		diagnose_count(diagnosis, copies->count),
		diagnose_count(diagnosis, facts->host_copies),
		diagnose_bytes(diagnosis, copies->bytes),
		diagnose_time(diagnosis, copies->total_ns));
	SET_TEXT(finding->view, "overlap");
	finding->node = node;
	occurrences_set_example(copies, finding);
	diagnose_advise_on_waits(diagnosis, finding);
	finding->count = copies->count;
}

void diagnose_pageable_copies(struct diagnosis *diagnosis, struct finding *finding)
{
	const struct diagnose_facts *facts = &diagnosis->facts;
	const struct occurrences *copies = &facts->pageable;
	const uint64_t rate = copies->total_ns ? clamp_to_u64((long double)copies->bytes * 1e9L /
							      copies->total_ns)
					       : 0;

	if (facts->host_copies && !facts->known_copies) {
		finding_set_unchecked(
			finding, "the kind of host memory of the copies is not recorded");
		return;
	}
	if (copies->count < LIMIT_CALLS_FEW ||
		!diagnose_is_share(copies->total_ns, facts->span_ns, LIMIT_LITTLE)) {
		note_blocking_copies(diagnosis, finding);
		if (finding->state == FINDING_CLEAR)
			finding_set_small(finding, copies->total_ns, LIMIT_LITTLE, facts->span_ns,
				"the GPU span");
		return;
	}
	finding_set_found(finding, CONFIDENCE_HIGH);
	SET_TEXT(finding->reason, "CUPTI reports the memory kind of each copy");
	SET_TEXT(finding->sentence,
		"Copies go between the GPU and pageable host memory; pinned memory is faster and "
		"does not block the host.");
	SET_TEXT(finding->evidence,
		"%s of %s copies from or to the host, %s in %s%s%s%s; the longest %s",
		diagnose_count(diagnosis, copies->count),
		diagnose_count(diagnosis, facts->host_copies),
		diagnose_bytes(diagnosis, copies->bytes),
		diagnose_time(diagnosis, copies->total_ns), rate ? " (" : "",
		rate ? diagnose_bytes(diagnosis, rate) : "", rate ? "/s)" : "",
		diagnose_time(diagnosis, copies->longest_ns));
	SET_TEXT(finding->next, "Use pinned memory: %s; fewer, larger copies.",
		diagnose_traits(diagnosis).uses_pytorch
			? "DataLoader(pin_memory=True) and .to(device, non_blocking=True)"
		: diagnose_traits(diagnosis).is_hip ? "hipHostMalloc or hipHostRegister"
						    : "cudaHostAlloc or cudaHostRegister");
	SET_TEXT(finding->view, "overlap");
	occurrences_set_node(copies, finding);
	finding->count = copies->count;
	finding->impact_ns = copies->total_ns;
	finding->impact_bytes = copies->bytes;
	finding->concerned = true;
}

static int by_begin(const void *a, const void *b)
{
	const uint64_t *left = a, *right = b;

	return COMPARE(*left, *right);
}

static bool is_before_gemm(const struct path_node *work, void *context)
{
	const struct diagnose_facts *facts = context;

	return work->kind == ACTIVITY_COPY &&
	       bsearch(&work->begin_ns, facts->gemm_copies, facts->gemm_copy_count,
		       sizeof *facts->gemm_copies, by_begin);
}

void diagnose_copy_before_gemm(struct diagnosis *diagnosis, struct finding *finding)
{
	const struct diagnose_facts *facts = &diagnosis->facts;
	const struct occurrences *copies = &facts->before_gemm;

	if (copies->count < LIMIT_SUCCESSION ||
		!diagnose_is_share(copies->total_ns, facts->span_ns, LIMIT_LITTLE)) {
		finding_set_small(
			finding, copies->total_ns, LIMIT_LITTLE, facts->span_ns, "the GPU span");
		return;
	}
	finding_set_found(finding, CONFIDENCE_MEDIUM);
	SET_TEXT(finding->reason, "same stream and operator, directly one after the other; the "
				  "trace does not show what the copy is for");
	SET_TEXT(finding->sentence,
		"Matrix products first copy an operand or a bias on the device.");
	SET_TEXT(finding->evidence,
		"%s device-to-device copies directly before a matrix product of the same operator, "
		"%s in %s; before %s",
		diagnose_count(diagnosis, copies->count), diagnose_bytes(diagnosis, copies->bytes),
		diagnose_time(diagnosis, copies->total_ns),
		diagnose_name(diagnosis, copies->longest_name));
	SET_TEXT(finding->next,
		"Pass the bias as an epilogue (a 1-d bias of F.linear uses cublasLt), keep "
		"operands contiguous in the layout that the product needs, and write into the "
		"result (out=, addmm_) where it is overwritten anyway.");
	SET_TEXT(finding->view, "overlap");
	occurrences_set_node(copies, finding);
	finding->count = copies->count;
	finding->impact_ns = copies->total_ns;
	finding->impact_bytes = copies->bytes;
	finding->upper_bound = true;
	qsort(diagnosis->facts.gemm_copies, facts->gemm_copy_count, sizeof *facts->gemm_copies,
		by_begin);
	finding_set_gain(diagnosis, finding, 0, is_before_gemm, &diagnosis->facts);
}
