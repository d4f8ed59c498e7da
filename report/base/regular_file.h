/* SPDX-License-Identifier: MIT
 * Opens files whose names come from untrusted data: names in a trace, and links in its folder.
 */
#ifndef PPERF_REPORT_BASE_REGULAR_FILE_H
#define PPERF_REPORT_BASE_REGULAR_FILE_H

#include <sys/stat.h>

/* Opens a regular file for reading, and never blocks. Files in /proc, /sys and the like are
 * refused.
 * The check is made before the file is opened: opening a device can have an effect, and reading
 * /proc/kmsg removes what is read. Returns a descriptor, or -1 with errno. ENOTSUP means that
 * `path` is refused because it is not a regular file. `*status` describes what exists at `path`,
 * and is zeroed if nothing does. */
int regular_file_open(const char *path, struct stat *status);

#endif
