/* SPDX-License-Identifier: MIT
 *
 * Small files of other tools that contain something of everything the importers read. Tests damage
 * them.
 */
#ifndef PPERF_TESTS_SUPPORT_FOREIGN_TRACES_H
#define PPERF_TESTS_SUPPORT_FOREIGN_TRACES_H

#include <stddef.h>

/* A file of torch.profiler, terminated. */
extern const char foreign_json[];
size_t foreign_json_bytes(void);

/* Makes a file of Nsight Systems, an SQLite database of `bytes` bytes. The caller frees it. */
unsigned char *foreign_export(size_t *bytes);

#endif
