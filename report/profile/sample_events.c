/* SPDX-License-Identifier: MIT
 * Gives each sample to the range that was open on its thread. The reader returns samples at the
 * moment at which they were taken, so the thread's range stack is that of the sample.
 *
 * A sample is given to the time of its thread: a range that is open for a tenth of the run gets a
 * tenth of the samples, however short its instances are. Clocks of samples and ranges differ by
 * less than a microsecond in both directions, so edges need no rule: one in favour of the inner
 * range would double the samples of ranges of some microseconds.
 */
#include "report/base/alloc.h"
#include "report/profile/profile_state.h"
#include <stdlib.h>

/* Of each kernel thread id that was seen. */
struct sampled_entry {
	uint32_t tid;
	uint32_t sampled;              /* index in profile.sampled_threads + 1; 0: none yet */
	struct profile_thread *stream; /* NULL: it has none now */
};

#define RECENT_ENTRIES 64u /* a power of two; thread ids of a process are close to each other */

struct sampled_index {
	uint32_t recent[RECENT_ENTRIES]; /* index of an entry; by the thread id's lowest bits */
	struct hash_index index;
	struct sampled_entry *entries;
	size_t count, room;
};

void sampled_index_free(struct sampled_index *index)
{
	if (!index)
		return;
	hash_index_free(&index->index);
	free(index->entries);
	free(index);
}

/* Returns the entry of a thread id, and adds it if there is none. */
static struct sampled_entry *find_entry(struct profile_state *state, uint32_t tid)
{
	const uint64_t hash = hash_u64(tid);
	struct sampled_index *index = state->sampled;
	struct hash_slot *slot;
	uint32_t *recent;

	if (!index)
		index = state->sampled = xcalloc(sizeof *index);
	recent = &index->recent[tid % RECENT_ENTRIES];
	if (*recent < index->count && index->entries[*recent].tid == tid)
		return &index->entries[*recent];
	hash_index_reserve(&index->index);
	for (slot = hash_index_first(&index->index, hash); slot->number;
		slot = hash_index_next(&index->index, slot))
		if (index->entries[slot->number - 1].tid == tid) {
			*recent = slot->number - 1;
			return &index->entries[*recent];
		}
	*recent = (uint32_t)index->count;
	*ARRAY_ADD(
		index->entries, index->room, index->count) = (struct sampled_entry){ .tid = tid };
	hash_index_add(&index->index, slot, hash, (uint32_t)index->count);
	return &index->entries[index->count - 1];
}

void sampled_index_thread(struct profile *profile, struct profile_thread *thread)
{
	find_entry(profile->state, thread->of->tid)->stream = thread;
}

void sampled_index_thread_end(struct profile *profile, const struct profile_thread *thread)
{
	struct sampled_entry *entry = find_entry(profile->state, thread->of->tid);

	if (entry->stream == thread)
		entry->stream = NULL;
}

/* Returns the index in profile.sampled_threads of the thread with the entry, and adds it. */
static uint32_t sampled_thread_of(struct profile *profile, struct sampled_entry *entry)
{
	if (entry->sampled)
		return entry->sampled - 1;
	*ARRAY_ADD(profile->sampled_threads, profile->sampled_thread_room,
		profile->sampled_thread_count) = (struct sampled_thread){ .tid = entry->tid };
	entry->sampled = (uint32_t)profile->sampled_thread_count;
	return entry->sampled - 1;
}

/* Returns the node of the innermost frame with the trace node `wanted`; 0: of any range. A frame's
 * node may be in a section of the run, unlike that of its trace node. 0: there is none. */
static uint32_t node_on_stack(const struct profile_thread *thread, uint32_t wanted)
{
	for (uint32_t depth = thread ? thread->depth : 0; depth-- > 0;)
		if (thread->frames[depth].trace_node &&
			(!wanted || thread->frames[depth].trace_node == wanted))
			return thread->frames[depth].node;
	return 0;
}

/* Returns the node of the range that the sampler found open: one that is not recorded (only
 * counted, or not yet) has no frame. */
static uint32_t node_by_id(
	const struct profile *profile, const struct profile_thread *thread, uint32_t trace_node)
{
	const uint32_t node = trace_node ? node_on_stack(thread, trace_node) : 0;

	if (node || !trace_node)
		return node;
	return profile->state->nodes[trace_node] != NODE_UNRESOLVED
		       ? profile->state->nodes[trace_node]
		       : node_on_stack(thread, 0);
}

/* Returns the node that owns a sample in no range: the section of the run that is open on the
 * thread, else the one of what belongs to no range. */
static uint32_t owner_without_range(struct profile *profile, const struct profile_thread *thread)
{
	for (uint32_t depth = thread ? thread->depth : 0; depth-- > 0;)
		if (!thread->frames[depth].trace_node)
			return thread->frames[depth].node;
	return profile_unattributed_node(profile, profile->state->nodes[0]);
}

/* Returns the places of the samples, or NULL if they are not wanted. */
static struct sample_places *places_of(struct profile *profile)
{
	const struct profile_options *options = &profile->options;

	if (!profile->sample_places && (options->sample_places || options->sample_visitor))
		profile->sample_places = sample_places_new(options->sample_visitor);
	return profile->sample_places;
}

static inline void add_sums(
	struct profile *profile, uint32_t node, uint32_t thread, const struct sample_sums *sums)
{
	sample_sums_add(&tree_sampled(profile->tree, node)->self, sums);
	sample_sums_add(&profile->sampled_threads[thread].sums, sums);
	sample_sums_add(&profile->sampled, sums);
}

void profile_samples_finish(struct profile *profile)
{
	const struct sample_places *places = profile->sample_places;

	if (!places)
		return;
	sample_places_finish(profile->sample_places);
	for (size_t i = 0; i < places->counted_count; i++) {
		const struct placed_samples *placed = &places->all[places->counted[i]];
		const struct sample_sums sums = placed_sums(placed);

		add_sums(profile, placed->place.node, placed->place.thread, &sums);
	}
}

static const struct profile_observer *observer_of(const struct profile *profile)
{
	const struct profile_observer *observer = profile->options.observer;

	return observer && observer->sample ? observer : NULL;
}

/* Adds the sample to its node and thread, as far as it counts, and reports it. `ns`: the time that
 * it represents. */
static inline void add_sample(struct profile *profile, const struct trace_event *event,
	struct sampled_entry *entry, uint32_t node, uint32_t state, uint64_t ns)
{
	const struct profile_observer *observer = observer_of(profile);
	const struct sample_sums sums = sample_sums_of(state, 1, ns);
	const uint32_t owner = node ? node : owner_without_range(profile, entry->stream),
		       thread = sampled_thread_of(profile, entry);

	profile->counts.cpu_samples++;
	if (profile->state->counting && places_of(profile))
		sample_places_add(profile->sample_places, event, owner, thread, node != 0);
	else if (profile->state->counting)
		add_sums(profile, owner, thread, &sums);
	if (observer)
		observer->sample(observer->context, &(struct observed_sample){ .event = event,
							    .node = node,
							    .owner = owner,
							    .thread = thread,
							    .counts = profile->state->counting });
}

/* Keeps the clocks of a thread. A thread whose clock went back is another one with the same id. */
static void add_clock(struct profile *profile, const struct trace_sampled_thread *record)
{
	struct sampled_entry *entry = find_entry(profile->state, record->tid);
	uint32_t index = sampled_thread_of(profile, entry);
	struct sampled_thread *thread = &profile->sampled_threads[index];

	if (thread->has_clock && record->cpu_ns < thread->last_cpu_ns) {
		entry->sampled = 0;
		index = sampled_thread_of(profile, entry);
		thread = &profile->sampled_threads[index];
	}
	if (thread->has_clock && !(record->head.flags & TRACE_SAMPLED_THREAD_RESUMED))
		thread->clock_ns += record->cpu_ns - thread->last_cpu_ns;
	thread->has_clock = true;
	thread->last_cpu_ns = record->cpu_ns;
	thread->name = record->name ? record->name : thread->name;
}

static void add_python(struct profile *profile, const struct trace_event *event)
{
	const struct profile_observer *observer = observer_of(profile);
	const struct sampled_entry *entry = find_entry(profile->state, event->stream->tid);

	if (!entry->sampled)
		return;
	if (observer)
		observer->sample(observer->context,
			&(struct observed_sample){ .event = event, .thread = entry->sampled - 1 });
	if (places_of(profile))
		sample_places_set_python(
			profile->sample_places, profile->reader, event->record, entry->sampled - 1);
}

static void add_own_sample(struct profile *profile, const struct trace_event *event)
{
	const struct trace_sample *sample = event->record;
	struct sampled_entry *entry = find_entry(profile->state, sample->tid);
	const uint32_t node = sample->head.flags & TRACE_SAMPLE_HAS_NODE
				      ? node_by_id(profile, entry->stream, event->node)
				      : node_on_stack(entry->stream, 0);

	add_sample(profile, event, entry, node, sample->state,
		(uint64_t)sample->weight * TRACE_SAMPLE_WEIGHT_NS);
}

void profile_sample_record(struct profile *profile, const struct trace_event *event)
{
	switch (event->kind) {
	case TRACE_SAMPLED_THREAD:
		add_clock(profile, event->record);
		break;
	case TRACE_SAMPLE_PYTHON:
		add_python(profile, event);
		break;
	case TRACE_CPU_SAMPLE:
		add_sample(profile, event, find_entry(profile->state, event->stream->tid),
			node_on_stack(event->stream->user, 0), TRACE_SAMPLE_ON_CPU, 0);
		break;
	default:
		add_own_sample(profile, event);
	}
}
