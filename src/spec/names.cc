#include "spec/names.h"

#include <algorithm>

namespace voda::spec {

namespace {

constexpr std::size_t kLongestLabel = 63;

bool LowerOrDigit(char c) {
  return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
}

bool Alphanumeric(char c) {
  return LowerOrDigit(c) || (c >= 'A' && c <= 'Z');
}

bool AllDigits(std::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
}

// "mnist-20211015-035048" without its time; a name of nothing else stays.
std::string_view WithoutTime(std::string_view name) {
  constexpr std::size_t kTime = 16;  // -YYYYMMDD-HHMMSS
  if (name.size() <= kTime) return name;
  const std::string_view time = name.substr(name.size() - kTime);
  if (time[0] != '-' || time[9] != '-' || !AllDigits(time.substr(1, 8)) || !AllDigits(time.substr(10))) {
    return name;
  }
  return name.substr(0, name.size() - kTime);
}

}  // namespace

bool IsLabel(std::string_view text) {
  return !text.empty() && text.size() <= kLongestLabel && LowerOrDigit(text.front()) &&
         LowerOrDigit(text.back()) &&
         std::all_of(text.begin(), text.end(), [](char c) { return LowerOrDigit(c) || c == '-'; });
}

bool IsLabelValue(std::string_view text) {
  return !text.empty() && text.size() <= kLongestLabel && Alphanumeric(text.front()) &&
         Alphanumeric(text.back()) && std::all_of(text.begin(), text.end(), [](char c) {
           return Alphanumeric(c) || c == '-' || c == '_' || c == '.';
         });
}

int LongestJobName(int max_workers, bool named) {
  const int time_and_number = named ? 0 : 16 + 3;  // -YYYYMMDD-HHMMSS-NN
  constexpr int kWorker = 8 + 4;                   // -worker-NNNN
  return static_cast<int>(kLongestLabel) - time_and_number - kWorker - (max_workers > 10'000 ? 1 : 0);
}

std::string CategoryOf(std::string_view name, std::string_view generate_name) {
  while (!generate_name.empty() && generate_name.back() == '-') generate_name.remove_suffix(1);
  if (!generate_name.empty() && name.substr(0, generate_name.size()) == generate_name) {
    return std::string(WithoutTime(generate_name));
  }
  const std::string_view plain = WithoutTime(name);
  if (plain != name) return std::string(plain);
  // A number after the time: two jobs of one second.
  const std::size_t dash = name.rfind('-');
  if (dash != std::string_view::npos && AllDigits(name.substr(dash + 1))) {
    const std::string_view front = name.substr(0, dash);
    if (WithoutTime(front) != front) return std::string(WithoutTime(front));
  }
  return std::string(name);
}

}  // namespace voda::spec
