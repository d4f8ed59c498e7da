/*
 * The switches of the simulated CUPTI, from the environment.
 */
#include "cupti/parts.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

/* Assumed. With nsys, the nodes of a decode loop made a token 17 % longer with one model and 140 %
 * with another; the traced graphs had hundreds of nodes and took 4 and 3 ms. */
enum { NODE_COST_NS = 1000 };

static pthread_once_t once = PTHREAD_ONCE_INIT;
static struct switches values;

static unsigned number(const char *name, unsigned otherwise)
{
	const char *text = getenv(name);

	return text && *text ? (unsigned)strtoul(text, NULL, 0) : otherwise;
}

static bool word(const char *name, const char *expected)
{
	const char *text = getenv(name);

	return text && !strcmp(text, expected);
}

static void read_enable_fail(const char *text)
{
	while (text && *text) {
		char *rest;
		unsigned long kind = strtoul(text, &rest, 0);

		if (*rest == ':' && kind < ACTIVITY_KINDS)
			values.enable_fail[kind] = (int)strtol(rest + 1, &rest, 0);
		text = strchr(rest, ',');
		if (text)
			text++;
	}
}

/* Before 12.8 there was no choice, and what 12.8 added was "all". */
static enum queries queries(void)
{
	if (word("SIM_CUPTI_QUERIES", "none"))
		return QUERIES_NONE;
	if (word("SIM_CUPTI_QUERIES", "all"))
		return QUERIES_ALL;
	return word("SIM_CUPTI_QUERIES", "done") || values.version < CUPTI_12_8 ? QUERIES_DONE
										: QUERIES_ALL;
}

static void read_all(void)
{
	const char *log = getenv("SIM_CUPTI_LOG");

	values.version = number("SIM_CUPTI_VERSION", SIM_MAJOR == 12 ? CUPTI_12_9_1 : CUPTI_13_0_1);
	values.refuse = (int)number("SIM_CUPTI_REFUSE", 0);
	read_enable_fail(getenv("SIM_CUPTI_ENABLE_FAIL"));
	values.drop = number("SIM_CUPTI_DROP", 0);
	values.silent_drop = number("SIM_CUPTI_SILENT_DROP", 0);
	values.untimed = number("SIM_CUPTI_UNTIMED", 0);
	values.late_ns = UINT64_C(1000000) * number("SIM_CUPTI_LATE", 0);
	values.whole = number("SIM_CUPTI_WHOLE", 1) != 0;
	values.unknown = number("SIM_CUPTI_UNKNOWN", 0);
	values.invalid = number("SIM_CUPTI_INVALID", 0);
	values.shuffle = word("SIM_CUPTI_ORDER", "shuffle");
	values.fresh_threads = word("SIM_CUPTI_THREAD", "new");
	values.slow_flush_ms = number("SIM_CUPTI_SLOW_FLUSH", 0);
	values.hang_flush = word("SIM_CUPTI_HANG", "flush");
	values.hang_forced = values.hang_flush || word("SIM_CUPTI_HANG", "forced");
	values.hang_disable = word("SIM_CUPTI_HANG", "disable");
	values.forced_waits = number("SIM_CUPTI_FORCED_WAITS", 0) != 0;
	values.worker_at_record = word("SIM_CUPTI_WORKER", "record");
	values.hang_fork = number("SIM_CUPTI_HANG_FORK", 0) != 0;
	values.wrap = number("SIM_CUPTI_WRAP", 0) != 0;
	values.fatal = number("SIM_CUPTI_FATAL", 0);
	values.queries = queries();
	values.clock_zeroes = word("SIM_CUPTI_CLOCK", "zero") && values.version >= CUPTI_12_6 &&
			      values.version < CUPTI_13_1;
	values.outer_ids = word("SIM_CUPTI_KERNEL_ID", "outer");
	values.other_ids = word("SIM_CUPTI_KERNEL_ID", "other");
	values.nested_records = number("SIM_CUPTI_NESTED", 0) != 0;
	values.record_ids = word("SIM_CUPTI_IDS", "records");
	values.clone_created = word("SIM_CUPTI_CLONE_CREATED", "after")   ? CREATED_AFTER_CLONED
			       : word("SIM_CUPTI_CLONE_CREATED", "never") ? CREATED_NEVER_FOR_CLONES
									  : CREATED_BEFORE_CLONED;
	values.graph_trace_by_instantiation = word("SIM_CUPTI_GRAPH_TRACE", "instantiation");
	values.node_cost_ns = number("SIM_CUPTI_NODE_COST", NODE_COST_NS);
	values.graph_memsets = word("SIM_CUPTI_GRAPH_MEMSET", "memset");
	values.log = log && *log ? open(log, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600) : -1;
}

const struct switches *switches(void)
{
	pthread_once(&once, read_all);
	return &values;
}
