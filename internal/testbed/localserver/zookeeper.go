package localserver

import (
	"fmt"
	"io"
	"net"
	"os"
	"time"
)

// Zookeeper is a running standalone ZooKeeper server. Its Addr is a value for --zookeeper. After a kill
// and a restart it still has its data and its sessions.
type Zookeeper struct{ Server }

const installZookeeper = "apt-get install zookeeper default-jre-headless, or brew install zookeeper"

// zookeeperJars has the places where packages keep ZooKeeper. Debian's jar names the jars that it needs.
// slf4j-simple writes its log.
var zookeeperJars = []struct{ file, classPath string }{
	{"/usr/share/java/zookeeper.jar", "/usr/share/java/zookeeper.jar:/usr/share/java/slf4j-simple.jar"},
	{"/opt/homebrew/opt/zookeeper/libexec/lib", "/opt/homebrew/opt/zookeeper/libexec/lib/*"},
	{"/usr/local/opt/zookeeper/libexec/lib", "/usr/local/opt/zookeeper/libexec/lib/*"},
}

// zookeeperConfig has a short tick, since a session time-out is at least two ticks. The maximum time-out is
// high, so that the server shortens no lease. Writes are synced to the disk, which is the default.
const zookeeperConfig = `dataDir=%s
clientPort=%d
clientPortAddress=127.0.0.1
tickTime=200
maxSessionTimeout=3600000
maxClientCnxns=0
admin.enableServer=false
4lw.commands.whitelist=ruok,srvr
`

// StartZookeeper starts a standalone server. It returns ErrMissing if Java or ZooKeeper is not installed.
func StartZookeeper(g *Group) (*Zookeeper, error) {
	java, err := findProgram(installZookeeper, "java")
	if err != nil {
		return nil, err
	}
	classPath, err := zookeeperClassPath()
	if err != nil {
		return nil, err
	}
	in, err := g.newFolder("zookeeper", nil)
	if err != nil {
		return nil, err
	}
	return onFreePort(g, func(port int) (*Zookeeper, error) {
		if err := in.write("zoo.cfg", fmt.Sprintf(zookeeperConfig, in.file("data"), port)); err != nil {
			return nil, err
		}
		z := &Zookeeper{newServer(g, "zookeeper", in, port)}
		z.probe = z.ping
		// The script of the package would start a daemon. A small heap and one compiler halve the
		// start time.
		z.command = []string{
			java, "-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Dzookeeper.jmx.log4j.disable=true",
			"-Dorg.slf4j.simpleLogger.defaultLogLevel=warn", "-Djava.io.tmpdir=" + in.path, "-XX:-UsePerfData", // writes no files elsewhere
			"-cp", classPath, "org.apache.zookeeper.server.quorum.QuorumPeerMain", in.file("zoo.cfg"),
		}
		return z, z.Start()
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

// ping sends "srvr". The server answers it with a version once it serves clients; it answers "ruok"
// earlier.
func (z *Zookeeper) ping() error {
	conn, err := net.DialTimeout("tcp", z.Addr, time.Second)
	if err != nil {
		return err
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(time.Second)); err != nil {
		return err
	}
	if _, err := conn.Write([]byte("srvr")); err != nil {
		return err
	}
	const want = "Zookeeper version"
	answer := make([]byte, len(want))
	if n, err := io.ReadFull(conn, answer); err != nil || string(answer) != want {
		return fmt.Errorf("srvr was answered with %q: %w", answer[:n], err)
	}
	return nil
}
