/* SPDX-License-Identifier: MIT
 * import_samples.h: Small files of other tools, with every kind of content that pperf imports.
 * Tests damage them.
 */
#ifndef PPERF_TESTS_SUPPORT_IMPORT_SAMPLES_H
#define PPERF_TESTS_SUPPORT_IMPORT_SAMPLES_H

#include <stddef.h>

/* A trace of torch.profiler. */
extern const char sample_kineto[];
size_t sample_kineto_bytes(void);

/* Returns an export of Nsight Systems, an SQLite database. The caller frees it. */
unsigned char *sample_nsys_export(size_t *bytes);
/* A snapshot of torch.cuda.memory with a history of five events. The caller frees it. */
unsigned char *sample_torch_snapshot(size_t *bytes);
/* A memory timeline of torch.profiler: the sizes of three categories at four times, and the events
 * of which they are. */
extern const char sample_timeline_sizes[], sample_timeline_events[];

#endif
