/* SPDX-License-Identifier: MIT
 * lib_init_module.c: an initModule that has nothing to do with Python.
 */
const char *initModule(void)
{
	return "not PyTorch's";
}
