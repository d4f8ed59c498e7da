/* SPDX-License-Identifier: MIT
 * Records the ranges, marks and metrics that a program reports to pperf itself: by pperf.h, or by
 * the Python module pperf (python_module.h).
 *
 * They become the same records as NVTX's ranges, marks and counters of the default domain. Any
 * thread may call, except as said. Nothing here throws, and errno is preserved.
 */
#ifndef PPERF_PRELOAD_USER_INTERFACE_H
#define PPERF_PRELOAD_USER_INTERFACE_H

#include <stdbool.h>
#include <stdint.h>

/* Called by the constructor, unless pperf is disabled. Without this call the program finds no
 * interface. `python`: PPERF_PYTHON, whether `import pperf` finds the module in this library. */
void user_configure(bool python);

/* Whether user_configure was called. */
bool user_is_configured(void);

/* Returns true if events are recorded now, false while recording is paused. */
bool user_is_recorded(void);

/* Opens and closes a range of `object`, as range_open and range_close do. `text` must stay valid
 * until the range closes. Callbacks are called. */
void user_range_open(const void *object, const char *text);
void user_range_close(const void *object);

/* As pperf_range_begin, pperf_range_end and pperf_mark of pperf.h. */
uint64_t user_range_begin(const char *text);
void user_range_end(uint64_t range);
void user_mark(const char *text);

/* As pperf_metric and pperf_metric_push. Returns 0 if there is no room for another metric. */
unsigned user_metric(const char *name, const char *unit);
void user_metric_push(unsigned metric, double value);

/* Returns the name of a metric that was registered. It is never freed. */
const char *user_metric_name(unsigned metric);

#endif
