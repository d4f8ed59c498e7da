/* SPDX-License-Identifier: MIT
 * Shows the progress of a long read as one line on stderr, which is cleared at the end. It is
 * shown only if stderr is a terminal that can clear a line, this process is in the foreground,
 * and PROGRESS_AFTER_MS have passed.
 *
 * A trace of pperf is read several times, and each pass starts at 0 %. A file of another tool is
 * read once and converted.
 */
#ifndef PPERF_REPORT_BASE_PROGRESS_H
#define PPERF_REPORT_BASE_PROGRESS_H

#include <stdbool.h>
#include <stdint.h>

#define PROGRESS_AFTER_MS 500
#define PROGRESS_INTERVAL_MS 100

/* Enables or disables the line. It is disabled at first. */
void progress_allow(bool allow);
/* Sets the path that is shown for the following reads. */
void progress_file(const char *path);
/* Adds `bytes` that were read. The file is now read up to offset `at` of `of`. */
void progress_read(uint64_t bytes, uint64_t at, uint64_t of);
/* Sets the percentage to 0 for a new pass. */
void progress_restart(void);
/* Clears the line; must be called before other output to a terminal. Further reads show it
 * again. */
void progress_clear(void);

#endif
