/* SPDX-License-Identifier: MIT
 *
 * The rule about a host that is blocked in calls which wait for the GPU: synchronising calls, and
 * copies that end before their call returns, such as those to pageable memory and Tensor.item().
 *
 * While the host is blocked, it launches nothing, so that the GPU starves afterwards. Without these
 * calls, the run gets shorter by their time at most, and by no more than the GPU is idle for want
 * of launches, or as it waits for copy calls. The time is that of one thread, because several
 * threads may be blocked at once: of those that launch kernels, the one that is blocked longest.
 */
#include "report/base/alloc.h"
#include "report/base/compare.h"
#include "report/diagnose/diagnosis_internal.h"
#include <stdlib.h>

static struct blocked_thread *blocked_thread_of(struct diagnose_facts *facts, uint32_t tid)
{
	for (size_t i = facts->blocked_count; i-- > 0;)
		if (facts->blocked[i].tid == tid)
			return &facts->blocked[i];
	*ARRAY_ADD(facts->blocked, facts->blocked_room,
		facts->blocked_count) = (struct blocked_thread){ .tid = tid };
	return &facts->blocked[facts->blocked_count - 1];
}

static bool is_examined(const struct diagnosis *diagnosis, uint32_t step, uint64_t at_ns)
{
	return !diagnosis->facts.has_steps || diagnose_is_steady(diagnosis, step, at_ns);
}

void blocking_add_work(struct diagnosis *diagnosis, const struct activity *work)
{
	struct blocked_thread *thread;

	if (!work->has_call || !work->tid)
		return;
	thread = blocked_thread_of(&diagnosis->facts, work->tid);
	thread->kernels += work->kind == ACTIVITY_KERNEL;
	if (work->kind != ACTIVITY_COPY || work->of_graph || work->end_ns > work->call_end_ns ||
		!is_examined(diagnosis, work->step, work->call_begin_ns))
		return;
	occurrences_add(&thread->calls, work->owner, work->name, work->call_begin_ns,
		work->call_end_ns - work->call_begin_ns);
	thread->copies++;
	thread->copies_ns += work->call_end_ns - work->call_begin_ns;
	thread->moving_ns += work->duration_ns;
}

void blocking_add_call(struct diagnosis *diagnosis, const struct activity *call)
{
	if (call->kind == ACTIVITY_WAIT && is_examined(diagnosis, call->step, call->begin_ns))
		occurrences_add(&blocked_thread_of(&diagnosis->facts, call->tid)->calls,
			call->owner, call->name, call->begin_ns, call->duration_ns);
}

void blocking_free(struct diagnose_facts *facts)
{
	for (size_t i = 0; i < facts->blocked_count; i++)
		free(facts->blocked[i].calls.of_node);
	free(facts->blocked);
}

static const struct blocked_thread *longest_blocked(const struct diagnose_facts *facts)
{
	const struct blocked_thread *most = NULL;

	for (size_t i = 0; i < facts->blocked_count; i++)
		if (facts->blocked[i].kernels >= LIMIT_CALLS_FEW &&
			(!most || facts->blocked[i].calls.total_ns > most->calls.total_ns))
			most = &facts->blocked[i];
	return most;
}

/* Returns for how long the GPU is idle for want of launches, or waits for the host's copy calls. */
static uint64_t starved_ns(const struct run_bound *bound)
{
	return run_bound_ns(bound, BOUND_LAUNCH) + bound->ns[BOUND_SYNC] +
	       bound->ns[BOUND_COPY_CALLS];
}

static void report_blocked(
	struct diagnosis *diagnosis, struct finding *finding, const struct blocked_thread *thread)
{
	const struct occurrences *calls = &thread->calls;
	const struct run_bound *bound = diagnose_bound(diagnosis);

	finding_set_found(finding, CONFIDENCE_MEDIUM);
	SET_TEXT(finding->reason,
		"the calls are measured; the impact is an upper bound, because other idle time of "
		"the GPU may have other reasons");
	SET_TEXT(finding->sentence,
		"The host is blocked in calls that wait for the GPU: %s, for %s. It launches "
		"nothing meanwhile.",
		diagnose_plural(diagnosis, calls->count, "call"),
		diagnose_time(diagnosis, calls->total_ns));
	finding_set_place_of(diagnosis, finding, calls);
	SET_TEXT(finding->evidence,
		"%s of thread %u, of %s; the longest %s (%s), at %s; in copies that end before "
		"their call returns: %s, %s, in which the copies themselves run for %s; for want "
		"of launches, or in copy calls, the GPU is idle for %s",
		diagnose_time(diagnosis, calls->total_ns), thread->tid,
		diagnose_time(diagnosis, bound->whole_ns),
		diagnose_time(diagnosis, calls->longest_ns),
		diagnose_name(diagnosis, calls->longest_name),
		diagnose_time(diagnosis, calls->longest_at_ns),
		diagnose_plural(diagnosis, thread->copies, "call"),
		diagnose_time(diagnosis, thread->copies_ns),
		diagnose_time(diagnosis, thread->moving_ns),
		diagnose_time(diagnosis, starved_ns(bound)));
	diagnose_advise_on_waits(diagnosis, finding);
	SET_TEXT(finding->view, "idle");
	occurrences_set_example(calls, finding);
}

uint64_t blocking_gain(struct diagnosis *diagnosis, uint64_t *calls)
{
	const struct blocked_thread *thread = longest_blocked(&diagnosis->facts);
	struct finding sync = { .rule = NULL };

	*calls = thread ? thread->calls.count : 0;
	/* The rule `synchronisation` has the idle time behind waits, which is measured. */
	if (*calls < LIMIT_CALLS_FEW || finding_set_class(diagnosis, &sync, BOUND_SYNC,
						diagnosis->facts.cause_ns[GAP_SYNC], LIMIT_WORTH))
		return 0;
	return min_u64(thread->calls.total_ns, starved_ns(diagnose_bound(diagnosis)));
}

void diagnose_blocking_calls(struct diagnosis *diagnosis, struct finding *finding)
{
	const struct run_bound *bound = diagnose_bound(diagnosis);
	uint64_t calls;
	const uint64_t gain_ns = blocking_gain(diagnosis, &calls);

	if (!diagnose_is_share(gain_ns, bound->whole_ns, LIMIT_WORTH))
		return;
	finding_set_impact(finding, 0, calls, gain_ns);
	finding->whole_ns = bound->whole_ns;
	finding->whole_name = run_bound_time_name(bound);
	report_blocked(diagnosis, finding, longest_blocked(&diagnosis->facts));
}
