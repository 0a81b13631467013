module github.com/oversell/oversell/locktest/bench

go 1.26

require (
	github.com/bsm/redislock v0.9.4
	github.com/go-redsync/redsync/v4 v4.17.0
	github.com/oversell/oversell v0.0.0
	github.com/redis/go-redis/v9 v9.21.0
	github.com/redis/rueidis v1.0.76
	github.com/redis/rueidis/rueidislock v1.0.76
	go.uber.org/goleak v1.3.0
)

replace github.com/oversell/oversell => ../..
