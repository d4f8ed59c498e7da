/* SPDX-License-Identifier: MIT
 *
 * The rule about data that steps wait for.
 */
#include "report/analysis/dataloader_wait.h"
#include "report/analysis/host_ranges.h"
#include "report/diagnose/diagnosis_internal.h"

/* Writes how long the host took to fetch batches in steady-state steps. */
static void list_batches(
	struct diagnosis *diagnosis, const struct dataloader_wait *batches, char *text, size_t room)
{
	finding_set_text(text, room,
		"fetching %s took the host %s of %s in steady-state steps, the longest %s",
		batches->count == 1 ? "a batch"
				    : diagnose_plural(diagnosis, batches->count, "batch"),
		diagnose_time(diagnosis, batches->ns), diagnose_time(diagnosis, batches->steps_ns),
		diagnose_time(diagnosis, batches->longest_ns));
}

static void explain_data_loading(struct diagnosis *diagnosis, struct finding *finding)
{
	finding_set_found(finding, CONFIDENCE_HIGH);
	SET_TEXT(finding->next,
		"Increase DataLoader(num_workers=...), with persistent_workers=True "
		"and prefetch_factor; do less work per sample (decode and augment "
		"beforehand, or on the GPU); store files on faster storage. Without "
		"workers, all of this runs inside the step.");
	SET_TEXT(finding->view, "%s", diagnosis->facts.operations ? "idle" : "tree -m cpu --focus");
}

/* What the GPU waited for is measured where it was idle: fetching costs nothing while the GPU has
 * work. */
static void gpu_waits_for_data(struct diagnosis *diagnosis, struct finding *finding)
{
	const struct diagnose_facts *facts = &diagnosis->facts;
	const struct dataloader_wait batches = dataloader_wait_of(diagnosis->profile);
	const uint64_t ends = diagnose_bound(diagnosis)->ends_ns[BOUND_DATA];
	char fetching[192] = "";

	if (!finding_set_class(diagnosis, finding, BOUND_DATA, facts->cause_ns[GAP_DATA],
		    LIMIT_DATALOADER_WAIT))
		return;
	explain_data_loading(diagnosis, finding);
	SET_TEXT(finding->reason, "while the GPU was idle, the thread that launched its next "
				  "operation was inside the "
				  "DataLoader");
	SET_TEXT(finding->sentence,
		"The GPU is idle while the next batch is fetched from the DataLoader.");
	if (batches.node)
		list_batches(diagnosis, &batches, fetching, sizeof fetching);
	SET_TEXT(finding->evidence, "%s idle of %s%s%s%s%s%s",
		diagnose_time(diagnosis, finding->impact_ns),
		diagnose_time(diagnosis, finding->whole_ns), ends ? ", " : "",
		ends ? diagnose_time(diagnosis, ends) : "",
		ends ? " of it before the first GPU operation or after the last" : "",
		*fetching ? "; " : "", fetching);
	finding_set_class_place(diagnosis, finding, BOUND_DATA, NULL, 0);
	if (!finding->node)
		finding->node = batches.node ? batches.node : facts->cause_node[GAP_DATA];
	finding->count = batches.node ? batches.count : facts->cause_gaps[GAP_DATA];
}

static void steps_wait_for_data(struct diagnosis *diagnosis, struct finding *finding)
{
	const struct dataloader_wait batches = dataloader_wait_of(diagnosis->profile);

	if (!batches.node) {
		finding_set_unchecked(finding, "its steps contain no PyTorch DataLoader");
		return;
	}
	if (!diagnose_is_share(batches.ns, batches.steps_ns, LIMIT_DATALOADER_WAIT))
		return;
	explain_data_loading(diagnosis, finding);
	SET_TEXT(finding->reason, "measured on the host");
	finding->whole_ns = batches.steps_ns;
	finding->whole_name = "the steady-state steps";
	SET_TEXT(finding->sentence,
		"Steps wait while the next batch is fetched from the DataLoader.");
	list_batches(diagnosis, &batches, finding->evidence, sizeof finding->evidence);
	finding->at_path = true;
	finding_set_impact(finding, batches.node, batches.count, batches.ns);
}

void diagnose_data_loading(struct diagnosis *diagnosis, struct finding *finding)
{
	const struct host_ranges *ranges = host_ranges_of(diagnosis->process);
	const struct steps *steps = diagnosis->process->steps;
	bool has_loader = false;

	for (size_t i = 0; i < ranges->count; i++)
		has_loader |= ranges->ranges[i].kind == HOST_RANGE_DATA;
	if (!has_loader)
		finding_set_unchecked(finding, "the trace has no PyTorch DataLoader");
	else if (diagnosis->facts.operations && !diagnosis->facts.launched)
		finding_set_unchecked(finding, "the trace has no launches of its GPU work");
	else if (diagnosis->facts.operations)
		gpu_waits_for_data(diagnosis, finding);
	else if (!steps || !steps->count)
		finding_set_unchecked(finding, NO_STEPS_FOUND);
	else
		steps_wait_for_data(diagnosis, finding);
}
