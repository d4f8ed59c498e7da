/* SPDX-License-Identifier: MIT
 *
 * The rule about a host that is blocked in calls which wait for the GPU: synchronising calls,
 * copies that end before their call returns, such as those to pageable memory and Tensor.item(),
 * and copies from pageable memory that begin in their call after earlier work of their stream.
 *
 * A host that launches faster than the GPU runs is ahead of it. While the host is blocked, the GPU
 * runs what was launched, and later it is idle, where the host is too slow. So without a call, the
 * run gets shorter by the length of the call at most, and by no more than the GPU is idle, for want
 * of the host, from the return of the call to the end of the next such call: there the host waits
 * for the GPU again. The idle time before the first of them returns has other reasons. Successive
 * calls at one call path count as one, because one change removes them: a copy and the wait for it,
 * or one call in each step. The calls are those of all threads that launch kernels on the same GPU,
 * so that each idle nanosecond is counted once.
 *
 * Without all of the calls together, more may be gained: then the host does not wait at the next
 * one. That is a finding too, which says that it takes all of them.
 */
#include "report/analysis/step_idle.h"
#include "report/base/alloc.h"
#include "report/base/compare.h"
#include "report/base/search.h"
#include "report/base/spill_list.h"
#include "report/diagnose/diagnosis_internal.h"
#include "report/gpu/device_timeline.h"
#include "report/run/call_stack.h"
#include <stdlib.h>
#include <string.h>

static struct launching_thread *launching_thread_of(
	struct diagnose_facts *facts, uint32_t tid, uint32_t device)
{
	for (size_t i = facts->launching_count; i-- > 0;)
		if (facts->launching[i].tid == tid && facts->launching[i].device == device)
			return &facts->launching[i];
	*ARRAY_ADD(facts->launching, facts->launching_room,
		facts->launching_count) = (struct launching_thread){ .tid = tid, .device = device };
	return &facts->launching[facts->launching_count - 1];
}

static bool is_examined(const struct diagnosis *diagnosis, uint32_t step, uint64_t at_ns)
{
	return !diagnosis->facts.has_steps || diagnose_is_steady(diagnosis, step, at_ns);
}

static void add_blocking_call(struct diagnose_facts *facts, const struct blocking_call *call)
{
	*ARRAY_ADD(facts->blocking, facts->blocking_room, facts->blocking_count) = *call;
	facts->blocking_ns += call->end_ns - call->begin_ns;
}

/* Returns true if the call of a copy waited for earlier work of its stream, which ended at
 * `stream_end_ns`: the copy began late in its call, and then. */
static bool waited_for_stream(const struct activity *copy, uint64_t stream_end_ns)
{
	return activity_host_memory(copy) != TRACE_MEMORY_PINNED &&
	       copy->begin_ns < copy->call_end_ns &&
	       stream_end_ns > copy->call_begin_ns + START_MAX_NS &&
	       copy->begin_ns - min_u64(copy->begin_ns, stream_end_ns) <= START_MAX_NS;
}

#define RUNNING_MIN 64u

/* Keeps work that runs while a call may block, as is known of the calls so far. */
static void keep_work_meanwhile(struct work_meanwhile *meanwhile, const struct activity *work)
{
	const struct work_time time = { .begin_ns = work->begin_ns,
		.end_ns = work->end_ns,
		.name = work->name,
		.device = work->device };
	size_t left = 0;

	if (work->begin_ns < meanwhile->blocked_until_ns) {
		*(struct work_time *)spill_list_push(meanwhile->list) = time;
		return;
	}
	if (meanwhile->running_count == meanwhile->room) {
		for (size_t i = 0; i < meanwhile->running_count; i++)
			if (meanwhile->running[i].end_ns > work->begin_ns)
				meanwhile->running[left++] = meanwhile->running[i];
		meanwhile->running_count = left;
		if (left * 2 >= meanwhile->room)
			ARRAY_GROW(meanwhile->running, meanwhile->room, left * 2 + RUNNING_MIN);
	}
	meanwhile->running[meanwhile->running_count++] = time;
}

/* Keeps the work that runs when a call begins which may block. */
static void keep_running_work(struct work_meanwhile *meanwhile, const struct activity *call)
{
	for (size_t i = 0; i < meanwhile->running_count; i++) {
		const struct work_time *work = &meanwhile->running[i];

		if (work->end_ns > call->begin_ns)
			*(struct work_time *)spill_list_push(meanwhile->list) = *work;
	}
	meanwhile->running_count = 0;
	meanwhile->blocked_until_ns = max_u64(meanwhile->blocked_until_ns, call->end_ns);
}

void blocking_free_work(struct work_meanwhile *meanwhile)
{
	spill_list_free(meanwhile->list);
	free(meanwhile->running);
	*meanwhile = (struct work_meanwhile){ .list = NULL };
}

void blocking_add_work(
	struct diagnosis *diagnosis, const struct activity *work, uint64_t stream_end_ns)
{
	keep_work_meanwhile(&diagnosis->work, work);
	if (!work->has_call || !work->tid)
		return;
	if (work->kind == ACTIVITY_KERNEL)
		launching_thread_of(&diagnosis->facts, work->tid, work->device)->kernels++;
	if (work->kind == ACTIVITY_COPY && !work->of_graph && !activity_copies_on_device(work) &&
		(work->end_ns <= work->call_end_ns || waited_for_stream(work, stream_end_ns)) &&
		is_examined(diagnosis, work->step, work->call_begin_ns))
		add_blocking_call(
			&diagnosis->facts, &(struct blocking_call){ .begin_ns = work->call_begin_ns,
						   .end_ns = work->call_end_ns,
						   .tid = work->tid,
						   .owner = work->owner,
						   .name = work->name,
						   .stack = work->stack,
						   .copies = true });
}

void blocking_add_call(struct diagnosis *diagnosis, const struct activity *call)
{
	/* Whether a copy blocks is known when its work is. */
	if (call->kind == ACTIVITY_WAIT || call->kind == ACTIVITY_COPY_CALL)
		keep_running_work(&diagnosis->work, call);
	if (call->kind == ACTIVITY_WAIT && is_examined(diagnosis, call->step, call->begin_ns))
		add_blocking_call(
			&diagnosis->facts, &(struct blocking_call){ .begin_ns = call->begin_ns,
						   .end_ns = call->end_ns,
						   .tid = call->tid,
						   .owner = call->owner,
						   .name = call->name,
						   .stack = call->stack });
}

/* Returns true if the innermost Python frame is Tensor.item(). */
static bool is_in_item(struct process *process, uint32_t stack)
{
	char *frame = xcalloc(CALL_STACK_TEXT);
	bool found;

	if (call_stack_frames(process, stack))
		call_stack_frame(process, stack, 0, true, frame, CALL_STACK_TEXT);
	found = strstr(frame, "method item of Tensor");
	free(frame);
	return found;
}

COMPARE_BY_TWO(by_thread, struct blocking_call, tid, begin_ns)

/* Between a copy and the call that waits for it: a library launches nothing in so short a time. */
#define OWN_SYNC_NS 50000u

/* Marks synchronisations that belong to the copy before them, as of cudaMemcpyAsync from pageable
 * memory: at one call path, at once, and shorter than the copy. */
static void find_own_syncs(struct diagnose_facts *facts)
{
	struct blocking_call *const all = facts->blocking;

	if (facts->blocking_count)
		qsort(all, facts->blocking_count, sizeof *all, by_thread);
	for (size_t i = 0; i < facts->blocking_count; i++) {
		struct blocking_call *call = &all[i], *copy = i ? &all[i - 1] : NULL;

		call->with_sync_ns = call->end_ns - call->begin_ns;
		if (!copy || !copy->copies || call->copies || copy->tid != call->tid ||
			copy->owner != call->owner || call->begin_ns < copy->end_ns ||
			call->begin_ns - copy->end_ns > OWN_SYNC_NS ||
			call->with_sync_ns > copy->with_sync_ns)
			continue;
		call->of_copy = true;
		copy->with_sync_ns += call->with_sync_ns;
	}
}

void blocking_find_reads(struct diagnosis *diagnosis)
{
	struct diagnose_facts *facts = &diagnosis->facts;
	enum { NOT_KNOWN, NO, YES };
	uint8_t *answers = xcalloc(diagnosis->profile->tree->count);
	uint32_t stack = 0;
	bool in_item = false;

	find_own_syncs(facts);
	for (size_t i = 0; i < facts->blocking_count; i++) {
		struct blocking_call *call = &facts->blocking[i];
		uint8_t *answer = &answers[call->owner];

		if (*answer == NOT_KNOWN)
			*answer = diagnose_reads_value(diagnosis, call->owner) ? YES : NO;
		if (call->stack && call->stack != stack)
			in_item = is_in_item(diagnosis->process, call->stack);
		stack = call->stack ? call->stack : stack;
		call->reads = *answer == YES || (call->stack && in_item);
		if (call->of_copy)
			call->reads = call[-1].reads;
	}
	free(answers);
}

void blocking_free(struct diagnose_facts *facts)
{
	free(facts->blocking);
	free(facts->launching);
}

/* A call that blocks a thread which launches on a GPU. */
struct blocked_time {
	uint64_t begin_ns, end_ns;
	uint64_t won_ns;     /* lengths of the calls of its group up to this one */
	uint64_t all_won_ns; /* the same, of all calls */
	size_t group;        /* index of the first call of its group */
	uint64_t credit_ns;  /* in the first of a group: idle time that is counted for the group */
	const struct blocking_call *call; /* in the first of a group: the longest of the group */
};

struct blocked_device {
	uint32_t device;
	struct blocked_time *times; /* by end */
	size_t count, room;
	size_t at;              /* the last one that ends before the idle time that is visited */
	uint64_t all_credit_ns; /* idle time that is counted for all calls together */
};

/* What the calls cost. */
struct blocked_sums {
	struct step_idle steps;
	struct blocked_device devices[TIMELINE_DEVICES];
	size_t device_count;
	struct occurrences calls, copies;
	struct occurrences reads, others; /* of calls: those that read values, and the rest */
	uint64_t *lengths_ns;             /* of the calls */
	size_t length_count, length_room;
	uint64_t blocked_ns;                         /* in any of the calls */
	uint64_t credit_ns, class_ns[BOUND_CLASSES]; /* idle time: all, by class of the verdict */
	uint64_t long_ns; /* of that, in parts of LIMIT_LONG_GAP_NS or more */
	/* Idle time that is counted for all calls together, by class too. */
	uint64_t together_ns, together_class_ns[BOUND_CLASSES];
	uint64_t *work_ns; /* by name: GPU work during the calls */
	size_t work_room;
};

COMPARE_BY_TWO(by_end, struct blocked_time, end_ns, begin_ns)
COMPARE_BY_TWO(by_begin, struct blocked_time, begin_ns, end_ns)

static bool launches_on(const struct diagnose_facts *facts, uint32_t tid, uint32_t device)
{
	for (size_t i = 0; i < facts->launching_count; i++)
		if (facts->launching[i].tid == tid && facts->launching[i].device == device)
			return facts->launching[i].kernels >= LIMIT_CALLS_FEW;
	return false;
}

/* Returns whether the thread launches kernels on any GPU. */
static bool launches(const struct diagnose_facts *facts, uint32_t tid)
{
	for (size_t i = 0; i < facts->launching_count; i++)
		if (facts->launching[i].tid == tid &&
			facts->launching[i].kernels >= LIMIT_CALLS_FEW)
			return true;
	return false;
}

/* Returns the part of a call, from `from_ns` on, that is in steady-state steps. */
static uint64_t ns_in_steps(
	const struct steps *steps, const struct blocking_call *call, uint64_t from_ns)
{
	uint64_t ns = 0;

	for (size_t i = 0; i < steps->count; i++) {
		const uint64_t begin_ns = max_u64(from_ns, steps->steps[i].window_begin_ns),
			       end_ns = min_u64(call->end_ns, steps->steps[i].window_end_ns);

		if (steps->steps[i].kind == STEP_USUAL && end_ns > begin_ns)
			ns += end_ns - begin_ns;
	}
	return ns;
}

uint64_t blocking_launcher_ns(const struct diagnosis *diagnosis, bool in_steps)
{
	const struct diagnose_facts *facts = &diagnosis->facts;
	const struct launching_thread *most = facts->launching;
	uint64_t ns = 0, end_ns = 0;

	for (size_t i = 1; i < facts->launching_count; i++)
		if (facts->launching[i].kernels > most->kernels)
			most = &facts->launching[i];
	for (size_t i = 0; i < facts->blocking_count && facts->launching_count; i++) {
		const struct blocking_call *call = &facts->blocking[i];
		const uint64_t from_ns = max_u64(call->begin_ns, end_ns);

		if (call->tid != most->tid || call->end_ns <= from_ns)
			continue;
		ns += in_steps ? ns_in_steps(diagnosis->process->steps, call, from_ns)
			       : call->end_ns - from_ns;
		end_ns = call->end_ns;
	}
	return ns;
}

uint64_t blocking_pageable_ns(const struct diagnose_facts *facts, uint32_t *node)
{
	const struct occurrences *copies = &facts->pageable;
	uint64_t *ns_of_node = xcalloc((copies->room + 1) * sizeof *ns_of_node), ns = 0;

	*node = 0;
	for (size_t i = 0; i < facts->blocking_count; i++) {
		const struct blocking_call *call = &facts->blocking[i];

		if (call->reads || call->owner >= copies->room ||
			!copies->of_node[call->owner].total_ns || !launches(facts, call->tid))
			continue;
		ns += call->end_ns - call->begin_ns;
		ns_of_node[call->owner] += call->end_ns - call->begin_ns;
		if (ns_of_node[call->owner] > ns_of_node[*node])
			*node = call->owner;
	}
	free(ns_of_node);
	return ns;
}

static void find_devices(const struct diagnose_facts *facts, struct blocked_sums *sums)
{
	for (size_t i = 0; i < facts->launching_count; i++)
		device_slot(sums->devices, &sums->device_count, sizeof *sums->devices,
			facts->launching[i].device);
}

/* Adds a call to the sums, and to each GPU that its thread launches on. */
static void add_blocked(const struct diagnose_facts *facts, struct blocked_sums *sums,
	const struct blocking_call *call)
{
	const uint64_t length_ns = call->end_ns - call->begin_ns;
	struct occurrences *kind;
	bool launches = false;

	for (size_t i = 0; i < sums->device_count; i++) {
		struct blocked_device *device = &sums->devices[i];

		if (!launches_on(facts, call->tid, device->device))
			continue;
		launches = true;
		*ARRAY_ADD(device->times, device->room, device->count) = (struct blocked_time){
			.begin_ns = call->begin_ns, .end_ns = call->end_ns, .call = call
		};
	}
	if (!launches)
		return;
	kind = call->reads ? &sums->reads : &sums->others;
	occurrences_add(&sums->calls, call->owner, call->name, call->begin_ns, length_ns);
	occurrences_add(kind, call->owner, call->name, call->begin_ns, length_ns);
	if (call->of_copy) {
		sums->calls.count--;
		kind->count--;
	} else {
		*ARRAY_ADD(sums->lengths_ns, sums->length_room,
			sums->length_count) = call->with_sync_ns;
	}
	if (call->copies)
		occurrences_add(&sums->copies, call->owner, call->name, call->begin_ns, length_ns);
}

/* Returns how much of `idle_ns` counts, of which `won_ns` can, and `counted_ns` has been. */
static uint64_t counted(uint64_t idle_ns, uint64_t won_ns, uint64_t counted_ns)
{
	return min_u64(idle_ns, won_ns - min_u64(won_ns, counted_ns));
}

/* Counts idle time behind call `i`, as far as the calls before were long. */
static void credit(struct blocked_sums *sums, struct blocked_device *device, size_t i,
	uint64_t idle_ns, const struct late_idle *idle)
{
	const struct blocked_time *time = &device->times[i];
	struct blocked_time *group = &device->times[time->group];
	const uint64_t ns = counted(idle_ns, time->won_ns, group->credit_ns),
		       together_ns = counted(idle_ns, time->all_won_ns, device->all_credit_ns);

	group->credit_ns += ns;
	sums->credit_ns += ns;
	sums->class_ns[run_bound_class_of(idle->cause)] += ns;
	sums->long_ns += idle->length_ns >= LIMIT_LONG_GAP_NS ? ns : 0;
	device->all_credit_ns += together_ns;
	sums->together_ns += together_ns;
	sums->together_class_ns[run_bound_class_of(idle->cause)] += together_ns;
}

/* Counts idle time for the calls that return before it. */
static void credit_idle(struct blocked_sums *sums, const struct late_idle *idle)
{
	struct blocked_device *device = device_slot(
		sums->devices, &sums->device_count, sizeof *sums->devices, idle->device);
	uint64_t rest_ns = idle->length_ns;

	while (device->at + 1 < device->count &&
		device->times[device->at + 1].end_ns <= idle->begin_ns)
		device->at++;
	for (size_t i = device->at; i < device->count && device->times[i].end_ns < idle->end_ns;
		i++) {
		const uint64_t from_ns = max_u64(idle->begin_ns, device->times[i].end_ns),
			       to_ns = i + 1 < device->count
					       ? min_u64(idle->end_ns, device->times[i + 1].end_ns)
					       : idle->end_ns,
			       idle_ns = min_u64(
				       step_idle_counted(&sums->steps, from_ns, to_ns), rest_ns);

		rest_ns -= idle_ns;
		credit(sums, device, i, idle_ns, idle);
	}
}

/* Puts calls in the order in which they return, and successive ones at one call path into one
 * group. */
static void group_times(struct blocked_device *device)
{
	if (device->count)
		qsort(device->times, device->count, sizeof *device->times, by_end);
	for (size_t i = 0; i < device->count; i++) {
		struct blocked_time *time = &device->times[i],
				    *before = i ? &device->times[i - 1] : NULL;
		const uint64_t length_ns = time->end_ns - time->begin_ns;
		struct blocked_time *group;

		time->group = before && before->call->owner == time->call->owner &&
					      before->call->tid == time->call->tid
				      ? before->group
				      : i;
		time->won_ns = length_ns + (time->group != i ? before->won_ns : 0);
		time->all_won_ns = length_ns + (before ? before->all_won_ns : 0);
		group = &device->times[time->group];
		if (length_ns > group->call->end_ns - group->call->begin_ns)
			group->call = time->call;
	}
}

/* Merges times that overlap. They are in the order in which they begin. Returns their sum. */
static uint64_t merge_times(struct blocked_device *device)
{
	size_t count = 0;
	uint64_t sum_ns = 0;

	for (size_t i = 0; i < device->count; i++) {
		const struct blocked_time time = device->times[i];

		if (count && time.begin_ns <= device->times[count - 1].end_ns)
			device->times[count - 1].end_ns = max_u64(
				device->times[count - 1].end_ns, time.end_ns);
		else
			device->times[count++] = time;
	}
	device->count = count;
	device->at = 0;
	for (size_t i = 0; i < count; i++)
		sum_ns += device->times[i].end_ns - device->times[i].begin_ns;
	return sum_ns;
}

DEFINE_COUNT_WHILE(times_ended, struct blocked_time, item->end_ns <= limit)

/* Adds the time of GPU work during the calls, whose times are merged. */
static void add_work_meanwhile(struct blocked_sums *sums, const struct work_time *work)
{
	struct blocked_device *device = device_slot(
		sums->devices, &sums->device_count, sizeof *sums->devices, work->device);

	for (size_t i = times_ended(device->times, device->count, work->begin_ns);
		i < device->count && device->times[i].begin_ns < work->end_ns; i++) {
		ARRAY_GROW(sums->work_ns, sums->work_room, (size_t)work->name + 1);
		sums->work_ns[work->name] += min_u64(work->end_ns, device->times[i].end_ns) -
					     max_u64(work->begin_ns, device->times[i].begin_ns);
	}
}

/* Finds what the GPUs did during the calls. Afterwards, the times of calls are merged. */
static void find_work_meanwhile(struct diagnosis *diagnosis, struct blocked_sums *sums)
{
	const struct work_time *work;

	for (size_t i = 0; i < sums->device_count; i++) {
		struct blocked_device *device = &sums->devices[i];

		if (device->count)
			qsort(device->times, device->count, sizeof *device->times, by_begin);
		sums->blocked_ns += merge_times(device);
	}
	for (spill_list_rewind(diagnosis->work.list);
		(work = spill_list_next(diagnosis->work.list));)
		add_work_meanwhile(sums, work);
}

static void read_blocked(struct diagnosis *diagnosis, struct blocked_sums *sums)
{
	const struct diagnose_facts *facts = &diagnosis->facts;
	const struct late_idle *idle;

	sums->steps = step_idle_begin(diagnosis->process);
	find_devices(facts, sums);
	for (size_t i = 0; i < facts->blocking_count; i++)
		add_blocked(facts, sums, &facts->blocking[i]);
	for (size_t i = 0; i < sums->device_count; i++)
		group_times(&sums->devices[i]);
	for (spill_list_rewind(diagnosis->late_idle);
		(idle = spill_list_next(diagnosis->late_idle));)
		credit_idle(sums, idle);
}

static void free_blocked(struct blocked_sums *sums)
{
	for (size_t i = 0; i < sums->device_count; i++)
		free(sums->devices[i].times);
	free(sums->calls.of_node);
	free(sums->copies.of_node);
	free(sums->reads.of_node);
	free(sums->others.of_node);
	free(sums->lengths_ns);
	free(sums->work_ns);
	free(sums);
}

/* Sets the place by the idle time that is counted, and the example to the call with most of it. */
static void set_place_of_credit(
	struct diagnosis *diagnosis, struct finding *finding, const struct blocked_sums *sums)
{
	const size_t room = sums->calls.room;
	uint64_t *ns = xcalloc((room + 1) * sizeof *ns);
	const struct blocked_time *most = NULL;

	for (size_t i = 0; i < sums->device_count; i++)
		for (size_t k = 0; k < sums->devices[i].count; k++)
			ns[sums->devices[i].times[k].call->owner] +=
				sums->devices[i].times[k].credit_ns;
	finding_set_place(diagnosis, finding, ns, room);
	for (size_t i = 0; i < sums->device_count; i++)
		for (size_t k = 0; k < sums->devices[i].count; k++) {
			const struct blocked_time *time = &sums->devices[i].times[k];

			if (time->call->owner == finding->node &&
				(!most || time->credit_ns > most->credit_ns))
				most = time;
		}
	finding->has_example = most;
	finding->example_ns = most ? most->call->begin_ns : 0;
	free(ns);
}

#define WORKS_NAMED 2u
/* Percent of the blocked time: work with less is not worth naming. */
#define WORK_MIN_PERCENT 10u

/* Adds the GPU work with the most time during the calls. */
static void add_works(
	struct diagnosis *diagnosis, struct finding *finding, struct blocked_sums *sums)
{
	for (unsigned n = 0; n < WORKS_NAMED; n++) {
		const size_t used = strlen(finding->evidence);
		uint32_t most = 0;

		for (uint32_t name = 1; name < sums->work_room; name++)
			most = sums->work_ns[name] > sums->work_ns[most] ? name : most;
		if (!most || !run_bound_is_percent(
				     sums->work_ns[most], sums->blocked_ns, WORK_MIN_PERCENT))
			return;
		finding_set_text(finding->evidence + used, sizeof finding->evidence - used,
			"%s%s for %s", n ? ", " : "; meanwhile the GPU runs ",
			diagnose_name(diagnosis, most),
			diagnose_time(diagnosis, sums->work_ns[most]));
		sums->work_ns[most] = 0;
	}
}

/* Returns true if most of the idle time is where the host did something else. It may have needed
 * the results that it waited for, and then nothing is gained. */
static bool may_need_results(const struct blocked_sums *sums)
{
	return 2 * sums->long_ns > sums->credit_ns;
}

static void set_class(struct finding *finding, const uint64_t *class_ns)
{
	for (enum bound class = BOUND_COMPUTE; class < BOUND_CLASSES; class ++)
		if (class_ns[class] > finding->idle_of_ns) {
			finding->idle_of = class;
			finding->idle_of_ns = class_ns[class];
		}
}

/* Adds the calls that read values of tensors. */
static void list_reads(
	struct diagnosis *diagnosis, struct finding *finding, const struct occurrences *reads)
{
	const size_t used = strlen(finding->evidence);

	if (reads->count)
		finding_set_text(finding->evidence + used, sizeof finding->evidence - used,
			"; reads of tensor values, such as .item(): %s, %s",
			diagnose_plural(diagnosis, reads->count, "call"),
			diagnose_time(diagnosis, reads->total_ns));
}

static int longest_first(const void *a, const void *b)
{
	const uint64_t *left = a, *right = b;

	return COMPARE(*right, *left);
}

#define MOST_PERCENT 95u

/* Adds how few of the calls have most of the time. */
static void list_long_calls(
	struct diagnosis *diagnosis, struct finding *finding, struct blocked_sums *sums)
{
	const size_t used = strlen(finding->evidence);
	uint64_t sum_ns = 0;
	size_t count = 0;

	qsort(sums->lengths_ns, sums->length_count, sizeof *sums->lengths_ns, longest_first);
	while (count < sums->length_count &&
		!run_bound_is_percent(sum_ns, sums->calls.total_ns, MOST_PERCENT))
		sum_ns += sums->lengths_ns[count++];
	if (count < sums->length_count)
		finding_set_text(finding->evidence + used, sizeof finding->evidence - used,
			"; %s of the calls have %u %% of this time",
			diagnose_count(diagnosis, count), MOST_PERCENT);
}

static void list_blocked(
	struct diagnosis *diagnosis, struct finding *finding, struct blocked_sums *sums)
{
	const struct occurrences *calls = &sums->calls;

	find_work_meanwhile(diagnosis, sums);
	SET_TEXT(finding->evidence,
		"the host waits for %s of %s, the longest time %s (%s), at %s; in calls that wait "
		"for "
		"a copy, or before it for its stream: %s, %s",
		diagnose_time(diagnosis, sums->blocked_ns),
		diagnose_time(diagnosis, diagnose_bound(diagnosis)->whole_ns),
		diagnose_time(diagnosis, calls->longest_ns),
		diagnose_name(diagnosis, calls->longest_name),
		diagnose_time(diagnosis, calls->longest_at_ns),
		diagnose_plural(diagnosis, sums->copies.count, "call"),
		diagnose_time(diagnosis, sums->copies.total_ns));
	list_long_calls(diagnosis, finding, sums);
	list_reads(diagnosis, finding, &sums->reads);
	add_works(diagnosis, finding, sums);
	diagnose_advise_on_blocked(diagnosis, &sums->reads, &sums->others, finding);
	SET_TEXT(finding->view, "idle");
}

static void report_blocked(
	struct diagnosis *diagnosis, struct finding *finding, struct blocked_sums *sums)
{
	const struct run_bound *bound = diagnose_bound(diagnosis);

	finding_set_found(finding, may_need_results(sums) ? CONFIDENCE_LOW : CONFIDENCE_MEDIUM);
	finding_set_impact(finding, 0, sums->calls.count, sums->credit_ns);
	finding->whole_ns = bound->whole_ns;
	finding->whole_name = run_bound_time_name(bound);
	finding->last = may_need_results(sums);
	SET_TEXT(finding->reason, "%s",
		may_need_results(sums)
			? "most of the idle time is in intervals of 1 ms or more, in which the "
			  "host "
			  "does other work: if that needs the results of these calls, nothing is "
			  "gained"
			: "the idle time is measured; less is gained if the host needs the results "
			  "of these calls before it can launch more");
	SET_TEXT(finding->sentence,
		"The host waits for the GPU in %s, and launches too late afterwards: without these "
		"waits the GPU would be idle for up to %s less.",
		diagnose_plural(diagnosis, sums->calls.count, "call"),
		diagnose_time(diagnosis, sums->credit_ns));
	set_place_of_credit(diagnosis, finding, sums);
	set_class(finding, sums->class_ns);
	list_blocked(diagnosis, finding, sums);
}

/* Reports calls of which no one costs much alone. */
static void report_together(
	struct diagnosis *diagnosis, struct finding *finding, struct blocked_sums *sums)
{
	const struct run_bound *bound = diagnose_bound(diagnosis);

	finding_set_found(finding, CONFIDENCE_MEDIUM);
	finding_set_impact(finding, 0, sums->calls.count, sums->together_ns);
	finding->whole_ns = bound->whole_ns;
	finding->whole_name = run_bound_time_name(bound);
	finding->together = true;
	SET_TEXT(finding->reason, "measured; the gain is an upper bound");
	SET_TEXT(finding->sentence,
		"The host waits for the GPU in %s, and the GPU is idle afterwards. To remove those "
		"at one call path saves little, because the host then waits at the next one.",
		diagnose_plural(diagnosis, sums->calls.count, "call"));
	occurrences_set_node(&sums->calls, finding);
	set_class(finding, sums->together_class_ns);
	list_blocked(diagnosis, finding, sums);
}

void diagnose_blocking_calls(struct diagnosis *diagnosis, struct finding *finding)
{
	const struct run_bound *bound = diagnose_bound(diagnosis);
	struct finding sync = { .rule = NULL };
	struct blocked_sums *sums;

	/* The rule `synchronisation` has the idle time behind waits, which is measured. */
	if (!diagnose_is_share(diagnosis->facts.blocking_ns, bound->whole_ns, LIMIT_WORTH) ||
		finding_set_class(diagnosis, &sync, BOUND_SYNC, diagnosis->facts.cause_ns[GAP_SYNC],
			LIMIT_WORTH))
		return;
	sums = xcalloc(sizeof *sums);
	read_blocked(diagnosis, sums);
	if (sums->calls.count < LIMIT_CALLS_FEW)
		finding->state = FINDING_CLEAR;
	else if (diagnose_is_share(sums->credit_ns, bound->whole_ns, LIMIT_WORTH))
		report_blocked(diagnosis, finding, sums);
	else if (diagnose_is_share(sums->together_ns, bound->whole_ns, LIMIT_TOGETHER))
		report_together(diagnosis, finding, sums);
	else
		finding_set_small(finding, sums->credit_ns, LIMIT_WORTH, bound->whole_ns,
			run_bound_time_name(bound));
	free_blocked(sums);
}
