/* SPDX-License-Identifier: MIT
 * The entries (texts, nodes, stacks, META) are in memory that a forked child inherits. The state of
 * the blocks in the file is in memory that is zero in the child. So the child's first event writes
 * all entries again, to the child's own file.
 */
#include "collector/file/dictionary.h"

#include "collector/process/fork_wiped_memory.h"
#include "collector/file/intern_table.h"
#include "collector/process/signal_guard.h"
#include "collector/file/trace_file.h"

#include <pthread.h>
#include <string.h>
#include <unistd.h>

#define FIRST_BLOCK_BYTES TRACE_FIRST_DICT /* enough for most small programs */
#define NEXT_BLOCK_BYTES (32u << 10)
#define RETRY_EVERY 1024u
#define METAS_MAX 128u
#define RECENT_GRAPH_NODES 16u /* threads that instantiate graphs at the same time */

/* The dictionary blocks of this process. Wiped in a forked child. */
struct dictionary_blocks {
	pthread_mutex_t lock;
	struct trace_block *block; /* the last one */
	uint64_t offset;
	uint32_t sequence;
	/* Stored with release, once everything known has been written. */
	uint32_t open;
	uint32_t refusals;
	/* The reason of the last refusal. */
	enum trace_loss reason;
	/* Stored with release, once the META of the process is set. */
	uint32_t described;
	/* The last records of graph nodes in this block. NULL: fewer. */
	struct trace_graph_node *recent_graph_nodes[RECENT_GRAPH_NODES];
	uint32_t graph_nodes_written;
};

struct node_key {
	uint32_t parent, name, domain, kind, link, detail;
};

/* A record that a forked child writes again. */
struct inherited_record {
	struct inherited_record *next;
	struct trace_head head; /* followed by the rest of the record */
};

static struct dictionary_blocks *blocks;
static struct intern_table names, nodes, stacks;
static struct meta metas[METAS_MAX]; /* the texts are copies */
static uint32_t meta_count, counter_count;
static struct inherited_record *inherited_records, **inherited_end = &inherited_records;
static void (*describe_process)(void); /* NULL: not set */

void dictionary_setup(void)
{
	blocks = fork_wiped_alloc(sizeof *blocks);
}

void dictionary_on_open(void (*describe)(void))
{
	describe_process = describe;
}

static void lock_blocks(struct signal_guard *guard)
{
	signal_guard_begin(guard);
	pthread_mutex_lock(&blocks->lock);
}

static void unlock_blocks(const struct signal_guard *guard)
{
	pthread_mutex_unlock(&blocks->lock);
	signal_guard_end(guard);
}

/* ---- writing; all under blocks->lock ---- */

static void finish_block(void)
{
	struct trace_block *block = blocks->block;

	if (block && !block->crc)
		block->crc = trace_block_crc(block, block + 1);
}

static void write_back(void)
{
	if (blocks->block && trace_tail_at_risk())
		trace_write_back(blocks->block, blocks->offset);
}

static bool map_dictionary_block(size_t min_bytes)
{
	uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE),
		 bytes = blocks->block ? NEXT_BLOCK_BYTES : FIRST_BLOCK_BYTES, offset;
	struct trace_block *block;

	if (blocks->refusals++ % RETRY_EVERY)
		return false;
	if (bytes < min_bytes + sizeof *block)
		bytes = min_bytes + sizeof *block;
	bytes = (bytes + page - 1) & ~(page - 1);
	block = trace_map_block(TRACE_DICT, bytes, &offset, &blocks->reason);
	if (!block)
		return false;
	finish_block();
	write_back();
	block->sequence = blocks->sequence++;
	blocks->block = block;
	blocks->offset = offset;
	memset(blocks->recent_graph_nodes, 0, sizeof blocks->recent_graph_nodes);
	blocks->refusals = 0;
	return true;
}

/* Returns zeroed space for a record of `size` bytes, or NULL. The record takes effect with
 * publish_bytes(). */
static void *reserve_bytes(size_t size)
{
	struct trace_block *block = blocks->block;

	if (!block || block->extent - sizeof *block - block->used < size) {
		if (!map_dictionary_block(size))
			return NULL;
		block = blocks->block;
	}
	return (char *)(block + 1) + block->used;
}

static void publish_bytes(size_t size)
{
	__atomic_store_n(&blocks->block->used, blocks->block->used + size, __ATOMIC_RELEASE);
}

static size_t round_up_8(size_t bytes)
{
	return (bytes + 7) & ~(size_t)7;
}

static struct trace_head dictionary_head(enum trace_kind kind, size_t size, uint32_t node)
{
	return (struct trace_head){ .size = (uint16_t)size, .kind = (uint8_t)kind, .node = node };
}

/* Writes the record of an interned entry. */
typedef bool write_entry(uint32_t id, const struct interned *entry);

static bool write_name(uint32_t id, const struct interned *entry)
{
	size_t size = sizeof(struct trace_name) + round_up_8(entry->count);
	struct trace_name *record = reserve_bytes(size);

	if (!record)
		return false;
	*record = (struct trace_name){ dictionary_head(TRACE_NAME, size, 0), id, entry->count };
	memcpy(record + 1, entry->bytes, entry->count);
	publish_bytes(size);
	return true;
}

static bool write_node(uint32_t id, const struct interned *entry)
{
	struct trace_node *record = reserve_bytes(sizeof *record);
	struct node_key key;

	if (!record)
		return false;
	memcpy(&key, entry->bytes, sizeof key);
	*record = (struct trace_node){ dictionary_head(TRACE_NODE, sizeof *record, id), key.parent,
		key.name, key.domain, key.kind, key.link, key.detail };
	publish_bytes(sizeof *record);
	return true;
}

/* A Python stack and a mixed stack begin with these values, which are no addresses. */
#define PYTHON_STACK_MARK UINT64_MAX
#define MIXED_STACK_MARK (UINT64_MAX - 1)

/* How a mixed stack is interned. */
struct mixed_stack_key {
	uint64_t mark;
	uint32_t native, python;
};

static bool write_python_stack(uint32_t id, const struct interned *entry)
{
	uint32_t bytes = entry->count - (uint32_t)sizeof(uint64_t);
	size_t size = sizeof(struct trace_python_stack) + bytes;
	struct trace_python_stack *record = reserve_bytes(size);

	if (!record)
		return false;
	*record = (struct trace_python_stack){ dictionary_head(TRACE_PYTHON_STACK, size, 0), id,
		bytes / (uint32_t)sizeof(struct trace_python_frame) };
	memcpy(record + 1, entry->bytes + sizeof(uint64_t), bytes);
	publish_bytes(size);
	return true;
}

static bool write_mixed_stack(uint32_t id, const struct interned *entry)
{
	struct trace_mixed_stack *record = reserve_bytes(sizeof *record);
	struct mixed_stack_key key;

	if (!record)
		return false;
	memcpy(&key, entry->bytes, sizeof key);
	*record = (struct trace_mixed_stack){ dictionary_head(TRACE_MIXED_STACK, sizeof *record, 0),
		id, key.native, key.python, 0 };
	publish_bytes(sizeof *record);
	return true;
}

static bool write_stack(uint32_t id, const struct interned *entry)
{
	size_t size = sizeof(struct trace_stack) + entry->count;
	struct trace_stack *record;
	uint64_t mark;

	memcpy(&mark, entry->bytes, sizeof mark);
	if (mark == PYTHON_STACK_MARK)
		return write_python_stack(id, entry);
	if (mark == MIXED_STACK_MARK)
		return write_mixed_stack(id, entry);
	if (!(record = reserve_bytes(size)))
		return false;
	*record = (struct trace_stack){ dictionary_head(TRACE_STACK, size, 0), id,
		entry->count / 8 };
	memcpy(record + 1, entry->bytes, entry->count);
	publish_bytes(size);
	return true;
}

static bool write_meta(const struct meta *meta)
{
	size_t key = strlen(meta->key), value = strlen(meta->value);
	size_t size = sizeof(struct trace_meta) + round_up_8(key + value);
	struct trace_meta *record = reserve_bytes(size);

	if (!record)
		return false;
	*record = (struct trace_meta){ dictionary_head(TRACE_META, size, 0), (uint32_t)key,
		(uint32_t)value };
	memcpy(record + 1, meta->key, key);
	memcpy((char *)(record + 1) + key, meta->value, value);
	publish_bytes(size);
	return true;
}

static bool write_record(const struct trace_head *record)
{
	void *room = reserve_bytes(record->size);

	if (!room)
		return false;
	memcpy(room, record, record->size);
	publish_bytes(record->size);
	return true;
}

/* ---- opening, in a process or in a forked child ---- */

static bool write_entries(const struct intern_table *table, write_entry *write)
{
	for (uint32_t id = 1; id <= table->count; id++)
		if (!write(id, intern_entry(table, id)))
			return false;
	return true;
}

static bool write_everything(void)
{
	for (uint32_t i = 0; i < meta_count; i++)
		if (!write_meta(&metas[i]))
			return false;
	for (const struct inherited_record *k = inherited_records; k; k = k->next)
		if (!write_record(&k->head))
			return false;
	return write_entries(&names, write_name) && write_entries(&nodes, write_node) &&
	       write_entries(&stacks, write_stack);
}

/* If there was no space for all of it, the next attempt writes it again. The repeated records are
 * the same, so this is harmless. */
static void open_locked(void)
{
	/* Try at once, because the callers back off already. */
	blocks->refusals = 0;
	if ((blocks->block || map_dictionary_block(0)) && write_everything())
		__atomic_store_n(&blocks->open, 1, __ATOMIC_RELEASE);
}

/* Sets the process's META before the dictionary is open, so that it is written to the first block
 * with all else that is known. Otherwise names of another thread could fill that block, and if
 * there was no space for a second one, the file would lack the META. Concurrent threads may each
 * set the same META. */
static void describe_process_once(void)
{
	if (!describe_process || __atomic_load_n(&blocks->described, __ATOMIC_ACQUIRE))
		return;
	describe_process();
	__atomic_store_n(&blocks->described, 1, __ATOMIC_RELEASE);
}

bool dictionary_open(enum trace_loss *reason)
{
	struct signal_guard guard;

	*reason = TRACE_LOST_NO_MEMORY;
	if (!blocks)
		return false;
	if (__atomic_load_n(&blocks->open, __ATOMIC_ACQUIRE))
		return true;
	describe_process_once();
	lock_blocks(&guard);
	if (!blocks->open)
		open_locked();
	*reason = blocks->reason;
	unlock_blocks(&guard);
	return __atomic_load_n(&blocks->open, __ATOMIC_ACQUIRE);
}

void dictionary_write_back(void)
{
	struct signal_guard guard;

	if (!blocks || !trace_tail_at_risk())
		return;
	lock_blocks(&guard);
	write_back();
	unlock_blocks(&guard);
}

void dictionary_close(void)
{
	struct signal_guard guard;

	if (!blocks)
		return;
	lock_blocks(&guard);
	finish_block();
	write_back();
	unlock_blocks(&guard);
}

/* Clears the last block's CRC. An exit handler may record something after dictionary_close(), and
 * then the block grows again. */
static void clear_block_crc(void)
{
	if (blocks->block)
		blocks->block->crc = 0;
}

/* ---- adding ---- */

/* Counts a loss if a record that is written only once found no space. */
static void count_if_lost(bool written)
{
	if (!written)
		trace_lose(blocks->reason, 1);
}

/* Reads without the lock, because texts that never repeat get here each time. */
static bool budget_is_spent(
	const struct intern_table *table, size_t count, uint32_t max_count, uint64_t max_bytes)
{
	return __atomic_load_n(&table->count, __ATOMIC_RELAXED) >= max_count ||
	       __atomic_load_n(&table->bytes, __ATOMIC_RELAXED) + count > max_bytes;
}

/* Returns the id that another thread has just added, or a new one. Called under the lock. */
static uint32_t add_locked(struct intern_table *table, const void *bytes, size_t count,
	uint32_t hash, write_entry *write)
{
	uint32_t id = intern_find(table, bytes, count, hash);

	if (id)
		return id;
	id = intern_prepare(table, bytes, count, hash);
	if (!id)
		return 0;
	clear_block_crc();
	if (blocks->open && !write(id, intern_entry(table, id)))
		return 0;
	intern_publish(table, id);
	return id;
}

static uint32_t add_entry(struct intern_table *table, const void *bytes, size_t count,
	uint32_t hash, uint32_t max_count, uint64_t max_bytes, write_entry *write)
{
	struct signal_guard guard;
	uint32_t id;

	if (!blocks || budget_is_spent(table, count, max_count, max_bytes))
		return 0;
	lock_blocks(&guard);
	id = add_locked(table, bytes, count, hash, write);
	unlock_blocks(&guard);
	return id;
}

static uint32_t name_within_budget(const char *text, size_t bytes, uint32_t budgets);

/* Cuts a text that is too long. The copy is not on the stack, because the program's threads may
 * have little. */
static uint32_t name_truncated(const char *text, uint32_t budgets)
{
	const size_t end = sizeof TRACE_TEXT_CUT - 1, keep = TRACE_TEXT_MAX - end;
	char *cut = fork_kept_alloc(TRACE_TEXT_MAX);
	uint32_t id;

	if (!cut)
		return 0;
	memcpy(cut, text, keep);
	memcpy(cut + keep, TRACE_TEXT_CUT, end);
	id = name_within_budget(cut, TRACE_TEXT_MAX, budgets);
	fork_kept_free(cut, TRACE_TEXT_MAX);
	return id;
}

static uint32_t name_within_budget(const char *text, size_t bytes, uint32_t budgets)
{
	uint32_t hash, id;

	if (bytes > TRACE_TEXT_MAX)
		return name_truncated(text, budgets);
	hash = intern_hash(text, bytes);
	id = intern_find(&names, text, bytes, hash);
	if (!id && budgets == 1 &&
		__atomic_load_n(&nodes.count, __ATOMIC_RELAXED) > NODES_FOR_TEXTS)
		return 0;
	return id ? id
		  : add_entry(&names, text, bytes, hash, NAME_BUDGET * budgets,
			    (uint64_t)NAME_BUDGET_BYTES * budgets, write_name);
}

uint32_t name_id(const char *text, size_t bytes)
{
	return name_within_budget(text, bytes, 1);
}

uint32_t name_id_always(const char *text, size_t bytes)
{
	uint32_t id = name_within_budget(text, bytes, 4);

	if (!id && blocks)
		trace_lose(blocks->refusals ? blocks->reason : TRACE_LOST_NO_MEMORY, 1);
	return id;
}

const char *name_text(uint32_t name, size_t *bytes)
{
	const struct interned *entry = intern_entry(&names, name);

	*bytes = entry->count;
	return entry->bytes;
}

static uint32_t find_or_add_node(const struct node_key *key)
{
	uint32_t hash = intern_hash(key, sizeof *key);
	uint32_t id = intern_find(&nodes, key, sizeof *key, hash);

	return id ? id
		  : add_entry(&nodes, key, sizeof *key, hash, NODE_BUDGET, UINT64_MAX, write_node);
}

uint32_t node_id(uint32_t parent, uint32_t name, uint32_t domain, enum trace_node_kind kind)
{
	return find_or_add_node(&(struct node_key){ parent, name, domain, (uint32_t)kind, 0, 0 });
}

uint32_t node_id_linked(
	uint32_t parent, uint32_t name, enum trace_node_kind kind, uint32_t link, uint32_t detail)
{
	return find_or_add_node(
		&(struct node_key){ parent, name, 0, (uint32_t)kind, link, detail });
}

enum trace_node_kind node_kind(uint32_t node)
{
	struct node_key key;

	/* The entries of all ids up to the count are written, for who has read it with acquire. */
	if (!node || node > __atomic_load_n(&nodes.count, __ATOMIC_ACQUIRE))
		return TRACE_NODE_RANGE;
	memcpy(&key, intern_entry(&nodes, node)->bytes, sizeof key);
	return (enum trace_node_kind)key.kind;
}

static uint32_t find_or_add_stack(const void *bytes, size_t count)
{
	uint32_t hash = intern_hash(bytes, count);
	uint32_t id = intern_find(&stacks, bytes, count, hash);

	return id ? id
		  : add_entry(&stacks, bytes, count, hash, STACK_BUDGET, UINT64_MAX, write_stack);
}

uint32_t stack_id(const uint64_t *frames, uint32_t count)
{
	return count ? find_or_add_stack(
			       frames, (count < STACK_FRAMES_MAX ? count : STACK_FRAMES_MAX) *
					       sizeof *frames)
		     : 0;
}

uint32_t python_stack_id(const struct trace_python_frame *frames, uint32_t count)
{
	struct {
		uint64_t mark;
		struct trace_python_frame frames[STACK_FRAMES_MAX];
	} key; /* not initialised: it is large, and most stacks are short */

	if (!count)
		return 0;
	count = count < STACK_FRAMES_MAX ? count : STACK_FRAMES_MAX;
	key.mark = PYTHON_STACK_MARK;
	memcpy(key.frames, frames, count * sizeof *frames);
	return find_or_add_stack(&key, sizeof key.mark + count * sizeof *frames);
}

uint32_t mixed_stack_id(uint32_t native, uint32_t python)
{
	const struct mixed_stack_key key = { MIXED_STACK_MARK, native, python };

	return !native ? python : !python ? native : find_or_add_stack(&key, sizeof key);
}

static const char *copy_to_arena(const char *text)
{
	size_t bytes = strnlen(text, TRACE_TEXT_MAX / 2);
	char *copy = intern_alloc(&names, bytes + 1);

	if (copy) {
		memcpy(copy, text, bytes);
		copy[bytes] = '\0';
	}
	return copy;
}

/* Returns the entry of `key`, prepared if there is none. NULL: no entry or memory is left. */
static struct meta *find_meta(const char *key)
{
	uint32_t i = 0;

	while (i < meta_count && strcmp(metas[i].key, key))
		i++;
	if (i == METAS_MAX || (i == meta_count && !(metas[i].key = copy_to_arena(key))))
		return NULL;
	return &metas[i];
}

/* Called under the lock. */
static void set_meta(const char *key, const char *value)
{
	struct meta *meta = find_meta(key);

	if (!meta || (meta->value && !strcmp(meta->value, value)) ||
		!(meta->value = copy_to_arena(value)))
		return;
	/* With release, because a child may be forked at any time. */
	if (meta == &metas[meta_count])
		__atomic_store_n(&meta_count, meta_count + 1, __ATOMIC_RELEASE);
	clear_block_crc();
	if (blocks->open)
		count_if_lost(write_meta(meta));
}

void meta_set_all(const struct meta *all, size_t count)
{
	struct signal_guard guard;

	if (!blocks)
		return;
	lock_blocks(&guard);
	for (size_t i = 0; i < count; i++)
		if (all[i].value)
			set_meta(all[i].key, all[i].value);
	unlock_blocks(&guard);
}

void meta_set(const char *key, const char *value)
{
	meta_set_all(&(struct meta){ key, value }, 1);
}

static void save_for_children(const struct trace_head *record)
{
	struct inherited_record *k = intern_alloc(
		&names, offsetof(struct inherited_record, head) + record->size);

	if (!k)
		return;
	k->next = NULL;
	memcpy(&k->head, record, record->size);
	__atomic_store_n(inherited_end, k, __ATOMIC_RELEASE);
	inherited_end = &k->next;
}

void dictionary_put(const struct trace_head *record, int inherit)
{
	struct signal_guard guard;

	if (!blocks)
		return;
	lock_blocks(&guard);
	clear_block_crc();
	if (blocks->open)
		count_if_lost(write_record(record));
	if (inherit)
		save_for_children(record);
	unlock_blocks(&guard);
}

/* Merges the record into the other one of the same graph node. */
static bool merge_graph_node(const struct trace_graph_node *record)
{
	for (uint32_t i = 0; i < RECENT_GRAPH_NODES; i++) {
		struct trace_graph_node *other = blocks->recent_graph_nodes[i];

		if (!other || other->graph_node != record->graph_node)
			continue;
		if (record->original)
			__atomic_store_n(&other->original, record->original, __ATOMIC_RELAXED);
		return true;
	}
	return false;
}

static void write_graph_node(const struct trace_graph_node *record)
{
	struct trace_graph_node *written = reserve_bytes(sizeof *written);

	count_if_lost(written != NULL);
	if (!written)
		return;
	memcpy(written, record, sizeof *written);
	publish_bytes(sizeof *written);
	blocks->recent_graph_nodes[blocks->graph_nodes_written++ % RECENT_GRAPH_NODES] = written;
}

void dictionary_put_graph_node(const struct trace_graph_node *record)
{
	struct signal_guard guard;

	if (!blocks)
		return;
	lock_blocks(&guard);
	clear_block_crc();
	if (blocks->open && !merge_graph_node(record))
		write_graph_node(record);
	unlock_blocks(&guard);
}

uint32_t counter_id(uint32_t name, uint32_t domain, uint32_t unit)
{
	uint32_t id = __atomic_add_fetch(&counter_count, 1, __ATOMIC_RELAXED);
	struct trace_counter record = { dictionary_head(TRACE_COUNTER, sizeof record, 0), id, name,
		domain, unit };

	dictionary_put(&record.head, 1);
	return id;
}
