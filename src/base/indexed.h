// Index: a position in one kind of list. IndexedVector: a list that only its own kind of position subscripts.
//
// Positions of jobs and of nodes are different types, so that neither is taken for the other, and no
// subscript needs a cast. An Index is an int32_t in size and speed; -1 stands for none. An enum can be a
// position, too.
#pragma once

#include <cassert>
#include <compare>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <ios>
#include <iterator>
#include <utility>
#include <vector>

namespace voda {

template <class Tag>
class Index {
 public:
  constexpr Index() = default;
  // A constant converts by itself, as in `jobs[0]`. A number that is known only at run time has to be spelled
  // out, as in `JobIndex(i)`.
  consteval Index(long long position) : position_(static_cast<std::int32_t>(position)) {}
  template <std::integral Number>
  constexpr explicit Index(Number position) : position_(static_cast<std::int32_t>(position)) {}

  template <std::integral Number>
  requires(!std::same_as<Number, bool>) constexpr explicit operator Number() const {
    return static_cast<Number>(position_);
  }

  constexpr Index next() const { return Index(position_ + 1); }
  constexpr Index& operator++() {
    ++position_;
    return *this;
  }
  constexpr Index& operator--() {
    --position_;
    return *this;
  }

  friend constexpr auto operator<=>(Index, Index) = default;  // NOLINT: clang-tidy 14 takes it for a null

  // For the messages of tests.
  template <std::derived_from<std::ios_base> Stream>
  friend Stream& operator<<(Stream& out, Index index) {
    out << index.position_;
    return out;
  }

 private:
  std::int32_t position_ = -1;
};

// The positions of a list, for a loop over them.
template <class Position>
class IndexRange {
 public:
  class Iterator {
   public:
    using iterator_category = std::input_iterator_tag;
    using value_type = Position;
    using difference_type = std::ptrdiff_t;
    using pointer = const Position*;
    using reference = Position;

    explicit Iterator(Position at) : at_(at) {}
    Position operator*() const { return at_; }
    Iterator& operator++() {
      ++at_;
      return *this;
    }
    friend bool operator==(Iterator, Iterator) = default;

   private:
    Position at_;
  };

  explicit IndexRange(std::size_t size) : end_(Position(size)) {}
  Iterator begin() const { return Iterator(Position(0)); }
  Iterator end() const { return end_; }

 private:
  Iterator end_;
};

// A std::vector in everything but its subscript.
template <class Position, class T>
class IndexedVector : public std::vector<T> {
  using Base = std::vector<T>;

 public:
  using Base::Base;
  explicit IndexedVector(Base values) : Base(std::move(values)) {}

  typename Base::reference operator[](Position index) { return Base::operator[](Checked(index)); }
  typename Base::const_reference operator[](Position index) const { return Base::operator[](Checked(index)); }

  // The positions as they are now: not for a loop that adds or removes elements.
  IndexRange<Position> indices() const { return IndexRange<Position>(this->size()); }
  // Where the next element will be.
  Position end_index() const { return Position(this->size()); }
  // Those behind it move up.
  void EraseAt(Position index) { this->erase(this->begin() + static_cast<std::ptrdiff_t>(Checked(index))); }

 private:
  std::size_t Checked(Position index) const {
    const auto position = static_cast<std::size_t>(index);
    assert(position < this->size());
    return position;
  }
};

}  // namespace voda
