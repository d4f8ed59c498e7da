/* SPDX-License-Identifier: MIT
 *
 * The rule about data that steps wait for.
 */
#include "report/analysis/dataloader_wait.h"
#include "report/diagnose/diagnosis_internal.h"
#include "report/analysis/step_stats.h"

void diagnose_data_loading(struct diagnosis *diagnosis, struct finding *finding)
{
	const struct dataloader_wait batches = dataloader_wait_of(diagnosis->profile);
	uint64_t busy = 0, idle = 0;
	const bool has_gpu = step_busy_read(diagnosis->process, &busy, &idle);

	if (!batches.node) {
		finding_set_unchecked(finding, "its steps contain no PyTorch DataLoader");
		return;
	}
	/* Time of the host costs nothing while the GPU is busy. */
	if (!diagnose_is_share(batches.ns, batches.steps_ns, LIMIT_DATALOADER_WAIT) ||
		(has_gpu && !diagnose_is_share(idle, busy + idle, LIMIT_LAUNCH_IDLE)))
		return;
	finding_set_found(finding, CONFIDENCE_HIGH);
	SET_TEXT(finding->reason,
		has_gpu ? "measured on the host; the GPU is idle for %s of the steps' time"
			: "measured on the host",
		diagnose_share(diagnosis, idle, busy + idle));
	SET_TEXT(finding->sentence,
		"Steps wait for data: fetching the next batch from the DataLoader takes %s of "
		"their time.",
		diagnose_share(diagnosis, batches.ns, batches.steps_ns));
	SET_TEXT(finding->evidence, "%s, %s of %s in steady-state steps, the longest %s",
		diagnose_plural(diagnosis, batches.count, "batch"),
		diagnose_time(diagnosis, batches.ns), diagnose_time(diagnosis, batches.steps_ns),
		diagnose_time(diagnosis, batches.longest_ns));
	SET_TEXT(finding->next,
		"Increase DataLoader(num_workers=...), with persistent_workers=True "
		"and prefetch_factor; do less work per sample (decode and augment "
		"beforehand, or on the GPU); store files on faster storage. Without "
		"workers, all of this runs inside the step.");
	SET_TEXT(finding->view, "tree -m cpu --focus");
	finding->at_path = true;
	finding_set_impact(finding, batches.node, batches.count,
		has_gpu && idle < batches.ns ? idle : batches.ns);
}
