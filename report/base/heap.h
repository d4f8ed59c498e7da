/* SPDX-License-Identifier: MIT
 * Defines binary heaps in arrays that the caller owns. DEFINE_HEAP(ends, struct end, is_earlier)
 * defines:
 *
 *	void ends_up(struct end *items, size_t at, struct end item);
 *		adds `item` to the first `at` items
 *	void ends_down(struct end *items, size_t count, struct end item);
 *		replaces the first of `count` items by `item`
 *
 * `is_earlier(a, b)`, a function or macro of two pointers to items, is true if `a` comes before
 * `b`. The item that no other comes before is items[0]. To remove it, let the last item replace
 * it:
 *
 *	first = items[0];
 *	count--;
 *	ends_down(items, count, items[count]);
 */
#ifndef PPERF_REPORT_BASE_HEAP_H
#define PPERF_REPORT_BASE_HEAP_H

#include <stddef.h>

/* The child is chosen without a branch on the comparison, which cannot be predicted. */
#define DEFINE_HEAP(name, type, before)                                            \
	static inline void name##_up(type *items, size_t at, type item)            \
	{                                                                          \
		while (at && before(&item, &items[(at - 1) / 2])) {                \
			items[at] = items[(at - 1) / 2];                           \
			at = (at - 1) / 2;                                         \
		}                                                                  \
		items[at] = item;                                                  \
	}                                                                          \
                                                                                   \
	static inline void name##_down(type *items, size_t count, type item)       \
	{                                                                          \
		size_t at = 0, child;                                              \
                                                                                   \
		while ((child = 2 * at + 1) < count) {                             \
			if (child + 1 < count)                                     \
				child += before(&items[child + 1], &items[child]); \
			if (!before(&items[child], &item))                         \
				break;                                             \
			items[at] = items[child];                                  \
			at = child;                                                \
		}                                                                  \
		items[at] = item;                                                  \
	}

#endif
