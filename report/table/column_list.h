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
	X("name", "name", TEXT, name, "name of the row; in folded labels each number is a *")      \
	X("label", "name", TEXT, label,                                                            \
		"name as printed in text: with the number of folded labels and a kernel's grid "   \
		"and block")                                                                       \
	X("kind", "kind", TEXT, kind,                                                              \
		"process, step, section, range, module, op, backward, optimizer, api, sync, "      \
		"alloc, graph, kernel, memcpy, memset, mark, unattributed, or a kind of the view") \
	X("class", "class", TEXT, class, "class of the module")                                    \
	X("section", "section", TEXT, section,                                                     \
		"start/end for NVTX start/end ranges, which may overlap, cross threads and own "   \
		"no GPU work")                                                                     \
	X("path", "path", TEXT, path, "call path: the names from the root to the node")            \
	X("domain", "domain", TEXT, domain, "NVTX domain, if not the default one")                 \
	X("pid", "pid", ID, pid, "process id")                                                     \
	X("rank", "rank", ID, rank, "rank of the process")                                         \
	X("share", "%", PERCENT, share, "fraction of the total of the figure that ranks the rows") \
	X("calls", "calls", COUNT, calls,                                                          \
		"number of instances: times it was entered, called or run")                        \
	X("gpu_total_ns", "gpu", TIME, gpu_total,                                                  \
		"GPU time of the kernels, copies and memsets launched in the node and below, "     \
		"summed over streams")                                                             \
	X("gpu_self_ns", "gpu self", TIME, gpu_self,                                               \
		"GPU time of work launched directly in the node; of a kernel, copy, memset or "    \
		"graph: its own")                                                                  \
	X("gpu_self_again_ns", "repeated", TIME, gpu_self_again,                                   \
		"part of gpu_self_ns that other rows count as well: GPU work by its name, and "    \
		"captured work")                                                                   \
	X("gpu_calls", "gpu calls", COUNT, gpu_calls,                                              \
		"number of kernels, copies and memsets in gpu_total_ns")                           \
	X("gpu_forward_ns", "forward", TIME, gpu_forward,                                          \
		"part of gpu_total_ns: neither backward nor recompute nor optimizer")              \
	X("gpu_backward_ns", "backward", TIME, gpu_backward,                                       \
		"part of gpu_total_ns: backward pass")                                             \
	X("gpu_recompute_ns", "recompute", TIME, gpu_recompute,                                    \
		"part of gpu_total_ns: computed again in the backward pass (checkpointing)")       \
	X("gpu_optimizer_ns", "optimizer", TIME, gpu_optimizer,                                    \
		"part of gpu_total_ns: optimizers")                                                \
	X("cpu_total_ns", "cpu", TIME, cpu_total, "wall time in the node, on its thread")          \
	X("cpu_self_ns", "cpu self", TIME, cpu_self,                                               \
		"wall time minus child ranges; CUDA calls stay in")                                \
	X("gpu_self_share", "gpu self %", PERCENT, gpu_self_share,                                 \
		"fraction of the GPU time of the trace that is gpu_self_ns")                       \
	X("gpu_avg_ns", "gpu avg", TIME, gpu_average, "GPU time per call")                         \
	X("cpu_self_share", "cpu self %", PERCENT, cpu_self_share,                                 \
		"fraction of the time that all threads spent in ranges")                           \
	X("cpu_avg_ns", "cpu avg", TIME, cpu_average, "wall time per call")                        \
	X("cpu_self_x_ns", "cpu self x", TIME, cpu_self_x,                                         \
		"wall time minus child ranges and minus CUDA calls")                               \
	X("idle_ns", "idle", TIME, idle,                                                           \
		"GPU idle time while an instance was open, between the device's first and last "   \
		"GPU work")                                                                        \
	X("idle_before_ns", "idle before", TIME, idle_before,                                      \
		"GPU idle time that ended when GPU work launched in the node or below it "         \
		"started; over all "                                                               \
		"roots: all idle time")                                                            \
	X("delay_p50_ns", "lat p50", TIME, delay_p50,                                              \
		"launch-to-start latency, median: from the start of the launching call to the "    \
		"start of its work")                                                               \
	X("delay_p95_ns", "lat p95", TIME, delay_p95, "launch-to-start latency, 95th percentile")  \
	X("measure", "measure", TEXT, measure, "what the durations are of: cpu or gpu")            \
	X("from_ns", "from", TIME, bin_from, "lower bound of the bin or mode, which it includes")  \
	X("to_ns", "to", TIME, bin_to,                                                             \
		"upper bound of the bin or mode, which it excludes; of the last bin: the longest " \
		"duration")                                                                        \
	X("mean_ns", "mean", TIME, mean, "mean duration")                                          \
	X("p25_ns", "p25", TIME, p25, "first quartile of the durations")                           \
	X("p75_ns", "p75", TIME, p75, "third quartile of the durations")                           \
	X("outliers", "outliers", COUNT, outliers,                                                 \
		"instances over 3 interquartile ranges above the third or below the first "        \
		"quartile")                                                                        \
	X("number", "number", COUNT, number,                                                       \
		"number of the instance, in the order of their starts, from 1")                    \
	X("step", "step", ID, step,                                                                \
		"number of the step, or of the step in which the instance started")                \
	X("min_ns", "min", TIME, shortest, "shortest instance; of GPU work: on the GPU")           \
	X("p50_ns", "p50", TIME, p50, "median instance (nearest rank)")                            \
	X("p95_ns", "p95", TIME, p95, "95th percentile (nearest rank)")                            \
	X("p99_ns", "p99", TIME, p99, "99th percentile (nearest rank)")                            \
	X("max_ns", "max", TIME, longest, "longest instance")                                      \
	X("untimed", "untimed", COUNT, untimed,                                                    \
		"GPU operations that CUPTI reported without times; they count in calls only")      \
	X("bytes", "bytes", BYTES, copied_bytes,                                                   \
		"bytes copied or set by the GPU; of collectives: of one rank; of operators: "      \
		"modelled; of memory: its size")                                                   \
	X("reserved_delta_bytes", "reserved", BYTES, reserved_delta,                               \
		"change of device memory held, from start to end, summed over instances (all "     \
		"threads)")                                                                        \
	X("reserved_peak_bytes", "peak", BYTES, reserved_peak,                                     \
		"peak of device memory held in any instance")                                      \
	X("allocated_delta_bytes", "tensors", BYTES, allocated_delta,                              \
		"change of tensor memory, from start to end, summed over instances (all threads)") \
	X("allocated_peak_bytes", "tensor peak", BYTES, allocated_peak,                            \
		"peak of tensor memory in any instance")                                           \
	X("alloc_bytes", "alloc", BYTES, alloc_bytes,                                              \
		"device memory allocated in the node and below; in memory: of the row's kind")     \
	X("free_bytes", "free", BYTES, free_bytes,                                                 \
		"part of alloc_bytes that was freed later, wherever that was")                     \
	X("allocs", "allocs", COUNT, allocs, "successful allocations")                             \
	X("frees", "frees", COUNT, frees, "successful frees")                                      \
	X("failed", "failed", COUNT, failed, "failed calls; they allocate nothing")                \
	X("tensor_alloc_bytes", "tensor alloc", BYTES, tensor_alloc_bytes,                         \
		"tensor memory allocated in the node and below, from PyTorch's caching allocator") \
	X("tensor_free_bytes", "tensor free", BYTES, tensor_free_bytes,                            \
		"part of tensor_alloc_bytes that was freed later, wherever that was")              \
	X("tensor_allocs", "tensor allocs", COUNT, tensor_allocs,                                  \
		"tensor allocations directly in the node")                                         \
	X("tensor_frees", "tensor frees", COUNT, tensor_frees,                                     \
		"tensor frees directly in the node")                                               \
	X("at_oom_bytes", "at OOM", BYTES, at_oom,                                                 \
		"bytes live when PyTorch last ran out of memory; of a node: tensors allocated in " \
		"it and below")                                                                    \
	X("at_peak_bytes", "at peak", BYTES, at_peak,                                              \
		"bytes live at the peak of that kind and device; of a node: tensors allocated in " \
		"it and below")                                                                    \
	X("held_bytes", "at end", BYTES, held,                                                     \
		"bytes live at the end: of the last step, else of the last operator or call")      \
	X("most_bytes", "peak", BYTES, held_max, "largest number of bytes live at one time")       \
	X("peak_ns", "peak at", TIME, peak_time,                                                   \
		"when that kind and device held most, since the start of the trace")               \
	X("reserved_at_peak_bytes", "reserved at peak", BYTES, reserved_at_peak,                   \
		"of tensors: bytes reserved by PyTorch's allocator when tensors peaked")           \
	X("unused_at_peak_bytes", "unused at peak", BYTES, unused_at_peak,                         \
		"of tensors: reserved bytes that no tensor used at that time (fragmentation and "  \
		"cache)")                                                                          \
	X("outside_at_peak_bytes", "outside at peak", BYTES, outside_at_peak,                      \
		"of tensors: device memory allocated outside PyTorch's allocator at that time, "   \
		"as far as recorded")                                                              \
	X("growth_bytes", "per step", BYTES, computed,                                             \
		"bytes that each step leaves allocated, after the first third of the steps "       \
		"(median slope, Theil-Sen); without steps: each fifth of the run")                 \
	X("growth_share", "of growth", PERCENT, computed,                                          \
		"growth_bytes of the call path as a fraction of that of its kind of memory")       \
	X("left_bytes", "left", BYTES, computed, "bytes that steps left allocated at the end")     \
	X("grown_steps", "steps", COUNT, computed, "late steps that left something allocated")     \
	X("late_steps", "late steps", COUNT, computed,                                             \
		"steps after the first third, without the last one")                               \
	X("p_value", "p", PERCENT, computed,                                                       \
		"how likely as many late steps leave something by chance (sign test)")             \
	X("growth_cause", "cause", TEXT, computed,                                                 \
		"why it grows: graph (outputs that autograd keeps), scalar (one a step, which "    \
		"keeps its graph), pinned, managed, CUDA call, or program (the program keeps it)") \
	X("line", "line", TEXT, computed,                                                          \
		"the program's innermost source line or function of the allocation "               \
		"(PPERF_PYSTACKS, PPERF_STACKS)")                                                  \
	X("class_share", "of memory", PERCENT, computed,                                           \
		"fraction of the bytes of its kind of memory that lived as long")                  \
	X("memory_kind", "kind", TEXT, memory_kind,                                                \
		"device, managed, pinned, array, tensor or other; only device memory counts as "   \
		"reserved")                                                                        \
	X("device", "device", ID, device, "number of the GPU")                                     \
	X("stack", "call stack", TEXT, stack, "call stack, innermost frame first (PPERF_STACKS)")  \
	X("source", "source", TEXT, source,                                                        \
		"place in the user's files where the node of the longest instance was first "      \
		"entered (--sources in text)")                                                     \
	X("grid", "grid", TEXT, grid, "grid size in blocks; absent where launches differ")         \
	X("block", "block", TEXT, block, "block size in threads")                                  \
	X("shared_bytes", "shared", BYTES, shared_bytes,                                           \
		"shared memory of a block, static and dynamic")                                    \
	X("registers", "regs", COUNT, registers, "registers of a thread")                          \
	X("waves_per_sm", "waves", RATIO, waves,                                                   \
		"blocks of the grid / blocks resident on all SMs at once")                         \
	X("occupancy_theoretical", "occ", PERCENT, theoretical,                                    \
		"warps resident by the launch configuration / warps that fit on an SM; not the "   \
		"achieved occupancy")                                                              \
	X("occupancy_limit", "limited by", TEXT, limited_by, "resource that limits the occupancy") \
	X("start_ns", "start", TIME, start, "start, in time since the start of the trace")         \
	X("step_gpu_ns", "on gpu", TIME, computed,                                                 \
		"time of the step on the GPU, where the host is more than half a step ahead: "     \
		"from the first GPU work launched in it to that of the next step")                 \
	X("step_ahead_ns", "host ahead", TIME, computed,                                           \
		"from the begin of the step on the host to its first GPU work, where the host is " \
		"more than half a step ahead")                                                     \
	X("step_kind", "phase", TEXT, computed,                                                    \
		"phase: training (gradients were computed or an optimizer ran) or evaluation")     \
	X("state", "state", TEXT, computed,                                                        \
		"usual (steady state), cold start (slow first step), warm-up, capture (a CUDA "    \
		"graph was captured), unfinished, recording edge (the recording begins or ends "   \
		"in it)")                                                                          \
	X("outlier", "outlier", TEXT, computed,                                                    \
		"slow or fast: a steady-state step off the median by 5 % and by 5 robust "         \
		"deviations (from 5 steps on)")                                                    \
	X("allocated_end_bytes", "tensors at end", BYTES, computed,                                \
		"tensor memory at the end of the step")                                            \
	X("reserved_end_bytes", "reserved at end", BYTES, computed,                                \
		"device memory at the end of the step; if not recorded, what PyTorch's allocator " \
		"reserves")                                                                        \
	X("counter_end", "level at end", USER, computed,                                           \
		"level of the program's counter (-m NAME) at the end of the step")                 \
	X("counter_peak", "level peak", USER, computed,                                            \
		"highest level of the program's counter (-m NAME) in the step")                    \
	X("last_ns", "last", TIME, computed,                                                       \
		"end of the last GPU work, in time since the start of the trace")                  \
	X("busy_ns", "busy", TIME, computed,                                                       \
		"time in which any of its GPU work ran: a union, not a sum")                       \
	X("busy_share", "busy %", PERCENT, computed,                                               \
		"busy time / time from the device's first GPU work to its last")                   \
	X("concurrent_ns", "concurrent", TIME, computed,                                           \
		"busy time in which another stream of the device was busy; of a device: at least " \
		"two of its streams")                                                              \
	X("kernels", "kernels", COUNT, computed, "kernels that ran")                               \
	X("copies", "copies", COUNT, computed, "copies that ran")                                  \
	X("sets", "memsets", COUNT, computed, "memsets that ran")                                  \
	X("streams", "streams", COUNT, computed, "streams with GPU work")                          \
	X("stream", "stream", ID, computed, "stream id of CUPTI")                                  \
	X("threads", "threads", COUNT, computed, "threads that launched work there")               \
	X("thread_ids", "thread ids", TEXT, computed,                                              \
		"operating-system ids of these threads, most launches first")                      \
	X("gap_ns", "idle", TIME, computed,                                                        \
		"idle time of the device; of a call path: before the work that it launched")       \
	X("unknown_ns", "not recorded", TIME, computed,                                            \
		"time of a device that is neither busy nor idle because records are missing: "     \
		"inside CUDA graphs, and while another profiler used CUPTI")                       \
	X("gap_max_ns", "longest", TIME, computed, "longest of these gaps")                        \
	X("gaps", "gaps", COUNT, computed,                                                         \
		"number of idle gaps; of a cause: of their parts with this cause; of "             \
		"memory: of free parts of segments")                                               \
	X("cause", "cause", TEXT, computed,                                                        \
		"cause of the idle time: launch-bound, host-bound, data loading, compilation, "    \
		"first calls, synchronisation, allocation, copy, launch "                          \
		"latency, gap between kernels, event wait, unexplained wait or unknown")           \
	X("ended_by", "ended by", TEXT, computed, "GPU work that ended the gap")                   \
	X("blocked_by", "call", TEXT, computed,                                                    \
		"CUDA call, or range of the host, that the gap is attributed to")                  \
	X("host_call", "host in", TEXT, computed,                                                  \
		"CUDA call that the launching thread was in for half or more of a wait")           \
	X("waits_for", "waits for", TEXT, computed,                                                \
		"what GPU work behind cudaStreamWaitEvent waits for, the more likely first: the "  \
		"event, or earlier work of its stream that is not in the trace")                   \
	X("cpu_sampled_ns", "self sampled", TIME, cpu_sampled,                                     \
		"CPU time by samples of the threads, without what is nested inside or called")     \
	X("cpu_sampled_share", "%", PERCENT, cpu_sampled_share,                                    \
		"fraction of all sampled CPU time; without times (imported samples) of all "       \
		"samples")                                                                         \
	X("cpu_sampled_error_ns", "+- 95 %", TIME, cpu_sampled_error,                              \
		"half of the 95 % confidence interval of cpu_sampled_ns, which the number of "     \
		"samples allows")                                                                  \
	X("cpu_sampled_total_ns", "cpu sampled", TIME, cpu_sampled_total,                          \
		"CPU time by samples, with what is nested inside or called")                       \
	X("waits_for_core_ns", "waits for core", TIME, waits_for_core,                             \
		"time by samples in which a thread could run, but no core was free; with what is " \
		"nested inside or called")                                                         \
	X("blocked_ns", "blocked", TIME, blocked,                                                  \
		"time by samples in which a thread waited in the kernel; with what is nested "     \
		"inside or called")                                                                \
	X("samples", "CPU samples", COUNT, samples,                                                \
		"CPU samples in it and in nothing inside it; in idle: those of the launching "     \
		"thread in these gaps")                                                            \
	X("sample_share", "of samples", PERCENT, computed,                                         \
		"fraction of the CPU samples in the range, or outside of all ranges and calls, "   \
		"of the row above")                                                                \
	X("module", "module", TEXT, function_module,                                               \
		"program, library or Python file that has the sampled function")                   \
	X("thread", "thread", ID, computed,                                                        \
		"operating-system id of the thread that launched that work or has that step")      \
	X("traffic", "traffic", TEXT, computed, "communication or copies")                         \
	X("message_bytes_per_s", "rate", BYTE_RATE, computed,                                      \
		"bytes / GPU time of the copies and collectives whose size is known; a "           \
		"collective's time includes waiting for other ranks")                              \
	X("bus_bytes_per_s", "bus rate", BYTE_RATE, computed,                                      \
		"modelled: bus bandwidth of collectives, by the formulas of nccl-tests")           \
	X("hidden_ns", "hidden", TIME, computed,                                                   \
		"part of busy_ns in which the device computed; of copies: computed or "            \
		"communicated")                                                                    \
	X("exposed_ns", "exposed", TIME, computed,                                                 \
		"part of busy_ns that is not hidden; nodes that overlap each count it, the "       \
		"device counts it once")                                                           \
	X("flops", "FLOPs", FLOPS, computed,                                                       \
		"FLOPs of the calls by definition: modelled from input sizes, or recorded in the " \
		"file")                                                                            \
	X("flops_per_s", "FLOP/s", FLOP_RATE, computed, "FLOPs / GPU time of the kernels")         \
	X("bytes_per_s", "bytes/s", BYTE_RATE, computed,                                           \
		"bytes / GPU time; bytes of operators are modelled: each input read once, each "   \
		"output written once")                                                             \
	X("intensity", "FLOP/B", RATIO, computed, "arithmetic intensity: FLOPs / bytes")           \
	X("roof", "roof", TEXT, computed,                                                          \
		"bound of the roofline model on that GPU: compute or memory")                      \
	X("roof_share", "of roof", PERCENT, computed,                                              \
		"fraction of that bound achieved; above 100 % of memory: part came out of a "      \
		"cache")                                                                           \
	X("known_share", "known", PERCENT, computed,                                               \
		"fraction of the device's GPU time with known FLOPs or bytes")                     \
	X("peak_flops_per_s", "peak", FLOP_RATE, computed,                                         \
		"peak FLOP rate of the GPU for that type; of a device: fp32 without matrix units") \
	X("peak_bytes_per_s", "peak memory", BYTE_RATE, computed,                                  \
		"peak memory bandwidth of the GPU")                                                \
	X("element_type", "type", TEXT, computed,                                                  \
		"type of the numbers; tf32: fp32 whose kernel's name says so")                     \
	X("basis", "basis", TEXT, computed,                                                        \
		"origin of the figures: measured, modelled, recorded or with an assumed type; of " \
		"a device: origin of its peaks")                                                   \
	X("kernel", "kernel", TEXT, computed, "kernel that ran, if it was the same for all calls") \
	X("hidden_share", "hidden %", PERCENT, computed, "hidden time / busy time")                \
	X("time_share", "of time", PERCENT, computed,                                              \
		"fraction of the time of the GPUs: from the first operation of each to its last, " \
		"or of the steady-state steps in rows of these")                                   \
	X("wall_share", "of wall", PERCENT, computed,                                              \
		"time in the calls / wall time of the run; above 100 % with several threads")      \
	X("captured", "captured", COUNT, computed,                                                 \
		"calls that added a node to a CUDA graph, so that nothing ran")                    \
	X("timed_by", "timed by", TEXT, computed,                                                  \
		"record: timed as the call was made; cupti: timed by CUPTI alone")                 \
	X("delays", "delays", COUNT, computed,                                                     \
		"launches with a known launch-to-start latency; of a graph the first work on "     \
		"each stream")                                                                     \
	X("delay_total_ns", "lat sum", TIME, computed,                                             \
		"sum of the launch-to-start latencies over operations, which wait side by side: "  \
		"it may "                                                                          \
		"exceed the run; time in a full queue counts")                                     \
	X("delay_max_ns", "lat max", TIME, computed, "longest launch-to-start latency")            \
	X("delay_stream_ns", "sum stream", TIME, computed,                                         \
		"part of delay_total_ns: earlier work of its CUDA stream had not ended")           \
	X("delay_start_ns", "sum start", TIME, computed,                                           \
		"part of delay_total_ns: the launching call ran, or the GPU was about to start")   \
	X("delay_event_ns", "sum event", TIME, computed,                                           \
		"part of delay_total_ns: event wait, behind a cudaStreamWaitEvent whose event is " \
		"recorded in the trace")                                                           \
	X("delay_others_ns", "sum others", TIME, computed,                                         \
		"part of delay_total_ns: the device ran work of other streams")                    \
	X("delay_unknown_ns", "sum unexplained", TIME, computed,                                   \
		"part of delay_total_ns: unexplained wait, as the trace does not show what it "    \
		"waited for")                                                                      \
	X("early", "early", COUNT, computed,                                                       \
		"work that started over 20 us before its call, which is a clock error; it has no " \
		"latency")                                                                         \
	X("outstanding_max", "queue max", COUNT, computed,                                         \
		"largest number of operations that were launched and not finished")                \
	X("outstanding_mean", "queue mean", RATIO, computed,                                       \
		"mean number of operations launched and not finished")                             \
	X("queue_empty_ns", "not launched", TIME, computed,                                        \
		"idle time before the launch of the operation that ended it: the host was late")   \
	X("queue_asked_ns", "after launch", TIME, computed,                                        \
		"idle time after the launch of the operation that ended it: launch latency, gaps " \
		"between kernels, waits")                                                          \
	X("queue_unknown_ns", "idle unknown", TIME, computed,                                      \
		"idle time of unknown cause; of a stream also the time inside CUDA graphs with "   \
		"missing records")                                                                 \
	X("queue_ahead_ns", "ahead", TIME, computed,                                               \
		"busy time with more work in the queue: the host is ahead")                        \
	X("finding", "finding", TEXT, computed, "diagnose: the problem, in one sentence")          \
	X("evidence", "evidence", TEXT, computed, "diagnose: the figures that show it")            \
	X("impact_ns", "impact", TIME, computed,                                                   \
		"diagnose: the time that the finding costs; the column bound says whether that "   \
		"is exact")                                                                        \
	X("impact_share", "share", PERCENT, computed,                                              \
		"cost of the finding / the time that impact_of names; at most 100 %")              \
	X("impact_of", "of", TEXT, computed,                                                       \
		"what impact_share is a share of: the steady-state steps, the GPU span (first "    \
		"GPU operation to the last, summed over the GPUs) or the run (its duration on "    \
		"all GPUs)")                                                                       \
	X("share_of_ns", "share of", TIME, computed,                                               \
		"diagnose: the time of all places of a finding, which share is a share of; the "   \
		"impact if that is more")                                                          \
	X("share_of", "share of", TEXT, computed,                                                  \
		"diagnose: what share_of_ns is the time of, if not of the impact")                 \
	X("gain_share", "gain", PERCENT, computed,                                                 \
		"diagnose: gain_ns / the time that impact_of names; at most 100 %")                \
	X("same_idle_as", "same idle as", TEXT, computed,                                          \
		"diagnose: the finding that has the same idle time, or most of it, as its own")    \
	X("impact_bytes", "impact", BYTES, computed, "diagnose: the bytes that it is about")       \
	X("bound", "bound", TEXT, computed,                                                        \
		"of the impact: measured (all of it), upper bound (at most this much can be "      \
		"saved), upper bound together (the same, if all occurrences are removed), or "     \
		"concerned (the time of what would become faster, by how much is not known)")      \
	X("count", "count", COUNT, computed, "diagnose: number of occurrences")                    \
	X("why", "why", TEXT, computed,                                                            \
		"diagnose: the reason for the confidence; what a rule that was not checked lacks") \
	X("next", "next", TEXT, computed, "diagnose: what to do")                                  \
	X("command", "command", TEXT, computed, "diagnose: the command that shows it")             \
	X("path_ns", "on path", TIME, computed,                                                    \
		"time on the critical path; the six parts below add up to it")                     \
	X("path_gpu_ns", "path gpu", TIME, computed,                                               \
		"part of path_ns: kernels, copies and memsets")                                    \
	X("path_host_ns", "path host", TIME, computed,                                             \
		"part of path_ns: a thread between CUDA calls, and in calls that wait for "        \
		"nothing")                                                                         \
	X("path_launch_ns", "path launch", TIME, computed,                                         \
		"part of path_ns: launch latency and gaps between kernels")                        \
	X("path_wait_ns", "path wait", TIME, computed,                                             \
		"part of path_ns: launched work that waited for an event, or for something that "  \
		"the trace does not show")                                                         \
	X("path_sync_ns", "path sync", TIME, computed,                                             \
		"part of path_ns: synchronising calls after the end of the work that they waited " \
		"for; all of the call if that is not known")                                       \
	X("path_unknown_ns", "path unknown", TIME, computed,                                       \
		"part of path_ns: records are missing, such as a launch or nodes of a CUDA graph") \
	X("path_before_ns", "waited before", TIME, computed,                                       \
		"on the critical path before GPU work of the row began: launch latency, gaps and " \
		"waits; part of path_ns, but not in rows of kernels and copies")                   \
	X("path_segments", "segments", COUNT, computed, "segments of the critical path")           \
	X("slack_min_ns", "slack min", TIME, computed,                                             \
		"smallest slack of its calls and GPU work; synchronising calls have none")         \
	X("slack_p50_ns", "slack p50", TIME, computed, "median slack")                             \
	X("gain_ns", "gain", TIME, computed,                                                       \
		"time saved at most if its GPU work and its CUDA calls took no time; of the "      \
		"whole "                                                                           \
		"path, of each kind of GPU work, and of the 16 rows with most of it on the path")  \
	X("waits", "waits", COUNT, computed, "calls in which the host waits")                      \
	X("waits_unknown", "waits unknown", COUNT, computed,                                       \
		"calls in which the host waits for work that is not known")                        \
	X("default_waits", "default stream", COUNT, computed,                                      \
		"inferred waits of the default stream: work started as another stream's work "     \
		"ended, without another cause")                                                    \
	X("stream_waits", "stream waits", COUNT, computed,                                         \
		"calls that made a stream wait for an event")                                      \
	X("stream_waits_unknown", "stream waits unknown", COUNT, computed,                         \
		"of these: the stream, or the work before the event, is not known")                \
	X("at_ns", "at", TIME, computed, "when: time since the start of the trace")                \
	X("reserved_bytes", "reserved", BYTES, computed,                                           \
		"device memory that the program had allocated")                                    \
	X("tensor_bytes", "tensors", BYTES, computed, "bytes of live tensors")                     \
	X("free_inside_bytes", "unused", BYTES, computed,                                          \
		"bytes of segments that no tensor occupies")                                       \
	X("largest_gap_bytes", "max gap", BYTES, computed, "largest free part of a segment")       \
	X("fragmentation", "fragm.", PERCENT, computed,                                            \
		"1 - largest gap / free inside: the part of the free memory that one tensor "      \
		"cannot use; 0 if less than 2 MiB or 1 % of the reserved memory is free")          \
	X("free_share", "free %", PERCENT, computed,                                               \
		"free inside / bytes of the segments in which tensors are known")                  \
	X("segments", "segments", COUNT, computed, "allocations of device memory")                 \
	X("tensors", "tensors", COUNT, computed,                                                   \
		"live tensors; of memory without known tensors: allocations")                      \
	X("empty_segments", "empty", COUNT, computed, "segments without a tensor")                 \
	X("empty_bytes", "empty bytes", BYTES, computed, "bytes of segments without a tensor")     \
	X("unknown_segments", "unknown", COUNT, computed,                                          \
		"segments in which no tensor was ever seen: it is not known what is in them")      \
	X("unknown_bytes", "unknown bytes", BYTES, computed, "bytes of these segments")            \
	X("outside_bytes", "outside", BYTES, computed,                                             \
		"tensors in memory whose segment is not known")                                    \
	X("overlapped_bytes", "overlapped", BYTES, computed,                                       \
		"bytes of segments that another segment has too; 0 in a consistent trace")         \
	X("unrecorded_bytes", "unrecorded", BYTES, computed,                                       \
		"tensors that PyTorch's allocator reported and no record allocated")               \
	X("reported_bytes", "reported", BYTES, computed,                                           \
		"reserved memory that PyTorch's allocator reported last")                          \
	X("requested_bytes", "requested", BYTES, computed, "bytes that could not be allocated")    \
	X("changes", "changes", COUNT, computed,                                                   \
		"segments allocated, freed or refused, and times out of memory, so far")           \
	X("address", "address", ID, computed, "first address")                                     \
	X("since_ns", "since", TIME, computed,                                                     \
		"when it was allocated; of several tensors: the oldest of them")                   \
	X("emptied_ns", "empty since", TIME, computed, "when the last tensor in it was freed")     \
	X("used_share", "used %", PERCENT, computed,                                               \
		"mean part that tensors occupied since the segment was allocated")                 \
	X("fill", "fill", TEXT, computed,                                                          \
		"used, sparse (tensors occupy less than a quarter), empty, or unknown (no tensor " \
		"was ever seen in it)")                                                            \
	X("holder", "held by", TEXT, computed, "call path with most bytes of tensors in it")       \
	X("holder_bytes", "holds", BYTES, computed, "bytes of these tensors")                      \
	X("holder_since_ns", "held since", TIME, computed,                                         \
		"when the oldest of them was allocated")                                           \
	X("for_stream", "for stream", TEXT, computed,                                              \
		"CUDA stream whose tensors PyTorch's allocator puts in it, as a handle")           \
	X("memory_pool", "pool", TEXT, computed,                                                   \
		"private if that stream was being captured when it was allocated, else shared")    \
	X("line", "line", TEXT, computed,                                                          \
		"innermost line of the program's own code that allocated it (the largest tensor)") \
	X("pin_bytes", "pins", BYTES, computed,                                                    \
		"free bytes of segments in which only these tensors are: free memory that they "   \
		"alone keep reserved")                                                             \
	X("duration_ns", "duration", TIME, duration,                                               \
		"time from start to end; of several instances the sum")                            \
	X("before", "before", USER, before, "level at the start")                                  \
	X("after", "after", USER, after, "level at the end")                                       \
	X("delta", "delta", USER, delta, "after - before")                                         \
	X("value", "value", USER, value, "amount of the metric")                                   \
	X("unit", "unit", TEXT, unit, "unit of before, after, delta and value")                    \
	X("labels", "labels", COUNT, labels, "distinct labels folded into the name")               \
	X("members.count", "members", COUNT, members_count, "modules folded into the node")        \
	X("members.metric", "members by", TEXT, members_metric,                                    \
		"metric by which the modules are compared: gpu, else cpu")                         \
	X("members.min_ns", "min", TIME, members_min,                                              \
		"smallest time of one module, over all of its instances")                          \
	X("members.p50_ns", "median", TIME, members_median, "median time of the modules")          \
	X("members.max_ns", "max", TIME, members_max, "largest time of one module")                \
	X("odd.label", "outlier", TEXT, outlier_label,                                             \
		"the outlier: at least 3 modules, 1.5 times the median or 2/3 of it, and over 3 "  \
		"times the median deviation")                                                      \
	X("odd.ns", "outlier time", TIME, outlier_time, "time of the outlier")                     \
	X("odd.calls", "outlier calls", COUNT, outlier_calls, "calls of the outlier")              \
	X("spread", "members", TIME, spread, "smallest and largest time of one module")            \
	X("ran_elsewhere", "elsewhere", COUNT, elsewhere,                                          \
		"backward pass of an operator, shown beside it: its CPU time counts where it "     \
		"ran, and in no row above")                                                        \
	X("left_open", "open", COUNT, left_open,                                                   \
		"an instance was open at the end of the trace; it counts up to the last record "   \
		"of its thread")                                                                   \
	X("method", "method", TEXT, method,                                                        \
		"how the GPU record was attributed: correlation, graph-node, graph-level, "        \
		"enclosure or none")                                                               \
	X("confidence", "confidence", TEXT, confidence, "high, medium, low or none")               \
	X("provenance", "provenance", TEXT, provenance,                                            \
		"set where figures are not measured one by one: simulated (pperf's device), "      \
		"counted (PPERF_OPS=totals)")                                                      \
	X("worst.metric", "worst", TEXT, worst_metric, "metric of the worst instance")             \
	X("worst.label", "worst", TEXT, worst_label, "label of the worst instance")                \
	X("worst.start_ns", "worst at", TIME, worst_start,                                         \
		"start of the worst instance, in time since the start of the trace")               \
	X("worst.value", "worst value", USER, worst_value,                                         \
		"amount of the metric; times and flows only")                                      \
	X("worst.before", "worst before", USER, worst_before, "level at its start; levels only")   \
	X("worst.after", "worst after", USER, worst_after, "level at its end; levels only")        \
	X("worst.delta", "worst delta", USER, worst_delta, "after - before; levels only")

#endif
