// Nudge: when to change the list of hosts of an Elastic Horovod job for a moment, so that Horovod looks at
// it again.
//
// Horovod tells its workers of a changed list once. Workers that do not listen yet, because they still
// import their libraries, never hear of it, and the job would stay at its old size for ever. While its
// processes do not follow the list, the list is made wrong by one for a moment, and Horovod tells of the
// next change anew. This is pure. The waits grow, and then it stops: training that reads the list between
// long steps follows late.
#pragma once

namespace voda::local {

class Nudge {
 public:
  static constexpr double kFirst = 10;  // seconds after the change; twice as long each time
  static constexpr double kFor = 2.5;   // Horovod looks once a second
  static constexpr int kTimes = 4;

  void Begin(double now);
  void End() { active_ = false; }
  // When Off is to be asked next; infinity if never again.
  double due() const;
  // Whether the list is to be wrong by one from `now` on. Call it when it is due.
  bool Off(double now, bool follows);

 private:
  bool active_ = false;
  bool off_ = false;
  double due_ = 0;
  double wait_ = 0;
  int times_ = 0;
};

}  // namespace voda::local
