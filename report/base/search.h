/* SPDX-License-Identifier: MIT
 * Defines binary searches. DEFINE_COUNT_WHILE defines a function that returns how many of the first
 * of `count` items satisfy `condition`. The condition is about `item`, a pointer to an item, and
 * `limit`. Items that satisfy it precede all others.
 *
 *	DEFINE_COUNT_WHILE(steps_begun, struct step, item->begin_ns <= limit)
 *
 *	size_t begun = steps_begun(steps, count, at_ns);
 */
#ifndef PPERF_REPORT_BASE_SEARCH_H
#define PPERF_REPORT_BASE_SEARCH_H

#include <stddef.h>
#include <stdint.h>

#define DEFINE_COUNT_WHILE(name, type, condition)                           \
	static size_t name(const type *items, size_t count, uint64_t limit) \
	{                                                                   \
		size_t low = 0, high = count;                               \
                                                                            \
		while (low < high) {                                        \
			const size_t middle = low + (high - low) / 2;       \
			const type *item = &items[middle];                  \
                                                                            \
			if (condition)                                      \
				low = middle + 1;                           \
			else                                                \
				high = middle;                              \
		}                                                           \
		return low;                                                 \
	}

#endif
