/* SPDX-License-Identifier: MIT
 *
 * Rules about idle time of the GPU.
 */
#include "report/base/alloc.h"
#include "report/base/compare.h"
#include "report/diagnose/diagnosis_internal.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Sets the confidence of a finding about idle time: lower if the cause of much idle time is
 * unknown. */
static void finding_trust_idle(struct diagnosis *diagnosis, struct finding *finding)
{
	const struct diagnose_facts *facts = &diagnosis->facts;

	finding->confidence = CONFIDENCE_HIGH;
	SET_TEXT(finding->reason, "measured: until the next operation is launched, a gap is "
				  "attributed to what the thread that launches it does");
	if (diagnose_is_share(facts->cause_ns[GAP_UNKNOWN], facts->idle_ns, LIMIT_UNKNOWN_MAX)) {
		finding->confidence = CONFIDENCE_MEDIUM;
		SET_TEXT(finding->reason,
			"the cause of %s of the idle time is unknown, because launches or nodes of "
			"CUDA graphs are not in the trace",
			diagnose_share(diagnosis, facts->cause_ns[GAP_UNKNOWN], facts->idle_ns));
	}
}

/* Marks the rule as not checked if the GPU is idle much of the time, and most of that has no known
 * cause. */
static void check_unknown_causes(struct diagnosis *diagnosis, struct finding *finding)
{
	const struct diagnose_facts *facts = &diagnosis->facts;
	const struct run_bound *bound = diagnose_bound(diagnosis);
	const uint64_t unknown_ns = bound->ns[BOUND_UNKNOWN] - bound->not_recorded_ns;

	if (diagnose_is_share(facts->idle_ns, facts->span_ns, LIMIT_LAUNCH_IDLE) &&
		diagnose_is_share(
			facts->cause_ns[GAP_UNKNOWN], facts->idle_ns, LIMIT_UNKNOWN_HIDES)) {
		finding->state = FINDING_UNCHECKED;
		/* the figure of the verdict and of `idle` */
		SET_TEXT(finding->reason,
			"the GPU is idle for %s of %s for an unknown cause: launches or nodes of "
			"CUDA graphs are not in the trace",
			unknown_ns ? diagnose_share(diagnosis, unknown_ns, bound->whole_ns)
				   : diagnose_share(diagnosis, facts->cause_ns[GAP_UNKNOWN],
					     facts->span_ns),
			unknown_ns ? run_bound_time_name(bound) : "the GPU span");
	}
}

/* The idle time that a late host caused: the causes launch-bound and launch latency. */
struct launch_idle {
	uint64_t ns, short_ns, short_gaps;
	const struct occurrences *longer; /* gaps of LIMIT_LONG_GAP_NS or more, after start-up */
};

static struct launch_idle launch_idle_of(const struct diagnosis *diagnosis)
{
	struct launch_idle idle = { .longer = &diagnosis->facts.launch_long };

	idle.short_ns = diagnose_short_launch_gaps(diagnosis, &idle.short_gaps);
	idle.ns = idle.short_ns + idle.longer->total_ns;
	return idle;
}

static void explain_startup(struct diagnosis *diagnosis, struct finding *finding)
{
	const struct occurrences *before = &diagnosis->facts.launch_long_before_steps;

	SET_TEXT(finding->sentence,
		"Before the first step the GPU is idle for %s, in intervals of %s or longer.",
		diagnose_time(diagnosis, before->total_ns),
		diagnose_time(diagnosis, LIMIT_LONG_GAP_NS));
	SET_TEXT(finding->evidence, "%s; the longest %s, at %s",
		diagnose_plural(diagnosis, before->count, "interval"),
		diagnose_time(diagnosis, before->longest_ns),
		diagnose_time(diagnosis, before->longest_at_ns));
	SET_TEXT(finding->next, "This matters only if the program restarts often: look at what the "
				"host does meanwhile.");
}

/* Reports idle time before the first step as a note only, because getting ready may take long and
 * is no fault of the steps. */
static void report_startup(struct diagnosis *diagnosis, struct finding *finding)
{
	const struct diagnose_facts *facts = &diagnosis->facts;
	const struct occurrences *before = &facts->launch_long_before_steps;

	if (!diagnose_is_share(before->total_ns, facts->span_ns, LIMIT_WORTH)) {
		check_unknown_causes(diagnosis, finding);
		return;
	}
	finding->state = FINDING_NOTE;
	explain_startup(diagnosis, finding);
	finding_trust_idle(diagnosis, finding);
	SET_TEXT(finding->view, "idle");
	occurrences_set_node(before, finding);
	finding->count = before->count;
}

/* Writes what makes up the idle time: short gaps, long gaps, and what is left out. */
static void list_launch_gaps(
	struct diagnosis *diagnosis, struct finding *finding, const struct launch_idle *idle)
{
	const struct diagnose_facts *facts = &diagnosis->facts;
	const uint64_t before = facts->launch_long_before_steps.total_ns,
		       ends = diagnose_bound(diagnosis)->ends_ns[BOUND_LAUNCH];
	char shorter[128] = "", longer[256] = "";

	if (idle->short_gaps)
		SET_TEXT(shorter, "%s in %s shorter than %s",
			diagnose_time(diagnosis, idle->short_ns),
			diagnose_plural(diagnosis, idle->short_gaps, "interval"),
			diagnose_time(diagnosis, LIMIT_LONG_GAP_NS));
	if (idle->longer->count)
		SET_TEXT(longer, "%s%s in %s of %s or more, the longest %s, at %s",
			*shorter ? "; " : "", diagnose_time(diagnosis, idle->longer->total_ns),
			diagnose_plural(diagnosis, idle->longer->count, "interval"),
			diagnose_time(diagnosis, LIMIT_LONG_GAP_NS),
			diagnose_time(diagnosis, idle->longer->longest_ns),
			diagnose_time(diagnosis, idle->longer->longest_at_ns));
	SET_TEXT(finding->evidence,
		"parts of gaps, from the first GPU operation to the last: %s%s; launch latency is "
		"%s of "
		"this%s%s; %s%sthe GPU is busy for %s of %s, with %s "
		"of %s on average",
		shorter, longer, diagnose_time(diagnosis, facts->cause_ns[GAP_LATENCY]),
		before ? "; intervals before the first step are excluded: " : "",
		before ? diagnose_time(diagnosis, before) : "",
		ends ? diagnose_time(diagnosis, ends) : "",
		ends ? " at the beginning or the end of steps; " : "",
		diagnose_time(diagnosis, facts->busy_ns), diagnose_time(diagnosis, facts->span_ns),
		diagnose_plural(diagnosis, facts->operations, "operation"),
		diagnose_time(
			diagnosis, facts->busy_ns / (facts->operations ? facts->operations : 1)));
}

/* Returns true if most of the time for which the host was late is in gaps of LIMIT_LONG_GAP_NS or
 * more. Then the run is host-bound, not launch-bound, in the verdict as in the finding. */
static bool is_mostly_long(struct diagnosis *diagnosis, const struct launch_idle *idle)
{
	const struct run_bound *bound = diagnose_bound(diagnosis);

	if (bound->steps &&
		diagnose_is_share(run_bound_ns(bound, BOUND_LAUNCH), bound->whole_ns, LIMIT_WORTH))
		return bound->ns[BOUND_HOST] > bound->ns[BOUND_LAUNCH];
	return idle->longer->total_ns > idle->short_ns;
}

/* A wait after which the GPU has run dry takes this long or more; for so long afterwards, gaps are
 * those of filling it again. */
#define DRAINING_NS LIMIT_HELD_NS
#define REFILL_NS 2000000u

/* Returns the idle time of launch-bound gaps just after a call returns. */
static uint64_t refill_ns(const struct diagnose_facts *facts, const struct blocking_call *call)
{
	uint64_t ns = 0;

	for (size_t i = 0; i < facts->launch_gap_count; i++) {
		const struct launch_gap *gap = &facts->launch_gaps[i];

		if (gap->at_ns + gap->length_ns >= call->end_ns &&
			gap->at_ns < call->end_ns + REFILL_NS)
			ns += gap->length_ns;
	}
	return ns;
}

/* More such waits recur. */
#define DRAINING_MAX 256u

/* Returns the wait after which more than half of the idle time is. `idle_ns`: all of it. NULL:
 * there is none, or it takes several. */
static const struct blocking_call *only_refill(const struct diagnose_facts *facts, uint64_t idle_ns)
{
	unsigned examined = 0;

	for (size_t i = 0; i < facts->blocking_count; i++) {
		const struct blocking_call *call = &facts->blocking[i];

		if (call->copies || call->end_ns - call->begin_ns < DRAINING_NS)
			continue;
		if (++examined > DRAINING_MAX)
			return NULL;
		if (refill_ns(facts, call) > idle_ns / 2)
			return call;
	}
	return NULL;
}

/* Sets the advice where most of the idle time follows one wait: CUDA graphs are for gaps that
 * recur. */
static bool advise_on_refill(
	struct diagnosis *diagnosis, struct finding *finding, const struct launch_idle *idle)
{
	const struct blocking_call *call = only_refill(&diagnosis->facts, idle->ns);

	if (!call)
		return false;
	SET_TEXT(finding->next,
		"Remove one wait: %s of this idle time follow the call of %s that returns at %s. "
		"By then the GPU has no work left, and the host has to get ahead of it again. This "
		"happens once, so CUDA graphs would gain little.",
		diagnose_time(diagnosis, refill_ns(&diagnosis->facts, call)),
		diagnose_name(diagnosis, call->name), diagnose_time(diagnosis, call->end_ns));
	return true;
}

static void advise_on_launches(struct diagnosis *diagnosis, struct finding *finding)
{
	const struct program_traits traits = diagnose_traits(diagnosis);

	SET_TEXT(finding->next, "Give the GPU more work per launch: %s%s%s, a larger batch.%s",
		diagnose_graphs_advice(diagnosis),
		!traits.uses_pytorch      ? ", fused kernels"
		: !traits.launches_graphs ? " or torch.compile(mode=\"reduce-overhead\")"
					  : "",
		traits.trains && traits.uses_pytorch && !traits.has_foreach_optimizer
			? ", fused or foreach optimizers"
			: "",
		traits.has_python_stacks ? " Recording Python stacks slows the host as well: "
					   "measure once without them."
					 : "");
}

static void advise_on_host(struct diagnosis *diagnosis, struct finding *finding)
{
	const struct program_traits traits = diagnose_traits(diagnosis);
	const struct node *node = &diagnosis->profile->tree->nodes[finding->node];
	const bool is_mpi = host_activity_mpi_share(diagnosis) != NULL,
		   is_sampled = host_activity_sampled(diagnosis) != NULL;

	SET_TEXT(finding->next, "%s%s%s.%s%s",
		is_sampled ? "Do on the GPU, or while it works, what the CPU samples show"
			   : "Look at what the host does meanwhile: ",
		is_sampled            ? ""
		: traits.uses_pytorch ? "preparing data, checkpoints, logging, loading of "
					"libraries at a first call"
				      : "input and output, MPI, computation on the CPU",
		is_sampled ? " (pperf-report idle lists the functions)"
		: traits.uses_pytorch || traits.has_ranges
			? " (pperf-report tree -m cpu shows the ranges)"
			: "; NVTX ranges around them would show it",
		is_mpi ? " Overlap MPI with GPU work (MPI_Isend or MPI_Irecv, and the wait later), "
			 "and compare the ranks: time in MPI may be waiting for a late one."
		       : "",
		finding->node && node->kind != NODE_UNATTRIBUTED
			? " The call path below `where` launched the work after most of this idle "
			  "time."
			: "");
}

/* Returns true if the GPU was idle for long enough because the host was late. */
static bool is_host_late(struct diagnosis *diagnosis, const struct launch_idle *idle)
{
	const uint64_t span_ns = diagnosis->facts.span_ns;
	const struct run_bound *bound = diagnose_bound(diagnosis);
	/* In the steps, also before the first operation. Steps that are a small part of the run are
	 * checked on their own. */
	const bool by_steps = bound->steps && diagnose_is_share(diagnosis->facts.steady_ns,
						      diagnosis->facts.whole_ns, LIMIT_STEPS_SMALL);
	const uint64_t steps_ns = by_steps ? run_bound_ns(bound, BOUND_LAUNCH) : 0;

	return diagnosis->reports_small ||
	       diagnose_is_share(idle->longer->total_ns, span_ns, LIMIT_WORTH) ||
	       ((diagnose_is_share(idle->ns, span_ns, LIMIT_LAUNCH_IDLE) ||
			diagnose_is_share(steps_ns, bound->whole_ns, LIMIT_LAUNCH_IDLE)) &&
		       idle->short_gaps + idle->longer->count >= LIMIT_CALLS_FEW);
}

/* Sets the place of short and `longer` gaps together. */
static void set_place_of_gaps(
	struct diagnosis *diagnosis, struct finding *finding, const struct occurrences *longer)
{
	const struct occurrences *shorter = &diagnosis->facts.launch_short;
	const size_t room = max_u64(shorter->room, longer->room);
	uint64_t *ns = xcalloc((room + 1) * sizeof *ns);

	for (size_t id = 0; id < room; id++)
		ns[id] = (id < shorter->room ? shorter->of_node[id].total_ns : 0) +
			 (id < longer->room ? longer->of_node[id].total_ns : 0);
	finding_set_class_place(diagnosis, finding, BOUND_LAUNCH, ns, room);
	free(ns);
}

/* Reports all idle time for which the host was late, under the name of its larger part. */
static void report_late_host(struct diagnosis *diagnosis, struct finding *finding,
	const struct launch_idle *idle, bool is_long)
{
	const struct occurrences *most = is_long ? idle->longer : &diagnosis->facts.launch_short;

	finding->state = FINDING_FOUND;
	finding_set_impact(finding, occurrences_top_node(most),
		idle->short_gaps + idle->longer->count, idle->ns);
	finding_set_class(diagnosis, finding, BOUND_LAUNCH, idle->ns, LIMIT_WORTH);
	SET_TEXT(finding->sentence,
		is_long ? "The GPU is idle because the host program does something else before it "
			  "launches the next operation."
			: "The GPU is idle because the host has not launched its next operation, "
			  "or has only just launched it.");
	set_place_of_gaps(diagnosis, finding, idle->longer);
	list_launch_gaps(diagnosis, finding, idle);
	if (is_long) {
		host_activity_explain(diagnosis, finding);
		advise_on_host(diagnosis, finding);
	} else if (!advise_on_refill(diagnosis, finding, idle)) {
		advise_on_launches(diagnosis, finding);
	}
	finding_trust_idle(diagnosis, finding);
	SET_TEXT(finding->view, "idle");
	occurrences_set_example(most, finding);
}

void diagnose_launch_bound(struct diagnosis *diagnosis, struct finding *finding)
{
	const struct launch_idle idle = launch_idle_of(diagnosis);

	if (!is_host_late(diagnosis, &idle))
		report_startup(diagnosis, finding);
	else if (!is_mostly_long(diagnosis, &idle))
		report_late_host(diagnosis, finding, &idle, false);
}

void diagnose_host_bound(struct diagnosis *diagnosis, struct finding *finding)
{
	const struct launch_idle idle = launch_idle_of(diagnosis);

	if (!is_host_late(diagnosis, &idle))
		check_unknown_causes(diagnosis, finding);
	else if (is_mostly_long(diagnosis, &idle))
		report_late_host(diagnosis, finding, &idle, true);
}

/* Returns the outermost operator around a node, or the node itself. */
static uint32_t outer_operator(const struct tree *tree, uint32_t node)
{
	uint32_t found = node;

	for (; node; node = tree->nodes[node].parent)
		found = tree->nodes[node].kind == NODE_OP ? node : found;
	return found;
}

#define WAITERS_LISTED 3u

/* Sums the idle time behind waits in what the finding's cost is of, the steps or the GPU span, by
 * the name of the outermost operator. The caller frees the result. */
static uint64_t *idle_of_waiters(
	struct diagnosis *diagnosis, const struct finding *finding, size_t *names)
{
	const struct tree *tree = diagnosis->profile->tree;
	const struct run_bound *bound = diagnose_bound(diagnosis);
	const struct occurrences *gaps = &diagnosis->facts.sync_gaps;
	const bool of_steps = finding->whole_ns == bound->whole_ns && bound->node_ns[BOUND_SYNC];
	const size_t room = of_steps ? bound->nodes : gaps->room;
	uint64_t *ns = NULL;

	*names = 0;
	for (uint32_t id = 1; id < room && id < tree->count; id++) {
		const uint32_t name = tree->nodes[outer_operator(tree, id)].name;

		ARRAY_GROW(ns, *names, (size_t)name + 1);
		ns[name] += of_steps ? bound->node_ns[BOUND_SYNC][id] : gaps->of_node[id].total_ns;
	}
	return ns;
}

#define WAITERS_LISTED 3u

/* Adds which operators the waits are in, if they are in several: a small one may be unexpected, as
 * the wait of Tensor.item(). */
static void list_waiters(struct diagnosis *diagnosis, struct finding *finding)
{
	size_t names;
	uint64_t *ns = idle_of_waiters(diagnosis, finding, &names);

	for (unsigned n = 0; n < WAITERS_LISTED; n++) {
		const size_t used = strlen(finding->evidence);
		uint32_t most = 0;

		for (uint32_t name = 1; name < names; name++)
			most = ns[name] > ns[most] ? name : most;
		if (!names || !diagnose_is_share(ns[most], finding->impact_ns, LIMIT_MINOR) ||
			(!n && run_bound_is_percent(ns[most], finding->impact_ns, 99)))
			break;
		finding_set_text(finding->evidence + used, sizeof finding->evidence - used,
			"%s%s %s", n ? ", " : "; it is idle after waits in ",
			diagnose_name(diagnosis, most), diagnose_time(diagnosis, ns[most]));
		ns[most] = 0;
	}
	free(ns);
}

void diagnose_synchronisation(struct diagnosis *diagnosis, struct finding *finding)
{
	const struct diagnose_facts *facts = &diagnosis->facts;
	const struct occurrences *waits = call_occurrences_shown(&facts->waits);
	const uint64_t idle = facts->cause_ns[GAP_SYNC];

	if ((facts->cause_gaps[GAP_SYNC] < LIMIT_CALLS_FEW && !diagnosis->reports_small) ||
		!finding_set_class(diagnosis, finding, BOUND_SYNC, idle, LIMIT_WORTH)) {
		check_unknown_causes(diagnosis, finding);
		return;
	}
	finding->state = FINDING_FOUND;
	SET_TEXT(finding->sentence,
		"The GPU is idle because the host waited for it before it launched more.");
	finding_set_class_place_of(diagnosis, finding, BOUND_SYNC, &facts->sync_gaps);
	occurrences_set_example(&facts->sync_gaps, finding);
	SET_TEXT(finding->evidence,
		"%s%s idle in %s intervals, the longest %s (%s); %s waiting calls in the trace, %s "
		"in "
		"them",
		finding->impact_ns != idle ? "in the whole trace " : "",
		diagnose_time(diagnosis, idle),
		diagnose_count(diagnosis, facts->cause_gaps[GAP_SYNC]),
		diagnose_time(diagnosis, facts->cause_longest_ns[GAP_SYNC]),
		*facts->blocked_by ? facts->blocked_by : "unnamed call",
		diagnose_count(diagnosis, waits->count), diagnose_time(diagnosis, waits->total_ns));
	list_waiters(diagnosis, finding);
	diagnose_advise_on_waits(diagnosis, finding);
	finding_trust_idle(diagnosis, finding);
	SET_TEXT(finding->view, "idle");
	finding->count = facts->cause_gaps[GAP_SYNC];
}

/* Returns another process of the run that used a GPU at the same time, or NULL. Ranks are left out
 * because each has its own GPU. */
static const struct process *concurrent_process(const struct diagnosis *diagnosis)
{
	const struct process *own = diagnosis->process;

	for (size_t i = 0; i < diagnosis->processes->count; i++) {
		const struct process *other = &diagnosis->processes->all[i];

		if (other != own && other->gpu_ns && other->rank < 0 && own->rank < 0 &&
			other->pid != own->pid &&
			other->start_unix_ns <
				own->start_unix_ns + reader_duration_ns(own->reader) &&
			own->start_unix_ns < other->start_unix_ns + other->wall_ns)
			return other;
	}
	return NULL;
}

static void explain_concurrent_process(
	struct diagnosis *diagnosis, struct finding *finding, const struct process *other)
{
	const struct occurrences *waiting_gaps = &diagnosis->facts.waiting_gaps;

	SET_TEXT(finding->sentence,
		"Process %u of the same run uses a GPU at the same time; if it is the same GPU, "
		"the two take turns.",
		other->pid);
	SET_TEXT(finding->evidence,
		"it has %s of GPU work, this process %s; launched work did not start on an idle "
		"GPU in %s, %s in total",
		diagnose_time(diagnosis, other->gpu_ns),
		diagnose_time(diagnosis, diagnosis->profile->totals.gpu_sum_ns),
		diagnose_plural(diagnosis, waiting_gaps->count, "interval"),
		diagnose_time(diagnosis, waiting_gaps->total_ns));
	SET_TEXT(finding->reason, "both traces have GPU work at that time; they do not show "
				  "whether it is the same GPU");
}

/* Reports that `other` had GPU work at the same time. `has_long_gaps`: its gaps
 * are long enough for a finding. */
static void report_concurrent_process(struct diagnosis *diagnosis, struct finding *finding,
	const struct process *other, bool has_long_gaps)
{
	const struct occurrences *waiting_gaps = &diagnosis->facts.waiting_gaps;

	finding->state = has_long_gaps ? FINDING_FOUND : FINDING_NOTE;
	finding->confidence = has_long_gaps ? CONFIDENCE_MEDIUM : CONFIDENCE_LOW;
	explain_concurrent_process(diagnosis, finding, other);
	finding_set_impact(finding, occurrences_top_node(waiting_gaps), 1, waiting_gaps->total_ns);
}

enum gap_event diagnose_event(const struct diagnosis *diagnosis)
{
	const uint64_t *ns = diagnosis->facts.event_ns;
	enum gap_event most = GAP_EVENT_POSSIBLE;

	for (enum gap_event event = GAP_EVENT_KNOWN; event < GAP_EVENT_COUNT; event++)
		if (ns[event] > ns[most])
			most = event;
	return most;
}

const char *diagnose_event_call(struct diagnosis *diagnosis)
{
	return diagnose_traits(diagnosis).is_hip ? "hipStreamWaitEvent" : "cudaStreamWaitEvent";
}

#define BEGINS_EARLY_NS 1000000u

bool diagnose_waits_from_the_start(const struct diagnosis *diagnosis)
{
	const struct occurrences *waits = &diagnosis->facts.waiting_gaps;

	return waits->longest_ns && waits->longest_at_ns < BEGINS_EARLY_NS;
}

/* Sets the advice for waits whose reason the trace does not show: what they may be for, the most
 * likely first. */
static void advise_on_unexplained(struct diagnosis *diagnosis, struct finding *finding)
{
	const bool early = diagnose_waits_from_the_start(diagnosis);

	SET_TEXT(finding->next,
		"Find what the work waited for: %searlier work of its stream (kernels of a CUDA "
		"graph without records, a host function, the loading of a kernel), work of another "
		"GPU, process or rank (CUDA IPC)%s, or another process on the GPU, which "
		"nvidia-smi shows while it runs.",
		early ? "most likely work from before the trace began, because the longest wait "
			"begins with the trace; else "
		      : "",
		early ? "" : ", work from before the trace began");
}

/* Says what the work waits for, as far as it is known, and what to do. */
static void explain_event(struct diagnosis *diagnosis, struct finding *finding)
{
	const enum gap_event event = diagnose_event(diagnosis);
	const char *call = diagnose_event_call(diagnosis);

	if (event == GAP_EVENT_KNOWN) {
		SET_TEXT(finding->sentence,
			"The GPU is idle while launched work waits for an event (%s).", call);
		SET_TEXT(finding->reason, "the work was the first that its stream got after the "
					  "wait; the record of the event is in the trace, but the "
					  "GPU work before it was over");
		SET_TEXT(finding->next,
			"Find what was recorded before the event: work of another stream or GPU, "
			"of another process or rank (CUDA IPC), a host function, or work from "
			"before the trace began.");
		return;
	}
	if (event == GAP_EVENT_POSSIBLE)
		SET_TEXT(finding->sentence,
			"The GPU is idle while launched work waits, and the trace does not show "
			"for what: for an event (%s), or for earlier work of its stream.",
			call);
	else
		SET_TEXT(finding->sentence,
			"The GPU is idle while launched work waits, and the trace does not show "
			"for what: for earlier work of its stream or, less likely, for the event "
			"of the %s before it.",
			call);
	SET_TEXT(finding->reason,
		event == GAP_EVENT_POSSIBLE
			? "the work was the first that its stream got after the wait for an "
			  "event; the record of the event is not in the trace"
			: "the GPU was idle when the wait for an event was called: all GPU work in "
			  "the trace that the event could be for was over; the record of the event "
			  "is not in the trace");
	advise_on_unexplained(diagnosis, finding);
}

/* Reports that launched work waited behind waits for events while the GPU was idle. */
static void report_event_waits(struct diagnosis *diagnosis, struct finding *finding)
{
	const struct diagnose_facts *facts = &diagnosis->facts;
	const struct occurrences *waits = &facts->event_gaps;

	finding->state = FINDING_FOUND;
	finding->confidence = CONFIDENCE_MEDIUM;
	explain_event(diagnosis, finding);
	SET_TEXT(finding->evidence,
		"%s of %s or more, together %s of a span of %s; the longest %s, at %s, on stream "
		"%llu%s%s",
		diagnose_plural(diagnosis, waits->count, "wait"),
		diagnose_time(diagnosis, LIMIT_HELD_NS), diagnose_time(diagnosis, waits->total_ns),
		diagnose_time(diagnosis, facts->span_ns),
		diagnose_time(diagnosis, waits->longest_ns),
		diagnose_time(diagnosis, waits->longest_at_ns),
		(unsigned long long)facts->waiting_stream,
		*facts->host_call ? "; meanwhile the host was in " : "", facts->host_call);
	occurrences_set_node(waits, finding);
	finding->stack = facts->waiting_stack;
	finding->count = waits->count;
	finding->impact_ns = waits->total_ns;
	finding->upper_bound = true;
}

/* Reports that launched work did not start on an idle GPU. */
static void report_held_work(struct diagnosis *diagnosis, struct finding *finding)
{
	const struct diagnose_facts *facts = &diagnosis->facts;
	const struct occurrences *waiting_gaps = &facts->waiting_gaps;

	finding_set_found(finding, CONFIDENCE_LOW);
	SET_TEXT(finding->sentence,
		"The GPU is idle while launched work waits, and the trace does not show for what: "
		"another process may have used the GPU.");
	SET_TEXT(finding->evidence,
		"%s of %s or more, %s in total, of a span of %s; %s of it behind a wait for an "
		"event%s%s",
		diagnose_plural(diagnosis, waiting_gaps->count, "interval"),
		diagnose_time(diagnosis, LIMIT_HELD_NS),
		diagnose_time(diagnosis, waiting_gaps->total_ns),
		diagnose_time(diagnosis, facts->span_ns),
		diagnose_time(diagnosis, facts->event_gaps.total_ns),
		*facts->host_call ? "; in the longest the host was in " : "", facts->host_call);
	SET_TEXT(finding->reason, "a trace shows its own process only; a host function in the "
				  "stream, or the driver loading a kernel, looks the same");
	finding_set_impact(finding, occurrences_top_node(waiting_gaps), waiting_gaps->count,
		waiting_gaps->total_ns);
	finding->stack = facts->waiting_stack;
	occurrences_set_example(waiting_gaps, finding);
	if (diagnose_waits_from_the_start(diagnosis))
		advise_on_unexplained(diagnosis, finding);
}

/* Returns true if work waited on an idle GPU for much of the span. A wait for an event needs no
 * second one to be believed. */
static bool waited_much(const struct diagnosis *diagnosis)
{
	const struct diagnose_facts *facts = &diagnosis->facts;

	return (facts->waiting_gaps.count >= LIMIT_CALLS_FEW &&
		       diagnose_is_share(
			       facts->waiting_gaps.total_ns, facts->span_ns, LIMIT_WORTH)) ||
	       diagnose_is_share(facts->event_gaps.total_ns, facts->span_ns, LIMIT_WORTH);
}

/* Returns true if most of the waits are for events whose record is in the trace. */
static bool are_for_events(const struct diagnosis *diagnosis)
{
	return diagnosis->facts.event_ns[GAP_EVENT_KNOWN] >
	       diagnosis->facts.waiting_gaps.total_ns / 2;
}

/* Notes that the first operation waited long after its launch. That is before the GPU span, and the
 * GPU may have worked meanwhile, so it is no idle time that could be gained. */
static void note_first_wait(struct diagnosis *diagnosis, struct finding *finding)
{
	const struct first_wait_fact *wait = &diagnosis->facts.first_wait;

	if (!diagnose_is_share(wait->ns, diagnosis->facts.run_ns, LIMIT_WORTH))
		return;
	finding->state = FINDING_NOTE;
	finding->confidence = CONFIDENCE_LOW;
	finding->node = wait->node;
	finding->stack = wait->stack;
	finding->count = 1;
	SET_TEXT(finding->sentence,
		"The first GPU operation began %s after its launch, most likely because the GPU "
		"had work from before the trace began.",
		diagnose_time(diagnosis, wait->ns));
	SET_TEXT(finding->evidence,
		"launched at %s on stream %llu, begun at %s; the wait is %s of the run, and before "
		"the GPU span: no share of that has it",
		diagnose_time(diagnosis, wait->at_ns), (unsigned long long)wait->stream,
		diagnose_time(diagnosis, wait->at_ns + wait->ns),
		diagnose_share(diagnosis, wait->ns, diagnosis->facts.run_ns));
	SET_TEXT(finding->reason, "the trace does not show what the GPU did before");
	SET_TEXT(finding->next,
		"Begin the recording earlier, or synchronise before it begins, to see whether the "
		"GPU works or is idle in that time.");
}

void diagnose_event_wait(struct diagnosis *diagnosis, struct finding *finding)
{
	SET_TEXT(finding->view, "idle");
	if (waited_much(diagnosis) && are_for_events(diagnosis))
		report_event_waits(diagnosis, finding);
}

void diagnose_unexplained_wait(struct diagnosis *diagnosis, struct finding *finding)
{
	const struct process *other = concurrent_process(diagnosis);
	const struct diagnose_facts *facts = &diagnosis->facts;
	const bool much = waited_much(diagnosis) && !are_for_events(diagnosis);

	SET_TEXT(finding->view, other ? "queue --all" : "idle");
	SET_TEXT(finding->next,
		"Check with nvidia-smi while it runs whether another process uses the GPU; if so, "
		"give each its own GPU (CUDA_VISIBLE_DEVICES) or use MPS; if not, look at what the "
		"longest of these waits was for (pperf-report idle).");
	if (much && facts->event_gaps.total_ns > facts->waiting_gaps.total_ns / 2)
		report_event_waits(diagnosis, finding);
	else if (other)
		report_concurrent_process(diagnosis, finding, other, much);
	else if (much)
		report_held_work(diagnosis, finding);
	else
		note_first_wait(diagnosis, finding);
}
