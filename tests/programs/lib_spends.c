/* SPDX-License-Identifier: MIT
 * A library that is loaded and unloaded again and again while its function is sampled.
 */
void spend_in_library(unsigned long count);
void spend_in_library(unsigned long count)
{
	static volatile unsigned long sink;

	for (unsigned long i = 0; i < count; i++)
		sink = sink * 6364136223846793005UL + 1;
}
