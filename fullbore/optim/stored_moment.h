#pragma once
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "fullbore/trace/trace.h"

namespace fullbore {

/// How the moments of an optimizer are stored between steps. The update itself is made in f32.
///
///   f32
///   bf16   rounded stochastically or to nearest even (rounding.h)
///   int8   a byte and, for each block of up to 256 elements, the largest magnitude s of the block in f32 (Dettmers et
///          al. 2022, arXiv:2110.02861, section 2.1)
///
/// A byte q stands for s (q / 127) |q / 127| in a moment of both signs, and for s (q / 255)^4 in one that is never
/// negative; q is rounded to nearest, but only a zero is 0 in the latter. These powers replace the paper's table, whose
/// smallest entries are 0 and 3e-7 s: the root of the second moment is a divisor, and what becomes 0 there makes an
/// update that nothing bounds. Here neighbours of a second moment above 6e-5 s differ by less than a fifth, their
/// roots by a tenth, and the smallest is 2e-10 s. Roots and products are rounded alike by every processor.
const std::vector<std::string>& moment_storages();

/// A moment of fewer elements is stored in f32 whatever the others are, as bitsandbytes does.
inline constexpr int64_t kSmallMoment = 4096;

/// Elements of a block of a moment in 8 bits: the largest multiple of 16 up to 256 that divides `elements`. 0 where that
/// is below 64, or the moment small: it stays f32.
int64_t moment_block(int64_t elements);

/// The moment of a parameter, opened for one update.
class StoredMoment {
 public:
  enum class Range : uint8_t { both_signs, not_negative };
  /// Takes note of State's new value.
  using Keep = std::function<void(Tensor state, Tensor next)>;
  struct Place {
    std::string name;     ///< of the State: its scales are `<name>.scale`, f32 [blocks]
    std::string storage;  ///< one of moment_storages()
    Shape shape;          ///< the parameter's
    Shape update_shape;   ///< that in which value() is given: [blocks, block] in 8 bits
    std::function<Tensor()> draw =
        {};  ///< uniform in [0, 1), f32, of update_shape; none: to nearest
  };
  /// UsageError for a storage that is none of moment_storages().
  StoredMoment(Trace& trace, Place place, Range range, Keep keep);

  Tensor value() const { return value_; }  ///< f32 update_shape
  void keep(Tensor next) const;            ///< f32 update_shape

 private:
  Place place_;
  Range range_;
  Keep keep_;
  Tensor state_;
  Tensor scale_;  ///< of 8 bits
  Tensor value_;
};

}  // namespace fullbore
