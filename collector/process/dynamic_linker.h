/* SPDX-License-Identifier: MIT
 * dlopen, dlsym and dlvsym without a trace in dlerror().
 *
 * A program calls dlerror() after a call of its own, often without another look at that call's
 * result. An error of ours would then pass for the program's. libc keeps one error for each thread,
 * and every call of these functions replaces it, also one that succeeds. So an error that the
 * program has not fetched yet cannot be kept.
 *
 * errno is preserved. Any thread may call these.
 */
#ifndef PPERF_COLLECTOR_PROCESS_DYNAMIC_LINKER_H
#define PPERF_COLLECTOR_PROCESS_DYNAMIC_LINKER_H

#include <dlfcn.h>

void *quiet_dlopen(const char *path, int flags);
void *quiet_dlsym(void *scope, const char *name);
/* Without a version ("") it is quiet_dlsym(). */
void *quiet_dlvsym(void *scope, const char *name, const char *version);

#endif
