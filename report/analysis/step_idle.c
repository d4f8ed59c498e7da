/* SPDX-License-Identifier: MIT */
#include "report/analysis/step_idle.h"
#include "report/analysis/host_ranges.h"
#include "report/base/alloc.h"
#include "report/base/compare.h"
#include "report/base/search.h"
#include "report/gpu/device_timeline.h"
#include <stdlib.h>

/* From the first operation of a device to its last. */
struct device_span {
	uint32_t device;
	uint32_t first_tid; /* thread that launched the first; 0: unknown */
	uint64_t first_ns, last_ns;
	uint64_t ready_ns;    /* from when the GPU could have started the first (gap_cause.h) */
	uint32_t first_owner; /* of the first: the node of its call */
	bool begun, first_has_call; /* first_has_call: the launch of the first is in the trace */
};

unsigned idle_cause(enum gap_cause cause, uint64_t length_ns)
{
	return cause == GAP_LAUNCH && length_ns >= STEP_IDLE_LONG_NS ? IDLE_HOST : cause;
}

const char *idle_cause_name(unsigned cause)
{
	return cause == IDLE_HOST ? IDLE_HOST_NAME : gap_cause_name((enum gap_cause)cause);
}

uint32_t idle_part_node(const struct gap_part *part, const struct activity *work)
{
	return part->blocked_owner ? part->blocked_owner : work->owner;
}

struct step_idle step_idle_begin(const struct process *process)
{
	struct step_idle sums = { .process = process };
	const struct steps *steps = process->steps;

	if (process->profile->options.steps || steps_overlap(steps))
		return sums;
	for (size_t i = 0; steps && i < steps->count; i++) {
		if (steps->steps[i].kind != STEP_USUAL)
			continue;
		sums.steps++;
		sums.steps_ns += steps->steps[i].window_end_ns - steps->steps[i].window_begin_ns;
	}
	return sums;
}

DEFINE_COUNT_WHILE(steps_over, struct step, item->window_end_ns <= limit)

/* Returns the index of the first step whose window ends after `at_ns`. `near` is tried before a
 * search, and the step after it. */
static size_t first_step_after(const struct steps *steps, size_t near, uint64_t at_ns)
{
	for (size_t i = near; i <= near + 1 && i < steps->count; i++)
		if (steps->steps[i].window_end_ns > at_ns &&
			(!i || steps->steps[i - 1].window_end_ns <= at_ns))
			return i;
	return steps_over(steps->steps, steps->count, at_ns);
}

uint64_t step_idle_counted_near(
	const struct step_idle *sums, size_t *near, uint64_t from_ns, uint64_t to_ns)
{
	const struct steps *steps = sums->process->steps;
	uint64_t sum = 0;

	if (to_ns <= from_ns)
		return 0;
	if (!sums->steps)
		return to_ns - from_ns;
	*near = first_step_after(steps, *near, from_ns);
	for (size_t i = *near; i < steps->count && steps->steps[i].window_begin_ns < to_ns; i++) {
		const uint64_t from = max_u64(from_ns, steps->steps[i].window_begin_ns),
			       to = min_u64(to_ns, steps->steps[i].window_end_ns);

		if (steps->steps[i].kind == STEP_USUAL && to > from)
			sum += to - from;
	}
	return sum;
}

uint64_t step_idle_counted(const struct step_idle *sums, uint64_t from_ns, uint64_t to_ns)
{
	size_t near = 0;

	return step_idle_counted_near(sums, &near, from_ns, to_ns);
}

static void notify_counted(
	const struct step_idle *sums, enum gap_cause cause, uint32_t node, uint64_t ns)
{
	if (sums->counted && ns)
		sums->counted(sums->context, cause, node, ns);
}

/* Counts `counted_ns` of an interval in which the host was late. */
static void add_late_host(struct step_idle *sums, uint64_t length_ns, uint64_t counted_ns)
{
	if (length_ns < STEP_IDLE_LONG_NS || !counted_ns)
		return;
	sums->long_ns += counted_ns;
	sums->long_gaps++;
	sums->longest_ns = max_u64(sums->longest_ns, length_ns);
}

void step_idle_add(struct step_idle *sums, const struct idle_part *idle)
{
	const struct gap_part *part = &idle->part;
	const uint64_t counted = sums->steps ? min_u64(step_idle_counted(
							       sums, part->begin_ns, part->end_ns),
						       idle->length_ns)
					     : idle->length_ns;

	sums->ns[part->cause] += counted;
	sums->gaps[part->cause] += counted != 0;
	notify_counted(sums, part->cause, idle_part_node(part, idle->ended_by), counted);
	if (part->cause == GAP_LAUNCH || part->cause == GAP_LATENCY)
		add_late_host(sums, idle->length_ns, counted);
	if (part->cause == GAP_LAUNCH && idle->length_ns >= STEP_IDLE_LONG_NS && counted) {
		sums->long_launch_ns += counted;
		sums->long_launch_gaps++;
	}
}

static void add_span(struct device_span *span, const struct activity *work)
{
	if (!span->begun) {
		span->first_ns = work->begin_ns;
		span->first_tid = work->has_call ? work->tid : 0;
		span->first_has_call = work->has_call;
		span->first_owner = work->owner;
		span->ready_ns = gap_wait_begin(
			work->call_begin_ns, work->call_end_ns, work->begin_ns);
		span->begun = true;
	}
	span->last_ns = max_u64(span->last_ns, work->end_ns);
}

/* Adds the time from `from_ns` to `to_ns`, in which a device has no work yet, or no more. */
static void add_end(struct step_idle *sums, struct process *process, uint32_t tid, uint64_t from_ns,
	uint64_t to_ns)
{
	const struct host_ranges *host = host_ranges_of(process);
	uint64_t late_ns = step_idle_counted(sums, from_ns, to_ns);
	const struct host_range *range;

	while (tid && (range = host_ranges_first(host, tid, from_ns, to_ns))) {
		const uint64_t until = min_u64(range->end_ns, to_ns),
			       length = step_idle_counted(
				       sums, max_u64(range->begin_ns, from_ns), until);
		const enum gap_cause cause = range->kind == HOST_RANGE_DATA ? GAP_DATA
									    : GAP_COMPILATION;

		sums->ends_ns[cause] += length;
		notify_counted(sums, cause, range->node, length);
		late_ns -= length;
		from_ns = until;
	}
	sums->ends_ns[GAP_LAUNCH] += late_ns;
	add_late_host(sums, late_ns, late_ns);
}

/* Adds the time before the first operation of a device: the host was late until the launch, and
 * then the operation waited. */
static void add_begin(
	struct step_idle *sums, struct process *process, const struct device_span *span)
{
	const uint64_t waited_ns = step_idle_counted(sums, span->ready_ns, span->first_ns);

	if (!span->first_has_call) {
		sums->ends_ns[GAP_UNKNOWN] += step_idle_counted(sums, 0, span->first_ns);
		return;
	}
	add_end(sums, process, span->first_tid, 0, span->ready_ns);
	sums->ends_ns[GAP_UNEXPLAINED] += waited_ns;
	notify_counted(sums, GAP_UNEXPLAINED, span->first_owner, waited_ns);
}

/* What finds the first and the last operation of each device. */
struct ends_reading {
	struct step_idle *sums;
	struct process *process;
	struct device_span spans[TIMELINE_DEVICES];
};

static void add_to_spans(void *context, const struct activity *one)
{
	struct ends_reading *reading = context;

	if (activity_is_work(one) && one->timed)
		add_span(device_slot(reading->spans, &reading->sums->devices,
				 sizeof *reading->spans, one->device),
			one);
}

static void end_spans(void *context)
{
	struct ends_reading *reading = context;
	struct step_idle *sums = reading->sums;

	for (size_t i = 0; i < sums->devices; i++) {
		const struct device_span *span = &reading->spans[i];

		add_begin(sums, reading->process, span);
		add_end(sums, reading->process, span->first_tid, span->last_ns,
			reading->process->profile->totals.wall_ns);
	}
	free(reading);
}

struct activity_visitor step_idle_ends_begin(struct step_idle *sums, struct process *process)
{
	struct ends_reading *reading;

	if (!sums->steps)
		return (struct activity_visitor){ .add = NULL };
	reading = xcalloc(sizeof *reading);
	reading->sums = sums;
	reading->process = process;
	return (struct activity_visitor){
		.context = reading, .add = add_to_spans, .end = end_spans
	};
}
