#include "client/yaml.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>

#include "base/text.h"
#include "client/text.h"
#include "document/json_text.h"

namespace voda {

namespace {

bool PlainByte(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '-' || c == '.' || c == '/' ||
         c == ' ' || c == '(' || c == ')' || c == '+' || c == '=' || c == ';' || c == ',' || c == '\'' ||
         c == ':' || c == '@' || c == '$' || c == '^';
}

// Only what cannot be mistaken is plain: it begins with a letter or a slash, has no special byte, and is no
// word that some reader gives a meaning.
bool SafePlain(std::string_view text) {
  static constexpr std::array<std::string_view, 9> kWords = {"y",   "n",    "yes",   "no",  "on",
                                                             "off", "true", "false", "null"};
  if (text.empty() || text.size() > 120) return false;
  const char first = text.front();
  if (std::isalpha(static_cast<unsigned char>(first)) == 0 && first != '/') return false;
  if (!std::all_of(text.begin(), text.end(), PlainByte)) return false;
  if (text.back() == ' ' || text.back() == ':' || text.find(": ") != text.npos) return false;
  std::string lower(text);
  std::transform(lower.begin(), lower.end(), lower.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return std::find(kWords.begin(), kWords.end(), lower) == kWords.end();
}

// Code points that a reader refuses or takes for a line break.
bool NeedsEscape(char32_t c) {
  return c < 0x20 || (c >= 0x7F && c < 0xA0) || c == 0x2028 || c == 0x2029 || c == 0xFEFF || c == 0xFFFE ||
         c == 0xFFFF;
}

std::string DoubleQuoted(std::string_view text) {
  std::string out = "\"";
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t begin = at;
    const char32_t c = NextCodePoint(text, at);
    if (c == '"' || c == '\\') {
      out += '\\';
      out += static_cast<char>(c);
    } else if (c == '\n') {
      out += "\\n";
    } else if (c == '\t') {
      out += "\\t";
    } else if (NeedsEscape(c)) {
      out += fmt::format("\\u{:04X}", static_cast<unsigned>(c));
    } else if (c == kBadCodePoint) {
      out += "\xEF\xBF\xBD";
    } else {
      out += text.substr(begin, at - begin);
    }
  }
  return out + '"';
}

// A literal block holds any text but: control characters, an end of several line breaks, a first line that
// begins with a space (the reader would take it for the indentation).
bool SafeBlock(std::string_view text) {
  if (text.find('\n') == text.npos || text.front() == ' ' || text.front() == '\n' || text.front() == '\t')
    return false;
  if (text.size() >= 2 && text.substr(text.size() - 2) == "\n\n") return false;
  for (std::size_t at = 0; at < text.size();) {
    const char32_t c = NextCodePoint(text, at);
    if (c == kBadCodePoint || (c != '\n' && c != '\t' && NeedsEscape(c))) return false;
  }
  // A line of blanks alone says nothing about the indentation, and readers differ in what they make of it.
  for (const std::string_view line : SplitWords(text, "\n")) {
    if (line.find_first_not_of(" \t") == line.npos) return false;
  }
  return true;
}

void AppendBlock(std::string& out, std::string_view text, int depth) {
  out += text.back() == '\n' ? "|" : "|-";
  if (text.back() == '\n') text.remove_suffix(1);
  for (const std::string_view line : Split(text, '\n')) {
    out += '\n';
    if (!line.empty()) out.append(depth * 2, ' ');
    out += line;
  }
}

bool Nested(const Value& value) {
  return !value.items().empty() || !value.members().empty();
}

void AppendNested(std::string& out, const Value& value, int depth);

// What stands behind `key:` or `-`, with the space or line break before it.
void AppendValue(std::string& out, const Value& value, int depth, bool in_list) {
  if (Nested(value)) {
    if (in_list) {
      out += ' ';
    } else {
      out += '\n';
      out.append(depth * 2, ' ');
    }
    AppendNested(out, value, depth);
    return;
  }
  out += ' ';
  if (value.text() && SafeBlock(value.Text())) {
    AppendBlock(out, value.Text(), depth);
  } else if (value.text()) {
    out += YamlScalar(value.Text());
  } else {
    out += ToJsonLine(value);
  }
}

// The first line is already indented.
void AppendNested(std::string& out, const Value& value, int depth) {
  bool first = true;
  const auto begin_line = [&] {
    if (!first) out.append(1, '\n').append(depth * 2, ' ');
    first = false;
  };
  for (const Value& item : value.items()) {
    begin_line();
    out += '-';
    AppendValue(out, item, depth + 1, true);
  }
  for (const auto& [key, member] : value.members()) {
    begin_line();
    out += YamlScalar(key) + ":";
    AppendValue(out, member, depth + 1, false);
  }
}

}  // namespace

std::string YamlScalar(std::string_view text) {
  return SafePlain(text) ? std::string(text) : DoubleQuoted(text);
}

std::string ToYaml(const Value& value) {
  std::string out;
  if (Nested(value)) {
    AppendNested(out, value, 0);
  } else {
    out = value.text() ? YamlScalar(value.Text()) : ToJsonLine(value);
  }
  return out + "\n";
}

}  // namespace voda
