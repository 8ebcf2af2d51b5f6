#pragma once
#include <memory>

#include "fullbore/device/cpu/kernel.h"
#include "fullbore/device/cpu/quant/int8_unit.h"

namespace fullbore::cpu {

/// Matmuls of rows that are rounded to 8 bits with 8-bit weights, read where they lie: for one row that is all
/// there is to wait for. An item is some rows by some columns; a worker rounds the rows of its items into scratch
/// of its own, once for neighbouring items, so nobody waits for anybody.
std::unique_ptr<Kernel> make_quantized_linear(KernelRequest& request);

/// The same by a given unit, for tests.
std::unique_ptr<Kernel> make_quantized_linear(const KernelRequest& request, const Int8Unit& unit);

}  // namespace fullbore::cpu
