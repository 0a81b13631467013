// Package redis implements wire.Protocol for Redis, in RESP2 and RESP3. It relays bytes unchanged, with
// three exceptions:
//
//   - Login sends CLIENT ID to the server on the program's connection, and keeps the answer.
//   - A blocking command at the gate gets the timeout 0, which means forever, since no clock may
//     end a wait in a run. Only the schedule ends it, by CLIENT UNBLOCK. The server then answers
//     nil as after a timeout, so Session.TimedOut has nothing to do.
//   - CLIENT REPLY OFF and SKIP are sent as CLIENT REPLY ON, since the gate needs the answers. The
//     session keeps them from the program.
//
// Each command of a pipeline is one Command. MULTI up to EXEC is one Command too: queued commands pass,
// since they take effect at EXEC. SUBSCRIBE passes and is not a step. A program should subscribe before
// the schedule begins. Otherwise every schedule may miss the same message.
//
// The session refuses MONITOR, SYNC, PSYNC, SCRIPT DEBUG, and SUBSCRIBE or CLIENT REPLY within MULTI.
// In the server's output after them, answers cannot be distinguished from other messages.
//
// Sources: "Redis serialization protocol specification" (redis.io), "RESP3 specification"
// (github.com/redis/redis-specifications), "Redis commands" (redis.io/commands).
package redis
