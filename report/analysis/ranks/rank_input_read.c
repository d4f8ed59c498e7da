/* SPDX-License-Identifier: MIT */
#include "report/analysis/collective_calls.h"
#include "report/analysis/ranks/rank_inputs.h"
#include "report/base/compare.h"
#include <sys/stat.h>

/* Returns how many ranks the job has: at least as many as any of its communicators. */
static int64_t world_size_of(
	const struct process *process, const struct communicator_requests *requests)
{
	const int64_t given = process_meta_number(process, "distributed.world_size");
	int64_t world_size = given > 0 ? given : 0;

	for (size_t i = 0; i < requests->count; i++)
		if (requests->all[i].ranks > world_size)
			world_size = requests->all[i].ranks;
	return world_size;
}

static void read_facts(struct rank_input *input)
{
	const struct process *process = &input->process;
	const struct trace_header *header = reader_header(process->reader);
	const struct timeline_device *devices;

	input->run_id = header->run_id;
	input->ended = header->flags & TRACE_ENDED || process_meta(process, "import.format").known;
	input->lacks_events = process->integrity.lost_events || header->ring.bytes;
	input->world_size = world_size_of(process, &input->requests);
	input->totals = process->profile->totals;
	input->has_gpu = process->profile->timeline != NULL;
	input->gpu_count = (uint32_t)timeline_devices(process->profile->timeline, &devices);
	for (uint32_t i = 0; i < input->gpu_count; i++)
		input->gpu_last_unix_ns = max_u64(input->gpu_last_unix_ns, devices[i].all.last_ns);
}

/* Sets the status of a trace that could be read. */
static void set_read_status(struct rank_input *input)
{
	const struct trace_integrity *file = reader_integrity(input->process.reader);
	const char *path = input->process.path, *warning = reader_warning(input->process.reader, 0);
	const bool cut = file->cut_bytes || file->cut_blocks;

	if (cut)
		rank_input_refuse(input, RANK_INPUT_CUT,
			"%s: the end of the file is missing; collectives after it are compared "
			"without this rank, if enough others have them (--quorum)",
			path);
	else if (input->process.integrity.damaged)
		rank_input_refuse(input, RANK_INPUT_DAMAGED, "%s",
			warning ? warning : "parts of the file are damaged");
	if (input->collectives.count || input->requests.count)
		return;
	if (input->status == RANK_INPUT_OK)
		rank_input_refuse(input, RANK_INPUT_NO_COLLECTIVES, "%s: has no collective", path);
	else
		rank_input_refuse(input, input->status,
			"%s: is %s, and what is left of it has no collective", path,
			rank_input_status_text(input->status));
}

static void refuse_unreadable(struct rank_input *input, const char *error)
{
	struct stat status;

	if (!stat(input->process.path, &status) && S_ISREG(status.st_mode) && !status.st_size)
		rank_input_refuse(input, RANK_INPUT_EMPTY, "%s: is empty", input->process.path);
	else
		rank_input_refuse(input, RANK_INPUT_UNREADABLE, "%s", error);
}

void rank_input_read_in(const struct options *options, struct shared_pass *pass)
{
	(void)options;
	collectives_read_in(pass);
}

bool rank_input_read(struct rank_input *input, const struct categories *categories,
	const struct options *options, shared_pass_begin *add)
{
	char error[READER_ERROR_BYTES];
	struct process *process = &input->process;
	struct shared_pass pass = { .add = add };
	const struct process_join join = shared_pass_join(&pass);
	bool is_read;

	process->categories = categories;
	process->join = &join;
	is_read = process_read(process, options, error);
	process->join = NULL;
	if (!is_read) {
		refuse_unreadable(input, error);
		process_close(process);
		return false;
	}
	input->collectives = collectives_take(process);
	input->requests = communicator_requests_copy(&collective_calls_of(process)->requests);
	read_facts(input);
	set_read_status(input);
	if (!input->ended && (input->collectives.count || process->rank >= 0))
		input->end = rank_end_read(process, &input->collectives);
	return true;
}
