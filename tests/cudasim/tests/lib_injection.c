/*
 * What the driver loads by CUDA_INJECTION64_PATH in the tests of cuInit: says in the environment
 * how often it was started, and whether there was a context already. It calls cuInit itself, as a
 * tool may.
 */
#include <cuda.h>
#include <dlfcn.h>
#include <stdlib.h>

int InitializeInjection(void);

static int active(void)
{
	CUresult (*state)(CUdevice, unsigned *, int *);
	unsigned flags;
	int is_active = -1;

	*(void **)&state = dlsym(RTLD_DEFAULT, "cuDevicePrimaryCtxGetState");
	return state && state(0, &flags, &is_active) == CUDA_SUCCESS ? is_active : -1;
}

__attribute__((visibility("default"))) int InitializeInjection(void)
{
	const char *before = getenv("INJECTION_STARTED");
	CUresult (*init)(unsigned);

	*(void **)&init = dlsym(RTLD_DEFAULT, "cuInit");
	if (!init || init(0) != CUDA_SUCCESS)
		return 0;
	setenv("INJECTION_STARTED", before ? "again" : "once", 1);
	setenv("INJECTION_CONTEXT", active() == 0 ? "none" : "there", 1);
	return 1;
}
