package fault

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/oversell/oversell/internal/engine/zookeeper"
)

// zookeeperSessions finds and closes the sessions of locks in ZooKeeper, as an operator can.
type zookeeperSessions struct {
	addr string
	conn *zk.Conn
}

func openZookeeperSessions(addr string) (*zookeeperSessions, error) {
	conn, _, err := zk.Connect([]string{addr}, 10*time.Second, zk.WithLogger(zookeeper.Silent{}), zk.WithLogInfo(false))
	return &zookeeperSessions{addr, conn}, err
}

func (z *zookeeperSessions) close() { z.conn.Close() }

// holder returns the oldest ephemeral node with the product's name in its path.
func (z *zookeeperSessions) holder(_ context.Context, product string) (place, error) {
	var (
		first  place
		oldest int64
	)
	var walk func(node string) error
	walk = func(node string) error {
		children, stat, err := z.conn.Children(node)
		if errors.Is(err, zk.ErrNoNode) {
			return nil // the node was deleted meanwhile
		}
		if err != nil {
			return err
		}
		if stat.EphemeralOwner != 0 && strings.Contains(node, product) && (oldest == 0 || stat.Czxid < oldest) {
			first, oldest = place{node, stat.EphemeralOwner}, stat.Czxid
		}
		for _, child := range children {
			if err := walk(strings.TrimSuffix(node, "/") + "/" + child); err != nil {
				return err
			}
		}
		return nil
	}
	if err := walk("/"); err != nil {
		return place{}, err
	}
	if oldest == 0 {
		return place{}, missed("no node of ZooKeeper is a lock of the product")
	}
	return first, nil
}

// revoke connects to the session from another connection and closes the session.
func (z *zookeeperSessions) revoke(_ context.Context, p place) error {
	conn, timeout, err := z.takeOver(p.owner)
	if err != nil {
		return err
	}
	defer conn.Close()
	if timeout == 0 {
		return missed("ZooKeeper did not let its session %x be taken over", uint64(p.owner))
	}
	const closeSession = -11
	if _, err := conn.Write(packet(int32(1), int32(closeSession))); err != nil {
		return err
	}
	_, err = reply(conn)
	return err
}

func (z *zookeeperSessions) gone(_ context.Context, p place) (bool, error) {
	there, _, err := z.conn.Exists(p.node)
	if err != nil {
		return false, err
	}
	conn, timeout, err := z.takeOver(p.owner) // a timeout of 0 means that the session has ended
	if err != nil {
		return false, err
	}
	return !there && timeout == 0, conn.Close()
}

// takeOver connects to a session that another connection has opened. It returns the time-out that the server
// grants, or 0 if the session does not exist. The client library has no call for this.
func (z *zookeeperSessions) takeOver(session int64) (_ net.Conn, timeout int32, err error) {
	conn, err := net.DialTimeout("tcp", z.addr, 10*time.Second)
	if err != nil {
		return nil, 0, err
	}
	defer func() {
		if err != nil {
			_ = conn.Close()
		}
	}()
	if err := conn.SetDeadline(time.Now().Add(10 * time.Second)); err != nil {
		return nil, 0, err
	}
	password := sessionPassword(session)
	// Protocol version, last zxid seen, time-out in ms, session, password.
	if _, err := conn.Write(packet(int32(0), int64(0), int32(2000), session, int32(len(password)), password)); err != nil {
		return nil, 0, err
	}
	answer, err := reply(conn)
	if err == nil && len(answer) < 8 {
		err = fmt.Errorf("ZooKeeper answered with %d bytes to a connection", len(answer))
	}
	if err != nil {
		return nil, 0, err
	}
	return conn, int32(binary.BigEndian.Uint32(answer[4:])), nil
}

// packet returns the encoded fields with their length in front.
func packet(fields ...any) []byte {
	var body []byte
	for _, field := range fields {
		body, _ = binary.Append(body, binary.BigEndian, field) // every field has a fixed size
	}
	return append(binary.BigEndian.AppendUint32(nil, uint32(len(body))), body...)
}

func reply(from io.Reader) ([]byte, error) {
	var size uint32
	if err := binary.Read(from, binary.BigEndian, &size); err != nil {
		return nil, err
	}
	if size > 1<<16 {
		return nil, fmt.Errorf("ZooKeeper announced a packet of %d bytes", size)
	}
	body := make([]byte, size)
	_, err := io.ReadFull(from, body)
	return body, err
}

// sessionPassword returns the password that a server gives a session. The password is 16 bytes of java.util.Random.
// Their seed is the session combined with a constant of ZooKeeper (ZooKeeperServer.generatePasswd, 3.4 to 3.9).
func sessionPassword(session int64) []byte {
	const superSecret, multiplier, mask = 0xB3415C00, 0x5DEECE66D, 1<<48 - 1
	seed := (uint64(session^superSecret) ^ multiplier) & mask
	var password []byte
	for range 4 {
		seed = (seed*multiplier + 0xB) & mask
		password = binary.LittleEndian.AppendUint32(password, uint32(seed>>16))
	}
	return password
}
