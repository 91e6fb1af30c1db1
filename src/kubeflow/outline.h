// Outline: the places of a job's object at which Voda adds something (manifest.h), and what stands there.
// With it, a patch can be made that touches nothing else, without keeping the whole object.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "kubeflow/names.h"

namespace voda::kubeflow {

struct Outline {
  struct Variable {
    int at = -1;  // position in the list; -1 if it is not there
    std::string value;
  };
  struct Container {
    int at = 0;
    bool has_env = false;
    Variable name, url, token;
  };
  struct Template {
    std::string path;  // path of the pod's spec: "/spec/mpiReplicaSpecs/Worker/template/spec"
    bool worker = false;
    std::vector<Container> containers;
    bool has_selector = false;
    std::string accelerator;  // the accelerator that its selector names
    bool has_gates = false;
    bool gated = false;  // has our gate
    bool has_tolerations = false;
    bool tolerates = false;  // tolerates our taint
  };
  std::vector<Template> templates;
  bool has_run_policy = false;
  bool cleans_pods = false;  // whether its user says which pods stay when it ends
  bool has_elastic_policy = false;
  bool has_restarts = false;
  bool has_backend = false;

  // VODA_PROGRESS_TOKEN of the first containers, so that the next leader needs no other record of it; empty
  // if the job was never started.
  std::string Token() const {
    for (const Template& one : templates) {
      if (one.containers.empty() || one.containers.front().at != 0) continue;
      if (const std::string& token = one.containers.front().token.value; !token.empty()) return token;
    }
    return {};
  }
};

// `Node` is kube::JsonView or Value.
template <class Node>
Outline ReadOutline(JobKind kind, const Node& object) {
  Outline outline;
  for (const char* type : {"Launcher", "Master", "Worker"}) {
    Outline::Template one;
    one.path = std::string(ReplicaSpecs(kind)) + "/" + type + "/template/spec";
    one.worker = std::string_view(type) != "Launcher";
    const Node& pod = object.At(one.path);
    if (!pod.map()) continue;
    int at = 0;
    pod.At("/containers").ForEach([&](const Node& container) {
      Outline::Container seen{.at = at++, .has_env = container.At("/env").list()};
      int place = 0;
      container.At("/env").ForEach([&](const Node& variable) {
        const auto take = [&](std::string_view name, Outline::Variable& into) {
          if (into.at < 0 && variable.At("/name").Text() == name)
            into = {place, std::string(variable.At("/value").Text())};
        };
        take(kNameVariable, seen.name);
        take(kUrlVariable, seen.url);
        take(kTokenVariable, seen.token);
        ++place;
      });
      if (container.map()) one.containers.push_back(std::move(seen));
    });
    one.has_selector = pod.At("/nodeSelector").map();
    one.accelerator = pod.At("/nodeSelector/vodascheduler~1accelerator").Text();
    one.has_gates = pod.At("/schedulingGates").list();
    pod.At("/schedulingGates").ForEach([&](const Node& gate) {
      one.gated = one.gated || gate.At("/name").Text() == kGate;
    });
    one.has_tolerations = pod.At("/tolerations").list();
    pod.At("/tolerations").ForEach([&](const Node& toleration) {
      one.tolerates = one.tolerates || toleration.At("/key").Text() == kTaint;
    });
    outline.templates.push_back(std::move(one));
  }
  outline.has_run_policy = object.At("/spec/runPolicy").map();
  outline.cleans_pods =
      object.At("/spec/cleanPodPolicy").present() || object.At("/spec/runPolicy/cleanPodPolicy").present();
  outline.has_elastic_policy = object.At("/spec/elasticPolicy").map();
  outline.has_restarts = object.At("/spec/elasticPolicy/maxRestarts").present();
  outline.has_backend = object.At("/spec/elasticPolicy/rdzvBackend").present();
  return outline;
}

}  // namespace voda::kubeflow
