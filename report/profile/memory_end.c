/* SPDX-License-Identifier: MIT
 * Finds the end of the run for memory, while the pass goes on.
 *
 * The end is the last time in the last step that the program did something: an operator or range
 * began, GPU work was launched or copied, memory was allocated, or memory was freed inside a range.
 * A program without Python also does something when it frees memory outside of ranges. In one with
 * Python such releases may be those of an interpreter that shuts down, so they are before the end
 * only if something follows. A step that is found by its optimizer lasts for a usual pause longer,
 * in which a program that ends has begun to free its memory. Without steps, or if the last one did
 * not end, the end is the last time in the run that the program did something.
 */
#include "report/base/compare.h"
#include "report/profile/profile_state.h"

uint64_t profile_steps_end_ns(const struct steps *steps)
{
	uint64_t last_ns = 0;
	bool finished = false;

	for (size_t i = 0; steps && i < steps->count; i++) {
		if (steps->steps[i].end_ns < last_ns)
			continue;
		last_ns = steps->steps[i].end_ns;
		finished = steps->steps[i].kind != STEP_UNFINISHED;
	}
	return finished ? last_ns : UINT64_MAX;
}

void profile_memory_begin(struct profile *profile)
{
	profile->state->memory_end = (struct memory_end){ .steps_end_ns = profile_steps_end_ns(
								  profile->options.found_steps),
		.active_ns = 1,
		.frees_are_activity = !reader_meta(profile->reader, "version.python").known };
}

/* Returns the marks of what the program did up to now, if it did something since the last record of
 * memory. `at_ns`: of the last event that comes before the marks. */
static struct memory_marks activity_marks(const struct memory_end *end, uint64_t at_ns)
{
	return (struct memory_marks){ .is_active = end->active_ns != 0,
		.is_end = end->active_ns && end->active_ns <= end->steps_end_ns,
		.end_ns = min_u64(at_ns, end->steps_end_ns) };
}

void profile_mark_memory(struct memory_owners *memory, const struct memory_marks *marks)
{
	if (marks->is_active)
		memory_owners_mark_active(memory);
	if (marks->is_end)
		memory_owners_mark_end(memory, marks->end_ns);
}

struct memory_marks profile_memory_event(struct profile *profile, const struct trace_event *event)
{
	struct memory_end *end = &profile->state->memory_end;
	const bool frees = event->kind == TRACE_FREE || profile_event_frees_tensor(event);
	const struct memory_marks marks = activity_marks(
		end, event->time_ns ? event->time_ns - 1 : 0);

	if (!end->first_ns)
		end->first_ns = event->time_ns;
	end->active_ns = 0;
	if (!frees || end->frees_are_activity || event->node)
		profile_note_activity(profile, event->time_ns);
	return marks;
}

void profile_memory_finish(struct profile *profile)
{
	const struct memory_marks marks = activity_marks(
		&profile->state->memory_end, profile->state->now_ns);

	profile_mark_memory(profile->memory, &marks);
	profile->memory->first_ns = profile->state->memory_end.first_ns;
}

void profile_observe_memory(const struct profile *profile, const struct trace_event *event,
	const struct memory_change *change)
{
	const struct profile_observer *observer = profile->options.observer;
	const struct trace_tensor *tensor = event->record;
	const struct trace_memory *call = event->record;
	const bool of_tensor = event->kind == TRACE_TENSOR;

	struct observed_memory seen = { .event = event,
		.change = change,
		.memory = profile->memory,
		.at_ns = event->time_ns,
		.trace_node = event->node };

	if (!profile_observes_memory(profile))
		return;
	seen.address = of_tensor                        ? tensor->address
		       : event->kind == TRACE_MAPPING   ? change->freed_address
		       : call->flags & TRACE_MEMORY_ALL ? 0
							: call->address;
	seen.api = of_tensor ? 0 : call->call.api;
	if (observer->memory_record)
		observer->memory_record(observer->context, &seen);
	if (observer->memory && (change->allocated_bytes || change->freed_bytes))
		observer->memory(observer->context, &seen);
}
