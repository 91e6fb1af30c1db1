#include "kube/patch.h"

#include <utility>

#include "base/check.h"
#include "document/json_writer.h"

namespace voda::kube {

namespace {

Request WriteRequest(Verb verb, const Resource& resource, std::string_view name_space, std::string_view name,
                     std::string_view subresource, std::string body) {
  return {.verb = verb,
          .path = ResourcePath(resource, name_space, name, subresource),
          .body = std::move(body),
          .lane = Lane::kWrite,
          .flow = std::string(name_space)};
}

}  // namespace

void JsonPatch::Append(std::string_view operation, std::string_view pointer, const std::string_view* json) {
  if (!operations_.empty()) operations_ += ',';
  JsonWriter out;
  out.Object().Field("op", operation).Field("path", pointer);
  if (json != nullptr) out.Key("value").Raw(*json);
  operations_ += out.End().text();
}

JsonPatch& JsonPatch::Test(std::string_view pointer, std::string_view json) {
  Append("test", pointer, &json);
  return *this;
}
JsonPatch& JsonPatch::Add(std::string_view pointer, std::string_view json) {
  Append("add", pointer, &json);
  return *this;
}
JsonPatch& JsonPatch::Replace(std::string_view pointer, std::string_view json) {
  Append("replace", pointer, &json);
  return *this;
}
JsonPatch& JsonPatch::Remove(std::string_view pointer) {
  Append("remove", pointer, nullptr);
  return *this;
}
JsonPatch& JsonPatch::TestUid(std::string_view uid) {
  return Test("/metadata/uid", Quoted(uid));
}
JsonPatch& JsonPatch::TestResourceVersion(std::string_view version) {
  return Test("/metadata/resourceVersion", Quoted(version));
}

std::string PointerPart(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == '~') {
      out += "~0";
    } else if (c == '/') {
      out += "~1";
    } else {
      out += c;
    }
  }
  return out;
}

std::string DeleteBody(const DeleteOptions& options) {
  JsonWriter body;
  body.Object().Field("kind", "DeleteOptions").Field("apiVersion", "v1");
  if (!options.uid.empty() || !options.resource_version.empty()) {
    body.Key("preconditions").Object();
    body.FieldIf("uid", options.uid).FieldIf("resourceVersion", options.resource_version).End();
  }
  body.FieldIf("propagationPolicy", options.propagation);
  if (options.grace_seconds) body.Field("gracePeriodSeconds", *options.grace_seconds);
  return body.End().Take();
}

std::string MergePatch(std::string_view fields, std::string_view uid, std::string_view resource_version) {
  VODA_CHECK(fields.size() >= 2 && fields.front() == '{' && fields.back() == '}');
  if (uid.empty() && resource_version.empty()) return std::string(fields);
  JsonWriter patch;
  patch.Object().Key("metadata").Object();
  patch.FieldIf("uid", uid).FieldIf("resourceVersion", resource_version).End();
  if (fields == "{}") return patch.End().Take();
  return patch.Take() + ',' + std::string(fields.substr(1));
}

std::string ScaleBody(const ObjectKey& key, const Scale& scale) {
  JsonWriter body;
  body.Object().Field("kind", "Scale").Field("apiVersion", "autoscaling/v1");
  body.Key("metadata").Object().Field("name", key.name).FieldIf("namespace", key.name_space);
  body.FieldIf("uid", scale.uid).FieldIf("resourceVersion", scale.resource_version).End();
  return body.Key("spec").Object().Field("replicas", scale.replicas).End().End().Take();
}

Request GetRequest(const Resource& resource, const ObjectKey& key) {
  return {.path = ResourcePath(resource, key.name_space, key.name), .flow = key.name_space};
}

Request CreateRequest(const Resource& resource, std::string_view name_space, std::string body) {
  return WriteRequest(Verb::kCreate, resource, name_space, {}, {}, std::move(body));
}

Request JsonPatchRequest(const Resource& resource, const ObjectKey& key, const JsonPatch& patch,
                         std::string_view subresource) {
  Request request = WriteRequest(Verb::kPatch, resource, key.name_space, key.name, subresource, patch.Text());
  request.content_type = "application/json-patch+json";
  return request;
}

Request MergePatchRequest(const Resource& resource, const ObjectKey& key, std::string body,
                          std::string_view subresource) {
  Request request =
      WriteRequest(Verb::kPatch, resource, key.name_space, key.name, subresource, std::move(body));
  request.content_type = "application/merge-patch+json";
  return request;
}

Request UpdateRequest(const Resource& resource, const ObjectKey& key, std::string body,
                      std::string_view subresource) {
  return WriteRequest(Verb::kUpdate, resource, key.name_space, key.name, subresource, std::move(body));
}

Request ScaleRequest(const Resource& resource, const ObjectKey& key, const Scale& scale) {
  return UpdateRequest(resource, key, ScaleBody(key, scale), "scale");
}

Request DeleteRequest(const Resource& resource, const ObjectKey& key, const DeleteOptions& options) {
  return WriteRequest(Verb::kDelete, resource, key.name_space, key.name, {}, DeleteBody(options));
}

}  // namespace voda::kube
