/* SPDX-License-Identifier: MIT */
#include "report/cli/help.h"
#include "report/cli/command_line.h"
#include "report/cli/view_list.h"
#include "report/table/column.h"
#include "report/diagnose/diagnose.h"
#include "report/base/error.h"
#include "report/text/paragraph.h"
#include "report/views/ranks_columns.h"
#include "report/views/source_reasons.h"
#include <stdio.h>

static const struct {
	const char *title, *text;
} terms[] = {
	{ "GPU work", "kernels, copies and memsets. gpu self of a range counts what was launched "
		      "directly in it, gpu also what was launched below it. Both are sums: two "
		      "streams that run concurrently count twice." },
	{ "busy, idle", "busy is the union over a device's streams. A device's span is from the "
			"start of its first operation to the end of its last. idle = span - busy - "
			"unknown." },
	{ "unknown", "time of a device's span of which the trace does not show whether it was "
		     "busy: intervals of more than 20 us between two operations of one CUDA graph "
		     "launch that do not name their graph nodes (other nodes are missing in the "
		     "file), and intervals in which another profiler used CUPTI (away)." },
	{ "idle before",
		"an idle interval is attributed to the operation that ended it, and so to the node "
		"that launched this operation. All roots together have all idle time. With "
		"--steps: the idle time ended by operations launched in these steps." },
	{ "latency", "launch-to-start latency: from the start of the launch call to the start of "
		     "the operation on the GPU. It includes the call itself and waiting behind "
		     "other operations. A graph launch counts once, up to its first operation. The "
		     "error is at most 1 %." },
	{ "forward", "gpu = forward + backward + recompute + optimizer, by the node that launched "
		     "the work; forward is what is none of the other three. Shown only where it is "
		     "not zero." },
	{ "causes", "why the GPU was idle, by the thread that launched the operation that ended "
		    "the gap. A gap is split at the start of the launch call. Before it: "
		    "synchronisation, allocation, copy: half of this part was spent in calls that "
		    "wait, allocate or free memory, or copy; or the thread was in such a call as "
		    "the gap began, and launched sooner after it than the call had taken; "
		    "data loading, compilation: while it was in a PyTorch DataLoader, or compiled; "
		    "launch-bound: none of these; host-bound: the same, for 1 ms or more. "
		    "After it: launch latency: until the launch "
		    "call returned, or up to 20 us more (of a copy: copy); gap between kernels: "
		    "it was launched before the gap and started within 20 us; event wait: the "
		    "rest, if its launch was behind a cudaStreamWaitEvent whose event is recorded "
		    "in the trace; unexplained wait: the rest, as the trace does not show what it "
		    "waited for. unknown: its launch is not in "
		    "the trace, or the gap is next to a CUDA graph whose nodes may be missing." },
	{ "away", "intervals in which CUPTI was released to another profiler (PPERF_CUPTI=yield). "
		  "GPU activity in them is not recorded; this time counts neither as busy nor as "
		  "idle." },
	{ "busy with", "computation: kernels and memsets; communication: kernels that the "
		       "rules of --categories classify so; copies. Each is a union. Exposed: time "
		       "without concurrent computation (for "
		       "copies: computation or communication). In the totals of JSON." },
	{ "cpu", "wall time inside a range, on its thread. cpu self: without nested ranges, with "
		 "CUDA calls (cpu self x: without both). If a range ends after its parent, only "
		 "the part inside is subtracted from the parent, so self times are disjoint and "
		 "add up." },
	{ "node", "a call path of names, from the root to the node. Each entry of a node is one "
		  "instance." },
	{ "folding", "labels that differ only in numbers are one node: `kf: 71` and `kf: 72` are "
		     "`kf: *`, layers.7.attn is layers.*.attn (xN: number of labels). Only whole "
		     "numbers after a blank, `=`, `#`, a dot or in brackets are folded, and only "
		     "in ranges, modules and steps; in operators, only the version number of a "
		     "function of torch.compile. --no-fold keeps all labels apart." },
	{ "modules", "PyTorch modules are named below the module that called them, with their "
		     "class. Wrappers (_orig_mod, module, _fsdp_wrapped_module, "
		     "_checkpoint_wrapped_module) are left out of folded names; modules of "
		     "different classes are never folded. members: the times of the fastest and "
		     "the slowest member. outlier: the one member that is at least 1.5 times the "
		     "median or at most 2/3 of it, and whose deviation is more than three times "
		     "the median deviation. GPU times include everything below, and backward; CPU "
		     "times exclude the longest call of each member with three or more calls." },
	{ "( )", "figures in parentheses are not to be added: CPU time of a backward pass, which "
		 "is no part of the row above, and GPU time that the range that launched the "
		 "work has as well." },
	{ "(bwd)", "`X (bwd)` is the backward pass of X, the outermost operator that the module or "
		   "range called. Its GPU time and memory count in the rows above it; its CPU time "
		   "counts where it ran: in `(backward)`, the autograd engine, as cpu but not as "
		   "cpu self. Reductions, additions and AccumulateGrad of the engine are included; "
		   "(gradient accumulation): the same where X is not known. `X (recompute)`: the "
		   "module X, called again during backward; (recompute): the same for operators "
		   "outside of modules." },
	{ "without work",
		"operators that launched, copied and allocated nothing, in a program that used a "
		"GPU: one row in text, if they took at least --min-percent of the CPU time." },
	{ "percentiles", "the value at rank ceil(p * calls); exact for up to 4096 instances of a "
			 "node, above that with an error of at most 1 %." },
	{ "counted", "operators in a trace recorded with PPERF_OPS=totals: calls, cpu, cpu self "
		     "and max of the whole run, summed at run time; `-` is not available. Their "
		     "GPU time and memory are exact. The tree covers the whole run, not its steps; "
		     "with --steps these operators are left out." },
	{ "levels", "reserved: device memory that the program holds (one device: --device). "
		    "allocated: what PyTorch's tensors hold of it, as reported by its allocator. A "
		    "counter: values that the program reports. A range has a level at its start "
		    "and at its end; the difference includes other threads' changes. peak: the "
		    "highest level during the range." },
	{ "flows", "alloc, free: bytes of device memory allocated at a node, and how many of these "
		   "bytes were freed since, anywhere. tensor alloc, tensor free: the same for "
		   "tensors, inside the memory of PyTorch's allocator; they are part of device "
		   "memory and are never added to it." },
	{ "OOM", "PyTorch's allocation failed, also after it freed its cached blocks. In no "
		 "tensor: memory reserved by its allocator less memory in tensors. Outside "
		 "PyTorch's allocator: device memory allocated in the trace less what that "
		 "allocator reserved." },
	{ "segments", "device memory of one allocation, such as a cudaMalloc of PyTorch's "
		      "caching allocator. Tensors are blocks in it, and gaps are what no tensor "
		      "occupies. Fragmentation: 1 - largest gap / free bytes inside the segments; "
		      "beside it the plain share that is free. A segment in which no tensor was "
		      "ever seen is unknown: neither free nor empty." },
	{ "start/end", "ranges that may overlap and cross threads: a section of their own, with "
		       "wall time and change of level; they own no GPU time." },
	{ "steps", "found by the first of these that exists: ranges named so "
		   "(--step-marker, ProfilerStep#7); ranges `step 7`, `iteration "
		   "7`, `iter 7`, `batch 7` or `epoch 7` with ascending numbers, "
		   "around most of the launches or of the model's calls; in "
		   "PyTorch programs, the ends of optimizer steps, or calls of the "
		   "outermost module. A step starts with its first batch, "
		   "zero_grad or module call and ends where the next one starts; "
		   "if the pause after its optimizer is more than four times the "
		   "usual pause and a tenth of a step, the rest of it is `(between "
		   "steps)`. Steps are on one thread; work of other threads "
		   "belongs to the step in which it starts or is launched. But if "
		   "several threads call the same model or mark steps, as in a "
		   "server, each thread has steps of its own. "
		   "Warm-up: the first steps, if they take more than 1.5 times as "
		   "long as later ones. Unfinished: the trace ends in it. Neither "
		   "counts in any average of `step`, nor in the total of "
		   "percentages. The number of a step is the one in the label, or "
		   "else its index in time order, from 0. Where none is found, "
		   "--steps selects ranges of kind step, or else ranges whose "
		   "label begins with step, iter, ProfileStep, batch or epoch." },
	{ "window", "PPERF_SCHEDULE recorded only some steps: figures, wall time, busy and idle "
		    "cover these windows, and ranges around a window count with their part inside. "
		    "Step numbers are the program's; warm-up steps are those of the schedule. "
		    "outside: events seen and not recorded; their cost is estimated from one event "
		    "in 64, measured in pperf's own code." },
	{ "critical",
		"the root with the largest value of the metric (for a level: the largest growth), "
		"its worst instance, and in it the instances with at least 1 % of it, the largest "
		"first, then the latest first. Smaller instances of one node are one row with "
		"their number if they add up to 1 %, and so are more than four of the same name, "
		"except those of three times the mean of the others; --min-percent 0 shows each. "
		"(backward): everything that the autograd engine ran in the instance, by the "
		"modules that it belongs to. A row of several instances has the level at the first "
		"start and the last end, and the sum of their differences." },
	{ "distribution",
		"20 bins of equal width, or of equal ratio if the longest duration is over ten "
		"times the shortest. On the GPU an instance has what was launched in it and below; "
		"instances without launches are left out. Outliers: more than three interquartile "
		"ranges (each at least 1 % of the median) outside the quartiles. Modes: peaks of "
		"the histogram of logarithms, smoothed over 2 * IQR / cbrt(n), separated by a "
		"valley below 70 % of the lower peak, with at least 5 % of the instances and 5 "
		"instances; with fewer than 10 instances neither is computed." },
	{ "diagnose",
		"the impact of a finding is its measured cost, or an upper bound (up to). Steady "
		"state: steady-state steps; without steps, from a quarter of the GPUs' span to its "
		"end, which is less certain. If these steps are less than half of the time from "
		"the first GPU operation to the last, rules on percentages that find nothing are "
		"evaluated again for these steps only (in steps A to B). Limits of neighbouring "
		"rules do not overlap: kernels below 5 us are tiny-calls, not small-grids. Impacts "
		"of "
		"different rules may still overlap, so do not add them. A cost in GPU time is "
		"given "
		"as a share of the GPU span: from the first GPU operation to the last." },
	{ "critical path",
		"the longest chain of calls and GPU operations of which each had to wait for the "
		"one before it, from the last event back to the first. A call comes after the "
		"previous call of its thread, and a waiting call ends after the operation it waits "
		"for. A GPU operation comes after its launch call, the previous operation of its "
		"stream and the events that its stream waits for; the latest of them counts; a "
		"launch takes at least the 5th percentile of all launches; in a graph, whose inner "
		"order is not known, the operation that ended last counts. After 16 consecutive "
		"calls of one thread, another thread is assumed to have waited for the last of "
		"them. Other waits between threads are not known. The default stream waits for "
		"other streams and they wait for it unless they were created with "
		"cudaStreamNonBlocking, which the trace does not show: this is assumed for "
		"operations that start as another stream's end, were launched before, and have no "
		"other predecessor, if the trace shows which stream is the default one (`default "
		"stream`). If a file does not name the stream or event of a host wait, the wait is "
		"assumed to be for the last operation that ended during the call. A stream that "
		"waits for an event which the file does not name is assumed to wait for an "
		"operation of another stream that ended at most 20 us before. What is more than 20 "
		"us between the launch call or "
		"the previous operation and the start of an operation counts as event wait, "
		"unexplained wait or unknown, by the rules of causes. With --steps: the part of "
		"the run's path "
		"inside the steps." },
	{ "slack, gain", "slack: how much longer one call or operation could take without delaying "
			 "the end of the run. gain: an upper bound on how much sooner the run "
			 "would end if all GPU work of the row took no time, its CUDA calls "
			 "returned as soon as what they wait for is over, and everything else took "
			 "as long as before; another chain is then the longest." },
	{ "diff",
		"figures are per steady-state step if both runs have 3 of them, else for the whole "
		"run. The step is tested first, as gate does: significant with p < 0.01. p of a "
		"call path: probability of a difference this large by chance, over steps or "
		"instances, adjusted for the false discovery rate of all call paths tested. "
		"Significant: p < 0.03 and a shift (Hodges-Lehmann) of at least 1 %; for times "
		"also 0.05 % of the whole, and 5 times what call paths vary between the runs, at "
		"most 10 %. Fewer than 20 values: Welch's t test on logarithms, with variances "
		"moderated by those of all call paths; else Mann-Whitney. not tested: fewer than 3 "
		"values. replaced: a kernel with another name in the same parent; renamed: a "
		"module "
		"or range with the same children. With --by function, line or library: the share "
		"of "
		"CPU samples that each has itself, by a two-proportion z test; significant: "
		"adjusted p < 0.03 and at least 1 percentage point." },
	{ "gate",
		"compares medians of steady-state steps (gpu, cpu, wall), means of steps (other "
		"flows), or whole runs if one has fewer than 3 such steps; peaks are of the "
		"whole run. It names the node with the largest growth, or its child with more "
		"than half of that growth. With 3 such steps on both sides they are tested as the "
		"step is in diff: a change beyond the limit with p of 0.01 or more is not "
		"significant, and passes." },
	{ "roofline",
		"FLOPs follow the operator's definition (a product of M x K and K x N: 2 M N K); "
		"bytes count each input read once and each output written once: both are modelled "
		"from input sizes. roof: the limit, compute or memory, that takes longer at the "
		"GPU's peak; of roof: that time / the kernels' time. fp32 products use the fp32 "
		"peak unless the kernel's name says tf32. Unknown: no sizes, no formula, a type, "
		"stride or mask that is not in the trace, graphs, or missing kernels." },
	{ "left open", "ranges without an end are counted up to the last record of their thread." },
	{ "parts", "with --steps and --device, figures cover that part only; integrity always "
		   "covers the whole trace." },
	{ "method", "how GPU work was matched to its launch. correlation (high): by CUPTI's "
		    "correlation id. graph-node (high): by the graph node, and so by the operator "
		    "that was captured as it. graph-level (low): by the graph launch; the operator "
		    "inside is not known. enclosure (medium): an imported file without such an id; "
		    "the call that the External id names. none: no launch in the trace, or a "
		    "launch outside any range: unattributed, a root of its own." },
	{ "graphs", "below a graph are the ranges captured into it, with the GPU time of all "
		    "replays and without CPU time and calls, which count where the capture ran. "
		    "(graph replays): graphs launched outside any range, but captured in one." },
	{ "conserved", "attributed + unattributed = total, exactly, in nanoseconds and bytes; a "
		       "difference is printed as a warning, and --strict exits with 2." },
	{ "simulated", "recorded on pperf's simulated device: counts are real, times are not "
		       "measurements." },
};

/* Prints a title and its text, wrapped to the width of the screen. */
static void put_entry(const struct style *style, size_t indent, const char *title, const char *text)
{
	struct paragraph paragraph = { .style = style, .indent = indent };

	paragraph_add(&paragraph, "%s", text);
	paragraph_print(&paragraph, title);
}

/* Prints the options and exit statuses, which end every --help. */
static void help_options(const struct style *style)
{
	output_string(style->out, "\noptions\n");
	command_line_help(style);
	output_char(style->out, '\n');
	put_entry(style, 13, "exit status",
		"0: success; 1: diff found a difference, or gate found that a limit was "
		"exceeded; 2: a file is no trace, cannot be read or written, or there is nothing "
		"to compare, or the trace is incomplete and --strict was given; 64: wrong usage");
}

static void help_view(const struct style *style, const struct view *view)
{
	print_line(style, "usage: pperf-report %s %s%s%s [options]\n\n", view->name,
		view->subject ? view->subject : "", view->subject ? " " : "",
		view->traces ? view->traces : "TRACE...");
	put_entry(style, 2, "", view->summary);
	if (*view->columns) {
		output_string(style->out, "\ncolumns (-s, --columns); --legend explains them\n");
		put_entry(style, 2, "", view->columns);
	}
	help_options(style);
}

static void help_all(const struct style *style)
{
	char title[32];

	output_string(style->out,
		"usage: pperf-report [VIEW] TRACE... [options]\n\nReports on a trace recorded by "
		"libpperf.so. A trace named like a view is given as\n./tree. FILE#PID is one "
		"process of a file with several (Nsight Systems).\n\nviews\n");
	for (const struct view *view = view_list; view->name; view++) {
		if (view->is_hidden)
			continue;
		snprintf(title, sizeof title, "  %s", view->name);
		put_entry(style, 16, title, view->summary);
	}
	help_options(style);
}

static void legend_all(const struct style *style)
{
	char title[40];

	for (size_t i = 0; i < sizeof terms / sizeof *terms; i++)
		put_entry(style, 14, terms[i].title, terms[i].text);
	output_string(style->out, "\nmetrics (-m)\n");
	for (int metric = 0; metric < METRIC_COUNT; metric++) {
		snprintf(title, sizeof title, "  %s",
			*metrics[metric].key ? metrics[metric].key : "NAME");
		put_entry(style, 14, title, metrics[metric].help);
	}
	output_string(style->out, "\nrules (diagnose)\n");
	for (size_t i = 0; i < DIAGNOSE_RULES; i++) {
		snprintf(title, sizeof title, "  %s", diagnose_rules[i].name);
		put_entry(style, 25, title, diagnose_rules[i].about);
	}
	output_string(style->out, "\nsources that are off or partial (reason: what to do)\n");
	for (size_t i = 0; i < source_reason_count; i++) {
		struct paragraph entry = { .style = style, .indent = 17 };

		snprintf(title, sizeof title, "  %s",
			*source_reasons[i].source ? source_reasons[i].source : "any");
		paragraph_add(&entry, "%s: %s",
			*source_reasons[i].reason ? source_reasons[i].reason : "otherwise",
			source_reasons[i].remedy);
		paragraph_print(&entry, title);
	}
	output_string(style->out, "\nranks (JSON, CSV)\n");
	for (size_t i = 0; i < RANK_COLUMN_COUNT; i++) {
		snprintf(title, sizeof title, "  %s", rank_columns[i].key);
		put_entry(style, 33, title, rank_columns[i].help);
	}
	put_entry(style, 33, "  drift_ppm",
		"clock drift against the reference rank, in parts per million");
	put_entry(style, 33, "  aligned_by", "number of collective ends used to align its clock");
	output_string(style->out, "\ncolumns (-s, JSON, CSV)\n");
	for (size_t i = 0; i < all_column_count; i++) {
		snprintf(title, sizeof title, "  %s", all_columns[i].key);
		put_entry(style, 25, title, all_columns[i].help);
	}
}

int help_show(const struct options *options)
{
	struct output *out = output_open(options->output);
	const struct style style = style_of(&options->style, out);

	if (options->help && options->view != view_default())
		help_view(&style, view_find(options->view->name));
	else if (options->help)
		help_all(&style);
	else if (options->version)
		output_string(out, "pperf-report " PPERF_VERSION "\n");
	else
		legend_all(&style);
	return output_close(out, options->output) ? STATUS_OK : STATUS_UNREADABLE;
}
