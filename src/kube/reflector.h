// Reflector: a true copy of one resource, told as adds, updates and deletes on the I/O thread. Reflector
// drives ReflectorState over an Io; TypedReflector keeps the decoded objects beside it.
//
// Handlers are called one after another, after the copy has changed. They see the changes of one object in
// order; there is no order between objects. OnSynced comes after the whole first list.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "base/result.h"
#include "kube/counters.h"
#include "kube/io.h"
#include "kube/reflector_state.h"

namespace voda::kube {

struct ReflectorOptions {
  Resource resource;
  std::string name_space;  // empty means all namespaces
  std::string label_selector;
  std::string field_selector;
  std::string if_missing;  // what to do where the server does not know the resource, for people
  ReflectorRules rules;
  std::uint64_t seed = 1;
  Duration list_timeout{120'000};
  Duration watch_idle{180'000};
};

class Reflector {
 public:
  // The references must outlive the reflector, which begins with Start.
  Reflector(Io& io, Counters& counters, ReflectorOptions options, ObjectSink& sink);
  ~Reflector();  // calls Stop
  Reflector(const Reflector&) = delete;
  Reflector& operator=(const Reflector&) = delete;

  void Start();
  // The sink is not called any more after this has returned. Do not call this from within the sink.
  void Stop();

  // Any thread.
  bool synced() const;
  // The time since the server last confirmed the copy by a page, an event, or an opened or ended watch.
  Duration Age() const;
  // On the I/O thread: whether the copy contains a write that was answered with this version. Decisions
  // that depend on the write wait for it.
  bool HasSeen(std::string_view written_version) const;

 private:
  class Impl;
  Io& io_;
  std::unique_ptr<Impl> impl_;
};

// Keeps a T for each object. Decode makes a T of each version of an object. It also gets its result for the
// previous version, which is null for a new object, and may share with it what has not changed. An object
// that Decode refuses is logged, counted and left out (a known one stays as it was), since one strange
// object must not stop the others.
template <class T>
class TypedReflector final : private ObjectSink {
 public:
  class Handler {
   public:
    virtual ~Handler() = default;
    virtual void OnAdd(const T& object) = 0;
    virtual void OnUpdate(const T& before, const T& object) = 0;
    virtual void OnDelete(const T& last) = 0;
    virtual void OnSynced() = 0;
  };
  using Decode = std::function<Result<T>(const ObjectHead& head, const JsonView& object, const T* before)>;

  TypedReflector(Io& io, Counters& counters, ReflectorOptions options, Decode decode, Handler& handler)
      : decode_(std::move(decode)),
        handler_(handler),
        counters_(counters),
        plural_(options.resource.plural),
        reflector_(io, counters, std::move(options), *this) {}

  void Start() { reflector_.Start(); }
  void Stop() { reflector_.Stop(); }
  bool synced() const { return reflector_.synced(); }
  Duration Age() const { return reflector_.Age(); }
  // On the I/O thread.
  bool HasSeen(std::string_view written_version) const { return reflector_.HasSeen(written_version); }
  const std::map<ObjectKey, T>& objects() const { return objects_; }

 private:
  void OnAdd(const ObjectHead& head, const JsonView& object) override { Put(head, object); }
  void OnUpdate(const ObjectHead& head, const JsonView& object) override { Put(head, object); }
  void OnDelete(const ObjectHead& head, const JsonView&) override {
    auto gone = objects_.extract(ObjectKey{head.name_space, head.name});
    if (!gone.empty()) handler_.OnDelete(gone.mapped());
  }
  void OnSynced() override { handler_.OnSynced(); }

  void Put(const ObjectHead& head, const JsonView& object);

  Decode decode_;
  Handler& handler_;
  Counters& counters_;
  std::string plural_;
  std::map<ObjectKey, T> objects_;
  Reflector reflector_;
};

// Logs one line about an object that cannot be used.
void LogBadObject(std::string_view plural, const ObjectHead& head, const Error& error);

template <class T>
void TypedReflector<T>::Put(const ObjectHead& head, const JsonView& object) {
  const ObjectKey key{head.name_space, head.name};
  const auto at = objects_.find(key);
  Result<T> decoded = decode_(head, object, at == objects_.end() ? nullptr : &at->second);
  if (!decoded) {
    ++counters_.bad_objects;
    LogBadObject(plural_, head, decoded.error());
    return;
  }
  if (at == objects_.end()) return handler_.OnAdd(objects_.emplace(key, *std::move(decoded)).first->second);
  const T before = std::exchange(at->second, *std::move(decoded));
  handler_.OnUpdate(before, at->second);
}

}  // namespace voda::kube
