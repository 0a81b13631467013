//go:build !amd64

package process

var olderEnds map[int]end
