#include "fullbore/ir/derived_weight.h"

#include <fmt/format.h>

namespace fullbore {

std::string DerivedWeight::name() const {
  std::string text = parameter;
  if (dtype) text += fmt::format(" as {}", dtype_name(*dtype));
  if (packing)
    text += fmt::format(" in blocks of {} by {}{}", packing->columns, packing->depth,
                        packing->transposed ? ", transposed" : "");
  return text;
}

}  // namespace fullbore
