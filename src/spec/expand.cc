#include "spec/expand.h"

#include <utility>

namespace voda {

namespace spec {

void Expander::Set(const std::string& name, std::string value) {
  const auto [place, added] = places_.try_emplace(name, variables_.size());
  if (added) {
    variables_.push_back({name, std::move(value)});
  } else {
    variables_[place->second].value = std::move(value);
  }
}

const std::string* Expander::Find(std::string_view name) const {
  const auto place = places_.find(name);
  return place == places_.end() ? nullptr : &variables_[place->second].value;
}

std::string Expander::Expand(std::string_view text) {
  std::string out;
  std::size_t i = 0;
  bool closes = true;  // there is a ) further on
  while (i < text.size()) {
    const std::size_t dollar = text.find('$', i);
    if (dollar == std::string_view::npos || dollar + 1 == text.size()) break;
    out += text.substr(i, dollar - i);
    i = dollar + 2;
    if (text[dollar + 1] == '$') {  // an escape: what follows is not looked at
      out += '$';
      continue;
    }
    const bool opens = text[dollar + 1] == '(';
    const std::size_t end = opens && closes ? text.find(')', i) : std::string_view::npos;
    if (end == std::string_view::npos) {
      if (opens) closes = false;
      out += text.substr(dollar, 2);
      continue;
    }
    i = end + 1;
    std::string_view piece = text.substr(dollar, i - dollar);
    if (const std::string* value = Find(piece.substr(2, piece.size() - 3))) {
      if (out.size() + value->size() > kMaxStringBytes ||
          total_ + out.size() + value->size() > kMaxTotalBytes) {
        overflowed_ = true;
      } else {
        piece = *value;
      }
    }
    out += piece;
  }
  out += text.substr(i);
  total_ += out.size();
  return out;
}

}  // namespace spec

std::string ExpandVariables(std::string_view text, const std::vector<EnvVar>& env) {
  spec::Expander expander;
  for (const EnvVar& variable : env) expander.Set(variable.name, variable.value);
  return expander.Expand(text);
}

std::vector<EnvVar> ExpandEnvironment(const std::vector<EnvVar>& given, const std::vector<EnvVar>& env) {
  spec::Expander expander;
  for (const EnvVar& variable : given) expander.Set(variable.name, variable.value);
  for (const EnvVar& variable : env) expander.Set(variable.name, expander.Expand(variable.value));
  return expander.variables();
}

}  // namespace voda
