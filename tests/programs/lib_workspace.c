/* SPDX-License-Identifier: MIT
 * lib_workspace.c: a library that allocates device memory for itself, as cuBLAS does.
 */
#include <stddef.h>

int allocate_workspace(int (*allocate)(void **, size_t), void **memory, size_t bytes);
int allocate_workspace(int (*allocate)(void **, size_t), void **memory, size_t bytes)
{
	volatile int result = allocate(memory, bytes); /* volatile: no tail call */

	return result;
}
