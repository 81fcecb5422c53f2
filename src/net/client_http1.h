#pragma once

#include <array>
#include <boost/asio/steady_timer.hpp>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "net/client_impl.h"
#include "net/http_parser.h"

namespace berth::net {

// A connection from its first address on. It carries one call at a time over HTTP/1.1, or hands its
// socket on where the server chose HTTP/2.
class Http1Connection final : public Carrier {
 public:
  Http1Connection(HttpsClient::Impl& client, std::shared_ptr<Pool> pool);

  // Connects, then sends `call`.
  void Connect(Call call);
  // REQUIRES: idle.
  void Send(Call call);
  [[nodiscard]] Progress ProgressOf(env::CallId call) const override;
  void Abandon(env::CallId call) override;
  void Close() override;

 private:
  std::shared_ptr<Http1Connection> Self() {
    return std::static_pointer_cast<Http1Connection>(shared_from_this());
  }
  void OnResolved(const boost::system::error_code& error,
                  const boost::asio::ip::tcp::resolver::results_type& found);
  void LimitOpening();
  void Handshake();
  void Begin();
  // The server has chosen HTTP/2: another carrier takes over.
  void HandOn();
  [[nodiscard]] bool ChoseHttp2();
  void NoteOpened();
  bool ExpectServer();
  void FailHandshake(const boost::system::error_code& error);
  void WriteRequest();
  void Read();
  void OnRead(const boost::system::error_code& error, size_t bytes);
  // Returns how many of the bytes were taken.
  size_t Parse(std::string_view bytes);
  void OnHead();
  void Deliver();
  void Finish();
  [[nodiscard]] bool MayRepeat(const Call& call) const;
  void Break(std::string why);

  HttpsClient::Impl& client_;
  TlsStream stream_;
  boost::asio::steady_timer open_timer_;
  ResponseParser parser_;
  std::optional<Call> call_;
  std::array<char, kClientReadBytes> read_buffer_{};
  std::string in_;
  std::string out_;
  bool opening_ = true;     // What the server speaks is not known yet.
  bool used_ = false;       // Has carried a call before this one.
  bool sent_ = false;       // Bytes of the call were handed to the connection.
  bool answering_ = false;  // A byte of the answer has come.
  bool streaming_ = false;
  bool reading_ = false;
  bool writing_ = false;
  bool closed_ = false;
};

}  // namespace berth::net
