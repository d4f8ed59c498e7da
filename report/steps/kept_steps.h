/* SPDX-License-Identifier: MIT
 * Writes the steps of a trace to a file, and reads them back.
 */
#ifndef PPERF_REPORT_STEPS_KEPT_STEPS_H
#define PPERF_REPORT_STEPS_KEPT_STEPS_H

#include "report/base/value_file.h"
#include "report/steps/find_steps.h"

/* After steps_finish_gpu. `steps` may be NULL. */
void steps_write(const struct steps *steps, struct value_writer *writer);
/* Returns NULL if there were none. After a failure the result may only be freed. `trace_nodes`: as
 * reader_node_count. */
struct steps *steps_read(struct value_reader *reader, uint32_t trace_nodes);

#endif
