/* SPDX-License-Identifier: MIT
 *
 * Prints sentences that say where time and memory went: measured amounts, and the node that owns
 * the largest part.
 */
#ifndef PPERF_REPORT_SUMMARY_HEADLINE_H
#define PPERF_REPORT_SUMMARY_HEADLINE_H

#include "report/run/process.h"
#include "report/text/paragraph.h"

/* What a sentence is about. HEADLINE_MEMORY: device memory. */
enum headline_topic { HEADLINE_CPU, HEADLINE_GPU, HEADLINE_MEMORY };

/* Appends the sentence of a topic; nothing if the trace has no such data. `has_verdict`: as in
 * headline_put_where. */
void headline_add(struct paragraph *paragraph, const struct process *process,
	enum headline_topic topic, bool has_verdict);
/* Returns the node that the sentence of a topic names, with its time or bytes, and what these are a
 * part of. 0: none. */
uint32_t headline_place(const struct process *process, enum headline_topic topic, uint64_t *amount,
	uint64_t *whole);
/* Prints, for a program without GPU work, where its time on the CPU went. */
void headline_put_time(const struct process *process, const struct style *style);
/* Prints where GPU work was launched, and the peak of device memory. `has_verdict`: what the GPU
 * did is printed already; false: prints also how busy it was. Prints nothing of what the trace does
 * not have. */
void headline_put_where(const struct process *process, const struct style *style, bool has_verdict);

#endif
