/* SPDX-License-Identifier: MIT
 * bench_diff.c [PAIRS]: how often `diff` finds a known change, and how often it reports one that is
 * none. Prints the table of doc/diff-power.md, and exits with 1 if a limit is missed.
 *
 * A step has 4 modules of 10 operators with a kernel each, of 5 to 80 us. Each kernel has its own
 * noise in each step. In half of the pairs one kernel takes 20 % more in the second run. The
 * operator with its kernel is then to be named; its ancestors may be, any other node is false. The
 * last four rows are of kernels that differ in their noise.
 */
#include "report/analysis/run_diff.h"
#include "report/cli/command_line.h"
#include "tests/support/run_report.h"

#include <getopt.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MODULES = 4, OPERATORS = 10, KERNELS = MODULES * OPERATORS, PAIRS = 200, MAIN = 1, GPU = 2 };
#define INCREASE 1.2
#define POWER_LEAST 0.9 /* at noise 5 %, n = 6 */
#define FALSE_MOST 0.05 /* plus what chance adds in so many pairs, see is_met */

static uint64_t state;

static double uniform(void)
{
	uint64_t z = state += UINT64_C(0x9e3779b97f4a7c15);

	z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
	z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
	return ((double)((z ^ (z >> 31)) >> 11) + 0.5) / 9007199254740992.0;
}

static double normal(void)
{
	return sqrt(-2 * log(uniform())) * cos(6.283185307179586 * uniform());
}

struct plan {
	double noise;
	int steps;
	bool is_varied; /* the noise of each kernel is `noise` times exp(N(0, 1) / 2) */
};

/* The noise of each kernel of a pair of runs. */
static double noise_of[KERNELS];

static void choose_noise(const struct plan *plan)
{
	for (int number = 0; number < KERNELS; number++)
		noise_of[number] = plan->noise * (plan->is_varied ? exp(normal() / 2) : 1);
}

struct outcome {
	int found, step_found; /* pairs with a change: named; exit status 1 */
	double false_share;    /* sum over pairs with a change: false nodes of all reported */
	int null_different;    /* pairs without a change: exit status 1 */
};

static uint64_t put_operator(
	struct trace_builder *builder, uint64_t at, int number, double noise, double factor)
{
	static uint64_t correlation;
	const double base = 5000 * exp2(4.0 * (number * 7 % KERNELS) / KERNELS);
	const uint64_t ns = (uint64_t)(base * factor * exp(noise * normal()));
	char name[32];

	snprintf(name, sizeof name, "op_%d", number);
	build_push(builder, MAIN, at, name);
	build_launch(builder, MAIN, at + 10, ++correlation);
	snprintf(name, sizeof name, "kernel_%d", number);
	build_kernel(builder, GPU, at + 50, correlation, name, at + 20, at + 20 + ns);
	build_pop(builder, MAIN, at + ns + 100);
	return at + ns + 200;
}

/* `changed`: the operator that takes INCREASE times as long; -1: none. */
static void write_run(const char *path, const struct plan *plan, int changed)
{
	struct trace_builder *builder = builder_new();
	uint64_t at = 1000;
	char name[32];

	build_device(builder, 0, "device");
	for (int step = 0; step < plan->steps; step++, at += 500) {
		build_push(builder, MAIN, at, "turn");
		for (int module = 0; module < MODULES; module++) {
			snprintf(name, sizeof name, "module_%c", 'a' + module);
			build_push(builder, MAIN, at + 1, name);
			at += 10;
			for (int i = 0; i < OPERATORS; i++) {
				const int number = module * OPERATORS + i;

				at = put_operator(builder, at, number, noise_of[number],
					number == changed ? INCREASE : 1);
			}
			build_pop(builder, MAIN, at);
		}
		build_pop(builder, MAIN, at + 10);
	}
	builder_write(builder, path);
	builder_free(builder);
}

static struct diff *read_pair(void)
{
	static char words[][16] = { "pperf-report", "diff", "a.bin", "b.bin", "--step-marker",
		"turn", "-m", "gpu" };
	static char *arguments[sizeof words / sizeof *words + 1];
	static struct options options;

	for (size_t i = 0; i < sizeof words / sizeof *words; i++)
		arguments[i] = words[i];
	optind = 0;
	options = command_line_parse(sizeof words / sizeof *words, arguments);
	return diff_read(&options, options.metric_name, "a.bin", "b.bin");
}

static bool is_named(const struct diff *diff, uint32_t id, const char *kind, int number)
{
	char wanted[32];

	snprintf(wanted, sizeof wanted, "%s_%d", kind, number);
	return strcmp(string_table_get(diff->texts, diff->nodes.all[id].key.name).bytes, wanted) ==
	       0;
}

/* Whether the node is the changed operator, its kernel or an ancestor. */
static bool is_true(const struct diff *diff, uint32_t id, int changed)
{
	const struct diff_node *node = &diff->nodes.all[id];
	char module[32];

	snprintf(module, sizeof module, "module_%c", 'a' + changed / OPERATORS);
	return node->depth == 0 || is_named(diff, id, "op", changed) ||
	       is_named(diff, id, "kernel", changed) ||
	       strcmp(string_table_get(diff->texts, node->key.name).bytes, module) == 0;
}

static void count_changed(const struct diff *diff, int changed, struct outcome *outcome)
{
	int reported = 0, wrong = 0;
	bool found = false;

	for (uint32_t id = 1; id < diff->nodes.count; id++) {
		const struct diff_node *node = &diff->nodes.all[id];

		if (!node->significant || node->same_as)
			continue;
		reported++;
		wrong += !is_true(diff, id, changed);
		found |= is_named(diff, id, "op", changed);
	}
	outcome->found += found;
	outcome->step_found += diff_is_different(diff);
	outcome->false_share += reported ? (double)wrong / reported : 0;
}

static struct outcome try_plan(const struct plan *plan, int pairs)
{
	struct outcome outcome = { 0 };

	for (int pair = 0; pair < pairs; pair++)
		for (int changes = 0; changes < 2; changes++) {
			const int changed = changes ? pair % KERNELS : -1;
			struct diff *diff;

			choose_noise(plan);
			write_run("a.bin", plan, -1);
			write_run("b.bin", plan, changed);
			diff = read_pair();
			if (changes)
				count_changed(diff, changed, &outcome);
			else
				outcome.null_different += diff_is_different(diff);
			diff_free(diff);
		}
	return outcome;
}

/* Shares of `pairs` are off by chance: three standard deviations are allowed. */
static bool is_met(const struct plan *plan, const struct outcome *outcome, int pairs)
{
	const double chance = 3 * sqrt(FALSE_MOST * (1 - FALSE_MOST) / pairs),
		     most = FALSE_MOST + chance;
	const bool is_usual = !plan->is_varied && plan->steps == 6 && plan->noise > 0.04 &&
			      plan->noise < 0.06;

	return outcome->false_share / pairs <= most &&
	       (double)outcome->null_different / pairs <= most &&
	       (!is_usual || (double)outcome->found / pairs >= POWER_LEAST);
}

int main(int argc, char **argv)
{
	static const double noises[] = { 0.02, 0.05, 0.1, 0.05 };
	static const int steps[] = { 3, 6, 12, 50 };
	const int pairs = argc > 1 ? atoi(argv[1]) : PAIRS;
	int missed = 0;

	run_report_setup(); /* a folder for the traces */
	printf("| noise | n | change named | exit status 1 | false of those reported | exit status "
	       "1 "
	       "without a change |\n|---:|---:|---:|---:|---:|---:|\n");
	for (size_t i = 0; i < 16; i++) {
		const struct plan plan = { noises[i / 4], steps[i % 4], i >= 12 };
		struct outcome outcome;

		state = 1000 * i;
		outcome = try_plan(&plan, pairs);
		printf("| %s%.0f %% | %d | %.1f %% | %.1f %% | %.1f %% | %.1f %% |\n",
			plan.is_varied ? "about " : "", 100 * plan.noise, plan.steps,
			100.0 * outcome.found / pairs, 100.0 * outcome.step_found / pairs,
			100 * outcome.false_share / pairs, 100.0 * outcome.null_different / pairs);
		fflush(stdout);
		missed += !is_met(&plan, &outcome, pairs);
	}
	run_report_teardown();
	printf("%s\n", missed ? "MISSED" : "ok");
	return missed != 0;
}
