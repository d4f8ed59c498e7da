/* SPDX-License-Identifier: MIT */
#include "report/cli/help.h"
#include "report/cli/command_line.h"
#include "report/cli/view_list.h"
#include "report/table/column.h"
#include "report/diagnose/diagnose.h"
#include "report/base/error.h"
#include "report/text/paragraph.h"
#include "report/views/ranks_columns.h"
#include <stdio.h>

static const struct {
	const char *title, *text;
} definitions[] = {
	{ "GPU work", "kernels, copies and memsets. A range owns what was launched in it; gpu has "
		      "what was launched "
		      "below it too. It is a sum: two streams at work at once count twice." },
	{ "busy, idle", "busy is the union over a device's streams; its span goes from its first "
			"work to its last; "
			"idle = span - busy, less what is not known (away)." },
	{ "idle before", "each idle moment belongs to the work that ended it, and so to the place "
			 "that launched that: it kept "
			 "the GPU waiting. All roots together have all of idle. Of --steps: what "
			 "work launched in them ended." },
	{ "delay", "from the begin of the call that launched work to that work's begin on the GPU: "
		   "the call itself, and "
		   "waiting behind other work. A graph counts once, up to the first of its work. "
		   "At most 1 % off." },
	{ "forward", "gpu is forward + backward + recompute + optimizer, by where in the tree the "
		     "work was launched; forward "
		     "is all that is none of the other three. Only where something is." },
	{ "causes", "of idle, by the thread that asked for the work that ended it. dependency: "
		    "asked for before the GPU was idle. "
		    "synchronisation, allocation, copy: half of the gap was spent in calls that "
		    "wait, take or give back memory, "
		    "copy; or the thread was in one as the GPU became idle, and came to ask sooner "
		    "after it than the call had "
		    "taken. launch-bound: it had not asked yet. unknown: its call is not in the "
		    "trace." },
	{ "away", "CUPTI was left to another profiler (PPERF_CUPTI=yield): what the GPU did then "
		  "is in no figure; "
		  "that time is neither busy nor idle." },
	{ "busy with", "computation: kernels and memsets; communication: kernels of NCCL and RCCL; "
		       "copies. Each is a "
		       "union too. Exposed: while nothing is computed (copies: or communicated). "
		       "In JSON's totals." },
	{ "cpu", "wall time inside, on the range's thread. cpu self: without the ranges inside; "
		 "CUDA calls stay in "
		 "(cpu self x: without them too). Of a range that outlasts the one it began in, "
		 "only the part inside is taken "
		 "off that one: a moment is in one self time, and they add up." },
	{ "place", "a path of names. An instance is one begin and end there." },
	{ "folding", "labels that differ in numbers are one place: `kf: 71` and `kf: 72` are `kf: "
		     "*`, layers.7.attn is "
		     "layers.*.attn (xN: so many labels). Only whole numbers after a blank, `=`, "
		     "`#`, a dot or in "
		     "brackets, only in ranges, modules and steps; of operators only "
		     "torch.compile's number of a "
		     "function's version; --no-fold keeps all apart." },
	{ "modules", "named below the module that called them, with their class. Wrappers "
		     "(_orig_mod, module, "
		     "_fsdp_wrapped_module, _checkpoint_wrapped_module) are left out of names that "
		     "fold; modules of "
		     "different classes never fold together. members: the least and the most that "
		     "one of them took; "
		     "`alone`: the one that is clearly out of line, at least 1.5 times the median "
		     "or 2/3 of it, and "
		     "more than three times as far off as most. On the GPU: with all below, and "
		     "backward; on the "
		     "CPU: without the longest call of each that had three or more." },
	{ "(bwd)", "`X (bwd)` is what ran backward for X, the outermost operator that the module "
		   "or range called. Its "
		   "GPU work and memory count in the rows above it, its time on the CPU only where "
		   "it ran: "
		   "`(backward)`, autograd's engine, has it in cpu, not in cpu self. With it is "
		   "what the engine reduces and "
		   "adds for it, and AccumulateGrad; (gradient accumulation): the same where X is "
		   "not known. "
		   "(recompute): a module that is called while running backward." },
	{ "without work", "operators in and below which nothing was launched, copied or allocated, "
			  "in a program that "
			  "did something on a GPU: one row in text, where they took at least "
			  "--min-percent of the "
			  "time on the CPU." },
	{ "percentiles", "the value at rank ceil(p * calls); exact for up to 4096 instances of a "
			 "place, beyond that at "
			 "most 1 % off." },
	{ "counted", "operators of a trace of PPERF_OPS=totals: calls, cpu, cpu self and max of "
		     "the whole run, added up "
		     "while it ran; `-` is what nobody knows. Their GPU work and memory are as "
		     "exact as ever. The tree "
		     "is of the whole run, not of its steps; with --steps they are left out." },
	{ "levels", "reserved is the device memory held (one device: --device), allocated what "
		    "PyTorch's tensors hold "
		    "of it, as its allocator says itself, a counter is what the program says. A "
		    "range has the level at its begin and at its end; the difference is its own "
		    "and that of other "
		    "threads meanwhile. peak: the highest level in it." },
	{ "flows", "alloc, free: bytes of device memory taken in a place, and of these given back "
		   "since, wherever that "
		   "was. tensor alloc, tensor free: the same of tensors, out of what PyTorch's "
		   "allocator holds; they "
		   "are a part of the device's memory and never added to it." },
	{ "OOM", "PyTorch asked for memory, gave back what it kept for later, asked again and got "
		 "none. In no tensor: "
		 "what its allocator holds less what tensors hold. Past PyTorch's allocator: "
		 "device memory that the "
		 "trace saw taken less what that holds." },
	{ "start/end", "ranges that may overlap and cross threads: a section of their own, with "
		       "wall time and change "
		       "of level; they own no GPU work." },
	{ "steps", "of PyTorch they are found without a mark: ranges named so (--step-marker, "
		   "ProfilerStep#7, `step 7` "
		   "around the model's calls), else what ends in an optimizer's step, else calls "
		   "of the outermost "
		   "module. From its first batch, zero_grad or call a step goes on to that of the "
		   "next one; where "
		   "the pause behind its optimizer is more than four times the usual one and a "
		   "tenth of a step, the "
		   "rest of it is "
		   "`(between steps)`. On one thread; what others do belongs to the step in which "
		   "it begins or is "
		   "launched. "
		   "Warm-up: the first ones, that took more than 1.5 times what later ones do; "
		   "unfinished: the trace "
		   "ends in it; neither is in any average of `step`, nor in the time that shares "
		   "are shares of. Of "
		   "other programs, for --steps alone: ranges of kind step, or "
		   "else ranges whose label begins with step, iter, ProfileStep, batch or epoch. "
		   "Their number is that "
		   "in the label, "
		   "else their place in time, from 0." },
	{ "window", "PPERF_SCHEDULE recorded some steps only: figures, wall time, busy and idle "
		    "are of these windows, and "
		    "ranges around them count for their part inside. Steps have the program's "
		    "numbers; warm-up are those "
		    "that the schedule says. outside: what was seen and not recorded; its cost is "
		    "that of one event of "
		    "64, measured, times all, in pperf's own code." },
	{ "critical", "the root with the most of the metric (of a level: with the largest growth), "
		      "there its worst "
		      "instance, and in it the instances that make up at least 1 % of it, the "
		      "largest first, equal "
		      "ones latest first. Smaller ones of one place are a row with their number if "
		      "they come to that "
		      "together, and so are more than four whose names are the same, but for those "
		      "that are three "
		      "times the mean of the others; --min-percent 0 shows each. (backward): all "
		      "that autograd's engine ran in the instance, by the modules whose "
		      "backward it was. Several as one row have the level at the first begin and "
		      "the last end, and as "
		      "difference the sum of theirs." },
	{ "distribution", "20 bins, of equal width, or of equal ratio where the longest took over "
			  "ten times the shortest. On the GPU "
			  "a range has what was launched in an instance and below; instances that "
			  "launched nothing are left out. "
			  "Outliers: over three interquartile ranges (at least 1 % of the median "
			  "each) outside the quartiles. "
			  "Modes: peaks of the histogram of logarithms, smoothed over 2 * IQR / "
			  "cbrt(n), that a valley below 70 % "
			  "of the lower one parts, with at least 5 % of the instances and 5; of "
			  "fewer than 10 instances neither." },
	{ "diagnose", "what a rule finds costs so much at most (up to), or exactly that. Steady: "
		      "in usual steps; where no steps were "
		      "found, from a quarter of the GPUs' span to its end, which is less sure. "
		      "Where usual steps are less than half of "
		      "the time from the first work to the last, rules of shares that find nothing "
		      "look at these steps alone, too (in "
		      "steps A to B). What is the end of one rule is the "
		      "beginning of another: idle moments of 1 ms and more are dead windows, "
		      "shorter ones overhead-bound; kernels "
		      "below 5 us are tiny, not starved. So impacts of different rules still may "
		      "overlap, and are no sum." },
	{ "critical path",
		"from the last moment of all back to what held it up, and so on to the first: of "
		"each call and each work the begin "
		"and the end, held up by the latest of what came before. A call: the one before on "
		"its thread. Its end, if it "
		"waits: the work it waits for. Work: its call's begin, the work before it on its "
		"stream, events its stream was "
		"told to wait for; a launch takes what 5 % of all take, at least; in a graph, "
		"whose inner order is not known, the work of it that ended last. After 16 calls "
		"of one thread in a row another one is taken to have waited for the last of them. "
		"Not known: other waiting "
		"between threads. The default stream waits for others and they for it unless made "
		"with cudaStreamNonBlocking, which no "
		"trace says: taken to be so of work that begins as another stream's ends, asked "
		"for before, with nothing else in "
		"its way, where the trace says which stream is the default one (`default stream`). "
		"Where a file does not name the stream or event of "
		"a wait of the host, it is taken to be for the last work that ended during the "
		"call; of a stream's wait nothing "
		"is taken. More than 20 us from one work to the next are unknown. Of --steps: the "
		"part of the whole run's "
		"path in them." },
	{ "slack, gain", "slack: by how much a call or work could have taken longer, it alone, and "
			 "the end of all would be the same. "
			 "gain: by how much, at most, the end would come sooner if all GPU work of "
			 "the row took no time, its calls returned as soon as "
			 "what they wait for is over, and the rest took what it did (between "
			 "calls, too): another chain is the longest then." },
	{ "diff", "figures of a usual step, where both runs have 5; else of the whole run. p: how "
		  "likely so much of a "
		  "difference is by chance, in steps or instances; Mann-Whitney, a larger variance "
		  "where values are like "
		  "the one before, corrected by Holm's method for all places that were tested. "
		  "Found: p < 0.01 and a "
		  "shift (Hodges-Lehmann) of 1 % at least; of times also 0.05 % of the whole, and "
		  "5 robust deviations "
		  "away from how much a place in the middle changed: runs differ by more than "
		  "their steps show. not "
		  "tested: fewer than 5 values." },
	{ "gate", "compares medians of usual steps (gpu, cpu, wall), means of steps (other flows), "
		  "or whole runs where one "
		  "has fewer than 5; peaks are of the whole run. It names the place with the "
		  "largest growth, or one in it "
		  "that has more than half of that. With 5 usual steps on both sides these are "
		  "tested as diff does, corrected for all "
		  "metrics judged: what is beyond the limit with p of 0.01 or more is noise, and "
		  "passes." },
	{ "roofline", "FLOPs are those of the definition (a product of M x K and K x N: 2 M N K), "
		      "bytes each input read once and each "
		      "output written once: modelled by the sizes of inputs. roof: what would take "
		      "longer at the GPU's peak, "
		      "computing or moving; of roof: that time / the time that the kernels took. "
		      "fp32 multiplies at the rate of "
		      "fp32, unless the kernel's name says tf32. Unknown: no sizes, no formula, a "
		      "type, stride or mask that is "
		      "not in the trace, graphs, or kernels that are missing." },
	{ "left open", "ranges without an end count up to the last record of their thread." },
	{ "parts", "with --steps and --device figures are of that part only; integrity is always "
		   "of the whole trace." },
	{ "method", "correlation (high): CUPTI's id leads from the work to its launch. graph-node "
		    "(high): to the node of a "
		    "graph, and so to the operator that was captured as it. graph-level (low): to "
		    "the graph's launch; the "
		    "operator inside is not known. enclosure (medium): an imported file has no "
		    "such id; a call made where the "
		    "work's External id says. none: no launch, or in no range: unattributed, a "
		    "root of its own." },
	{ "graphs", "below a graph stands what was captured into it, with what the GPU did for it "
		    "in all replays: no CPU "
		    "time, no calls, those are where it was captured. (graph replays): graphs that "
		    "were launched in no "
		    "range, but captured in some." },
	{ "conserved", "attributed + unattributed = all, in whole nanoseconds and bytes; anything "
		       "else is printed, and "
		       "--strict exits with 2." },
	{ "simulated",
		"recorded on pperf's simulated device: counts are right, times are made up." },
};

/* A line, wrapped to the width of the screen. */
static void put_entry(const struct style *style, size_t indent, const char *title, const char *text)
{
	struct paragraph paragraph = { .style = style, .indent = indent };

	paragraph_add(&paragraph, "%s", text);
	paragraph_print(&paragraph, title);
}

/* What follows, whatever is asked about. */
static void help_options(const struct style *style)
{
	output_string(style->out, "\noptions\n");
	command_line_help(style);
	output_char(style->out, '\n');
	put_entry(style, 13, "exit status",
		"0 fine; 1 a difference was found, or a gate failed; 2 not a trace, not readable, "
		"not written, nothing to compare, "
		"or incomplete under --strict; 64 wrong usage");
}

static void help_view(const struct style *style, const struct view *view)
{
	print_line(style, "usage: pperf-report %s %s%s%s [options]\n\n", view->name,
		view->subject ? view->subject : "", view->subject ? " " : "",
		view->traces ? view->traces : "TRACE...");
	put_entry(style, 2, "", view->summary);
	if (*view->columns) {
		output_string(
			style->out, "\ncolumns (-s, --columns); --legend says what each is\n");
		put_entry(style, 2, "", view->columns);
	}
	help_options(style);
}

static void help_all(const struct style *style)
{
	char title[32];

	output_string(style->out,
		"usage: pperf-report [VIEW] TRACE... [options]\n\nShows what a program did, from "
		"the "
		"trace that libpperf.so wrote of it. "
		"A trace named like a view is\ngiven as ./tree. A process of a file that holds "
		"several (Nsight Systems) is FILE#PID.\n\nviews\n");
	for (const struct view *view = view_list; view->name; view++) {
		snprintf(title, sizeof title, "  %s", view->name);
		put_entry(style, 16, title, view->summary);
	}
	help_options(style);
}

static void legend_all(const struct style *style)
{
	char title[40];

	for (size_t i = 0; i < sizeof definitions / sizeof *definitions; i++)
		put_entry(style, 14, definitions[i].title, definitions[i].text);
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
	output_string(style->out, "\nranks (JSON, CSV)\n");
	for (size_t i = 0; i < RANK_COLUMN_COUNT; i++) {
		snprintf(title, sizeof title, "  %s", rank_columns[i].key);
		put_entry(style, 33, title, rank_columns[i].help);
	}
	put_entry(style, 33, "  drift_ppm", "how much faster its clock goes, in millionths");
	put_entry(style, 33, "  aligned_by", "ends of collectives that its clock was aligned by");
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
