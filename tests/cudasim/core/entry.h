/*
 * One entry point is one line above its body:
 *
 *	DRIVER_API(cuMemFree_v2, (CUdeviceptr dptr), (dptr))
 *	{
 *		return memory_free((void *)dptr, BLOCK_MALLOC);
 *	}
 *
 * makes the exported function, which opens a scope around the body: the call is counted, numbered,
 * and told to the tool with its generated parameter struct. In a forked child no body is entered.
 * The forms: _STREAM has a _ptsz twin, in which stream 0 is the thread's own; _BARE has no
 * generated parameter struct; _LAUNCH names the kernel it launches.
 */
#ifndef ENTRY_H
#define ENTRY_H

#include "core/sim.h"

/* Begins and ends a call: `scope` has function, params, result and symbol set. */
SIM_EXPORT void sim_enter(struct sim_scope *scope);
SIM_EXPORT void sim_leave(struct sim_scope *scope);
/* True in the child of a process that had initialised CUDA: nothing works there. */
SIM_EXPORT bool sim_forked(void);

#define ENTRY_LIST(...) __VA_ARGS__

/* `inside` is called with `args`, its result is passed through `note`; in a forked child it is
 * `forked`. */
#define ENTRY_POINT(type, where, identifier, symbol_name, twin, proto, args, inside, params_decl, \
	params_ref, kernel_name, note, forked)                                                    \
	SIM_EXPORT type identifier proto;                                                         \
	SIM_EXPORT type identifier proto                                                          \
	{                                                                                         \
		static struct sim_function function_ = {                                          \
			.name = symbol_name,                                                      \
			.domain = where,                                                          \
			.per_thread = twin,                                                       \
		};                                                                                \
		type result_ = (type)0;                                                           \
		params_decl;                                                                      \
		struct sim_scope scope_ = {                                                       \
			.function = &function_,                                                   \
			.params = params_ref,                                                     \
			.result = (const int *)&result_,                                          \
		};                                                                                \
		if (sim_forked())                                                                 \
			return forked;                                                            \
		scope_.symbol = kernel_name;                                                      \
		sim_enter(&scope_);                                                               \
		result_ = note(inside args);                                                      \
		sim_leave(&scope_);                                                               \
		return result_;                                                                   \
	}

#define ENTRY_PLAIN(x) (x)

#define DRIVER_ENTRY(symbol_name, twin, proto, args, inside, kernel_name)                       \
	ENTRY_POINT(CUresult, SIM_DRIVER, symbol_name, #symbol_name, twin, proto, args, inside, \
		symbol_name##_params params_ = { ENTRY_LIST args }, &params_, kernel_name,      \
		ENTRY_PLAIN, CUDA_ERROR_NOT_INITIALIZED)

#define DRIVER_ENTRY_BARE(symbol_name, proto, args, inside)                                      \
	ENTRY_POINT(CUresult, SIM_DRIVER, symbol_name, #symbol_name, false, proto, args, inside, \
		(void)0, NULL, NULL, ENTRY_PLAIN, CUDA_ERROR_NOT_INITIALIZED)

#define DRIVER_API(name, proto, args)                               \
	static CUresult name##_inside proto;                        \
	DRIVER_ENTRY(name, false, proto, args, name##_inside, NULL) \
	static CUresult name##_inside proto

#define DRIVER_API_STREAM(name, proto, args)                              \
	static CUresult name##_inside proto;                              \
	DRIVER_ENTRY(name, false, proto, args, name##_inside, NULL)       \
	DRIVER_ENTRY(name##_ptsz, true, proto, args, name##_inside, NULL) \
	static CUresult name##_inside proto

/* A synchronous copy or set on the default stream: its twin ends in _ptds. */
#define DRIVER_API_DEFAULT(name, proto, args)                             \
	static CUresult name##_inside proto;                              \
	DRIVER_ENTRY(name, false, proto, args, name##_inside, NULL)       \
	DRIVER_ENTRY(name##_ptds, true, proto, args, name##_inside, NULL) \
	static CUresult name##_inside proto

#define DRIVER_API_LAUNCH(name, proto, args, kernel_name)                        \
	static CUresult name##_inside proto;                                     \
	DRIVER_ENTRY(name, false, proto, args, name##_inside, kernel_name)       \
	DRIVER_ENTRY(name##_ptsz, true, proto, args, name##_inside, kernel_name) \
	static CUresult name##_inside proto

#define DRIVER_API_BARE(name, proto, args)                  \
	static CUresult name##_inside proto;                \
	DRIVER_ENTRY_BARE(name, proto, args, name##_inside) \
	static CUresult name##_inside proto

/* A function that is only there to be linked against (the lists are made by stubs.awk): says its
 * name, where SIM_STUBS or SIM_LOG asks for it, and returns the error. */
SIM_EXPORT int sim_refuse(const char *name, int error);
/* The same with CUDA's own "not supported". */
SIM_EXPORT int sim_unsupported(const char *name);

#define SIM_STUB(name)                         \
	SIM_EXPORT int name(void);             \
	SIM_EXPORT int name(void)              \
	{                                      \
		return sim_unsupported(#name); \
	}

/* Ends the body with the first error. */
#define TRY(call)                           \
	do {                                \
		CUresult error_ = (call);   \
		if (error_ != CUDA_SUCCESS) \
			return error_;      \
	} while (0)

#endif
