/* SPDX-License-Identifier: MIT
 *
 * Lists all columns: key, title in text, unit, function (column_value_NAME), help. The help is what
 * --legend prints, and doc/metrics.md repeats it.
 */
#ifndef PPERF_REPORT_TABLE_COLUMN_LIST_H
#define PPERF_REPORT_TABLE_COLUMN_LIST_H

#define COLUMNS(X)                                                                                 \
	X("id", "", COUNT, id, "row number, from 0")                                               \
	X("parent", "", COUNT, parent, "id of the parent row")                                     \
	X("depth", "", COUNT, depth, "number of ancestor rows")                                    \
	X("name", "name", TEXT, name, "name; in folded labels each number is shown as *")          \
	X("label", "name", TEXT, label,                                                            \
		"name as shown in text: with the number of labels folded into it, or a kernel's "  \
		"grid and block")                                                                  \
	X("kind", "kind", TEXT, kind,                                                              \
		"process, step, range, module, op, backward, optimizer, api, sync, alloc, graph, " \
		"kernel, memcpy, "                                                                 \
		"memset, mark, unattributed")                                                      \
	X("class", "class", TEXT, class, "class of the module")                                    \
	X("section", "section", TEXT, section,                                                     \
		"start/end: a range that may overlap others and cross threads; it owns no GPU "    \
		"work")                                                                            \
	X("path", "path", TEXT, path, "names from the root down to this row")                      \
	X("domain", "domain", TEXT, domain, "NVTX domain, if it is not the default domain")        \
	X("pid", "pid", COUNT, pid, "process id")                                                  \
	X("rank", "rank", COUNT, rank, "rank of the process")                                      \
	X("share", "%", PERCENT, share,                                                            \
		"share of the total, in the metric that rows are ordered by")                      \
	X("calls", "calls", COUNT, calls,                                                          \
		"number of instances: how often it was entered, called or run")                    \
	X("gpu_total_ns", "gpu", TIME, gpu_total,                                                  \
		"GPU time of the kernels, copies and memsets launched in it or below it; a sum "   \
		"over streams, "                                                                   \
		"so concurrent streams add up")                                                    \
	X("gpu_self_ns", "gpu self", TIME, gpu_self,                                               \
		"GPU time launched directly in it; for a kernel, copy, memset or graph: its own "  \
		"time")                                                                            \
	X("gpu_self_again_ns", "repeated", TIME, gpu_self_again,                                   \
		"part of gpu self that other rows count as well: a GPU operation listed under "    \
		"its own name, "                                                                   \
		"or captured graph nodes")                                                         \
	X("gpu_calls", "gpu calls", COUNT, gpu_calls,                                              \
		"number of kernels, copies and memsets in gpu")                                    \
	X("gpu_forward_ns", "forward", TIME, gpu_forward,                                          \
		"part of gpu that is not backward, recompute or optimizer")                        \
	X("gpu_backward_ns", "backward", TIME, gpu_backward,                                       \
		"part of gpu launched by the backward pass")                                       \
	X("gpu_recompute_ns", "recompute", TIME, gpu_recompute,                                    \
		"part of gpu from modules run again during backward (activation checkpointing)")   \
	X("gpu_optimizer_ns", "optimizer", TIME, gpu_optimizer,                                    \
		"part of gpu launched by optimizers")                                              \
	X("cpu_total_ns", "cpu", TIME, cpu_total, "wall time inside it, on its own thread")        \
	X("cpu_self_ns", "cpu self", TIME, cpu_self,                                               \
		"cpu without nested ranges; time in CUDA calls is included")                       \
	X("gpu_self_share", "gpu self %", PERCENT, gpu_self_share,                                 \
		"gpu self as a share of all GPU time")                                             \
	X("gpu_avg_ns", "gpu avg", TIME, gpu_average, "gpu / calls")                               \
	X("cpu_self_share", "cpu self %", PERCENT, cpu_self_share,                                 \
		"cpu self as a share of the time that all "                                        \
		"threads spent in ranges")                                                         \
	X("cpu_avg_ns", "cpu avg", TIME, cpu_average, "cpu / calls")                               \
	X("cpu_self_x_ns", "cpu self x", TIME, cpu_self_x, "cpu self without time in CUDA calls")  \
	X("idle_ns", "idle", TIME, idle,                                                           \
		"time in which the GPU was idle while it was open (between the device's first "    \
		"and last GPU "                                                                    \
		"operation)")                                                                      \
	X("idle_before_ns", "idle before", TIME, idle_before,                                      \
		"GPU idle time that ended with an operation launched in it or below it; all "      \
		"roots together "                                                                  \
		"have all idle time")                                                              \
	X("delay_p50_ns", "lat p50", TIME, delay_p50,                                              \
		"launch-to-start latency, median: from the start of the launch call to the start " \
		"of the GPU "                                                                      \
		"operation; for a graph launch, to its first operation")                           \
	X("delay_p95_ns", "lat p95", TIME, delay_p95, "launch-to-start latency, 95th percentile")  \
	X("measure", "measure", TEXT, measure,                                                     \
		"whether durations are measured on the cpu or the gpu")                            \
	X("from_ns", "from", TIME, bin_from,                                                       \
		"lower bound of the histogram bin or mode (inclusive)")                            \
	X("to_ns", "to", TIME, bin_to,                                                             \
		"upper bound of the histogram bin or mode (exclusive); in the last "               \
		"one, the longest duration")                                                       \
	X("mean_ns", "mean", TIME, mean, "mean over the instances")                                \
	X("p25_ns", "p25", TIME, p25, "25th percentile")                                           \
	X("p75_ns", "p75", TIME, p75, "75th percentile")                                           \
	X("outliers", "outliers", COUNT, outliers,                                                 \
		"instances more than three interquartile ranges above the upper or below the "     \
		"lower quartile")                                                                  \
	X("number", "number", COUNT, number,                                                       \
		"index of the instance in order of start time, from 1")                            \
	X("step", "step", COUNT, step, "number of the step in which it started")                   \
	X("min_ns", "min", TIME, shortest, "shortest instance; for GPU work, its time on the GPU") \
	X("p50_ns", "p50", TIME, p50, "median instance (nearest rank)")                            \
	X("p95_ns", "p95", TIME, p95, "95th percentile of the instances")                          \
	X("p99_ns", "p99", TIME, p99, "99th percentile of the instances")                          \
	X("max_ns", "max", TIME, longest, "longest instance")                                      \
	X("untimed", "untimed", COUNT, untimed,                                                    \
		"GPU operations without timestamps from CUPTI; they count in "                     \
		"calls only")                                                                      \
	X("bytes", "bytes", BYTES, copied_bytes, "bytes copied or set by the GPU")                 \
	X("reserved_delta_bytes", "reserved", BYTES, reserved_delta,                               \
		"change in reserved device memory from start to end, summed over instances (its "  \
		"own thread "                                                                      \
		"and others)")                                                                     \
	X("reserved_peak_bytes", "peak", BYTES, reserved_peak,                                     \
		"highest level of reserved device memory in any instance")                         \
	X("allocated_delta_bytes", "tensors", BYTES, allocated_delta,                              \
		"change in memory allocated by PyTorch's tensors from start to end, summed over "  \
		"instances "                                                                       \
		"(its own thread and others)")                                                     \
	X("allocated_peak_bytes", "tensor peak", BYTES, allocated_peak,                            \
		"highest level of tensor memory in any instance")                                  \
	X("alloc_bytes", "alloc", BYTES, alloc_bytes,                                              \
		"bytes of device memory allocated in it and below")                                \
	X("free_bytes", "free", BYTES, free_bytes,                                                 \
		"of the bytes allocated in it and below: bytes freed "                             \
		"since, by any code")                                                              \
	X("allocs", "allocs", COUNT, allocs, "successful allocations")                             \
	X("frees", "frees", COUNT, frees, "frees")                                                 \
	X("failed", "failed", COUNT, failed, "failed calls; they allocate nothing")                \
	X("tensor_alloc_bytes", "tensor alloc", BYTES, tensor_alloc_bytes,                         \
		"bytes of tensor memory allocated in it and below; part of the device memory "     \
		"that PyTorch "                                                                    \
		"reserves")                                                                        \
	X("tensor_free_bytes", "tensor free", BYTES, tensor_free_bytes,                            \
		"of the tensor bytes allocated in it and below: bytes freed since, by any code")   \
	X("tensor_allocs", "tensor allocs", COUNT, tensor_allocs,                                  \
		"tensor allocations made directly in it")                                          \
	X("tensor_frees", "tensor frees", COUNT, tensor_frees, "tensor frees made directly in it") \
	X("at_oom_bytes", "at OOM", BYTES, at_oom,                                                 \
		"bytes held at the last CUDA out-of-memory error in PyTorch; for a node of the "   \
		"tree: held by "                                                                   \
		"tensors allocated in it and below")                                               \
	X("at_peak_bytes", "at peak", BYTES, at_peak,                                              \
		"bytes held when that kind of memory peaked on that device; for a node of the "    \
		"tree: held by "                                                                   \
		"tensors allocated in it and below")                                               \
	X("held_bytes", "at end", BYTES, held, "bytes held at the end of the trace")               \
	X("most_bytes", "peak", BYTES, held_max, "largest number of bytes held at one time")       \
	X("reserved_at_peak_bytes", "reserved at peak", BYTES, reserved_at_peak,                   \
		"for tensors: bytes reserved by PyTorch's allocator when tensor memory peaked")    \
	X("unused_at_peak_bytes", "unused at peak", BYTES, unused_at_peak,                         \
		"for tensors: reserved bytes that no tensor used at that peak (cached blocks and " \
		"fragmentation)")                                                                  \
	X("outside_at_peak_bytes", "outside at peak", BYTES, outside_at_peak,                      \
		"for tensors: device memory allocated outside PyTorch's allocator at that peak, "  \
		"as far as "                                                                       \
		"the trace shows")                                                                 \
	X("memory_kind", "kind", TEXT, memory_kind,                                                \
		"device, managed, pinned, array ...; only device memory counts as reserved")       \
	X("device", "device", COUNT, device, "number of the GPU")                                  \
	X("stack", "call stack", TEXT, stack,                                                      \
		"native call stack, innermost frame first (PPERF_STACKS)")                         \
	X("source", "source", TEXT, source,                                                        \
		"source line in the program's own files from which its longest instance was "      \
		"first entered "                                                                   \
		"(--sources in text)")                                                             \
	X("grid", "grid", TEXT, grid, "grid: blocks per launch; empty if launches differ")         \
	X("block", "block", TEXT, block, "block: threads per block")                               \
	X("shared_bytes", "shared", BYTES, shared_bytes,                                           \
		"shared memory per block, static and dynamic")                                     \
	X("registers", "regs", COUNT, registers, "registers per thread")                           \
	X("waves_per_sm", "waves", RATIO, waves,                                                   \
		"waves per SM: blocks in the grid / blocks that all SMs can "                      \
		"hold at once")                                                                    \
	X("occupancy_theoretical", "occ", PERCENT, theoretical,                                    \
		"theoretical occupancy: warps that fit on an SM with this launch / the SM's "      \
		"maximum; not "                                                                    \
		"achieved occupancy")                                                              \
	X("occupancy_limit", "limited by", TEXT, limited_by,                                       \
		"resource that limits the number of blocks per SM")                                \
	X("start_ns", "start", TIME, start, "start time since the start of the trace")             \
	X("step", "step", COUNT, computed,                                                         \
		"step number: from its label, else its index in time order, from 0")               \
	X("step_kind", "phase", TEXT, computed,                                                    \
		"training (gradients were computed or an optimizer ran) or "                       \
		"evaluation")                                                                      \
	X("state", "state", TEXT, computed,                                                        \
		"usual (steady state), cold start (the first one, much slower), warm-up (a later " \
		"one), "                                                                           \
		"capture (a CUDA graph was captured in it), unfinished")                           \
	X("outlier", "outlier", TEXT, computed,                                                    \
		"for steady-state steps: slow or fast, if at least 5 % and 5 MAD from the median " \
		"(needs 5 steps)")                                                                 \
	X("allocated_end_bytes", "tensors at end", BYTES, computed,                                \
		"tensor memory at the end of the step")                                            \
	X("reserved_end_bytes", "reserved at end", BYTES, computed,                                \
		"reserved device memory at the end of the step; without records of it, what "      \
		"PyTorch's "                                                                       \
		"allocator reserved")                                                              \
	X("last_ns", "last", TIME, computed,                                                       \
		"end time of its last GPU operation, since the start of the trace")                \
	X("busy_ns", "busy", TIME, computed,                                                       \
		"time in which any of its operations ran: a union, not a sum")                     \
	X("busy_share", "busy %", PERCENT, computed,                                               \
		"busy / time from the device's first GPU operation to "                            \
		"its last")                                                                        \
	X("concurrent_ns", "concurrent", TIME, computed,                                           \
		"busy time during which another stream of the device was busy as well; for a "     \
		"device: at "                                                                      \
		"least two streams were busy")                                                     \
	X("kernels", "kernels", COUNT, computed, "kernels executed")                               \
	X("copies", "copies", COUNT, computed, "copies executed")                                  \
	X("sets", "memsets", COUNT, computed, "memsets executed")                                  \
	X("streams", "streams", COUNT, computed, "streams with GPU work")                          \
	X("stream", "stream", COUNT, computed, "CUPTI's stream number")                            \
	X("threads", "threads", COUNT, computed, "threads that launched work on the stream")       \
	X("thread_ids", "thread ids", TEXT, computed,                                              \
		"kernel thread ids of these threads, the one with most "                           \
		"launches first")                                                                  \
	X("gap_ns", "idle", TIME, computed,                                                        \
		"idle time of the device that ended with an operation launched there")             \
	X("gap_max_ns", "longest", TIME, computed, "longest of these gaps")                        \
	X("gaps", "gaps", COUNT, computed, "number of idle gaps")                                  \
	X("cause", "cause", TEXT, computed,                                                        \
		"launch-bound, synchronisation, allocation, copy, dependency, unknown; see "       \
		"causes in --legend")                                                              \
	X("ended_by", "ended by", TEXT, computed, "GPU operation that ended the gap")              \
	X("blocked_by", "call", TEXT, computed, "call that the gap is attributed to")              \
	X("thread", "thread", COUNT, computed,                                                     \
		"kernel id of the thread that launched that operation")                            \
	X("traffic", "traffic", TEXT, computed, "communication or copies")                         \
	X("hidden_ns", "hidden", TIME, computed,                                                   \
		"part of busy overlapped with computation; for copies: or with communication")     \
	X("exposed_ns", "exposed", TIME, computed,                                                 \
		"part of busy overlapped with nothing; concurrent rows each count it, the device " \
		"counts it once")                                                                  \
	X("flops", "FLOPs", FLOPS, computed,                                                       \
		"floating-point operations by the operator's definition: modelled from input "     \
		"sizes, or as "                                                                    \
		"recorded in the file")                                                            \
	X("flops_per_s", "FLOP/s", FLOP_RATE, computed, "FLOPs / time of its kernels")             \
	X("bytes_per_s", "bytes/s", BYTE_RATE, computed,                                           \
		"bytes / time; for operators bytes are modelled: each input read once, each "      \
		"output written once")                                                             \
	X("intensity", "FLOP/B", RATIO, computed, "arithmetic intensity: FLOPs / bytes")           \
	X("roof", "roof", TEXT, computed, "binding roof on that GPU: compute or memory")           \
	X("roof_share", "of roof", PERCENT, computed,                                              \
		"achieved share of that roof; above 100 % of memory, part of the data came from "  \
		"a cache")                                                                         \
	X("known_share", "known", PERCENT, computed,                                               \
		"share of its time for which FLOPs or bytes are known")                            \
	X("peak_flops_per_s", "peak", FLOP_RATE, computed,                                         \
		"the GPU's peak FLOP/s for that element type; for a device: fp32 without tensor "  \
		"cores")                                                                           \
	X("peak_bytes_per_s", "peak memory", BYTE_RATE, computed,                                  \
		"the GPU's peak memory bandwidth")                                                 \
	X("element_type", "type", TEXT, computed,                                                  \
		"element type; tf32: fp32 data, by the kernel's name")                             \
	X("basis", "basis", TEXT, computed,                                                        \
		"measured; modelled (from input sizes); recorded (FLOPs in the file); type "       \
		"assumed: by "                                                                     \
		"--assume-type. For a device, where its peaks come from: table; table, by SMs; "   \
		"attributes")                                                                      \
	X("kernel", "kernel", TEXT, computed, "the kernel, if a single one ran")                   \
	X("hidden_share", "hidden %", PERCENT, computed, "hidden / busy")                          \
	X("wall_share", "of wall", PERCENT, computed,                                              \
		"cpu / duration of the run; several threads together can exceed 100 %")            \
	X("captured", "captured", COUNT, computed,                                                 \
		"calls captured into a graph, which executed nothing "                             \
		"themselves")                                                                      \
	X("timed_by", "timed by", TEXT, computed,                                                  \
		"record: timed by pperf at the call; cupti: timed by CUPTI "                       \
		"only")                                                                            \
	X("delays", "delays", COUNT, computed,                                                     \
		"GPU operations with a known latency: both call and timestamps are in the trace; " \
		"for a graph "                                                                     \
		"launch, its first operation on each stream")                                      \
	X("delay_total_ns", "latency", TIME, computed,                                             \
		"sum of launch-to-start latencies, waiting in a full queue included")              \
	X("delay_max_ns", "lat max", TIME, computed, "largest launch-to-start latency")            \
	X("early", "early", COUNT, computed,                                                       \
		"operations that start more than 20 us before their launch call, which is "        \
		"impossible; not "                                                                 \
		"counted in delays")                                                               \
	X("outstanding_max", "queue max", COUNT, computed,                                         \
		"largest number of operations launched and not "                                   \
		"yet finished")                                                                    \
	X("outstanding_mean", "queue mean", RATIO, computed,                                       \
		"mean number of operations launched and not yet finished, from the first start "   \
		"to the last end")                                                                 \
	X("queue_empty_ns", "starved", TIME, computed, "idle with nothing queued")                 \
	X("queue_asked_ns", "queued", TIME, computed,                                              \
		"idle with work queued: its launch was in progress, or it waited for an event or " \
		"another stream")                                                                  \
	X("queue_ahead_ns", "ahead", TIME, computed,                                               \
		"busy with more work queued: the host was ahead")                                  \
	X("finding", "finding", TEXT, computed, "diagnose: what is wrong, in one sentence")        \
	X("evidence", "evidence", TEXT, computed, "diagnose: the figures that show it")            \
	X("impact_ns", "impact", TIME, computed, "diagnose: its cost in time; see bound")          \
	X("impact_bytes", "impact", BYTES, computed, "diagnose: its cost in bytes")                \
	X("bound", "bound", TEXT, computed,                                                        \
		"whether the impact is measured (all of it) or an upper bound (at most this much " \
		"can be saved)")                                                                   \
	X("count", "count", COUNT, computed, "diagnose: number of occurrences")                    \
	X("why", "why", TEXT, computed,                                                            \
		"diagnose: what the confidence is based on, or why a rule was not "                \
		"checked")                                                                         \
	X("next", "next", TEXT, computed, "diagnose: what to do about it")                         \
	X("command", "command", TEXT, computed, "diagnose: command that shows it")                 \
	X("path_ns", "on path", TIME, computed,                                                    \
		"time on the critical path; the sum of the path columns that "                     \
		"follow")                                                                          \
	X("path_gpu_ns", "path gpu", TIME, computed,                                               \
		"path time in which kernels, copies and memsets ran")                              \
	X("path_host_ns", "path host", TIME, computed,                                             \
		"path time of a thread between CUDA calls, and in calls that do not wait")         \
	X("path_launch_ns", "path launch", TIME, computed,                                         \
		"path time from the start of a launch call, or the end of what came before, to "   \
		"the start of "                                                                    \
		"the GPU operation")                                                               \
	X("path_sync_ns", "path sync", TIME, computed,                                             \
		"path time in calls that wait, from the end of what they waited for; the whole "   \
		"call if that "                                                                    \
		"is unknown")                                                                      \
	X("path_unknown_ns", "path unknown", TIME, computed,                                       \
		"path time for which the trace has no explanation")                                \
	X("path_segments", "segments", COUNT, computed, "number of segments of the critical path") \
	X("slack_min_ns", "slack min", TIME, computed,                                             \
		"smallest slack of its calls and operations: how much longer one could take "      \
		"without delaying "                                                                \
		"the end; not for waits")                                                          \
	X("slack_p50_ns", "slack p50", TIME, computed, "median slack")                             \
	X("gain_ns", "gain", TIME, computed,                                                       \
		"upper bound on how much sooner the run would end if its GPU work took no time; "  \
		"for the 16 "                                                                      \
		"rows with the most time on the path")                                             \
	X("waits", "waits", COUNT, computed, "calls in which the host waits")                      \
	X("waits_unknown", "waits unknown", COUNT, computed,                                       \
		"waits for which no GPU operation that they "                                      \
		"waited for is known")                                                             \
	X("default_waits", "default stream", COUNT, computed,                                      \
		"operations on or concurrent with the default stream that are assumed to have "    \
		"waited for "                                                                      \
		"another stream: they started as an earlier operation there ended, and nothing "   \
		"else held "                                                                       \
		"them up")                                                                         \
	X("stream_waits", "stream waits", COUNT, computed,                                         \
		"calls that made a stream wait for an event")                                      \
	X("stream_waits_unknown", "stream waits unknown", COUNT, computed,                         \
		"stream waits with an unknown stream, or no known operation before the event")     \
	X("duration_ns", "duration", TIME, duration,                                               \
		"from start to end; for several instances, the sum")                               \
	X("before", "before", USER, before, "level at its start")                                  \
	X("after", "after", USER, after, "level at its end")                                       \
	X("delta", "delta", USER, delta, "after - before")                                         \
	X("value", "value", USER, value, "its amount of the metric")                               \
	X("unit", "unit", TEXT, unit, "unit of before, after, delta and value")                    \
	X("labels", "labels", COUNT, labels, "number of distinct labels folded into the name")     \
	X("members.count", "members", COUNT, members_count,                                        \
		"number of modules folded into the row")                                           \
	X("members.metric", "members by", TEXT, members_metric,                                    \
		"metric that members are compared by: gpu, else cpu")                              \
	X("members.min_ns", "min", TIME, members_min,                                              \
		"time of the fastest member, over all its instances")                              \
	X("members.p50_ns", "median", TIME, members_median, "time of the median member")           \
	X("members.max_ns", "max", TIME, members_max, "time of the slowest member")                \
	X("odd.label", "outlier", TEXT, outlier_label,                                             \
		"outlier among the members: needs 3 members, 1.5 times the median or 2/3 of it, "  \
		"and more "                                                                        \
		"than three times the median member's deviation")                                  \
	X("odd.ns", "outlier time", TIME, outlier_time, "time of the outlier")                     \
	X("odd.calls", "outlier calls", COUNT, outlier_calls, "number of calls of the outlier")    \
	X("spread", "members", TIME, spread, "range from the fastest to the slowest member")       \
	X("ran_elsewhere", "elsewhere", COUNT, elsewhere,                                          \
		"ran in the backward pass for its operator, at another node and time: its cpu "    \
		"time counts in "                                                                  \
		"the cpu of the rows where it ran, not in the rows above it here")                 \
	X("left_open", "open", COUNT, left_open,                                                   \
		"an instance was still open at the end of the trace and is counted up to there")   \
	X("method", "method", TEXT, method,                                                        \
		"how GPU records were matched to their operator: correlation, graph-node (the "    \
		"captured graph "                                                                  \
		"node), graph-level (the graph is known, the operator in it is not), none")        \
	X("confidence", "confidence", TEXT, confidence,                                            \
		"confidence of that match: high, medium, low, none")                               \
	X("provenance", "provenance", TEXT, provenance,                                            \
		"present only where figures are not individual measurements: simulated; counted "  \
		"(an operator "                                                                    \
		"in a trace with PPERF_OPS=totals: CPU time was summed at run time; no min, p50, " \
		"p95 or "                                                                          \
		"worst)")                                                                          \
	X("worst.metric", "worst", TEXT, worst_metric, "metric of the worst instance")             \
	X("worst.label", "worst", TEXT, worst_label, "label of the worst instance")                \
	X("worst.start_ns", "worst at", TIME, worst_start,                                         \
		"start of the worst instance, since the start of "                                 \
		"the trace")                                                                       \
	X("worst.value", "worst value", USER, worst_value,                                         \
		"metric of the worst instance; times and flows only")                              \
	X("worst.before", "worst before", USER, worst_before,                                      \
		"level at its start; memory and counters only")                                    \
	X("worst.after", "worst after", USER, worst_after, "level at its end")                     \
	X("worst.delta", "worst delta", USER, worst_delta, "after - before")

#endif
