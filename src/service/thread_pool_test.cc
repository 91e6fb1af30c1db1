#include "service/thread_pool.h"

#include <gtest/gtest.h>

#include <future>
#include <string>

namespace voda {
namespace {

TEST(ThreadPool, WhatIsPostedFirstComesBeforeAllThatWaits) {
  std::string order;
  std::promise<void> begun, go_on, done;
  ThreadPool threads(1, 2);
  EXPECT_TRUE(threads.Post([&] {
    begun.set_value();
    go_on.get_future().wait();
  }));
  begun.get_future().wait();
  EXPECT_TRUE(threads.Post([&] { order += 'a'; }));
  EXPECT_TRUE(threads.Post([&] {
    order += 'b';
    done.set_value();
  }));
  EXPECT_FALSE(threads.Post([] {})) << "two wait already";
  threads.PostFirst([&] { order += 'r'; });
  go_on.set_value();
  done.get_future().wait();
  EXPECT_EQ(order, "rab");
}

}  // namespace
}  // namespace voda
