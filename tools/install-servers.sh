#!/bin/sh
# Installs the missing servers and tools of the tests. Without root it prints the commands.
#
#   tools/install-servers.sh          # make test: MariaDB, PostgreSQL, Redis, Node and Python with clients, a C compiler
#   tools/install-servers.sh soak     # and Galera, PgBouncer, ZooKeeper, Java with Maven, etcd, HAProxy, Chromium
#   tools/install-servers.sh [mysql] [postgres] [redis]   # only these servers
set -eu
PATH=$PATH:/usr/sbin:/usr/local/sbin

have() { command -v "$1" >/dev/null 2>&1; }

packages=
need_mysql() { have mariadbd || have mysqld || packages="$packages mariadb-server"; }
need_postgres() {
	have postgres || [ -e "${SHOP_POSTGRES_BIN:-/}/postgres" ] || ls /usr/lib/postgresql/*/bin/postgres >/dev/null 2>&1 ||
		packages="$packages postgresql"
}
need_redis() { have redis-server || have valkey-server || packages="$packages redis-server"; }

need_clients() { # of the programs in examples and testdata; and a C compiler for the race detector
	have node && have npm || packages="$packages nodejs npm"
	for module in pymysql redis psycopg2; do
		PATH=/usr/bin:$PATH python3 -c "import $module" 2>/dev/null || packages="$packages python3-$module"
	done
	have curl || packages="$packages curl"
	have gcc || have clang || packages="$packages gcc libc6-dev"
}

# The rest is for make soak.
need_more() {
	have mysqld && ! have mariadbd || {
		ls /usr/lib*/galera*/libgalera_smm.so >/dev/null 2>&1 || packages="$packages galera-4"
		have rsync || packages="$packages rsync"
	}
	have pgbouncer || packages="$packages pgbouncer"
	have javac || packages="$packages default-jdk-headless"
	have mvn || packages="$packages maven" # gets Redisson for rlock/redisson
	[ -e /usr/share/java/zookeeper.jar ] || [ -e /opt/homebrew/opt/zookeeper ] || [ -e /usr/local/opt/zookeeper ] ||
		packages="$packages zookeeper"
	have etcd || packages="$packages etcd-server"
	have wrk || packages="$packages wrk" # make bench
	have haproxy || packages="$packages haproxy" # checks deploy/scale/haproxy.cfg
	have chromium || packages="$packages chromium" # e2e drives it
}

case ${1:-test} in
test) set -- mysql postgres redis clients ;;
soak) set -- mysql postgres redis clients more ;;
esac
for server; do
	case $server in
	mysql | postgres | redis | clients | more) "need_$server" ;;
	*)
		echo "unknown server $server: choose mysql, postgres or redis, or test or soak for all that a make command needs" >&2
		exit 2
		;;
	esac
done
[ -n "$packages" ] || exit 0

root=
if [ "$(id -u)" -ne 0 ]; then
	if have sudo && sudo -n true 2>/dev/null; then root=sudo; else root=none; fi
fi
if ! have apt-get || [ "$root" = none ]; then
	cat >&2 <<HELP
Missing packages:$packages. Get them with one of
  sudo apt-get install$packages
  brew install mariadb postgresql redis
or run the tests in a container:
  docker run --rm -v "\$PWD":/src -w /src golang:1.26 make test
HELP
	exit 1
fi

# The packages would start servers on the usual ports; the tests start private
# ones. Debian asks policy-rc.d first (invoke-rc.d(8)): PostgreSQL's cluster
# "main" is made and stays down.
if [ ! -e /usr/sbin/policy-rc.d ]; then
	printf '#!/bin/sh\nexit 101\n' | $root tee /usr/sbin/policy-rc.d >/dev/null
	$root chmod +x /usr/sbin/policy-rc.d
	trap '$root rm -f /usr/sbin/policy-rc.d' EXIT
fi
echo "installing$packages" >&2
$root apt-get update -qq
# shellcheck disable=SC2086 # a list of words
DEBIAN_FRONTEND=noninteractive $root apt-get install -y -qq --no-install-recommends $packages >/dev/null
