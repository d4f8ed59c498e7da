/* SPDX-License-Identifier: MIT
 *
 * The first value of a counter sets the level that later values are compared with: what happened
 * before it is not known. Decreases are left out, because a frame has no negative width.
 */
#include "report/page/flame_counters.h"
#include "report/base/alloc.h"
#include "report/page/flame_build.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

static void restart(void *context)
{
	struct counter_sums *sums = context;

	memset(sums->known, 0, sums->flame->metric_count * sizeof *sums->known);
	hash_index_free(&sums->index);
	sums->index = (struct hash_index){ 0 };
	sums->count = 0;
}

static struct counter_sum *find_sum(struct counter_sums *sums, uint32_t node, uint32_t counter)
{
	const uint64_t hash = hash_u64((uint64_t)node << 32 | counter);
	struct hash_slot *slot;
	struct counter_sum *sum;

	hash_index_reserve(&sums->index);
	slot = hash_index_first(&sums->index, hash);
	for (; slot->number; slot = hash_index_next(&sums->index, slot)) {
		sum = &sums->sums[slot->number - 1];
		if (sum->node == node && sum->counter == counter)
			return sum;
	}
	sum = ARRAY_ADD(sums->sums, sums->room, sums->count);
	*sum = (struct counter_sum){ .node = node, .counter = counter };
	hash_index_add(&sums->index, slot, hash, (uint32_t)sums->count);
	return sum;
}

static bool value_of(const struct trace_metric *record, long double *value)
{
	int64_t whole;
	double real;

	memcpy(&whole, &record->value, sizeof whole);
	memcpy(&real, &record->value, sizeof real);
	*value = record->type == TRACE_METRIC_I64 ? (long double)whole : (long double)real;
	return record->type == TRACE_METRIC_I64 ||
	       (record->type == TRACE_METRIC_F64 && isfinite(real));
}

static void add_sample(void *context, const struct trace_event *event, uint32_t node, bool counts)
{
	struct counter_sums *sums = context;
	const struct trace_metric *record = event->record;
	long double value;

	if (!value_of(record, &value))
		return;
	for (size_t i = 0; i < sums->flame->metric_count; i++) {
		const struct flame_metric *metric = &sums->flame->metrics[i];

		if (!metric->is_counter || metric->counter != record->counter)
			continue;
		if (sums->known[i] && counts && value > sums->last[i])
			find_sum(sums, node, (uint32_t)i)->sum += value - sums->last[i];
		sums->known[i] = true;
		sums->last[i] = value;
	}
}

void counter_sums_begin(struct counter_sums *sums, struct flame *flame)
{
	*sums = (struct counter_sums){ .flame = flame,
		.last = xcalloc((flame->metric_count + 1) * sizeof *sums->last),
		.known = xcalloc((flame->metric_count + 1) * sizeof *sums->known),
		.observer = { .restart = restart, .counter = add_sample } };
	sums->observer.context = sums;
}

void counter_sums_free(struct counter_sums *sums)
{
	free(sums->sums);
	free(sums->last);
	free(sums->known);
	hash_index_free(&sums->index);
}

static bool has_counter(const struct flame *flame, uint32_t counter)
{
	for (size_t i = 0; i < flame->metric_count; i++)
		if (flame->metrics[i].is_counter && flame->metrics[i].counter == counter)
			return true;
	return false;
}

void flame_add_counters(struct flame *flame, const struct process *process)
{
	static const char note[] = "what the program's own counter increased by, where the program "
				   "reported it; decreases are left out";
	const uint32_t count = reader_dictionary_count(process->reader, TRACE_COUNTER);

	for (uint32_t i = 0; process->profile->counts.metrics && i < count &&
			     flame->metric_count < FLAME_COUNTERS_MAX + 7;
		i++) {
		const struct trace_counter *counter = reader_dictionary(
			process->reader, TRACE_COUNTER, i);
		const struct trace_text name = reader_name(process->reader, counter->name);
		const struct trace_text unit = reader_name(process->reader, counter->unit);
		struct flame_metric metric = { .view = "steps",
			.unit = UNIT_USER,
			.note = note,
			.counter = counter->counter,
			.is_counter = true };

		if (!name.known || !name.length || has_counter(flame, counter->counter))
			continue;
		metric.key = metric.title = string_table_get(
			flame->texts, string_table_intern(flame->texts, name.bytes, name.length))
						    .bytes;
		if (unit.known && unit.length < sizeof metric.unit_name)
			memcpy(metric.unit_name, unit.bytes, unit.length);
		*ARRAY_ADD(flame->metrics, flame->metric_room, flame->metric_count) = metric;
	}
}
