/* SPDX-License-Identifier: MIT
 * info.h: what a trace says of itself: what ran and where, by which versions, with which settings and sources; how
 * the file is made up, what is missing. Nothing is computed of what the program did.
 */
#ifndef PPERF_INFO_H
#define PPERF_INFO_H

struct options;

/* The view `info`: files, format, output and strict of the options. Returns the exit status. */
int info_view(const struct options *options);

#endif
