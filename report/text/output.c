/* SPDX-License-Identifier: MIT */
#include "report/text/output.h"

#include "collector/trace_format.h"
#include "report/base/alloc.h"
#include "report/base/error.h"
#include "report/base/gzip_writer.h"
#include "report/text/pager.h"
#include "report/base/progress.h"
#include "report/base/escape.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Returns whether `path` is a trace. A user who names a trace as the output has mistyped, and
 * the trace could not be recovered. */
static bool is_trace_file(const char *path)
{
	char head[sizeof TRACE_MAGIC - 1] = "";
	struct stat status;
	bool same;
	int fd;

	if (stat(path, &status) || !S_ISREG(status.st_mode))
		return false;
	fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	same = fd >= 0 && read(fd, head, sizeof head) == (ssize_t)sizeof head &&
	       !memcmp(head, TRACE_MAGIC, sizeof head);
	if (fd >= 0)
		close(fd);
	return same;
}

void output_refuse_trace(const char *path)
{
	if (path && is_trace_file(path))
		fatal(STATUS_USAGE,
			"%s is a trace and is not overwritten; give -o another name, or remove the "
			"file first",
			path);
}

struct output *output_open(const char *path)
{
	struct output *out = xcalloc(sizeof *out);

	output_refuse_trace(path);
	out->fd = path ? open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666) : STDOUT_FILENO;
	if (out->fd < 0)
		fatal(STATUS_UNREADABLE, "%s: cannot be written:", path);
	return out;
}

void output_compress(struct output *out)
{
	out->gzip = gzip_writer_open(out->fd);
}

/* Decides at the first write whether a terminal's output goes through a pager. */
static void output_begin(struct output *out)
{
	int to;

	out->has_written = true;
	progress_clear();
	if (out->fd != STDOUT_FILENO || !pager_wanted(out->buffer, out->used))
		return;
	to = pager_start();
	if (to >= 0)
		out->fd = to;
}

static void output_flush(struct output *out)
{
	size_t done = 0;

	if (!out->has_written)
		output_begin(out);
	out->flushed += out->used;
	if (out->gzip) {
		out->error = gzip_writer_write(out->gzip, out->buffer, out->used);
		out->used = 0;
		return;
	}
	while (done < out->used && !out->error) {
		ssize_t wrote = write(out->fd, out->buffer + done, out->used - done);

		if (wrote >= 0)
			done += (size_t)wrote;
		else if (errno != EINTR)
			out->error = errno;
	}
	out->used = 0;
}

static void finish_pager(void)
{
	const char *pager;

	if (!pager_finish(&pager))
		fatal(STATUS_UNREADABLE,
			"the pager `%s` cannot be run; --no-pager prints without one", pager);
}

bool output_close(struct output *out, const char *path)
{
	int error;

	output_flush(out);
	if (out->gzip) {
		error = gzip_writer_close(out->gzip);
		out->error = out->error ? out->error : error;
	}
	if (path && close(out->fd) && !out->error)
		out->error = errno;
	error = out->error;
	if (!path && pager_is_running()) {
		finish_pager();
		error = error == EPIPE ? 0 : error; /* the user may leave the pager early */
	}
	free(out);
	if (error && error != EPIPE) {
		errno = error;
		fatal(STATUS_UNREADABLE, "%s: cannot be written:", path ? path : "standard output");
	}
	return !error;
}

void output_bytes_slow(struct output *out, const char *bytes, size_t count)
{
	while (count > OUTPUT_BUFFER_BYTES - out->used) {
		size_t part = OUTPUT_BUFFER_BYTES - out->used;

		memcpy(out->buffer + out->used, bytes, part);
		out->used += part;
		bytes += part;
		count -= part;
		output_flush(out);
	}
	memcpy(out->buffer + out->used, bytes, count);
	out->used += count;
}

void output_string(struct output *out, const char *string)
{
	output_bytes(out, string, strlen(string));
}

void output_unsigned(struct output *out, uint64_t value)
{
	static const char pairs[] =
		"0001020304050607080910111213141516171819202122232425262728293031323334353637383940"
		"4142434445464748495051525354555657585960616263646566676869707172737475767778798081"
		"828384858687888990919293949596979899";
	char digits[20];
	size_t at = sizeof digits;

	for (; value >= 100; value /= 100)
		memcpy(digits + (at -= 2), pairs + value % 100 * 2, 2);
	if (value >= 10)
		memcpy(digits + (at -= 2), pairs + value * 2, 2);
	else
		digits[--at] = (char)('0' + value);
	output_bytes(out, digits + at, sizeof digits - at);
}

void output_signed(struct output *out, int64_t value)
{
	if (value < 0)
		output_char(out, '-');
	output_unsigned(out, value < 0 ? 0 - (uint64_t)value : (uint64_t)value);
}

static void put_hex(struct output *out, uint64_t value, unsigned least, bool upper)
{
	const char *letters = upper ? "0123456789ABCDEF" : "0123456789abcdef";
	char digits[16];
	size_t at = sizeof digits;

	do
		digits[--at] = letters[value & 15];
	while ((value >>= 4) || sizeof digits - at < least);
	output_bytes(out, digits + at, sizeof digits - at);
}

void output_hex(struct output *out, uint64_t value, unsigned digits, bool upper)
{
	output_bytes(out, "0x", 2);
	put_hex(out, value, digits < 16 ? digits : 16, upper);
}

void output_double(struct output *out, double value)
{
	char text[32];

	if (isnan(value) || isinf(value)) {
		output_string(out, isnan(value) ? "nan" : value > 0 ? "inf" : "-inf");
		return;
	}
	for (int digits = 15; digits <= 17; digits++) {
		snprintf(text, sizeof text, "%.*g", digits, value);
		if (strtod(text, NULL) == value)
			break;
	}
	if (strchr(text, ','))
		*strchr(text, ',') = '.'; /* some locales have a decimal comma */
	output_string(out, text);
}

void output_json_double(struct output *out, double value)
{
	bool text = isnan(value) || isinf(value);

	if (text)
		output_char(out, '"');
	output_double(out, value);
	if (text)
		output_char(out, '"');
}

/* Writes \uXXXX. A code point beyond 16 bits becomes two surrogates. */
static void put_json_code_point(struct output *out, uint32_t point)
{
	if (point > 0xffff) {
		put_json_code_point(out, 0xd7c0u + (point >> 10));
		point = 0xdc00u | (point & 0x3ff);
	}
	output_bytes(out, "\\u", 2);
	put_hex(out, point, 4, false);
}

static void put_json_special(struct output *out, unsigned char c)
{
	switch (c) {
	case '"':
	case '\\':
		output_char(out, '\\');
		output_char(out, (char)c);
		return;
	case '\n':
		output_bytes(out, "\\n", 2);
		return;
	case '\t':
		output_bytes(out, "\\t", 2);
		return;
	case '\r':
		output_bytes(out, "\\r", 2);
		return;
	}
	put_json_code_point(out, c);
}

#define EACH_BYTE(value) (UINT64_C(0x0101010101010101) * (value))

/* Returns whether one of eight bytes must be escaped or decoded. In x - n, a byte below n
 * borrows and sets its high bit. Bytes from 0x7f on have it set in x or x + 1. */
static bool has_special_byte(uint64_t x)
{
	uint64_t quote = x ^ EACH_BYTE('"'), backslash = x ^ EACH_BYTE('\\');
	uint64_t low = (x - EACH_BYTE(0x20)) | (quote - EACH_BYTE(1)) | (backslash - EACH_BYTE(1));

	return (low | x | (x + EACH_BYTE(1))) & EACH_BYTE(0x80);
}

/* Returns how many bytes at the front can be copied unchanged. */
static size_t plain_prefix_bytes(const char *text, size_t bytes)
{
	size_t count = 0;
	uint64_t eight;

	for (; bytes - count >= sizeof eight; count += sizeof eight) {
		memcpy(&eight, text + count, sizeof eight);
		if (has_special_byte(eight))
			break;
	}
	while (count < bytes && text[count] >= ' ' && text[count] < 0x7f && text[count] != '"' &&
		text[count] != '\\')
		count++;
	return count;
}

static bool is_raw_byte(uint32_t point)
{
	return point >= JSON_RAW_BYTES + 0x80 && point <= JSON_RAW_BYTES + 0xff;
}

/* Writes the first character of `text`. Returns its length in bytes. The code points that stand
 * for raw bytes are written as raw bytes themselves, so that every text can be restored. */
static size_t put_json_character(struct output *out, const char *text, size_t bytes)
{
	size_t length;
	const uint32_t point = utf8_decode(text, bytes, &length);

	if (point == UINT32_MAX || is_raw_byte(point))
		for (size_t i = 0; i < length; i++)
			put_json_code_point(out, JSON_RAW_BYTES + (unsigned char)text[i]);
	else if (point < ' ' || point == '"' || point == '\\')
		put_json_special(out, (unsigned char)point);
	else if (is_hidden_code_point(point))
		put_json_code_point(out, point);
	else
		output_bytes(out, text, length);
	return length;
}

void output_json_text(struct output *out, const char *text, size_t bytes)
{
	size_t length;

	output_char(out, '"');
	for (size_t at = 0; at < bytes; at += length) {
		length = plain_prefix_bytes(text + at, bytes - at);
		output_bytes(out, text + at, length);
		at += length;
		if (at == bytes)
			break;
		length = put_json_character(out, text + at, bytes - at);
	}
	output_char(out, '"');
}

size_t output_restore_json_text(char *text, size_t bytes)
{
	size_t used = 0, length;

	for (size_t at = 0; at < bytes; at += length) {
		const uint32_t point = utf8_decode(text + at, bytes - at, &length);

		if (point != UINT32_MAX && is_raw_byte(point)) {
			text[used++] = (char)(point - JSON_RAW_BYTES);
			continue;
		}
		memmove(text + used, text + at, length);
		used += length;
	}
	return used;
}

static void put_csv_byte(struct output *out, unsigned char byte)
{
	output_bytes(out, "\\x", 2);
	put_hex(out, byte, 2, false);
}

/* Returns whether a spreadsheet would take the character at `at` as the start of a formula. That
 * is possible at the start of a cell and after `;`, which some locales use to separate cells.
 * Includes full-width forms. */
static bool begins_formula(uint32_t point, const char *text, size_t at)
{
	static const uint32_t first[] = { '=', '+', '-', '@', 0xff1d, 0xff0b, 0xff0d, 0xff20 };

	for (size_t i = 0; i < sizeof first / sizeof *first && (at == 0 || text[at - 1] == ';');
		i++)
		if (point == first[i])
			return true;
	return false;
}

static void put_csv_bytes(struct output *out, const char *bytes, size_t count)
{
	for (size_t i = 0; i < count; i++)
		put_csv_byte(out, (unsigned char)bytes[i]);
}

void output_csv_text(struct output *out, const char *text, size_t bytes)
{
	bool quoted = memchr(text, ',', bytes) || memchr(text, '"', bytes);
	size_t length;

	if (quoted)
		output_char(out, '"');
	for (size_t at = 0; at < bytes; at += length) {
		uint32_t point = utf8_decode(text + at, bytes - at, &length);

		if (point == UINT32_MAX || is_hidden_code_point(point) ||
			begins_formula(point, text, at)) {
			put_csv_bytes(out, text + at, length);
			continue;
		}
		output_bytes(out, text + at, length);
		if (point == '"' || point == '\\')
			output_char(out, (char)point);
	}
	if (quoted)
		output_char(out, '"');
}
