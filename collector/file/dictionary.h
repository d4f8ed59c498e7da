/* SPDX-License-Identifier: MIT
 * Gives ids to texts, nodes, call stacks and counters. Writes their records, and all other
 * dictionary records (META, modules, devices), once.
 *
 * Ids are given in the order of first use and never reused. A forked child keeps them, and its own
 * file gets all of them again. If there is a file, a record is in it before its id is returned.
 * Otherwise the entries are kept in memory, and written once there is a file.
 *
 * Looking up a known entry takes no lock. Adding one takes a lock briefly, and no function outside
 * this folder is called under it. errno is preserved. Any thread may call, between stream_enter (or
 * stream_enter_dictionary_only) and stream_leave.
 */
#ifndef PPERF_COLLECTOR_FILE_DICTIONARY_H
#define PPERF_COLLECTOR_FILE_DICTIONARY_H

#include "collector/trace_format.h"
#include <stdbool.h>

/* Limits on the dictionary's memory. Beyond them name_id() returns 0, and the caller writes the
 * text into the event's record instead. name_id_always() is for records that cannot hold a text. It
 * allows four times as much, and counts a text without an id as lost. */
#define NAME_BUDGET 262144u
#define NAME_BUDGET_BYTES (32u << 20)
#define NODE_BUDGET 1048575u /* ids fit in 20 bits */
/* Beyond this number of nodes, name_id() gives no id to a further text. A program that numbers its
 * ranges ("step 1234") would use up all nodes with the ranges inside them. All ranges without an id
 * below the same parent have one node, so what is inside them takes no further nodes. */
#define NODES_FOR_TEXTS (NODE_BUDGET / 2)
#define STACK_BUDGET 262144u
#define STACK_FRAMES_MAX 64u

/* Returns the id of the text's content. 0: the budget is spent, or there is no space. A text longer
 * than TRACE_TEXT_MAX is cut. */
uint32_t name_id(const char *text, size_t bytes);
/* name_id() with four times the budgets. 0 is counted as lost. */
uint32_t name_id_always(const char *text, size_t bytes);

/* Returns the text whose id is `name`, terminated. It is never freed. */
const char *name_text(uint32_t name, size_t *bytes);

/* Returns the id of the node for `name` in `domain` below `parent`. 0: the budget is spent, or
 * there is no space. All texts without an id (`name` 0) share one child of `parent`. */
uint32_t node_id(uint32_t parent, uint32_t name, uint32_t domain, enum trace_node_kind kind);
/* node_id() with a link and a detail (struct trace_node). Nodes that differ in one of these are two
 * nodes. */
uint32_t node_id_linked(
	uint32_t parent, uint32_t name, enum trace_node_kind kind, uint32_t link, uint32_t detail);
/* Returns the kind of a node; TRACE_NODE_RANGE if the calling thread cannot see the node yet. */
enum trace_node_kind node_kind(uint32_t node);

/* Returns the id of a call stack of `count` return addresses, innermost first. STACK_FRAMES_MAX of
 * them are kept. 0: no frames, the budget is spent, or there is no space. */
uint32_t stack_id(const uint64_t *frames, uint32_t count);
/* stack_id() of Python frames. */
uint32_t python_stack_id(const struct trace_python_frame *frames, uint32_t count);
/* Returns the id of both stacks together. If one of the ids is 0, returns the other. */
uint32_t mixed_stack_id(uint32_t native, uint32_t python);

/* Returns the id of a new counter, from 1. `unit` is a name id, or 0. */
uint32_t counter_id(uint32_t name, uint32_t domain, uint32_t unit);

/* Writes a META record, also into the file of a forked child. It replaces an earlier value of
 * `key`. May be called without stream_enter, and before there is a file. */
void meta_set(const char *key, const char *value);

/* A fact about the process. meta_set_all() skips those whose value is NULL. */
struct meta {
	const char *key, *value;
};
/* meta_set() of `count` facts, under one lock. */
void meta_set_all(const struct meta *all, size_t count);

/* Writes any other dictionary record. record->size includes texts after the struct, and is a
 * multiple of 8. The bytes are copied unchanged. With `inherit` 1 the record is kept: it is written
 * once there is a file, and also to the file of a forked child. With 0 it is dropped if there is no
 * file yet. If there is no space in the file, the record is counted as lost. */
void dictionary_put(const struct trace_head *record, int inherit);

/* dictionary_put() of a graph node, without `inherit`. CUPTI may report a clone twice, as created
 * and as cloned, in either order. If the node's other record is among the last ones, the two become
 * one record, with the original. */
void dictionary_put_graph_node(const struct trace_graph_node *record);

/* Sets the function that calls meta_set for the facts about the process. It is called in each
 * process that creates a file, before the first dictionary record there. It may be called by
 * several threads at once, if they record the first events of the process concurrently. */
void dictionary_on_open(void (*describe)(void));

/* ---- the dictionary's blocks in the file, which are created before a stream's first record
 * ---- */

void dictionary_setup(void);

/* Creates the dictionary blocks of this process, with all that is known. Cheap once they exist.
 * Returns false if there is no room; *reason says why. Any thread. */
bool dictionary_open(enum trace_loss *reason);

/* If the file is not mapped: writes the last dictionary block to it. Called before records that
 * refer to entries of the dictionary are written. */
void dictionary_write_back(void);

/* At a clean end: gives the last block its CRC. */
void dictionary_close(void);

#endif
