/* SPDX-License-Identifier: MIT
 * Opens and closes the dictionary's blocks in the trace file. The stream opens them before its
 * first record.
 */
#ifndef PPERF_COLLECTOR_FILE_DICTIONARY_BLOCKS_H
#define PPERF_COLLECTOR_FILE_DICTIONARY_BLOCKS_H

#include "collector/trace_format.h"
#include <stdbool.h>

/* Allocates the state. Called once, before any other dictionary function. */
void dictionary_setup(void);

/* Makes the dictionary blocks of this process and writes everything known to them. Any thread may
 * call it; once open, a call is cheap. Returns false if there is no space, with the reason in
 * `reason`. */
bool dictionary_open(enum trace_loss *reason);

/* Writes a dictionary that is not mapped to the file. Called before records that refer to it are
 * written. */
void dictionary_write_back(void);

/* Gives the last block its CRC, at a clean end. */
void dictionary_close(void);

#endif
