/* SPDX-License-Identifier: MIT */
#include "report/profile/metric.h"
#include "report/text/suggest.h"
#include <string.h>

const struct metric_facts metrics[METRIC_COUNT] = {
#define X(metric, name, which, in, text)                                               \
	[METRIC_##metric] = {                                                          \
		.key = name, .help = text, .nature = METRIC_##which, .unit = UNIT_##in \
	},
	METRICS(X)
#undef X
};

enum metric metric_find(const char *key)
{
	int metric = 0;

	while (metric < METRIC_USER && strcmp(metrics[metric].key, key) != 0)
		metric++;
	return (enum metric)metric;
}

void metric_suggest(struct suggestion *near)
{
	for (int metric = 0; metric < METRIC_USER; metric++)
		suggest_offer(near, metrics[metric].key);
}
