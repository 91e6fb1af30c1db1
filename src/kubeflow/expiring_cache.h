// ExpiringCache: a bounded cache whose entries are valid for a while; the oldest make room for new ones.
#pragma once

#include <cstddef>
#include <iterator>
#include <list>
#include <map>
#include <utility>

#include "kube/time.h"

namespace voda::kubeflow {

template <class Key, class Value>
class ExpiringCache {
 public:
  explicit ExpiringCache(std::size_t most) : most_(most) {}

  // Null if there is no entry or it has expired. Valid until the next Put.
  const Value* Find(const Key& key, kube::TimePoint now) const {
    const auto at = index_.find(key);
    return at == index_.end() || at->second->until <= now ? nullptr : &at->second->value;
  }

  void Put(const Key& key, Value value, kube::TimePoint now, kube::Duration life) {
    if (const auto at = index_.find(key); at != index_.end()) Erase(at->second);
    while (!entries_.empty() && (entries_.size() >= most_ || entries_.front().until <= now)) {
      Erase(entries_.begin());
    }
    if (most_ == 0 || life <= kube::Duration(0)) return;
    entries_.push_back({key, std::move(value), now + life});
    index_.emplace(key, std::prev(entries_.end()));
  }

  std::size_t size() const { return entries_.size(); }

 private:
  struct Entry {
    Key key;
    Value value;
    kube::TimePoint until;
  };
  using Entries = std::list<Entry>;

  void Erase(typename Entries::iterator entry) {
    index_.erase(entry->key);
    entries_.erase(entry);
  }

  std::size_t most_;
  Entries entries_;  // in the order of Put
  std::map<Key, typename Entries::iterator> index_;
};

}  // namespace voda::kubeflow
