/* SPDX-License-Identifier: MIT
 * Writes values to a file one after the other, and reads them back within bounds.
 *
 * Both sides remember the first failure, so a caller may check once at the end. What could not be
 * read is zero. The file is read by the program that wrote it: values have its byte order and
 * layout. What is read may be hostile. A caller checks numbers before it uses them as an index.
 */
#ifndef PPERF_REPORT_BASE_VALUE_FILE_H
#define PPERF_REPORT_BASE_VALUE_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

struct value_writer {
	FILE *file; /* owned by the caller */
	uint64_t bytes, bytes_max;
	bool failed; /* the file cannot be written, or would exceed bytes_max */
};

struct value_reader {
	FILE *file;    /* owned by the caller */
	uint64_t left; /* bytes that the file still has */
	bool failed;   /* something is missing or not valid */
};

void value_write(struct value_writer *writer, const void *bytes, size_t count);
void value_write_u64(struct value_writer *writer, uint64_t value);
/* Writes the number of elements and the elements. */
void value_write_array(
	struct value_writer *writer, const void *elements, uint64_t count, size_t size);

/* Returns false if there are fewer bytes, and sets all of them to 0. */
bool value_read(struct value_reader *reader, void *into, size_t count);
uint64_t value_read_u64(struct value_reader *reader);
/* Returns a number of at most `max`; 0 after a failure. */
uint64_t value_read_below(struct value_reader *reader, uint64_t max);
/* Returns an array of value_write_array, which the caller frees. It has one more element, which is
 * zero. Never NULL: after a failure it has no elements. */
void *value_read_array(struct value_reader *reader, uint64_t *count, uint64_t max, size_t size);
/* Marks the reading as failed unless `good`. Returns `good`. */
bool value_check(struct value_reader *reader, bool good);
/* Returns whether a byte that was read is a bool that can be used. */
bool value_is_bool(const bool *value);

#endif
