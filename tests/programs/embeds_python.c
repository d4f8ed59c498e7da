/* SPDX-License-Identifier: MIT
 * embeds_python.c LIBPYTHON CODE: a program that is not Python but runs some, with a libpython that
 * it finds by itself.
 */
#include <dlfcn.h>
#include <stdio.h>

int main(int argc, char **argv)
{
	void *python = argc == 3 ? dlopen(argv[1], RTLD_NOW | RTLD_GLOBAL) : NULL;
	void (*initialize)(int);
	int (*run)(const char *, void *), (*finish)(void), failed;

	if (!python)
		return fprintf(stderr, "embeds_python: %s\n", dlerror()), 2;
	*(void **)&initialize = dlsym(python, "Py_InitializeEx");
	*(void **)&run = dlsym(python, "PyRun_SimpleStringFlags");
	*(void **)&finish = dlsym(python, "Py_FinalizeEx");
	if (!initialize || !run || !finish)
		return fprintf(stderr, "embeds_python: %s is no Python\n", argv[1]), 2;
	initialize(1);
	failed = run(argv[2], NULL);
	return finish() || failed;
}
