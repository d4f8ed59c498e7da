/* SPDX-License-Identifier: MIT
 * Stores the call tree: one node for each path of names, with the sums of its instances.
 *
 * Node 0 is the root and has no figures. A node's parent always has a lower number, so a loop
 * downwards meets children first. Times are in ns, memory in bytes. `gpu`, `memory`, `tensors`,
 * `worst` and `sampled` are allocated only for nodes that need them.
 */
#ifndef PPERF_REPORT_PROFILE_CALL_TREE_H
#define PPERF_REPORT_PROFILE_CALL_TREE_H

#include "collector/trace_format.h"
#include "report/base/hash_index.h"
#include "report/stats/percentiles.h"
#include "report/text/string_table.h"
#include <stdbool.h>
#include <stdint.h>

#define TREE_DEPTH_MAX 1000u /* deeper ranges are one node, `(deeper)` */

/* kind, name in the output, class */
#define NODE_KINDS(X)                                                                              \
	X(ROOT, "root", RANGES)                                                                    \
	X(PROCESS, "process", RANGES)                                                              \
	X(STEP, "step", RANGES)                                                                    \
	X(RANGE, "range", RANGES)                                                                  \
	X(MODULE, "module", RANGES)                                                                \
	X(OP, "op", RANGES)                                                                        \
	X(BACKWARD, "backward", RANGES)                                                            \
	X(OPTIMIZER, "optimizer", RANGES)                                                          \
	X(API, "api", CALLS)                                                                       \
	X(SYNC, "sync", CALLS)                                                                     \
	X(ALLOC, "alloc", CALLS)                                                                   \
	X(GRAPH, "graph", WORK)                                                                    \
	X(KERNEL, "kernel", WORK)                                                                  \
	X(MEMCPY, "memcpy", WORK)                                                                  \
	X(MEMSET, "memset", WORK)                                                                  \
	X(MARK, "mark", CALLS)                                                                     \
	X(UNATTRIBUTED, "unattributed", RANGES)                                                    \
	X(SECTION, "section", RANGES)                                                              \
	/* the section of start/end ranges, which overlap and cross threads; in `table` a range */ \
	X(ASYNC, "start/end", RANGES)                                                              \
	/* kinds of rows in tables: */                                                             \
	X(CATEGORY, "category", RANGES)                                                            \
	X(THREAD, "thread", RANGES)                                                                \
	X(STREAM, "stream", WORK)                                                                  \
	X(STACK, "stack", WORK)                                                                    \
	/* in trees of sampled functions (sample_tree.h): */                                       \
	X(FUNCTION, "function", RANGES)                                                            \
	X(PYTHON, "python", RANGES)                                                                \
	X(LIBRARY, "library", RANGES)                                                              \
	X(STATE, "state", RANGES)

enum node_kind {
#define X(kind, name, class) NODE_##kind,
	NODE_KINDS(X)
#undef X
		NODE_KIND_COUNT
};

/* RANGES have instances that nest and own what happens in them. CALLS happen in them. WORK was
 * done by a GPU for them. */
enum node_class { NODE_RANGES, NODE_CALLS, NODE_WORK };

/* How a GPU record found its node, its name, and how certain that is. */
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

/* What GPU work was for, by where in the tree it was launched. */
enum node_part { PART_FORWARD, PART_BACKWARD, PART_RECOMPUTE, PART_OPTIMIZER, NODE_PARTS };

struct node_gpu {
	uint64_t self_ns, self_calls;   /* work launched directly in it; WORK: its own */
	uint64_t total_ns, total_calls; /* including all below; set by tree_sum */
	/* In a flat tree by name: the part of self_ns that other nodes include, too. */
	uint64_t duplicate_ns;
	uint64_t untimed;             /* of self_calls: CUPTI gave no times */
	uint64_t bytes;               /* copied or set */
	uint64_t idle_ns;             /* GPU idle while instances were open */
	uint64_t part_ns[NODE_PARTS]; /* parts of total_ns; set by tree_sum */
	/* WORK except GRAPH: idle time that ended when it began. Other nodes: the sum of those
	 * below, set by tree_sum. */
	uint64_t idle_before_ns;
	/* WORK: delay from the begin of the launching call to the begin of the work. A graph: to
	 * its first work. */
	struct percentiles delays;
	struct trace_kernel *shape; /* KERNEL: the last launch configuration seen; owned */
	enum method method;
	/* Not all launches had the same grid, block, shared memory and registers. */
	bool several_shapes;
};

struct node_memory {
	/* Bytes allocated in it. Bytes of these that were released, in any node. */
	uint64_t alloc_self, free_self;
	uint64_t alloc_bytes, free_bytes; /* including all below; set by tree_sum */
	uint64_t allocs, frees, failed;   /* calls made in it */
	int64_t reserved_delta;           /* sum over the instances */
	int64_t reserved_peak;            /* highest level in any instance */
	bool has_level;
};

/* Bytes of PyTorch's tensors. Their memory is part of device memory, and is never added to it.
 * `at_peak`, `at_oom`: bytes allocated in the node and held when tensors held most, and when
 * memory last ran out. Both are of profile_totals.level_device. */
struct tensor_sums {
	uint64_t alloc_bytes, free_bytes, at_peak, at_oom;
};
struct node_tensors {
	struct tensor_sums self, total; /* total: including all below; set by tree_sum */
	uint64_t allocs, frees;
	int64_t allocated_delta, allocated_peak;
	bool has_level;
};

/* What samples of threads say about a node. Of imported samples only their number is known. */
struct sample_sums {
	uint64_t samples;    /* in which a thread used a core */
	uint64_t cpu_ns;     /* CPU time that these stand for */
	uint64_t waits_ns;   /* a thread could run, but no core was free */
	uint64_t blocked_ns; /* a thread waited in the kernel */
};
struct node_sampled {
	struct sample_sums self, total; /* total: including all below; set by tree_sum */
	/* Trees of functions: samples of which a frame is uncertain. GUESSED, CUT, MOVED: enum
	 * trace_sample_flag. */
	uint64_t guessed, cut, moved;
};

/* The instance in which the metric was worst. */
struct node_worst {
	uint64_t begin_ns, end_ns;
	/* before, after: levels only. long double holds any int64_t or double exactly. */
	long double value, before, after;
	uint32_t label, stream; /* label: text; set at the end of the pass */
	uint32_t trace_node;    /* trace node whose name is the label, unless `own` is set */
	uint32_t own_bytes;
	char *own; /* owned; NULL: none */
	bool found;
};

struct node {
	/* The members that a closing range updates fill the first cache line. */
	_Alignas(64) uint64_t calls;
	uint64_t total_ns, self_ns, min_ns, max_ns;
	struct percentiles samples;
	uint32_t parent, first_child, next, name;
	uint32_t domain; /* text; 0: the default domain */
	uint32_t class;  /* text: of a module; 0: unknown */
	/* Of what runs backward: the node of the operator beside which it is shown. 0: none. */
	uint32_t forward_node;
	uint32_t labels; /* distinct labels that its label pattern merged; 0: none */
	/* Trace node and stream of the instance that took max_ns. */
	uint32_t longest_trace_node, longest_stream;
	uint64_t longest_begin_ns;
	uint64_t call_ns; /* in CUDA calls made directly in it */
	struct node_gpu *gpu;
	struct node_memory *memory;
	struct node_tensors *tensors;
	struct node_worst *worst;
	struct node_sampled *sampled; /* NULL: no thread was sampled in it or below */
	uint8_t kind;                 /* enum node_kind */
	uint16_t depth;               /* children of the root: 0 */
	bool left_open;               /* an instance was open at the end */
	/* The program only counted its instances (PPERF_OPS=totals): only calls, total_ns and
	 * max_ns are known. */
	bool is_counted;
	bool is_recompute; /* a module or operator that runs again during backward */
	bool outside;      /* a section that is no steady-state step: not in shares of time */
	/* It is below a graph, and shows where the work was captured. That work is counted in
	 * the graph and in the range that launched it. The node has no instances. */
	bool captured;
	/* It has no instances. total_ns is the sum of the ranges in it, set by tree_sum. */
	bool is_group;
	/* It ran backward for an operator and is shown beside it. Its time is also in the total
	 * of the node where it ran, and in no total above it here. */
	bool ran_elsewhere;
};

struct tree {
	struct node *nodes;
	uint32_t count, room;
	struct hash_index index;
	/* By node, the child looked up last: [0] GPU work, [1] any other kind. 0: none. */
	uint32_t (*recent)[2];
	struct percentiles_budget budget;
	struct percentiles_budget delay_budget;
	struct launch_delays *delays;  /* what launch_delays_percentile has computed */
	struct sampled_parts *sampled; /* memory of the nodes' part `sampled`, of call_tree.c */
	bool has_parts;                /* some GPU work is not forward; set by tree_sum */
	bool is_grouped;               /* its nodes are rows of --by, not of the call tree */
};

struct tree *tree_new(void);
void tree_free(struct tree *tree);

/* The child with this name, domain and kind, and without a class; added if there is none.
 * Addresses of nodes may change. */
static inline uint32_t tree_child(
	struct tree *tree, uint32_t parent, uint32_t name, uint32_t domain, enum node_kind kind);
/* The module with this name and class; added if there is none. */
uint32_t tree_module(
	struct tree *tree, uint32_t parent, uint32_t name, uint32_t domain, uint32_t class);
/* Adds the child that `like`, a node of another tree, is of its parent. The parent's number is the
 * same, and there is no such child yet: else the number of that one is returned. */
uint32_t tree_restore_child(struct tree *tree, const struct node *like);
/* Adds a child of the root, also if there is one with this name and kind. */
uint32_t tree_add(struct tree *tree, uint32_t name, enum node_kind kind);
/* As tree_child, but returns 0 if there is none. */
uint32_t tree_find(const struct tree *tree, uint32_t parent, uint32_t name, uint32_t domain,
	enum node_kind kind);
/* The node with the same path as `node` of another tree with the same texts. 0: none. */
uint32_t tree_find_path(const struct tree *tree, const struct tree *of, uint32_t node);

/* Each allocates the node's part at the first call. */
static inline struct node_gpu *tree_gpu(struct tree *tree, uint32_t node);
static inline struct node_memory *tree_memory(struct tree *tree, uint32_t node);
static inline struct node_tensors *tree_tensors(struct tree *tree, uint32_t node);
struct node_worst *tree_worst(struct tree *tree, uint32_t node);
static inline struct node_sampled *tree_sampled(struct tree *tree, uint32_t node);

/* As tree_child, for a node without instances of its own. */
uint32_t tree_group(
	struct tree *tree, uint32_t parent, uint32_t name, uint32_t domain, enum node_kind kind);

/* The child of `parent` that shows what was captured in the node `like`. It has the name,
 * domain, class and kind of `like`. `parent` is a graph, or such a child itself. */
uint32_t tree_captured_child(struct tree *tree, uint32_t parent, uint32_t like);

/* Counts one instance of the leaf `node`. */
void tree_count(struct tree *tree, uint32_t node, uint64_t duration_ns);

/* Adds `from` to `to`. */
static inline void sample_sums_add(struct sample_sums *to, const struct sample_sums *from)
{
	to->samples += from->samples;
	to->cpu_ns += from->cpu_ns;
	to->waits_ns += from->waits_ns;
	to->blocked_ns += from->blocked_ns;
}

/* Computes the totals of all nodes. Called after the last figure; may be called again. */
void tree_sum(struct tree *tree);

/* For tree_new and tree_free. */
struct launch_delays *launch_delays_new(void);
void launch_delays_free(struct launch_delays *delays);

/* Returns the median (`per_mille` 500) or 95th percentile (950) of the launch latencies of the node
 * and the nodes below: from the begin of the launching call to the begin of the GPU work, in ns,
 * with an error of at most 1 %. Returns false if no launch there is timed. The first call computes
 * those of all nodes, once the pass over the trace has ended. Not thread safe. */
bool launch_delays_percentile(
	const struct tree *tree, uint32_t node, unsigned per_mille, uint64_t *value);

const char *node_kind_name(enum node_kind kind);
enum node_class node_kind_class(enum node_kind kind);
const char *method_name(enum method method);
const char *method_confidence(enum method method);

/* For the inline functions only. */

uint32_t tree_child_lookup(
	struct tree *tree, uint32_t parent, uint32_t name, uint32_t domain, enum node_kind kind);
struct node_gpu *tree_new_gpu(struct tree *tree, uint32_t node);
struct node_memory *tree_new_memory(struct tree *tree, uint32_t node);
struct node_tensors *tree_new_tensors(struct tree *tree, uint32_t node);
struct node_sampled *tree_new_sampled(struct tree *tree, uint32_t node);

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

static inline struct node_sampled *tree_sampled(struct tree *tree, uint32_t node)
{
	struct node_sampled *sampled = tree->nodes[node].sampled;

	return __builtin_expect(sampled != NULL, 1) ? sampled : tree_new_sampled(tree, node);
}

#endif
