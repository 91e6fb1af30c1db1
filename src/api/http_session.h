// One connection of the server: a state machine from bytes to requests, answers and streams.
//
// Everything here runs on the I/O thread, but for what handlers do with a reply or a stream, from any thread:
// that is put into the part under the mutex, and the session asks for the I/O thread's attention once,
// however much comes until it has it. The socket is behind HttpTransport, so that neither TLS nor Boost is
// seen here.
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "api/http.h"
#include "api/http_parser.h"

namespace voda {

class HttpSession;
using HttpClock = std::chrono::steady_clock;

// The socket of a session. Each operation ends in one call of the session's On… of the same name, never from
// within the operation itself; Close ends those under way, as failed.
class HttpTransport {
 public:
  virtual ~HttpTransport() = default;
  virtual void Handshake(std::shared_ptr<HttpSession> session) = 0;
  virtual void Read(std::shared_ptr<HttpSession> session, char* to, std::size_t size) = 0;
  // May take only part of the first pieces. They stay valid until OnWrite.
  virtual void Write(std::shared_ptr<HttpSession> session, const std::vector<std::string_view>& pieces) = 0;
  // Tells the client that nothing more comes. After OnEnded, Read gives what it still sends, to be ignored.
  virtual void End(std::shared_ptr<HttpSession> session) = 0;
  virtual void Close() = 0;
};

// What the sessions of a server share. It outlives them: a handler may keep a reply or stream for longer than
// the server lives.
class HttpSessions {
 public:
  explicit HttpSessions(HttpConfig given);
  virtual ~HttpSessions() = default;

  const HttpConfig config;
  HttpHandler handler;  // the rest of these: I/O thread only
  std::unordered_map<HttpSession*, std::shared_ptr<HttpSession>> sessions;
  std::size_t body_bytes = 0;  // of all requests now being read
  std::atomic<int> open = 0;   // any thread

  std::string_view Date();  // as the header wants it

  // Any thread: the session's OnMail will be called on the I/O thread. After Stop, nothing is.
  void Mail(std::shared_ptr<HttpSession> session);
  void DeliverMail();
  void Stop();
  void CloseAll();
  void Expire(HttpClock::time_point now);

 private:
  virtual void Wake() = 0;  // DeliverMail, soon, on the I/O thread

  std::mutex mutex_;
  std::vector<std::shared_ptr<HttpSession>> mail_;
  bool awake_ = false;
  bool stopped_ = false;
  std::time_t date_of_ = 0;
  std::string date_;
};

class HttpSession : public std::enable_shared_from_this<HttpSession> {
 public:
  HttpSession(std::shared_ptr<HttpSessions> all, std::unique_ptr<HttpTransport> transport, int port,
              bool tls);

  // I/O thread.
  void Start();
  void StartRefused();  // 503: there are too many
  void Close();
  void Expire(HttpClock::time_point now);
  void OnHandshake(bool ok);
  void OnRead(bool ok, std::size_t size);
  void OnWrite(bool ok, std::size_t size);
  void OnEnded();
  void OnMail();

  // Any thread.
  void Answer(HttpResponse response);
  bool Begin(HttpResponse head);  // false: the client is gone or wants no body
  bool Push(std::shared_ptr<const std::string> chunk);
  void PushBacklog(std::vector<std::shared_ptr<const std::string>> chunks);
  void Finish(std::string last);
  bool open() const { return !closed_.load(); }
  std::size_t waiting_bytes() const;

 private:
  enum class State : std::uint8_t {
    kHandshake,
    kIdle,
    kReading,
    kHandling,  // the handler has the request
    kWriting,
    kStreaming,
    kLingering,  // answered for the last time; reads on, lest a reset takes the answer from the client
    kClosed,
  };
  enum class Then : std::uint8_t { kNextRequest, kReadOn, kClose, kStream };

  struct Piece {
    explicit Piece(std::string text) : own(std::move(text)) {}
    explicit Piece(std::shared_ptr<const std::string> text) : shared(std::move(text)) {}
    std::string_view view() const { return shared ? std::string_view(*shared) : std::string_view(own); }
    std::shared_ptr<const std::string> shared;
    std::string own;
  };
  struct Waiting {
    std::shared_ptr<const std::string> chunk;
    bool counts;  // against the limit
  };

  void Idle();
  void Advance();
  void Read();
  void ReadOnly();  // to see the client go
  bool CheckHead();
  bool CountBody();
  void Dispatch();
  void TakeAnswer();
  void Refuse(int status, std::string_view code, std::string_view message);
  void Respond(HttpResponse response, bool keep_alive);
  void StartStream(const HttpResponse& head);
  void Pump();
  void StartWrite(Then then);
  void WriteOn();
  void Linger();
  void EndRequest();
  void SetDeadline(double seconds);
  void Attend(std::unique_lock<std::mutex> lock);

  const std::shared_ptr<HttpSessions> all_;
  const std::unique_ptr<HttpTransport> transport_;
  const int port_;
  const bool tls_;

  State state_ = State::kIdle;
  HttpClock::time_point deadline_ = HttpClock::time_point::max();
  std::unique_ptr<HttpRequestParser> parser_;
  std::unique_ptr<char[]> buffer_;  // NOLINT(modernize-avoid-c-arrays): not cleared before every read
  std::size_t buffer_size_ = 0;
  std::size_t begin_ = 0;  // of what is in the buffer and not parsed yet
  std::size_t end_ = 0;
  std::array<char, 512> ignored_{};
  bool reading_ = false;
  bool ended_ = false;
  std::size_t body_counted_ = 0;
  bool keep_alive_ = false;
  bool http10_ = false;
  std::string label_;  // method and path, while requests are logged
  HttpClock::time_point began_;

  std::vector<Piece> out_;
  std::vector<std::string_view> views_;
  std::size_t out_piece_ = 0;  // first piece not written out, and how much of it is
  std::size_t out_offset_ = 0;
  bool writing_ = false;
  Then then_ = Then::kNextRequest;
  HttpClock::time_point write_deadline_;  // for all that is in `out_`, however it comes along
  std::size_t batch_counted_ = 0;

  std::atomic<bool> closed_ = false;
  mutable std::mutex mutex_;  // guards the rest
  bool mailed_ = false;
  bool expects_answer_ = false;
  bool head_only_ = false;
  std::optional<HttpResponse> answer_;
  std::optional<HttpResponse> stream_head_;
  bool streaming_ = false;
  bool finished_ = false;
  std::deque<Waiting> queue_;
  std::size_t counted_ = 0;
};

}  // namespace voda
