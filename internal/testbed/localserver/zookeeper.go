package localserver

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strconv"
	"strings"
	"time"
)

// Zookeeper is a running ZooKeeper server: a standalone one, or a member of an ensemble. Its Addr is a
// value for --zookeeper. After a kill and a restart it still has its data and its sessions.
type Zookeeper struct{ Server }

const installZookeeper = "apt-get install zookeeper default-jre-headless, or brew install zookeeper"

// zookeeperJars lists the jar files of known ZooKeeper packages. Debian's jar names the jars that it needs.
// The jar slf4j-simple writes ZooKeeper's log.
var zookeeperJars = []struct{ file, classPath string }{
	{"/usr/share/java/zookeeper.jar", "/usr/share/java/zookeeper.jar:/usr/share/java/slf4j-simple.jar"},
	{"/opt/homebrew/opt/zookeeper/libexec/lib", "/opt/homebrew/opt/zookeeper/libexec/lib/*"},
	{"/usr/local/opt/zookeeper/libexec/lib", "/usr/local/opt/zookeeper/libexec/lib/*"},
}

// zookeeperConfig uses a short tick, since a session time-out is at least two ticks. The maximum time-out is
// so high that the server accepts every lease. Writes are synced to the disk, which is the default. In an
// ensemble, a follower has 50 ticks to connect to its leader, and may fall 10 ticks behind.
const zookeeperConfig = `dataDir=%s
clientPort=%d
clientPortAddress=127.0.0.1
tickTime=200
maxSessionTimeout=3600000
maxClientCnxns=0
admin.enableServer=false
4lw.commands.whitelist=ruok,srvr
initLimit=50
syncLimit=10
`

// StartZookeeper starts a standalone server. It returns ErrMissing if Java or ZooKeeper is not installed.
func StartZookeeper(g *Group) (*Zookeeper, error) {
	all, err := startZookeepers(g, 1)
	if err != nil {
		return nil, err
	}
	return all[0], nil
}

// StartZookeeperEnsemble starts three servers that replicate each write to a majority, and returns when each
// of them serves. A session belongs to the ensemble, so its client may connect to any member. It returns
// ErrMissing if Java or ZooKeeper is not installed.
//
// Source: ZooKeeper Administrator's Guide, "Clustered (Multi-Server) Setup".
func StartZookeeperEnsemble(g *Group) ([]*Zookeeper, error) { return startZookeepers(g, Members) }

func startZookeepers(g *Group, members int) ([]*Zookeeper, error) {
	java, err := findProgram(installZookeeper, "java")
	if err != nil {
		return nil, err
	}
	classPath, err := zookeeperClassPath()
	if err != nil {
		return nil, err
	}
	return onFreePorts(g, 3*members, func(ports []int) ([]*Zookeeper, error) {
		ensemble := ""
		for i := range members { // a port for the leader's followers, and one for elections
			ensemble += fmt.Sprintf("server.%d=127.0.0.1:%d:%d\n", i+1, ports[3*i+1], ports[3*i+2])
		}
		if members == 1 {
			ensemble = "" // standalone
		}
		return startAll(members, func(i int) (*Zookeeper, error) {
			in, err := g.newFolder("zookeeper", nil)
			if err != nil {
				return nil, err
			}
			settings := fmt.Sprintf(zookeeperConfig, in.file("data"), ports[3*i]) + ensemble
			if err := errors.Join(in.mkdir("data"), in.write("data/myid", strconv.Itoa(i+1)), in.write("zoo.cfg", settings)); err != nil {
				return nil, err
			}
			z := &Zookeeper{newServer(g, "zookeeper", in, ports[3*i])}
			z.probe = z.ping
			// The script in the package would start a daemon, so this starts Java itself. A small heap and one
			// compiler halve the start time.
			z.command = []string{
				java, "-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Dzookeeper.jmx.log4j.disable=true",
				"-Dorg.slf4j.simpleLogger.defaultLogLevel=warn", "-Djava.io.tmpdir=" + in.path, "-XX:-UsePerfData", // the last option avoids files outside of the folder
				"-cp", classPath, "org.apache.zookeeper.server.quorum.QuorumPeerMain", in.file("zoo.cfg"),
			}
			return z, z.Start()
		})
	})
}

func zookeeperClassPath() (string, error) {
	for _, jars := range zookeeperJars {
		if _, err := os.Stat(jars.file); err == nil {
			return jars.classPath, nil
		}
	}
	return "", fmt.Errorf("zookeeper: %w; get it with: %s", ErrMissing, installZookeeper)
}

// ping returns nil if the server serves clients. It does not use "ruok", since even a server without a leader
// answers that command.
func (z *Zookeeper) ping() error {
	answer, err := z.srvr()
	if err == nil && !strings.HasPrefix(answer, "Zookeeper version") {
		err = fmt.Errorf("srvr was answered with %q", answer)
	}
	return err
}

// Leads reports whether the server says that it leads an ensemble. It is false if the server does not
// answer within a second.
//
// Source: ZooKeeper Administrator's Guide, "The Four Letter Words", srvr.
func (z *Zookeeper) Leads() bool {
	answer, err := z.srvr()
	return err == nil && strings.Contains(answer, "\nMode: leader\n")
}

func (z *Zookeeper) srvr() (string, error) {
	conn, err := net.DialTimeout("tcp", z.Addr, time.Second)
	if err != nil {
		return "", err
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(time.Second)); err != nil {
		return "", err
	}
	if _, err := conn.Write([]byte("srvr")); err != nil {
		return "", err
	}
	answer, err := io.ReadAll(conn) // the server closes the connection
	return string(answer), err
}
