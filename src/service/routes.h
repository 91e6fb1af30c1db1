// Routes: what each path answers (docs/API.md). Called on the server's I/O thread; work is handed to the
// engine or to workers, and the answer is sent from there.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "api/auth.h"
#include "api/http.h"
#include "service/engine.h"
#include "service/log_follower.h"
#include "service/workers.h"

namespace voda {

// Which port answers a route; 55587 answers all of them.
enum class PortRole : std::uint8_t { kAll, kScheduler, kAllocator };

struct RoutesConfig {
  std::vector<std::pair<int, PortRole>> ports;
};

class Routes {
 public:
  Routes(RoutesConfig config, Gate gate, Engine& engine, Metrics& metrics);

  void Handle(HttpRequest request, std::shared_ptr<HttpReply> reply);

 private:
  using Reply = std::shared_ptr<HttpReply>;
  struct Call {
    HttpRequest request;
    Reply reply;
    std::string name;  // the {} of the path
  };
  using Handler = std::function<void(Routes&, Call)>;
  struct Route {
    std::string_view method;
    std::string_view pattern;  // "/api/v1/jobs/{}/hold"
    bool scheduler = false;    // also on that role's port
    bool allocator = false;
    Handler handler;
  };
  static const std::vector<Route>& Table();

  // Runs `task` on the engine's thread, or answers 503.
  void OnEngine(const Reply& reply, Engine::Task task);
  void OnWorkers(const Reply& reply, std::function<void()> task);
  // Answers with JSON that the engine's thread makes.
  void Read(const Call& call, std::function<Answer<std::string>(Service&, double now)> view);

  // job_routes.cc
  void ListJobs(Call call);
  void CreateJobs(Call call);
  void ShowJob(Call call);
  void PatchJob(Call call);
  void DeleteJob(Call call);
  void HoldJob(Call call, bool held);
  void ExplainJob(Call call);
  void JobLogs(Call call);
  void JobProgress(Call call);
  // node_routes.cc: nodes, decisions, settings, health
  void AddNode(Call call);
  void RemoveNode(Call call);
  void SetNodeState(Call call, const char* state);
  void MakePlan(Call call);
  void ListRounds(Call call);
  void PutSettings(Call call);
  void Events(Call call);
  void Metrics_(Call call);
  void Ready(Call call);
  // reference_routes.cc
  void ReferenceCreate(Call call);
  void ReferenceDelete(Call call);
  void ReferenceTable(Call call);
  void ReferenceAlgorithm(Call call);
  void ReferenceRateLimit(Call call);
  void ReferenceAllocation(Call call);

  // Reads the jobs of the body and submits them; `answer` makes the answer of those accepted.
  void SubmitBody(Call call,
                  std::function<HttpResponse(const Service&, const std::vector<std::int64_t>&)> answer);
  void DescribeJobs(const Call& call, int status, Answer<std::vector<std::int64_t>> ids, Service& service);

  RoutesConfig config_;
  Gate gate_;
  Engine& engine_;
  Metrics& metrics_;
  LogFollower follower_;
  Workers workers_{2};
};

HttpResponse ToResponse(const Refusal& refusal);
HttpResponse JsonResponse(std::string body, int status = 200);
HttpResponse TextResponse(std::string body, int status = 200);

}  // namespace voda
