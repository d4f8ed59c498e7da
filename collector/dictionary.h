/* SPDX-License-Identifier: MIT
 * dictionary.h: what is written once and named by number afterwards: texts, nodes of the context tree, counters, modules, stacks, devices, facts.
 *
 * Ids are given in the order of first use, never reused, and stay what they are in a forked child (whose own file gets all of them again).
 * A record is in the file before its id is returned. Looking up what is known takes no lock; adding takes one, shortly, and no call out of this
 * file is made under it. Threads: any, between stream_enter and stream_leave.
 */
#ifndef PPERF_DICTIONARY_H
#define PPERF_DICTIONARY_H

#include "trace_format.h"

/* Texts beyond this many, or this many bytes, are not given an id by name_id (they travel inline); name_id_always goes on to four times as much. */
#define NAME_BUDGET 262144u
#define NAME_BUDGET_BYTES (32u << 20)
#define NODE_BUDGET 1048576u

/* The id of a text, by content. 0: the budget is spent, or no room. */
uint32_t name_id(const char *text, size_t bytes);
uint32_t name_id_always(const char *text, size_t bytes);

/* The node `name` of `domain` under `parent`. 0: budget spent or no room (name 0 gives the parent's one child for inline texts). */
uint32_t node_id(uint32_t parent, uint32_t name, uint32_t domain, enum trace_node_kind kind);

/* The id of a call stack (return addresses, innermost first, at most 64 are kept). 0: budget spent or no room. */
uint32_t stack_id(const uint64_t *frames, uint32_t count);

/* A new counter's id, from 1. 0: no room. */
uint32_t counter_id(uint32_t name, uint32_t domain, uint32_t unit);

/* META. value may be any bytes; cut at TRACE_TEXT_MAX. Kept, so that a forked child's file has it too. Overwrites an earlier value of the key. */
void meta_set(const char *key, const char *value);

/* Any other dictionary record, whole, as it stands (record.head.size bytes). Kept for a forked child only if `inherit`. */
void dictionary_put(const struct trace_head *record, int inherit);

#endif
