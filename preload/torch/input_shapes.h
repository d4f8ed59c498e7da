/* SPDX-License-Identifier: MIT
 * Reads the sizes of an operator's inputs from PyTorch's objects: tag and tensor of an IValue,
 * dimensions and sizes of a tensor.
 *
 * The offsets are measured on two tensors of known sizes. One has few dimensions, which are
 * stored in the tensor; the other has many, which are stored elsewhere. During the measurement,
 * memory is read by process_vm_readv, which does not fault. Without a measurement nothing is
 * read.
 */
#ifndef PPERF_PRELOAD_TORCH_INPUT_SHAPES_H
#define PPERF_PRELOAD_TORCH_INPUT_SHAPES_H

#include <stdbool.h>
#include <stdint.h>

/* Measures at a test operator that has one tensor as input. `inputs`: where the operator has the
 * address and the number of its inputs. `many`: the tensor is the one with many dimensions. */
void torch_shapes_watch(const void *inputs, bool many);

/* Returns whether both measurements succeeded and agree. */
bool torch_shapes_known(void);
const char *torch_shapes_failure(void);

/* Returns the name id of the sizes of each input, such as `[[64, 128], [128], []]`. An input
 * that is not a tensor has []. Returns 0 if no id is left. `inputs` is as above and is valid
 * only while the operator starts. */
uint32_t torch_shapes_name(const void *inputs);

#endif
