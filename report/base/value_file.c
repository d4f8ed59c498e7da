/* SPDX-License-Identifier: MIT */
#include "report/base/value_file.h"
#include "report/base/alloc.h"
#include <string.h>

void value_write(struct value_writer *writer, const void *bytes, size_t count)
{
	if (writer->failed || !count)
		return;
	writer->bytes += count;
	writer->failed = writer->bytes > writer->bytes_max ||
			 fwrite(bytes, 1, count, writer->file) != count;
}

void value_write_u64(struct value_writer *writer, uint64_t value)
{
	value_write(writer, &value, sizeof value);
}

void value_write_array(
	struct value_writer *writer, const void *elements, uint64_t count, size_t size)
{
	value_write_u64(writer, count);
	value_write(writer, elements, (size_t)count * size);
}

bool value_read(struct value_reader *reader, void *into, size_t count)
{
	if (value_check(reader, count <= reader->left) && count &&
		value_check(reader, fread(into, 1, count, reader->file) == count))
		reader->left -= count;
	if (reader->failed && count)
		memset(into, 0, count);
	return !reader->failed;
}

uint64_t value_read_u64(struct value_reader *reader)
{
	uint64_t value;

	value_read(reader, &value, sizeof value);
	return value;
}

uint64_t value_read_below(struct value_reader *reader, uint64_t max)
{
	const uint64_t value = value_read_u64(reader);

	return value_check(reader, value <= max) ? value : 0;
}

void *value_read_array(struct value_reader *reader, uint64_t *count, uint64_t max, size_t size)
{
	void *elements;

	*count = value_read_below(reader, max);
	if (!value_check(reader, *count <= reader->left / size))
		*count = 0;
	elements = xcalloc(((size_t)*count + 1) * size);
	if (!value_read(reader, elements, (size_t)*count * size))
		*count = 0;
	return elements;
}

bool value_check(struct value_reader *reader, bool good)
{
	reader->failed |= !good;
	return !reader->failed;
}

bool value_is_bool(const bool *value)
{
	unsigned char byte;

	memcpy(&byte, value, 1);
	return byte <= 1;
}
