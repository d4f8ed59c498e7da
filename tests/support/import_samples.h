/* SPDX-License-Identifier: MIT
 * import_samples.h: small files of other tools, with something of everything that is read of them,
 * for tests that damage them.
 */
#ifndef PPERF_TESTS_SUPPORT_IMPORT_SAMPLES_H
#define PPERF_TESTS_SUPPORT_IMPORT_SAMPLES_H

#include <stddef.h>

/* Of torch.profiler. */
extern const char sample_kineto[];
size_t sample_kineto_bytes(void);

/* Of Nsight Systems, an SQLite database; the caller's. */
unsigned char *sample_nsys_export(size_t *bytes);

#endif
