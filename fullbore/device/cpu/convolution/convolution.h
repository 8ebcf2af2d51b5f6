#pragma once
#include "fullbore/device/cpu/kernel.h"

namespace fullbore::cpu {

/// The op `convolution`: for each block of output positions, which may span images, the inputs that it reads are packed as
/// columns [K C, positions], some depth at a time, and multiplied by the weights [O, K C] by the loops of a GemmUnit.
///
/// An item is one block of one group. Zeros between inputs (of gradients and transposed convolutions) are never packed:
/// output positions are taken in phases, each of which meets its own elements of the kernel.
/// Each element is one chain of multiply-adds over kernel positions and channels, whatever the batch.
/// Bound: the multiplications, at the rate of a matmul of that dtype; packing adds one load and store for O / lanes of
/// them.
std::unique_ptr<Kernel> make_convolution(KernelRequest& request);

/// The same without zeros between inputs: a block of padded inputs [C, rows, width] is copied once, inputs that are a stride
/// apart side by side, and each element of the kernel reads the columns that it multiplies there, at its own offset; of fewer
/// than 16 channels they are packed from there, those of many elements for one multiplication. Columns at the end of a row,
/// (K - 1) / stride of them, are computed in vain. bf16 goes through the processor's tiles (AMX) where channels fill them. An
/// item is one block of one image and group, at one place along the first of three axes.
std::unique_ptr<Kernel> make_plane_convolution(KernelRequest& request);

/// The op `winograd_convolution`: an item is a block of tiles of one group, of several images where these are small. What is
/// made of its inputs is multiplied by what is made of the weights, once for a worker's items of a group, in 16 matmuls by
/// the loops of a GemmUnit; each element is one chain of multiply-adds over channels. bf16 and f16 are widened.
std::unique_ptr<Kernel> make_winograd_convolution(KernelRequest& request);

/// The op `convolution_weight_gradient`: for each line of outputs, the lines of inputs that meet it are multiplied by its
/// gradients, transposed: sums [K, C, O] stay in the worker's scratch over all images of a part.
///
/// An item is one part of the batch, one group and a block of its input and output channels. bf16 and f16 are widened.
std::unique_ptr<Kernel> make_convolution_weight_gradient(KernelRequest& request);
/// The same of bf16 by the processor's tiles (AMX), without strides, over one or two axes, where channels fill tiles: sums
/// over all positions of a block of padded inputs at once, for each element of the kernel.
std::unique_ptr<Kernel> make_plane_weight_gradient(KernelRequest& request);
/// The same of fewer than 16 channels in bf16 or f16, over one or two axes: an image is copied once with its channels side by side, so that
/// a line of the kernel in all channels is the rows of one multiplication. An item is one part of the batch and one group.
std::unique_ptr<Kernel> make_few_channel_weight_gradient(KernelRequest& request);
/// The same of groups of one input channel, without strides, over one or two axes: a line of the kernel is a few sums along
/// a plane of inputs, each one element on. Bound: one load for each multiply-add.
std::unique_ptr<Kernel> make_depthwise_weight_gradient(KernelRequest& request);

}  // namespace fullbore::cpu
