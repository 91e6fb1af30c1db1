// Routes: what each path answers (docs/API.md). Called on the server's I/O thread; work is handed to the
// engine or to a pool of threads, and the answer is sent from there.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "api/auth.h"
#include "api/http.h"
#include "kube/counters.h"
#include "kubeflow/access.h"
#include "service/engine.h"
#include "service/health.h"
#include "service/log_follower.h"
#include "service/refusals.h"
#include "service/thread_pool.h"

namespace voda {

// Which port answers a route; 55587 answers all of them.
enum class PortRole : std::uint8_t { kAll, kScheduler, kAllocator };

struct RoutesConfig {
  std::vector<std::pair<int, PortRole>> ports;
  ThreadPool* external = nullptr;  // where external policies are asked
  const Health* health = nullptr;
  // On Kubernetes it is asked whether a caller has the rights that a request needs (permissions.h), and jobs
  // are named NAMESPACE/NAME.
  kubeflow::Access* access = nullptr;
  const kube::Counters* counters = nullptr;    // of the Kubernetes client
  kube::ObjectKey settings;                    // the ConfigMap with what is set at run time
  std::set<std::string, std::less<>> allowed;  // rules for pod templates that need not hold
};

class Routes {
 public:
  Routes(RoutesConfig config, Gate gate, Engine& engine, Metrics& metrics, Refusals& refusals);

  void Handle(HttpRequest request, std::shared_ptr<HttpReply> reply);

 private:
  using Reply = std::shared_ptr<HttpReply>;
  // Copied into every task that goes to another thread; the request, with a body of up to 256 MiB, is not.
  struct Call {
    std::shared_ptr<const HttpRequest> request;
    Reply reply;
    std::string name;  // the {} of the path
  };
  using Handler = std::function<void(Routes&, const Call&)>;
  struct Route {
    std::string_view method;
    std::string_view pattern;  // "/api/v1/jobs/{}/hold"
    bool scheduler = false;    // also on that role's port
    bool allocator = false;
    Handler handler;
    std::vector<std::string_view> query = {};  // its parameters; "namespace" where jobs have namespaces
  };
  static const std::vector<Route>& Table();

  // Runs `then` with the caller's name if Kubernetes says that the caller has these rights, or answers 401,
  // 403 or 503. Without Kubernetes callers have no names.
  void Authorize(const Call& call, std::vector<kubeflow::Permission> needed,
                 std::function<void(const std::string& user)> then);
  void Dispatch(const Route& route, const Call& call);
  void Carry(const Route& route, const Call& call);

  // Runs `task` on the engine's thread, or answers 503.
  void OnEngine(const Reply& reply, Engine::Task task);
  void OnThreadPool(const Reply& reply, std::function<void()> task);
  void On(ThreadPool& threads, const Reply& reply, std::function<void()> task);
  // Answers with JSON that the engine's thread makes.
  void Read(const Call& call, std::function<Answer<std::string>(Service&, double now)> view);
  // Puts a question about decisions on the engine's thread and answers it on another.
  void Ask(const Reply& reply, std::function<Views::Asked(Service&, double now)> put);

  // job_routes.cc
  void ListJobs(const Call& call);
  void CreateJobs(const Call& call);
  void ShowJob(const Call& call);
  void PatchJob(const Call& call);
  void DeleteJob(const Call& call);
  void HoldJob(const Call& call, bool held);
  void ExplainJob(const Call& call);
  void JobLogs(const Call& call);
  bool StreamLogs(JobCluster& cluster, const Call& call, int worker, std::int64_t tail, bool follow);
  void JobProgress(const Call& call);
  // node_routes.cc: nodes, decisions, settings, health
  void AddNode(const Call& call);
  void RemoveNode(const Call& call);
  void SetNodeState(const Call& call, NodeState state);
  void MakePlan(const Call& call);
  void ListRounds(const Call& call);
  void PutSettings(const Call& call);
  void Events(const Call& call);
  void Metrics_(const Call& call);
  void Alive(const Call& call);
  void Ready(const Call& call);
  // reference_routes.cc
  void ReferenceCreate(const Call& call);
  void ReferenceDelete(const Call& call);
  void ReferenceTable(const Call& call);
  void ReferenceAlgorithm(const Call& call);
  void ReferenceRateLimit(const Call& call);
  void ReferenceAllocation(const Call& call);

  // Reads the jobs of the body and submits them; `answer` makes the answer of those accepted.
  using SubmitAnswer = std::function<HttpResponse(const Service&, const std::vector<std::int64_t>&)>;
  void SubmitBody(const Call& call, SubmitAnswer answer);
  Result<std::vector<JobSpec>> ReadSpecs(const HttpRequest& request) const;
  void Submit(const Call& call, const std::shared_ptr<std::vector<JobSpec>>& specs, bool dry,
              const std::optional<SubmissionKey>& idempotency, double began, const SubmitAnswer& answer);
  void DescribeJob(const Call& call, int status, const Answer<std::int64_t>& id, const Service& service);

  RoutesConfig config_;
  Gate gate_;
  Engine& engine_;
  Metrics& metrics_;
  Refusals& refusals_;
  // What was exported of the Kubernetes client's counters; on the engine's thread.
  void ExportCounters();
  std::map<std::pair<std::string, std::string>, double> exported_;
  LogFollower follower_;
  ThreadPool threads_{2};
};

HttpResponse ToResponse(const Refusal& refusal);
HttpResponse JsonResponse(std::string body, int status = 200);
HttpResponse TextResponse(std::string body, int status = 200);
// Of /livez: ok, or 503 with the thread that does not move.
HttpResponse LiveResponse(const Health& health);

}  // namespace voda
