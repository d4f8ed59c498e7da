/* SPDX-License-Identifier: MIT
 * progress.h: how far reading has come, on a terminal, where it takes long: one line on stderr that goes away again. Only if stderr is a terminal that
 * can take a line back, this process is in its foreground, and PROGRESS_AFTER_MS have passed; never anywhere else.
 *
 * A trace is read several times: each time it begins at 0 % again.
 */
#ifndef PPERF_REPORT_BASE_PROGRESS_H
#define PPERF_REPORT_BASE_PROGRESS_H

#include <stdbool.h>
#include <stdint.h>

#define PROGRESS_AFTER_MS 500
#define PROGRESS_INTERVAL_MS 100

/* Not before it is told so. */
void progress_allow(bool allow);
/* What is read from here on; for the user. */
void progress_file(const char *path);
/* So many bytes more were read of a file, which is now read up to `at` of `of`. */
void progress_read(uint64_t bytes, uint64_t at, uint64_t of);
/* Somebody begins from the start. */
void progress_restart(void);
/* Takes the line away: before anything else is written to a terminal. It comes again if reading goes on. */
void progress_clear(void);

#endif
