/* SPDX-License-Identifier: MIT
 * Stores numbers that are read from the last to the first. Small numbers take less space: a byte
 * for each 7 bits. The last NUMBER_LOG_CHUNK bytes are in memory, the rest is in a temporary file
 * without a name.
 *
 *	struct number_log *log = number_log_new("durations");
 *
 *	number_log_add(log, number);
 *	number_log_rewind(log, false);
 *	while (number_log_left(log))
 *		number = number_log_back(log);
 *	number_log_free(log);
 *
 * A record of several numbers is read in the opposite order of its numbers. The program ends with
 * an error message if there is no room. Threads: one.
 */
#ifndef PPERF_REPORT_BASE_NUMBER_LOG_H
#define PPERF_REPORT_BASE_NUMBER_LOG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define NUMBER_LOG_CHUNK ((size_t)64 << 10)
#define NUMBER_LOG_BYTES_MAX 10u /* of one number */

/* Its members are private. */
struct number_log {
	struct number_file *file;
	unsigned char *bytes; /* a chunk: while numbers are added the last one, else that read */
	size_t used;          /* bytes of the chunk that are filled, or are to be read */
	size_t chunk;         /* its number; no number is in two chunks */
};

/* `what`: the numbers in error messages; it must outlive the log. */
struct number_log *number_log_new(const char *what);
void number_log_free(struct number_log *log); /* `log` may be NULL */

/* Goes to the end of the log. No number may be added afterwards. `is_last_time`: the space of the
 * file is freed while it is read. */
void number_log_rewind(struct number_log *log, bool is_last_time);
/* Drops all numbers, so that new ones can be added. */
void number_log_clear(struct number_log *log);

/* These are used by the functions below only. */
void number_log_next_chunk(struct number_log *log);
void number_log_last_chunk(struct number_log *log);
void number_log_add_long(struct number_log *log, uint64_t number);
uint64_t number_log_rest(struct number_log *log, uint64_t number);

static inline void number_log_add(struct number_log *log, uint64_t number)
{
	if (__builtin_expect(log->used + NUMBER_LOG_BYTES_MAX > NUMBER_LOG_CHUNK, 0))
		number_log_next_chunk(log);
	if (__builtin_expect(number < 128, 1))
		log->bytes[log->used++] = (unsigned char)number;
	else
		number_log_add_long(log, number);
}

/* Returns whether there is a number before the position. */
static inline bool number_log_left(struct number_log *log)
{
	if (__builtin_expect(!log->used && log->chunk, 0))
		number_log_last_chunk(log);
	return log->used != 0;
}

/* Returns the number before the position, which there must be, and goes there. */
static inline uint64_t number_log_back(struct number_log *log)
{
	unsigned char byte;

	if (__builtin_expect(!log->used, 0))
		number_log_last_chunk(log);
	byte = log->bytes[--log->used];
	return __builtin_expect(byte < 128, 1) ? byte : number_log_rest(log, byte & 127);
}

/* A signed difference as a number: small ones are small numbers. */
static inline uint64_t number_of_difference(int64_t difference)
{
	return (uint64_t)difference << 1 ^ (difference < 0 ? UINT64_MAX : 0);
}

static inline int64_t difference_of_number(uint64_t number)
{
	return (int64_t)(number >> 1 ^ (number & 1 ? UINT64_MAX : 0));
}

#endif
