// For the tests: a sink that remembers what a cluster reported. One thread.
#pragma once

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "cluster/sink.h"

namespace voda::testing {

class FakeSink : public ClusterSink {
 public:
  void Post(std::vector<TypedEvent> events) override {
    ++posts;
    for (TypedEvent& one : events) posted.push_back(std::move(one.event));
  }
  void Notice(JobNotice notice) override { notices.push_back(std::move(notice)); }
  void Ready(LedgerContents contents, std::vector<TypedEvent> nodes) override {
    ready.push_back({std::move(contents), std::move(nodes)});
  }
  void Found(FoundJob job, std::vector<TypedEvent> nodes) override {
    found.push_back(std::move(job));
    for (TypedEvent& one : nodes) posted.push_back(std::move(one.event));
  }
  void Gone(const std::string& job, std::vector<TypedEvent> nodes) override {
    gone.push_back(job);
    for (TypedEvent& one : nodes) posted.push_back(std::move(one.event));
  }
  void Answer(std::function<void()> answer) override { answer(); }

  int posts = 0;
  std::vector<Event> posted;
  std::vector<JobNotice> notices;
  std::vector<std::pair<LedgerContents, std::vector<TypedEvent>>> ready;
  std::vector<FoundJob> found;
  std::vector<std::string> gone;
};

}  // namespace voda::testing
