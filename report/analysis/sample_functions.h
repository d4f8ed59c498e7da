/* SPDX-License-Identifier: MIT
 *
 * Holds the functions that samples name: native ones by their addresses, and those of Python.
 *
 * Functions have numbers from 1. Two addresses in one native function have the same number. The
 * same holds for two lines of a Python function, whose line numbers each frame keeps for itself.
 */
#ifndef PPERF_REPORT_ANALYSIS_SAMPLE_FUNCTIONS_H
#define PPERF_REPORT_ANALYSIS_SAMPLE_FUNCTIONS_H

#include "report/base/hash_index.h"
#include "report/run/process.h"

enum sample_function_kind { SAMPLE_NATIVE, SAMPLE_PYTHON, SAMPLE_STATE };

struct sample_function {
	uint32_t name;    /* text of the process */
	uint32_t library; /* text: file name of the library, or path of the Python file; 0: none */
	uint8_t kind;     /* enum sample_function_kind */
	/* Native: a part of CPython or of PyTorch's dispatcher that only passes calls on. Only
	 * complete stacks show it. */
	bool is_interpreter;
	bool is_eval; /* the function that runs Python code */
	bool is_own;  /* Python: in a file of the program itself */
};

/* A frame of a stack. */
struct sample_frame {
	uint32_t function;
	uint32_t line; /* Python; 0: none */
	bool is_entry; /* Python: C code called the interpreter for it */
};

/* A frame with the frame that called it. Frames have numbers from 1. Frames of the trace with the
 * same callers, function and line have the same number, wherever in the function they continue. */
struct known_frame {
	uint32_t parent; /* 0: it is the outermost */
	struct sample_frame frame;
	/* Of the frame and its callers: how many are entry frames, or the outermost; how many run
	 * Python code (sample_function.is_eval). The innermost of these; 0: there is none. */
	uint32_t entries, evals, entry, eval;
};

struct sample_functions {
	struct process *process;
	struct sample_function *all; /* entry 0 is not used */
	size_t count, room;
	struct hash_index index;    /* by name, library and kind */
	struct known_frame *frames; /* entry 0 is not used */
	size_t frame_count, frame_room;
	struct hash_index frame_index; /* by parent, function and line */
	uint32_t *numbers; /* private: by the trace's id, number + 1; 0: not looked up */
	uint32_t id_last;  /* private: no frame of the trace has a higher id */
	uint32_t *path;    /* private: frames without a number so far */
	size_t path_room;
	struct recent_address *recent; /* private, as the next three: functions of symbols */
	struct known_symbol *symbols;
	size_t symbol_count, symbol_room;
	struct hash_index symbol_index;
	uint32_t pperf;                /* the function (pperf); 0: there is none */
	uint64_t eval_begin, eval_end; /* private: the second part of the interpreter's function */
};

void sample_functions_begin(struct sample_functions *functions, struct process *process);
void sample_functions_free(struct sample_functions *functions);

/* Returns the number of the function with the instruction at `address`. */
uint32_t sample_function_at(struct sample_functions *functions, uint64_t address);
/* Returns the number of the function that a CPU_SAMPLE names by two name ids; 0: not known. */
uint32_t sample_function_named(
	struct sample_functions *functions, uint32_t function, uint32_t module);
/* Returns the number of what the thread did in place of running a function, such as `(kernel)`. */
uint32_t sample_function_state(struct sample_functions *functions, const char *name);
/* Returns the number of the frame with the trace's id `id`. 0: the trace does not have it. */
uint32_t sample_frame_number(struct sample_functions *functions, uint32_t id);
/* Returns the number of a native frame of `function` that the frame `caller` called. */
uint32_t sample_frame_in(struct sample_functions *functions, uint32_t caller, uint32_t function);
/* Returns the frame with a number, or NULL for 0. Valid until the next frame gets a number. */
static inline const struct known_frame *sample_frame_of(
	const struct sample_functions *functions, uint32_t number)
{
	return number ? &functions->frames[number] : NULL;
}

/* Returns the function of that name, library and kind, or NULL. */
const struct sample_function *sample_function_find(const struct sample_functions *functions,
	uint32_t name, uint32_t library, enum sample_function_kind kind);
/* Returns whether the function is pperf's own Python code, which runs at the first import. */
bool sample_function_is_pperf(const struct sample_functions *functions, uint32_t function);

/* Returns the package or library of a function as a text: `libtorch_cpu.so`, `torch` for a file of
 * a Python package, or a file's name. 0: none. */
uint32_t sample_function_library(const struct sample_functions *functions, uint32_t function);

#endif
