// Bodies and requests that change objects without undoing what others did to them. Values are JSON text.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "kube/request.h"

namespace voda::kube {

// JSON Patch (RFC 6902): operations in order, all or none. A test that fails makes the server answer 422.
class JsonPatch {
 public:
  JsonPatch& Test(std::string_view pointer, std::string_view json);
  JsonPatch& Add(std::string_view pointer, std::string_view json);
  JsonPatch& Replace(std::string_view pointer, std::string_view json);
  JsonPatch& Remove(std::string_view pointer);
  // Tests that this is still the same object, and unchanged.
  JsonPatch& TestUid(std::string_view uid);
  JsonPatch& TestResourceVersion(std::string_view version);

  bool empty() const { return operations_.empty(); }
  std::string Text() const { return "[" + operations_ + "]"; }

 private:
  void Append(std::string_view operation, std::string_view pointer, const std::string_view* json);
  std::string operations_;
};

// Escapes ~ and / in one part of a JSON pointer.
std::string PointerPart(std::string_view text);

struct DeleteOptions {
  std::string uid;               // precondition; the server answers 409 if another object has the name now
  std::string resource_version;  // precondition
  std::string propagation;       // Background, Foreground or Orphan; if empty, the resource's default
  std::optional<int> grace_seconds;
};
std::string DeleteBody(const DeleteOptions& options);

// Returns {"metadata":{"uid":…,"resourceVersion":…}} with the members of `fields`, a JSON object without
// metadata. The server answers this merge patch with 409 if the object has changed. An empty uid or version
// is not checked.
std::string MergePatch(std::string_view fields, std::string_view uid, std::string_view resource_version);

struct Scale {
  int replicas = 0;
  std::string resource_version;  // if empty, the current version
  std::string uid;
};
std::string ScaleBody(const ObjectKey& key, const Scale& scale);

// Requests in the write lane, in the flow of the object's namespace.
Request GetRequest(const Resource& resource, const ObjectKey& key);
Request CreateRequest(const Resource& resource, std::string_view name_space, std::string body);
Request JsonPatchRequest(const Resource& resource, const ObjectKey& key, const JsonPatch& patch,
                         std::string_view subresource = {});
Request MergePatchRequest(const Resource& resource, const ObjectKey& key, std::string body,
                          std::string_view subresource = {});
Request UpdateRequest(const Resource& resource, const ObjectKey& key, std::string body,
                      std::string_view subresource = {});
Request ScaleRequest(const Resource& resource, const ObjectKey& key, const Scale& scale);
Request DeleteRequest(const Resource& resource, const ObjectKey& key, const DeleteOptions& options);

}  // namespace voda::kube
