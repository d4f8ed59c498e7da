/* SPDX-License-Identifier: MIT
 * stub.c: the stand-in's torch/_C.abi3.so, which like PyTorch's own does nothing but ask another
 * library for the module.
 */
void *initModule(void);
void *PyInit__C(void);

void *PyInit__C(void)
{
	return initModule();
}
