/* SPDX-License-Identifier: MIT
 * lib_asks_init_module.c: a library that has it from another one.
 */
extern const char *initModule(void);

const char *ask(void)
{
	return initModule();
}
