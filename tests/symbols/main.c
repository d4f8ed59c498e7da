/* SPDX-License-Identifier: MIT
 * A program that is linked with the runtime itself.
 */
extern int client_calls(void);

int main(void)
{
	return client_calls();
}
