/* SPDX-License-Identifier: MIT
 *
 * Lists the thresholds of the rules of `diagnose`, each with its reason. Shares are thousandths,
 * times nanoseconds.
 */
#ifndef PPERF_REPORT_DIAGNOSE_LIMITS_H
#define PPERF_REPORT_DIAGNOSE_LIMITS_H

/* X(name, value, reason) */
#define DIAGNOSE_LIMITS(X)                                                                         \
	X(WORTH, 20,                                                                               \
		"of the GPU's span, or of the time looked at: less than 2 % is not worth an "      \
		"engineer's day")                                                                  \
	X(MINOR, 10, "of the run: a finding that costs less than 1 % never comes first")           \
	X(SHOWN, 1, "of the time looked at: less is shown as 0.0 %")                               \
	X(LITTLE, 5,                                                                               \
		"of the time looked at: problems with a one-line fix are reported from a lower "   \
		"share")                                                                           \
	X(LAUNCH_IDLE, 200,                                                                        \
		"of the span idle, as the host was late: beyond a fifth no faster kernel helps "   \
		"much")                                                                            \
	X(BUSY, 900, "of the span busy: what is left cannot be had by launching faster")           \
	X(DOMINANT, 400, "of all GPU time in one kernel: making that twice as fast wins a fifth")  \
	X(DOMINANT_NAMES, 3, "kernels that there must be: of one or two, one always dominates")    \
	X(FP32, 100, "of all GPU time in FP32 products: less is not worth a change of precision")  \
	X(TINY_NS, 5000,                                                                           \
		"a launch costs the host about that much: a shorter kernel is never worth its "    \
		"launch")                                                                          \
	X(TINY_SHARE, 500, "of the kernels that have a launch of their own in the trace")          \
	X(TINY_COUNT, 50, "fewer kernels are not worth a finding")                                 \
	X(STARVED, 100,                                                                            \
		"of all GPU time in which multiprocessors were unused by kernels with too few "    \
		"blocks")                                                                          \
	X(LONG_GAP_NS, 1000000,                                                                    \
		"a gap of 1 ms is hundreds of launches long: nothing was launched")                \
	X(DATALOADER_WAIT, 100,                                                                    \
		"of the steps' time: a DataLoader that is fast enough takes almost none of it")    \
	X(CALLS_FEW, 3, "what happens once or twice may belong to the beginning or the end")       \
	X(TOGETHER, 100,                                                                           \
		"of the time looked at: what only several changes gain must be worth them")        \
	X(SUCCESSION, 3, "pairs of a copy and a matrix product: one may be chance")                \
	X(COMPILE_SHARE, 100, "of the compiled regions' own time on the CPU")                      \
	X(SPIKE, 1500, "of the median step's peak: half as much again decides the batch size")     \
	X(UNUSED, 200, "of what PyTorch reserved: a fifth in no tensor at the peak")               \
	X(UNUSED_BYTES, 64000000,                                                                  \
		"PyTorch reserves in pieces of 2 and 20 MB: less than a few is no fragmentation")  \
	X(UNUSED_OF_GPU, 50,                                                                       \
		"of the GPU's memory: what little is unused of it is a note, no finding")          \
	X(PINNED_SEGMENTS, 50,                                                                     \
		"of the reserved memory, free in segments that small tensors keep: less is the "   \
		"slack of any cache")                                                              \
	X(SHAPES, 8, "sizes of one call path: of fewer, the cache soon has a block of each")       \
	X(SHAPES_GROWTH, 200,                                                                      \
		"of the reserved memory was added after the first fifth of the run, and tensors "  \
		"did not need it")                                                                 \
	X(SHAPES_TENSORS, 500,                                                                     \
		"of that growth at most is growth of the tensors' peak: more is a larger need")    \
	X(IDLE_CACHE, 200,                                                                         \
		"of the reserved memory, empty for the last quarter of the run: a fifth more "     \
		"decides what else fits")                                                          \
	X(OUTSIDE, 50,                                                                             \
		"of the device memory held: libraries' handles and streams need some MB each")     \
	X(STATE_EQUAL, 950,                                                                        \
		"of the bytes of two optimizers' states have the same sizes: both are for the "    \
		"same parameters")                                                                 \
	X(STATE_SHARE, 50, "of the reserved memory: less is not worth a change of the program")    \
	X(TIGHT, 800, "of the GPU's memory: what outputs take below that could hold nothing else") \
	X(ACTIVATIONS, 600,                                                                        \
		"of the tensors' peak are outputs kept for backward: checkpointing frees most of " \
		"them")                                                                            \
	X(OTHERS, 50,                                                                              \
		"of the GPU's memory beyond a CUDA context: less may be other parts of this "      \
		"process")                                                                         \
	X(VARIABLE_CALLS, 20, "with fewer instances percentiles are not meaningful")               \
	X(VARIABLE_SPREAD, 200,                                                                    \
		"between median and 95th percentile, of the median: clocks alone stay within 10 "  \
		"%")                                                                               \
	X(RARE, 100, "of the instances at most are outliers: rare slow ones, not a spread")        \
	X(CLOCK_CORRELATION, 700,                                                                  \
		"of its slowness and the other kernels', window by window: they share the clock")  \
	X(CLOCK_PARTS, 8, "windows in which both ran: of fewer, two things agree by chance")       \
	X(BACKWARD_MAX, 4000,                                                                      \
		"of forward: twice is usual, three times with recomputing; more than that is "     \
		"unusual")                                                                         \
	X(BACKWARD_MIN, 700,                                                                       \
		"of forward: gradients of inputs and weights are hardly cheaper than the pass "    \
		"itself")                                                                          \
	X(LINKED, 500,                                                                             \
		"of backward at least is linked to its forward: less is not the whole picture")    \
	X(HELD_NS, 500000,                                                                         \
		"in which the GPU is idle though work was launched: a launch reaches it in 10 us") \
	X(COST, 20, "of the wall time: overhead starts to distort the figures")                    \
	X(COST_FIRST, 100,                                                                         \
		"of the wall time, while the GPU is in use: overhead explains much of the other "  \
		"findings")                                                                        \
	X(PYTHON, 300,                                                                             \
		"of the busiest thread's CPU time in Python outside of operators: faster code "    \
		"there shortens the run")                                                          \
	X(GARBAGE, 50, "of the CPU time: the default settings collect too often")                  \
	X(LOCK, 100, "of a thread's time: the lock is a bottleneck")                               \
	X(OVERSUBSCRIBED, 200,                                                                     \
		"of the time in which threads can run: a busy machine alone has less")             \
	X(KERNEL, 200, "of the CPU time: more than usual programs have")                           \
	X(STARTUP, 100,                                                                            \
		"of the run before the first GPU operation, and of that in one range or "          \
		"function: "                                                                       \
		"worth a line")                                                                    \
	X(STARTUP_NS, 100000000, "a shorter start of a program is not noticed")                    \
	X(UNKNOWN_MAX, 200,                                                                        \
		"of the idle time without a known cause: above this, findings on idle time are "   \
		"less certain")                                                                    \
	X(UNKNOWN_HIDES, 500,                                                                      \
		"of the idle time without a known cause: above this, a rule without a finding is " \
		"inconclusive")                                                                    \
	X(STEPS_SMALL, 500,                                                                        \
		"of the GPUs' time in steady-state steps: above this, large shares of the steps "  \
		"are large shares of the run")                                                     \
	X(STEADY_FROM, 250,                                                                        \
		"of the GPUs' span, where no steps were found: earlier time counts as start-up")

enum {
#define X(name, value, reason) LIMIT_##name = value,
	DIAGNOSE_LIMITS(X)
#undef X
};

#endif
