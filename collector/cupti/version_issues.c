/* SPDX-License-Identifier: MIT
 * The versions are those of CUPTI's release notes ("Resolved Issues" of the first version without
 * the issue). They do not say since when an issue exists, so a table row begins with the oldest
 * version that pperf uses, unless the issue came with a feature.
 *
 * Not in the table is what pperf avoids, so that no user notices it:
 *
 *   below    issue                                           what pperf does
 *   12.6     crashes after cuptiFinalize with CUDA graphs    CUPTI is never finalised
 *   12.9     crashes if it gets no buffer                    a scratch buffer (session.c)
 *   13.0 U1  crashes in long runs with CUDA graphs           buffers in host memory (session.c)
 *   13.1     timestamp callbacks take kernels' times         none is registered (handover.h)
 *   13.1 U1  graph launches of a second session get wrong    the session lasts as long as the
 *            correlation ids                                 process; after a handover a warning
 */
#include "collector/cupti/version_issues.h"

#include "collector/cupti/abi.h"
#include "collector/cupti/session_state.h"

static const struct {
	uint32_t from, below; /* below: the first version without the issue */
	const char *key;
	const char *sentence; /* after "CUPTI VERSION " */
} issues[] = {
	{ CUPTI_VERSION_13_0, CUPTI_VERSION_13_0_1, "warning.cupti",
		"is known to crash and to hang; use 13.0 Update 1 or later." },
	{ CUPTI_VERSION_13_2, CUPTI_VERSION_13_3, "warning.cupti",
		"is known to become slow in long runs; use 13.3 or later." },
	{ CUPTI_VERSION_12_0, CUPTI_VERSION_13_3, "cupti.known.memory",
		"may leak host memory at each launch of a CUDA graph with copies or memsets; if "
		"the "
		"memory of a long run grows, use 13.3 or later." },
	{ CUPTI_VERSION_12_0, CUPTI_VERSION_13_4_1, "cupti.known.cpu",
		"may need more and more processor time in long runs; if flushes take longer and "
		"longer, use 13.4 Update 1 or later." },
	{ CUPTI_VERSION_12_0, CUPTI_VERSION_13_4_1, "cupti.known.names",
		"may report kernels of a reloaded module under a former name; if names of "
		"generated kernels are wrong, use 13.4 Update 1 or later." },
};

void cupti_write_version_issues(uint32_t version)
{
	for (size_t i = 0; i < sizeof issues / sizeof *issues; i++)
		if (version >= issues[i].from && version < issues[i].below)
			cupti_set_state(issues[i].key, "CUPTI %u %s", version, issues[i].sentence);
}
