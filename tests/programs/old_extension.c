/* SPDX-License-Identifier: MIT
 * old_extension LIBRARY: an extension of early NVTX 3 headers begins: its description is shorter,
 * and it has two functions. Prints what is in their slots, and in that behind them.
 */
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>

struct old_segment {
	size_t id, slots;
	intptr_t *functions;
};

struct old_module {
	uint16_t nvtx_version, struct_size, module, compatible;
	size_t segments_count;
	struct old_segment *segments;
	intptr_t (*get_function)(uint32_t);
};

int main(int count, char **arguments)
{
	intptr_t functions[3] = { 0, 0, 4711 };
	struct old_segment segment = { 0, 2, functions };
	struct old_module module = { 3, sizeof module, 2, 0x0101, 1, &segment, NULL };
	void *library = count > 1 ? dlopen(arguments[1], RTLD_NOW) : NULL;
	int (*begin)(struct old_module *) = NULL;

	if (library)
		*(void **)&begin = dlsym(library, "InitializeInjectionNvtxExtension");
	if (!begin)
		return 2;
	printf("%d", begin(&module));
	printf(" %s %s %d\n", functions[0] ? "filled" : "empty", functions[1] ? "filled" : "empty",
		(int)functions[2]);
	return 0;
}
