/* SPDX-License-Identifier: MIT
 * trace_notes.h: what the parts of the reader note while they read: counts, and the first few findings as sentences.
 */
#ifndef PPERF_REPORT_TRACE_READ_WARNINGS_H
#define PPERF_REPORT_TRACE_READ_WARNINGS_H

#include "report/trace/trace_reader.h"

#define NOTES_MOST 16u
#define NOTE_BYTES 512u

struct trace_notes {
	const char *path; /* the caller's */
	struct trace_integrity integrity;
	uint32_t count;   /* of all findings; the first NOTES_MOST are kept */
	char notes[NOTES_MOST][NOTE_BYTES];
};

/* Adds "PATH: offset N: sentence"; UINT64_MAX: no offset. */
__attribute__((format(printf, 3, 4))) void note_add(struct trace_notes *notes, uint64_t offset, const char *format, ...);

#endif
