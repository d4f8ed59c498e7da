/* SPDX-License-Identifier: MIT */
#include "report/page/flame_tree.h"
#include "report/base/alloc.h"
#include "report/base/compare.h"
#include "report/base/text_builder.h"
#include <stdlib.h>
#include <string.h>

const char *flame_kind_name(enum flame_kind kind)
{
	static const char *const names[FLAME_KIND_COUNT] = {
#define X(kind, name) [FLAME_##kind] = name,
		FLAME_KINDS(X)
#undef X
	};

	return names[kind];
}

uint32_t flame_add(struct flame_tree *tree, const struct flame_frame *frame)
{
	ARRAY_GROW(tree->values, tree->value_room, (tree->count + 1) * tree->stride);
	*ARRAY_ADD(tree->frames, tree->room, tree->count) = *frame;
	return (uint32_t)tree->count - 1;
}

uint32_t flame_child(struct flame_tree *tree, uint32_t parent, uint32_t name, enum flame_kind kind)
{
	const uint64_t hash = hash_u64(hash_u64((uint64_t)parent << 8 | kind) ^ name);
	struct hash_slot *slot;
	uint32_t frame;

	hash_index_reserve(&tree->index);
	slot = hash_index_first(&tree->index, hash);
	for (; slot->number; slot = hash_index_next(&tree->index, slot)) {
		const struct flame_frame *known = &tree->frames[slot->number];

		if (known->parent == parent && known->name == name && known->kind == kind)
			return slot->number;
	}
	frame = flame_add(tree,
		&(struct flame_frame){
			.parent = parent, .name = name, .label = name, .kind = (uint8_t)kind });
	hash_index_add(&tree->index, slot, hash, frame);
	return frame;
}

long double *flame_values(const struct flame_tree *tree, uint32_t frame)
{
	return tree->values + frame * tree->stride;
}

long double *flame_totals(const struct flame_tree *tree)
{
	long double *totals = xcalloc((tree->count * tree->stride + 1) * sizeof *totals);

	for (size_t i = 0; i < tree->count * tree->stride; i++)
		totals[i] = tree->values[i];
	for (size_t i = tree->count; i-- > 1;)
		for (size_t k = 0; k < tree->stride; k++)
			totals[tree->frames[i].parent * tree->stride + k] +=
				totals[i * tree->stride + k];
	return totals;
}

bool *flame_outside_steps(const struct flame_tree *tree)
{
	bool *outside = xcalloc((tree->count + 1) * sizeof *outside);

	for (size_t i = 1; i < tree->count; i++)
		outside[i] = tree->frames[i].is_outside || outside[tree->frames[i].parent];
	return outside;
}

/* ---- pruning ---- */

struct sized_frame {
	double share;
	uint32_t frame;
};

/* Larger shares first. Of equal ones the earlier frame, so parents precede children. */
static int by_share(const void *a, const void *b)
{
	const struct sized_frame *left = a, *right = b;

	return left->share != right->share ? COMPARE(right->share, left->share)
					   : COMPARE(left->frame, right->frame);
}

static struct sized_frame *sort_frames(const struct flame_tree *tree)
{
	struct sized_frame *sorted = xcalloc((tree->count + 1) * sizeof *sorted);
	long double *totals = flame_totals(tree);

	for (size_t i = 0; i < tree->count; i++) {
		sorted[i].frame = (uint32_t)i;
		for (size_t k = 0; k < tree->stride; k++) {
			const long double whole = totals[k], part = totals[i * tree->stride + k];

			if (part > 0 && whole > 0 && (double)(part / whole) > sorted[i].share)
				sorted[i].share = (double)(part / whole);
		}
	}
	free(totals);
	sorted[0].share = 2; /* the root is always first */
	qsort(sorted, tree->count, sizeof *sorted, by_share);
	return sorted;
}

/* Marks the first `count` frames in `kept`. Returns how many of them lose a child. */
static size_t mark_kept(const struct flame_tree *tree, const struct sized_frame *sorted,
	size_t count, size_t nonzero, uint8_t *kept)
{
	size_t parents = 0;

	memset(kept, 0, tree->count);
	for (size_t i = 0; i < count; i++)
		kept[sorted[i].frame] = 1;
	for (size_t i = count; i < nonzero; i++) {
		uint8_t *parent = &kept[tree->frames[sorted[i].frame].parent];

		parents += *parent == 1;
		*parent = (uint8_t)(*parent | *parent << 1); /* 3: kept, and has lost a child */
	}
	return parents;
}

/* A tree in the making, and where the frames of the old one are in it. */
struct pruning {
	struct flame_tree tree;
	uint32_t *place;      /* by old frame: its frame, or the `N more` that it is part of */
	uint32_t *more;       /* by new frame: its `N more` */
	uint32_t *more_count; /* by new frame: N */
};

static void add_values(struct flame_tree *to, uint32_t at, const long double *values)
{
	for (size_t k = 0; k < to->stride; k++)
		flame_values(to, at)[k] += values[k];
}

static void prune_frame(
	struct pruning *pruning, const struct flame_tree *old, uint32_t id, bool is_kept)
{
	struct flame_frame frame = old->frames[id];
	const uint32_t parent = pruning->place[frame.parent];

	frame.parent = parent;
	if (is_kept) {
		pruning->place[id] = flame_add(&pruning->tree, &frame);
	} else if (pruning->tree.frames[parent].kind == FLAME_MORE) {
		pruning->place[id] = parent;
	} else {
		if (!pruning->more[parent])
			pruning->more[parent] = flame_add(&pruning->tree,
				&(struct flame_frame){ .parent = parent, .kind = FLAME_MORE });
		pruning->place[id] = pruning->more[parent];
	}
	pruning->more_count[pruning->place[id]]++;
	add_values(&pruning->tree, pruning->place[id], flame_values(old, id));
}

static void name_more(struct pruning *pruning, struct string_table *texts)
{
	for (size_t i = 0; i < pruning->tree.count; i++) {
		struct text_builder name = { .text = NULL };

		if (pruning->tree.frames[i].kind != FLAME_MORE)
			continue;
		text_add(&name, "%u more", pruning->more_count[i]);
		pruning->tree.frames[i].name = string_table_intern(texts, name.text, name.used);
		pruning->tree.frames[i].label = pruning->tree.frames[i].name;
		free(name.text);
	}
}

void flame_prune(struct flame_tree *tree, struct string_table *texts, size_t most)
{
	const size_t room = 2 * tree->count + 1;
	struct sized_frame *sorted = sort_frames(tree);
	uint8_t *kept = xcalloc(room);
	struct pruning pruning = { .tree.stride = tree->stride,
		.place = xcalloc(room * sizeof(uint32_t)),
		.more = xcalloc(room * sizeof(uint32_t)),
		.more_count = xcalloc(room * sizeof(uint32_t)) };
	size_t nonzero = 0, count;

	while (nonzero < tree->count && sorted[nonzero].share > 0)
		nonzero++;
	count = nonzero < most ? nonzero : most;
	while (count > 1 && count + mark_kept(tree, sorted, count, nonzero, kept) > most)
		count -= count / 16 + 1;
	mark_kept(tree, sorted, count, nonzero, kept);
	for (size_t i = count; i < nonzero; i++)
		kept[sorted[i].frame] |= 4; /* dropped, and has a value */
	flame_add(&pruning.tree, &tree->frames[0]);
	add_values(&pruning.tree, 0, flame_values(tree, 0));
	for (uint32_t id = 1; id < tree->count; id++)
		if (kept[id])
			prune_frame(&pruning, tree, id, kept[id] & 1);
	name_more(&pruning, texts);
	free(sorted);
	free(kept);
	free(pruning.place);
	free(pruning.more);
	free(pruning.more_count);
	flame_tree_free(tree);
	*tree = pruning.tree;
}

void flame_tree_free(struct flame_tree *tree)
{
	free(tree->frames);
	free(tree->values);
	hash_index_free(&tree->index);
	*tree = (struct flame_tree){ .stride = tree->stride };
}
