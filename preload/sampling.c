/* SPDX-License-Identifier: MIT */
#include "preload/sampling.h"

#include "collector/sample/sampler.h"

#define END_LIMIT_MS 250u

void sampling_start(const struct pperf_settings *settings)
{
	sampler_configure(&settings->sampling);
	sampler_start();
}

void sampling_fork_prepare(void)
{
	sampler_fork_prepare();
}

void sampling_fork_parent(void)
{
	sampler_fork_parent();
}

void sampling_fork_child(void)
{
	sampler_forked();
}

void sampling_end(void)
{
	sampler_stop(END_LIMIT_MS);
}
