/* SPDX-License-Identifier: MIT
 *
 * Says what the host did in long gaps, from the rows of `idle` below `host-bound: the thread was
 * in`: the share of MPI, the ranges and calls with most time, and what CPU samples name.
 */
#include "report/base/compare.h"
#include "report/diagnose/diagnosis_internal.h"
#include "report/table/computed_row.h"
#include <string.h>

/* Thousandths of the gaps from which on a range or call is listed. */
#define SHARE_LISTED 50u
/* The same, from which on MPI, or what samples show, is in the sentence that the first screen has.
 */
#define SHARE_LARGE 100u

static bool is_mpi_name(struct string_view name)
{
	return (name.length > 4 && !memcmp(name.bytes, "MPI_", 4)) ||
	       (name.length > 5 && !memcmp(name.bytes, "PMPI_", 5));
}

/* Returns whether the node is a call of MPI, or inside one. */
static bool is_in_mpi(const struct diagnosis *diagnosis, uint32_t node)
{
	const struct tree *tree = diagnosis->profile->tree;

	while (node &&
		!is_mpi_name(string_table_get(diagnosis->process->texts, tree->nodes[node].name)))
		node = tree->nodes[node].parent;
	return node != 0;
}

static void add_host_row(struct diagnosis *diagnosis, const struct row *row)
{
	struct host_activity *host = &diagnosis->facts.host;
	const uint64_t ns = computed_row_number(row, "gap_ns");
	struct host_place *place;

	host->last = HOST_PLACES;
	host->mpi_ns += is_in_mpi(diagnosis, row->node) ? ns : 0;
	if (host->count == HOST_PLACES)
		return;
	host->last = host->count++;
	place = &host->places[host->last];
	place->node = row->node;
	place->ns = ns;
	place->samples = computed_row_number(row, "samples");
}

/* Adds a function to the place of the row of kind `host` that came before it. */
static void add_function_row(struct diagnosis *diagnosis, const struct row *row)
{
	struct host_activity *host = &diagnosis->facts.host;
	const struct string_view name = row_name(row);
	struct host_place *place;
	size_t used;

	if (host->last == HOST_PLACES)
		return;
	place = &host->places[host->last];
	used = strlen(place->functions);
	if (place->function_count++ >= HOST_FUNCTIONS)
		return;
	finding_set_text(place->functions + used, sizeof place->functions - used, "%s%s %s",
		used ? ", " : "", diagnose_escaped(diagnosis, name.bytes, name.length),
		diagnose_share(diagnosis, computed_row_number(row, "samples"), place->samples));
}

void host_activity_add_row(struct diagnosis *diagnosis, const struct row *row)
{
	if (computed_row_is(row, "kind", "meanwhile"))
		diagnosis->facts.host.total_ns = computed_row_number(row, "gap_ns");
	else if (computed_row_is(row, "kind", "host"))
		add_host_row(diagnosis, row);
	else if (computed_row_is(row, "kind", "function"))
		add_function_row(diagnosis, row);
}

const char *host_activity_mpi_share(struct diagnosis *diagnosis)
{
	const struct host_activity *host = &diagnosis->facts.host;

	return diagnose_is_share(host->mpi_ns, host->total_ns, SHARE_LARGE)
		       ? diagnose_share(diagnosis, host->mpi_ns, host->total_ns)
		       : NULL;
}

const struct host_place *host_activity_sampled(const struct diagnosis *diagnosis)
{
	const struct host_activity *host = &diagnosis->facts.host;

	for (unsigned i = 0; i < host->count; i++) {
		const struct host_place *place = &host->places[i];

		if (place->function_count && !is_in_mpi(diagnosis, place->node) &&
			diagnose_is_share(place->ns, host->total_ns, SHARE_LARGE))
			return place;
	}
	return NULL;
}

static const char *place_name(struct diagnosis *diagnosis, const struct host_place *place)
{
	return place->node ? diagnose_node(diagnosis, place->node) : "no recorded range or call";
}

/* Appends to a text of a finding. */
#define ADD_TEXT(text, ...) \
	finding_set_text((text) + strlen(text), sizeof(text) - strlen(text), __VA_ARGS__)

static void list_places(struct diagnosis *diagnosis, struct finding *finding)
{
	const struct host_activity *host = &diagnosis->facts.host;
	bool any = false;

	for (unsigned i = 0; i < host->count; i++) {
		const struct host_place *place = &host->places[i];
		const bool has_samples = place->function_count &&
					 !is_in_mpi(diagnosis, place->node);

		if (!diagnose_is_share(place->ns, host->total_ns, SHARE_LISTED))
			continue;
		ADD_TEXT(finding->evidence, "%s in %s for %s",
			any ? "," : "; in intervals of 1 ms or more the thread was",
			place_name(diagnosis, place),
			diagnose_share(diagnosis, place->ns, host->total_ns));
		if (has_samples)
			ADD_TEXT(finding->evidence, " (%s: %s)",
				diagnose_plural(diagnosis, place->samples, "CPU sample"),
				place->functions);
		any = true;
	}
	if (host->mpi_ns && any)
		ADD_TEXT(finding->evidence, "; in MPI altogether for %s",
			diagnose_share(diagnosis, host->mpi_ns, host->total_ns));
}

void host_activity_explain(struct diagnosis *diagnosis, struct finding *finding)
{
	const struct host_activity *host = &diagnosis->facts.host;
	const struct host_place *sampled = host_activity_sampled(diagnosis);
	const char *mpi = host_activity_mpi_share(diagnosis);

	if (!host->total_ns || (!mpi && !sampled && diagnose_traits(diagnosis).uses_pytorch))
		return;
	if (mpi)
		ADD_TEXT(finding->sentence, " For %s of that time it is in MPI.", mpi);
	if (sampled)
		ADD_TEXT(finding->sentence, " For %s it is in %s (%s: %s).",
			diagnose_share(diagnosis, sampled->ns, host->total_ns),
			place_name(diagnosis, sampled),
			diagnose_plural(diagnosis, sampled->samples, "CPU sample"),
			sampled->functions);
	list_places(diagnosis, finding);
}
