/* SPDX-License-Identifier: MIT
 * Keeps what the passes of process_read find in a trace: the steps, the timeline of the GPUs and
 * the profile. The next command on the same trace then makes no pass for them, whatever it shows.
 *
 * They are kept of whole traces that ended and lack nothing, without recording windows, handovers
 * of CUPTI and a ring, and as options select them that need no file of the user. The view `ranks`
 * keeps nothing: profiles of thousands of ranks would fill the cache.
 */
#ifndef PPERF_REPORT_RUN_KEPT_PROCESS_H
#define PPERF_REPORT_RUN_KEPT_PROCESS_H

#include "report/cache/cache.h"
#include "report/run/process.h"
#include <stdio.h>

/* Returns the key of an open process. All zero: nothing is kept of it. */
struct cache_key kept_process_key(const struct process *process, const struct options *options);
/* Sets steps, timeline and profile of an open process to what was kept. Returns false, without a
 * change, if there is nothing. */
bool kept_process_read(
	struct process *process, const struct options *options, const struct cache_key *key);
/* Keeps them. Called before the profile is used. */
void kept_process_write(
	struct process *process, const struct options *options, const struct cache_key *key);

/* For tests: writes them to a file. Returns false if they cannot be kept. */
bool kept_process_encode(struct process *process, FILE *file);
/* For tests: as kept_process_read, from a file of `bytes` bytes. */
bool kept_process_decode(
	struct process *process, const struct options *options, FILE *file, uint64_t bytes);

#endif
