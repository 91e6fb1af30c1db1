#include "kube/json_read.h"

#include <fmt/format.h>
#include <simdjson.h>

#include <bit>
#include <utility>

namespace voda::kube {

namespace {

namespace dom = simdjson::dom;

static_assert(kJsonPadding >= simdjson::SIMDJSON_PADDING);
static_assert(sizeof(dom::element) == 16 && std::is_trivially_copyable_v<dom::element>);

thread_local std::uint64_t texts_read = 0;

// A list is cut into its items without looking closely at them.
namespace ondemand = simdjson::ondemand;

// Calls on_member(key, value) for each; it returns an error code.
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
  return simdjson::SUCCESS;
}

simdjson::error_code TakeListMetadata(ondemand::value value, ListHead& head) {
  ondemand::object metadata;
  if (const auto error = value.get_object().get(metadata)) return error;
  return ForMembers(metadata, [&](std::string_view key, ondemand::value member) {
    std::string* const into = key == "resourceVersion" ? &head.resource_version
                              : key == "continue"      ? &head.continue_token
                                                       : nullptr;
    if (into == nullptr) return simdjson::SUCCESS;
    std::string_view text;
    const auto error = member.get_string().get(text);
    if (!error) *into = text;
    return error == simdjson::INCORRECT_TYPE ? simdjson::SUCCESS : error;
  });
}

}  // namespace

void AddPadding(std::string& text) {
  if (text.capacity() < text.size() + kJsonPadding)
    text.reserve(text.size() + text.size() / 2 + kJsonPadding);
}

struct JsonView::Access {
  static JsonView Of(const dom::element& element) {
    JsonView view;
    view.present_ = true;
    view.element_ = std::bit_cast<decltype(view.element_)>(element);
    return view;
  }
  static dom::element Element(const JsonView& view) { return std::bit_cast<dom::element>(view.element_); }
  // False: it is absent, or something else.
  template <class T>
  static bool Get(const JsonView& view, T& value) {
    return view.present_ && Element(view).get(value) == simdjson::SUCCESS;
  }
};

JsonView::Kind JsonView::kind() const {
  if (!present_) return Kind::kAbsent;
  switch (Access::Element(*this).type()) {
    case dom::element_type::NULL_VALUE:
      return Kind::kNull;
    case dom::element_type::BOOL:
      return Kind::kBool;
    case dom::element_type::INT64:
      return Kind::kInteger;
    case dom::element_type::UINT64:  // too large to be one of ours
    case dom::element_type::DOUBLE:
      return Kind::kReal;
    case dom::element_type::STRING:
      return Kind::kText;
    case dom::element_type::ARRAY:
      return Kind::kList;
    case dom::element_type::OBJECT:
      return Kind::kMap;
  }
  return Kind::kAbsent;
}

JsonView JsonView::At(std::string_view pointer) const {
  dom::element element;
  if (!present_ || Access::Element(*this).at_pointer(pointer).get(element) != simdjson::SUCCESS) return {};
  return Access::Of(element);
}

std::string_view JsonView::Text() const {
  std::string_view text;
  return Access::Get(*this, text) ? text : std::string_view();
}

bool JsonView::Flag() const {
  bool flag = false;
  return Access::Get(*this, flag) && flag;
}

std::optional<std::int64_t> JsonView::Integer() const {
  std::int64_t integer = 0;
  return Access::Get(*this, integer) ? std::optional(integer) : std::nullopt;
}

double JsonView::Real() const {
  double real = 0;
  return Access::Get(*this, real) ? real : 0;
}

void JsonView::ForEach(const std::function<void(const JsonView&)>& look) const {
  dom::array array;
  if (!Access::Get(*this, array)) return;
  for (const dom::element element : array) look(Access::Of(element));
}

void JsonView::ForMembers(const std::function<void(std::string_view, const JsonView&)>& look) const {
  dom::object object;
  if (!Access::Get(*this, object)) return;
  for (const auto& [key, element] : object) look(key, Access::Of(element));
}

std::string JsonView::Compact() const {
  return present_ ? simdjson::minify(Access::Element(*this)) : std::string();
}

class JsonDocument::Impl {
 public:
  Result<JsonView> Read(std::string_view text) {
    ++texts_read;
    dom::element root;
    if (const auto error = parser_.parse(text.data(), text.size(), false).get(root)) {
      return Error{fmt::format("not JSON: {}", simdjson::error_message(error))};
    }
    return JsonView::Access::Of(root);
  }

 private:
  dom::parser parser_;
};

JsonDocument::JsonDocument() : impl_(std::make_unique<Impl>()) {}
JsonDocument::~JsonDocument() = default;

Result<JsonView> JsonDocument::Read(std::string_view text) {
  return impl_->Read(text);
}

std::uint64_t JsonDocument::TextsRead() {
  return texts_read;
}

Result<ObjectHead> ReadHead(const JsonView& object) {
  const JsonView metadata = object.At("/metadata");
  if (!metadata.map()) return Error{"an object without metadata"};
  const auto text = [&](std::string_view pointer) { return std::string(metadata.At(pointer).Text()); };
  return ObjectHead{text("/namespace"), text("/name"), text("/uid"), text("/resourceVersion")};
}

Result<ObjectHead> ReadHead(std::string_view text) {
  JsonDocument document;
  const auto root = document.Read(text);
  if (!root) return root.error();
  return ReadHead(*root);
}

Result<ListHead> ReadList(std::string_view text, const std::function<Status(const JsonView&)>& on_item) {
  // They keep their buffers, for all reflectors of the thread.
  thread_local ondemand::parser parser;
  thread_local JsonDocument document;
  ListHead head;
  std::optional<Error> refused;
  bool has_items = false;
  const auto take = [&](ondemand::value value) {
    std::string_view item;
    if (const auto error = TakeObjectText(value, item)) return error;
    ++head.items;
    const auto object = document.Read(item);
    const Status taken = object ? on_item(*object) : object.error();
    if (taken) return simdjson::SUCCESS;
    refused = taken.error();
    return simdjson::INCORRECT_TYPE;
  };
  const auto items = [&](ondemand::value value) {
    has_items = true;
    ondemand::array array;
    const auto wrong = value.get_array().get(array);
    bool null = false;
    if (wrong == simdjson::INCORRECT_TYPE && !value.is_null().get(null) && null) return simdjson::SUCCESS;
    if (wrong) return wrong;
    for (auto element : array) {
      ondemand::value item;
      if (const auto error = element.get(item)) return error;
      if (const auto error = take(item)) return error;
    }
    return simdjson::SUCCESS;
  };
  ondemand::document list;
  ondemand::object root;
  auto error = parser.iterate(text.data(), text.size(), text.size() + kJsonPadding).get(list);
  if (!error) error = list.get_object().get(root);
  if (!error) {
    error = ForMembers(root, [&](std::string_view key, ondemand::value value) {
      if (key == "metadata") return TakeListMetadata(value, head);
      if (key == "items") return items(value);
      return simdjson::SUCCESS;
    });
  }
  if (refused) return *std::move(refused);
  if (error) return Error{fmt::format("not the JSON of a list: {}", simdjson::error_message(error))};
  if (!has_items) return Error{"not a list: there are no items"};
  return head;
}

}  // namespace voda::kube
