#include "api/http_session.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <ctime>
#include <exception>
#include <utility>

#include "api/error_response.h"
#include "api/http_response.h"
#include "base/check.h"
#include "base/log.h"

namespace voda {

namespace {

constexpr std::size_t kSmallBuffer = 4096;
constexpr std::size_t kReadAhead = 49152;
constexpr std::size_t kBatchPieces = 60;  // the system takes 64 at once
constexpr std::size_t kBatchBytes = std::size_t{1} << 18;
constexpr std::size_t kInlineBody = 8192;  // smaller bodies are copied behind the head
constexpr double kLingerSeconds = 2;

HttpClock::time_point After(double seconds) {
  return HttpClock::now() +
         std::chrono::duration_cast<HttpClock::duration>(std::chrono::duration<double>(seconds));
}

class SessionStream : public HttpStream {
 public:
  explicit SessionStream(std::shared_ptr<HttpSession> session) : session_(std::move(session)) {}
  ~SessionStream() override { session_->Finish({}); }
  SessionStream(const SessionStream&) = delete;
  SessionStream& operator=(const SessionStream&) = delete;

  bool Send(std::shared_ptr<const std::string> chunk) override { return session_->Push(std::move(chunk)); }
  void SendBacklog(std::vector<std::shared_ptr<const std::string>> chunks) override {
    session_->PushBacklog(std::move(chunks));
  }
  void Finish(std::string last) override { session_->Finish(std::move(last)); }
  bool open() const override { return session_->open(); }
  std::size_t waiting_bytes() const override { return session_->waiting_bytes(); }

 private:
  const std::shared_ptr<HttpSession> session_;
};

class ClosedStream : public HttpStream {
 public:
  bool Send(std::shared_ptr<const std::string> /*chunk*/) override { return false; }
  void Finish(std::string /*last*/) override {}
  bool open() const override { return false; }
  std::size_t waiting_bytes() const override { return 0; }
};

class SessionReply : public HttpReply {
 public:
  explicit SessionReply(std::shared_ptr<HttpSession> session) : session_(std::move(session)) {}
  ~SessionReply() override {
    if (!used_.exchange(true) && session_->open()) {
      Log(LogLevel::kError, "request dropped without an answer");
      session_->Answer(ErrorResponse(500, "internal", "the request was dropped; this is a defect of Voda"));
    }
  }
  SessionReply(const SessionReply&) = delete;
  SessionReply& operator=(const SessionReply&) = delete;

  void Send(HttpResponse response) override {
    if (Use()) session_->Answer(std::move(response));
  }
  std::shared_ptr<HttpStream> Stream(HttpResponse head) override {
    if (!Use() || !session_->Begin(std::move(head))) return std::make_shared<ClosedStream>();
    return std::make_shared<SessionStream>(session_);
  }

 private:
  bool Use() {
    if (!used_.exchange(true)) return true;
    Log(LogLevel::kError, "request answered twice");
    return false;
  }

  const std::shared_ptr<HttpSession> session_;
  std::atomic<bool> used_ = false;
};

}  // namespace

HttpSessions::HttpSessions(HttpConfig given) : config(std::move(given)) {}

std::string_view HttpSessions::Date() {
  const std::time_t now = std::time(nullptr);
  if (now != date_of_) {
    std::tm utc{};
    gmtime_r(&now, &utc);
    std::array<char, 40> text{};
    std::strftime(text.data(), text.size(), "%a, %d %b %Y %H:%M:%S GMT", &utc);
    date_ = text.data();
    date_of_ = now;
  }
  return date_;
}

void HttpSessions::Mail(std::shared_ptr<HttpSession> session) {
  const std::lock_guard lock(mutex_);
  if (stopped_) return;
  mail_.push_back(std::move(session));
  if (!std::exchange(awake_, true)) Wake();
}

void HttpSessions::DeliverMail() {
  std::vector<std::shared_ptr<HttpSession>> mail;
  {
    const std::lock_guard lock(mutex_);
    mail.swap(mail_);
    awake_ = false;
  }
  for (const auto& session : mail) {
    try {
      session->OnMail();
    } catch (const std::exception& thrown) {  // no memory; the other sessions still get their mail
      Log(LogLevel::kError, "connection failed", {{"what", thrown.what()}});
      session->Close();
    }
  }
}

void HttpSessions::Stop() {
  std::vector<std::shared_ptr<HttpSession>> mail;
  const std::lock_guard lock(mutex_);
  stopped_ = true;
  mail.swap(mail_);
}

void HttpSessions::CloseAll() {
  const auto all = sessions;
  for (const auto& [key, session] : all) session->Close();
}

void HttpSessions::Expire(HttpClock::time_point now) {
  const auto all = sessions;
  for (const auto& [key, session] : all) session->Expire(now);
}

bool HttpSessions::MakeRoom() {
  if (sessions.size() >= config.connections) return CloseIdle();
  return unknown.size() < config.unknown_connections || CloseUnknown();
}

bool HttpSessions::CloseIdle() {
  if (CloseUnknown()) return true;
  HttpSession* longest = nullptr;
  for (const auto& [session, owned] : sessions) {
    if (session->idle() && (longest == nullptr || session->deadline() < longest->deadline()))
      longest = session;
  }
  if (longest != nullptr) longest->Close();
  return longest != nullptr;
}

bool HttpSessions::CloseUnknown() {
  const auto at = std::find_if(unknown.begin(), unknown.end(), [](HttpSession* one) { return !one->busy(); });
  if (at == unknown.end()) return false;
  (*at)->Close();
  return true;
}

HttpSession::HttpSession(std::shared_ptr<HttpSessions> all, std::unique_ptr<HttpTransport> transport,
                         int port, bool tls)
    : all_(std::move(all)), transport_(std::move(transport)), port_(port), tls_(tls) {}

void HttpSession::Start() {
  all_->sessions.emplace(this, shared_from_this());
  ++all_->open;
  unknown_ = all_->unknown.insert(all_->unknown.end(), this);
  if (!tls_) return Idle();
  state_ = State::kHandshake;
  SetDeadline(all_->config.read_seconds);
  transport_->Handshake(shared_from_this());
}

void HttpSession::StartRefused() {
  all_->sessions.emplace(this, shared_from_this());
  ++all_->open;
  if (tls_) return Close();
  Refuse(503, "unavailable", "too many connections are open; close some or try again later");
}

void HttpSession::Close() {
  if (state_ == State::kClosed) return;
  const auto self = shared_from_this();  // the list may hold the last reference
  state_ = State::kClosed;
  transport_->Close();
  EndRequest();
  SetKnown();
  all_->sessions.erase(this);
  --all_->open;
  std::deque<Waiting> dropped;
  const std::lock_guard lock(mutex_);
  closed_ = true;
  dropped.swap(queue_);
  counted_ = 0;
  answer_.reset();
}

void HttpSession::Expire(HttpClock::time_point now) {
  if (now < deadline_) return;
  if (state_ == State::kReading && !writing_) {
    return Refuse(
        408, "timeout",
        fmt::format("the request did not come whole within {} s; send it faster", all_->config.read_seconds));
  }
  Close();
}

void HttpSession::SetKnown() {
  if (unknown_) all_->unknown.erase(*unknown_);
  unknown_.reset();
}

void HttpSession::SetDeadline(double seconds) {
  deadline_ = After(seconds);
}

void HttpSession::OnHandshake(bool ok) {
  if (state_ != State::kHandshake) return;
  if (!ok) return Close();
  Idle();
}

// Waits for the next request. What the client sent ahead is looked at right away.
void HttpSession::Idle() {
  state_ = State::kIdle;
  while (begin_ < end_ && (buffer_[begin_] == '\r' || buffer_[begin_] == '\n')) ++begin_;
  if (begin_ < end_) return Advance();
  begin_ = end_ = 0;
  if (buffer_size_ > kSmallBuffer) {
    buffer_.reset();
    buffer_size_ = 0;
  }
  SetDeadline(all_->config.idle_seconds);
  Read();
}

void HttpSession::Advance() {
  if (state_ == State::kIdle) {
    state_ = State::kReading;
    began_ = HttpClock::now();
    SetDeadline(all_->config.read_seconds);
    parser_ = std::make_unique<HttpRequestParser>(all_->config, port_);
  }
  while (true) {
    using enum HttpRequestParser::State;
    begin_ += parser_->Put(std::string_view(buffer_.get() + begin_, end_ - begin_));
    if (!CountBody()) return;
    switch (parser_->state()) {
      case kHeader:
      case kBody:
        return Read();
      case kHead:
        if (!CheckHead()) return;
        break;
      case kDone:
        return Dispatch();
      case kFailed: {
        const HttpRequestParser::Failure failure = parser_->failure();
        return Refuse(failure.status, failure.code, failure.message);
      }
    }
  }
}

void HttpSession::Read() {
  if (begin_ > 0) {
    std::memmove(buffer_.get(), buffer_.get() + begin_, end_ - begin_);
    end_ -= begin_;
    begin_ = 0;
  }
  const bool body = parser_ && parser_->state() == HttpRequestParser::State::kBody;
  if (!buffer_ || end_ == buffer_size_ || (body && buffer_size_ <= kSmallBuffer)) {
    const std::size_t wanted =
        buffer_ ? std::max(buffer_size_ * 2, all_->config.header_limit + kReadAhead) : kSmallBuffer;
    auto larger = std::make_unique_for_overwrite<char[]>(wanted);  // NOLINT(modernize-avoid-c-arrays)
    if (end_ > 0) std::memcpy(larger.get(), buffer_.get(), end_);
    buffer_ = std::move(larger);
    buffer_size_ = wanted;
  }
  reading_ = true;
  transport_->Read(shared_from_this(), buffer_.get() + end_, buffer_size_ - end_);
}

void HttpSession::ReadOnly() {
  if (reading_) return;
  reading_ = true;
  transport_->Read(shared_from_this(), ignored_.data(), ignored_.size());
}

void HttpSession::OnRead(bool ok, std::size_t size) {
  reading_ = false;
  switch (state_) {
    case State::kIdle:
    case State::kReading:
      if (!ok) return Close();
      end_ += size;
      if (state_ == State::kReading) return Advance();
      while (begin_ < end_ && (buffer_[begin_] == '\r' || buffer_[begin_] == '\n')) ++begin_;
      return begin_ < end_ ? Advance() : Read();
    case State::kStreaming:
      return ok ? ReadOnly() : Close();
    case State::kLingering:
      if (!ended_) return;
      return ok ? ReadOnly() : Close();
    case State::kHandshake:
    case State::kHandling:
    case State::kWriting:
    case State::kClosed:
      return;
  }
}

bool HttpSession::CountBody() {
  const std::size_t size = parser_->request().body.size();
  all_->body_bytes += size - body_counted_;
  body_counted_ = size;
  if (all_->body_bytes <= all_->config.bodies_limit || size == 0) return true;
  Refuse(503, "unavailable", "too many large requests at once; try again later");
  return false;
}

// Returns false if the request was answered, or if something is being written before the body is read.
bool HttpSession::CheckHead() {
  const HttpRequestParser::Head& head = parser_->head();
  keep_alive_ = head.keep_alive;
  http10_ = head.http10;
  if (Logs(LogLevel::kDebug)) label_ = parser_->request().method + " " + parser_->request().path;
  {
    const std::lock_guard lock(mutex_);
    head_only_ = head.head_only;
  }
  if (all_->config.on_head) {
    if (std::optional<HttpResponse> refusal = all_->config.on_head(parser_->request())) {
      Respond(*std::move(refusal), keep_alive_ && !head.has_body);
      return false;
    }
  }
  if (unknown_) {
    const HttpRequest& request = parser_->request();
    const auto& open = all_->config.open_paths;
    open_path_ = std::find(open.begin(), open.end(), request.path) != open.end();
    if (all_->config.knows && all_->config.knows(request)) SetKnown();
  }
  if (head.expects_continue && head.has_body && begin_ == end_) {
    out_.emplace_back("HTTP/1.1 100 Continue\r\n\r\n");
    StartWrite(Then::kReadOn);
    return false;
  }
  return true;
}

void HttpSession::Dispatch() {
  HttpRequest request = std::move(parser_->request());
  EndRequest();
  state_ = State::kHandling;
  deadline_ = HttpClock::time_point::max();
  {
    const std::lock_guard lock(mutex_);
    expects_answer_ = true;
    mailed_ = true;  // an answer given before the handler returns needs no mail
  }
  auto reply = std::make_shared<SessionReply>(shared_from_this());
  try {
    all_->handler(std::move(request), reply);
  } catch (const std::exception& thrown) {
    Log(LogLevel::kError, "request handler threw", {{"what", thrown.what()}});
    reply->Send(ErrorResponse(500, "internal", "the request could not be handled; the log of Voda says why"));
  } catch (...) {
    Log(LogLevel::kError, "request handler threw", {{"what", "not a standard exception"}});
    reply->Send(ErrorResponse(500, "internal", "the request could not be handled; the log of Voda says why"));
  }
  reply.reset();
  OnMail();
}

void HttpSession::EndRequest() {
  parser_.reset();
  all_->body_bytes -= body_counted_;
  body_counted_ = 0;
}

void HttpSession::Answer(HttpResponse response) {
  std::unique_lock lock(mutex_);
  if (closed_ || !std::exchange(expects_answer_, false)) return;
  answer_ = std::move(response);
  Attend(std::move(lock));
}

bool HttpSession::Begin(HttpResponse head) {
  std::unique_lock lock(mutex_);
  if (closed_ || !std::exchange(expects_answer_, false)) return false;
  const bool wanted = !head_only_;
  streaming_ = wanted;
  finished_ = false;
  stream_head_ = std::move(head);
  Attend(std::move(lock));
  return wanted;
}

bool HttpSession::Push(std::shared_ptr<const std::string> chunk) {
  std::unique_lock lock(mutex_);
  if (closed_ || !streaming_ || finished_) return false;
  if (chunk->empty()) return true;
  if (counted_ > 0 && counted_ + chunk->size() > all_->config.stream_limit) return false;
  counted_ += chunk->size();
  queue_.push_back({std::move(chunk), true});
  Attend(std::move(lock));
  return true;
}

void HttpSession::PushBacklog(std::vector<std::shared_ptr<const std::string>> chunks) {
  std::unique_lock lock(mutex_);
  if (closed_ || !streaming_ || finished_) return;
  for (auto& chunk : chunks) {
    if (!chunk->empty()) queue_.push_back({std::move(chunk), false});
  }
  Attend(std::move(lock));
}

void HttpSession::Finish(std::string last) {
  std::unique_lock lock(mutex_);
  if (closed_ || !streaming_ || std::exchange(finished_, true)) return;
  if (!last.empty()) queue_.push_back({std::make_shared<const std::string>(std::move(last)), false});
  Attend(std::move(lock));
}

std::size_t HttpSession::waiting_bytes() const {
  const std::lock_guard lock(mutex_);
  return counted_;
}

void HttpSession::Attend(std::unique_lock<std::mutex> lock) {
  const bool ask = !std::exchange(mailed_, true);
  lock.unlock();
  if (ask) all_->Mail(shared_from_this());
}

void HttpSession::OnMail() {
  {
    const std::lock_guard lock(mutex_);
    mailed_ = false;
  }
  if (state_ == State::kHandling) return TakeAnswer();
  if (state_ == State::kStreaming && !writing_) Pump();
}

void HttpSession::TakeAnswer() {
  std::optional<HttpResponse> answer;
  std::optional<HttpResponse> head;
  bool head_only = false;
  {
    const std::lock_guard lock(mutex_);
    answer = std::exchange(answer_, std::nullopt);
    head = std::exchange(stream_head_, std::nullopt);
    head_only = head_only_;
  }
  const int status = answer ? answer->status : head ? head->status : 0;
  if (status / 100 == 2 && !open_path_) SetKnown();
  if (answer.has_value()) return Respond(*std::move(answer), keep_alive_);
  if (!head.has_value()) return;
  if (!head_only) return StartStream(*head);
  // The request was a HEAD, so the stream has only a head.
  out_.emplace_back(ResponseHead(*head, {keep_alive_, http10_, std::nullopt, all_->Date()}));
  state_ = State::kWriting;
  StartWrite(keep_alive_ ? Then::kNextRequest : Then::kClose);
}

void HttpSession::Refuse(int status, std::string_view code, std::string_view message) {
  Respond(ErrorResponse(status, code, message), false);
}

void HttpSession::Respond(HttpResponse response, bool keep_alive) {
  EndRequest();
  bool head_only = false;
  {
    const std::lock_guard lock(mutex_);
    head_only = std::exchange(head_only_, false);
  }
  if (Logs(LogLevel::kDebug)) {
    const std::chrono::duration<double> took = HttpClock::now() - began_;
    Log(LogLevel::kDebug, "request",
        {{"what", label_}, {"status", response.status}, {"seconds", took.count()}});
  }
  std::string head = ResponseHead(response, {keep_alive, http10_, response.body.size(), all_->Date()});
  const bool no_body = head_only || response.status == 204 || response.status == 304;
  if (!no_body && response.body.size() <= kInlineBody) head += response.body;
  out_.emplace_back(std::move(head));
  if (!no_body && response.body.size() > kInlineBody) out_.emplace_back(std::move(response.body));
  state_ = State::kWriting;
  StartWrite(keep_alive ? Then::kNextRequest : Then::kClose);
}

void HttpSession::StartStream(const HttpResponse& head) {
  if (Logs(LogLevel::kDebug)) Log(LogLevel::kDebug, "stream", {{"what", label_}, {"status", head.status}});
  state_ = State::kStreaming;
  buffer_.reset();
  buffer_size_ = begin_ = end_ = 0;
  out_.emplace_back(ResponseHead(head, {false, http10_, std::nullopt, all_->Date()}));
  ReadOnly();
  Pump();
}

// Writes all that waits as one chunk, up to what one system call takes.
void HttpSession::Pump() {
  std::size_t total = 0;
  bool last = false;
  const std::size_t frame = out_.size();
  if (!http10_) out_.emplace_back(std::string());
  {
    const std::lock_guard lock(mutex_);
    while (!queue_.empty() && out_.size() - frame < kBatchPieces && total < kBatchBytes) {
      Waiting& next = queue_.front();
      total += next.chunk->size();
      if (next.counts) batch_counted_ += next.chunk->size();
      out_.emplace_back(std::move(next.chunk));
      queue_.pop_front();
    }
    last = queue_.empty() && finished_;
  }
  if (!http10_) {
    if (total > 0) {
      out_[frame].own = fmt::format("{:x}\r\n", total);
      out_.emplace_back(std::string(last ? "\r\n0\r\n\r\n" : "\r\n"));
    } else if (last) {
      out_[frame].own = "0\r\n\r\n";
    } else {
      out_.pop_back();
    }
  }
  if (!out_.empty()) return StartWrite(last ? Then::kClose : Then::kStream);
  if (last) return Linger();
  deadline_ = HttpClock::time_point::max();
}

void HttpSession::StartWrite(Then then) {
  then_ = then;
  double bytes = 0;
  for (const Piece& piece : out_) {
    unsent_.push_back(piece.view());
    bytes += static_cast<double>(piece.view().size());
  }
  write_deadline_ = After(all_->config.write_seconds + bytes / all_->config.write_rate);
  WriteOn();
}

void HttpSession::WriteOn() {
  writing_ = true;
  if (then_ != Then::kReadOn) deadline_ = std::min(After(all_->config.write_seconds), write_deadline_);
  transport_->Write(shared_from_this(), unsent_);
}

void HttpSession::OnWrite(bool ok, std::size_t size) {
  writing_ = false;
  if (state_ == State::kClosed) return;
  if (!ok) return Close();
  for (std::string_view& piece : unsent_) {
    const std::size_t taken = std::min(size, piece.size());
    piece.remove_prefix(taken);
    size -= taken;
  }
  std::erase_if(unsent_, [](std::string_view piece) { return piece.empty(); });
  if (!unsent_.empty()) return WriteOn();
  out_.clear();
  if (const std::size_t sent = std::exchange(batch_counted_, 0); sent > 0) {
    const std::lock_guard lock(mutex_);
    counted_ -= sent;
  }
  switch (then_) {
    case Then::kNextRequest:
      return Idle();
    case Then::kReadOn:
      return Advance();
    case Then::kStream:
      return Pump();
    case Then::kClose:
      return Linger();
  }
}

void HttpSession::Linger() {
  state_ = State::kLingering;
  closed_ = true;  // streams can send nothing more
  SetDeadline(kLingerSeconds);
  transport_->End(shared_from_this());
}

void HttpSession::OnEnded() {
  if (state_ != State::kLingering) return;
  ended_ = true;
  ReadOnly();
}

}  // namespace voda
