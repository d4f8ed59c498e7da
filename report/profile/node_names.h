/* SPDX-License-Identifier: MIT
 * Maps a trace's names and nodes to the report's texts and tree nodes.
 *
 * A node of the trace is a path of labels as the program gave them. It belongs to one node of
 * the tree, a path of label patterns. This mapping is an array that is filled once, so entering
 * a range costs one lookup however many names there are. An exception are trace nodes below
 * texts without an id in the trace. They depend on the open ranges (NODE_UNRESOLVED).
 */
#ifndef PPERF_REPORT_PROFILE_NODE_NAMES_H
#define PPERF_REPORT_PROFILE_NODE_NAMES_H

#include "report/gpu/work_categories.h"
#include "report/symbols/demangle.h"
#include "report/text/string_table.h"
#include "report/trace/trace_reader.h"
#include "report/profile/call_tree.h"

#define NODE_UNRESOLVED UINT32_MAX /* call node_names_resolve */
/* Nodes made of texts without an id. Further ones are `(other labels)`. */
#define NODE_NAMES_INLINE_MAX 65536u

#define NODE_ENGINE_PATTERN "(backward)"
/* What the names of nodes end with that are beside the nodes of the names (node_placement.h). */
#define NODE_BACKWARD_END " (bwd)"
#define NODE_RECOMPUTE_END " (recompute)"

struct node_names;
struct module_group;

/* `fold_labels`: labels that differ only in numbers are one node. `reader`, `texts` and `tree`
 * must outlive the result, and `categories` too (NULL: no kernel is communication). */
struct node_names *node_names_new(struct trace_reader *reader, struct string_table *texts,
	struct tree *tree, bool fold_labels, enum demangle_form form,
	const struct categories *categories);
void node_names_free(struct node_names *names);

/* The tree node of each trace node, up to reader_node_count(). The outermost ones are below the
 * tree node `root` (0: at the top), and trace node 0 is `root` itself. So a trace node can be in
 * several parts of the tree, such as steps and what is between them. Each `root` has one array,
 * made at its first call, which lives as long as `names`. That call adds tree nodes for every
 * trace node, so keep the number of roots small. Addresses of tree nodes may change. */
const uint32_t *node_names_nodes(struct node_names *names, uint32_t root);

/* Trace nodes that keep the tree node of root 0 whatever the root is.
 *
 *   NODE_ABOVE_ROOT  It is around parts of the tree such as steps. What it calls is in its child
 *                    with the name and kind of the root.
 *   NODE_IS_ROOT     It is such a part itself, and what it calls is in it. */
enum node_above { NODE_ABOVE_ROOT = 1, NODE_IS_ROOT };
/* `above`: by trace node, 0 or an enum node_above. Must outlive `names`. Call it after the first
 * call for root 0, and before any other root. */
void node_names_keep_above(struct node_names *names, const uint8_t *above);
/* By trace node, for the same root: the number of the innermost module instance around it or
 * itself, 0: none (module_group.h). */
const uint32_t *node_names_modules(struct node_names *names, uint32_t root);
struct module_group *node_names_module_group(struct node_names *names);
/* The tree node of `trace_node` inside the open range `parent`. `event`: its PUSH, START or
 * MARK; NULL if only the trace node is known. */
uint32_t node_names_resolve(struct node_names *names, uint32_t parent, uint32_t trace_node,
	const struct trace_event *event);

/* The node of a start/end range or mark below `parent`. `domain`: name id of the trace. */
uint32_t node_names_child(struct node_names *names, uint32_t parent, struct trace_text text,
	uint32_t domain, enum node_kind kind);

/* Returns the label pattern of a label, a text, by the rules for nodes of `kind`. */
uint32_t node_label_pattern(struct string_table *texts, uint32_t label, enum node_kind kind);
/* Returns true for the label of autograd's engine, which works on one function. With folded labels
 * such a node is NODE_ENGINE_PATTERN instead. */
bool node_label_is_engine(struct string_view label, enum node_kind kind);

/* The text of a name as it is. */
uint32_t node_names_text(struct node_names *names, uint32_t name);
/* The text of a kernel's name, demangled as set at the start. */
uint32_t node_names_kernel(struct node_names *names, uint32_t name);
/* Returns true if a kernel whose shown name is `text` is communication. The full name of the kernel
 * decides. Kernels with the same shown name are one node: then one is enough. */
bool node_names_is_communication(const struct node_names *names, uint32_t text);

/* How many ranges went to `(other labels)`. */
uint64_t node_names_other_count(const struct node_names *names);

#endif
