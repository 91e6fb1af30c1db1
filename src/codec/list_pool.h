// ListPool: one list for all jobs of a snapshot that have the same one. Private to src/codec.
#pragma once

#include <algorithm>
#include <memory>
#include <set>
#include <tuple>
#include <vector>

#include "model/span.h"

namespace voda::internal {

inline bool Before(int a, int b) {
  return a < b;
}
inline bool Before(const SpanSpeedup& a, const SpanSpeedup& b) {
  return std::tie(a.workers, a.nodes, a.speedup) < std::tie(b.workers, b.nodes, b.speedup);
}

template <class Element>
class ListPool {
 public:
  using List = std::vector<Element>;
  using ListPtr = std::shared_ptr<const List>;

  ListPtr Of(const List& list) {
    const auto found = lists_.lower_bound(list);
    if (found != lists_.end() && !lists_.key_comp()(list, *found)) return *found;
    return *lists_.insert(found, std::make_shared<const List>(list));
  }

 private:
  struct ByContent {
    using is_transparent = void;
    static const List& Of(const List& list) { return list; }
    static const List& Of(const ListPtr& list) { return *list; }
    template <class A, class B>
    bool operator()(const A& a, const B& b) const {
      const List& left = Of(a);
      const List& right = Of(b);
      return std::lexicographical_compare(left.begin(), left.end(), right.begin(), right.end(),
                                          [](const Element& x, const Element& y) { return Before(x, y); });
    }
  };

  std::set<ListPtr, ByContent> lists_;
};

}  // namespace voda::internal
