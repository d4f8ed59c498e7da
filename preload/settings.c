/* SPDX-License-Identifier: MIT */
#include "preload/settings.h"

#include "collector/file/ring.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/random.h>
#include <time.h>
#include <unistd.h>

bool settings_flag(const char *value, bool fallback)
{
	static const char *const words[][2] = { { "0", "1" }, { "false", "true" }, { "off", "on" },
		{ "no", "yes" } };

	for (size_t i = 0; value && i < sizeof words / sizeof words[0]; i++)
		for (int on = 0; on < 2; on++)
			if (!strcasecmp(value, words[i][on]))
				return on;
	return fallback;
}

/* Skips a unit such as K, MiB or GB. Returns its power of two; 0 if there is no unit. */
static unsigned skip_unit(const char **at)
{
	static const char units[] = "KMGT";
	const char *unit;
	int letter = **at & ~0x20; /* upper case */

	if (!letter || !(unit = strchr(units, letter)))
		return 0;
	++*at;
	if (**at == 'i')
		++*at;
	if (**at == 'B' || **at == 'b')
		++*at;
	return 10 * (unsigned)(unit - units + 1);
}

uint64_t settings_size(const char *value)
{
	char *end = NULL;
	const char *at;
	unsigned long long number;
	unsigned shift;

	if (!value || *value < '0' || *value > '9')
		return 0;
	number = strtoull(value, &end, 10);
	at = end;
	shift = skip_unit(&at);
	if (*at || number > UINT64_MAX >> shift)
		return 0;
	return (uint64_t)number << shift;
}

static void note_bad_value(
	struct pperf_settings *s, const char *variable, const char *value, const char *wanted)
{
	snprintf(s->bad_value, sizeof s->bad_value,
		"%s=%.80s is not valid (%s); the default was used", variable, value, wanted);
}

/* ---- PPERF_RUN: "ID DIRECTORY-BYTES DIRECTORY OTHER-NVTX", set for the run's child processes
 * ---- */

static uint64_t new_run_id(void)
{
	struct timespec now;
	uint64_t id = 0;

	if (getrandom(&id, sizeof id, GRND_NONBLOCK) == (ssize_t)sizeof id && id)
		return id;
	clock_gettime(CLOCK_REALTIME, &now);
	id = (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
	return (id ^ (uint64_t)getpid() << 44) | 1;
}

static bool parse_run(struct pperf_settings *s, const char *run)
{
	unsigned long long id, bytes;
	int at = 0;

	if (!run || sscanf(run, "%16llx %4llu %n", &id, &bytes, &at) != 2 || !at || !id)
		return false;
	if (bytes >= sizeof s->directory || strlen(run + at) < bytes)
		return false;
	s->trace.run_id = id;
	memcpy(s->directory, run + at, bytes);
	s->directory[bytes] = '\0';
	s->chained_nvtx = run + at + bytes + (run[(unsigned long long)at + bytes] == ' ');
	return true;
}

static void start_run(struct pperf_settings *s)
{
	s->trace.run_id = new_run_id();
	/* getcwd fails if the folder was removed. Then no file can be created in it. */
	if (!getcwd(s->directory, sizeof s->directory))
		s->directory[0] = '\0';
	s->chained_nvtx = "";
}

static void format_run(struct pperf_settings *s)
{
	snprintf(s->run, sizeof s->run, "%016llx %zu %s%s%s", (unsigned long long)s->trace.run_id,
		strlen(s->directory), s->directory, *s->chained_nvtx ? " " : "", s->chained_nvtx);
}

/* ---- PPERF_OUTPUT ---- */

static const struct {
	const char *rank, *world_size;
} rank_variables[] = { { "RANK", "WORLD_SIZE" }, { "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE" },
	{ "PMI_RANK", "PMI_SIZE" }, { "SLURM_PROCID", "SLURM_STEP_NUM_TASKS" } };

#define RANK_VARIABLES (sizeof rank_variables / sizeof rank_variables[0])

/* Returns which of rank_variables is set; RANK_VARIABLES: none. */
static size_t find_rank_variable(void)
{
	size_t i = 0;
	const char *value;

	while (i < RANK_VARIABLES && !((value = getenv(rank_variables[i].rank)) && *value))
		i++;
	return i;
}

const char *settings_rank(void)
{
	const size_t found = find_rank_variable();

	return found < RANK_VARIABLES ? getenv(rank_variables[found].rank) : NULL;
}

const char *settings_world_size(void)
{
	const size_t found = find_rank_variable();

	return found < RANK_VARIABLES ? getenv(rank_variables[found].world_size) : NULL;
}

/* Writes a value to `to`. A slash or percent sign becomes `_`, so the value is never a folder or a
 * field. Returns the bytes written. */
static size_t append_value(char *to, size_t room, const char *value)
{
	size_t used = 0;

	for (; *value && used + 1 < room; value++)
		to[used++] = *value == '/' || *value == '%' ? '_' : *value;
	return used;
}

/* Writes the value of VAR for a field %q{VAR}, and nothing if the variable is not set. Returns the
 * length of the field in the pattern, 0 if it is no such field. Sets `wrote` to the bytes written,
 * unless it returns 0. */
static size_t append_variable(char *to, size_t room, const char *pattern, size_t *wrote)
{
	char name[128];
	const char *end = pattern[2] == '{' ? strchr(pattern, '}') : NULL;
	size_t bytes = end ? (size_t)(end - pattern - 3) : 0;
	const char *value;

	if (!end || bytes >= sizeof name)
		return 0;
	memcpy(name, pattern + 3, bytes);
	name[bytes] = '\0';
	value = getenv(name);
	*wrote = value ? append_value(to, room, value) : 0;
	return bytes + 4;
}

/* Expands the %-field at `pattern`. %p, %n and %% are copied unchanged. Returns the length of the
 * field in the pattern. Sets `wrote` to the bytes written. */
static size_t append_field(char *to, size_t room, const char *pattern, size_t *wrote)
{
	char host[256] = "";
	size_t took;

	*wrote = 0;
	switch (pattern[1]) {
	case 'h':
		gethostname(host, sizeof host - 1);
		*wrote = append_value(to, room, host);
		return 2;
	case 'r':
		*wrote = append_value(to, room, settings_rank() ? settings_rank() : "0");
		return 2;
	case 'q':
		took = append_variable(to, room, pattern, wrote);
		if (took)
			return took;
		break;
	case '%':
		to[(*wrote)++] = '%';
		to[(*wrote)++] = '%';
		return 2;
	}
	to[(*wrote)++] = '%';
	return 1;
}

static bool expand_output(struct pperf_settings *s, const char *pattern)
{
	char *output = s->trace.output;
	size_t room = sizeof s->trace.output, used = 0, wrote;

	if (*pattern != '/' && !*s->directory)
		pattern = "";
	else if (*pattern != '/')
		used = (size_t)snprintf(
			output, room, "%s/", strcmp(s->directory, "/") ? s->directory : "");
	while (*pattern && used + 8 < room) {
		if (*pattern != '%') {
			output[used++] = *pattern++;
			continue;
		}
		pattern += append_field(output + used, room - used, pattern, &wrote);
		used += wrote;
	}
	output[used < room ? used : room - 1] = '\0';
	return !*pattern;
}

static const char *variable_value(const char *variable)
{
	const char *value = getenv(variable);

	return value && *value ? value : NULL;
}

static bool variable_flag(struct pperf_settings *s, const char *variable, bool fallback)
{
	const char *value = variable_value(variable);
	bool on = settings_flag(value, fallback);

	if (on != settings_flag(value, !fallback) && value)
		note_bad_value(s, variable, value, "1 or 0");
	return on;
}

static void read_graphs(struct pperf_settings *s, const char *value)
{
	char *end;

	if (!value || !strcasecmp(value, "nodes"))
		return;
	if (!strcasecmp(value, "whole")) {
		s->graphs = CUPTI_GRAPHS_WHOLE;
	} else if (!strcasecmp(value, "auto")) {
		s->graphs = CUPTI_GRAPHS_AUTO;
	} else if (!strncasecmp(value, "auto:", 5) && value[5] >= '1' && value[5] <= '9') {
		s->graphs = CUPTI_GRAPHS_AUTO;
		s->graph_nodes_max = strtoull(value + 5, &end, 10);
		if (!*end)
			return;
		s->graphs = CUPTI_GRAPHS_NODES;
		note_bad_value(s, "PPERF_GRAPHS", value, "auto:N with nodes per second");
	} else {
		note_bad_value(s, "PPERF_GRAPHS", value, "nodes, whole, auto or auto:N");
	}
}

/* Reads PPERF_RING. A schedule records parts of the run, a ring its end: the ring has no
 * schedule. */
static void read_ring(struct pperf_settings *s, const char *ring)
{
	if (!ring || !strcmp(ring, "0"))
		return;
	s->trace.ring_bytes = settings_size(ring);
	if (s->trace.ring_bytes < RING_BYTES_MIN) {
		s->trace.ring_bytes = 0;
		note_bad_value(s, "PPERF_RING", ring, "a size such as 256M, at least 1M");
	} else if (s->scheduled) {
		s->scheduled = false;
		note_bad_value(s, "PPERF_SCHEDULE", variable_value("PPERF_SCHEDULE"),
			"not with PPERF_RING");
	}
}

/* Reads a member of PPERF_RING_KEEP, `oom` or `slow:N`, and skips it. */
static bool read_kept(struct pperf_settings *s, const char **at)
{
	char *end;
	double times;

	if (!strncmp(*at, "oom", 3)) {
		s->keeps_oom = true;
		*at += 3;
		return true;
	}
	if (strncmp(*at, "slow:", 5))
		return false;
	times = strtod(*at + 5, &end);
	if (end == *at + 5 || !(times >= 1.1 && times <= 1e6))
		return false;
	s->keeps_slow = (uint32_t)(times * 10 + 0.5);
	*at = end;
	return true;
}

static void read_ring_keep(struct pperf_settings *s, const char *value)
{
	const char *at = value;
	bool valid = true;

	if (!value || !strcmp(value, "off"))
		return;
	while (valid && *at) {
		valid = read_kept(s, &at) && (!*at || *at == ',');
		at += valid && *at;
	}
	if (valid && s->trace.ring_bytes)
		return;
	s->keeps_oom = false;
	s->keeps_slow = 0;
	note_bad_value(s, "PPERF_RING_KEEP", value,
		valid ? "only with PPERF_RING" : "off, oom, slow:N or oom,slow:N");
}

/* Reads a number. Returns false if `value` is none, or is not from 0 to `most`. */
static bool parse_number(const char *value, unsigned long most, uint32_t *number)
{
	char *end;
	unsigned long read;

	if (*value < '0' || *value > '9')
		return false;
	read = strtoul(value, &end, 10);
	*number = (uint32_t)read;
	return !*end && read <= most;
}

/* Reads a variable that has one of two values. Returns whether it is the second. */
static bool variable_is_second(
	struct pperf_settings *s, const char *variable, const char *first, const char *second)
{
	const char *value = variable_value(variable);
	char wanted[32];

	if (value && strcmp(value, first) && strcmp(value, second)) {
		snprintf(wanted, sizeof wanted, "%s or %s", first, second);
		note_bad_value(s, variable, value, wanted);
	}
	return value && !strcmp(value, second);
}

static void read_sampling(struct pperf_settings *s)
{
	const char *hz = variable_value("PPERF_SAMPLE"),
		   *stack = variable_value("PPERF_SAMPLE_STACK");
	struct sampler_settings *sampling = &s->sampling;

	if (hz && !parse_number(hz, SAMPLER_HZ_MAX, &sampling->hz)) {
		sampling->hz = 0;
		note_bad_value(s, "PPERF_SAMPLE", hz, "samples a second, such as 99; at most 1000");
	}
	sampling->stack_bytes = SAMPLER_STACK_DEFAULT;
	if (stack && (!parse_number(stack, SAMPLER_STACK_MAX, &sampling->stack_bytes) ||
			     sampling->stack_bytes % 8)) {
		sampling->stack_bytes = SAMPLER_STACK_DEFAULT;
		note_bad_value(s, "PPERF_SAMPLE_STACK", stack,
			"bytes, a multiple of 8 up to 65528; 0: no native frames");
	}
	sampling->wall = variable_is_second(s, "PPERF_SAMPLE_CLOCK", "cpu", "wall");
	sampling->no_perf = variable_is_second(s, "PPERF_SAMPLE_KIND", "perf", "clock");
	sampling->children_need_file = !s->all_children;
}

void settings_read(struct pperf_settings *s)
{
	const char *output = variable_value("PPERF_OUTPUT"), *limit = variable_value("PPERF_MAX"),
		   *children = variable_value("PPERF_CHILDREN");
	const char *launched = variable_value("PPERF_LAUNCHED");
	const char *cupti = variable_value("PPERF_CUPTI"),
		   *schedule = variable_value("PPERF_SCHEDULE");

	s->redact = variable_flag(s, "PPERF_REDACT", false);
	if (!parse_run(s, getenv("PPERF_RUN")))
		start_run(s);
	s->launched_pid = launched ? (pid_t)strtol(launched, NULL, 10) : 0;
	s->started = time(NULL);
	s->trace.limit_bytes = limit ? settings_size(limit) : 0;
	if (limit && !s->trace.limit_bytes)
		note_bad_value(s, "PPERF_MAX", limit, "a size such as 512M");
	if (!s->trace.limit_bytes)
		s->trace.limit_bytes = settings_size("4G");
	s->all_children = children && !strcmp(children, "all");
	s->trace.skip_forked = children && !strcmp(children, "none");
	if (children && strcmp(children, "none") && strcmp(children, "gpu") &&
		strcmp(children, "all"))
		note_bad_value(s, "PPERF_CHILDREN", children, "none, gpu or all");
	if (!expand_output(s, output ? output : "trace.bin"))
		note_bad_value(
			s, "PPERF_OUTPUT", s->redact ? "[redacted]" : output, "a shorter path");
	s->nvtx = variable_flag(s, "PPERF_NVTX", true);
	s->cuda = variable_flag(s, "PPERF_CUDA", true);
	s->cupti_hands_over = cupti && !strcasecmp(cupti, "yield");
	if (cupti && !s->cupti_hands_over && strcasecmp(cupti, "share") && !strchr(cupti, '/') &&
		settings_flag(cupti, true) != settings_flag(cupti, false))
		note_bad_value(
			s, "PPERF_CUPTI", cupti, "0, 1, share, yield or the path of a libcupti");
	s->cupti = s->cuda && settings_flag(cupti, true); /* any other value is a path */
	if (cupti)
		snprintf(s->cupti_library, sizeof s->cupti_library, "%s", cupti);
	read_graphs(s, variable_value("PPERF_GRAPHS"));
	s->tensors = variable_flag(s, "PPERF_TENSORS", true);
	s->python = variable_flag(s, "PPERF_PYTHON", true);
	s->modules = variable_flag(s, "PPERF_MODULES", true);
	s->stacks = variable_value("PPERF_STACKS");
	if (s->stacks && strcmp(s->stacks, "alloc") && strcmp(s->stacks, "launch") &&
		strcmp(s->stacks, "off"))
		note_bad_value(s, "PPERF_STACKS", s->stacks, "alloc, launch or off");
	s->python_stacks = variable_value("PPERF_PYSTACKS");
	if (s->python_stacks && strcmp(s->python_stacks, "own") &&
		strcmp(s->python_stacks, "alloc") && strcmp(s->python_stacks, "launch") &&
		strcmp(s->python_stacks, "off"))
		note_bad_value(s, "PPERF_PYSTACKS", s->python_stacks, "own, alloc, launch or off");
	s->ops = variable_value("PPERF_OPS");
	if (s->ops && strcmp(s->ops, "events") && strcmp(s->ops, "totals") && strcmp(s->ops, "off"))
		note_bad_value(s, "PPERF_OPS", s->ops, "events, totals or off");
	s->scheduled = schedule && schedule_parse(schedule, &s->schedule);
	if (schedule && !s->scheduled)
		note_bad_value(
			s, "PPERF_SCHEDULE", schedule, "such as wait:1,warmup:1,active:3,repeat:1");
	read_ring(s, variable_value("PPERF_RING"));
	read_ring_keep(s, variable_value("PPERF_RING_KEEP"));
	s->step_marker = variable_value("PPERF_STEP_MARKER");
	s->shapes = variable_flag(s, "PPERF_SHAPES", false);
	read_sampling(s);
	s->quiet = variable_value("PPERF_QUIET") ? variable_flag(s, "PPERF_QUIET", true) : -1;
}

void settings_export(struct pperf_settings *s, const char *chained_nvtx)
{
	if (chained_nvtx)
		s->chained_nvtx = chained_nvtx;
	format_run(s);
}
