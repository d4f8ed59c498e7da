/* SPDX-License-Identifier: MIT */
#include "report/profile/sample_places.h"
#include "report/base/alloc.h"
#include <assert.h>
#include <stdlib.h>
#include <string.h>

struct pending_sample {
	uint64_t at_ns, ns;
	uint32_t place;
};

struct pending_samples {
	struct pending_sample *samples;
	size_t count, room;
};

struct sample_places *sample_places_new(const struct sample_visitor *visitor)
{
	struct sample_places *places = xcalloc(sizeof *places);

	places->visitor = visitor;
	return places;
}

static void free_pending(struct sample_places *places)
{
	for (size_t i = 0; i < places->pending_count; i++)
		free(places->pending[i].samples);
	free(places->pending);
	places->pending = NULL;
	places->pending_count = places->pending_room = 0;
}

void sample_places_free(struct sample_places *places)
{
	if (!places)
		return;
	free_pending(places);
	hash_index_free(&places->index);
	free(places->all);
	free(places->counted);
	free(places->depths);
	free(places);
}

/* ---- places ---- */

static_assert(sizeof(struct sample_place) == 32, "a place has no padding");

static inline uint64_t hash_place(const struct sample_place *place)
{
	uint64_t words[4], hash;

	memcpy(words, place, sizeof words);
	hash = hash_u64(hash_u64(words[0]) ^ words[1]);
	return hash_u64(hash ^ words[2] ^ words[3] << 40);
}

static inline bool is_same_place(const struct sample_place *a, const struct sample_place *b)
{
	return !memcmp(a, b, sizeof *a);
}

/* Returns the index of the place, which has no samples yet if it is new. */
static inline uint32_t find_place(struct sample_places *places, const struct sample_place *wanted)
{
	const uint64_t hash = hash_place(wanted);
	struct hash_slot *slot;

	hash_index_reserve(&places->index);
	for (slot = hash_index_first(&places->index, hash); slot->number;
		slot = hash_index_next(&places->index, slot))
		if (is_same_place(&places->all[slot->number - 1].place, wanted))
			return slot->number - 1;
	ARRAY_ADD(places->all, places->room, places->count)->place = *wanted;
	hash_index_add(&places->index, slot, hash, (uint32_t)places->count);
	return (uint32_t)places->count - 1;
}

static inline void count_sample(
	struct sample_places *places, uint32_t index, uint64_t ns, uint64_t at_ns)
{
	struct placed_samples *placed = &places->all[index];

	if (places->visitor) {
		places->visitor->visit(places->visitor->context, index, ns, at_ns);
		return;
	}
	if (!placed->samples++)
		*ARRAY_ADD(places->counted, places->counted_room, places->counted_count) = index;
	placed->ns += ns;
}

/* ---- samples that wait for their Python frames ---- */

static struct pending_samples *pending_of(struct sample_places *places, uint32_t thread)
{
	if (thread >= places->pending_count) {
		ARRAY_GROW(places->pending, places->pending_room, thread + 1u);
		places->pending_count = thread + 1u;
	}
	return &places->pending[thread];
}

/* Counts the oldest `count` samples, whose Python frames stay as they are. */
static void count_oldest(
	struct sample_places *places, struct pending_samples *pending, size_t count)
{
	for (size_t i = 0; i < count; i++)
		count_sample(places, pending->samples[i].place, pending->samples[i].ns,
			pending->samples[i].at_ns);
	pending->count -= count;
	memmove(pending->samples, pending->samples + count,
		pending->count * sizeof *pending->samples);
}

static void add_pending(
	struct sample_places *places, uint32_t thread, const struct pending_sample *sample)
{
	struct pending_samples *pending = pending_of(places, thread);

	if (pending->count == SAMPLES_PENDING)
		count_oldest(places, pending, SAMPLES_PENDING / 2);
	*ARRAY_ADD(pending->samples, pending->room, pending->count) = *sample;
}

static inline struct sample_place place_of(
	const struct trace_event *event, uint32_t node, uint32_t thread)
{
	const struct trace_sample *sample = event->record;
	const struct trace_cpu_sample *imported = event->record;

	if (event->kind == TRACE_CPU_SAMPLE)
		return (struct sample_place){ .pc = (uint64_t)imported->function << 32 |
						    imported->module,
			.node = node,
			.thread = thread,
			.state = TRACE_SAMPLE_ON_CPU,
			.is_named = 1 };
	return (struct sample_place){ .pc = sample->pc,
		.native = sample->native,
		.python = sample->python,
		.node = node,
		.thread = thread,
		.flags = (uint16_t)(sample->head.flags & ~(unsigned)TRACE_SAMPLE_HAS_NODE),
		.state = (uint16_t)sample->state };
}

void sample_places_add(struct sample_places *places, const struct trace_event *event, uint32_t node,
	uint32_t thread, bool waits)
{
	const struct trace_sample *sample = event->record;
	const struct sample_place wanted = place_of(event, node, thread);
	const uint32_t place = find_place(places, &wanted);
	const uint64_t ns = wanted.is_named ? 0 : (uint64_t)sample->weight * TRACE_SAMPLE_WEIGHT_NS;

	if (waits && !wanted.is_named)
		add_pending(places, thread,
			&(struct pending_sample){
				.at_ns = event->time_ns, .ns = ns, .place = place });
	else
		count_sample(places, place, ns, event->time_ns);
}

/* Returns the number of Python frames from the outermost one to the frame `id`. */
static uint32_t count_frames(
	struct sample_places *places, const struct trace_reader *reader, uint32_t id)
{
	const uint32_t last = reader_frame_last(reader);
	struct trace_frame_info info;
	uint32_t count = 0, known;

	if (!places->depths)
		places->depths = xcalloc(((size_t)last + 1) * sizeof *places->depths);
	if (id > last)
		return 0;
	for (known = id; known && !places->depths[known]; known = info.parent) {
		if (!reader_frame(reader, known, &info))
			break;
		count++;
	}
	count += known ? places->depths[known] : 0;
	for (uint32_t left = count; id != known && reader_frame(reader, id, &info);
		id = info.parent)
		places->depths[id] = left--;
	return count;
}

/* Whether the sampler found frames that the record does not have: the operator called Python. */
static bool is_below(struct sample_places *places, const struct trace_reader *reader,
	const struct sample_place *sample, uint32_t python)
{
	return !(sample->flags & TRACE_SAMPLE_MOVED) && sample->python != python &&
	       count_frames(places, reader, sample->python) > count_frames(places, reader, python);
}

/* Counts a sample with the Python frames of the record, if it does not have more of them. */
static void count_with_python(struct sample_places *places, const struct trace_reader *reader,
	const struct pending_sample *sample, uint32_t python)
{
	struct sample_place wanted = places->all[sample->place].place;
	uint32_t place = sample->place;

	if (!is_below(places, reader, &wanted, python)) {
		wanted.python = python;
		wanted.flags &= (uint16_t) ~(
			TRACE_SAMPLE_MOVED | TRACE_SAMPLE_NO_PYTHON | TRACE_SAMPLE_UNEQUAL);
		place = find_place(places, &wanted);
	}
	count_sample(places, place, sample->ns, sample->at_ns);
}

void sample_places_set_python(struct sample_places *places, struct trace_reader *reader,
	const struct trace_sample_python *record, uint32_t thread)
{
	const uint64_t since = reader_time(reader, record->since);
	struct pending_samples *pending = pending_of(places, thread);
	size_t kept = 0;

	/* a place without samples, so that the frames come in the order in which they were seen */
	if (record->python != places->python)
		find_place(places, &(struct sample_place){ .python = record->python });
	places->python = record->python;
	for (size_t i = 0; i < pending->count; i++)
		if (pending->samples[i].at_ns < since)
			pending->samples[kept++] = pending->samples[i];
		else
			count_with_python(places, reader, &pending->samples[i], record->python);
	pending->count = kept;
}

void sample_places_finish(struct sample_places *places)
{
	for (uint32_t i = 0; i < places->pending_count; i++)
		count_oldest(places, &places->pending[i], places->pending[i].count);
	free_pending(places);
	hash_index_free(&places->index);
	free(places->depths);
	places->depths = NULL;
}
