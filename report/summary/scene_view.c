/* SPDX-License-Identifier: MIT */
#include "report/summary/scene_view.h"
#include "report/base/error.h"
#include "report/diagnose/diagnose.h"
#include "report/run/warnings.h"
#include "report/scene/scene_json.h"
#include "report/summary/verdict.h"
#include "report/text/output.h"
#include <stdlib.h>

static void write_process(struct json_writer *json, const struct options *options,
	const struct processes *processes, struct process *process)
{
	struct scene_window_list windows = { .count = 0 };
	struct rows rows = { .count = 0 };
	struct run_verdict *verdict = run_verdict_read(options, processes, process, &rows);
	struct scene *scene;

	scene_windows_add_usual(&windows, process);
	scene_windows_add_findings(&windows, process, &rows);
	scene = scene_read(process, &windows);
	json_write_begin(json, '{');
	json_put_unsigned(json, "pid", process->pid);
	json_write_key(json, "verdict");
	run_verdict_write_json(json, verdict);
	json_write_key(json, "scene");
	scene_json_write(json, scene, NULL);
	json_write_end(json, '}');
	scene_free(scene);
	run_verdict_free(verdict);
	free(rows.rows);
}

int scene_view(const struct options *options)
{
	struct shared_pass pass = { .add = diagnose_read_in };
	const struct process_join join = shared_pass_join(&pass);
	struct processes processes = processes_read_with(options, &join);
	struct output *out = output_open(options->output);
	struct json_writer json = { .out = out };
	bool is_written;

	warnings_check_selection(options, &processes);
	json_write_begin(&json, '{');
	json_put_string(&json, "schema", "pperf.scene/1");
	json_put_begin(&json, "processes", '[');
	for (size_t i = 0; i < processes.shown; i++)
		write_process(&json, options, &processes, &processes.all[i]);
	json_write_end(&json, ']');
	json_write_end(&json, '}');
	output_char(out, '\n');
	is_written = output_close(out, options->output);
	processes_free(&processes);
	return is_written ? STATUS_OK : STATUS_UNREADABLE;
}
