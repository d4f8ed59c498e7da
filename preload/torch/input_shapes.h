/* SPDX-License-Identifier: MIT
 * torch_shapes.h: the sizes of an operator's inputs, read from PyTorch's own objects: an IValue's tag and tensor, a tensor's dimensions and sizes. Where these
 * lie is measured on two tensors of known sizes, one with few dimensions (they lie in the tensor) and one with many (elsewhere); while that is being
 * found out the memory is read through the kernel, which does not fault. Without a measurement nothing is read.
 */
#ifndef PPERF_PRELOAD_TORCH_INPUT_SHAPES_H
#define PPERF_PRELOAD_TORCH_INPUT_SHAPES_H

#include <stdbool.h>
#include <stdint.h>

/* inputs: where an operator of one tensor has the address and the number of its inputs. many: the tensor is the one of many dimensions. */
void torch_shapes_watch(const void *inputs, bool many);

/* Both measurements agree. */
bool torch_shapes_known(void);
const char *torch_shapes_failure(void);

/* `[[64, 128], [128], []]`: the sizes of each input, [] where it is no tensor. A name id; 0: none could be had. inputs: as above, while the operator starts. */
uint32_t torch_shapes_name(const void *inputs);

#endif
