/* SPDX-License-Identifier: MIT
 * Adds the functions that CPU samples found to a flame graph, as shapes of their own.
 *
 * | shape           | frames                                                           |
 * |-----------------|------------------------------------------------------------------|
 * | FLAME_FUNCTIONS | the call path, and the functions below each node of it           |
 * | FLAME_PYTHON    | Python frames                                                    |
 * | FLAME_NATIVE    | native frames                                                    |
 * | FLAME_ALL       | Python and native frames, with the interpreter's own functions   |
 */
#ifndef PPERF_REPORT_PAGE_FLAME_FUNCTIONS_H
#define PPERF_REPORT_PAGE_FLAME_FUNCTIONS_H

#include "report/page/flame_tree.h"

/* Adds the shapes of one process, if it has CPU samples with times. Call it after flame_build. */
void flame_add_functions(struct flame *flame, struct process *process);

#endif
