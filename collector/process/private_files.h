/* SPDX-License-Identifier: MIT
 * Gives a thread of pperf a table of descriptors of its own. What it opens then is no descriptor of
 * the program: the program cannot see, count or close it, a forked child does not inherit it, and
 * no thread of the program misses the lowest free number for a moment.
 */
#ifndef PPERF_COLLECTOR_PROCESS_PRIVATE_FILES_H
#define PPERF_COLLECTOR_PROCESS_PRIVATE_FILES_H

#include <stdbool.h>

/* Gives the calling thread its own table, which has the descriptor `keep` (-1: none) and no other
 * one of the program. Returns false if that is not possible, or not without harm; the thread then
 * still has the table of the program. */
bool private_files_begin(int keep);

/* Whether the calling thread has its own table. */
bool private_files_here(void);

#endif
