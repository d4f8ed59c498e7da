/* SPDX-License-Identifier: MIT
 * A group in the file: of each edge, how far its point is before the one that it leads to; the
 * number of edges; how far the group's point is after that of the group before it. Each number has
 * 7 bits in a byte, its sign in the lowest bit, and its lowest bits in the last byte, which is read
 * first.
 */
#include "report/analysis/critical_path/edge_groups.h"

#include "report/base/alloc.h"
#include "report/base/packed_array.h"

#include <stdlib.h>

#define PAGE_SHIFT 12u
#define PAGE_MASK ((1u << PAGE_SHIFT) - 1)
#define NUMBER_BYTES_MAX 5u

struct edge_page {
	unsigned char bytes[1u << PAGE_SHIFT];
};

struct edge_groups {
	struct packed_array pages; /* struct edge_page */
	struct edge_page *page;    /* the last one, which is being filled */
	uint64_t used;             /* bytes */
	struct edge_group open;    /* the group that is added; no edges: none yet */
	uint32_t last_to;          /* the point of the last group in the file */
};

struct edge_groups *edge_groups_new(void)
{
	struct edge_groups *groups = xcalloc(sizeof *groups);

	groups->pages = (struct packed_array){
		.size = sizeof(struct edge_page), .class_at = ENTRY_NO_CLASS, .what = "dependencies"
	};
	return groups;
}

void edge_group_free(struct edge_group *group)
{
	free(group->from);
	*group = (struct edge_group){ .from = NULL };
}

void edge_groups_free(struct edge_groups *groups)
{
	if (!groups)
		return;
	packed_array_free(&groups->pages);
	edge_group_free(&groups->open);
	free(groups);
}

static void put_byte(struct edge_groups *groups, unsigned char byte)
{
	const uint64_t at = groups->used++ & PAGE_MASK;

	if (!at)
		groups->page = packed_array_push(&groups->pages);
	groups->page->bytes[at] = byte;
}

static void put_number(struct edge_groups *groups, uint32_t difference)
{
	uint32_t number = difference << 1 ^ (difference >> 31 ? UINT32_MAX : 0);
	unsigned char bytes[NUMBER_BYTES_MAX];
	unsigned count = 0;

	if (__builtin_expect(number < 128, 1)) {
		put_byte(groups, (unsigned char)number);
		return;
	}
	for (; number > 127; number >>= 7)
		bytes[count++] = (unsigned char)(number | 128);
	bytes[count++] = (unsigned char)number;
	while (count)
		put_byte(groups, bytes[--count]);
}

/* Sets the page of the byte before group->at. */
static void load_page_before(struct edge_groups *groups, struct edge_group *group)
{
	packed_array_trim(&groups->pages);
	group->page = packed_array_at(&groups->pages, (group->at - 1) >> PAGE_SHIFT);
}

/* Reads the rest of the number that ends before group->at. `number`: its lowest 7 bits. */
static uint32_t rest_of_number(
	struct edge_groups *groups, struct edge_group *group, uint32_t number)
{
	unsigned char byte;
	unsigned shift = 7;

	do {
		if (!(group->at & PAGE_MASK))
			load_page_before(groups, group);
		byte = group->page->bytes[--group->at & PAGE_MASK];
		number |= (uint32_t)(byte & 127) << shift;
		shift += 7;
	} while (byte & 128);
	return number;
}

/* Reads the number that ends before group->at. */
static inline uint32_t number_before(struct edge_groups *groups, struct edge_group *group)
{
	unsigned char byte;
	uint32_t number;

	if (__builtin_expect(!(group->at & PAGE_MASK), 0))
		load_page_before(groups, group);
	byte = group->page->bytes[--group->at & PAGE_MASK];
	number = byte & 127;
	if (byte & 128)
		number = rest_of_number(groups, group, number);
	return number >> 1 ^ (number & 1 ? UINT32_MAX : 0);
}

static void write_open_group(struct edge_groups *groups)
{
	const struct edge_group *open = &groups->open;

	if (!open->count)
		return;
	for (size_t i = 0; i < open->count; i++)
		put_number(groups, open->to - open->from[i]);
	put_number(groups, (uint32_t)open->count);
	put_number(groups, open->to - groups->last_to);
	groups->last_to = open->to;
	groups->open.count = 0;
}

void edge_groups_add(struct edge_groups *groups, uint32_t from, uint32_t to, uint64_t at_ns)
{
	struct edge_group *open = &groups->open;

	if (open->to != to)
		write_open_group(groups);
	open->to = to;
	*ARRAY_ADD(open->from, open->room, open->count) = from;
	if (open->count > 1 && at_ns <= open->latest_ns)
		return;
	open->latest_ns = at_ns;
	open->from[open->count - 1] = open->from[0];
	open->from[0] = from;
}

struct edge_group edge_groups_last(struct edge_groups *groups)
{
	struct edge_group group;

	write_open_group(groups);
	group = (struct edge_group){ .at = groups->used, .next_to = groups->last_to };
	if (group.at)
		load_page_before(groups, &group);
	return group;
}

bool edge_groups_back(struct edge_groups *groups, struct edge_group *group)
{
	if (!group->at)
		return false;
	group->to = group->next_to;
	group->next_to = group->to - number_before(groups, group);
	group->count = number_before(groups, group);
	ARRAY_GROW(group->from, group->room, group->count);
	for (size_t i = group->count; i-- > 0;)
		group->from[i] = group->to - number_before(groups, group);
	return true;
}
