/* SPDX-License-Identifier: MIT */
#include "report/views/source_reasons.h"
#include <string.h>

static const struct {
	const char *source, *missing;
} missing_parts[] = {
	{ "nvtx", "names of the program's phases" },
	{ "cuda_symbols", "memory calls and launches on the CPU" },
	{ "cupti", "times of kernels and copies" },
	{ "roctracer", "times of kernels and copies" },
	{ "torch_ops", "data of PyTorch's operators" },
	{ "torch_modules", "names of PyTorch's modules" },
	{ "torch_compile", "compilations of torch.compile" },
	{ "torch_memory", "tensor memory" },
	{ "python_stacks", "source lines of the program's Python files" },
	{ "cpu_samples", "functions of the program" },
};

#define OTHER_PYTHON                                                                    \
	"use a Python that exports its C functions, such as python.org's or that of a " \
	"distribution"
#define RELEASED_PYTHON "use a release of CPython, 3.9 to 3.15"
#define NEWER_TORCH "use PyTorch 2.1 or later"

const struct source_reason source_reasons[] = {
	{ "", "off: PPERF_", "unset that variable" },
	{ "nvtx", "another tool", "unset NVTX_INJECTION64_PATH, or run without the other tool" },
	{ "nvtx", "", "if it uses NVTX, start it with the full path of libpperf.so in LD_PRELOAD" },
	{ "cuda_symbols", "no libcudart is loaded",
		"start it with the full path of libpperf.so in LD_PRELOAD, and with the shared "
		"CUDA runtime" },
	{ "cuda_symbols", "", "a program with a static CUDA runtime needs CUPTI for these" },
	{ "cupti", "let this user profile",
		"run as root or with CAP_SYS_ADMIN (docker run --cap-add=SYS_ADMIN), or allow all "
		"users to profile: option NVreg_RestrictProfilingToAdminUsers=0 of the NVIDIA "
		"driver" },
	{ "cupti", "have not arrived",
		"let GPU work end, or let the program end by itself, before it is killed" },
	{ "cupti", "did not return from its last flush",
		"let GPU work end (cudaDeviceSynchronize) before the program does" },
	{ "cupti", "after a CUDA error", "fix that error, which the program has received" },
	{ "cupti", "another tool", "run without the other profiler" },
	{ "cupti", "another profiler", "run without the other profiler" },
	{ "cupti", "found no driver",
		"use the libcupti of a CUDA version that the driver supports, or install a newer "
		"driver" },
	{ "cupti", "was not found",
		"install CUPTI (pip install nvidia-cuda-cupti for CUDA 13, nvidia-cuda-cupti-cu12 "
		"for CUDA 12), or set PPERF_CUPTI to the path of libcupti.so" },
	{ "cupti", "older than CUDA 12.0",
		"use CUDA 12 or later, or set PPERF_CUPTI to the path of a newer libcupti.so" },
	{ "cupti", "out of memory", "raise the process's limit of memory" },
	{ "cupti", "",
		"make libcupti of the same CUDA version available (beside libcudart, or in "
		"LD_LIBRARY_PATH), and stop any other profiler that uses it" },
	{ "torch_ops", "PPERF_PYTHON=0", "unset PPERF_PYTHON" },
	{ "torch_ops", "does not export the functions", OTHER_PYTHON },
	{ "torch_ops", "callback interface", NEWER_TORCH },
	{ "torch_ops", "sequence numbers", NEWER_TORCH },
	{ "torch_ops", "processor architecture", "record on x86-64" },
	{ "torch_ops", "not imported completely", "let import torch end before the program does" },
	{ "torch_modules", "does not export the functions", OTHER_PYTHON },
	{ "torch_modules", "not imported completely",
		"let import torch end before the program does" },
	{ "torch_modules", "import torch failed", "see what python -c 'import torch' prints" },
	{ "torch_modules", "is not a function of Python",
		"run without the tool that replaces torch.nn.Module.__call__" },
	{ "torch_modules", "compiler cannot be made to skip", NEWER_TORCH },
	{ "torch_compile", "this PyTorch has no", NEWER_TORCH },
	{ "torch_compile", "cannot be watched",
		"run without the tool that replaces the import of torch._dynamo" },
	{ "torch_memory", "cudaMallocAsync",
		"leave backend:cudaMallocAsync out of PYTORCH_CUDA_ALLOC_CONF" },
	{ "torch_memory", "reported no tensor", NEWER_TORCH },
	{ "python_stacks", "free-threaded", "use a Python with a global interpreter lock" },
	{ "python_stacks", "does not export the symbols", OTHER_PYTHON },
	{ "python_stacks", "frame layout", RELEASED_PYTHON },
	{ "python_stacks", "table of offsets", RELEASED_PYTHON },
	{ "python_stacks", "self-test", RELEASED_PYTHON },
	{ "python_stacks", "/proc/self/mem", "let the process open /proc/self/mem" },
	{ "cpu_samples", "no native frames", "samples have ranges and Python frames" },
	{ "cpu_samples", "could not be created", "allow the process one more thread" },
	{ "cpu_samples", "forked by a program with threads",
		"let it execute a program of its own instead" },
	{ "cpu_samples", "no memory", "raise the process's limit of memory" },
};
const size_t source_reason_count = sizeof source_reasons / sizeof *source_reasons;

const char *source_remedy(const char *source, struct trace_text state)
{
	for (size_t i = 0; i < source_reason_count; i++)
		if ((!*source_reasons[i].source || !strcmp(source_reasons[i].source, source)) &&
			memmem(state.bytes, state.length, source_reasons[i].reason,
				strlen(source_reasons[i].reason)))
			return source_reasons[i].remedy;
	return NULL;
}

static bool starts_with(struct trace_text text, const char *with)
{
	return text.length >= strlen(with) && memcmp(text.bytes, with, strlen(with)) == 0;
}

void source_add_advice(
	struct text_builder *line, const char *source, struct trace_text state, bool ascii)
{
	const bool off = starts_with(state, "off"), partial = starts_with(state, "partial");
	const char *remedy = off || partial ? source_remedy(source, state) : NULL;
	size_t part = 0;

	while (strcmp(missing_parts[part].source, source) != 0)
		part++;
	if (off || remedy)
		text_add(line, "%s %s %s%s%s", ascii ? "->" : "\xe2\x86\x92",
			off ? "no" : "not all", missing_parts[part].missing, remedy ? ": " : "",
			remedy ? remedy : "");
}
