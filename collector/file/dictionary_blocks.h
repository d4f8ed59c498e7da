/* SPDX-License-Identifier: MIT
 * dictionary_file.h: the dictionary's blocks in the file. For stream.c, which opens it before a stream's first record.
 */
#ifndef PPERF_COLLECTOR_FILE_DICTIONARY_BLOCKS_H
#define PPERF_COLLECTOR_FILE_DICTIONARY_BLOCKS_H

#include "collector/trace_format.h"
#include <stdbool.h>

void dictionary_setup(void);

/* This process's dictionary blocks exist and hold all that is known. Any thread; cheap once open. false: no room, *reason says why. */
bool dictionary_open(enum trace_loss *reason);

/* Brings a dictionary that cannot be mapped to the file, before records that name what is in it. */
void dictionary_write_back(void);

/* At a clean end: gives the last block its CRC. */
void dictionary_close(void);

#endif
