/* SPDX-License-Identifier: MIT
 * old_version.h: a function of the C library by the name that its oldest versions gave it.
 */
#ifndef PPERF_OLD_VERSION_H
#define PPERF_OLD_VERSION_H

#if defined(__x86_64__)
#define FIRST "GLIBC_2.2.5"
#define SINCE_2_3_3 "GLIBC_2.3.3"
#elif defined(__aarch64__)
#define FIRST "GLIBC_2.17"
#define SINCE_2_3_3 FIRST
#else
#error "the symbol versions of this architecture's C library are not known here"
#endif

/* The compiler takes a value that is only handed on, by pthread_setspecific, for one that is read. */
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"

#define HIDDEN __attribute__((visibility("hidden")))
/* Defines `name`, which calls the C library's `name` of that version. */
#define FORWARD(version, result, name, parameters, arguments) \
	extern result old_##name parameters;                   \
	__asm__(".symver old_" #name "," #name "@" version);   \
	HIDDEN result name parameters                          \
	{                                                      \
		return old_##name arguments;                   \
	}

#endif
