// Package redis frames what programs and Redis say to each other, in RESP2 and RESP3, and
// says what each command does. It sends on what it reads, byte for byte, but for three things:
//
//   - Login asks the server CLIENT ID on the program's connection, and keeps the answer.
//   - A command that blocks and stands at the gate has its timeout set to 0, for ever: no clock
//     may end a wait in a run. The answer nil then comes only from the schedule, by CLIENT
//     UNBLOCK, and has the form that the server gives it, so Session.TimedOut has nothing to do.
//   - CLIENT REPLY OFF and SKIP are sent as CLIENT REPLY ON, and the answers that the program
//     has renounced end here: the gate needs them.
//
// A command of a pipeline is one Command, and so is MULTI up to EXEC: what is queued passes,
// as nothing of it happens before EXEC. SUBSCRIBE passes, and is not a step of a schedule:
// subscribe before the schedule begins, or a message may be missed in all orders alike.
//
// MONITOR, SYNC, PSYNC, SCRIPT DEBUG, and SUBSCRIBE or CLIENT REPLY within MULTI are refused:
// what the server sends after them has no frame that tells an answer from the rest.
//
// Sources: "Redis serialization protocol specification" (redis.io), "RESP3 specification"
// (github.com/redis/redis-specifications), "Redis commands" (redis.io/commands).
package redis
