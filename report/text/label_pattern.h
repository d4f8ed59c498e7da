/* SPDX-License-Identifier: MIT
 * label.h: the folding of labels. Ranges that differ only in a number (a step, a frame, a layer) are one node of the
 * tree:
 *
 *	track - kf: 71    ->  track - kf: *
 *	layers.7.attn     ->  layers.*.attn
 *
 * Only whole tokens are replaced, and only where a number is plainly a parameter: after a blank (so after `: ` too),
 * `=` or `#`, after a dot, in brackets (also after a comma there). A number is digits with an optional sign and
 * fraction (neither after a dot). It ends at the end of the text or before a character that is no letter, digit, `_`,
 * `+`, `-` or byte beyond ASCII: conv2d, sm_80, 3x3, 10ms, 0x1f, 71-72 stay as they are. A text that begins with a
 * number keeps it. For user ranges and steps; never for operators, kernels and calls.
 *
 * Paths of PyTorch's modules are folded by their parts, and parts that only wrap another module are left out:
 *
 *	layers.0.attn                   ->  layers.*.attn
 *	_orig_mod.layers.0, module.0    ->  layers.*, *
 */
#ifndef PPERF_REPORT_TEXT_LABEL_PATTERN_H
#define PPERF_REPORT_TEXT_LABEL_PATTERN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Writes the folded text to `out` (room for `length` bytes; it never gets longer) and returns its length. */
size_t label_fold(const char *text, size_t length, char *out);

/* The same for the path of a module. */
size_t label_fold_module(const char *path, size_t length, char *out);

/* The same for an operator: only the numbers that torch.compile gives to the versions of one function are replaced,
 * the last of `Torch-Compiled Region: 3/1`. */
size_t label_fold_operator(const char *name, size_t length, char *out);

/* The last number that label_fold would replace, without sign and fraction. false: there is none. */
bool label_number(const char *text, size_t length, uint64_t *number);

#endif
