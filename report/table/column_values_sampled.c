/* SPDX-License-Identifier: MIT
 *
 * Values of columns of CPU samples.
 */
#include "report/table/column_values_macros.h"
#include <math.h>

#define NORMAL_95 1.96 /* standard deviations around the mean that hold 95 % */

#define SAMPLED_VALUE(name, has, value)                                                         \
	COLUMN_VALUE_IF(name, const struct node *node = row_node(row);                          \
			const struct node_sampled *sampled = node ? node->sampled : NULL;       \
			const struct sample_sums *all UNUSED = &row->process->profile->sampled, \
			sampled && (has), value)

SAMPLED_VALUE(samples, sampled->self.samples, unsigned_cell(sampled->self.samples))
SAMPLED_VALUE(
	cpu_sampled, all->cpu_ns && sampled->self.samples, unsigned_cell(sampled->self.cpu_ns))
SAMPLED_VALUE(cpu_sampled_total, all->cpu_ns && sampled->total.samples,
	unsigned_cell(sampled->total.cpu_ns))
SAMPLED_VALUE(waits_for_core, sampled->total.waits_ns, unsigned_cell(sampled->total.waits_ns))
SAMPLED_VALUE(blocked, sampled->total.blocked_ns, unsigned_cell(sampled->total.blocked_ns))
SAMPLED_VALUE(cpu_sampled_share, all->samples && sampled->self.samples,
	real_cell(all->cpu_ns ? (double)sampled->self.cpu_ns / (double)all->cpu_ns
			      : (double)sampled->self.samples / (double)all->samples))

/* Of a binomial distribution: so many of all samples were in the row. */
static double error_ns(const struct sample_sums *all, const struct sample_sums *self)
{
	const double share = (double)self->cpu_ns / (double)all->cpu_ns;

	return NORMAL_95 * sqrt(share * (1 - share) / (double)all->samples) * (double)all->cpu_ns;
}

SAMPLED_VALUE(cpu_sampled_error, all->cpu_ns && sampled->self.cpu_ns,
	unsigned_cell((uint64_t)llround(error_ns(all, &sampled->self))))
