/* SPDX-License-Identifier: MIT
 * Lists the loaded objects (the program, its libraries, the vdso) by address: where their code is,
 * and where their unwind tables are.
 *
 * The list is a copy. The dynamic linker's lock is held only while the copy is made, or while the
 * linker's counters are compared. No other thread may fork meanwhile, because its child would find
 * the lock taken for ever: the sampler sees to that (sampler_fork_prepare).
 */
#ifndef PPERF_COLLECTOR_SAMPLE_CODE_MAP_H
#define PPERF_COLLECTOR_SAMPLE_CODE_MAP_H

#include <stdbool.h>
#include <stdint.h>

#define CODE_MAP_OBJECTS_MAX 8192u

/* Addresses of a loaded object. An end is the first address behind. */
struct code_object {
	uint64_t start, end;
	uint64_t code_start, code_end; /* its executable segments, and what is between them */
	uint64_t header;               /* its .eh_frame_hdr; 0: it has none */
	/* The sorted table in the header, as unwind_rule_read() finds it. */
	uint64_t table;
	uint32_t table_entries;
	bool table_known;
};

/* Filled with zeros, it is an empty list. One thread uses it. */
struct code_map {
	uint64_t adds, subs; /* the linker's counters of loads and unloads */
	uint64_t code_start, code_end;
	uint32_t count;
	bool incomplete; /* there are more objects than CODE_MAP_OBJECTS_MAX */
	struct code_object objects[CODE_MAP_OBJECTS_MAX];
};

/* What code_map_update() found. */
enum code_map_change {
	CODE_MAP_SAME,
	CODE_MAP_GREW,   /* objects were loaded: what was known of addresses without one is old */
	CODE_MAP_SHRANK, /* objects were unloaded: what was known of any address may be old */
};

/* Copies the linker's list if it has changed since the last call. errno is preserved. */
enum code_map_change code_map_update(struct code_map *map);

/* Returns the object that `address` is in, or NULL. */
struct code_object *code_map_find(struct code_map *map, uint64_t address);

#endif
