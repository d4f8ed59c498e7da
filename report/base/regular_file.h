/* SPDX-License-Identifier: MIT
 * Opens files whose names come from untrusted data: names in a trace, and symbolic
 * links in the trace's folder.
 */
#ifndef PPERF_REPORT_BASE_REGULAR_FILE_H
#define PPERF_REPORT_BASE_REGULAR_FILE_H

#include <sys/stat.h>

/* Opens a regular file for reading, and never blocks. Checks it before opening it: opening a device
 * can have an effect, and reading /proc/kmsg removes what is read. Returns a descriptor, or -1 with
 * errno. ENOTSUP: `path` is not a regular file, or is in /proc, /sys or the like. `*status`
 * describes what exists at `path`, and is zeroed if nothing does. */
int regular_file_open(const char *path, struct stat *status);

#endif
