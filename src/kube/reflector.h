// Reflector: a true copy of one resource, told as adds, updates and deletes on the I/O thread. Reflector
// drives ReflectorState over an Io; TypedReflector keeps the decoded objects beside it.
//
// What the handlers may rely on: the order of changes of one object; no order between objects; the copy has
// changed before they are called; they are called one after another; OnSynced comes after the whole first
// list.
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
  std::string name_space;  // empty: all
  std::string label_selector;
  std::string field_selector;
  ReflectorRules rules;
  std::uint64_t seed = 1;
  Duration list_timeout{120'000};
  Duration watch_idle{180'000};
};

class Reflector {
 public:
  // All three must outlive it. Begins with Start.
  Reflector(Io& io, Counters& counters, ReflectorOptions options, ObjectSink& sink);
  ~Reflector();  // Stop
  Reflector(const Reflector&) = delete;
  Reflector& operator=(const Reflector&) = delete;

  void Start();
  // After it returns the sink is not called any more. Not from within the sink.
  void Stop();

  // Any thread.
  bool synced() const;
  // Since the server last confirmed the copy: a page, an event, an open or ended watch. Grows while nothing
  // is heard.
  Duration Age() const;
  // On the I/O thread: whether the copy has a write that was answered with this version. What decides waits
  // for it.
  bool HasSeen(std::string_view written_version) const;

 private:
  class Impl;
  Io& io_;
  std::unique_ptr<Impl> impl_;
};

// Keeps T for each object. Decode turns JSON (padded) into a T; an object it refuses is logged, counted and
// left out (a known one is kept as it was), since one strange object must not stop the others.
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
  using Decode = std::function<Result<T>(const ObjectHead& head, std::string_view json)>;

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
  void OnAdd(const ObjectHead& head, std::string_view json) override { Put(head, json); }
  void OnUpdate(const ObjectHead& head, std::string_view json) override { Put(head, json); }
  void OnDelete(const ObjectHead& head, std::string_view) override {
    auto gone = objects_.extract(ObjectKey{head.name_space, head.name});
    if (!gone.empty()) handler_.OnDelete(gone.mapped());
  }
  void OnSynced() override { handler_.OnSynced(); }

  void Put(const ObjectHead& head, std::string_view json);

  Decode decode_;
  Handler& handler_;
  Counters& counters_;
  std::string plural_;
  std::map<ObjectKey, T> objects_;
  Reflector reflector_;
};

// One line in the log for an object that cannot be used.
void LogBadObject(std::string_view plural, const ObjectHead& head, const Error& error);

template <class T>
void TypedReflector<T>::Put(const ObjectHead& head, std::string_view json) {
  Result<T> decoded = decode_(head, json);
  if (!decoded) {
    ++counters_.bad_objects;
    LogBadObject(plural_, head, decoded.error());
    return;
  }
  const auto [at, added] = objects_.try_emplace(ObjectKey{head.name_space, head.name}, *decoded);
  if (added) return handler_.OnAdd(at->second);
  const T before = std::exchange(at->second, *std::move(decoded));
  handler_.OnUpdate(before, at->second);
}

}  // namespace voda::kube
