/* SPDX-License-Identifier: MIT
 * Finds the end of the run for memory, while the pass goes on.
 *
 * The end is that of the last step. Without steps, or if the last one did not end, it is the last
 * time that the program did something: an operator or range began, GPU work was launched or copied,
 * memory was allocated, or memory was freed inside a range. A program without Python also does
 * something when it frees memory outside of ranges. In one with Python such releases may be those
 * of an interpreter that shuts down, so they are before the end only if something follows.
 */
#include "report/profile/profile_state.h"

void profile_memory_begin(struct profile *profile)
{
	const struct steps *steps = profile->options.found_steps;
	struct memory_end *end = &profile->state->memory_end;
	uint64_t last_ns = 0;
	bool finished = false;

	*end = (struct memory_end){ .steps_end_ns = UINT64_MAX,
		.is_active = true,
		.frees_are_activity = !reader_meta(profile->reader, "version.python").known };
	for (size_t i = 0; steps && i < steps->count; i++) {
		if (steps->steps[i].end_ns < last_ns)
			continue;
		last_ns = steps->steps[i].end_ns;
		finished = steps->steps[i].kind != STEP_UNFINISHED;
	}
	if (finished)
		end->steps_end_ns = last_ns;
}

/* Marks what the program did up to now. It did something since the last record of memory. */
static void mark_activity(struct profile *profile, uint64_t at_ns)
{
	memory_owners_mark_active(profile->memory);
	if (profile->state->memory_end.steps_end_ns == UINT64_MAX)
		memory_owners_mark_end(profile->memory, at_ns);
}

/* Marks the end of the last step if `at_ns` is the first time after it. */
static void mark_steps_end(struct profile *profile, uint64_t at_ns)
{
	struct memory_end *end = &profile->state->memory_end;

	if (end->steps_end_ns == UINT64_MAX || end->is_past || at_ns <= end->steps_end_ns)
		return;
	memory_owners_mark_end(profile->memory, end->steps_end_ns);
	end->is_past = true;
}

void profile_memory_event(struct profile *profile, const struct trace_event *event)
{
	struct memory_end *end = &profile->state->memory_end;

	if (!profile->memory->first_ns)
		profile->memory->first_ns = event->time_ns;
	mark_steps_end(profile, event->time_ns);
	if (end->is_active)
		mark_activity(profile, event->time_ns);
	end->is_active = (event->kind != TRACE_FREE && !profile_event_frees_tensor(event)) ||
			 end->frees_are_activity || event->node;
}

void profile_memory_finish(struct profile *profile)
{
	mark_steps_end(profile, UINT64_MAX);
	if (profile->state->memory_end.is_active)
		mark_activity(profile, profile->state->now_ns);
}

void profile_observe_memory(const struct profile *profile, const struct trace_event *event,
	const struct memory_change *change)
{
	const struct profile_observer *observer = profile->options.observer;
	const struct trace_tensor *tensor = event->record;
	const struct trace_memory *call = event->record;
	const bool of_tensor = event->kind == TRACE_TENSOR;

	if (!observer || !observer->memory || (!change->allocated_bytes && !change->freed_bytes))
		return;
	observer->memory(observer->context,
		&(struct observed_memory){ .change = change,
			.memory = profile->memory,
			.at_ns = event->time_ns,
			.address = of_tensor                        ? tensor->address
				   : call->flags & TRACE_MEMORY_ALL ? 0
								    : call->address,
			.trace_node = event->node,
			.api = of_tensor ? 0 : call->call.api });
}
