// One connection of the server: a state machine from bytes to requests, answers and streams.
//
// Everything here runs on the I/O thread, except that a handler may use a reply or a stream from any
// thread: its calls go into the part under the mutex, and the session asks for the I/O thread's attention
// once, however much comes until it has it. The socket is behind HttpTransport, so that neither TLS nor
// Boost is seen here.
//
// Each session holds its deadline, and one sweep of the server looks at all of them. Beast's tcp_stream
// does not fit: it closes the socket when the time is up, whereas a slow request still gets an answer
// (408), and it starts and cancels a timer for every read and write.
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <deque>
#include <list>
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

// The socket of a session. Each operation ends in one call of the session's On… of the same name, never
// from within the operation itself; Close makes the operations under way fail.
class HttpTransport {
 public:
  virtual ~HttpTransport() = default;
  virtual void Handshake(std::shared_ptr<HttpSession> session) = 0;  // the handshake of TLS
  virtual void Read(std::shared_ptr<HttpSession> session, char* to, std::size_t size) = 0;
  // May take only some of the bytes. The pieces stay valid until OnWrite.
  virtual void Write(std::shared_ptr<HttpSession> session, const std::vector<std::string_view>& pieces) = 0;
  // Tells the client that nothing more comes. What Read still gets after OnEnded is ignored.
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
  HttpHandler handler;  // this and the following, up to `open`: I/O thread only
  std::unordered_map<HttpSession*, std::shared_ptr<HttpSession>> sessions;
  std::list<HttpSession*> unknown;  // those whose clients have not shown who they are, oldest first
  std::size_t body_bytes = 0;       // of all requests being read now
  std::atomic<int> open = 0;        // any thread

  std::string_view Date();  // for the header of that name

  // The I/O thread will call the session's OnMail; after Stop it will not. Any thread may call this.
  void Mail(std::shared_ptr<HttpSession> session);
  void DeliverMail();
  void Stop();
  void CloseAll();
  void Expire(HttpClock::time_point now);
  // Whether there is room for another connection, if need be after a client was let go that waits for
  // nothing.
  bool MakeRoom();
  // Unknown clients first, in the order of their arrival, then who has been idle for longest. False: none.
  bool CloseIdle();

 private:
  bool CloseUnknown();
  virtual void Wake() = 0;  // makes the I/O thread call DeliverMail soon

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

  // These run on the I/O thread.
  void Start();
  void StartRefused();  // answers 503: there are too many connections
  void Close();
  void Expire(HttpClock::time_point now);
  void OnHandshake(bool ok);
  void OnRead(bool ok, std::size_t size);
  void OnWrite(bool ok, std::size_t size);
  void OnEnded();
  void OnMail();
  bool busy() const { return state_ == State::kHandling; }  // a request waits for its answer
  bool idle() const { return state_ == State::kIdle; }
  HttpClock::time_point deadline() const { return deadline_; }

  // Any thread may call these.
  void Answer(HttpResponse response);
  bool Begin(HttpResponse head);  // returns false if the client is gone or wants no body
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
    kLingering,  // after the last answer it reads on, since a reset could take the answer from the client
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
    bool counts;  // whether it counts against the limit
  };

  void Idle();
  void Advance();
  void Read();
  void ReadOnly();  // reads only to notice that the client has gone
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
  void SetKnown();

  const std::shared_ptr<HttpSessions> all_;
  const std::unique_ptr<HttpTransport> transport_;
  const int port_;
  const bool tls_;

  State state_ = State::kIdle;
  HttpClock::time_point deadline_ = HttpClock::time_point::max();
  std::unique_ptr<HttpRequestParser> parser_;
  std::unique_ptr<char[]> buffer_;  // NOLINT(modernize-avoid-c-arrays): not cleared before every read
  std::size_t buffer_size_ = 0;
  std::size_t begin_ = 0;  // where the bytes begin that are not parsed yet
  std::size_t end_ = 0;
  std::array<char, 512> ignored_{};
  std::optional<std::list<HttpSession*>::iterator> unknown_;  // its place among them
  bool open_path_ = false;                                    // the request proves nothing
  bool reading_ = false;
  bool ended_ = false;
  std::size_t body_counted_ = 0;
  bool keep_alive_ = false;
  bool http10_ = false;
  std::string label_;  // method and path, if requests are logged
  HttpClock::time_point began_;

  std::vector<Piece> out_;
  std::vector<std::string_view> unsent_;  // the parts of `out_` that are still to be sent
  bool writing_ = false;
  Then then_ = Then::kNextRequest;
  HttpClock::time_point write_deadline_;  // for everything in `out_`, at whatever speed it goes
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
