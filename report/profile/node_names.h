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

#define NAMES_OPEN UINT32_MAX    /* ask names_open_node */
#define NAMES_INLINE_MOST 65536u /* nodes made of texts without an id; what comes after is `(other labels)` */

struct names;
struct members;

/* fold: labels that differ only in numbers are one node. All arguments but fold and form must outlive it. */
struct names *names_new(
	struct trace_reader *reader, struct texts *texts, struct tree *tree, bool fold, enum demangle_form form);
void names_free(struct names *names);

/* The node of each place, below reader_nodes(), where the outermost places stand below the node `root` (0: at the
 * top); place 0 has `root` itself. So one place of the trace can stand in several parts of the tree, such as steps and
 * what lies between them: each `root` has an array of its own, made at the first call and then always the same one; it
 * lives as long as `names`. Nodes are made for every place of the trace at once: ask for few roots. Asking adds to the
 * tree, so addresses of its nodes change. */
const uint32_t *names_nodes_below(struct names *names, uint32_t root);

/* A place that stands where it does for root 0, whatever root is asked for: a part of the tree such as a step is then
 * found again below it, a node with the name and kind of `root`, and what it calls stands in that; or, if it is itself
 * such a part, in itself. */
enum names_above { NAMES_ABOVE = 1, NAMES_ITSELF };
/* above: by place, 0 or one of these; to outlive `names`. After the first call for root 0, before any other. */
void names_keep_above(struct names *names, const uint8_t *above);
/* By place, for the same root: the innermost folded module around it or itself, or 0 (members.h). */
const uint32_t *names_members_below(struct names *names, uint32_t root);
struct members *names_members(struct names *names);
/* The node of a place under the range that is open, `parent`; event: its PUSH, START or MARK, or NULL if only the
 * place is known. */
uint32_t names_open_node(struct names *names, uint32_t parent, uint32_t place, const struct trace_event *event);

/* A start/end range or mark below `parent`. domain: the trace's. */
uint32_t names_child(
	struct names *names, uint32_t parent, struct trace_text text, uint32_t domain, enum node_kind kind);

/* Texts: as it is; a kernel's as asked for. */
uint32_t names_text(struct names *names, uint32_t name);
uint32_t names_kernel(struct names *names, uint32_t name);

/* How many ranges went to `(other labels)`. */
uint64_t names_others(const struct names *names);

#endif
