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
#define NUMBER_BYTES_MAX 5u

struct page {
	unsigned char bytes[1u << PAGE_SHIFT];
};

struct edge_groups {
	struct packed_array pages; /* struct page */
	uint64_t used;             /* bytes */
	struct edge_group open;    /* the group that is added; no edges: none yet */
	uint32_t last_to;          /* the point of the last group in the file */
};

struct edge_groups *edge_groups_new(void)
{
	struct edge_groups *groups = xcalloc(sizeof *groups);

	groups->pages = (struct packed_array){
		.size = sizeof(struct page), .class_at = ENTRY_NO_CLASS, .what = "dependencies"
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
	const size_t page = groups->used >> PAGE_SHIFT;
	struct page *to = page < groups->pages.count ? packed_array_edit(&groups->pages, page)
						     : packed_array_push(&groups->pages);

	to->bytes[groups->used++ & ((1u << PAGE_SHIFT) - 1)] = byte;
}

static void put_number(struct edge_groups *groups, uint32_t difference)
{
	uint32_t number = difference << 1 ^ (difference >> 31 ? UINT32_MAX : 0);
	unsigned char bytes[NUMBER_BYTES_MAX];
	unsigned count = 0;

	for (; number > 127; number >>= 7)
		bytes[count++] = (unsigned char)(number | 128);
	bytes[count++] = (unsigned char)number;
	while (count)
		put_byte(groups, bytes[--count]);
}

/* Reads the number that ends before `*at`. */
static uint32_t number_before(struct edge_groups *groups, uint64_t *at)
{
	uint32_t number = 0;
	unsigned char byte;
	unsigned shift = 0;

	do {
		const struct page *page = packed_array_at(&groups->pages, --*at >> PAGE_SHIFT);

		byte = page->bytes[*at & ((1u << PAGE_SHIFT) - 1)];
		number |= (uint32_t)(byte & 127) << shift;
		shift += 7;
	} while (byte & 128);
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

void edge_groups_add(struct edge_groups *groups, uint32_t from, uint32_t to)
{
	if (groups->open.to != to)
		write_open_group(groups);
	groups->open.to = to;
	*ARRAY_ADD(groups->open.from, groups->open.room, groups->open.count) = from;
}

struct edge_group edge_groups_last(struct edge_groups *groups)
{
	write_open_group(groups);
	return (struct edge_group){ .at = groups->used, .next_to = groups->last_to };
}

bool edge_groups_back(struct edge_groups *groups, struct edge_group *group)
{
	packed_array_trim(&groups->pages);
	if (!group->at)
		return false;
	group->to = group->next_to;
	group->next_to = group->to - number_before(groups, &group->at);
	group->count = number_before(groups, &group->at);
	ARRAY_GROW(group->from, group->room, group->count);
	for (size_t i = group->count; i-- > 0;)
		group->from[i] = group->to - number_before(groups, &group->at);
	return true;
}
