/* SPDX-License-Identifier: MIT
 * Replaces numbers in labels by `*`. Ranges that differ only in a number (a step, a frame, a
 * layer) then share one label pattern, and become one node of the tree:
 *
 *	track - kf: 71    ->  track - kf: *
 *	layers.7.attn     ->  layers.*.attn
 *
 * Only whole tokens are replaced, and only where a number is clearly a parameter:
 *
 *  - after a blank (so also after `: `), `=`, `#` or a dot
 *  - in brackets, also after a comma there
 *
 * A number is a row of digits. It may have a sign and a fraction, but not after a dot. It ends
 * at the end of the text or before a character that is not a letter, digit, `_`, `+`, `-` or
 * byte beyond ASCII. So conv2d, sm_80, 3x3, 10ms, 0x1f and 71-72 do not change. A text that
 * begins with a number keeps it. These patterns are for user ranges and steps, never for
 * operators, kernels and calls.
 *
 * In paths of PyTorch's modules whole parts are replaced, and numbers after the words layer and
 * block with an underscore. Parts that only wrap another module are left out:
 *
 *	layers.0.attn                   ->  layers.*.attn
 *	_orig_mod.layers.0, module.0    ->  layers.*, *
 */
#ifndef PPERF_REPORT_TEXT_LABEL_PATTERN_H
#define PPERF_REPORT_TEXT_LABEL_PATTERN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Writes the pattern of a range's label to `out` and returns its length. `out` has room for
 * `length` bytes; a pattern is never longer than its text. */
size_t label_fold(const char *text, size_t length, char *out);

/* Writes the pattern of a module's path to `out` and returns its length. */
size_t label_fold_module(const char *path, size_t length, char *out);

/* Writes the pattern of an operator's name to `out` and returns its length. Only the version
 * that torch.compile gives to a function is replaced: the last number of `Torch-Compiled Region:
 * 3/1`. */
size_t label_fold_operator(const char *name, size_t length, char *out);

/* Finds the last number that label_fold would replace, without sign and fraction. Returns false
 * if there is none. */
bool label_number(const char *text, size_t length, uint64_t *number);

#endif
