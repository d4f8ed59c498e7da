/* SPDX-License-Identifier: MIT
 * Gives pperf's file descriptors high numbers, so that the program gets the low ones as without
 * pperf.
 */
#ifndef PPERF_COLLECTOR_PROCESS_HIGH_DESCRIPTOR_H
#define PPERF_COLLECTOR_PROCESS_HIGH_DESCRIPTOR_H

/* Duplicates `fd` at a high number, close-on-exec. Returns -1 if that failed. */
int high_descriptor(int fd);

#endif
