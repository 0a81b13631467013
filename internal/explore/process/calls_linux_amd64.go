package process

import "golang.org/x/sys/unix"

// olderEnds lists further system calls with a time-out, which newer architectures do not have.
var olderEnds = map[int]end{
	unix.SYS_POLL:       {form: ms, arg: 2, loop: true},
	unix.SYS_SELECT:     {form: timeval, arg: 4, loop: true},
	unix.SYS_EPOLL_WAIT: {form: ms, arg: 3, loop: true},
}
