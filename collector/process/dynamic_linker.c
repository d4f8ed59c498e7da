/* SPDX-License-Identifier: MIT */
#include "collector/process/dynamic_linker.h"

#include <errno.h>

static void *clear_error(void *found, int saved_errno)
{
	if (!found)
		dlerror();
	errno = saved_errno;
	return found;
}

void *quiet_dlopen(const char *path, int flags)
{
	const int saved = errno;

	return clear_error(dlopen(path, flags), saved);
}

void *quiet_dlsym(void *scope, const char *name)
{
	const int saved = errno;

	return clear_error(dlsym(scope, name), saved);
}

void *quiet_dlvsym(void *scope, const char *name, const char *version)
{
	const int saved = errno;

	return *version ? clear_error(dlvsym(scope, name, version), saved)
			: quiet_dlsym(scope, name);
}
