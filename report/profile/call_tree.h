/* SPDX-License-Identifier: MIT
 * tree.h: what a trace folds to: one node for each path of names, with the sums of all of its instances.
 *
 * Node 0 is the root and has no figures. A node's parent always has a lower number, so a loop downwards meets
 * children first. Times in ns, memory in bytes. `gpu`, `memory` and `worst` are there only for nodes that have
 * something to say of it.
 */
#ifndef PPERF_REPORT_PROFILE_CALL_TREE_H
#define PPERF_REPORT_PROFILE_CALL_TREE_H

#include "collector/trace_format.h"
#include "report/base/hash_index.h"
#include "report/stats/percentiles.h"
#include "report/text/string_table.h"
#include <stdbool.h>
#include <stdint.h>

#define TREE_DEPTH_MAX 1000u /* ranges deeper than that are one place, `(deeper)` */

/* kind, name in the output, class. */
#define NODE_KINDS(X)                                                                            \
	X(ROOT, "root", RANGES)                                                                  \
	X(PROCESS, "process", RANGES)                                                            \
	X(STEP, "step", RANGES)                                                                  \
	X(RANGE, "range", RANGES)                                                                \
	X(MODULE, "module", RANGES)                                                              \
	X(OP, "op", RANGES)                                                                      \
	X(BACKWARD, "backward", RANGES)                                                          \
	X(OPTIMIZER, "optimizer", RANGES)                                                        \
	X(API, "api", CALLS)                                                                     \
	X(SYNC, "sync", CALLS)                                                                   \
	X(ALLOC, "alloc", CALLS)                                                                 \
	X(GRAPH, "graph", WORK)                                                                  \
	X(KERNEL, "kernel", WORK)                                                                \
	X(MEMCPY, "memcpy", WORK)                                                                \
	X(MEMSET, "memset", WORK)                                                                \
	X(MARK, "mark", CALLS)                                                                   \
	X(UNATTRIBUTED, "unattributed", RANGES)                                                  \
	X(SECTION, "section", RANGES)                                                            \
	X(ASYNC, "start/end", RANGES) /* the section of ranges that overlap and cross threads */ \
	/* of tables: what rows are made by */                                                   \
	X(CATEGORY, "category", RANGES)                                                          \
	X(THREAD, "thread", RANGES)                                                              \
	X(STREAM, "stream", WORK)                                                                \
	X(STACK, "stack", WORK)

enum node_kind {
#define X(kind, name, class) NODE_##kind,
	NODE_KINDS(X)
#undef X
		NODE_KIND_COUNT
};

/* RANGES have instances that nest and own what happens in them; CALLS happen in them; WORK was done by a GPU for
 * them. */
enum node_class { NODE_RANGES, NODE_CALLS, NODE_WORK };

/* How a GPU record found its node, and how sure that is. */
#define METHODS(X)                            \
	X(NONE, "none", "none")               \
	X(CORRELATION, "correlation", "high") \
	X(ENCLOSURE, "enclosure", "medium")   \
	X(GRAPH_LEVEL, "graph-level", "low")  \
	X(GRAPH_NODE, "graph-node", "high")

enum method {
#define X(method, name, confidence) METHOD_##method,
	METHODS(X)
#undef X
		METHOD_COUNT
};

/* What work of a GPU was for, by where in the tree it was launched. */
enum node_part { PART_FORWARD, PART_BACKWARD, PART_RECOMPUTE, PART_OPTIMIZER, NODE_PARTS };

struct node_gpu {
	uint64_t self_ns, self_calls;   /* work launched directly in it; of a WORK node: its own */
	uint64_t total_ns, total_calls; /* with everything below; set by tree_sum */
	uint64_t
		duplicate_ns; /* of self_ns, in a flat tree by name: what other nodes have as theirs, too */
	uint64_t untimed;             /* of self_calls: CUPTI could not time them */
	uint64_t bytes;               /* copied or set */
	uint64_t idle_ns;             /* the GPU idle while instances were open */
	uint64_t part_ns[NODE_PARTS]; /* of total_ns, which is their sum; set by tree_sum */
	/* WORK but no graph: idle that ended when it began. Of others after tree_sum: that of the work below. */
	uint64_t idle_before_ns;
	struct percentiles
		delays; /* WORK: from the call that launched it to its begin; a graph's: to its first */
	struct trace_kernel *shape; /* KERNEL: the last one seen; owned */
	enum method method;
	bool several_shapes; /* not all were launched with that grid, block, shared memory, registers */
};

struct node_memory {
	uint64_t alloc_self,
		free_self; /* bytes taken in it, and of those given back since, by whoever */
	uint64_t alloc_bytes, free_bytes; /* with everything below; set by tree_sum */
	uint64_t allocs, frees, failed;   /* calls that were made in it */
	int64_t reserved_delta;           /* sum over the instances */
	int64_t reserved_peak;            /* the highest level in any instance */
	bool has_level;
};

/* The same of PyTorch's tensors, whose memory is a part of the device's: never added to it. `at_`: what those that were
 * taken in it held when tensors held the most, and when memory last ran out; of the device whose level it is. */
struct tensor_sums {
	uint64_t alloc_bytes, free_bytes, at_peak, at_oom;
};
struct node_tensors {
	struct tensor_sums self, total; /* total: with everything below; set by tree_sum */
	uint64_t allocs, frees;
	int64_t allocated_delta, allocated_peak;
	bool has_level;
};

/* The instance in which the metric asked for was worst. */
struct node_worst {
	uint64_t begin_ns, end_ns;
	long double value, before,
		after; /* before, after: levels only. Exact: wide enough for any int64_t or double */
	uint32_t label, stream; /* label: text; set at the end */
	uint32_t trace_node;    /* in the trace; its name is the label, unless it has its own: */
	uint32_t own_bytes;
	char *own; /* owned */
	bool found;
};

struct node {
	/* What a closing range adds to fills the first cache line. */
	_Alignas(64) uint64_t calls;
	uint64_t total_ns, self_ns, min_ns, max_ns;
	struct percentiles samples;
	uint32_t parent, first_child, next, name;
	uint32_t domain; /* text; 0 the default one */
	uint32_t class;  /* text: of a module; 0 not known */
	uint32_t
		forward_node; /* of what runs backward: the node of the operator it is shown beside; 0 none */
	uint32_t labels; /* distinct labels that were folded into it; 0: none was */
	uint32_t longest_trace_node,
		longest_stream; /* of the instance that took max_ns: its node in the trace, its stream */
	uint64_t longest_begin_ns;
	uint64_t call_ns; /* in CUDA calls made directly in it */
	struct node_gpu *gpu;
	struct node_memory *memory;
	struct node_tensors *tensors;
	struct node_worst *worst;
	uint8_t kind;   /* enum node_kind */
	uint16_t depth; /* children of the root: 0 */
	bool left_open; /* an instance was still open at the end */
	/* Its instances were counted in the program (PPERF_OPS=totals): calls, total_ns and max_ns are all there is. */
	bool is_counted;
	bool is_recompute; /* a module that is computed once more while running backward */
	bool outside; /* a section of what is in no usual step: no share of time is said of it */
	/* It stands in a graph, for what was captured there. What the GPU did in it is the graph's, and so that of the range
	 * which launched the graph, already: it only says what it was. It has no instances. */
	bool captured;
	bool is_group; /* it has no instances: its times are the sum of the ranges in it; set by tree_sum */
	/* It runs backward for an operator, stands beside that, and ran elsewhere: its time is in the total of the
	 * place where it ran too, and in no total above it here. */
	bool ran_elsewhere;
};

struct tree {
	struct node *nodes;
	uint32_t count, room;
	struct hash_index index;
	uint32_t (*recent)
		[2]; /* by node: a child that was asked for last: work, something else; 0: none */
	struct percentiles_budget budget;
	struct percentiles_budget delay_budget;
	bool has_parts; /* something of a GPU ran not forward; set by tree_sum */
	bool is_grouped; /* its nodes are rows of --by: no places, and what only places have is not there */
	const uint8_t *only; /* by node: those whose durations are kept one by one; NULL: all */
	uint32_t only_count;
};

struct tree *tree_new(void);
void tree_free(struct tree *tree);

/* The child of that name, domain and kind (and without a class); made if there is none. Addresses of nodes change by
 * it. */
static inline uint32_t tree_child(
	struct tree *tree, uint32_t parent, uint32_t name, uint32_t domain, enum node_kind kind);
/* The module of that name and class. */
uint32_t tree_module(
	struct tree *tree, uint32_t parent, uint32_t name, uint32_t domain, uint32_t class);
/* One that is like no other: a child of the root that is never found again. */
uint32_t tree_add(struct tree *tree, uint32_t name, enum node_kind kind);
/* As tree_child, or 0: there is none. */
uint32_t tree_find(const struct tree *tree, uint32_t parent, uint32_t name, uint32_t domain,
	enum node_kind kind);

/* Made if there is none. */
static inline struct node_gpu *tree_gpu(struct tree *tree, uint32_t node);
static inline struct node_memory *tree_memory(struct tree *tree, uint32_t node);
static inline struct node_tensors *tree_tensors(struct tree *tree, uint32_t node);
struct node_worst *tree_worst(struct tree *tree, uint32_t node);

/* The group of that name: a row without instances of its own. */
uint32_t tree_group(
	struct tree *tree, uint32_t parent, uint32_t name, uint32_t domain, enum node_kind kind);

/* Below `parent`, which is a graph or such a node itself, what was captured in the node `like`: of its name, domain,
 * class and kind. */
uint32_t tree_captured_child(struct tree *tree, uint32_t parent, uint32_t like);

/* An instance of a leaf: one more, that took so long. */
void tree_count(struct tree *tree, uint32_t node, uint64_t duration_ns);

/* Adds up what nodes hold with everything below. After the last figure came in; may be called again. */
void tree_sum(struct tree *tree);

/* How long what was launched in the node and below waited for its turn, from the launching call's begin to the work's
 * begin on the GPU: in ns, at most 1 % off. False: nothing that was launched there was timed. Not for several threads
 * at once. */
bool launch_delays_percentile(
	const struct tree *tree, uint32_t node, unsigned per_mille, uint64_t *value);

const char *node_kind_name(enum node_kind kind);
enum node_class node_kind_class(enum node_kind kind);
const char *method_name(enum method method);
const char *method_confidence(enum method method);

/* ---- for the functions that are in line ---- */

uint32_t tree_child_lookup(
	struct tree *tree, uint32_t parent, uint32_t name, uint32_t domain, enum node_kind kind);
struct node_gpu *tree_new_gpu(struct tree *tree, uint32_t node);
struct node_memory *tree_new_memory(struct tree *tree, uint32_t node);
struct node_tensors *tree_new_tensors(struct tree *tree, uint32_t node);

static inline uint32_t tree_child(
	struct tree *tree, uint32_t parent, uint32_t name, uint32_t domain, enum node_kind kind)
{
	const uint32_t recent = tree->recent[parent][kind != NODE_KERNEL];
	const struct node *node = &tree->nodes[recent];

	if (recent && node->name == name && node->kind == kind && node->domain == domain &&
		node->parent == parent && !node->class)
		return recent;
	return tree_child_lookup(tree, parent, name, domain, kind);
}

static inline struct node_gpu *tree_gpu(struct tree *tree, uint32_t node)
{
	struct node_gpu *gpu = tree->nodes[node].gpu;

	return __builtin_expect(gpu != NULL, 1) ? gpu : tree_new_gpu(tree, node);
}

static inline struct node_memory *tree_memory(struct tree *tree, uint32_t node)
{
	struct node_memory *memory = tree->nodes[node].memory;

	return __builtin_expect(memory != NULL, 1) ? memory : tree_new_memory(tree, node);
}

static inline struct node_tensors *tree_tensors(struct tree *tree, uint32_t node)
{
	struct node_tensors *tensors = tree->nodes[node].tensors;

	return __builtin_expect(tensors != NULL, 1) ? tensors : tree_new_tensors(tree, node);
}

#endif
