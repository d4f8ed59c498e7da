/* SPDX-License-Identifier: MIT
 * Defines comparators for qsort and bsearch. Arrays of plain numbers are sorted with
 * compare_u32, compare_u64, compare_i64 or compare_double. For an array of structs a macro defines
 * the comparator:
 *
 *	COMPARE_BY(by_device, struct idle_device, device)          ascending
 *	COMPARE_BY_TWO(by_time, struct call, begin_ns, number)      ascending by both
 *	COMPARE_BY_THREE(by_site, struct site, level, node, stack)  ascending by all
 *	COMPARE_BY_LARGEST(by_bytes, struct owner, bytes, node)    largest bytes first, then by node
 *
 *	COMPARE_POINTERS_BY_LARGEST(by_time, struct kernel, ns)     of an array of pointers:
 *	                                            largest first, then by address
 *
 * A comparator with other rules ends in `return COMPARE(left->member, right->member)`.
 *
 * min_u64 and max_u64 return the smaller and the larger of two numbers.
 */
#ifndef PPERF_REPORT_BASE_COMPARE_H
#define PPERF_REPORT_BASE_COMPARE_H

#include <stdint.h>

/* -1, 0 or 1: `left` is less than, equal to, or greater than `right`. Evaluates its arguments
 * twice. 0 also if one of them is NaN. */
#define COMPARE(left, right) (((left) > (right)) - ((left) < (right)))

#define COMPARE_BY(name, type, member)                       \
	static int name(const void *a, const void *b)        \
	{                                                    \
		const type *left = a, *right = b;            \
                                                             \
		return COMPARE(left->member, right->member); \
	}

#define COMPARE_BY_TWO(name, type, first, second)                            \
	static int name(const void *a, const void *b)                        \
	{                                                                    \
		const type *left = a, *right = b;                            \
		const int order = COMPARE(left->first, right->first);        \
                                                                             \
		return order ? order : COMPARE(left->second, right->second); \
	}

#define COMPARE_BY_THREE(name, type, first, second, third)                        \
	static int name(const void *a, const void *b)                             \
	{                                                                         \
		const type *left = a, *right = b;                                 \
		const int order = left->first != right->first                     \
					  ? COMPARE(left->first, right->first)    \
					  : COMPARE(left->second, right->second); \
                                                                                  \
		return order ? order : COMPARE(left->third, right->third);        \
	}

#define COMPARE_BY_LARGEST(name, type, member, then)                     \
	static int name(const void *a, const void *b)                    \
	{                                                                \
		const type *left = a, *right = b;                        \
		const int order = COMPARE(right->member, left->member);  \
                                                                         \
		return order ? order : COMPARE(left->then, right->then); \
	}

#define COMPARE_POINTERS_BY_LARGEST(name, type, member)                                       \
	static int name(const void *a, const void *b)                                         \
	{                                                                                     \
		const type *left = *(const type *const *)a, *right = *(const type *const *)b; \
		const int order = COMPARE(right->member, left->member);                       \
                                                                                              \
		return order ? order : COMPARE(left, right);                                  \
	}

static inline int compare_u32(const void *a, const void *b)
{
	const uint32_t left = *(const uint32_t *)a, right = *(const uint32_t *)b;

	return COMPARE(left, right);
}

static inline int compare_u64(const void *a, const void *b)
{
	const uint64_t left = *(const uint64_t *)a, right = *(const uint64_t *)b;

	return COMPARE(left, right);
}

static inline int compare_i64(const void *a, const void *b)
{
	const int64_t left = *(const int64_t *)a, right = *(const int64_t *)b;

	return COMPARE(left, right);
}

static inline int compare_double(const void *a, const void *b)
{
	const double left = *(const double *)a, right = *(const double *)b;

	return COMPARE(left, right);
}

static inline uint64_t min_u64(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

static inline uint64_t max_u64(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

#endif
