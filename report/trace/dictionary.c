/* SPDX-License-Identifier: MIT
 * Reads the records twice. The first pass counts them, the second fills the tables.
 */
#include "report/trace/dictionary.h"

#include "report/base/compare.h"
#include "report/base/alloc.h"
#include "report/base/progress.h"
#include "report/trace/record_check.h"
#include "report/trace/trace_header.h"

#include <stdlib.h>
#include <string.h>

struct dictionary_reading {
	struct trace_dictionary *dictionary;
	const struct trace_blocks *blocks;
	struct read_warnings *warnings;
	uint32_t id_end; /* ids at or above it are damage */
	bool counting;   /* first pass */
};

static uint32_t record_node_id(const struct trace_head *head)
{
	const void *record = head;

	return head->kind == TRACE_NAME ? ((const struct trace_name *)record)->name : head->node;
}

/* Loads the payload of `entry`. A live process may have added to the block since the scan, or
 * set its crc. A wrong crc is therefore checked twice. Returns false with errno if a read fails. */
static bool load_dictionary_block(
	struct dictionary_reading *reading, struct block_entry entry, struct block_payload *payload)
{
	struct trace_block head;
	enum load_result result = LOAD_TORN;

	for (int tries = 0; tries < 2 && result == LOAD_TORN; tries++) {
		int64_t got = pread_all(reading->blocks->fd, &head, sizeof head, entry.offset);

		if (got < 0)
			return false;
		if (!entry.cut && got == sizeof head && head.used > entry.used &&
			head.used <= head.extent - sizeof head)
			entry.used = (uint32_t)head.used;
		result = blocks_load(reading->blocks, &entry, payload);
		progress_read(entry.used, entry.offset, reading->blocks->file_bytes);
	}
	if (result == LOAD_ERROR)
		return false;
	if (result == LOAD_TORN) {
		reading->warnings->integrity.damaged_blocks++;
		read_warnings_add(reading->warnings, entry.offset,
			"a dictionary block does not match the CRC in its header: names may be "
			"wrong");
	}
	if (entry.cut)
		reading->warnings->integrity.cut_blocks++;
	return true;
}

static void count_record(struct dictionary_reading *reading, const struct trace_head *head)
{
	struct trace_dictionary *dictionary = reading->dictionary;
	uint32_t *end = head->kind == TRACE_NAME ? &dictionary->name_end : &dictionary->node_end;
	uint32_t id = record_node_id(head);

	if (head->kind != TRACE_NAME && head->kind != TRACE_NODE)
		dictionary->lists[head->kind].count++;
	else if (id < reading->id_end && id >= *end)
		*end = id + 1;
}

static void store_name(struct dictionary_reading *reading, const struct trace_name *record)
{
	struct dictionary_name *name;

	if (record->name == 0 || record->name >= reading->dictionary->name_end)
		return;
	name = &reading->dictionary->names[record->name];
	if (!name->bytes)
		*name = (struct dictionary_name){ (const char *)(record + 1), record->bytes };
}

static void store_node(struct dictionary_reading *reading, const struct trace_node *record)
{
	const bool known_kind = record->kind && record->kind <= UINT16_MAX;
	struct trace_node_info *node;
	uint32_t id = record->head.node;

	if (id == 0 || id >= reading->dictionary->node_end)
		return;
	node = &reading->dictionary->nodes[id];
	if (node->kind)
		return;
	*node = (struct trace_node_info){ .parent = record->parent < id ? record->parent : 0,
		.name = record->name,
		.domain = record->domain,
		.link = record->link < id ? record->link : 0,
		.detail = record->detail,
		.kind = known_kind ? (uint16_t)record->kind : TRACE_NODE_RANGE };
	/* A parent has a smaller id than its children, and an operator a smaller one than its
	 * backward functions. Other links would be circular or point nowhere. */
	if (record->parent >= id || record->link >= id)
		reading->warnings->integrity.unknown_nodes++;
}

static void store_record(struct dictionary_reading *reading, const struct trace_head *head)
{
	struct record_list *list = &reading->dictionary->lists[head->kind];

	if (head->kind == TRACE_NAME)
		store_name(reading, (const void *)head);
	else if (head->kind == TRACE_NODE)
		store_node(reading, (const void *)head);
	else
		list->records[list->count++] = head;
}

static void note_damage(struct dictionary_reading *reading, const struct block_entry *entry,
	uint32_t at, const char *problem)
{
	reading->warnings->integrity.damaged_payloads++;
	read_warnings_add(reading->warnings, entry->offset + sizeof(struct trace_block) + at,
		"a dictionary record %s: the rest of its block is skipped, names may be missing",
		problem);
}

static void read_records(struct dictionary_reading *reading, const struct block_entry *entry,
	const struct block_payload *payload)
{
	for (uint32_t at = 0; payload->used - at >= 4;) {
		const struct trace_head *head = (const void *)(payload->bytes + at);
		const char *problem;
		uint32_t word;

		memcpy(&word, head, sizeof word);
		if (word == 0) {
			at += 4;
			continue;
		}
		problem = at % 8 || word & 3 ? "does not start at a valid offset"
					     : record_check(head, payload->used - at);
		if (problem) {
			if (reading->counting)
				note_damage(reading, entry, at, problem);
			return;
		}
		at += head->size;
		if (kind_is_dictionary(head->kind)) {
			if (reading->counting)
				count_record(reading, head);
			else
				store_record(reading, head);
		} else if (reading->counting) {
			reading->warnings->integrity.unknown_kinds++;
			reading->warnings->integrity.unknown_bytes += head->size;
		}
	}
}

static void read_all_blocks(struct dictionary_reading *reading)
{
	const struct trace_blocks *blocks = reading->blocks;

	for (uint32_t i = 0; i < reading->dictionary->payload_count; i++)
		read_records(reading, &blocks->entries[blocks->streams_end + i],
			&reading->dictionary->payloads[i]);
}

static void make_tables(struct trace_dictionary *dictionary)
{
	if (dictionary->name_end == 0)
		dictionary->name_end = 1;
	if (dictionary->node_end == 0)
		dictionary->node_end = 1;
	dictionary->names = xcalloc(dictionary->name_end * sizeof *dictionary->names);
	dictionary->nodes = xcalloc(((size_t)dictionary->node_end + 1) * sizeof *dictionary->nodes);
	for (unsigned kind = 0; kind < TRACE_KINDS; kind++) {
		dictionary->lists[kind].records = xcalloc(
			(size_t)dictionary->lists[kind].count * sizeof(void *));
		dictionary->lists[kind].count = 0;
	}
}

static void set_depths(struct trace_dictionary *dictionary)
{
	for (uint32_t id = 1; id <= dictionary->node_end; id++) {
		struct trace_node_info *node = &dictionary->nodes[id];
		uint16_t above = dictionary->nodes[node->parent].depth;

		node->depth = above == UINT16_MAX ? above : (uint16_t)(above + 1);
	}
}

/* A record with its position in the list. Payloads are separate allocations, so addresses order
 * the records of one block only. */
struct positioned_record {
	const struct trace_head *record;
	uint32_t position;
};

static struct trace_text meta_key(const struct trace_head *head)
{
	const struct trace_meta *meta = (const void *)head;

	return (struct trace_text){ (const char *)(meta + 1), meta->key_bytes, true };
}

static int compare_meta_keys(const void *left, const void *right)
{
	const struct positioned_record *a = left, *b = right;
	struct trace_text key_a = meta_key(a->record), key_b = meta_key(b->record);
	int order = memcmp(key_a.bytes, key_b.bytes,
		key_a.length < key_b.length ? key_a.length : key_b.length);

	if (order)
		return order;
	if (key_a.length != key_b.length)
		return key_a.length < key_b.length ? -1 : 1;
	return COMPARE(a->position, b->position);
}

COMPARE_BY(compare_positions, struct positioned_record, position)

uint32_t dictionary_record_id(const struct trace_head *record)
{
	const void *whole = record;

	switch (record->kind) {
	case TRACE_STACK:
		return ((const struct trace_stack *)whole)->stack;
	case TRACE_PYTHON_STACK:
		return ((const struct trace_python_stack *)whole)->stack;
	case TRACE_MIXED_STACK:
		return ((const struct trace_mixed_stack *)whole)->stack;
	case TRACE_SOURCE:
		return record->node;
	default:
		return ((const struct trace_counter *)whole)->counter;
	}
}

static int compare_record_ids(const void *left, const void *right)
{
	const struct positioned_record *a = left, *b = right;
	uint32_t id_a = dictionary_record_id(a->record), id_b = dictionary_record_id(b->record);

	if (id_a != id_b)
		return id_a < id_b ? -1 : 1;
	return compare_positions(left, right);
}

static void sort_positioned(struct positioned_record *positioned, uint32_t count,
	int (*order)(const void *, const void *))
{
	if (count)
		qsort(positioned, count, sizeof *positioned, order);
}

static struct positioned_record *list_positions(const struct record_list *list)
{
	struct positioned_record *positioned = xcalloc(list->count * sizeof *positioned);

	for (uint32_t i = 0; i < list->count; i++)
		positioned[i] = (struct positioned_record){ list->records[i], i };
	return positioned;
}

/* Keeps the last META of each key, in file order. */
static void keep_last_metas(struct record_list *list)
{
	struct positioned_record *positioned = list_positions(list);
	uint32_t kept = 0;

	sort_positioned(positioned, list->count, compare_meta_keys);
	for (uint32_t i = 0; i < list->count; i++) {
		struct trace_text key = meta_key(positioned[i].record), next;

		if (i + 1 < list->count) {
			next = meta_key(positioned[i + 1].record);
			if (key.length == next.length && !memcmp(key.bytes, next.bytes, key.length))
				continue;
		}
		positioned[kept++] = positioned[i];
	}
	sort_positioned(positioned, kept, compare_positions);
	for (uint32_t i = 0; i < kept; i++)
		list->records[i] = positioned[i].record;
	list->count = kept;
	free(positioned);
}

static bool is_sorted_by_id(const struct record_list *list)
{
	for (uint32_t i = 1; i < list->count; i++)
		if (dictionary_record_id(list->records[i]) <
			dictionary_record_id(list->records[i - 1]))
			return false;
	return true;
}

static void sort_by_id(struct record_list *list)
{
	struct positioned_record *positioned;

	if (is_sorted_by_id(list))
		return;
	positioned = list_positions(list);
	sort_positioned(positioned, list->count, compare_record_ids);
	for (uint32_t i = 0; i < list->count; i++)
		list->records[i] = positioned[i].record;
	free(positioned);
}

static bool load_dictionary_blocks(struct dictionary_reading *reading)
{
	struct trace_dictionary *dictionary = reading->dictionary;
	const struct trace_blocks *blocks = reading->blocks;

	dictionary->payload_count = blocks->count - blocks->streams_end;
	dictionary->payloads = xcalloc(dictionary->payload_count * sizeof *dictionary->payloads);
	for (uint32_t i = 0; i < dictionary->payload_count; i++)
		if (!load_dictionary_block(reading, blocks->entries[blocks->streams_end + i],
			    &dictionary->payloads[i]))
			return false;
	return true;
}

bool dictionary_read(struct trace_dictionary *dictionary, const struct trace_blocks *blocks,
	struct read_warnings *warnings)
{
	struct dictionary_reading reading = { dictionary, blocks, warnings, 0, true };
	uint64_t ids = blocks->file_bytes / 16 + 1024;

	*dictionary = (struct trace_dictionary){ 0 };
	reading.id_end = ids < 1u << 30 ? (uint32_t)ids : 1u << 30;
	if (!load_dictionary_blocks(&reading))
		return false;
	read_all_blocks(&reading);
	make_tables(dictionary);
	reading.counting = false;
	read_all_blocks(&reading);
	set_depths(dictionary);
	keep_last_metas(&dictionary->lists[TRACE_META]);
	sort_by_id(&dictionary->lists[TRACE_STACK]);
	sort_by_id(&dictionary->lists[TRACE_PYTHON_STACK]);
	sort_by_id(&dictionary->lists[TRACE_MIXED_STACK]);
	sort_by_id(&dictionary->lists[TRACE_SOURCE]);
	sort_by_id(&dictionary->lists[TRACE_COUNTER]);
	sort_by_id(&dictionary->lists[TRACE_FRAME]);
	sort_by_id(&dictionary->lists[TRACE_PYTHON_FRAME]);
	return true;
}

void dictionary_free(struct trace_dictionary *dictionary)
{
	for (uint32_t i = 0; i < dictionary->payload_count && dictionary->payloads; i++)
		block_payload_free(&dictionary->payloads[i]);
	for (unsigned kind = 0; kind < TRACE_KINDS; kind++)
		free(dictionary->lists[kind].records);
	free(dictionary->payloads);
	free(dictionary->names);
	free(dictionary->nodes);
}
