/* SPDX-License-Identifier: MIT */
#include "report/import/file_kind.h"
#include "collector/trace_format.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

/* JSON begins with a bracket, possibly after a UTF-8 byte order mark and white space. */
static bool may_be_json(const unsigned char *head, size_t bytes)
{
	size_t at = bytes >= 3 && !memcmp(head, "\xef\xbb\xbf", 3) ? 3 : 0;

	while (at < bytes && memchr(" \t\r\n", head[at], 4))
		at++;
	return at < bytes && (head[at] == '{' || head[at] == '[');
}

enum file_kind file_kind_of(const unsigned char *head, size_t bytes)
{
	if (!memcmp(head, TRACE_MAGIC, bytes < 5 ? bytes : 5))
		return FILE_PPERF;
	if (bytes >= 2 && head[0] == 0x1f && head[1] == 0x8b)
		return FILE_GZIP;
	if (bytes >= 15 && !memcmp(head, "SQLite format 3", 15))
		return FILE_SQLITE;
	if (bytes >= 3 && head[0] == 0x80 && head[1] >= 2 && head[1] <= 5)
		return FILE_PICKLE;
	return may_be_json(head, bytes) ? FILE_JSON : FILE_OTHER;
}

/* Formats of others. Each is recognised by `magic` at `offset`, or if that is empty or does not
 * match by `ending`, the end of the file's name. In `hint`, % is the name of the file and ~ the
 * name without its ending. */
static const struct foreign_format {
	const char *magic;
	size_t length, offset;
	const char *ending; /* NULL: the name says nothing */
	const char *hint;
} foreign_formats[] = {
#define MAGIC(text, at) text, sizeof text - 1, at
	{ MAGIC("", 0), ".nsys-rep",
		"is a report of Nsight Systems; convert it with `nsys export --type sqlite %` and "
		"open ~.sqlite" },
	{ MAGIC("", 0), ".qdrep",
		"is a report of Nsight Systems; convert it with `nsys export --type sqlite %` and "
		"open ~.sqlite" },
	{ MAGIC("", 0), ".qdstrm",
		"is an unprocessed report of Nsight Systems; convert it with `QdstrmImporter -i "
		"%`, then `nsys export --type sqlite ~.nsys-rep`, and open ~.sqlite" },
	{ MAGIC("NVR\0", 0), ".ncu-rep",
		"is a report of Nsight Compute, which has no timeline; read it with `ncu --import "
		"%`, and record the timeline with `pperf run` or `nsys profile`" },
	{ MAGIC("\375\067zXZ\0", 0), ".xz",
		"is compressed with xz; use `xz -dc % | pperf-report -`" },
	{ MAGIC("\x28\xb5\x2f\xfd", 0), ".zst",
		"is compressed with zstd; use `zstd -dc % | pperf-report -`" },
	{ MAGIC("\x04\x22\x4d\x18", 0), ".lz4",
		"is compressed with lz4; use `lz4 -dc % | pperf-report -`" },
	{ MAGIC("BZh", 0), ".bz2", "is compressed with bzip2; use `bzip2 -dc % | pperf-report -`" },
	{ MAGIC("ustar", 257), ".tar",
		"is a tar archive; unpack it with `tar -xf %` and open the trace in it" },
	{ MAGIC("PK\003\004", 0), ".zip",
		"is a zip archive (a file of torch.save also is one); for a trace in it use "
		"`unzip -p % | pperf-report -`" },
	{ MAGIC("PERFILE2", 0), NULL,
		"is a recording of Linux perf, which has no GPU work; read it with `perf report "
		"-i %`" },
	{ MAGIC("\177ELF", 0), NULL, "is a program or a library; record it with `pperf run %`" },
	{ MAGIC("version https://git-lfs", 0), NULL,
		"is a pointer of Git LFS and not the file itself; fetch that with `git lfs pull`" },
	{ MAGIC("<!DOCTYPE", 0), NULL,
		"is a web page and not a trace; download the raw file instead" },
	{ MAGIC("<html", 0), NULL, "is a web page and not a trace; download the raw file instead" },
#undef MAGIC
};

static const char perfetto[] =
	"is a binary trace of Perfetto; convert it with `traceconv json % ~.json` and open that";

static bool ends_with(const char *path, const char *ending)
{
	const size_t length = strlen(path), wanted = strlen(ending);

	return length > wanted && !strcmp(path + length - wanted, ending);
}

/* A protobuf message whose first field is a packet. A text that begins with an empty line has no
 * control characters besides white space. */
static bool is_perfetto(const char *path, const unsigned char *head, size_t bytes)
{
	if (ends_with(path, ".perfetto-trace") || ends_with(path, ".pftrace"))
		return true;
	for (size_t i = 1; i < bytes && head[0] == 0x0a; i++)
		if (head[i] < 0x20 && !memchr("\t\n\v\f\r", head[i], 5))
			return true;
	return false;
}

static const char *find_hint(const char *path, const unsigned char *head, size_t bytes)
{
	const size_t count = sizeof foreign_formats / sizeof *foreign_formats;

	for (size_t i = 0; i < count; i++) {
		const struct foreign_format *format = &foreign_formats[i];

		if (format->length && bytes >= format->offset + format->length &&
			!memcmp(head + format->offset, format->magic, format->length))
			return format->hint;
	}
	for (size_t i = 0; i < count; i++)
		if (foreign_formats[i].ending && ends_with(path, foreign_formats[i].ending))
			return foreign_formats[i].hint;
	return is_perfetto(path, head, bytes) ? perfetto : NULL;
}

/* Returns whether a shell takes the name as it is. */
static bool is_plain_name(const char *path)
{
	for (; *path; path++)
		if (!isalnum((unsigned char)*path) && !strchr("_-+=.,/:@%~", *path))
			return false;
	return true;
}

bool file_kind_hint(
	const char *path, const unsigned char *head, size_t bytes, char *out, size_t room)
{
	const char *hint = find_hint(path, head, bytes);
	const char *name = is_plain_name(path) && strlen(path) < 60 && strcmp(path, "-") != 0
				   ? path
				   : "FILE";
	const char *slash = strrchr(name, '/'), *dot = strrchr(name, '.');
	const int stem = (int)(dot && dot > (slash ? slash + 1 : name) ? (size_t)(dot - name)
								       : strlen(name));
	size_t used = 0;

	if (!hint)
		return false;
	for (; *hint && used + 1 < room; hint++) {
		int more = 1;

		if (*hint == '%' || *hint == '~')
			more = snprintf(out + used, room - used, "%.*s",
				*hint == '%' ? (int)strlen(name) : stem, name);
		else
			out[used] = *hint;
		used += more > 0 ? (size_t)more : 0;
	}
	out[used < room ? used : room - 1] = '\0';
	return true;
}
