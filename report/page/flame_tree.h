/* SPDX-License-Identifier: MIT
 * Holds the data of flame graphs: trees of frames with values that add up.
 *
 * A frame's own values exclude those of the frames below it. So the width of a frame is the sum of
 * the own values of the frame and of all below, and every nanosecond or byte is in one frame only.
 * Frame 0 is the root of a tree and is not drawn. A frame's parent always has a lower number.
 */
#ifndef PPERF_REPORT_PAGE_FLAME_TREE_H
#define PPERF_REPORT_PAGE_FLAME_TREE_H

#include "report/base/hash_index.h"
#include "report/run/process.h"

/* kind, name of its colour and of its entry in the legend. The order is that of the legend. */
#define FLAME_KINDS(X)            \
	X(RANGE, "range, step")   \
	X(MODULE, "module")       \
	X(OP, "operator")         \
	X(BACKWARD, "backward")   \
	X(OPTIMIZER, "optimizer") \
	X(KERNEL, "kernel")       \
	X(COPY, "copy, memset")   \
	X(CALL, "CUDA call")      \
	X(STACK, "call stack")    \
	X(UNKNOWN, "not known")   \
	X(MORE, "small frames, together")

enum flame_kind {
#define X(kind, name) FLAME_##kind,
	FLAME_KINDS(X)
#undef X
		FLAME_KIND_COUNT
};

struct flame_frame {
	uint32_t parent;
	uint32_t name, label; /* texts of the flame graph */
	uint32_t node;        /* of the process's tree; 0: none */
	uint32_t process;     /* index in flame.processes of `node` */
	uint8_t kind;         /* enum flame_kind */
	bool is_outside;      /* what the program did before, between or after its steps */
};

struct flame_tree {
	struct flame_frame *frames;
	size_t count, room;
	/* By frame: `stride` own values, one for each metric of each side. */
	long double *values;
	size_t value_room, stride;
	struct hash_index index; /* of frames by parent, name and kind, if flame_child was used */
};

/* What one metric measures. Its index is that of its value in a frame. */
struct flame_metric {
	const char *key;   /* -m */
	const char *title; /* of its button; the counter's name for a counter */
	const char *note;  /* a sentence */
	const char *view;  /* the text view that has the same figures */
	enum unit unit;
	char unit_name[32]; /* of a counter */
	bool is_memory;     /* bytes that were allocated, or live at a peak */
	uint32_t counter;   /* METRIC_USER: id in the trace */
	bool is_counter;
};

enum flame_shape {
	FLAME_FOLDED, /* by call path, layers folded */
	FLAME_EACH,   /* by call path, each layer for itself */
	FLAME_STACKS, /* by call stack */
	/* functions of CPU samples (flame_functions.h) */
	FLAME_FUNCTIONS,
	FLAME_PYTHON,
	FLAME_NATIVE,
	FLAME_ALL,
	FLAME_SHAPES
};

struct flame {
	struct string_table *texts; /* names as they are in the trace */
	struct flame_metric *metrics;
	size_t metric_count, metric_room;
	uint32_t sides; /* 1, or 2: before and after */
	struct flame_tree shapes[FLAME_SHAPES];
	bool has_shape[FLAME_SHAPES];
	bool has_more_stacks; /* there are call stacks that only --by stack shows */
	/* Copies of processes with the profile that the frames' nodes are of. */
	struct process *processes;
	size_t process_count, process_room;
	struct profile **profiles; /* of passes that the flame graph made; owned */
	size_t profile_count, profile_room;
	/* Trees with folded labels of profiles without; owned. */
	struct folded_tree **folded;
	size_t folded_count, folded_room;
};

/* Adds a frame, and returns its number. The first frame must be the root. */
uint32_t flame_add(struct flame_tree *tree, const struct flame_frame *frame);
/* Returns the child of `parent` with this name and kind, and adds it if there is none. */
uint32_t flame_child(struct flame_tree *tree, uint32_t parent, uint32_t name, enum flame_kind kind);
/* Returns the own values of a frame, `stride` of them. */
long double *flame_values(const struct flame_tree *tree, uint32_t frame);
/* Returns the sums of the frames and all below, `stride` values for each frame. The caller frees
 * them. */
long double *flame_totals(const struct flame_tree *tree);
/* Marks the frames of what the program did outside of its steps, and all below them. The caller
 * frees the marks. */
bool *flame_outside_steps(const struct flame_tree *tree);

/* Removes frames without any value. If more than `most` frames remain, replaces the smallest ones
 * by one frame `N more` in each parent. A frame's size is its largest share of a metric. */
void flame_prune(struct flame_tree *tree, struct string_table *texts, size_t most);

const char *flame_kind_name(enum flame_kind kind);
void flame_tree_free(struct flame_tree *tree);

#endif
