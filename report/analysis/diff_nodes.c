/* SPDX-License-Identifier: MIT */
#include "report/analysis/diff_nodes.h"
#include "report/analysis/likeness.h"
#include "report/base/alloc.h"
#include "report/base/compare.h"
#include "report/base/hash_index.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define LIKENESS_MIN 0.6          /* of the names of a replaced kernel and its replacement */
#define CHILDREN_LIKENESS_MIN 0.8 /* of the children of a renamed range */
#define MODULE_LIKENESS_MIN 0.5   /* of the children of a renamed module of the same class */
#define UNMATCHED_MAX 128u        /* per parent and side; of more none is paired */

/* A child in one run's tree. */
struct run_child {
	struct diff_key key;
	uint32_t node, which;
};

struct candidate {
	double quality;
	uint32_t gone, new; /* diff nodes */
	uint32_t order;     /* sum of both positions: equal in (a, b) and (b, a) */
};

struct matcher {
	struct diff_nodes *nodes;
	struct string_table *texts;
	const struct compared_run *sides;
	uint8_t *selected[2];
	/* By node of a run's tree: the next node that matches the same diff node; 0: none. */
	uint32_t *next_same[2];
	struct run_child *children;
	size_t room;
	struct candidate *pairs; /* UNMATCHED_MAX² */
};

static const struct tree *side_tree(const struct matcher *matcher, unsigned which)
{
	return matcher->sides[which].metric_samples->profile->tree;
}

/* Selects the tree nodes that have a value of the metric, themselves or below. */
static uint8_t *select_nodes(const struct compared_run *side)
{
	const struct tree *tree = side->metric_samples->profile->tree;
	uint8_t *selected = xcalloc(tree->count);

	for (uint32_t id = tree->count - 1; id > 0; id--) {
		selected[id] |= side->metric_samples->nodes[id].total != 0 ||
				side->metric_samples->nodes[id].count > 0;
		selected[tree->nodes[id].parent] |= selected[id];
	}
	return selected;
}

static uint32_t copy_text_to_diff(const struct matcher *matcher, unsigned which, uint32_t id)
{
	const struct string_view text = string_table_get(matcher->sides[which].process->texts, id);

	return string_table_intern(matcher->texts, text.bytes, text.length);
}

static struct diff_key key_of(const struct matcher *matcher, unsigned which, uint32_t id)
{
	const struct node *node = &side_tree(matcher, which)->nodes[id];

	return (struct diff_key){ .name = copy_text_to_diff(matcher, which, node->name),
		.domain = copy_text_to_diff(matcher, which, node->domain),
		.class = copy_text_to_diff(matcher, which, node->class),
		.kind = node->kind };
}

static int compare_keys(const struct diff_key *a, const struct diff_key *b)
{
	int order = COMPARE(a->kind, b->kind);

	order = order ? order : COMPARE(a->name, b->name);
	order = order ? order : COMPARE(a->class, b->class);
	return order ? order : COMPARE(a->domain, b->domain);
}

static int by_key_and_node(const void *a, const void *b)
{
	const struct run_child *left = a, *right = b;
	const int order = compare_keys(&left->key, &right->key);
	const int side = order ? order : COMPARE(left->which, right->which);

	return side ? side : COMPARE(left->node, right->node);
}

/* Appends the selected children of a run's node to those listed. Returns their number. */
static size_t append_children(struct matcher *matcher, uint32_t which, uint32_t node, size_t count)
{
	const struct tree *tree = side_tree(matcher, which);

	for (uint32_t child = tree->nodes[node].first_child; child;
		child = tree->nodes[child].next) {
		if (!matcher->selected[which][child])
			continue;
		array_grow_zeroed(
			&matcher->children, &matcher->room, count + 1, sizeof *matcher->children);
		matcher->children[count++] = (struct run_child){ key_of(matcher, which, child),
			child, which };
	}
	return count;
}

/* Lists the selected children of all tree nodes that match `id`. Returns their number. */
static size_t list_children(struct matcher *matcher, uint32_t id)
{
	size_t count = 0;

	for (uint32_t which = 0; which < 2; which++) {
		uint32_t node = matcher->nodes->all[id].of[which];

		if (!id)
			count = append_children(matcher, which, 0, count);
		for (; node; node = matcher->next_same[which][node])
			count = append_children(matcher, which, node, count);
	}
	return count;
}

static uint32_t add_diff_node(struct diff_nodes *nodes, uint32_t parent, const struct diff_key *key)
{
	array_grow_zeroed(&nodes->all, &nodes->room, (size_t)nodes->count + 1, sizeof *nodes->all);
	nodes->all[nodes->count] = (struct diff_node){ .parent = parent,
		.depth = parent ? nodes->all[parent].depth + 1 : 0,
		.key = *key,
		.before_key = *key };
	return nodes->count++;
}

/* Adds a diff node for each distinct key of the sorted children. */
static void add_children(struct matcher *matcher, uint32_t parent, size_t count)
{
	uint32_t last = 0;

	for (size_t i = 0; i < count; i++) {
		const struct run_child *child = &matcher->children[i];
		struct diff_node *node;

		if (!i || compare_keys(&child->key, &child[-1].key) != 0)
			last = add_diff_node(matcher->nodes, parent, &child->key);
		node = &matcher->nodes->all[last];
		if (!node->of[child->which])
			node->of[child->which] = child->node;
		else
			matcher->next_same[child->which][child[-1].node] = child->node;
		node->calls[child->which] += metric_samples_mean(
			matcher->sides[child->which].metric_samples,
			matcher->sides[child->which].metric_samples->nodes[child->node].calls);
	}
}

static bool is_gpu_operation(const struct diff_node *node)
{
	return node->key.kind == NODE_KERNEL || node->key.kind == NODE_MEMCPY ||
	       node->key.kind == NODE_MEMSET;
}

/* A child that only one run has. */
struct unmatched_child {
	uint32_t id; /* diff node */
	bool alone;  /* no other one of its run is of its kind */
	/* words of the name of a GPU operation, or children of a module or range */
	struct feature_set features;
};

/* Adds the selected children of a node in the tree of `which`. */
static void add_child_features(
	const struct matcher *matcher, unsigned which, uint32_t node, struct feature_set *features)
{
	const struct tree *tree = side_tree(matcher, which);

	for (uint32_t child = tree->nodes[node].first_child; child;
		child = tree->nodes[child].next) {
		const struct diff_key key = key_of(matcher, which, child);

		if (features->count == FEATURES_MAX)
			break;
		if (matcher->selected[which][child])
			feature_set_add(
				features, hash_u64(hash_u64((uint64_t)key.name << 32 | key.class) ^
						   ((uint64_t)key.domain << 32 | key.kind)));
	}
}

static void describe_unmatched(
	const struct matcher *matcher, unsigned which, struct unmatched_child *child)
{
	const struct diff_node *node = &matcher->nodes->all[child->id];

	child->features.count = 0;
	if (is_gpu_operation(node))
		feature_set_add_words(
			&child->features, string_table_get(matcher->texts, node->key.name));
	else
		add_child_features(matcher, which, node->of[which], &child->features);
	feature_set_close(&child->features);
}

/* Returns how well two unmatched children of one parent match, 0: not at all. */
static double match_quality(const struct matcher *matcher, const struct unmatched_child *one,
	const struct unmatched_child *other)
{
	const struct diff_node *gone = &matcher->nodes->all[one->id],
			       *new = &matcher->nodes->all[other->id];
	double likeness;

	if (gone->key.kind != new->key.kind)
		return 0;
	if (gone->key.kind == NODE_MODULE && gone->key.name == new->key.name)
		return 3;
	likeness = feature_likeness(&one->features, &other->features);
	if (is_gpu_operation(gone))
		return likeness >= LIKENESS_MIN || (one->alone && other->alone && gone->parent)
			       ? 1 + fabs(likeness) + (gone->calls[0] == new->calls[1])
			       : 0;
	if (gone->key.class != new->key.class ||
		(gone->key.kind != NODE_MODULE && gone->key.kind != NODE_RANGE))
		return 0;
	if (gone->key.kind == NODE_MODULE && gone->key.class && likeness < 0)
		return 1;
	return likeness >= (gone->key.class ? MODULE_LIKENESS_MIN : CHILDREN_LIKENESS_MIN)
		       ? 1 + likeness
		       : 0;
}

static int by_quality(const void *a, const void *b)
{
	const struct candidate *left = a, *right = b;
	int order = COMPARE(right->quality, left->quality);

	order = order ? order : COMPARE(left->order, right->order);
	return order ? order : COMPARE(left->gone, right->gone);
}

/* Sets `alone` of each child. */
static void mark_alone(const struct diff_nodes *nodes, struct unmatched_child *all, uint32_t count)
{
	uint32_t of_kind[NODE_KIND_COUNT] = { 0 };

	for (uint32_t i = 0; i < count; i++)
		of_kind[nodes->all[all[i].id].key.kind]++;
	for (uint32_t i = 0; i < count; i++)
		all[i].alone = of_kind[nodes->all[all[i].id].key.kind] == 1;
}

/* Lists the children from `first` on that only the run `which` has, by their position in its tree.
 * Returns their number; 0 if they are more than UNMATCHED_MAX. */
static uint32_t list_unmatched(
	const struct matcher *matcher, uint32_t first, unsigned which, struct unmatched_child *all)
{
	uint32_t ids[UNMATCHED_MAX], count = 0;

	for (uint32_t id = first; id < matcher->nodes->count; id++) {
		const struct diff_node *node = &matcher->nodes->all[id];
		uint32_t at;

		if (node->of[!which])
			continue;
		if (count == UNMATCHED_MAX)
			return 0;
		for (at = count++;
			at && matcher->nodes->all[ids[at - 1]].of[which] > node->of[which]; at--)
			ids[at] = ids[at - 1];
		ids[at] = id;
	}
	for (uint32_t i = 0; i < count; i++) {
		all[i].id = ids[i];
		describe_unmatched(matcher, which, &all[i]);
	}
	mark_alone(matcher->nodes, all, count);
	return count;
}

/* Lists the pairs of unmatched children that match. Returns their number. */
static size_t list_candidates(
	const struct matcher *matcher, uint32_t first, struct candidate *pairs)
{
	static struct unmatched_child gone[UNMATCHED_MAX], new[UNMATCHED_MAX];
	const uint32_t gone_count = list_unmatched(matcher, first, 0, gone),
		       new_count = gone_count ? list_unmatched(matcher, first, 1, new) : 0;
	size_t count = 0;

	for (uint32_t i = 0; i < gone_count; i++)
		for (uint32_t j = 0; j < new_count; j++) {
			const double quality = match_quality(matcher, &gone[i], &new[j]);

			if (quality > 0)
				pairs[count++] = (struct candidate){ quality, gone[i].id, new[j].id,
					i + j };
		}
	return count;
}

/* Makes one node of a pair. The node `new` is removed later, by remove_merged. */
static void merge_pair(struct matcher *matcher, const struct candidate *pair)
{
	struct diff_node *gone = &matcher->nodes->all[pair->gone],
			 *new = &matcher->nodes->all[pair->new];

	gone->of[1] = new->of[1];
	gone->calls[1] = new->calls[1];
	gone->key = new->key;
	gone->status = is_gpu_operation(gone) || gone->key.name == gone->before_key.name
			       ? DIFF_REPLACED
			       : DIFF_RENAMED;
	new->of[1] = 0;
}

/* Removes the children from `first` on that no run has any more. */
static void remove_merged(struct diff_nodes *nodes, uint32_t first)
{
	uint32_t kept = first;

	for (uint32_t id = first; id < nodes->count; id++)
		if (nodes->all[id].of[0] || nodes->all[id].of[1])
			nodes->all[kept++] = nodes->all[id];
	nodes->count = kept;
}

/* Pairs unmatched children, the best matches first. */
static void pair_unmatched(struct matcher *matcher, uint32_t first)
{
	const size_t count = list_candidates(matcher, first, matcher->pairs);

	if (!count)
		return;
	qsort(matcher->pairs, count, sizeof *matcher->pairs, by_quality);
	for (size_t i = 0; i < count; i++)
		if (!matcher->nodes->all[matcher->pairs[i].gone].of[1] &&
			matcher->nodes->all[matcher->pairs[i].new].of[1])
			merge_pair(matcher, &matcher->pairs[i]);
	remove_merged(matcher->nodes, first);
}

/* Adds the values of all nodes that match. The samples are those of the only one, or by steps
 * their sums, or else all one after the other. */
static void add_values(struct matcher *matcher, struct diff_node *node, unsigned which)
{
	const struct metric_samples *metric = matcher->sides[which].metric_samples;
	size_t room = 0;

	for (uint32_t id = node->of[which]; id; id = matcher->next_same[which][id]) {
		const struct node_samples *samples = &metric->nodes[id];
		double *own = node->own_samples[which];

		node->value[which] += metric_samples_mean(metric, samples->total);
		if (!samples->values)
			continue;
		if (!node->samples[which]) {
			node->samples[which] = samples->values;
			node->n[which] = samples->count;
			continue;
		}
		if (!own) {
			array_grow_zeroed(&own, &room, node->n[which], sizeof *own);
			memcpy(own, node->samples[which], node->n[which] * sizeof *own);
		}
		if (!metric->steps)
			array_grow_zeroed(
				&own, &room, (size_t)node->n[which] + samples->count, sizeof *own);
		for (uint32_t i = 0; i < samples->count; i++)
			own[metric->steps ? i : node->n[which] + i] += samples->values[i];
		node->n[which] += metric->steps ? 0 : samples->count;
		node->samples[which] = node->own_samples[which] = own;
	}
}

void diff_nodes_match(
	struct diff_nodes *nodes, struct string_table *texts, const struct compared_run sides[2])
{
	struct matcher matcher = { .nodes = nodes, .texts = texts, .sides = sides };

	matcher.pairs = xcalloc((size_t)UNMATCHED_MAX * UNMATCHED_MAX * sizeof *matcher.pairs);
	add_diff_node(nodes, 0, &(struct diff_key){ .name = 0 });
	for (unsigned which = 0; which < 2; which++) {
		matcher.selected[which] = select_nodes(&sides[which]);
		matcher.next_same[which] = xcalloc(
			side_tree(&matcher, which)->count * sizeof(uint32_t));
	}
	for (uint32_t id = 0; id < nodes->count; id++) {
		const uint32_t first = nodes->count;
		const size_t count = list_children(&matcher, id);

		if (count)
			qsort(matcher.children, count, sizeof *matcher.children, by_key_and_node);
		add_children(&matcher, id, count);
		pair_unmatched(&matcher, first);
	}
	for (uint32_t id = 1; id < nodes->count; id++) {
		add_values(&matcher, &nodes->all[id], 0);
		add_values(&matcher, &nodes->all[id], 1);
		if (!nodes->all[id].of[0] || !nodes->all[id].of[1])
			nodes->all[id].status = nodes->all[id].of[1] ? DIFF_NEW : DIFF_REMOVED;
	}
	for (unsigned which = 0; which < 2; which++) {
		free(matcher.selected[which]);
		free(matcher.next_same[which]);
	}
	free(matcher.children);
	free(matcher.pairs);
}

double diff_node_change(const struct diff_node *node)
{
	return node->value[1] - node->value[0];
}

void diff_nodes_free(struct diff_nodes *nodes)
{
	for (uint32_t id = 0; id < nodes->count; id++) {
		free(nodes->all[id].own_samples[0]);
		free(nodes->all[id].own_samples[1]);
	}
	free(nodes->all);
}
