// Mean: of what was seen so far, as long as it is not much; what was seen long ago fades out.
#pragma once

namespace voda {

struct Mean {
  double value = 0;
  int count = 0;
  double told = 0;  // the value when it was news last
  // Returns whether that is news.
  bool Add(double sample);
};

}  // namespace voda
