/* SPDX-License-Identifier: MIT
 * `pperf ctl`: makes requests to a running process.
 */
#include "report/live/live_trace.h"

#include "report/base/error.h"
#include "report/text/format_number.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define WAIT_MS 2000u

static const char usage[] =
	"usage: pperf ctl PID|FILE status         what is recorded, how much, and what the ring "
	"holds\n"
	"       pperf ctl PID|FILE snapshot [-o FILE]\n"
	"                                         copies the trace as it is now "
	"(trace.snapshot.bin)\n"
	"       pperf ctl PID|FILE mark TEXT      records a mark\n"
	"       pperf ctl PID|FILE stop           overwrites nothing from now on (PPERF_RING)\n"
	"       pperf ctl PID|FILE start          goes on; the window begins now (PPERF_RING)\n";

static int fail(const char *text)
{
	fprintf(stderr, "pperf ctl: %s\n", text);
	return STATUS_UNREADABLE;
}

static int take_snapshot(const char *path, int count, char **arguments)
{
	const char *to = "trace.snapshot.bin";
	char error[READER_ERROR_BYTES], size[FORMAT_NUMBER_BYTES];
	uint64_t bytes = 0;

	if (count == 2 && !strcmp(arguments[0], "-o"))
		to = arguments[1];
	else if (count)
		return fail("snapshot takes -o FILE and nothing else");
	if (!live_trace_copy(path, to, &bytes, error))
		return fail(error);
	format_with_unit(size, UNIT_BYTES, (int64_t)bytes, false, true);
	printf("%s: %s\n", to, size);
	return STATUS_OK;
}

static const char *stop_reason(uint32_t stop)
{
	static const char *const reasons[] = { "recording", "stopped by pperf ctl",
		"stops after memory ran out (PPERF_RING_KEEP=oom)",
		"stops after a slow step (PPERF_RING_KEEP=slow)" };

	return stop < sizeof reasons / sizeof *reasons ? reasons[stop] : "unknown";
}

static void print_status(
	const struct trace_header *header, const char *path, uint64_t took_ns, bool has_answered)
{
	char number[FORMAT_NUMBER_BYTES];
	uint64_t lost = 0;

	for (int i = 0; i < TRACE_LOSS_KINDS; i++)
		lost += header->lost[i];
	printf("process   %u, %s\n", header->pid, path);
	printf("state     %s%s\n", stop_reason(header->control.stop),
		header->control.stopped ? "; nothing is overwritten any more" : "");
	format_with_unit(number, UNIT_BYTES, (int64_t)header->end, false, true);
	printf("file      %s, %llu threads, %llu events lost\n", number,
		(unsigned long long)header->streams, (unsigned long long)lost);
	if (header->ring.bytes) {
		format_with_unit(number, UNIT_BYTES, (int64_t)header->ring.bytes, false, true);
		printf("ring      %s; %llu events overwritten\n", number,
			(unsigned long long)header->ring.events);
	}
	format_with_unit(number, UNIT_TIME, (int64_t)took_ns, false, true);
	printf("answered  %s %s\n", has_answered ? "after" : "not within", number);
}

static int report_result(
	struct trace_header *header, const char *path, const char *word, int result, uint64_t took)
{
	switch (result) {
	case TRACE_COMMAND_DONE:
		if (!strcmp(word, "status"))
			print_status(header, path, took, true);
		return STATUS_OK;
	case TRACE_COMMAND_NO_RING:
		return fail("stop and start need a program that was run with PPERF_RING");
	case TRACE_COMMAND_FAILED:
		return fail("there is no space for the mark: the disk is full, or the ring was "
			    "stopped");
	case TRACE_COMMAND_UNKNOWN:
		return fail("the program's libpperf.so does not know this request");
	default:
		if (!strcmp(word, "status"))
			print_status(header, path, took, false);
		return fail("the program has not answered yet: it does what was requested when a "
			    "thread has filled its buffer");
	}
}

static int ask(const char *path, const char *word, int count, char **arguments)
{
	static const struct {
		const char *word;
		enum trace_command command;
	} commands[] = { { "status", TRACE_COMMAND_STATUS }, { "stop", TRACE_COMMAND_STOP },
		{ "start", TRACE_COMMAND_START }, { "mark", TRACE_COMMAND_MARK } };
	char error[READER_ERROR_BYTES];
	struct trace_header *header;
	uint64_t took = 0;
	size_t i = 0;
	int result;

	while (i < 4 && strcmp(commands[i].word, word))
		i++;
	if (i == 4 || count != (commands[i].command == TRACE_COMMAND_MARK)) {
		fputs(usage, stderr);
		return STATUS_USAGE;
	}
	header = live_trace_map(path, error);
	if (!header)
		return fail(error);
	result = live_trace_request(
		header, commands[i].command, count ? arguments[0] : NULL, WAIT_MS, &took);
	return report_result(header, path, word, result, took);
}

int live_ctl(int count, char **arguments)
{
	char error[READER_ERROR_BYTES], path[LIVE_PATH_BYTES];
	unsigned pid;

	if (count == 1 && (!strcmp(arguments[0], "--help") || !strcmp(arguments[0], "-h"))) {
		fputs(usage, stdout);
		return STATUS_OK;
	}
	if (count < 2) {
		fputs(usage, stderr);
		return STATUS_USAGE;
	}
	pid = live_trace_pid(arguments[0]);
	if (!pid)
		snprintf(path, sizeof path, "%s", arguments[0]);
	else if (!live_trace_find(pid, path, error))
		return fail(error);
	if (!strcmp(arguments[1], "snapshot"))
		return take_snapshot(path, count - 2, arguments + 2);
	return ask(path, arguments[1], count - 2, arguments + 2);
}
