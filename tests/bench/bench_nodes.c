/* SPDX-License-Identifier: MIT
 * bench_nodes.c [NODES]: the peak memory of views of a trace with many nodes, each with a few
 * instances, against the limit of README.md: BASE_KIB and BYTES_PER_NODE. Exits with 1 if a view
 * needs more.
 *
 * A node takes 200 bytes in the tree, 112 for its worst instance, 32 for up to 6 durations, and
 * about 50 in the reader and in hash tables. A second pass (a critical tree) has a second tree.
 */
#include "report/trace/trace_writer.h"
#include "tests/support/view_cost.h"
#include <fcntl.h>
#include <libgen.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { NODES = 900000, INSTANCES = 3, OUTER = 900, BASE_KIB = 32 << 10, BYTES_PER_NODE = 700 };

static const char *const views[][VIEW_WORDS] = {
	{ "tree" },
	{ "tree", "-f", "json" },
	{ "critical" },
	{ "table" },
	{ "table", "--by", "thread" },
	{ "summary" },
	{ "diagnose" },
	{ "dump" },
};
enum { VIEWS = sizeof views / sizeof *views };

/* Letters only: labels that differ in digits are one node. */
static uint32_t letters_name(struct trace_writer *writer, unsigned number)
{
	char name[16] = "range_";
	size_t length = 6;

	for (; number || length == 6; number /= 26)
		name[length++] = (char)('a' + number % 26);
	return writer_name(writer, name, length);
}

/* Writes OUTER roots with the other nodes below them, each entered INSTANCES times. */
static void write_nodes(const char *path, unsigned nodes)
{
	const int fd = open(path, O_RDWR | O_CREAT | O_TRUNC, 0600);
	struct trace_writer *writer = writer_new(fd, 1700000000000000000u, 1);
	const unsigned inner = nodes / OUTER - 1;
	uint32_t *names = calloc(inner + OUTER, sizeof *names);
	uint32_t *ids = calloc((size_t)(inner + 1) * OUTER, sizeof *ids);
	uint64_t now = 0;

	for (unsigned i = 0; i < inner + OUTER; i++)
		names[i] = letters_name(writer, i);
	for (unsigned root = 0; root < OUTER; root++) {
		uint32_t *own = ids + (size_t)root * (inner + 1);
		struct trace_node node = { .name = names[inner + root], .kind = TRACE_NODE_RANGE };

		own[0] = node.parent = writer_node(writer, &node);
		for (unsigned i = 0; i < inner; i++) {
			node.name = names[i];
			own[i + 1] = writer_node(writer, &node);
		}
	}
	writer_stream(writer, 1);
	for (unsigned instance = 0; instance < INSTANCES; instance++)
		for (unsigned root = 0; root < OUTER; root++) {
			writer_push(writer, now += 10, ids[(size_t)root * (inner + 1)]);
			for (unsigned i = 0; i < inner; i++) {
				writer_push(
					writer, now += 10, ids[(size_t)root * (inner + 1) + i + 1]);
				writer_pop(writer, now += 10 + i % 7, 0);
			}
			writer_pop(writer, now += 10, 0);
		}
	if (!writer_close(writer, now, true)) {
		perror(path);
		exit(2);
	}
	close(fd);
	free(names);
	free(ids);
}

int main(int argc, char **argv)
{
	const unsigned nodes = argc > 1 ? (unsigned)strtoul(argv[1], NULL, 10) : NODES;
	const char *path = "bench-nodes.bin";
	char report[4096];
	int missed = 0;

	snprintf(report, sizeof report, "%s/../../pperf-report", dirname(argv[0]));
	write_nodes(path, nodes);
	for (size_t view = 0; view < VIEWS; view++) {
		const long limit = BASE_KIB + (long)nodes * BYTES_PER_NODE / 1024;
		struct view_cost cost;
		const bool ran = view_run(report, views[view], path, &cost),
			   good = ran && cost.kib <= limit;
		char name[64] = "";

		for (int i = 0; i < VIEW_WORDS && views[view][i]; i++)
			snprintf(name + strlen(name), sizeof name - strlen(name), "%s%s",
				i ? " " : "", views[view][i]);
		printf("%-6s %-20s %u nodes  %5.2f s  %5ld MiB (at most %ld), %ld bytes a node\n",
			good ? "ok" : "MISSED", name, nodes, cost.seconds, cost.kib >> 10,
			limit >> 10, (cost.kib - BASE_KIB) * 1024 / (long)nodes);
		missed |= !good;
	}
	unlink(path);
	return missed;
}
