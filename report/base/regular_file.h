/* SPDX-License-Identifier: MIT
 * regular_file.h: files whose names come from somebody else: what a trace names, what lies or is linked to in its folder.
 */
#ifndef PPERF_REPORT_BASE_REGULAR_FILE_H
#define PPERF_REPORT_BASE_REGULAR_FILE_H

#include <sys/stat.h>

/* Opens for reading, never waiting for anything. Only a regular file outside of /proc, /sys and their like, which is found out
 * without opening: to open a device can be to do something with it, and to read /proc/kmsg takes away what is read.
 * -1: errno says why; ENOTSUP: what is there is something else. *status is of what is there, zeros if nothing is. */
int regular_file_open(const char *path, struct stat *status);

#endif
