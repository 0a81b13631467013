package redisscript

// Redislock describes the scripts of github.com/bsm/redislock. The library does not export them, so they are
// identified by their hashes. A version with another script is refused until that script is described here.
func Redislock() []Description {
	return []Description{
		{SHA: "80a1b5f2cfccec3b7119ba7721d2127682b691a7", Name: "take if free", Role: Acquire, Lock: 1},                               // luaObtain; nil: another holder has the lock
		{SHA: "a7aba3bc5d6e99b3003da8b9d80a63b9f4092ecf", Name: "renew if mine", Role: Renew, Lock: 1, Refused: []string{"0"}},        // luaRefresh
		{SHA: "6484da7d58920897fdc22b7f9afd1a3d47524ea8", Name: "time left if mine", Role: Inspect, Lock: 1, Refused: []string{"-3"}}, // luaPTTL
		{SHA: "cf0e94b2e9ffc7e04395cf88f7583fc309985910", Name: "delete if mine", Role: Release, Lock: 1, Refused: []string{"0"}},     // luaRelease
	}
}

// Redsync describes the script by which github.com/go-redsync/redsync unlocks.
func Redsync() []Description {
	return []Description{
		{SHA: "e950836ed1e694540c503ef9972b8de518044d3b", Name: "delete if mine", Role: Release, Lock: 1, Refused: []string{"0", "-1"}}, // deleteScript; -1: the key has expired
	}
}
