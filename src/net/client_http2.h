#pragma once

#include <array>
#include <boost/asio/steady_timer.hpp>
#include <deque>
#include <memory>
#include <string>
#include <unordered_map>

#include "net/client_impl.h"
#include "net/http2_session.h"

namespace berth::net {

// A connection of HTTP/2: as many calls at once as the server takes.
class Http2Connection final : public Carrier {
 public:
  // Takes a socket over whose server has chosen HTTP/2.
  Http2Connection(HttpsClient::Impl& client, std::shared_ptr<Pool> pool, TlsStream stream);

  void Start();
  // Whether it takes a call more.
  [[nodiscard]] bool has_room() const;
  // REQUIRES: has_room()
  void Send(Call call);
  [[nodiscard]] Progress ProgressOf(env::CallId call) const override;
  void Abandon(env::CallId call) override;
  void Close() override;

 private:
  struct Exchange {
    Call call;
    std::string body;  // Of an answer that is no open stream.
    bool answering = false;
    bool streaming = false;
  };
  enum class Life : uint8_t { kQuiet, kAsked };

  std::shared_ptr<Http2Connection> Self() {
    return std::static_pointer_cast<Http2Connection>(shared_from_this());
  }
  // Once this turn of the loop is over: what is to be sent by then goes together.
  void FlushSoon();
  void Flush();
  // Gives up writes of which the rest may not leave any more.
  void ResetLate();
  void SendQueued();
  // What the session has to tell.
  void DeliverTouched();
  void Write();
  void Read();
  void OnRead(const boost::system::error_code& error, size_t bytes);
  void Deliver(int32_t stream);
  void DeliverEnd(int32_t stream, Http2Answer answer);
  // A request that the server has not looked at.
  void SendAnew(Call call, const std::string& why);
  Exchange Take(int32_t stream);
  // Gives away what it has not framed and has no room for; closes once it is of no use.
  void GiveAway();
  void Break(const std::string& why);
  void WatchLife(Life life);
  void Detach();

  HttpsClient::Impl& client_;
  TlsStream stream_;
  Http2Session session_;
  boost::asio::steady_timer life_;
  std::deque<Call> queued_;  // Taken, and not framed yet.
  std::unordered_map<int32_t, Exchange> exchanges_;
  std::unordered_map<uint64_t, int32_t> streams_;  // By call.
  std::array<char, kClientReadBytes> read_buffer_{};
  std::string out_;
  SteadyTime read_at_;     // When a byte came last.
  SteadyTime write_at_;    // When the write that is under way began.
  bool answered_ = false;  // Something was.
  bool opening_ = true;    // How many calls the server takes is not known yet.
  bool flush_posted_ = false;
  bool writing_ = false;
  bool closed_ = false;
};

}  // namespace berth::net
