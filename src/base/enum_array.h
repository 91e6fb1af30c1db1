// EnumArray: one element for each value of an enum, from 0 to `kLast`, subscripted by the value itself.
#pragma once

#include <array>
#include <cstddef>

namespace voda {

template <class Enum>
constexpr std::size_t PositionOf(Enum value) {
  return static_cast<std::size_t>(value);
}

template <class T, auto kLast>
struct EnumArray {
  using Enum = decltype(kLast);
  static constexpr std::size_t kSize = PositionOf(kLast) + 1;

  T values[kSize];

  constexpr T& operator[](Enum at) { return values[PositionOf(at)]; }
  constexpr const T& operator[](Enum at) const { return values[PositionOf(at)]; }
  constexpr T* begin() { return values; }
  constexpr T* end() { return values + kSize; }
  constexpr const T* begin() const { return values; }
  constexpr const T* end() const { return values + kSize; }

  // The values of the enum, for a loop over them.
  static constexpr std::array<Enum, kSize> keys() {
    std::array<Enum, kSize> all{};
    for (std::size_t i = 0; i < kSize; ++i) all[i] = static_cast<Enum>(i);
    return all;
  }
};

}  // namespace voda
