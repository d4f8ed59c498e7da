/* SPDX-License-Identifier: MIT
 * A number has 7 bits in a byte. Its lowest bits are in the last byte, which is read first. Bit 7
 * says that another byte is before it.
 */
#include "report/base/number_log.h"

#include "report/base/alloc.h"
#include "report/base/error.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

struct number_file {
	const char *what;
	FILE *file;   /* NULL: nothing was written yet */
	size_t *used; /* by chunk */
	size_t used_room;
	size_t last_chunk, last_used; /* of the chunk that numbers were added to last */
	bool is_read, is_last_time;
};

struct number_log *number_log_new(const char *what)
{
	struct number_log *log = xcalloc(sizeof *log);

	log->file = xcalloc(sizeof *log->file);
	log->file->what = what;
	log->bytes = xcalloc(NUMBER_LOG_CHUNK);
	return log;
}

static void close_number_file(struct number_file *file)
{
	if (file->file)
		fclose(file->file);
	file->file = NULL;
}

void number_log_free(struct number_log *log)
{
	if (!log)
		return;
	close_number_file(log->file);
	free(log->file->used);
	free(log->file);
	free(log->bytes);
	free(log);
}

void number_log_clear(struct number_log *log)
{
	close_number_file(log->file);
	log->file->is_read = log->file->is_last_time = false;
	log->used = log->chunk = 0;
}

static off_t place_of_chunk(size_t chunk)
{
	return (off_t)(chunk * NUMBER_LOG_CHUNK);
}

static void write_number_chunk(struct number_log *log)
{
	struct number_file *file = log->file;

	if (!file->file && !(file->file = tmpfile()))
		fatal(STATUS_UNREADABLE,
			"no temporary file for %s; set TMPDIR to a directory with free space:",
			file->what);
	ARRAY_GROW(file->used, file->used_room, log->chunk + 1);
	file->used[log->chunk] = log->used;
	for (size_t done = 0; done < log->used;) {
		const ssize_t written = pwrite(fileno(file->file), log->bytes + done,
			log->used - done, place_of_chunk(log->chunk) + (off_t)done);

		if (written < 0 && errno == EINTR)
			continue;
		if (written <= 0)
			fatal(STATUS_UNREADABLE,
				"the temporary file for %s cannot be written; set TMPDIR to a "
				"directory with free space:",
				file->what);
		done += (size_t)written;
	}
}

void number_log_next_chunk(struct number_log *log)
{
	write_number_chunk(log);
	log->chunk++;
	log->used = 0;
}

static void read_number_chunk(struct number_log *log)
{
	const struct number_file *file = log->file;

	log->used = file->used[log->chunk];
	for (size_t done = 0; done < log->used;) {
		const ssize_t got = pread(fileno(file->file), log->bytes + done, log->used - done,
			place_of_chunk(log->chunk) + (off_t)done);

		if (got < 0 && errno == EINTR)
			continue;
		if (got <= 0)
			fatal(STATUS_UNREADABLE,
				"the temporary file for %s cannot be read:", file->what);
		done += (size_t)got;
	}
}

void number_log_last_chunk(struct number_log *log)
{
	log->chunk--;
	read_number_chunk(log);
	/* what is left of the file is only larger than needed if this fails */
	if (log->file->is_last_time &&
		ftruncate(fileno(log->file->file), place_of_chunk(log->chunk)))
		log->file->is_last_time = false;
}

/* A log of one chunk stays in memory. */
void number_log_rewind(struct number_log *log, bool is_last_time)
{
	struct number_file *file = log->file;

	if (!file->is_read) {
		file->last_chunk = log->chunk;
		file->last_used = log->used;
		if (log->chunk)
			write_number_chunk(log);
	} else if (file->last_chunk) {
		log->chunk = file->last_chunk;
		read_number_chunk(log);
	}
	log->used = file->last_used;
	file->is_read = true;
	file->is_last_time = is_last_time;
}

void number_log_add_long(struct number_log *log, uint64_t number)
{
	unsigned char bytes[NUMBER_LOG_BYTES_MAX];
	unsigned count = 0;

	for (; number > 127; number >>= 7)
		bytes[count++] = (unsigned char)(number | 128);
	bytes[count++] = (unsigned char)number;
	while (count)
		log->bytes[log->used++] = bytes[--count];
}

uint64_t number_log_rest(struct number_log *log, uint64_t number)
{
	unsigned shift = 7;
	unsigned char byte;

	do {
		byte = log->bytes[--log->used];
		number |= (uint64_t)(byte & 127) << shift;
		shift += 7;
	} while (byte & 128);
	return number;
}
