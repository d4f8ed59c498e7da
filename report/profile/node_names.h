/* SPDX-License-Identifier: MIT
 * names.h: from a trace's names and places to the report's texts and nodes; placement.h says where these stand.
 *
 * A place of the trace (a path of labels as the program gave them) belongs to one node of the tree (a path of folded
 * names): an array, filled once, so entering a range costs one look-up however many names there are. Only places
 * below texts that were not worth an id in the trace depend on what is open at the time (NAMES_OPEN).
 */
#ifndef PPERF_REPORT_PROFILE_NODE_NAMES_H
#define PPERF_REPORT_PROFILE_NODE_NAMES_H

#include "report/symbols/demangle.h"
#include "report/text/string_table.h"
#include "report/trace/trace_reader.h"
#include "report/profile/call_tree.h"

#define NODE_UNRESOLVED UINT32_MAX /* ask names_open_node */
#define NODE_NAMES_INLINE_MAX \
	65536u /* nodes made of texts without an id; what comes after is `(other labels)` */

struct node_names;
struct module_group;

/* fold: labels that differ only in numbers are one node. All arguments but fold and form must outlive it. */
struct node_names *node_names_new(struct trace_reader *reader, struct string_table *texts,
	struct tree *tree, bool fold_labels, enum demangle_form form);
void node_names_free(struct node_names *names);

/* The node of each place, below reader_nodes(), where the outermost places stand below the node `root` (0: at the
 * top); place 0 has `root` itself. So one place of the trace can stand in several parts of the tree, such as steps and
 * what lies between them: each `root` has an array of its own, made at the first call and then always the same one; it
 * lives as long as `names`. Nodes are made for every place of the trace at once: ask for few roots. Asking adds to the
 * tree, so addresses of its nodes change. */
const uint32_t *node_names_nodes(struct node_names *names, uint32_t root);

/* A place that stands where it does for root 0, whatever root is asked for: a part of the tree such as a step is then
 * found again below it, a node with the name and kind of `root`, and what it calls stands in that; or, if it is itself
 * such a part, in itself. */
enum node_above { NODE_ABOVE_ROOT = 1, NODE_IS_ROOT };
/* above: by place, 0 or one of these; to outlive `names`. After the first call for root 0, before any other. */
void node_names_keep_above(struct node_names *names, const uint8_t *above);
/* By place, for the same root: the innermost folded module around it or itself, or 0 (members.h). */
const uint32_t *node_names_modules(struct node_names *names, uint32_t root);
struct module_group *node_names_module_group(struct node_names *names);
/* The node of a place under the range that is open, `parent`; event: its PUSH, START or MARK, or NULL if only the
 * place is known. */
uint32_t node_names_resolve(struct node_names *names, uint32_t parent, uint32_t trace_node,
	const struct trace_event *event);

/* A start/end range or mark below `parent`. domain: the trace's. */
uint32_t node_names_child(struct node_names *names, uint32_t parent, struct trace_text text,
	uint32_t domain, enum node_kind kind);

/* Texts: as it is; a kernel's as asked for. */
uint32_t node_names_text(struct node_names *names, uint32_t name);
uint32_t node_names_kernel(struct node_names *names, uint32_t name);

/* How many ranges went to `(other labels)`. */
uint64_t node_names_other_count(const struct node_names *names);

#endif
