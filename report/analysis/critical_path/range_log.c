/* SPDX-License-Identifier: MIT
 * A range in the log: its duration; how long after the range before it it ended; then the
 * difference of its node to that of the range before it, with a bit that says whether the number of
 * that range's thread follows.
 */
#include "report/analysis/critical_path/range_log.h"

#include "report/base/alloc.h"
#include "report/base/compare.h"
#include "report/base/external_sort.h"
#include "report/base/hash_index.h"
#include "report/base/heap.h"
#include "report/base/number_log.h"

#include <stdlib.h>

#define LATE_IN_MEMORY 4096u

struct logged_range {
	uint64_t begin_ns, end_ns;
	uint64_t order; /* 0, 1, ... in the order in which ranges were added; of `late` only */
	uint32_t node, thread;
};

struct open_range_part {
	uint64_t begin_ns, end_ns;
	uint32_t node;
};

/* The ranges of a thread that are open at the position, in the order in which they began. Of those
 * that began at the same time, the one that ended last is first. */
struct range_thread {
	struct open_range_part *open;
	size_t count, room;
	uint32_t tid;
};

struct range_begin {
	uint64_t begin_ns;
	uint32_t thread;
};

#define BEGINS_LATER(a, b) ((a)->begin_ns > (b)->begin_ns)
DEFINE_HEAP(range_begins, struct range_begin, BEGINS_LATER)

struct range_log {
	struct number_log *numbers;
	/* Ranges that end before the range added before them. NULL: none do. */
	struct external_sort *late;
	uint64_t count;           /* ranges that were added */
	uint64_t left;            /* ranges in `numbers` that are not read yet */
	struct logged_range last; /* the one added last to `numbers`, or to be read next */
	struct range_thread *threads;
	size_t thread_count, thread_room;
	struct hash_index by_tid;   /* of threads */
	uint32_t found;             /* index of the thread that was found last */
	struct range_begin *begins; /* of the ranges that are open, the last one first */
	size_t begin_count, begin_room;
};

struct range_log *range_log_new(void)
{
	struct range_log *log = xcalloc(sizeof *log);

	log->numbers = number_log_new("ranges");
	return log;
}

static void clear_range_log(struct range_log *log)
{
	for (size_t i = 0; i < log->thread_count; i++)
		free(log->threads[i].open);
	external_sort_free(log->late);
	hash_index_free(&log->by_tid);
	log->late = NULL;
	log->by_tid = (struct hash_index){ .slots = NULL };
	log->thread_count = log->begin_count = 0;
	log->count = log->left = 0;
	log->last = (struct logged_range){ .begin_ns = 0 };
}

void range_log_free(struct range_log *log)
{
	if (!log)
		return;
	clear_range_log(log);
	number_log_free(log->numbers);
	free(log->threads);
	free(log->begins);
	free(log);
}

/* Returns the slot of the thread `tid`, or an empty one. */
static struct hash_slot *slot_of_tid(const struct range_log *log, uint32_t tid)
{
	struct hash_slot *slot = hash_index_first(&log->by_tid, hash_u64(tid));

	while (slot->number && log->threads[slot->number - 1].tid != tid)
		slot = hash_index_next(&log->by_tid, slot);
	return slot;
}

/* Returns the index of a thread, which is added if it is new. */
static uint32_t add_range_thread(struct range_log *log, uint32_t tid)
{
	struct hash_slot *slot;

	if (log->found < log->thread_count && log->threads[log->found].tid == tid)
		return log->found;
	hash_index_reserve(&log->by_tid);
	slot = slot_of_tid(log, tid);
	if (!slot->number) {
		*ARRAY_ADD(log->threads, log->thread_room,
			log->thread_count) = (struct range_thread){ .tid = tid };
		hash_index_add(&log->by_tid, slot, hash_u64(tid), (uint32_t)log->thread_count);
	}
	return log->found = slot->number - 1;
}

/* Returns NULL if the thread has no ranges. */
static struct range_thread *find_range_thread(struct range_log *log, uint32_t tid)
{
	const struct hash_slot *slot;

	if (!log->thread_count)
		return NULL;
	if (log->found >= log->thread_count || log->threads[log->found].tid != tid) {
		slot = slot_of_tid(log, tid);
		if (!slot->number)
			return NULL;
		log->found = slot->number - 1;
	}
	return &log->threads[log->found];
}

/* Sorts by end, the last one first. Of ranges with the same end, the one added last is first. */
static int compare_late_ranges(const void *left, const void *right)
{
	const struct logged_range *a = left, *b = right;

	return a->end_ns != b->end_ns ? COMPARE(b->end_ns, a->end_ns) : COMPARE(b->order, a->order);
}

static void add_late_range(struct range_log *log, struct logged_range range)
{
	if (!log->late)
		log->late = external_sort_new(
			sizeof(struct logged_range), LATE_IN_MEMORY, compare_late_ranges, "ranges");
	*(struct logged_range *)external_sort_add(log->late) = range;
}

void range_log_add(
	struct range_log *log, uint32_t tid, uint32_t node, uint64_t begin_ns, uint64_t end_ns)
{
	struct logged_range *last = &log->last;
	const struct logged_range range = { .begin_ns = begin_ns,
		.end_ns = end_ns,
		.order = log->count,
		.node = node,
		.thread = begin_ns < end_ns ? add_range_thread(log, tid) : 0 };
	const bool same = range.thread == last->thread;

	if (begin_ns >= end_ns)
		return;
	log->count++;
	if (end_ns < last->end_ns) {
		add_late_range(log, range);
		return;
	}
	number_log_add(log->numbers, end_ns - begin_ns);
	number_log_add(log->numbers, end_ns - last->end_ns);
	if (!same)
		number_log_add(log->numbers, last->thread);
	number_log_add(log->numbers,
		number_of_difference((int64_t)node - last->node) << 1 | (same ? 0 : 1));
	*last = range;
	log->left++;
}

static void restart_range_log(void *context)
{
	struct range_log *log = context;

	clear_range_log(log);
	number_log_clear(log->numbers);
}

static void log_segment(void *context, const struct observed_segment *seen)
{
	range_log_add(context, seen->thread->tid, seen->node, seen->begin_ns,
		seen->begin_ns + seen->total_ns);
}

struct profile_observer range_log_observer(struct range_log *log)
{
	return (struct profile_observer){
		.context = log, .restart = restart_range_log, .segment = log_segment
	};
}

/* ---- reading backwards ---- */

void range_log_rewind(struct range_log *log)
{
	number_log_rewind(log->numbers, true);
	if (log->late)
		external_sort_rewind_last(log->late);
}

/* Reads the range before log->last, which becomes log->last. Returns log->last as it was. */
static struct logged_range read_logged_range(struct range_log *log)
{
	struct logged_range range = log->last;
	const uint64_t code = number_log_back(log->numbers);

	if (code & 1)
		log->last.thread = (uint32_t)number_log_back(log->numbers);
	log->last.node = (uint32_t)(range.node - (uint64_t)difference_of_number(code >> 1));
	log->last.end_ns = range.end_ns - number_log_back(log->numbers);
	range.begin_ns = range.end_ns - number_log_back(log->numbers);
	log->left--;
	return range;
}

static const struct logged_range *next_late_range(const struct range_log *log)
{
	return log->late ? external_sort_peek(log->late) : NULL;
}

/* Returns the end of the range that opens next. 0: there is none. */
static uint64_t next_range_end(const struct range_log *log)
{
	const struct logged_range *late = next_late_range(log);
	const uint64_t end_ns = log->left ? log->last.end_ns : 0;

	return late ? max_u64(late->end_ns, end_ns) : end_ns;
}

/* Puts a range among those that are open on its thread. */
static void open_logged_range(struct range_log *log, const struct logged_range *range)
{
	struct range_thread *thread = &log->threads[range->thread];
	size_t at = thread->count;

	ARRAY_GROW(thread->open, thread->room, thread->count + 1);
	for (; at && (thread->open[at - 1].begin_ns > range->begin_ns ||
			     (thread->open[at - 1].begin_ns == range->begin_ns &&
				     thread->open[at - 1].end_ns < range->end_ns));
		at--)
		thread->open[at] = thread->open[at - 1];
	thread->open[at] = (struct open_range_part){
		.begin_ns = range->begin_ns, .end_ns = range->end_ns, .node = range->node
	};
	thread->count++;
	ARRAY_GROW(log->begins, log->begin_room, log->begin_count + 1);
	range_begins_up(log->begins, log->begin_count++,
		(struct range_begin){ .begin_ns = range->begin_ns, .thread = range->thread });
}

/* Opens the range that ends next. Of two that end at the same time, late ones were added later. */
static void open_next_range(struct range_log *log)
{
	const struct logged_range *late = next_late_range(log);
	struct logged_range range;

	if (late && (!log->left || late->end_ns >= log->last.end_ns)) {
		open_logged_range(log, late);
		external_sort_next(log->late);
		return;
	}
	range = read_logged_range(log);
	open_logged_range(log, &range);
}

static void close_first_begin(struct range_log *log)
{
	log->threads[log->begins[0].thread].count--;
	log->begin_count--;
	range_begins_down(log->begins, log->begin_count, log->begins[log->begin_count]);
}

/* Returns when the position changes next what is open. 0: never. */
static uint64_t next_range_change(const struct range_log *log)
{
	const uint64_t end_ns = next_range_end(log);

	return log->begin_count ? max_u64(end_ns, log->begins[0].begin_ns) : end_ns;
}

/* Moves the position before `at_ns`, the time of the next change. Returns whether a range begins
 * then. */
static bool pass_change(struct range_log *log, uint64_t at_ns)
{
	bool is_begin = false;

	while (next_range_end(log) == at_ns)
		open_next_range(log);
	for (; log->begin_count && log->begins[0].begin_ns == at_ns; is_begin = true)
		close_first_begin(log);
	return is_begin;
}

/* Moves the position before all that happens from `at_ns` on. */
static void pass_changes_from(struct range_log *log, uint64_t at_ns)
{
	uint64_t change_ns;

	while ((change_ns = next_range_change(log)) >= at_ns && change_ns)
		pass_change(log, change_ns);
}

/* Returns the innermost range at the position. NULL: none is open. The threads may be NULL. */
static const struct open_range_part *innermost_range(
	const struct range_thread *thread, const struct range_thread *other)
{
	if (thread && thread->count)
		return &thread->open[thread->count - 1];
	return other && other->count ? &other->open[other->count - 1] : NULL;
}

/* Moves the position back to where a part begins, at most to `from_ns`. Returns that time. */
static uint64_t find_part_begin(struct range_log *log, const struct range_thread *thread,
	const struct range_thread *other, uint64_t from_ns)
{
	uint64_t at_ns;

	while ((at_ns = next_range_change(log)) > from_ns) {
		const bool is_begin = pass_change(log, at_ns);
		const struct open_range_part *inner = innermost_range(thread, other);

		if (is_begin || (inner && inner->end_ns == at_ns))
			return at_ns;
	}
	return from_ns;
}

void range_log_within(struct range_log *log, uint32_t tid, uint32_t other, uint64_t begin_ns,
	uint64_t end_ns,
	void (*visit)(void *context, uint32_t node, uint64_t from_ns, uint64_t to_ns),
	void *context)
{
	const struct range_thread *second = other != tid ? find_range_thread(log, other) : NULL;
	const struct range_thread *first = find_range_thread(log, tid);
	uint64_t from_ns;

	pass_changes_from(log, end_ns);
	for (uint64_t now = end_ns; now > begin_ns; now = from_ns) {
		const struct open_range_part *inner = innermost_range(first, second);
		const uint32_t node = inner ? inner->node : 0;

		from_ns = find_part_begin(log, first, second, begin_ns);
		visit(context, node, from_ns, now);
	}
}
