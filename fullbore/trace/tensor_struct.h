#pragma once
#include <array>
#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "fullbore/ir/tensor.h"

/// A struct of tensors as a list of them, in the order of its members, and back: what control.h carries.
///
///     struct Halting { Tensor hidden, left; std::array<Tensor, 2> sums; };
///
/// A member is a Tensor, an array or a vector of such, or a struct of such; numbers, enums and texts are left as they
/// are. At most 12 members, no base classes: what has more names its parts in structs of their own.
namespace fullbore {
namespace tensor_struct {

constexpr size_t kMostMembers = 12;

struct Anything {
  template <class T>
  operator T() const;  // NOLINT: stands for a member of any type; is never called
};

template <class T, size_t... I>
constexpr bool takes(std::index_sequence<I...>) {
  return requires { T{(static_cast<void>(I), Anything())...}; };
}

template <class T, size_t Count = kMostMembers + 1>
constexpr size_t member_count() {
  if constexpr (takes<T>(std::make_index_sequence<Count>()))
    return Count;
  else if constexpr (Count == 0)
    return 0;
  else
    return member_count<T, Count - 1>();
}

template <class T>
inline constexpr bool kIsList = false;
template <class T, class Allocator>
inline constexpr bool kIsList<std::vector<T, Allocator>> = true;
template <class T, size_t Count>
inline constexpr bool kIsList<std::array<T, Count>> = true;

template <class T>
inline constexpr bool kIsLeft =
    std::is_arithmetic_v<T> || std::is_enum_v<T> || std::is_same_v<T, std::string> ||
    std::is_same_v<T, std::string_view>;

/// Calls visit(member) for each member; `S` may be const.
template <class S, class Visit>
void for_each_member(S& s, const Visit& visit) {
  constexpr size_t kCount = member_count<std::remove_const_t<S>>();
  static_assert(kCount <= kMostMembers, "a struct of tensors has at most 12 members");
  const auto all = [&](auto&... members) { (visit(members), ...); };
  if constexpr (kCount == 1) {
    auto& [a] = s;
    all(a);
  } else if constexpr (kCount == 2) {
    auto& [a, b] = s;
    all(a, b);
  } else if constexpr (kCount == 3) {
    auto& [a, b, c] = s;
    all(a, b, c);
  } else if constexpr (kCount == 4) {
    auto& [a, b, c, d] = s;
    all(a, b, c, d);
  } else if constexpr (kCount == 5) {
    auto& [a, b, c, d, e] = s;
    all(a, b, c, d, e);
  } else if constexpr (kCount == 6) {
    auto& [a, b, c, d, e, f] = s;
    all(a, b, c, d, e, f);
  } else if constexpr (kCount == 7) {
    auto& [a, b, c, d, e, f, g] = s;
    all(a, b, c, d, e, f, g);
  } else if constexpr (kCount == 8) {
    auto& [a, b, c, d, e, f, g, h] = s;
    all(a, b, c, d, e, f, g, h);
  } else if constexpr (kCount == 9) {
    auto& [a, b, c, d, e, f, g, h, i] = s;
    all(a, b, c, d, e, f, g, h, i);
  } else if constexpr (kCount == 10) {
    auto& [a, b, c, d, e, f, g, h, i, j] = s;
    all(a, b, c, d, e, f, g, h, i, j);
  } else if constexpr (kCount == 11) {
    auto& [a, b, c, d, e, f, g, h, i, j, k] = s;
    all(a, b, c, d, e, f, g, h, i, j, k);
  } else if constexpr (kCount == 12) {
    auto& [a, b, c, d, e, f, g, h, i, j, k, l] = s;
    all(a, b, c, d, e, f, g, h, i, j, k, l);
  }
}

/// Calls visit(tensor) for each tensor that is in it, at whatever depth.
template <class S, class Visit>
void for_each_tensor(S& s, const Visit& visit) {
  using Plain = std::remove_const_t<S>;
  if constexpr (std::is_same_v<Plain, Tensor>) {
    visit(s);
  } else if constexpr (kIsList<Plain>) {
    for (auto& each : s) for_each_tensor(each, visit);
  } else if constexpr (!kIsLeft<Plain>) {
    static_assert(std::is_aggregate_v<Plain>,
                  "what a loop carries is a struct whose members are Tensors, arrays or vectors of "
                  "them, or such structs");
    for_each_member(s, [&](auto& member) { for_each_tensor(member, visit); });
  }
}

}  // namespace tensor_struct

/// The tensors of a struct in order, those left out that are empty.
template <class S>
std::vector<Tensor> tensors_of(const S& s) {
  std::vector<Tensor> tensors;
  tensor_struct::for_each_tensor(s, [&](const Tensor& each) {
    if (each.valid()) tensors.push_back(each);
  });
  return tensors;
}

/// `like` with these in place of the tensors that tensors_of() lists, which are as many.
template <class S>
S with_tensors(S like, std::span<const Tensor> tensors) {
  size_t next = 0;
  tensor_struct::for_each_tensor(like, [&](Tensor& each) {
    if (each.valid()) each = tensors[next++];
  });
  return like;
}

}  // namespace fullbore
