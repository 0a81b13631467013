package mysql

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/oversell/oversell/internal/explore/schedule"
	"github.com/oversell/oversell/internal/explore/wire"
)

// Capabilities (MySQL Source Code Documentation, "Capabilities Flags").
const (
	capabilityMySQL = 1 << 0 // MySQL sets it; MariaDB leaves it unset, and has extended capabilities instead
	protocol41      = 1 << 9
	tls             = 1 << 11

	removed = 1<<5 | // COMPRESS
		1<<7 | // LOCAL_FILES
		tls |
		1<<24 | // DEPRECATE_EOF
		1<<25 | // OPTIONAL_RESULTSET_METADATA
		1<<26 | // ZSTD_COMPRESSION_ALGORITHM
		1<<27 | // QUERY_ATTRIBUTES
		1<<29 // MariaDB's CLIENT_PROGRESS: progress reports in the middle of an answer
)

// Queries that the session itself sends.
var (
	setWait = fmt.Sprintf("SET SESSION innodb_lock_wait_timeout=%d, lock_wait_timeout=%[1]d", int(schedule.Forever.Seconds()))
	// The isolation level of the connection. MySQL 8 has no tx_isolation, and MariaDB 10 has only that.
	isolationMySQL   = "SELECT @@transaction_isolation"
	isolationMariaDB = "SELECT @@tx_isolation"
)

func query(sql string) []byte {
	return appendPacket(nil, 0, append([]byte{comQuery}, sql...))
}

// Login implements wire.Session. It delays the server's last OK until the connection is set up.
func (s *session) Login() (id int64, err error) {
	l := login{s.program, s.server}
	raw, payload, err := readPacket(l.server.R)
	if err != nil {
		return 0, fmt.Errorf("the MySQL server does not greet: %w", err)
	}
	if isError(payload) {
		_, err := l.program.Write(raw)
		return 0, errors.Join(refused(payload), err)
	}
	greets, err := greeting(raw, payload)
	if err != nil {
		return 0, err
	}
	if _, err = l.program.Write(raw); err != nil {
		return 0, err
	}
	if raw, payload, err = l.fromProgram(); errors.Is(err, io.EOF) {
		return 0, fmt.Errorf("the program hung up at the greeting of mysql; one that insists on TLS does, and must be told not to: %w", err)
	} else if err != nil {
		return 0, err
	}
	if err := reply(raw, payload); err != nil {
		l.refuse(raw[3]+1, err)
		return 0, err
	}
	if _, err = l.server.Write(raw); err != nil {
		return 0, err
	}
	if raw, err = l.authenticate(); err != nil {
		return 0, err
	}
	isolation, status, err := l.setUp(greets.mariadb)
	if err != nil {
		return 0, err
	}
	s.autocommit = status&statusAutocommit != 0
	s.serializable = isolation == "" || strings.Contains(isolation, "SERIALIZABLE")
	s.weak = isolation == "" || readsUnlocked.MatchString(isolation)
	s.unlocks = readsUnlocked.MatchString(isolation)
	_, err = l.program.Write(raw)
	return greets.thread, err
}

// A login is the exchange before the program's first command.
type login struct{ program, server *wire.Socket }

// fromProgram reads the program's next packet. It has no time limit.
func (l login) fromProgram() (raw, payload []byte, err error) {
	l.server.Rest()
	l.program.Rest()
	raw, payload, err = readPacket(l.program.R)
	return raw, payload, hungUp(err)
}

type greeted struct {
	thread  int64
	mariadb bool
}

// greeting removes capabilities from the first packet of a server, in place (Protocol::HandshakeV10).
// The slice `payload` is part of `raw`.
func greeting(raw, payload []byte) (g greeted, err error) {
	if len(payload) == 0 || payload[0] != 10 {
		return g, errors.New("the server at the mysql address greets as no MySQL or MariaDB does")
	}
	end := bytes.IndexByte(payload[1:], 0)
	if end < 0 {
		return g, errShort
	}
	version := string(payload[1 : 1+end])
	at := 4 + 1 + end + 1 // offset in raw
	if len(raw) < at+31 {
		return g, errShort
	}
	g.thread = int64(binary.LittleEndian.Uint32(raw[at:]))
	g.mariadb = strings.Contains(version, "MariaDB")
	at += 4 + 8 + 1 // skips the thread id, the first part of the challenge, and a zero
	low := binary.LittleEndian.Uint16(raw[at:])
	high := binary.LittleEndian.Uint16(raw[at+5:])
	binary.LittleEndian.PutUint16(raw[at:], low&^uint16(removed&0xffff))
	binary.LittleEndian.PutUint16(raw[at+5:], high&^uint16(removed>>16))
	if low&capabilityMySQL == 0 {
		clear(raw[at+14 : at+18]) // MariaDB's extended capabilities
	}
	return g, nil
}

// reply removes capabilities from the program's answer, in place, since some clients set capabilities
// that the server has not offered (mysql2). It fails if the program wants TLS, or the protocol that
// MySQL used before version 4.1.
func reply(raw, payload []byte) error {
	switch {
	case len(payload) < 4:
		return errShort
	case len(raw) != 4+len(payload):
		return errLong
	}
	capabilities := binary.LittleEndian.Uint32(payload)
	switch {
	case capabilities&protocol41 == 0:
		return &wire.Refused{Why: "the program speaks the protocol of before MySQL 4.1; use a newer client library"}
	case capabilities&tls != 0:
		return &wire.Refused{Why: "the program asks for TLS at mysql; switch it off for the test, for instance with ssl-mode=DISABLED"}
	case len(payload) < 32:
		return errShort
	}
	binary.LittleEndian.PutUint32(payload, capabilities&^removed)
	if capabilities&capabilityMySQL == 0 {
		clear(payload[28:32]) // MariaDB's extended capabilities
	}
	return nil
}

// refuse tells the program the reason, and waits until the program has hung up. If unread bytes were
// left, the kernel would reset the connection and the reason would be lost.
func (l login) refuse(sequence byte, why error) {
	if _, err := l.program.Write(appendError(nil, sequence, 1043, "08S01", why.Error())); err != nil {
		return
	}
	for range 64 {
		l.program.Rest()
		if _, err := l.program.R.Discard(max(1, l.program.R.Buffered())); err != nil {
			return
		}
	}
}

// authenticate relays packets until the server sends OK or ERR. It returns the OK without relaying it. It supports
// every plugin in which the program answers each packet of the server. It also supports the packet 1 3 of
// caching_sha2_password, which says that the server has cached the password and expects no answer.
func (l login) authenticate() (ok []byte, err error) {
	for {
		raw, payload, err := readPacket(l.server.R)
		if err != nil {
			return nil, fmt.Errorf("the server hung up while the program logged in: %w", err)
		}
		if len(payload) > 0 && payload[0] == 0 {
			return raw, nil
		}
		if _, err = l.program.Write(raw); err != nil {
			return nil, err
		}
		if isError(payload) {
			return nil, refused(payload)
		}
		if fastAuthentication(payload) {
			continue
		}
		if raw, _, err = l.fromProgram(); err != nil {
			return nil, err
		}
		if _, err = l.server.Write(raw); err != nil {
			return nil, err
		}
	}
}

// fastAuthentication reports whether caching_sha2_password needs nothing more from the program.
func fastAuthentication(payload []byte) bool {
	return len(payload) == 2 && payload[0] == 1 && payload[1] == 3
}

func refused(payload []byte) error {
	var a answer
	_, _ = a.feed(payload, len(payload))
	return fmt.Errorf("the server refuses the program: %s", a.text(""))
}

// setUp sets the time-out of lock waits. It returns the isolation level and the status of the
// connection. The level is "" if the server refuses the query.
func (l login) setUp(mariadb bool) (isolation string, status uint16, err error) {
	if !l.program.Timed() {
		set, err := l.ask(setWait)
		if err == nil {
			err = set.refusal()
		}
		if err != nil {
			return "", 0, err
		}
	}
	question := isolationMySQL
	if mariadb {
		question = isolationMariaDB
	}
	asked, err := l.ask(question)
	if err != nil || asked.failed() {
		return "", 0, err
	}
	return asked.text(""), asked.status, nil
}

// ask sends a query of the session itself during the login, and returns the answer.
func (l login) ask(sql string) (*answer, error) {
	if _, err := l.server.Write(query(sql)); err != nil {
		return nil, err
	}
	a := &answer{}
	for {
		_, payload, err := readPacket(l.server.R)
		if err != nil {
			return nil, err
		}
		if ends, err := a.feed(payload, len(payload)); ends || err != nil {
			return a, err
		}
	}
}
