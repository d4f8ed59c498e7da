/* SPDX-License-Identifier: MIT */
#include "report/import/convert/graph_captures.h"

#include "report/base/alloc.h"
#include "report/base/compare.h"
#include "report/import/convert/convert.h"
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

/* Graph node ids that the conversion makes: above all ids of CUPTI. */
#define MADE_NODE (UINT64_C(1) << 62)
/* Keys of what has no kernel name. Others are texts of the file with the launches. */
#define ANY_KERNEL UINT32_MAX
#define COPY_KEY (UINT32_MAX - 1)
#define MEMSET_KEY (UINT32_MAX - 2)
#define OTHER_KERNEL (UINT32_MAX - 3) /* a name that is not in that file */

struct captured_call {
	int64_t start, end;
	uint32_t kernel; /* its name, a text of the capture's file; 0: not known */
	uint32_t range;  /* innermost range, + 1; 0: none */
	uint32_t thread, capture;
	enum imported_gpu_kind kind;
};

struct capture {
	int64_t begin;
	uint32_t around; /* the capture that was the latest one in progress, + 1; 0: none */
	bool ended;
	size_t first, count; /* of its calls */
	uint64_t signature;  /* equal if the calls have the same ranges */
};

struct graph_captures {
	struct event_rows rows;
	uint32_t *parents;           /* by range: the enclosing range, + 1; 0: none */
	struct captured_call *calls; /* by capture, then start */
	size_t call_count, call_room;
	struct capture *captures;
	size_t count, room;
};

/* ---- the captures of a file ---- */

COMPARE_ROWS_BY(compare_capture_calls, struct imported_call, start)

static bool call_is(const struct event_rows *rows, uint32_t call, const char *word)
{
	const struct string_view name = string_table_get(rows->texts, rows->calls[call].name);

	return memmem(name.bytes, name.length, word, strlen(word)) != NULL;
}

static int compare_ids(const void *a, const void *b)
{
	return COMPARE(*(const uint64_t *)a, *(const uint64_t *)b);
}

/* Returns the correlation ids of all GPU work, ascending. */
static uint64_t *executed_ids(const struct event_rows *rows)
{
	uint64_t *ids = xcalloc((rows->gpu_count + 1) * sizeof *ids);

	for (size_t i = 0; i < rows->gpu_count; i++)
		ids[i] = rows->gpus[i].correlation;
	qsort(ids, rows->gpu_count, sizeof *ids, compare_ids);
	return ids;
}

/* Returns false if the call enqueues no GPU work. */
static bool captured_kind(struct string_view name, enum imported_gpu_kind *kind)
{
	switch (cuda_call_kind(name)) {
	case TRACE_LAUNCH:
		*kind = IMPORTED_KERNEL;
		return true;
	case TRACE_COPY:
		*kind = IMPORTED_COPY;
		return true;
	case TRACE_SET:
		*kind = IMPORTED_MEMSET;
		return true;
	default:
		return false;
	}
}

/* The captures in progress. Numbers are a capture's index + 1; 0: none. */
struct open_captures {
	uint32_t *of_thread;
	uint32_t latest;
};

static void begin_capture(
	struct graph_captures *found, struct open_captures *open, const struct imported_call *call)
{
	*ARRAY_ADD(found->captures, found->room,
		found->count) = (struct capture){ .begin = call->start, .around = open->latest };
	open->of_thread[call->thread] = open->latest = (uint32_t)found->count;
}

static void end_capture(struct graph_captures *found, struct open_captures *open, uint32_t thread)
{
	if (open->of_thread[thread])
		found->captures[open->of_thread[thread] - 1].ended = true;
	open->of_thread[thread] = 0;
	while (open->latest && found->captures[open->latest - 1].ended)
		open->latest = found->captures[open->latest - 1].around;
}

/* Adds a call to the capture of its thread, else to the latest capture in progress, because
 * autograd launches from a thread of its own. What ran has GPU work, so it was not captured. A call
 * inside the previous one of its thread is a second record of it. */
static void add_captured_call(struct graph_captures *found, const struct open_captures *open,
	const struct imported_call *call, const uint64_t *executed)
{
	const struct captured_call *last = found->call_count ? &found->calls[found->call_count - 1]
							     : NULL;
	const uint32_t capture = open->of_thread[call->thread] ? open->of_thread[call->thread]
							       : open->latest;
	const int64_t end = call->start + (int64_t)call->duration;
	enum imported_gpu_kind kind;

	if (!capture || (last && last->thread == call->thread && end <= last->end) ||
		!captured_kind(string_table_get(found->rows.texts, call->name), &kind) ||
		bsearch(&call->correlation, executed, found->rows.gpu_count, sizeof *executed,
			compare_ids))
		return;
	*ARRAY_ADD(found->calls, found->call_room,
		found->call_count) = (struct captured_call){ .start = call->start,
		.end = end,
		.kernel = call->kernel,
		.thread = call->thread,
		.capture = capture - 1,
		.kind = kind };
}

static int compare_captured_calls(const void *a, const void *b)
{
	const struct captured_call *left = a, *right = b;

	return left->capture != right->capture ? COMPARE(left->capture, right->capture)
					       : COMPARE(left->start, right->start);
}

/* Groups the calls by capture. A capture without an end in the file keeps none. */
static void group_calls(struct graph_captures *found)
{
	if (found->call_count)
		qsort(found->calls, found->call_count, sizeof *found->calls,
			compare_captured_calls);
	for (size_t i = found->call_count; i-- > 0;) {
		struct capture *capture = &found->captures[found->calls[i].capture];

		capture->first = i;
		capture->count += capture->ended;
	}
}

/* Finds the captures and their calls. `order`: the calls by start. */
static void find_captures(struct graph_captures *found, const uint32_t *order)
{
	const struct event_rows *rows = &found->rows;
	struct open_captures open = { .of_thread = xcalloc(
					      (rows->thread_count + 1) * sizeof(uint32_t)) };
	uint64_t *executed = executed_ids(rows);

	for (size_t i = 0; i < rows->call_count; i++) {
		const struct imported_call *call = &rows->calls[order[i]];

		if (call->result)
			continue;
		if (call_is(rows, order[i], "StreamBeginCapture"))
			begin_capture(found, &open, call);
		else if (call_is(rows, order[i], "StreamEndCapture"))
			end_capture(found, &open, call->thread);
		else if (open.latest)
			add_captured_call(found, &open, call, executed);
	}
	group_calls(found);
	free(open.of_thread);
	free(executed);
}

/* ---- the ranges around the captured calls ---- */

static int compare_by_thread(const void *a, const void *b, void *context)
{
	const struct captured_call *calls = context, *left = &calls[*(const uint32_t *)a],
				   *right = &calls[*(const uint32_t *)b];

	return left->thread != right->thread ? COMPARE(left->thread, right->thread)
					     : COMPARE(left->start, right->start);
}

static int compare_ranges_by_thread(const void *a, const void *b, void *context)
{
	const struct imported_range *ranges = context, *left = &ranges[*(const uint32_t *)a],
				    *right = &ranges[*(const uint32_t *)b];

	if (left->thread != right->thread)
		return COMPARE(left->thread, right->thread);
	if (left->start != right->start)
		return COMPARE(left->start, right->start);
	return COMPARE(right->duration, left->duration);
}

static uint32_t *numbers_sorted(
	size_t count, int (*compare)(const void *, const void *, void *), void *rows)
{
	uint32_t *numbers = xcalloc((count + 1) * sizeof *numbers);

	for (size_t i = 0; i < count; i++)
		numbers[i] = (uint32_t)i;
	sort_row_numbers(numbers, count, compare, rows);
	return numbers;
}

/* The open ranges of a thread, outermost first. */
struct open_ranges {
	uint32_t *rows;
	size_t count, room;
	uint32_t thread;
};

/* Removes the ranges that have ended by `time`, or all if `thread` is another one. */
static void close_ranges(
	const struct event_rows *rows, struct open_ranges *open, uint32_t thread, int64_t time)
{
	size_t kept = 0;

	for (size_t i = 0; i < open->count && thread == open->thread; i++) {
		const struct imported_range *range = &rows->ranges[open->rows[i]];

		if (range->start + (int64_t)range->duration > time)
			open->rows[kept++] = open->rows[i];
	}
	open->count = kept;
	open->thread = thread;
}

static bool starts_by(const struct imported_range *range, const struct captured_call *call)
{
	return range->thread < call->thread ||
	       (range->thread == call->thread && range->start <= call->start);
}

/* Sets the innermost range of each captured call, and the parent of each range. Ranges that were
 * open when the capture began are not part of it. */
static void find_ranges(struct graph_captures *found)
{
	const struct event_rows *rows = &found->rows;
	uint32_t *ranges = numbers_sorted(
			 rows->range_count, compare_ranges_by_thread, rows->ranges),
		 *calls = numbers_sorted(found->call_count, compare_by_thread, found->calls);
	struct open_ranges open = { .thread = UINT32_MAX };
	size_t next = 0;

	found->parents = xcalloc((rows->range_count + 1) * sizeof *found->parents);
	for (size_t i = 0; i < found->call_count; i++) {
		struct captured_call *call = &found->calls[calls[i]];

		for (; next < rows->range_count && starts_by(&rows->ranges[ranges[next]], call);
			next++) {
			const struct imported_range *range = &rows->ranges[ranges[next]];

			close_ranges(rows, &open, range->thread, range->start);
			found->parents[ranges[next]] = open.count ? open.rows[open.count - 1] + 1
								  : 0;
			*ARRAY_ADD(open.rows, open.room, open.count) = ranges[next];
		}
		close_ranges(rows, &open, call->thread, call->start);
		call->range = open.count ? open.rows[open.count - 1] + 1 : 0;
	}
	free(open.rows);
	free(ranges);
	free(calls);
}

/* Returns `range`, or 0 if it was open when the capture began. Both are a row + 1. */
static uint32_t range_inside(
	const struct graph_captures *found, const struct capture *capture, uint32_t range)
{
	return range && found->rows.ranges[range - 1].start >= capture->begin ? range : 0;
}

static void sign_capture(const struct graph_captures *found, struct capture *capture)
{
	uint64_t hash = capture->count;

	for (size_t i = 0; i < capture->count; i++) {
		uint32_t range = found->calls[capture->first + i].range;

		hash = hash_u64(hash + 1);
		while ((range = range_inside(found, capture, range))) {
			hash = hash_u64(hash ^ found->rows.ranges[range - 1].name);
			range = found->parents[range - 1];
		}
	}
	capture->signature = hash;
}

struct graph_captures *graph_captures_new(const struct event_rows *rows)
{
	struct graph_captures *found = xcalloc(sizeof *found);
	uint32_t *order;

	found->rows = *rows;
	convert_find_module_threads(&found->rows);
	order = numbers_sorted(rows->call_count, compare_capture_calls, rows->calls);
	find_captures(found, order);
	find_ranges(found);
	for (size_t i = 0; i < found->count; i++)
		sign_capture(found, &found->captures[i]);
	free(order);
	return found;
}

void graph_captures_free(struct graph_captures *captures)
{
	if (!captures)
		return;
	event_rows_free(&captures->rows);
	free(captures->parents);
	free(captures->calls);
	free(captures->captures);
	free(captures);
}

size_t graph_captures_count(const struct graph_captures *captures)
{
	size_t count = 0;

	for (size_t i = 0; i < captures->count; i++)
		count += captures->captures[i].count > 0;
	return count;
}

/* ---- launches that match ---- */

struct capture_match {
	struct conversion *conversion;
	const struct graph_captures *captures;
	uint32_t *keys;   /* by captured call */
	uint32_t *nodes;  /* by range of the captures' file: its node; 0: none yet */
	uint8_t *written; /* by captured call: its graph node is in the dictionary */
	uint32_t *order;  /* GPU rows by correlation id, then start */
	uint64_t launches, matched, ambiguous;
};

static uint32_t key_of_work(const struct imported_gpu *gpu)
{
	return gpu->kind == IMPORTED_KERNEL ? gpu->name
	       : gpu->kind == IMPORTED_COPY ? COPY_KEY
					    : MEMSET_KEY;
}

static uint32_t key_of_call(const struct capture_match *match, const struct captured_call *call)
{
	const struct string_view name = string_table_get(match->captures->rows.texts, call->kernel);
	uint32_t text;

	if (call->kind != IMPORTED_KERNEL)
		return call->kind == IMPORTED_COPY ? COPY_KEY : MEMSET_KEY;
	if (!call->kernel)
		return ANY_KERNEL;
	text = string_table_find(match->conversion->imported->texts, name.bytes, name.length);
	return text ? text : OTHER_KERNEL;
}

static int compare_work(const void *a, const void *b, void *context)
{
	const struct imported_gpu *gpus = context, *left = &gpus[*(const uint32_t *)a],
				  *right = &gpus[*(const uint32_t *)b];

	if (left->correlation != right->correlation)
		return COMPARE(left->correlation, right->correlation);
	if (left->start != right->start)
		return COMPARE(left->start, right->start);
	return COMPARE(*(const uint32_t *)a, *(const uint32_t *)b);
}

/* A memset may be executed as a kernel. */
static bool keys_agree(uint32_t call, uint32_t work)
{
	const bool is_kernel = work != COPY_KEY && work != MEMSET_KEY;

	return call == work || (is_kernel && (call == ANY_KERNEL || call == MEMSET_KEY));
}

static bool match_in_order(
	const struct capture_match *match, const struct capture *capture, const uint32_t *work)
{
	const struct imported_gpu *gpus = match->conversion->imported->gpus;

	for (size_t i = 0; i < capture->count; i++)
		if (!keys_agree(match->keys[capture->first + i], key_of_work(&gpus[work[i]])))
			return false;
	return true;
}

struct keyed_number {
	uint32_t key, number;
};

static int compare_keyed(const void *a, const void *b)
{
	const struct keyed_number *left = a, *right = b;

	return left->key != right->key ? COMPARE(left->key, right->key)
				       : COMPARE(left->number, right->number);
}

/* Pairs operations and calls of the same name. Sets assigned[i] to the call of work[i]. Returns
 * false if the names differ. */
static bool match_by_name(const struct capture_match *match, const struct capture *capture,
	const uint32_t *work, uint32_t *assigned)
{
	const struct imported_gpu *gpus = match->conversion->imported->gpus;
	struct keyed_number *calls = xcalloc((capture->count * 2 + 1) * sizeof *calls),
			    *done = calls + capture->count;
	bool same = true;

	for (size_t i = 0; i < capture->count; i++) {
		calls[i] = (struct keyed_number){ match->keys[capture->first + i], (uint32_t)i };
		done[i] = (struct keyed_number){ key_of_work(&gpus[work[i]]), (uint32_t)i };
	}
	qsort(calls, capture->count, sizeof *calls, compare_keyed);
	qsort(done, capture->count, sizeof *done, compare_keyed);
	for (size_t i = 0; i < capture->count && same; i++) {
		same = calls[i].key == done[i].key;
		assigned[done[i].number] = calls[i].number;
	}
	free(calls);
	return same;
}

/* Returns the capture of the launch with this work, and sets `assigned`. Returns NULL if there is
 * none, or if several have other ranges. */
static const struct capture *find_capture(
	struct capture_match *match, const uint32_t *work, size_t count, uint32_t *assigned)
{
	const struct capture *found = NULL;

	for (int by_name = 0; by_name < 2 && !found; by_name++)
		for (size_t i = 0; i < match->captures->count; i++) {
			const struct capture *capture = &match->captures->captures[i];

			if (capture->count != count ||
				!(by_name ? match_by_name(match, capture, work, assigned)
					  : match_in_order(match, capture, work)))
				continue;
			if (found && found->signature != capture->signature) {
				match->ambiguous++;
				return NULL;
			}
			found = capture;
			for (size_t k = 0; k < count && !by_name; k++)
				assigned[k] = (uint32_t)k;
		}
	return found;
}

/* Returns the text of the captures' file as one of the file with the launches. */
static uint32_t copy_text(const struct capture_match *match, uint32_t text)
{
	const struct string_view view = string_table_get(match->captures->rows.texts, text);

	return text ? string_table_intern(
			      match->conversion->imported->texts, view.bytes, view.length)
		    : 0;
}

/* Returns the node of a range of the captures' file, whose parents get nodes first. */
static uint32_t node_of_capture(
	struct capture_match *match, const struct capture *capture, uint32_t range)
{
	uint32_t path[256] = { 0 }, length = 0, node = 0;

	while ((range = range_inside(match->captures, capture, range)) && length < 256 &&
		!match->nodes[range - 1]) {
		path[length++] = range - 1;
		range = match->captures->parents[range - 1];
	}
	if (range && length < 256)
		node = match->nodes[range - 1];
	while (length--) {
		struct imported_range copy = match->captures->rows.ranges[path[length]];

		copy.name = copy_text(match, copy.name);
		copy.shapes = copy_text(match, copy.shapes);
		copy.domain = 0;
		node = match->nodes[path[length]] = convert_node(match->conversion, node, &copy, 0);
	}
	return node;
}

static void place_work(struct capture_match *match, const struct capture *capture,
	struct imported_gpu *gpu, uint32_t number)
{
	const size_t call = capture->first + number;
	struct trace_graph_node record = { .graph_node = MADE_NODE + call,
		.graph = gpu->graph,
		.type = (uint32_t)match->captures->calls[call].kind };

	gpu->graph_node = record.graph_node;
	if (match->written[call])
		return;
	match->written[call] = 1;
	record.head.node = node_of_capture(match, capture, match->captures->calls[call].range);
	writer_dictionary(match->conversion->writer, TRACE_GRAPH_NODE, &record, sizeof record);
}

static void match_launch(struct capture_match *match, const uint32_t *work, size_t count)
{
	struct event_rows *imported = match->conversion->imported;
	uint32_t *assigned = xcalloc((count + 1) * sizeof *assigned);
	const struct capture *capture = find_capture(match, work, count, assigned);

	match->launches++;
	match->matched += capture != NULL;
	for (size_t i = 0; i < count && capture; i++)
		place_work(match, capture, &imported->gpus[work[i]], assigned[i]);
	free(assigned);
}

static bool is_graph_launch(struct conversion *conversion, uint64_t correlation)
{
	const struct correlation_owner *owner = convert_owner(conversion, correlation);
	uint32_t sync;

	return owner && owner->call &&
	       convert_call_kind(conversion, conversion->imported->calls[owner->call - 1].name,
		       &sync) == TRACE_GRAPH_LAUNCH;
}

static void write_match_counts(const struct capture_match *match)
{
	char text[400];
	const int length = snprintf(
		text, sizeof text, "%" PRIu64 " of %" PRIu64, match->matched, match->launches);

	writer_meta(match->conversion->writer, "import.graphs", text, (size_t)length);
	if (match->matched == match->launches)
		return;
	snprintf(text, sizeof text,
		"%" PRIu64 " of %" PRIu64
		" graph launches match no capture in the file of --graphs%s; their kernels stay "
		"directly below the graph",
		match->launches - match->matched, match->launches,
		match->ambiguous ? ", or several with other ranges" : "");
	writer_meta(match->conversion->writer, "warning.import_captures", text, strlen(text));
}

void convert_graph_captures(struct conversion *conversion)
{
	struct event_rows *imported = conversion->imported;
	const struct graph_captures *captures = imported->captures;
	struct capture_match match = { .conversion = conversion, .captures = captures };

	if (!captures)
		return;
	match.keys = xcalloc((captures->call_count + 1) * sizeof *match.keys);
	match.nodes = xcalloc((captures->rows.range_count + 1) * sizeof *match.nodes);
	match.written = xcalloc(captures->call_count + 1);
	match.order = numbers_sorted(imported->gpu_count, compare_work, imported->gpus);
	for (size_t i = 0; i < captures->call_count; i++)
		match.keys[i] = key_of_call(&match, &captures->calls[i]);
	for (size_t i = 0, end; i < imported->gpu_count; i = end) {
		const uint64_t id = imported->gpus[match.order[i]].correlation;

		for (end = i + 1; end < imported->gpu_count &&
				  imported->gpus[match.order[end]].correlation == id;)
			end++;
		if (id && is_graph_launch(conversion, id))
			match_launch(&match, match.order + i, end - i);
	}
	write_match_counts(&match);
	free(match.keys);
	free(match.nodes);
	free(match.written);
	free(match.order);
}
