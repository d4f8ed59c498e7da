/* SPDX-License-Identifier: MIT
 * loads_init_module NEEDS DEFINES: loads a library that defines initModule, then one that needs it,
 * neither of them PyTorch's, and prints what they say.
 */
#include <dlfcn.h>
#include <stdio.h>

int main(int argc, char **argv)
{
	const char *(*ask)(void) = NULL;
	void *needs = NULL;

	if (argc == 3 && dlopen(argv[2], RTLD_NOW | RTLD_GLOBAL))
		needs = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
	if (needs)
		*(void **)&ask = dlsym(needs, "ask");
	if (!ask)
		return puts(dlerror()), 1;
	return puts(ask()), 0;
}
