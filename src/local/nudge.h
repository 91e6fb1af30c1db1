// Nudge: when to change the list of hosts of an Elastic Horovod job for a moment, so that it looks again.
//
// Horovod tells its workers of a changed list once. Workers that have not come so far as to listen, as they
// import their libraries still, never hear of it, and the job stays at its old size for ever. While its
// processes do not follow the list, the list is off by one for a moment, and the next change is told anew.
// Pure; later each time, and then no more: training that looks at the list between long steps follows late.
#pragma once

namespace voda::local {

class Nudge {
 public:
  static constexpr double kFirst = 10;  // seconds after the change; twice as long each time
  static constexpr double kFor = 2.5;   // Horovod looks once a second
  static constexpr int kTimes = 4;

  // The list has changed.
  void Begin(double now);
  void End() { active_ = false; }
  // When Off has something to say; infinity: no more.
  double due() const;
  // Whether the list is to be off by one from `now` on. Asked when it is due.
  bool Off(double now, bool follows);

 private:
  bool active_ = false;
  bool off_ = false;
  double due_ = 0;
  double wait_ = 0;
  int times_ = 0;
};

}  // namespace voda::local
