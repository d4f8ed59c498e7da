/* SPDX-License-Identifier: MIT
 *
 * Lists all columns: key, title in text, unit, function (column_value_NAME), help. The help is what
 * --legend prints, and doc/metrics.md repeats it.
 */
#ifndef PPERF_REPORT_TABLE_COLUMN_LIST_H
#define PPERF_REPORT_TABLE_COLUMN_LIST_H

#define COLUMNS(X)                                                                                 \
	X("id", "", COUNT, id, "number of the row")                                                \
	X("parent", "", COUNT, parent, "the row it lies in")                                       \
	X("depth", "", COUNT, depth, "rows around it")                                             \
	X("name", "name", TEXT, name, "the name; of folded labels with * for each number")         \
	X("label", "name", TEXT, label,                                                            \
		"the name as text shows it: with the number of labels that fold into it, a "       \
		"kernel's grid and block")                                                         \
	X("kind", "kind", TEXT, kind,                                                              \
		"process, step, range, module, op, backward, optimizer, api, sync, alloc, graph, " \
		"kernel, memcpy, "                                                                 \
		"memset, mark, unattributed")                                                      \
	X("class", "class", TEXT, class, "of a module: its class")                                 \
	X("section", "section", TEXT, section,                                                     \
		"start/end: a range that may overlap others and cross threads; it owns no GPU "    \
		"work")                                                                            \
	X("path", "path", TEXT, path, "the names from the root to it")                             \
	X("domain", "domain", TEXT, domain, "the NVTX domain, if not the default one")             \
	X("pid", "pid", COUNT, pid, "process id")                                                  \
	X("rank", "rank", COUNT, rank, "rank of the process")                                      \
	X("share", "%", PERCENT, share, "part of the whole, of what rows are ordered by")          \
	X("calls", "calls", COUNT, calls, "instances: times it was entered, called, run")          \
	X("gpu_total_ns", "gpu", TIME, gpu_total,                                                  \
		"GPU work (kernels, copies, sets) launched in it and below; a sum over streams")   \
	X("gpu_self_ns", "gpu self", TIME, gpu_self,                                               \
		"GPU work launched directly in it; of a kernel, copy, set or graph: its own")      \
	X("gpu_self_again_ns", "again", TIME, gpu_self_again,                                      \
		"of which gpu self says again what other rows have: GPU work by its name, and "    \
		"what was captured")                                                               \
	X("gpu_calls", "gpu calls", COUNT, gpu_calls, "kernels, copies and sets in gpu_total")     \
	X("gpu_forward_ns", "forward", TIME, gpu_forward,                                          \
		"of gpu_total: what ran neither backward nor as recompute nor in an optimizer")    \
	X("gpu_backward_ns", "backward", TIME, gpu_backward, "of gpu_total: what ran backward")    \
	X("gpu_recompute_ns", "recompute", TIME, gpu_recompute,                                    \
		"of gpu_total: modules that were computed once more while running backward "       \
		"(checkpointing)")                                                                 \
	X("gpu_optimizer_ns", "optimizer", TIME, gpu_optimizer,                                    \
		"of gpu_total: what optimizers launched")                                          \
	X("cpu_total_ns", "cpu", TIME, cpu_total, "wall time inside, on its thread")               \
	X("cpu_self_ns", "cpu self", TIME, cpu_self,                                               \
		"cpu_total without the ranges inside; CUDA calls stay in")                         \
	X("gpu_self_share", "gpu self %", PERCENT, gpu_self_share,                                 \
		"part of all GPU work; of rows of GPU work, their own again")                      \
	X("gpu_avg_ns", "gpu avg", TIME, gpu_average, "gpu / calls")                               \
	X("cpu_self_share", "cpu self %", PERCENT, cpu_self_share,                                 \
		"part of the time of all threads in ranges")                                       \
	X("cpu_avg_ns", "cpu avg", TIME, cpu_average, "cpu / calls")                               \
	X("cpu_self_x_ns", "cpu self x", TIME, cpu_self_x, "cpu_self without the CUDA calls too")  \
	X("idle_ns", "idle", TIME, idle,                                                           \
		"the GPU had nothing to do while it was open (between the device's first and "     \
		"last work)")                                                                      \
	X("idle_before_ns", "idle before", TIME, idle_before,                                      \
		"the GPU had nothing to do until work began that was launched in it and below; "   \
		"of all roots: idle")                                                              \
	X("delay_p50_ns", "delay p50", TIME, delay_p50,                                            \
		"from the call that launched work in it and below to that work's begin on the "    \
		"GPU: the median; of a "                                                           \
		"graph to the first of its work")                                                  \
	X("delay_p95_ns", "delay p95", TIME, delay_p95, "95 of 100 launches waited no longer")     \
	X("measure", "measure", TEXT, measure, "cpu or gpu: what durations are of")                \
	X("from_ns", "from", TIME, bin_from, "a bin or mode: the least duration in it")            \
	X("to_ns", "to", TIME, bin_to,                                                             \
		"the least that is no longer in it; of the last one the longest duration")         \
	X("mean_ns", "mean", TIME, mean, "the mean instance")                                      \
	X("p25_ns", "p25", TIME, p25, "a quarter of the instances took no longer")                 \
	X("p75_ns", "p75", TIME, p75, "three quarters took no longer")                             \
	X("outliers", "outliers", COUNT, outliers,                                                 \
		"instances more than three interquartile ranges above the upper or below the "     \
		"lower quartile")                                                                  \
	X("number", "number", COUNT, number,                                                       \
		"of an instance, in the order in which they began, from 1")                        \
	X("step", "step", COUNT, step, "number of the step in which it began")                     \
	X("min_ns", "min", TIME, shortest, "the shortest instance; of GPU work: on the GPU")       \
	X("p50_ns", "p50", TIME, p50, "the median instance (nearest rank)")                        \
	X("p95_ns", "p95", TIME, p95, "95 of 100 instances took no longer")                        \
	X("p99_ns", "p99", TIME, p99, "99 of 100 instances took no longer")                        \
	X("max_ns", "max", TIME, longest, "the longest instance")                                  \
	X("untimed", "untimed", COUNT, untimed,                                                    \
		"GPU work that CUPTI could not time; it counts in calls only")                     \
	X("bytes", "bytes", BYTES, copied_bytes, "bytes copied or set by the GPU")                 \
	X("reserved_delta_bytes", "reserved", BYTES, reserved_delta,                               \
		"change of the device memory held, from begin to end, summed over instances "      \
		"(self + other threads)")                                                          \
	X("reserved_peak_bytes", "peak", BYTES, reserved_peak,                                     \
		"the highest level of device memory held in any instance")                         \
	X("allocated_delta_bytes", "tensors", BYTES, allocated_delta,                              \
		"change of what PyTorch's tensors hold, from begin to end, summed over instances " \
		"(self + other "                                                                   \
		"threads)")                                                                        \
	X("allocated_peak_bytes", "tensor peak", BYTES, allocated_peak,                            \
		"the most that tensors held in any instance")                                      \
	X("alloc_bytes", "alloc", BYTES, alloc_bytes, "device memory taken in it and below")       \
	X("free_bytes", "free", BYTES, free_bytes,                                                 \
		"of what was taken in it and below: given back since, by whoever")                 \
	X("allocs", "allocs", COUNT, allocs, "allocations that worked")                            \
	X("frees", "frees", COUNT, frees, "releases")                                              \
	X("failed", "failed", COUNT, failed, "calls that failed; they take nothing")               \
	X("tensor_alloc_bytes", "tensor alloc", BYTES, tensor_alloc_bytes,                         \
		"memory that tensors took in it and below: a part of the device memory that "      \
		"PyTorch holds")                                                                   \
	X("tensor_free_bytes", "tensor free", BYTES, tensor_free_bytes,                            \
		"of what tensors took in it and below: given back since, by whoever")              \
	X("tensor_allocs", "tensor allocs", COUNT, tensor_allocs,                                  \
		"times that tensors took memory directly in it")                                   \
	X("tensor_frees", "tensor frees", COUNT, tensor_frees,                                     \
		"times that tensors gave memory back directly in it")                              \
	X("at_oom_bytes", "at OOM", BYTES, at_oom,                                                 \
		"held when PyTorch last ran out of memory; of a place in the tree: by tensors "    \
		"taken in it and below")                                                           \
	X("at_peak_bytes", "at peak", BYTES, at_peak,                                              \
		"held when the memory of that kind and device was at its highest; of a place in "  \
		"the tree: by "                                                                    \
		"tensors taken in it and below")                                                   \
	X("held_bytes", "at end", BYTES, held, "held at the end of the trace")                     \
	X("most_bytes", "most", BYTES, held_max, "the most that was held at one time")             \
	X("reserved_at_peak_bytes", "reserved at peak", BYTES, reserved_at_peak,                   \
		"of tensors: what PyTorch's allocator held when they were at their highest")       \
	X("unused_at_peak_bytes", "unused at peak", BYTES, unused_at_peak,                         \
		"of tensors: what it held then that no tensor used (fragmentation, and what it "   \
		"keeps for later)")                                                                \
	X("outside_at_peak_bytes", "outside at peak", BYTES, outside_at_peak,                      \
		"of tensors: device memory taken past PyTorch's allocator then, as far as the "    \
		"trace has it")                                                                    \
	X("memory_kind", "kind", TEXT, memory_kind,                                                \
		"device, managed, pinned, array ...; only device memory counts as reserved")       \
	X("device", "device", COUNT, device, "number of the GPU")                                  \
	X("stack", "call stack", TEXT, stack, "who called, innermost first (PPERF_STACKS)")        \
	X("source", "source", TEXT, source,                                                        \
		"where in the program's own files its longest instance was first entered "         \
		"(--sources in text)")                                                             \
	X("grid", "grid", TEXT, grid, "blocks of the launch; absent where launches differ")        \
	X("block", "block", TEXT, block, "threads of a block")                                     \
	X("shared_bytes", "shared", BYTES, shared_bytes,                                           \
		"shared memory of a block, static and dynamic")                                    \
	X("registers", "regs", COUNT, registers, "registers of a thread")                          \
	X("waves_per_sm", "waves", RATIO, waves,                                                   \
		"blocks of the grid / blocks that all SMs hold at once")                           \
	X("occupancy_theoretical", "occ", PERCENT, theoretical,                                    \
		"warps that the launch lets an SM hold / warps that it could hold; not what was "  \
		"reached")                                                                         \
	X("occupancy_limit", "limited by", TEXT, limited_by,                                       \
		"what keeps further blocks off the SM")                                            \
	X("start_ns", "start", TIME, start, "when it began, since the trace's start")              \
	X("step", "step", COUNT, computed,                                                         \
		"the step's number: in its own label, else its place in time, from 0")             \
	X("step_kind", "does", TEXT, computed,                                                     \
		"training (gradients were computed or an optimizer ran), evaluation")              \
	X("state", "state", TEXT, computed,                                                        \
		"usual, cold start (the first one, much slower), warm-up (not the first), "        \
		"capture (a CUDA graph was made in "                                               \
		"it), unfinished")                                                                 \
	X("outlier", "outlier", TEXT, computed,                                                    \
		"of a usual step: slow or fast, off the median by 5 % and by 5 robust deviations " \
		"(from 5 steps on)")                                                               \
	X("allocated_end_bytes", "tensors at end", BYTES, computed,                                \
		"what tensors hold as a step ends")                                                \
	X("reserved_end_bytes", "reserved at end", BYTES, computed,                                \
		"device memory held as a step ends; without a record of it, what PyTorch's "       \
		"allocator holds")                                                                 \
	X("last_ns", "last", TIME, computed, "when its last work ended, since the trace's start")  \
	X("busy_ns", "busy", TIME, computed, "any of its work was running: a union, not a sum")    \
	X("busy_share", "busy %", PERCENT, computed,                                               \
		"busy / from the device's first work to its last")                                 \
	X("concurrent_ns", "beside others", TIME, computed,                                        \
		"busy while another stream of the device was, too; of a device: at least two of "  \
		"its streams were")                                                                \
	X("kernels", "kernels", COUNT, computed, "kernels that ran")                               \
	X("copies", "copies", COUNT, computed, "copies that ran")                                  \
	X("sets", "sets", COUNT, computed, "memsets that ran")                                     \
	X("streams", "streams", COUNT, computed, "streams with work")                              \
	X("stream", "stream", COUNT, computed, "CUPTI's number of the stream")                     \
	X("threads", "threads", COUNT, computed, "threads that put work there")                    \
	X("thread_ids", "by", TEXT, computed,                                                      \
		"these threads, as the kernel numbers them; who did most first")                   \
	X("gap_ns", "idle", TIME, computed,                                                        \
		"the device had nothing to do, until work began that was asked for there")         \
	X("gap_max_ns", "longest", TIME, computed, "the longest of these gaps")                    \
	X("gaps", "gaps", COUNT, computed, "stretches in which it had nothing to do")              \
	X("cause", "cause", TEXT, computed,                                                        \
		"launch-bound, synchronisation, allocation, copy, dependency, unknown: see "       \
		"idle's causes")                                                                   \
	X("ended_by", "ended by", TEXT, computed, "the work that began then")                      \
	X("blocked_by", "call", TEXT, computed, "the call that the gap is put down to")            \
	X("thread", "thread", COUNT, computed,                                                     \
		"who asked for that work: the kernel's number of the thread")                      \
	X("traffic", "traffic", TEXT, computed, "communication or copies")                         \
	X("hidden_ns", "hidden", TIME, computed,                                                   \
		"of busy: while the device computed; of copies: or communicated")                  \
	X("exposed_ns", "exposed", TIME, computed,                                                 \
		"the rest of busy; of places that do so at once it is each one's, of the device "  \
		"it counts once")                                                                  \
	X("flops", "FLOPs", FLOPS, computed,                                                       \
		"what its calls had to compute, by their definition: modelled by the sizes of "    \
		"inputs, or as the file says")                                                     \
	X("flops_per_s", "FLOP/s", FLOP_RATE, computed,                                            \
		"the same in the time that its kernels ran")                                       \
	X("bytes_per_s", "bytes/s", BYTE_RATE, computed,                                           \
		"bytes in the time that it ran; of operators bytes are modelled: inputs read "     \
		"once, outputs written once")                                                      \
	X("intensity", "FLOP/B", RATIO, computed, "arithmetic intensity: FLOPs / bytes")           \
	X("roof", "roof", TEXT, computed, "what would bind it on that GPU: compute or memory")     \
	X("roof_share", "of roof", PERCENT, computed,                                              \
		"what it reached of that. More than 100 % of memory: some of it came out of a "    \
		"cache")                                                                           \
	X("known_share", "known", PERCENT, computed,                                               \
		"what of its time FLOPs or bytes are known of")                                    \
	X("peak_flops_per_s", "peak", FLOP_RATE, computed,                                         \
		"what the GPU could do with numbers of that type; of a device: fp32, no products " \
		"of matrices")                                                                     \
	X("peak_bytes_per_s", "peak memory", BYTE_RATE, computed,                                  \
		"what the GPU's memory could do")                                                  \
	X("element_type", "type", TEXT, computed,                                                  \
		"of the numbers; tf32: of fp32 by the kernel's name")                              \
	X("basis", "basis", TEXT, computed,                                                        \
		"measured; modelled (by sizes of inputs); recorded (FLOPs that the file has); "    \
		"type assumed: by "                                                                \
		"--assume-type. Of a device, its peaks: table; table, by SMs; attributes")         \
	X("kernel", "kernel", TEXT, computed, "the kernel that did it, if all was one")            \
	X("hidden_share", "hidden %", PERCENT, computed, "hidden / busy")                          \
	X("wall_share", "of wall", PERCENT, computed,                                              \
		"cpu / the whole time; of several threads together it can be more than 100 %")     \
	X("captured", "captured", COUNT, computed,                                                 \
		"calls that made a node of a graph, and nothing ran")                              \
	X("timed_by", "timed by", TEXT, computed,                                                  \
		"record: as the call was made; cupti: by CUPTI alone")                             \
	X("delays", "delays", COUNT, computed,                                                     \
		"work whose delay is known: call and times are; of a graph the first work on "     \
		"each stream")                                                                     \
	X("delay_total_ns", "delay", TIME, computed,                                               \
		"from the call that asked for work to its begin on the GPU, in sum: what waits "   \
		"in a full queue, too")                                                            \
	X("delay_max_ns", "delay max", TIME, computed, "the longest of these")                     \
	X("early", "early", COUNT, computed,                                                       \
		"work that began clearly before its call, which cannot be; in no delay (by up to " \
		"20 us: delay 0)")                                                                 \
	X("outstanding_max", "queue max", COUNT, computed,                                         \
		"the most work that was asked for and had not ended")                              \
	X("outstanding_mean", "queue mean", RATIO, computed,                                       \
		"the same on average, from the first work's begin to the last one's end")          \
	X("queue_empty_ns", "starved", TIME, computed, "idle, and nothing was asked for")          \
	X("queue_asked_ns", "asked", TIME, computed,                                               \
		"idle, and something was asked for: its launch was on the way, or it waited for "  \
		"something else")                                                                  \
	X("queue_ahead_ns", "ahead", TIME, computed,                                               \
		"busy, and more was asked for: the host was ahead")                                \
	X("finding", "finding", TEXT, computed, "diagnose: what is the matter, a sentence")        \
	X("evidence", "evidence", TEXT, computed, "diagnose: the figures that say so")             \
	X("impact_ns", "impact", TIME, computed, "diagnose: what it costs; see bound")             \
	X("impact_bytes", "impact", BYTES, computed, "diagnose: the bytes that it is about")       \
	X("bound", "bound", TEXT, computed,                                                        \
		"of the impact: measured (it is all of it), upper bound (so much can be won at "   \
		"most)")                                                                           \
	X("count", "count", COUNT, computed, "diagnose: how many there are of it")                 \
	X("why", "why", TEXT, computed,                                                            \
		"diagnose: what the confidence rests on; what a rule that was not checked lacks")  \
	X("next", "next", TEXT, computed, "diagnose: what to do")                                  \
	X("command", "command", TEXT, computed, "diagnose: what shows it")                         \
	X("path_ns", "on path", TIME, computed,                                                    \
		"on the critical path; the parts below are together that")                         \
	X("path_gpu_ns", "path gpu", TIME, computed, "of it: kernels, copies and memsets at work") \
	X("path_host_ns", "path host", TIME, computed,                                             \
		"of it: a thread between calls, and in calls that wait for nothing")               \
	X("path_launch_ns", "path launch", TIME, computed,                                         \
		"of it: until work began, from the begin of its call or the end of what it came "  \
		"after")                                                                           \
	X("path_sync_ns", "path sync", TIME, computed,                                             \
		"of it: calls that wait, from the end of what they waited for; all of them where " \
		"that is not known")                                                               \
	X("path_unknown_ns", "path unknown", TIME, computed,                                       \
		"of it: nothing in the trace says what happened")                                  \
	X("path_segments", "pieces", COUNT, computed, "pieces of the critical path")               \
	X("slack_min_ns", "slack min", TIME, computed,                                             \
		"the least that one of its calls and works could take longer and the end would "   \
		"be the same; not of waits")                                                       \
	X("slack_p50_ns", "slack p50", TIME, computed, "the median of these")                      \
	X("gain_ns", "gain", TIME, computed,                                                       \
		"by how much, at most, all would end sooner if its work on GPUs took no time; of " \
		"the 16 with most of "                                                             \
		"it on the path")                                                                  \
	X("waits", "waits", COUNT, computed, "calls in which the host waits")                      \
	X("waits_unknown", "waits unknown", COUNT, computed,                                       \
		"of these: no work is known that they waited for")                                 \
	X("default_waits", "default stream", COUNT, computed,                                      \
		"work on or beside the default stream that is taken to have waited for another "   \
		"stream's: it began as "                                                           \
		"that ended, which was asked for before, and nothing else held it up")             \
	X("stream_waits", "stream waits", COUNT, computed,                                         \
		"calls that made a stream wait for an event")                                      \
	X("stream_waits_unknown", "stream waits unknown", COUNT, computed,                         \
		"of these: the stream, or the work before the event, is not known")                \
	X("duration_ns", "duration", TIME, duration,                                               \
		"from its begin to its end; of several, the sum")                                  \
	X("before", "before", USER, before, "the level when it began")                             \
	X("after", "after", USER, after, "the level when it ended")                                \
	X("delta", "delta", USER, delta, "after - before")                                         \
	X("value", "value", USER, value, "what it has of the metric")                              \
	X("unit", "unit", TEXT, unit, "of before, after, delta, value")                            \
	X("labels", "labels", COUNT, labels, "distinct labels that fold into the name")            \
	X("members.count", "members", COUNT, members_count, "modules that fold into the place")    \
	X("members.metric", "members by", TEXT, members_metric,                                    \
		"what they are compared in: gpu, or else cpu")                                     \
	X("members.min_ns", "least", TIME, members_min,                                            \
		"the member that took least, in all of its instances")                             \
	X("members.p50_ns", "median", TIME, members_median, "the median member")                   \
	X("members.max_ns", "most", TIME, members_max, "the member that took most")                \
	X("odd.label", "odd", TEXT, outlier_label,                                                 \
		"the member that is clearly out of line: at least 3 members, 1.5 times the "       \
		"median or 2/3 of it, and "                                                        \
		"more than three times as far off as the median member")                           \
	X("odd.ns", "odd", TIME, outlier_time, "what it took")                                     \
	X("odd.calls", "odd calls", COUNT, outlier_calls, "how often it was called")               \
	X("spread", "members", TIME, spread, "the least and the most that one member took")        \
	X("ran_elsewhere", "elsewhere", COUNT, elsewhere,                                          \
		"it ran backward for its operator, at another place and time: its cpu time is in " \
		"the cpu_total of "                                                                \
		"the rows where it ran, and in that of no row above it here")                      \
	X("left_open", "open", COUNT, left_open,                                                   \
		"an instance was still open at the end of the trace, and counts up to there")      \
	X("method", "method", TEXT, method,                                                        \
		"how the GPU's record found its operator: correlation, graph-node (of a graph, "   \
		"what was captured), "                                                             \
		"graph-level (the graph is known, the operator in it not), none")                  \
	X("confidence", "confidence", TEXT, confidence, "high, medium, low, none")                 \
	X("provenance", "provenance", TEXT, provenance,                                            \
		"only where figures are not measured one by one: simulated; counted (of an "       \
		"operator in a trace of "                                                          \
		"PPERF_OPS=totals: its CPU time was added up in the program; no min, p50, p95 or " \
		"worst)")                                                                          \
	X("worst.metric", "worst", TEXT, worst_metric, "what the worst instance is worst in")      \
	X("worst.label", "worst", TEXT, worst_label, "its own label")                              \
	X("worst.start_ns", "worst at", TIME, worst_start,                                         \
		"when it began, since the trace's start")                                          \
	X("worst.value", "worst value", USER, worst_value,                                         \
		"how much of the metric; flows and times only")                                    \
	X("worst.before", "worst before", USER, worst_before, "levels only: when it began")        \
	X("worst.after", "worst after", USER, worst_after, "when it ended")                        \
	X("worst.delta", "worst delta", USER, worst_delta, "after - before")

#endif
