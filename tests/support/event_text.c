/* SPDX-License-Identifier: MIT */
#include "tests/support/event_text.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static void die(const char *what)
{
	fprintf(stderr, "render: %s\n", what);
	abort();
}

static const char *kind_name(uint32_t kind)
{
	static const char *const names[EVENT_KINDS] = {
#define X(name, type, timed, text) [TRACE_##name] = #name,
		TRACE_RECORDS(X)
#undef X
			[EVENT_POP] = "pop",
		[EVENT_RESUMED] = "resumed",
		[EVENT_UNENDED] = "unended",
		[EVENT_LEFT_OPEN] = "open",
		[EVENT_GAP] = "gap",
		[EVENT_UNMATCHED] = "unmatched",
		[EVENT_STREAM_END] = "end",
	};

	return kind == TRACE_PUSH ? "push" : names[kind];
}

static void render(FILE *out, struct trace_reader *reader, const struct trace_event *event)
{
	struct trace_text text = reader_event_text(reader, event);
	bool range = event->kind == TRACE_PUSH ||
		     (event->kind >= EVENT_POP && event->kind <= EVENT_LEFT_OPEN);

	fprintf(out, "%" PRIu64 " s%u %*s%s", event->time_ns, event->stream->stream,
		range ? (int)event->depth * 2 : 0, "", kind_name(event->kind));
	if (range || event->kind == TRACE_MARK || event->kind == TRACE_START)
		fprintf(out, " %.*s", text.known ? (int)text.length : 1,
			text.known ? text.bytes : "?");
	if (range && event->kind != TRACE_PUSH)
		fprintf(out, " %" PRIu64, event->begin_ns);
	if (event->kind == EVENT_GAP)
		fprintf(out, " %u", event->missing);
	if (event->kind == EVENT_GAP || event->kind == EVENT_UNENDED ||
		event->kind == EVENT_LEFT_OPEN)
		fprintf(out, " seen %" PRIu64, event->last_ns);
	fputc('\n', out);
}

char *events_to_text(struct trace_reader *reader)
{
	struct trace_event event;
	char *text = NULL;
	size_t bytes = 0;
	FILE *out = open_memstream(&text, &bytes);
	int status;

	if (!out)
		die("no memory");
	while ((status = reader_next(reader, &event)) > 0)
		if (event.kind != TRACE_CLOCK)
			render(out, reader, &event);
	if (status < 0)
		die(reader_error(reader));
	if (fclose(out))
		die("no memory");
	return text;
}

static struct trace_reader *try_bytes(
	const void *bytes, size_t count, char error[READER_ERROR_BYTES])
{
	char path[64];
	int fd = memfd_create("built", MFD_CLOEXEC);
	struct trace_reader *reader;

	if (fd < 0 || write(fd, bytes, count) != (ssize_t)count)
		die("no file in memory");
	snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
	reader = reader_open(path, error);
	close(fd);
	return reader;
}

struct trace_reader *open_bytes(const void *bytes, size_t count)
{
	char error[READER_ERROR_BYTES];
	struct trace_reader *reader = try_bytes(bytes, count, error);

	if (!reader)
		die(error);
	return reader;
}

struct trace_reader *open_built(struct trace_builder *builder)
{
	size_t count;
	const unsigned char *bytes = builder_bytes(builder, &count);

	return open_bytes(bytes, count);
}

const char *refusal_of(const void *bytes, size_t count)
{
	static char error[READER_ERROR_BYTES];
	struct trace_reader *reader = try_bytes(bytes, count, error);

	if (!reader)
		return error;
	reader_close(reader);
	return NULL;
}
