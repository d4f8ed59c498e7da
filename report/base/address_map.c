/* SPDX-License-Identifier: MIT */
#include "report/base/address_map.h"
#include "report/base/alloc.h"
#include <stdlib.h>
#include <string.h>

#define HEIGHT_MAX 16u /* a tree of half-full nodes with more levels does not fit into memory */

struct inner_node {
	struct address_map_node node;
	struct address_map_node *children[ADDRESS_MAP_FANOUT];
};

static struct inner_node *as_inner(struct address_map_node *node)
{
	return (struct inner_node *)(void *)node;
}

static struct address_map_leaf *as_leaf(struct address_map_node *node)
{
	return (struct address_map_leaf *)(void *)node;
}

/* Returns the number of keys up to `key`. */
static uint32_t keys_up_to(const struct address_map_node *node, uint64_t key)
{
	uint32_t first = 0, count = node->count;

	while (count) {
		const uint32_t half = count / 2;
		const bool is_right = node->keys[first + half] <= key;

		first = is_right ? first + half + 1 : first;
		count = is_right ? count - half - 1 : half;
	}
	return first;
}

/* Returns the index of the child that has `key`, if any child has it. */
static uint32_t child_of_key(const struct address_map_node *node, uint64_t key)
{
	const uint32_t count = keys_up_to(node, key);

	return count ? count - 1 : 0;
}

static size_t node_bytes(uint32_t level)
{
	return level ? sizeof(struct inner_node) : sizeof(struct address_map_leaf);
}

static struct address_map_node *new_node(struct address_map *map, uint32_t level)
{
	map->bytes += node_bytes(level);
	return xcalloc(node_bytes(level));
}

static void free_node(struct address_map *map, struct address_map_node *node, uint32_t level)
{
	map->bytes -= node_bytes(level);
	free(node);
}

static void free_subtree(struct address_map *map, struct address_map_node *node, uint32_t level)
{
	for (uint32_t i = 0; level && i < node->count; i++)
		free_subtree(map, as_inner(node)->children[i], level - 1);
	free_node(map, node, level);
}

void address_map_free(struct address_map *map)
{
	if (map->root)
		free_subtree(map, map->root, map->height);
	*map = (struct address_map){ .count = 0 };
}

/* Makes room for an entry at `index`. */
static void open_slot(struct address_map_node *node, uint32_t level, uint32_t index)
{
	const uint32_t moved = node->count - index;

	memmove(&node->keys[index + 1], &node->keys[index], moved * sizeof *node->keys);
	if (level)
		memmove(&as_inner(node)->children[index + 1], &as_inner(node)->children[index],
			moved * sizeof *as_inner(node)->children);
	else
		memmove(&as_leaf(node)->values[index + 1], &as_leaf(node)->values[index],
			moved * sizeof *as_leaf(node)->values);
	node->count++;
}

static void close_slot(struct address_map_node *node, uint32_t level, uint32_t index)
{
	const uint32_t moved = --node->count - index;

	memmove(&node->keys[index], &node->keys[index + 1], moved * sizeof *node->keys);
	if (level)
		memmove(&as_inner(node)->children[index], &as_inner(node)->children[index + 1],
			moved * sizeof *as_inner(node)->children);
	else
		memmove(&as_leaf(node)->values[index], &as_leaf(node)->values[index + 1],
			moved * sizeof *as_leaf(node)->values);
}

static void link_leaf_after(struct address_map_leaf *leaf, struct address_map_leaf *new)
{
	new->next = leaf->next;
	new->previous = leaf;
	if (leaf->next)
		leaf->next->previous = new;
	leaf->next = new;
}

/* Splits the full child `index` of `parent` in two halves. `level`: of the child. */
static void split_child(
	struct address_map *map, struct inner_node *parent, uint32_t index, uint32_t level)
{
	struct address_map_node *left = parent->children[index], *right = new_node(map, level);
	const uint32_t half = ADDRESS_MAP_FANOUT / 2, moved = left->count - half;

	memcpy(right->keys, &left->keys[half], moved * sizeof *left->keys);
	if (level)
		memcpy(as_inner(right)->children, &as_inner(left)->children[half],
			moved * sizeof *as_inner(left)->children);
	else
		memcpy(as_leaf(right)->values, &as_leaf(left)->values[half],
			moved * sizeof *as_leaf(left)->values);
	left->count = half;
	right->count = moved;
	if (!level)
		link_leaf_after(as_leaf(left), as_leaf(right));
	open_slot(&parent->node, level + 1, index + 1);
	parent->node.keys[index + 1] = right->keys[0];
	parent->children[index + 1] = right;
}

static void grow_root(struct address_map *map)
{
	struct inner_node *root = as_inner(new_node(map, map->height + 1));

	root->node.count = 1;
	root->node.keys[0] = map->root->keys[0];
	root->children[0] = map->root;
	map->root = &root->node;
	map->height++;
	split_child(map, root, 0, map->height - 1);
}

/* Returns the leaf for `key`, with room for one more entry. */
static struct address_map_leaf *leaf_for_insert(struct address_map *map, uint64_t key)
{
	struct address_map_node *node;

	if (!map->root)
		map->root = new_node(map, 0);
	if (map->root->count == ADDRESS_MAP_FANOUT)
		grow_root(map);
	node = map->root;
	for (uint32_t level = map->height; level > 0; level--) {
		uint32_t index = child_of_key(node, key);

		if (key < node->keys[0])
			node->keys[0] = key;
		if (as_inner(node)->children[index]->count == ADDRESS_MAP_FANOUT) {
			split_child(map, as_inner(node), index, level - 1);
			index += node->keys[index + 1] <= key;
		}
		node = as_inner(node)->children[index];
	}
	return as_leaf(node);
}

void address_map_insert(struct address_map *map, uint64_t key, uint32_t value)
{
	struct address_map_leaf *leaf = leaf_for_insert(map, key);
	const uint32_t index = keys_up_to(&leaf->node, key);

	if (index && leaf->node.keys[index - 1] == key) {
		leaf->values[index - 1] = value;
		return;
	}
	open_slot(&leaf->node, 0, index);
	leaf->node.keys[index] = key;
	leaf->values[index] = value;
	map->count++;
}

static void unlink_leaf(struct address_map_leaf *leaf)
{
	if (leaf->previous)
		leaf->previous->next = leaf->next;
	if (leaf->next)
		leaf->next->previous = leaf->previous;
}

/* Frees the empty leaf at the end of `path`, and the nodes above it that it leaves empty. */
static void remove_empty(
	struct address_map *map, struct address_map_node **path, const uint32_t *indexes)
{
	uint32_t level = 0;

	unlink_leaf(as_leaf(path[0]));
	while (level < map->height && path[level]->count == 0) {
		free_node(map, path[level], level);
		level++;
		close_slot(path[level], level, indexes[level]);
	}
	if (path[level]->count == 0) {
		free_node(map, path[level], level);
		map->root = NULL;
		map->height = 0;
	}
	while (map->height && map->root->count == 1) {
		struct address_map_node *child = as_inner(map->root)->children[0];

		free_node(map, map->root, map->height--);
		map->root = child;
	}
}

bool address_map_remove(struct address_map *map, uint64_t key, uint32_t *value)
{
	struct address_map_node *path[HEIGHT_MAX], *node = map->root;
	uint32_t indexes[HEIGHT_MAX], index;

	if (!node)
		return false;
	for (uint32_t level = map->height; level > 0; level--) {
		path[level] = node;
		indexes[level] = child_of_key(node, key);
		node = as_inner(node)->children[indexes[level]];
	}
	path[0] = node;
	index = keys_up_to(node, key);
	if (!index || node->keys[index - 1] != key)
		return false;
	*value = as_leaf(node)->values[index - 1];
	close_slot(node, 0, index - 1);
	map->count--;
	if (!node->count)
		remove_empty(map, path, indexes);
	return true;
}

/* Returns the leaf that has `key`, if any leaf has it. NULL: the map is empty. */
static struct address_map_leaf *leaf_of_key(const struct address_map *map, uint64_t key)
{
	struct address_map_node *node = map->root;

	for (uint32_t level = map->height; node && level > 0; level--)
		node = as_inner(node)->children[child_of_key(node, key)];
	return node ? as_leaf(node) : NULL;
}

struct address_cursor address_map_from(const struct address_map *map, uint64_t key)
{
	struct address_cursor at = { .leaf = leaf_of_key(map, key) };

	if (!at.leaf)
		return at;
	at.index = key ? keys_up_to(&at.leaf->node, key - 1) : 0;
	if (at.index == at.leaf->node.count)
		at = (struct address_cursor){ .leaf = at.leaf->next };
	return at;
}

bool address_map_floor(const struct address_map *map, uint64_t key, uint32_t *value)
{
	const struct address_map_leaf *leaf = leaf_of_key(map, key);
	uint32_t index = leaf ? keys_up_to(&leaf->node, key) : 0;

	/* Removals leave a child's lower bound below its first key. */
	if (leaf && !index) {
		leaf = leaf->previous;
		index = leaf ? leaf->node.count : 0;
	}
	if (!index)
		return false;
	*value = leaf->values[index - 1];
	return true;
}
