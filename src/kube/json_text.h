// Writing JSON: quoting and times as Kubernetes wants them. Bodies are short; string building reads well
// enough.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "kube/time.h"

namespace voda::kube {

// With quotes; bytes that are not UTF-8 become U+FFFD.
std::string JsonText(std::string_view text);
// Object members: Members().Text("a", "b").Raw("c", "[1]").Object() is {"a":"b","c":[1]}.
class Members {
 public:
  Members& Text(std::string_view key, std::string_view value);
  Members& TextIf(std::string_view key, std::string_view value);  // not where it is empty
  Members& Number(std::string_view key, long long value);
  Members& Flag(std::string_view key, bool value);
  Members& Raw(std::string_view key, std::string_view json);
  bool empty() const { return text_.empty(); }
  std::string Object() const { return "{" + text_ + "}"; }

 private:
  void Key(std::string_view key);
  std::string text_;
};

// "2026-01-02T03:04:05.000006Z"
std::string MicroTime(WallTime time);
// RFC 3339, any fraction and offset.
std::optional<WallTime> ParseTime(std::string_view text);

std::string EncodeBase64(std::string_view bytes);
// Standard alphabet, padded; line breaks are skipped.
std::optional<std::string> DecodeBase64(std::string_view text);

}  // namespace voda::kube
