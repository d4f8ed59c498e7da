/* SPDX-License-Identifier: MIT
 * lib_calls_back: a runtime whose cudaMalloc calls what its first argument points to, so that the
 * program can throw from inside of it.
 */
#include <stddef.h>

int cudaMalloc(void **address, size_t bytes)
{
	void (*function)(void);

	*(void **)&function = *address;
	function();
	*address = address;
	return bytes == 0;
}
