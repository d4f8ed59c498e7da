/* SPDX-License-Identifier: MIT */
#include "report/analysis/collective_rates.h"
#include "report/base/alloc.h"
#include "report/base/compare.h"
#include "report/gpu/device_timeline.h"
#include "report/stats/line_fit.h"
#include <stdlib.h>

struct sized_collective {
	uint64_t bytes, bus_bytes, duration_ns;
	uint32_t name, ranks;
	enum sized_operation operation;
	bool follows; /* begins when another collective of its GPU ends, or while it runs */
};

/* Orders equal collectives one after the other, the fastest first. */
static int compare_sized(const void *a, const void *b)
{
	const struct sized_collective *left = a, *right = b;

	if (left->name != right->name)
		return left->name < right->name ? -1 : 1;
	if (left->bytes != right->bytes)
		return left->bytes < right->bytes ? -1 : 1;
	if (left->bus_bytes != right->bus_bytes)
		return left->bus_bytes < right->bus_bytes ? -1 : 1;
	return COMPARE(left->duration_ns, right->duration_ns);
}

static bool are_equal(const struct sized_collective *left, const struct sized_collective *right)
{
	return left->name == right->name && left->bytes == right->bytes &&
	       left->bus_bytes == right->bus_bytes;
}

/* When the collectives of each device end. */
struct collective_ends {
	struct {
		uint32_t device;
		uint64_t end_ns;
	} devices[TIMELINE_DEVICES];
	size_t count;
};

/* Returns true if a collective begins when another one of its device ends. Takes the collectives
 * by their begin. */
static bool follows_another(struct collective_ends *ends, const struct activity *one)
{
	const size_t known = ends->count;
	const size_t at = (size_t)((char *)device_slot(ends->devices, &ends->count,
					   sizeof *ends->devices, one->device) -
				   (char *)ends->devices) /
			  sizeof *ends->devices;
	uint64_t *end_ns = &ends->devices[at].end_ns;
	const bool follows = ends->count == known &&
			     one->begin_ns <= *end_ns + COLLECTIVE_FOLLOWS_NS;

	*end_ns = ends->count == known ? max_u64(*end_ns, one->end_ns) : one->end_ns;
	return follows;
}

struct collective_list {
	struct sized_collective *all;
	size_t count, room;
	struct collective_ends ends;
};

struct collective_list *collective_list_new(void)
{
	return xcalloc(sizeof(struct collective_list));
}

void collective_list_free(struct collective_list *list)
{
	if (list)
		free(list->all);
	free(list);
}

static void list_collective(void *context, const struct activity *one)
{
	struct collective_list *list = context;
	bool follows;

	if (!one->communicates || one->kind != ACTIVITY_KERNEL || !one->counts || !one->timed)
		return;
	follows = follows_another(&list->ends, one);
	if (one->message_bytes)
		*ARRAY_ADD(list->all, list->room,
			list->count) = (struct sized_collective){ .bytes = one->message_bytes,
			.bus_bytes = one->bus_bytes,
			.duration_ns = one->duration_ns,
			.name = one->name,
			.ranks = one->message_ranks,
			.operation = (enum sized_operation)one->collective,
			.follows = follows };
}

struct activity_visitor collective_list_visitor(struct collective_list *list)
{
	return (struct activity_visitor){ .context = list, .add = list_collective };
}

/* Counts a collective among those with the largest messages. */
static void add_largest(struct collective_rates *rates, const struct sized_collective *one)
{
	if (one->bytes < rates->largest_bytes)
		return;
	if (one->bytes > rates->largest_bytes)
		rates->largest = rates->largest_following = 0;
	rates->largest_bytes = one->bytes;
	rates->largest++;
	rates->largest_following += one->follows;
}

/* Orders collectives of one kind one after the other, and those by size. */
static int compare_kinds(const void *a, const void *b)
{
	const struct sized_collective *left = a, *right = b;
	const bool known = left->operation != SIZED_OTHER;

	if (left->operation != right->operation)
		return left->operation < right->operation ? -1 : 1;
	if (left->ranks != right->ranks)
		return left->ranks < right->ranks ? -1 : 1;
	if (!known && left->name != right->name)
		return left->name < right->name ? -1 : 1;
	return COMPARE(left->bytes, right->bytes);
}

static bool is_same_kind(const struct sized_collective *left, const struct sized_collective *right)
{
	return left->operation == right->operation && left->ranks == right->ranks &&
	       (left->operation != SIZED_OTHER || left->name == right->name);
}

/* Returns `each` of a number of collectives, in percent of their time. */
static double percent_of_line(const struct collective_line *line, double each)
{
	return 100 * each * (double)line->count / (double)line->ns;
}

/* Judges by the ends of what the fixed part may be: what holds for one only is not said. */
static enum collective_limit limit_of_line(
	const struct collective_line *line, const struct line_fit *fit)
{
	if (fit->spread * 100 > fit->median_y * COLLECTIVE_SPREAD_MAX)
		return LINE_VARIES;
	if (percent_of_line(line, fit->intercept_low) >= COLLECTIVE_MOST) {
		if (fit->intercept_low > (double)line->latency_max_ns)
			return LINE_WAIT;
		if (fit->intercept_high <= (double)line->latency_max_ns)
			return LINE_LATENCY;
	}
	return percent_of_line(line, fit->intercept_high) <= COLLECTIVE_LITTLE ? LINE_TRANSFER
									       : LINE_BOTH;
}

/* Divides the time of collectives of one kind, sorted by size, by a line. */
static void divide_by_size(
	struct collective_line *line, const struct sized_collective *all, struct line_point *points)
{
	struct line_fit fit;
	double fixed;

	for (size_t i = 0; i < line->count; i++)
		points[i] = (struct line_point){ (double)all[i].bytes, (double)all[i].duration_ns };
	if (line->max_bytes / COLLECTIVE_SIZES_FACTOR < line->min_bytes || !line->ns ||
		!line_fit(points, line->count, &fit))
		return;
	fixed = fit.intercept > 0 ? fit.intercept : 0;
	if (fit.slope <= 0)
		fixed = fit.median_y;
	line->fixed_ns = min_u64((uint64_t)(fixed * (double)line->count), line->ns);
	line->fixed_each_ns = line->fixed_ns / line->count;
	line->bytes_per_s = fit.slope > 0 ? 1e9 / fit.slope : 0;
	line->limit = limit_of_line(line, &fit);
	if (line->sizes < COLLECTIVE_SIZES_MIN && line->limit != LINE_VARIES &&
		line->max_bytes / COLLECTIVE_TWO_SIZES_FACTOR < line->min_bytes)
		line->limit = fit.slope > 0 ? LINE_UNSURE : LINE_NONE;
}

static struct collective_line kind_of_collectives(
	const struct sized_collective *all, const struct sized_collective *end)
{
	struct collective_line line = { .operation = all->operation,
		.ranks = all->ranks,
		.sizes = 1,
		.min_bytes = all->bytes,
		.latency_max_ns = all->ranks > 1
					  ? (uint64_t)COLLECTIVE_LATENCY_RANK_NS * (all->ranks - 1)
					  : COLLECTIVE_LATENCY_NS };

	for (const struct sized_collective *one = all; one < end && is_same_kind(one, all); one++) {
		line.sizes += one > all && one->bytes != one[-1].bytes;
		line.max_bytes = one->bytes;
		line.ns += one->duration_ns;
		line.count++;
	}
	return line;
}

static struct collective_line line_of_most(struct collective_list *list)
{
	struct collective_line most = { .count = 0 };
	const struct sized_collective *all = list->all, *end = list->all + list->count;
	const struct sized_collective *of_most = all;
	struct line_point *points;

	qsort(list->all, list->count, sizeof *list->all, compare_kinds);
	for (struct collective_line one; all < end; all += one.count) {
		one = kind_of_collectives(all, end);
		if (one.ns > most.ns || !most.count) {
			most = one;
			of_most = all;
		}
	}
	points = xcalloc(most.count * sizeof *points);
	divide_by_size(&most, of_most, points);
	free(points);
	return most;
}

struct collective_rates collective_rates_of(struct collective_list *list)
{
	struct collective_rates rates = { .count = 0 };
	const struct sized_collective *fastest;

	if (list->count)
		qsort(list->all, list->count, sizeof *list->all, compare_sized);
	fastest = list->all;
	for (size_t i = 0; i < list->count; i++) {
		const struct sized_collective *one = &list->all[i];

		fastest = are_equal(fastest, one) ? fastest : one;
		rates.count++;
		rates.bytes += one->bytes;
		add_largest(&rates, one);
		rates.ns += one->duration_ns;
		rates.excess_ns += one->duration_ns - fastest->duration_ns;
		if (one->duration_ns - fastest->duration_ns > rates.slowest_ns - rates.fastest_ns) {
			rates.slowest_ns = one->duration_ns;
			rates.fastest_ns = fastest->duration_ns;
			rates.slowest_bytes = one->bytes;
		}
	}
	if (list->count)
		rates.line = line_of_most(list);
	return rates;
}
