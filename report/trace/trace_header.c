/* SPDX-License-Identifier: MIT */
#include "report/trace/trace_header.h"
#include "report/base/regular_file.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define HEADER_BYTES_MAX (1u << 20) /* larger than any page */

__attribute__((format(printf, 3, 4))) static bool refuse_file(
	char error[READER_ERROR_BYTES], const char *path, const char *format, ...)
{
	int used = snprintf(error, READER_ERROR_BYTES, "%.300s: ", path);
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(error + used, READER_ERROR_BYTES - (size_t)used, format, arguments);
	va_end(arguments);
	return false;
}

int64_t pread_all(int fd, void *into, size_t bytes, uint64_t offset)
{
	size_t got = 0;

	if (offset > INT64_MAX - bytes)
		return 0;
	while (got < bytes) {
		ssize_t more = pread(fd, (char *)into + got, bytes - got, (off_t)(offset + got));

		if (more < 0 && errno == EINTR)
			continue;
		if (more < 0)
			return -1;
		if (more == 0)
			break;
		got += (size_t)more;
	}
	return (int64_t)got;
}

int trace_file_open(const char *path, uint64_t *bytes, char error[READER_ERROR_BYTES])
{
	struct stat status;
	const int fd = regular_file_open(path, &status);

	if (fd < 0) {
		if (errno != ENOTSUP)
			refuse_file(error, path, "cannot be opened: %s", strerror(errno));
		else
			refuse_file(error, path,
				"is %s, not a trace file; give the trace that the program wrote "
				"(trace.bin)",
				S_ISREG(status.st_mode)   ? "a file of /proc or /sys"
				: S_ISDIR(status.st_mode) ? "a directory"
							  : "a device, pipe or socket");
		return -1;
	}
	*bytes = (uint64_t)status.st_size;
	return fd;
}

/* Checks the magic, of which `bytes` bytes were read. Its line end and ^Z reveal a transfer in
 * text mode. */
static bool check_magic(const char *magic, size_t bytes, const char *path, char *error)
{
	if (!memcmp(magic, TRACE_MAGIC, bytes < 8 ? bytes : 8))
		return true;
	if (bytes < 8 || memcmp(magic, TRACE_MAGIC, 5))
		return refuse_file(error, path,
			"offset 0: not a trace of pperf or of a supported tool; " ACCEPTED_FILES);
	if (!memcmp(magic + 5, "\n\032", 2) || !memcmp(magic + 5, "\r\r\n", 3) ||
		!memcmp(magic + 5, "\r\032", 2) || !memcmp(magic + 5, "\r\n", 2))
		return refuse_file(error, path,
			"offset 5: line ends of the trace were converted: it was transferred in "
			"text mode; copy it again, in binary mode");
	return refuse_file(error, path,
		"offset 5: the start of the trace is damaged (CR LF ^Z was expected after "
		"`pperf`); copy it again");
}

static bool check_byte_order(const struct trace_header *header, const char *path, char *error)
{
	if (header->endian == __builtin_bswap32(TRACE_ENDIAN))
		return refuse_file(error, path,
			"offset 12: recorded on a machine with the other byte order; read it on "
			"such a machine");
	if (header->endian != TRACE_ENDIAN)
		return refuse_file(error, path,
			"offset 12: byte order mark 0x%08x instead of 0x%08x: the header is "
			"damaged; copy it again",
			header->endian, TRACE_ENDIAN);
	return true;
}

static bool check_fields(const struct trace_header *header, const char *path, char *error)
{
	if (header->version != TRACE_VERSION)
		return refuse_file(error, path,
			"offset 8: format version %u, but this pperf-report reads version %u; use "
			"the pperf-report of the libpperf.so that wrote it",
			header->version, TRACE_VERSION);
	if (header->header_bytes < sizeof *header || header->header_bytes > HEADER_BYTES_MAX ||
		header->header_bytes % TRACE_ALIGN)
		return refuse_file(error, path,
			"offset 16: header of %u bytes instead of a multiple of %u of at least "
			"%zu: the header is damaged; copy it again",
			header->header_bytes, TRACE_ALIGN, sizeof *header);
	if (header->clock_kind != TRACE_CLOCK_TSC && header->clock_kind != TRACE_CLOCK_MONOTONIC)
		return refuse_file(error, path,
			"offset 20: clock kind %u instead of %d or %d: the header is damaged; copy "
			"it again",
			header->clock_kind, TRACE_CLOCK_TSC, TRACE_CLOCK_MONOTONIC);
	return true;
}

bool header_read(
	int fd, const char *path, struct trace_header *header, char error[READER_ERROR_BYTES])
{
	int64_t got;

	memset(header, 0, sizeof *header);
	got = pread_all(fd, header, sizeof *header, 0);
	if (got < 0)
		return refuse_file(error, path, "offset 0: cannot be read: %s", strerror(errno));
	if (got == 0)
		return refuse_file(error, path,
			"the file is empty: nothing was recorded, or the copy failed; record "
			"again");
	if (!check_magic(header->magic, (size_t)got, path, error))
		return false;
	if (got < (int64_t)sizeof *header)
		return refuse_file(error, path,
			"offset %lld: the file ends within the header of %zu bytes; copy it again",
			(long long)got, sizeof *header);
	return check_byte_order(header, path, error) && check_fields(header, path, error);
}
