package app

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"strings"
	"testing"
)

// poolers: Open refuses, in one line, a relay that assigns its own connection numbers. It accepts a
// relay that forwards everything unchanged.
func poolers(t *testing.T, s *Servers) {
	for protocol, c := range map[string]struct {
		user   string
		number func(first []byte) []byte // returns the bytes of the connection's number in the greeting
	}{
		"mysql": {"root", func(first []byte) []byte {
			if len(first) < 5 || first[4] != 10 {
				return nil
			}
			return first[5+bytes.IndexByte(first[5:], 0)+1:]
		}},
		"postgres": {"shop", func(first []byte) []byte {
			_, key, _ := bytes.Cut(first, []byte("K\x00\x00\x00\x0c")) // BackendKeyData
			return key
		}},
	} {
		for _, pools := range []bool{true, false} {
			number := c.number
			if !pools {
				number = func([]byte) []byte { return nil }
			}
			address := relay(t, s.Addresses()[protocol], number)
			server := &Server{Gate: address, Address: address, URL: protocol + "://" + c.user + "@" + address + "/shop"}
			a := &App{}
			*map[string]**Server{"mysql": &a.MySQL, "postgres": &a.Postgres}[protocol] = server
			opened, err := Open(t.Context(), a)
			if err == nil {
				must(t, opened.Close())
			}
			if errors.Is(err, errPooler) != pools || !pools && err != nil {
				t.Errorf("%s, pooler %t: %v", protocol, pools, err)
			}
			if pools && (!strings.HasPrefix(err.Error(), protocol+" at "+address+": this is a connection pooler") || strings.Contains(err.Error(), "\n")) {
				t.Errorf("unexpected error: %q", err)
			}
		}
	}
}

// relay forwards connections to a server and returns its own address. It changes the bytes that the
// function number returns: the connection's number.
func relay(t *testing.T, address string, number func(first []byte) []byte) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	t.Cleanup(func() { _ = l.Close() })
	pass := func(client net.Conn) {
		defer client.Close()
		server, err := net.Dial("tcp", address)
		if err != nil {
			return
		}
		go func() {
			_, _ = io.Copy(server, client)
			_ = server.Close()
		}()
		buffer := make([]byte, 64<<10)
		for {
			n, err := server.Read(buffer)
			if at := number(buffer[:n]); len(at) >= 4 {
				binary.LittleEndian.PutUint32(at, binary.LittleEndian.Uint32(at)^0x12345)
			}
			if _, wrong := client.Write(buffer[:n]); err != nil || wrong != nil {
				return
			}
		}
	}
	go func() {
		for {
			client, err := l.Accept()
			if err != nil {
				return
			}
			go pass(client)
		}
	}()
	return l.Addr().String()
}
