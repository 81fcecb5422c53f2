#pragma once

#include <memory>
#include <string>
#include <vector>

#include "env/actor.h"
#include "env/os/clock.h"
#include "env/os/log.h"
#include "env/port.h"

namespace berth::env::os {

class SqliteJournal;

// Names an actor of an Executor.
struct ActorId {
  int index = -1;
  constexpr auto operator<=>(const ActorId&) const = default;
};

// What an actor's thread has done so far.
struct ActorStats {
  std::string name;
  uint64_t inputs_count = 0;
  uint64_t ticks_count = 0;
  Duration cpu;  // User and system time of its thread.
};

// What the journal's thread has done so far.
struct JournalStats {
  uint64_t groups_count = 0;
  uint64_t records_count = 0;
  Duration group_p50;  // Time to make one group durable; of the last 4,096 groups.
  Duration cpu;
};

// Runs actors in production: a thread and an inbox each, and a thread for the journal.
//
// A thread takes all that its inbox holds at once, steps the actor with each input, and hands what
// came out over in batches: one lock per batch and destination. The actor gets a Tick when its
// inbox is empty and wake_at() has come, or, so that a stream of inputs can't starve it, when 20 ms
// have passed since it was due.
//
// An append for which the disk has no room is answered JournalRefused, and logged when that begins
// and ends. One that fails otherwise ends the process.
//
// Calls between actors of one executor never leave memory: the request's Bytes are shared, not
// copied. They keep the contract of HTTPS: timeouts are counted from when the caller's thread sends
// them, a cancelled or timed-out exchange is reported to the server as abandoned, StreamDrained is
// sent when the watching actor has been stepped with the data. The inbox of a server holds at most
// kInboxRequestsMax requests; more are answered 429 at once.
//
// Not thread-safe except where said; Add and Connect come before Start.
class Executor {
 public:
  // A cluster of 5,000 nodes may send one request per node and kind at once.
  static constexpr int kInboxRequestsMax = 16'384;

  Executor(const Clock& clock, Logger& logger);
  // Stops.
  ~Executor();
  Executor(const Executor&) = delete;
  Executor& operator=(const Executor&) = delete;

  // `name` is for logs, threads and stats; `peer` is who a server in this executor sees in the
  // actor's requests.
  ActorId Add(std::string name, Peer peer, std::unique_ptr<Actor> actor);

  // Where the actor's SendRequests go: an actor of this executor, or a transport that posts the
  // answers to inbox(client). Without either they fail with kNotSent. `transport` must outlive
  // Stop().
  void Connect(ActorId client, ActorId server);
  void Connect(ActorId client, OutputSink& transport);

  // Where answers to exchanges of the network go (env/port.h: origin 0). Must outlive Stop().
  void SetNetwork(OutputSink& network);

  // Where the actor's appends go; an actor without a journal gets them acknowledged at once. Must
  // outlive Stop().
  void SetJournal(ActorId actor, SqliteJournal& journal);

  // The actor's thread lets others go first where there are fewer processors than work (nice +10;
  // it never starves).
  void GiveWay(ActorId actor);

  // The actor's inbox, to post to from any thread; lives as long as the executor.
  [[nodiscard]] InputSink& inbox(ActorId actor);

  void Start();

  // Ends all threads: each after the step it is in, the journal's after the appends it has got.
  // Safe to call twice.
  void Stop();

  // Any thread may ask, between Start and Stop.
  [[nodiscard]] std::vector<ActorStats> stats() const;
  [[nodiscard]] JournalStats journal_stats() const;

  struct Impl;  // Of executor.cc alone.

 private:
  std::unique_ptr<Impl> impl_;
};

}  // namespace berth::env::os
