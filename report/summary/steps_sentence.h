/* SPDX-License-Identifier: MIT
 *
 * States which steps were found and by what evidence, for the first screen and the verdict.
 */
#ifndef PPERF_REPORT_SUMMARY_STEPS_SENTENCE_H
#define PPERF_REPORT_SUMMARY_STEPS_SENTENCE_H

#include "report/steps/find_steps.h"
#include "report/text/paragraph.h"

/* Appends the number of steady-state steps, their median, what was excluded, and how the steps were
 * found. Without steps: why none were found. */
void steps_sentence_add(struct paragraph *paragraph, const struct steps *steps);

#endif
