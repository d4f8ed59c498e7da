/*
 * One entry point is one line above its body:
 *
 *	DRIVER_API(cuMemFree_v2, (CUdeviceptr dptr), (dptr))
 *	{
 *		return memory_free((void *)dptr, BLOCK_MALLOC);
 *	}
 *
 * makes the exported function, which opens a scope around the body: the call is counted, numbered, and
 * told to the tool with its generated parameter struct. In a forked child no body is entered.
 * The forms: _STREAM has a _ptsz twin, in which stream 0 is the thread's own; _BARE has no generated
 * parameter struct; _LAUNCH names the kernel it launches.
 */
#ifndef ENTRY_H
#define ENTRY_H

#include "sim.h"

/* Begins and ends a call: `scope` has function, params, result and symbol set. */
SIM_EXPORT void sim_enter(struct sim_scope *scope);
SIM_EXPORT void sim_leave(struct sim_scope *scope);
/* True in the child of a process that had initialised CUDA: nothing works there. */
SIM_EXPORT bool sim_forked(void);

#define ENTRY_LIST(...) __VA_ARGS__
#define ENTRY_FORKED 3	/* CUDA_ERROR_NOT_INITIALIZED, cudaErrorInitializationError */

/* `inside` is called with `args`, its result is passed through `note`. */
#define ENTRY_POINT(type, where, symbol_name, twin, proto, args, inside, params_decl, params_ref,      \
		    kernel_name, note)                                                                 \
	SIM_EXPORT type symbol_name proto;                                                             \
	SIM_EXPORT type symbol_name proto                                                              \
	{                                                                                              \
		static struct sim_function function = {                                                \
			.name = #symbol_name, .domain = where, .per_thread = twin,                     \
		};                                                                                     \
		type result = (type)0;                                                                 \
		params_decl;                                                                           \
		struct sim_scope scope = {                                                             \
			.function = &function, .params = params_ref, .result = (const int *)&result,   \
		};                                                                                     \
		if (sim_forked())                                                                      \
			return note((type)ENTRY_FORKED);                                               \
		scope.symbol = kernel_name;                                                            \
		sim_enter(&scope);                                                                     \
		result = note(inside args);                                                            \
		sim_leave(&scope);                                                                     \
		return result;                                                                         \
	}

#define ENTRY_PLAIN(x) (x)

#define DRIVER_ENTRY(symbol_name, twin, proto, args, inside, kernel_name)                              \
	ENTRY_POINT(CUresult, SIM_DRIVER, symbol_name, twin, proto, args, inside,                      \
		    symbol_name##_params params = {ENTRY_LIST args}, &params, kernel_name, ENTRY_PLAIN)

#define DRIVER_ENTRY_BARE(symbol_name, proto, args, inside)                                            \
	ENTRY_POINT(CUresult, SIM_DRIVER, symbol_name, false, proto, args, inside, (void)0, NULL, NULL, \
		    ENTRY_PLAIN)

#define DRIVER_API(name, proto, args)                                                                  \
	static CUresult name##_inside proto;                                                           \
	DRIVER_ENTRY(name, false, proto, args, name##_inside, NULL)                                    \
	static CUresult name##_inside proto

#define DRIVER_API_STREAM(name, proto, args)                                                           \
	static CUresult name##_inside proto;                                                           \
	DRIVER_ENTRY(name, false, proto, args, name##_inside, NULL)                                    \
	DRIVER_ENTRY(name##_ptsz, true, proto, args, name##_inside, NULL)                              \
	static CUresult name##_inside proto

/* A synchronous copy or set on the default stream: its twin ends in _ptds. */
#define DRIVER_API_DEFAULT(name, proto, args)                                                          \
	static CUresult name##_inside proto;                                                           \
	DRIVER_ENTRY(name, false, proto, args, name##_inside, NULL)                                    \
	DRIVER_ENTRY(name##_ptds, true, proto, args, name##_inside, NULL)                              \
	static CUresult name##_inside proto

#define DRIVER_API_LAUNCH(name, proto, args, kernel_name)                                              \
	static CUresult name##_inside proto;                                                           \
	DRIVER_ENTRY(name, false, proto, args, name##_inside, kernel_name)                             \
	DRIVER_ENTRY(name##_ptsz, true, proto, args, name##_inside, kernel_name)                       \
	static CUresult name##_inside proto

#define DRIVER_API_BARE(name, proto, args)                                                             \
	static CUresult name##_inside proto;                                                           \
	DRIVER_ENTRY_BARE(name, proto, args, name##_inside)                                            \
	static CUresult name##_inside proto

/* Ends the body with the first error. */
#define TRY(call)                                                                                      \
	do {                                                                                           \
		CUresult error_ = (call);                                                              \
		if (error_ != CUDA_SUCCESS)                                                            \
			return error_;                                                                 \
	} while (0)

#endif
