#include "kubeflow/node_book.h"

#include <gtest/gtest.h>

namespace voda::kubeflow {
namespace {

NodeObject Machine(const std::string& name, std::int64_t gpus, const std::string& type = "v100") {
  NodeObject node;
  node.head.name = name;
  node.gpu_type = type;
  node.allocatable = {{"nvidia.com/gpu", gpus}, {"cpu", 16}};
  node.ready = true;
  return node;
}

PodObject Pod(const std::string& uid, const std::string& node, std::int64_t gpus) {
  PodObject pod;
  pod.head.uid = uid;
  pod.node = node;
  pod.requests = {{"nvidia.com/gpu", gpus}};
  return pod;
}

// Writes each change on a line.
std::string Told(NodeBook& book, double now = 0, std::optional<double>* wake = nullptr) {
  std::string text;
  std::optional<double> next;
  for (const auto& [type, event] : book.Changes(now, next)) {
    if (const auto* added = std::get_if<NodeAdded>(&event)) {
      text += "add " + added->node.name + " " + std::to_string(added->node.gpus);
    } else if (const auto* removed = std::get_if<NodeRemoved>(&event)) {
      text += "remove " + removed->node;
    } else {
      const auto& changed = std::get<NodeChanged>(event);
      text += "change " + changed.node;
      if (changed.gpus) text += " " + std::to_string(*changed.gpus);
      if (changed.state) text += " " + std::string(Name(*changed.state));
    }
    text += " of " + type + "\n";
  }
  if (wake != nullptr) *wake = next;
  return text;
}

TEST(NodeBook, OffersWhatOthersLeave) {
  NodeBook book({});
  book.Put(Machine("a", 8), 0);
  book.Put(Machine("plain", 8, ""), 0);
  book.PutForeign(Pod("p", "a", 3));
  EXPECT_EQ(Told(book), "add a 5 of v100\n");
  EXPECT_EQ(Told(book), "");
  PodObject done = Pod("p", "a", 3);
  done.phase = PodObject::Phase::kSucceeded;
  book.PutForeign(done);
  EXPECT_EQ(Told(book), "change a 8 of v100\n");
  book.PutForeign(Pod("q", "a", 100));
  EXPECT_EQ(Told(book), "change a 0 of v100\n");
  book.RemoveForeign("q");
  book.RemoveForeign("q");
  EXPECT_EQ(Told(book), "change a 8 of v100\n");
}

TEST(NodeBook, CountsTheResourceOfTheType) {
  NodeBook book({.resources = {{"cpu", "cpu"}}, .not_ready_grace = 60});
  book.Put(Machine("a", 8, "cpu"), 0);
  EXPECT_EQ(Told(book), "add a 16 of cpu\n");
}

TEST(NodeBook, ANodeThatDoesNotAnswerIsLostAfterItsGrace) {
  NodeBook book({});
  NodeObject node = Machine("a", 8);
  book.Put(node, 0);
  Told(book);
  node.ready = false;
  node.not_ready_since = 40;  // by a clock that is a minute behind
  book.Put(node, 100);
  std::optional<double> wake;
  EXPECT_EQ(Told(book, 110, &wake), "change a cordoned of v100\n");
  EXPECT_EQ(wake, 160);
  EXPECT_FALSE(book.Silent("a", 159));
  book.Put(node, 150);  // this is no news
  EXPECT_EQ(Told(book, 160, &wake), "change a lost of v100\n");
  EXPECT_TRUE(book.Silent("a", 160));
  EXPECT_FALSE(wake);
  node.ready = true;
  book.Put(node, 0);
  EXPECT_EQ(Told(book, 170), "change a ready of v100\n");
  EXPECT_FALSE(book.Silent("a", 170));
  EXPECT_FALSE(book.Silent("unknown", 170));
}

TEST(NodeBook, OfANodeThatIsFoundNotReadyTheObjectSaysSinceWhen) {
  NodeBook book({});
  NodeObject node = Machine("a", 8);
  node.ready = false;
  node.not_ready_since = 40;
  book.Put(node, 99);
  EXPECT_FALSE(book.Silent("a", 99));
  EXPECT_TRUE(book.Silent("a", 100));
}

TEST(NodeBook, NodesLeaveAndChangeTheirType) {
  NodeBook book({});
  NodeObject node = Machine("a", 8);
  book.Put(node, 0);
  book.Put(Machine("b", 4), 0);
  EXPECT_EQ(Told(book), "add a 8 of v100\nadd b 4 of v100\n");
  node.leaving = true;
  book.Put(node, 0);
  EXPECT_EQ(Told(book), "change a lost of v100\n");
  node.leaving = false;
  node.cordoned = true;
  book.Put(node, 0);
  EXPECT_EQ(Told(book), "change a cordoned of v100\n");
  node.gpu_type = "a100";
  book.Put(node, 0);
  book.Remove("b");
  EXPECT_EQ(Told(book), "remove a of v100\nremove b of v100\nadd a 8 of a100\n");
}

}  // namespace
}  // namespace voda::kubeflow
