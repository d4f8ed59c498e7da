/* SPDX-License-Identifier: MIT
 * printed.h: whether what was printed is harmless and what it says it is. Written apart from what
 * prints it: nothing here is shared with the report. Each returns where the first thing wrong is,
 * `bytes` if nothing is.
 */
#ifndef PPERF_FUZZ_PRINTED_H
#define PPERF_FUZZ_PRINTED_H

#include <stddef.h>

/* Anything a terminal would act on or hide: control bytes but line ends (those of CSV are two
 * bytes), what is no UTF-8, marks that turn text round or that nobody sees. */
size_t printed_unsafe(const char *text, size_t bytes);

/* Not JSON values (RFC 8259), one after the other with white space between them. */
size_t printed_bad_json(const char *text, size_t bytes);

/* A cell, quoted or not, that a spreadsheet would compute; a quote that is never closed. */
size_t printed_bad_csv(const char *text, size_t bytes);

#endif
