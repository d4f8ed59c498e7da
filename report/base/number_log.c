/* SPDX-License-Identifier: MIT
 * A number has 7 bits in a byte. Its lowest bits are in the last byte, which is read first. Bit 7
 * says that another byte is before it.
 */
#include "report/base/number_log.h"

#include "report/base/alloc.h"
#include "report/base/temporary_file.h"

#include <stdlib.h>

struct number_file {
	const char *what;
	struct temporary_file *file; /* NULL: nothing was written yet */
	size_t *used;                /* by chunk */
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
	temporary_file_free(file->file);
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

static uint64_t place_of_chunk(size_t chunk)
{
	return (uint64_t)chunk * NUMBER_LOG_CHUNK;
}

static void write_number_chunk(struct number_log *log)
{
	struct number_file *file = log->file;

	if (!file->file)
		file->file = temporary_file_new(file->what);
	ARRAY_GROW(file->used, file->used_room, log->chunk + 1);
	file->used[log->chunk] = log->used;
	temporary_file_write(file->file, log->bytes, log->used, place_of_chunk(log->chunk));
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
	temporary_file_read(file->file, log->bytes, log->used, place_of_chunk(log->chunk));
}

void number_log_last_chunk(struct number_log *log)
{
	log->chunk--;
	read_number_chunk(log);
	if (log->file->is_last_time)
		temporary_file_cut(log->file->file, place_of_chunk(log->chunk));
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
