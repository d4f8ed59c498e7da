/* SPDX-License-Identifier: MIT
 * dictionary.h: what is written once and named by number afterwards: texts, nodes of the context tree, counters, modules, stacks, devices, facts.
 *
 * Ids are given in the order of first use, never reused, and stay what they are in a forked child (whose own file gets all of them again).
 * A record is in the file before its id is returned. Looking up what is known takes no lock; adding takes one, shortly, and no call out of
 * this folder is made under it. errno is kept. Threads: any, between stream_enter or stream_hold and stream_leave. Before there is a file all is
 * kept, and written when there is one.
 */
#ifndef PPERF_COLLECTOR_FILE_DICTIONARY_H
#define PPERF_COLLECTOR_FILE_DICTIONARY_H

#include "collector/trace_format.h"
#include <stdbool.h>

/* A text beyond these budgets is given no id by name_id: it travels inline. name_id_always goes on to four times as much; a text that it gives none
 * is counted as lost. */
#define NAME_BUDGET 262144u
#define NAME_BUDGET_BYTES (32u << 20)
#define NODE_BUDGET 1048575u /* ids fit in 20 bits */
#define STACK_BUDGET 262144u
#define STACK_FRAMES_MAX 64u

/* The id of a text, by content. 0: the budget is spent, or no room. Longer texts are cut (TRACE_TEXT_MAX). */
uint32_t name_id(const char *text, size_t bytes);
uint32_t name_id_always(const char *text, size_t bytes);

/* The bytes of a name that was given, terminated; they stay for ever. */
const char *name_text(uint32_t name, size_t *bytes);

/* The node `name` of `domain` under `parent`. 0: budget spent or no room. name 0: the parent's one child for texts without an id. */
uint32_t node_id(uint32_t parent, uint32_t name, uint32_t domain, enum trace_node_kind kind);
/* The same with a link and a detail: two of them that differ in these are two nodes. See struct trace_node. */
uint32_t node_id_linked(
	uint32_t parent, uint32_t name, enum trace_node_kind kind, uint32_t link, uint32_t detail);

/* The id of a call stack: return addresses, innermost first, of which STACK_FRAMES_MOST are kept. 0: budget spent or no room. */
uint32_t stack_id(const uint64_t *frames, uint32_t count);
uint32_t python_stack_id(const struct trace_python_frame *frames, uint32_t count);

/* A new counter's id, from 1. unit: a name id, or 0. */
uint32_t counter_id(uint32_t name, uint32_t domain, uint32_t unit);

/* META. A forked child's file has it too. An earlier value of the key is replaced. May be called without stream_enter, before there is a file. */
void meta_set(const char *key, const char *value);

/* The same of many at once; those without a value are passed over. */
struct meta {
	const char *key, *value;
};
void meta_set_all(const struct meta *all, size_t count);

/* Any other dictionary record, whole, as it stands (record->size bytes). inherit: a forked child's file has it too. Counted as lost where there is no room
 * for it. */
void dictionary_put(const struct trace_head *record, int inherit);

/* Called in each process that makes a file, before the dictionary's first record there: to say its META. Threads whose first events come at the same time
 * may each call it; later ones do not. */
void dictionary_on_open(void (*describe)(void));

/* ---- its blocks in the file; for stream.c, which opens it before a stream's first record ---- */

void dictionary_setup(void);

/* This process's dictionary blocks exist and hold all that is known. Any thread; cheap once open. false: no room, *reason says why. */
bool dictionary_open(enum trace_loss *reason);

/* Brings a dictionary that cannot be mapped to the file, before records that name what is in it. */
void dictionary_write_back(void);

/* At a clean end: gives the last block its CRC. */
void dictionary_close(void);

#endif
