/* SPDX-License-Identifier: MIT */
#include "report/stats/percentiles.h"
#include "report/base/compare.h"
#include "report/base/alloc.h"
#include "report/base/spill_file.h"
#include "report/base/value_file.h"
#include <assert.h>
#include <stdlib.h>
#include <string.h>

static size_t value_bytes(const struct percentiles *samples)
{
	return samples->is_wide ? sizeof(uint64_t) : sizeof(uint32_t);
}

static uint64_t value_at(const struct percentiles *samples, unsigned index)
{
	return samples->is_wide ? samples->values.wide[index] : samples->values.narrow[index];
}

static void histogram_count_value(struct histogram *histogram, uint64_t value, uint32_t times)
{
	const unsigned exponent = 63u - (unsigned)__builtin_clzll(value | 32);
	const uint64_t step = exponent < 6 ? value : value >> (exponent - 6);
	uint32_t **octave = &histogram->octaves[exponent - 5];
	uint32_t *count;

	if (!*octave)
		*octave = xcalloc(64 * sizeof **octave);
	count = *octave + (step & 63);
	*count = times > UINT32_MAX - *count ? UINT32_MAX : *count + times;
}

/* Returns the middle of a step. */
static uint64_t histogram_step_value(unsigned octave, unsigned step)
{
	if (octave == 0)
		return step;
	return ((uint64_t)(64 + step) << (octave - 1)) + ((UINT64_C(1) << (octave - 1)) >> 1);
}

static void histogram_add_pending(struct percentiles *samples)
{
	for (unsigned i = 0; i < samples->used; i++)
		histogram_count_value(samples->rest.histogram, value_at(samples, i), 1);
	samples->used = 0;
}

/* ---- values in the temporary file ---- */

/* Values in the file: a struct piece, the one before, and then the values. */
struct piece {
	uint64_t at;
	uint32_t count; /* 0: there is no piece */
	bool is_wide;
};

struct spilled_values {
	struct piece last;
	uint32_t count; /* in all pieces */
	bool is_wide;   /* a piece has wide values */
	bool is_sorted; /* there is one piece, which is in order */
};

/* The values of all nodes that are spilled. */
static struct {
	struct spill_file *file;
	size_t users;
} spill;

/* A piece in memory. */
struct read_piece {
	struct piece before;
	union {
		uint32_t narrow[PERCENTILES_EXACT_MAX];
		uint64_t wide[PERCENTILES_EXACT_MAX];
	} values;
};

static_assert(sizeof(struct read_piece) <= SPILL_FILE_HELD_BYTES, "a piece fits");

static size_t bytes_of_values(const struct piece *piece)
{
	return piece->count * (piece->is_wide ? sizeof(uint64_t) : sizeof(uint32_t));
}

static struct piece write_piece(
	const struct piece *before, const void *values, uint32_t count, bool is_wide)
{
	struct piece piece = { .count = count, .is_wide = is_wide };
	unsigned char *to = spill_file_append(
		spill.file, sizeof *before + bytes_of_values(&piece), &piece.at);

	memcpy(to, before, sizeof *before);
	memcpy(to + sizeof *before, values, bytes_of_values(&piece));
	return piece;
}

static void load_piece(const struct piece *piece, struct read_piece *read)
{
	spill_file_read(spill.file, piece->at, read, sizeof read->before + bytes_of_values(piece));
}

static uint64_t piece_value(
	const struct piece *piece, const struct read_piece *read, uint32_t index)
{
	return piece->is_wide ? read->values.wide[index] : read->values.narrow[index];
}

static uint32_t spilled_count(const struct percentiles *samples)
{
	return samples->form == PERCENTILES_SPILLED ? samples->rest.spilled->count : 0;
}

static void begin_spilling(struct percentiles *samples)
{
	if (!spill.users++)
		spill.file = spill_file_new("durations");
	samples->rest.spilled = xcalloc(sizeof *samples->rest.spilled);
	samples->form = PERCENTILES_SPILLED;
}

/* Frees what is known of the pieces of a node. Their bytes stay in the file. */
static void end_spilling(struct spilled_values *spilled)
{
	free(spilled);
	if (--spill.users)
		return;
	spill_file_free(spill.file);
	spill.file = NULL;
}

/* Moves the values from memory to the file. */
static void spill_values(struct percentiles *samples)
{
	struct spilled_values *spilled;

	if (samples->form == PERCENTILES_VALUES)
		begin_spilling(samples);
	spilled = samples->rest.spilled;
	spilled->last = write_piece(
		&spilled->last, samples->values.narrow, samples->used, samples->is_wide);
	spilled->count += samples->used;
	spilled->is_wide |= samples->is_wide;
	spilled->is_sorted = false;
	samples->used = 0;
}

/* Returns the bytes of an array that count against the budget. */
static size_t counted_bytes(size_t bytes)
{
	return bytes > PERCENTILES_SMALL_BYTES ? bytes : 0;
}

static void count_spilled_values(struct histogram *histogram, const struct spilled_values *spilled)
{
	struct piece piece = spilled->last;
	struct read_piece read;

	for (; piece.count; piece = read.before) {
		load_piece(&piece, &read);
		for (uint32_t i = 0; i < piece.count; i++)
			histogram_count_value(histogram, piece_value(&piece, &read, i), 1);
	}
}

static void switch_to_histogram(struct percentiles *samples, struct percentiles_budget *budget)
{
	struct histogram *histogram = xcalloc(sizeof *histogram);

	if (samples->form == PERCENTILES_SPILLED) {
		count_spilled_values(histogram, samples->rest.spilled);
		end_spilling(samples->rest.spilled);
	}
	samples->form = PERCENTILES_HISTOGRAM;
	samples->rest.histogram = histogram;
	histogram_add_pending(samples);
	budget->bytes -= counted_bytes(samples->room * value_bytes(samples));
	free(samples->values.narrow);
	samples->values.narrow = xcalloc(PERCENTILES_PENDING_MAX * sizeof *samples->values.narrow);
	samples->room = PERCENTILES_PENDING_MAX;
	samples->is_wide = false;
}

/* Resizes the array to `room` values of `bytes` bytes. Returns false if that would exceed the
 * budget. */
static bool resize_values(
	struct percentiles *samples, unsigned room, size_t bytes, struct percentiles_budget *budget)
{
	const size_t before = counted_bytes(samples->room * value_bytes(samples)),
		     after = counted_bytes(room * bytes);
	void *values;

	if (after > before && budget->bytes - before + after > PERCENTILES_BYTES_MAX)
		return false;
	values = xcalloc((room + 1) * bytes);
	if (bytes == value_bytes(samples) && samples->used)
		memcpy(values, samples->values.narrow, samples->used * bytes);
	else
		for (unsigned i = 0; i < samples->used; i++)
			((uint64_t *)values)[i] = samples->values.narrow[i];
	free(samples->values.narrow);
	samples->values.narrow = values;
	samples->room = (uint16_t)room;
	samples->is_wide = bytes == sizeof(uint64_t);
	budget->bytes += after - before;
	return true;
}

/* Returns false if the values are too many for exact percentiles. */
static bool make_value_room(
	struct percentiles *samples, uint64_t value, struct percentiles_budget *budget)
{
	const size_t bytes = value > UINT32_MAX || samples->is_wide ? sizeof(uint64_t)
								    : sizeof(uint32_t);
	unsigned room = samples->room, left;

	if (spilled_count(samples) + samples->used == PERCENTILES_EXACT_MAX)
		return false;
	if (samples->form == PERCENTILES_VALUES) {
		if (samples->used == room)
			room = room ? room * 2 : 4;
		if (resize_values(samples, room, bytes, budget))
			return true;
	}
	if (samples->used)
		spill_values(samples);
	budget->spills++;
	/* The same memory as before. */
	left = PERCENTILES_EXACT_MAX - spilled_count(samples);
	room = (unsigned)(samples->room * value_bytes(samples) / bytes);
	if (bytes == value_bytes(samples) && room <= left)
		return true;
	return resize_values(samples, room < left ? room : left, bytes, budget);
}

void percentiles_add_slow(
	struct percentiles *samples, uint64_t value, struct percentiles_budget *budget)
{
	const bool fits = samples->used < samples->room &&
			  (samples->is_wide || value <= UINT32_MAX);

	if (samples->form != PERCENTILES_HISTOGRAM && !fits &&
		!make_value_room(samples, value, budget))
		switch_to_histogram(samples, budget);
	if (samples->form == PERCENTILES_HISTOGRAM) {
		histogram_add_pending(samples);
		histogram_count_value(samples->rest.histogram, value, 1);
	} else if (samples->is_wide) {
		samples->values.wide[samples->used++] = value;
	} else {
		samples->values.narrow[samples->used++] = (uint32_t)value;
	}
}

static void merge_spilled(struct percentiles *samples, const struct spilled_values *from,
	struct percentiles_budget *budget)
{
	struct piece piece = from->last;
	struct read_piece read;

	for (; piece.count; piece = read.before) {
		load_piece(&piece, &read);
		for (uint32_t i = 0; i < piece.count; i++)
			percentiles_add(samples, piece_value(&piece, &read, i), budget);
	}
}

static void merge_histogram(struct percentiles *samples, const struct histogram *from)
{
	for (unsigned octave = 0; octave < PERCENTILES_OCTAVES; octave++)
		for (unsigned step = 0; from->octaves[octave] && step < 64; step++)
			if (from->octaves[octave][step])
				histogram_count_value(samples->rest.histogram,
					histogram_step_value(octave, step),
					from->octaves[octave][step]);
}

void percentiles_merge(struct percentiles *samples, const struct percentiles *from,
	struct percentiles_budget *budget)
{
	if (from->form == PERCENTILES_HISTOGRAM && samples->form != PERCENTILES_HISTOGRAM)
		switch_to_histogram(samples, budget);
	for (unsigned i = 0; i < from->used; i++)
		percentiles_add(samples, value_at(from, i), budget);
	if (from->form == PERCENTILES_HISTOGRAM)
		merge_histogram(samples, from->rest.histogram);
	else if (from->form == PERCENTILES_SPILLED)
		merge_spilled(samples, from->rest.spilled, budget);
}

static bool is_sorted(const uint32_t *values, size_t count)
{
	for (size_t i = 1; i < count; i++)
		if (values[i - 1] > values[i])
			return false;
	return true;
}

/* One pass of a radix sort, by the byte at `shift`. */
static void sort_by_byte(const uint32_t *from, uint32_t *to, size_t count, unsigned shift)
{
	uint32_t ends[256] = { 0 };

	for (size_t i = 0; i < count; i++)
		ends[from[i] >> shift & 255]++;
	for (unsigned byte = 1; byte < 256; byte++)
		ends[byte] += ends[byte - 1];
	for (size_t i = count; i-- > 0;)
		to[--ends[from[i] >> shift & 255]] = from[i];
}

/* Sorts by radix, a byte at a time from the lowest one: four passes over the values. */
static void sort_narrow(uint32_t *values, size_t count)
{
	uint32_t *scratch;

	if (is_sorted(values, count))
		return;
	if (count < 64) {
		qsort(values, count, sizeof *values, compare_u32);
		return;
	}
	scratch = xcalloc(count * sizeof *scratch);
	for (unsigned shift = 0; shift < 32; shift += 16) {
		sort_by_byte(values, scratch, count, shift);
		sort_by_byte(scratch, values, count, shift + 8);
	}
	free(scratch);
}

static uint64_t nearest_rank(uint64_t count, unsigned per_mille)
{
	const uint64_t rank = (count * per_mille + 999) / 1000;

	return rank ? rank : 1;
}

static uint64_t histogram_percentile(const struct histogram *histogram, unsigned per_mille)
{
	uint64_t count = 0, rank;

	for (unsigned octave = 0; octave < PERCENTILES_OCTAVES; octave++)
		for (unsigned step = 0; histogram->octaves[octave] && step < 64; step++)
			count += histogram->octaves[octave][step];
	rank = nearest_rank(count, per_mille);
	for (unsigned octave = 0; octave < PERCENTILES_OCTAVES; octave++)
		for (unsigned step = 0; histogram->octaves[octave] && step < 64; step++) {
			if (rank <= histogram->octaves[octave][step])
				return histogram_step_value(octave, step);
			rank -= histogram->octaves[octave][step];
		}
	return 0;
}

static void sort_values(struct percentiles *samples)
{
	if (samples->is_wide)
		qsort(samples->values.wide, samples->used, sizeof *samples->values.wide,
			compare_u64);
	else
		sort_narrow(samples->values.narrow, samples->used);
}

/* Returns all values in memory, for percentiles_free. */
static struct percentiles load_values(const struct percentiles *samples)
{
	const struct spilled_values *spilled = samples->rest.spilled;
	struct percentiles all = { .is_wide = spilled->is_wide || samples->is_wide };
	struct piece piece = spilled->last;
	struct read_piece read;

	all.values.narrow = xcalloc((spilled->count + samples->used + 1u) * value_bytes(&all));
	for (; piece.count; piece = read.before) {
		load_piece(&piece, &read);
		if (piece.is_wide == all.is_wide) {
			memcpy((char *)all.values.narrow + all.used * value_bytes(&all),
				&read.values, bytes_of_values(&piece));
			all.used = (uint16_t)(all.used + piece.count);
			continue;
		}
		for (uint32_t i = 0; i < piece.count; i++)
			all.values.wide[all.used++] = read.values.narrow[i];
	}
	for (unsigned i = 0; i < samples->used; i++)
		if (all.is_wide)
			all.values.wide[all.used++] = value_at(samples, i);
		else
			all.values.narrow[all.used++] = samples->values.narrow[i];
	return all;
}

/* Replaces the pieces by one that has all values in order. */
static void sort_spilled(struct percentiles *samples)
{
	struct spilled_values *spilled = samples->rest.spilled;
	struct percentiles all = load_values(samples);

	sort_values(&all);
	*spilled = (struct spilled_values){ .last = write_piece(&(struct piece){ .count = 0 },
						    all.values.narrow, all.used, all.is_wide),
		.count = all.used,
		.is_wide = all.is_wide,
		.is_sorted = true };
	samples->used = 0;
	percentiles_free(&all);
}

static uint64_t spilled_percentile(struct percentiles *samples, unsigned per_mille)
{
	const struct piece *piece = &samples->rest.spilled->last;
	uint32_t narrow;
	uint64_t wide, index;

	if (samples->used || !samples->rest.spilled->is_sorted)
		sort_spilled(samples);
	index = nearest_rank(piece->count, per_mille) - 1;
	if (piece->is_wide) {
		spill_file_read(spill.file, piece->at + sizeof *piece + index * sizeof wide, &wide,
			sizeof wide);
		return wide;
	}
	spill_file_read(spill.file, piece->at + sizeof *piece + index * sizeof narrow, &narrow,
		sizeof narrow);
	return narrow;
}

uint64_t percentiles_get(struct percentiles *samples, unsigned per_mille)
{
	if (samples->form == PERCENTILES_HISTOGRAM) {
		histogram_add_pending(samples);
		return histogram_percentile(samples->rest.histogram, per_mille);
	}
	if (samples->form == PERCENTILES_SPILLED)
		return spilled_percentile(samples, per_mille);
	if (samples->used == 0)
		return 0;
	sort_values(samples);
	return value_at(samples, (unsigned)nearest_rank(samples->used, per_mille) - 1);
}

static void emit_buckets(const struct histogram *histogram,
	void (*add)(void *context, unsigned bucket, uint64_t count), void *context)
{
	for (unsigned octave = 0; octave < PERCENTILES_OCTAVES; octave++)
		for (unsigned step = 0; histogram->octaves[octave] && step < 64; step++)
			if (histogram->octaves[octave][step])
				add(context, octave * 64 + step, histogram->octaves[octave][step]);
}

static void free_octaves(struct histogram *histogram)
{
	for (unsigned octave = 0; octave < PERCENTILES_OCTAVES; octave++)
		free(histogram->octaves[octave]);
}

void percentiles_buckets(struct percentiles *samples,
	void (*add)(void *context, unsigned bucket, uint64_t count), void *context)
{
	struct histogram exact = { { NULL } };

	if (samples->form == PERCENTILES_HISTOGRAM) {
		histogram_add_pending(samples);
		emit_buckets(samples->rest.histogram, add, context);
		return;
	}
	if (samples->form == PERCENTILES_SPILLED)
		count_spilled_values(&exact, samples->rest.spilled);
	for (unsigned i = 0; i < samples->used; i++)
		histogram_count_value(&exact, value_at(samples, i), 1);
	emit_buckets(&exact, add, context);
	free_octaves(&exact);
}

bool percentiles_are_exact(const struct percentiles *samples)
{
	return samples->form != PERCENTILES_HISTOGRAM;
}

/* Writes which octaves are in use, and their counters. */
static void write_histogram(const struct histogram *histogram, struct value_writer *writer)
{
	uint64_t used = 0;

	for (unsigned octave = 0; octave < PERCENTILES_OCTAVES; octave++)
		used |= (uint64_t)(histogram->octaves[octave] != NULL) << octave;
	value_write_u64(writer, used);
	for (unsigned octave = 0; octave < PERCENTILES_OCTAVES; octave++)
		if (histogram->octaves[octave])
			value_write(writer, histogram->octaves[octave],
				64 * sizeof *histogram->octaves[octave]);
}

static void read_histogram(struct histogram *histogram, struct value_reader *reader)
{
	const uint64_t used = value_read_below(reader, (UINT64_C(1) << PERCENTILES_OCTAVES) - 1);

	for (unsigned octave = 0; octave < PERCENTILES_OCTAVES; octave++)
		if (used >> octave & 1) {
			histogram->octaves[octave] = xcalloc(
				64 * sizeof *histogram->octaves[octave]);
			value_read(reader, histogram->octaves[octave],
				64 * sizeof *histogram->octaves[octave]);
		}
}

/* What comes before the values: their number, and these bits. */
#define KEPT_WIDE 0x10000u
#define KEPT_HISTOGRAM 0x20000u

void percentiles_write(struct percentiles *samples, struct value_writer *writer)
{
	struct percentiles all = *samples;
	const bool is_spilled = samples->form == PERCENTILES_SPILLED;
	uint32_t head;

	if (samples->form == PERCENTILES_HISTOGRAM) {
		histogram_add_pending(samples);
		head = KEPT_HISTOGRAM;
		value_write(writer, &head, sizeof head);
		write_histogram(samples->rest.histogram, writer);
		return;
	}
	if (is_spilled)
		all = load_values(samples);
	head = all.used | (all.is_wide ? KEPT_WIDE : 0);
	value_write(writer, &head, sizeof head);
	value_write(writer, all.values.narrow, all.used * value_bytes(&all));
	if (is_spilled)
		percentiles_free(&all);
}

void percentiles_read(
	struct percentiles *samples, struct value_reader *reader, struct percentiles_budget *budget)
{
	struct percentiles kept = { .used = 0 };
	union {
		uint32_t narrow[PERCENTILES_EXACT_MAX];
		uint64_t wide[PERCENTILES_EXACT_MAX];
	} values;
	uint32_t head;

	value_read(reader, &head, sizeof head);
	if (head == KEPT_HISTOGRAM) {
		switch_to_histogram(samples, budget);
		read_histogram(samples->rest.histogram, reader);
		return;
	}
	kept.is_wide = head & KEPT_WIDE;
	head &= ~KEPT_WIDE;
	if (!value_check(reader, head <= PERCENTILES_EXACT_MAX) ||
		!value_read(reader, &values, head * value_bytes(&kept)))
		return;
	kept.used = (uint16_t)head;
	if (kept.is_wide)
		kept.values.wide = values.wide;
	else
		kept.values.narrow = values.narrow;
	for (unsigned i = 0; i < kept.used; i++)
		percentiles_add(samples, value_at(&kept, i), budget);
}

void percentiles_free(struct percentiles *samples)
{
	if (samples->form == PERCENTILES_SPILLED) {
		end_spilling(samples->rest.spilled);
	} else if (samples->form == PERCENTILES_HISTOGRAM) {
		free_octaves(samples->rest.histogram);
		free(samples->rest.histogram);
	}
	free(samples->values.narrow);
	*samples = (struct percentiles){ .used = 0 };
}
