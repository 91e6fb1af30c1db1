#include "kube/json_read.h"

#include <fmt/format.h>
#include <simdjson.h>

#include <optional>
#include <utility>

namespace voda::kube {

namespace {

namespace ondemand = simdjson::ondemand;

static_assert(kJsonPadding >= simdjson::SIMDJSON_PADDING);

Error NotJson(std::string_view what, simdjson::error_code code) {
  return Error{fmt::format("not the JSON of {}: {}", what, simdjson::error_message(code))};
}

// Leaves `out` alone where the value is not text.
simdjson::error_code TakeText(ondemand::value value, std::string& out) {
  std::string_view text;
  const auto error = value.get_string().get(text);
  if (error == simdjson::INCORRECT_TYPE) return simdjson::SUCCESS;
  if (error == simdjson::SUCCESS) out = text;
  return error;
}

// Calls on_member(key, value) for each; it returns an error code, and `stop` ends the reading early.
template <class OnMember>
simdjson::error_code ForMembers(ondemand::object object, const OnMember& on_member) {
  for (auto field : object) {
    std::string_view key;
    if (const auto error = field.unescaped_key().get(key)) return error;
    ondemand::value value;
    if (const auto error = field.value().get(value)) return error;
    if (const auto error = on_member(key, value)) return error;
  }
  return simdjson::SUCCESS;
}

simdjson::error_code TakeObjectText(ondemand::value value, std::string_view& out) {
  ondemand::object object;
  if (const auto error = value.get_object().get(object)) return error;
  if (const auto error = object.raw_json().get(out)) return error;
  const std::size_t end = out.find_last_not_of(" \t\r\n");  // up to what follows
  out = out.substr(0, end == out.npos ? 0 : end + 1);
  // The skipping is fast because it does not look closely: what is no object at its ends is none.
  if (out.size() < 2 || out.front() != '{' || out.back() != '}') return simdjson::TAPE_ERROR;
  return simdjson::SUCCESS;
}

simdjson::error_code TakeMetadata(ondemand::value value, ObjectHead& head) {
  ondemand::object metadata;
  if (const auto error = value.get_object().get(metadata)) return error;
  return ForMembers(metadata, [&](std::string_view key, ondemand::value member) {
    if (key == "name") return TakeText(member, head.name);
    if (key == "namespace") return TakeText(member, head.name_space);
    if (key == "uid") return TakeText(member, head.uid);
    if (key == "resourceVersion") return TakeText(member, head.resource_version);
    return simdjson::SUCCESS;
  });
}

simdjson::error_code TakeListMetadata(ondemand::value value, ListHead& head) {
  ondemand::object metadata;
  if (const auto error = value.get_object().get(metadata)) return error;
  return ForMembers(metadata, [&](std::string_view key, ondemand::value member) {
    if (key == "resourceVersion") return TakeText(member, head.resource_version);
    if (key == "continue") return TakeText(member, head.continue_token);
    return simdjson::SUCCESS;
  });
}

}  // namespace

void AddPadding(std::string& text) {
  if (text.capacity() < text.size() + kJsonPadding)
    text.reserve(text.size() + text.size() / 2 + kJsonPadding);
}

class JsonReader::Impl {
 public:
  simdjson::error_code Open(std::string_view json, ondemand::document& document, ondemand::object& root) {
    if (const auto error =
            parser_.iterate(json.data(), json.size(), json.size() + kJsonPadding).get(document)) {
      return error;
    }
    return document.get_object().get(root);
  }

 private:
  ondemand::parser parser_;
};

JsonReader::JsonReader() : impl_(std::make_unique<Impl>()) {}
JsonReader::~JsonReader() = default;

Result<ObjectHead> JsonReader::Head(std::string_view json) {
  ObjectHead head;
  bool found = false;
  ondemand::document document;
  ondemand::object root;
  auto error = impl_->Open(json, document, root);
  if (!error) {
    for (auto field : root) {
      std::string_view key;
      if ((error = field.unescaped_key().get(key))) break;
      if (key != "metadata") continue;
      ondemand::value value;
      if ((error = field.value().get(value))) break;
      error = TakeMetadata(value, head);
      found = true;
      break;
    }
  }
  if (error) return NotJson("an object", error);
  if (!found) return Error{"an object without metadata"};
  return head;
}

Result<ListHead> JsonReader::List(std::string_view json,
                                  const std::function<Status(std::string_view item)>& on_item) {
  ListHead head;
  std::optional<Error> refused;
  bool has_items = false;
  ondemand::document document;
  ondemand::object root;
  auto error = impl_->Open(json, document, root);
  const auto items = [&](ondemand::value value) {
    has_items = true;
    ondemand::array array;
    const auto wrong = value.get_array().get(array);
    bool null = false;
    if (wrong == simdjson::INCORRECT_TYPE && !value.is_null().get(null) && null) return simdjson::SUCCESS;
    if (wrong) return wrong;
    for (auto element : array) {
      ondemand::value item;
      std::string_view text;
      if (const auto bad = element.get(item)) return bad;
      if (const auto bad = TakeObjectText(item, text)) return bad;
      ++head.items;
      if (const Status taken = on_item(text); !taken) {
        refused = taken.error();
        return simdjson::INCORRECT_TYPE;
      }
    }
    return simdjson::SUCCESS;
  };
  if (!error) {
    error = ForMembers(root, [&](std::string_view key, ondemand::value value) {
      if (key == "metadata") return TakeListMetadata(value, head);
      if (key == "items") return items(value);
      return simdjson::SUCCESS;
    });
  }
  if (refused) return *std::move(refused);
  if (error) return NotJson("a list", error);
  if (!has_items) return Error{"not a list: there are no items"};
  return head;
}

Result<JsonReader::Envelope> JsonReader::Event(std::string_view line) {
  Envelope envelope;
  ondemand::document document;
  ondemand::object root;
  auto error = impl_->Open(line, document, root);
  if (!error) {
    error = ForMembers(root, [&](std::string_view key, ondemand::value value) {
      if (key == "type") return TakeText(value, envelope.type);
      if (key == "object") return TakeObjectText(value, envelope.object);
      return simdjson::SUCCESS;
    });
  }
  if (error) return NotJson("a watch event", error);
  if (envelope.type.empty() || envelope.object.empty()) return Error{"a watch event without type or object"};
  return envelope;
}

}  // namespace voda::kube
