/* SPDX-License-Identifier: MIT */
#include "report/cli/view_list.h"
#include "report/analysis/activities.h"
#include "report/base/error.h"
#include "report/diagnose/diagnose.h"
#include "report/export/export.h"
#include "report/page/flame.h"
#include "report/page/html.h"
#include "report/part/part.h"
#include "report/summary/scene_view.h"
#include "report/summary/summary.h"
#include "report/tui/tui.h"
#include "report/views/critical_stayed.h"
#include "report/views/functions.h"
#include "report/views/memory_summary.h"
#include "report/views/missing_data.h"
#include "report/views/views.h"
#include <string.h>

#define NODE_COLUMNS                                                                              \
	"name label kind section path domain pid rank share calls gpu_total_ns gpu_self_ns "      \
	"gpu_calls untimed bytes "                                                                \
	"gpu_forward_ns gpu_backward_ns gpu_recompute_ns gpu_optimizer_ns cpu_total_ns "          \
	"cpu_self_ns "                                                                            \
	"cpu_self_x_ns samples cpu_sampled_ns cpu_sampled_total_ns waits_for_core_ns blocked_ns " \
	"idle_ns idle_before_ns delay_p50_ns delay_p95_ns min_ns p50_ns p95_ns "                  \
	"p99_ns max_ns "                                                                          \
	"allocated_delta_bytes allocated_peak_bytes "                                             \
	"tensor_alloc_bytes tensor_free_bytes tensor_allocs tensor_frees at_oom_bytes "           \
	"at_peak_bytes "                                                                          \
	"reserved_delta_bytes reserved_peak_bytes alloc_bytes free_bytes allocs frees failed "    \
	"grid block shared_bytes registers waves_per_sm occupancy_theoretical occupancy_limit "   \
	"device labels "                                                                          \
	"class members.count members.metric members.min_ns members.p50_ns members.max_ns "        \
	"odd.label odd.ns odd.calls "                                                             \
	"ran_elsewhere source "                                                                   \
	"left_open method confidence provenance "                                                 \
	"worst.metric worst.label worst.start_ns worst.value worst.before worst.after worst.delta"
#define NODE_TEXT                                                                                  \
	"gpu_total_ns cpu_total_ns share calls cpu_sampled_total_ns cpu_sampled_ns spread p50_ns " \
	"max_ns "                                                                                  \
	"allocated_delta_bytes "                                                                   \
	"allocated_peak_bytes "                                                                    \
	"reserved_delta_bytes reserved_peak_bytes gpu_self_ns cpu_self_ns p95_ns idle_ns "         \
	"at_oom_bytes at_peak_bytes "                                                              \
	"gpu_forward_ns gpu_backward_ns gpu_recompute_ns gpu_optimizer_ns "                        \
	"tensor_alloc_bytes alloc_bytes"

const struct view view_list[] = {
	{ .name = "summary",
		.summary = "what ran, what was recorded, and where time and memory went; then the "
			   "tree (the default view)",
		.layout = LAYOUT_SUMMARY,
		.columns = "id parent depth " NODE_COLUMNS,
		.text = NODE_TEXT,
		.shows_samples = true,
		.min_percent = 1,
		.focus = true,
		.draw = draw_summary,
		.put_json = put_summary_json,
		.read_in = summary_read_in,
		.arrange = arrange_tree },
	{ .name = "tree",
		.explain_empty = missing_data_explain,
		.summary = "every call path of the program, with the time and memory of each node",
		.layout = LAYOUT_TREE,
		.columns = "id parent depth " NODE_COLUMNS,
		.text = NODE_TEXT,
		.min_percent = 1,
		.next = "critical -m %m",
		.focus = true,
		.arrange = arrange_tree },
	{ .name = "critical",
		.summary = "the worst instance of the worst root, and the instances in it that "
			   "made it so",
		.layout = LAYOUT_CRITICAL,
		.columns = "id parent depth name label kind class path domain calls start_ns "
			   "duration_ns value before after delta unit share source grid block "
			   "shared_bytes registers waves_per_sm occupancy_theoretical device "
			   "segments reserved_bytes tensor_bytes free_inside_bytes "
			   "empty_segments empty_bytes unknown_bytes provenance",
		.text = "",
		.next = "tree -m %m %p",
		.no_percentiles = true,
		.focus = true,
		.arrange = arrange_critical,
		.footer = critical_print_stayed },
	{ .name = "table",
		.explain_empty = missing_data_explain,
		.summary = "one row per name, summed over the tree; --by: per shape, module, "
			   "stack, category, stream, thread, rank or step",
		.layout = LAYOUT_TABLE,
		.columns = NODE_COLUMNS
		" gpu_self_again_ns gpu_self_share gpu_avg_ns cpu_self_share cpu_avg_ns",
		.text = "gpu_total_ns gpu_self_ns cpu_self_ns calls share cpu_total_ns "
			"gpu_avg_ns cpu_avg_ns gpu_self_share cpu_self_share "
			"p50_ns "
			"max_ns p95_ns min_ns tensor_alloc_bytes allocated_delta_bytes alloc_bytes "
			"reserved_delta_bytes",
		.top = 40,
		.next = "critical -m %m",
		.arrange = arrange_table },
	{ .name = "categories",
		.summary = "GPU time by category (norm, attention, GEMM, convolution ...), by the "
			   "rules of --categories, with the kernels of each",
		.layout = LAYOUT_TREE,
		.columns = "id parent depth name label kind path gpu_self_share calls untimed "
			   "gpu_total_ns gpu_avg_ns min_ns p50_ns p95_ns max_ns bytes provenance",
		.text = "gpu_total_ns gpu_self_share calls gpu_avg_ns p50_ns max_ns p95_ns min_ns "
			"bytes untimed",
		.sort = "gpu_total_ns",
		.min_percent = 1,
		.top = 20,
		.next = "kernels",
		.no_percentiles = true,
		.read_in = categories_read_in,
		.arrange = arrange_categories },
	{ .name = "steps",
		.summary = "each step: duration, GPU busy time, memory; which steps are cold "
			   "start, warm-up or outliers; and the median, spread and trend of the "
			   "steady-state steps",
		.layout = LAYOUT_TREE,
		.columns = "name label kind pid thread step step_kind state outlier start_ns "
			   "duration_ns step_gpu_ns step_ahead_ns calls p50_ns p95_ns max_ns "
			   "cpu_self_ns gpu_total_ns busy_ns idle_ns gaps gap_max_ns kernels "
			   "gpu_calls allocated_peak_bytes allocated_end_bytes reserved_peak_bytes "
			   "reserved_end_bytes counter_end counter_peak provenance",
		.text = "duration_ns counter_end counter_peak step_gpu_ns step_ahead_ns thread "
			"calls p50_ns p95_ns max_ns "
			"busy_ns idle_ns gaps "
			"gap_max_ns "
			"allocated_peak_bytes kernels allocated_end_bytes cpu_self_ns "
			"reserved_peak_bytes reserved_end_bytes "
			"step_kind gpu_total_ns start_ns pid",
		.sort = "duration_ns",
		.top = 40,
		.no_percentiles = true,
		.keeps_rows = true,
		.arrange = arrange_steps },
	{ .name = "kernels",
		.explain_empty = missing_data_explain,
		.summary = "one row per kernel and launch configuration, with its theoretical "
			   "occupancy",
		.layout = LAYOUT_TABLE,
		.columns = "name label kind path share calls untimed gpu_total_ns min_ns p50_ns "
			   "p95_ns p99_ns max_ns grid block shared_bytes registers waves_per_sm "
			   "occupancy_theoretical occupancy_limit device provenance",
		.text = "gpu_total_ns share calls grid block occupancy_theoretical waves_per_sm "
			"p50_ns registers shared_bytes max_ns p95_ns min_ns occupancy_limit "
			"untimed",
		.sort = "gpu_total_ns",
		.top = 40,
		.next = "tree %p",
		.no_percentiles = true,
		.arrange = arrange_kernels },
	{ .name = "memory",
		.explain_empty = memory_explain_empty,
		.summary = "memory by owner and kind: at its peak, at the end, and when PyTorch "
			   "ran out of memory",
		.layout = LAYOUT_TREE,
		.columns = "id parent depth name label kind path memory_kind device alloc_bytes "
			   "free_bytes at_oom_bytes at_peak_bytes held_bytes most_bytes peak_ns "
			   "allocs "
			   "frees failed reserved_at_peak_bytes unused_at_peak_bytes "
			   "outside_at_peak_bytes growth_bytes growth_share left_bytes grown_steps "
			   "late_steps p_value growth_cause class_share line stack provenance",
		.text = "growth_bytes growth_share growth_cause line at_peak_bytes at_oom_bytes "
			"held_bytes allocs "
			"frees most_bytes class_share alloc_bytes failed left_bytes grown_steps "
			"late_steps p_value stack",
		.sort = "at_peak_bytes",
		.top = 20,
		.next = "critical -m reserved",
		.no_percentiles = true,
		.arrange_process = arrange_memory,
		.header = memory_summary_header },
	{ .name = "api",
		.explain_empty = missing_data_explain,
		.summary = "CUDA calls by name: number, CPU time, failures",
		.layout = LAYOUT_TABLE,
		.columns =
			"name label kind path share wall_share calls failed captured cpu_total_ns "
			"mean_ns min_ns p50_ns p95_ns max_ns start_ns timed_by provenance",
		.text = "cpu_total_ns share calls failed mean_ns max_ns wall_share p50_ns p95_ns "
			"min_ns captured timed_by",
		.sort = "cpu_total_ns",
		.top = 40,
		.no_percentiles = true,
		.arrange_process = arrange_api },
	{ .name = "streams",
		.explain_empty = missing_data_explain,
		.summary = "each stream of each GPU: what ran, how long it was busy, alone or "
			   "concurrently, and which threads launched it",
		.layout = LAYOUT_TREE,
		.columns = "id parent depth name label kind device stream streams share calls "
			   "kernels copies sets untimed bytes gpu_total_ns busy_ns busy_share "
			   "concurrent_ns start_ns last_ns threads thread_ids provenance",
		.text = "busy_ns busy_share concurrent_ns calls copies gpu_total_ns start_ns "
			"last_ns thread_ids kernels sets bytes untimed threads",
		.sort = "busy_ns",
		.top = 40,
		.next = "kernels",
		.no_percentiles = true,
		.read_in = activities_read_in,
		.arrange_process = arrange_streams },
	{ .name = "queue",
		.explain_empty = missing_data_explain,
		.summary = "launch-to-start latency of GPU work by what it waited for, and how far "
			   "the host ran ahead of the GPU",
		.layout = LAYOUT_TREE,
		.columns = "id parent depth name label kind path device stream calls delays early "
			   "untimed delay_total_ns delay_p50_ns delay_p95_ns delay_max_ns "
			   "delay_stream_ns delay_start_ns delay_event_ns delay_others_ns "
			   "delay_unknown_ns "
			   "outstanding_max outstanding_mean queue_empty_ns queue_asked_ns "
			   "queue_unknown_ns queue_ahead_ns provenance",
		.text = "delay_p50_ns delay_p95_ns queue_asked_ns queue_empty_ns delays "
			"queue_ahead_ns "
			"delay_max_ns queue_unknown_ns outstanding_max outstanding_mean "
			"delay_total_ns delay_stream_ns delay_event_ns delay_others_ns "
			"delay_unknown_ns delay_start_ns early untimed calls",
		.sort = "delay_total_ns",
		.sorts_silently = true,
		.top = 20,
		.next = "idle",
		.no_percentiles = true,
		.reads =
			"not launched: the device, or the stream alone, was idle, and its next "
			"operation had not been launched; after launch: it had been launched (of a "
			"stream also before its first operation); call paths in the order of their "
			"summed latencies",
		.read_in = activities_read_in,
		.arrange_process = arrange_queue },
	{ .name = "distribution",
		.summary = "distribution of the durations of one node, kernel or operator NAME: "
			   "histogram, modes, outliers",
		.layout = LAYOUT_TABLE,
		.subject = "NAME",
		.columns = "name kind path measure calls share from_ns to_ns mean_ns min_ns p25_ns "
			   "p50_ns p75_ns p95_ns p99_ns max_ns outliers number step start_ns "
			   "duration_ns provenance",
		.text = "",
		.no_percentiles = true,
		.arrange = arrange_distribution,
		.draw = draw_distribution },
	{ .name = "idle",
		.explain_empty = missing_data_explain,
		.summary = "idle time of each GPU by cause, and by the call path that launched "
			   "the operation at the end of the gap",
		.layout = LAYOUT_TREE,
		.columns =
			"id parent depth name label kind cause path device share gap_ns "
			"unknown_ns gaps gap_max_ns start_ns ended_by blocked_by host_call thread "
			"provenance time_share waits_for stream samples sample_share module",
		.text = "gap_ns unknown_ns time_share cause share samples sample_share start_ns "
			"gaps gap_max_ns ended_by blocked_by waits_for host_call stream "
			"thread",
		.sort = "gap_ns",
		.share_title = "of idle",
		.min_percent = 1,
		.top = 5,
		.next = "queue",
		.no_percentiles = true,
		.reads = "by cause, then by call path: that of the call that blocked the thread, "
			 "or else that which launched the next operation; of idle: of the "
			 "idle time of all GPUs; of time: of the steady-state steps, or without "
			 "steps of the GPU span, from the first operation to the last",
		.read_in = idle_read_in,
		.arrange_process = arrange_idle },
	{ .name = "overlap",
		.explain_empty = missing_data_explain,
		.summary = "how much of the copies and the communication overlapped with "
			   "computation, and which did not",
		.layout = LAYOUT_TREE,
		.columns = "id parent depth name label kind traffic path device calls bytes "
			   "message_bytes_per_s bus_bytes_per_s gpu_total_ns busy_ns hidden_ns "
			   "exposed_ns hidden_share min_ns p50_ns max_ns provenance",
		.text = "busy_ns exposed_ns calls min_ns p50_ns max_ns bytes message_bytes_per_s "
			"hidden_share hidden_ns bus_bytes_per_s gpu_total_ns",
		.sort = "exposed_ns",
		.top = 20,
		.no_percentiles = true,
		.read_in = activities_read_in,
		.arrange_process = arrange_overlap },
	{ .name = "roofline",
		.summary = "how close operators, copies and memsets come to the GPU's peak compute "
			   "and memory rates; only where FLOPs or bytes are known",
		.layout = LAYOUT_TREE,
		.columns = "id parent depth name label kind device share calls gpu_calls untimed "
			   "gpu_total_ns flops bytes intensity flops_per_s bytes_per_s roof "
			   "roof_share known_share peak_flops_per_s peak_bytes_per_s element_type "
			   "basis kernel provenance",
		.text = "gpu_total_ns share roof_share roof basis flops_per_s bytes_per_s "
			"intensity element_type calls peak_flops_per_s peak_bytes_per_s flops "
			"bytes untimed",
		.sort = "gpu_total_ns",
		.top = 20,
		.next = "kernels",
		.no_percentiles = true,
		.keeps_rows = true,
		.arrange = arrange_roofline,
		.header = roofline_header },
	{ .name = "diagnose",
		.summary = "findings by rule: what is wrong, what it costs, how certain that is, "
			   "what to do, and the command that shows it",
		.layout = LAYOUT_TABLE,
		.columns = "id name kind finding evidence path impact_ns impact_bytes bound count "
			   "start_ns confidence why next command impact_share impact_of share "
			   "share_of_ns share_of gain_ns gain_share same_idle_as "
			   "provenance",
		.text = "",
		.shows_samples = true,
		.sort = "impact_ns",
		.read_in = diagnose_read_in,
		.arrange = arrange_diagnose,
		.draw = draw_diagnose,
		.brief = brief_diagnose },
	{ .name = "critical-path",
		.explain_empty = missing_data_explain,
		.summary = "the longest chain of calls and GPU operations that waited for each "
			   "other; what it consists of, and the slack of what is not on it",
		.layout = LAYOUT_TREE,
		.columns = "id parent depth name label kind path step share calls path_ns "
			   "path_gpu_ns path_host_ns path_launch_ns path_wait_ns path_sync_ns "
			   "path_unknown_ns path_before_ns path_segments slack_min_ns slack_p50_ns "
			   "gain_ns waits "
			   "waits_unknown "
			   "stream_waits stream_waits_unknown default_waits untimed provenance",
		.text = "path_ns share path_before_ns gain_ns slack_p50_ns path_gpu_ns "
			"path_host_ns "
			"path_launch_ns path_wait_ns path_sync_ns slack_min_ns calls "
			"path_unknown_ns "
			"waits_unknown stream_waits_unknown default_waits untimed",
		.sort = "path_ns",
		.min_percent = 0.01,
		.reads = "host: between CUDA calls; calls: in those that wait for nothing; copy "
			 "calls: the same, in those that copy; launch latency, gaps, waits: only "
			 "where nothing else on the path goes on meanwhile (idle has all of the "
			 "GPU's); waited before: these, before GPU work of the row; gain: time "
			 "saved at most if the GPU work and the CUDA calls of the row took no "
			 "time; slack: how much longer it could take without a later end of the "
			 "run",
		.top = 20,
		.next = "idle",
		.no_percentiles = true,
		.read_in = critical_path_read_in,
		.arrange_process = arrange_critical_path },
	{ .name = "diff",
		.summary = "two traces, BEFORE and AFTER: statistically significant changes per "
			   "node; exit status 1 if there are any",
		.columns = "",
		.text = "",
		.traces = "BEFORE AFTER",
		.run = diff_view },
	{ .name = "gate",
		.summary = "for CI: whether AFTER uses more than BEFORE (a trace or a baseline) by "
			   "more than --max-regression; exit status 1 if it does",
		.columns = "",
		.text = "",
		.traces = "BEFORE AFTER",
		.run = gate_view },
	{ .name = "ranks",
		.summary = "several ranks of one job: waiting and transfer time of each "
			   "collective, which rank came last how often, and what it did meanwhile",
		.columns = "",
		.text = "",
		.takes_folders = true,
		.run = ranks_view },
	{ .name = "part",
		.summary = "for thousands of ranks: tables of traces that `pperf ranks` and other "
			   "tools merge, into the folder -o",
		.columns = "",
		.text = "",
		.shows_samples = true,
		.takes_folders = true,
		.run = part_view },
	{ .name = "export",
		.summary = "the trace in the FORMAT of another tool: folded, speedscope, pprof, "
			   "dot, graph, chrome, perfetto, sqlite, opprof",
		.subject = "FORMAT",
		.shows_samples = true,
		.columns = "",
		.text = "",
		.run = export_view },
	{ .name = "flame",
		.summary = "flame graphs as one page of HTML: GPU, CPU and idle time, memory, "
			   "counters; of a trace, or of what changed from BEFORE to AFTER",
		.shows_samples = true,
		.columns = "",
		.text = "",
		.traces = "TRACE | BEFORE AFTER",
		.run = flame_view },
	{ .name = "html",
		.summary = "one page of HTML: verdict, findings, timeline, flame graph, memory, "
			   "idle time, steps and kernels; of several ranks, or of what changed "
			   "from BEFORE to AFTER, too",
		.shows_samples = true,
		.columns = "",
		.text = "",
		.run = html_view },
	{ .name = "tui",
		.summary = "interactive tree of a trace, or comparison of BEFORE and AFTER, on a "
			   "terminal; ? shows the keys",
		.columns = "id parent depth " NODE_COLUMNS,
		.text = "",
		.traces = "TRACE | BEFORE AFTER",
		.focus = true,
		.run = tui_view },
	{ .name = "info",
		.summary = "what was recorded: program, settings, sources, file structure, and "
			   "what is missing",
		.columns = "",
		.text = "",
		.run = info_view },
	{ .name = "dump",
		.summary = "all records in time order, one per line",
		.columns = "",
		.text = "",
		.run = dump_view },
	{ .name = "scene",
		.summary = "what pictures are drawn from, for tests",
		.columns = "",
		.text = "",
		.is_hidden = true,
		.run = scene_view },
	{ .name = NULL },
};

#define INSTANCE_COLUMNS                                                                      \
	"id parent depth name label kind class path number step calls gpu_total_ns start_ns " \
	"duration_ns value before after "                                                     \
	"delta unit share source grid block shared_bytes registers waves_per_sm "             \
	"occupancy_theoretical device provenance"

static const struct view instances_view = { .name = "tree",
	.summary = "",
	.layout = LAYOUT_TREE,
	.columns = INSTANCE_COLUMNS,
	.text = "gpu_total_ns duration_ns share number step start_ns calls delta source",
	.min_percent = 1,
	.no_percentiles = true,
	.focus = true,
	.arrange = arrange_instances };
static const struct view critical_instances_view = { .name = "critical",
	.summary = "",
	.layout = LAYOUT_CRITICAL,
	.columns = INSTANCE_COLUMNS " segments reserved_bytes tensor_bytes free_inside_bytes "
				    "empty_segments empty_bytes unknown_bytes",
	.text = "",
	.no_percentiles = true,
	.focus = true,
	.arrange = arrange_instances,
	.footer = critical_print_stayed };

/* What is known of a device at a moment. */
#define MOMENT_COLUMNS                                                                \
	"device at_ns reserved_bytes tensor_bytes free_inside_bytes gaps "            \
	"largest_gap_bytes fragmentation free_share segments tensors empty_segments " \
	"empty_bytes unknown_segments unknown_bytes outside_bytes overlapped_bytes "  \
	"unrecorded_bytes reported_bytes requested_bytes changes "

static const struct view memory_map_view = { .name = "memory",
	.explain_empty = memory_moment_explain_empty,
	.summary = "",
	.layout = LAYOUT_TREE,
	.columns = "id parent depth name label kind path " MOMENT_COLUMNS
		   "address bytes since_ns emptied_ns used_share fill holder holder_bytes "
		   "holder_since_ns for_stream memory_pool line provenance",
	.text = "",
	.top = 16,
	.next = "memory --over-time",
	.no_percentiles = true,
	.arrange_process = arrange_memory_map,
	.draw = draw_memory_map };
static const struct view memory_moment_view = { .name = "memory",
	.explain_empty = memory_moment_explain_empty,
	.summary = "",
	.layout = LAYOUT_TREE,
	.columns = "id parent depth name label kind path " MOMENT_COLUMNS
		   "bytes share since_ns pin_bytes line provenance",
	.text = "bytes share tensors since_ns pin_bytes line",
	.sort = "bytes",
	.top = 20,
	.next = "memory --map",
	.no_percentiles = true,
	.arrange_process = arrange_memory_moment,
	.header = memory_moment_header };
static const struct view memory_history_view = { .name = "memory",
	.explain_empty = memory_moment_explain_empty,
	.summary = "",
	.layout = LAYOUT_TABLE,
	.columns = "name label kind " MOMENT_COLUMNS "provenance",
	.text = "at_ns reserved_bytes tensor_bytes free_inside_bytes largest_gap_bytes "
		"fragmentation free_share segments changes device empty_bytes gaps "
		"unknown_bytes outside_bytes",
	.sort = "at_ns",
	.reads = "unused: free inside the segments, of which fragm. = 1 - max gap / unused; "
		 "free %: unused / segments with tensors",
	.next = "memory --map",
	.no_percentiles = true,
	.arrange_process = arrange_memory_history };

static const struct view memory_ledger_view = { .name = "memory",
	.explain_empty = memory_ledger_explain_empty,
	.summary = "",
	.layout = LAYOUT_TREE,
	.columns = "id parent depth name label kind path device at_ns bytes share "
		   "provenance",
	.text = "bytes share",
	.sort = "bytes",
	.top = 20,
	.reads = "%: of the capacity of the GPU",
	.next = "memory",
	.no_percentiles = true,
	.arrange_process = arrange_memory_ledger,
	.header = memory_ledger_header };

const struct view *view_for_memory(const struct options *options, const struct view *view)
{
	if (strcmp(view->name, "memory") != 0)
		return view;
	if (options->map)
		return &memory_map_view;
	if (options->over_time)
		return &memory_history_view;
	if (options->ledger)
		return &memory_ledger_view;
	return options->at || (options->by != BY_NAME && options->by != BY_CLASS)
		       ? &memory_moment_view
		       : view;
}

const struct view *view_for_instances(const struct options *options)
{
	const bool tree = strcmp(options->view->name, "tree") == 0 ||
			  options->view == view_default();

	if (options->instances == INSTANCES_SUM)
		return options->view;
	if (!tree && (strcmp(options->view->name, "critical") != 0 ||
			     options->instances == INSTANCES_ALL))
		fatal(STATUS_USAGE, "--instances works with the views tree, and for worst, first "
				    "and last also critical");
	return tree ? &instances_view : &critical_instances_view;
}
