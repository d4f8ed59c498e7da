/* SPDX-License-Identifier: MIT
 * foreign_traces.h: small files of other tools, with something of everything that is read of them, for tests that damage them.
 */
#ifndef PPERF_TESTS_SUPPORT_FOREIGN_TRACES_H
#define PPERF_TESTS_SUPPORT_FOREIGN_TRACES_H

#include <stddef.h>

/* Of torch.profiler. */
extern const char foreign_json[];
size_t foreign_json_bytes(void);

/* Of Nsight Systems, an SQLite database; the caller's. */
unsigned char *foreign_export(size_t *bytes);

#endif
