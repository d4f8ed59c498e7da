/* SPDX-License-Identifier: MIT
 * A program that calls the runtime from 2000 places, as one with as many kernels does, and says how
 * often the dynamic linker was asked about its objects when it called from each of them again.
 */
#include <dlfcn.h>
#include <link.h>
#include <stdio.h>

int cudaFree(void *address);
int dl_iterate_phdr(int (*each)(struct dl_phdr_info *, size_t, void *), void *data);

static unsigned asked;

/* In place of the C library's, for all who ask. */
__attribute__((visibility("default"))) int dl_iterate_phdr(
	int (*each)(struct dl_phdr_info *, size_t, void *), void *data)
{
	int (*next)(int (*)(struct dl_phdr_info *, size_t, void *), void *);

	*(void **)&next = dlsym(RTLD_NEXT, "dl_iterate_phdr");
	asked++;
	return next(each, data);
}

#define TEN(call) call call call call call call call call call call
#define CALL results |= cudaFree(NULL);

static int call_from_everywhere(void)
{
	int results = 0;

	TEN(TEN(TEN(CALL)))
	TEN(TEN(TEN(CALL)))
	return results;
}

int main(void)
{
	int results = call_from_everywhere();

	asked = 0;
	results |= call_from_everywhere();
	printf("results %d, asked %u times\n", results, asked);
	return 0;
}
