package process

import "golang.org/x/sys/unix"

// ends lists the system calls that can wait with a time-out.
var ends = map[int]end{
	unix.SYS_NANOSLEEP:       {form: timespec, arg: 0},
	unix.SYS_CLOCK_NANOSLEEP: {form: clockSleep, arg: 2},
	unix.SYS_FUTEX:           {form: futexWait, arg: 3},
	unix.SYS_FUTEX_WAITV:     {form: deadlineFor, arg: 3, clock: 4},
	unix.SYS_PPOLL:           {form: timespec, arg: 2, loop: true},
	unix.SYS_PSELECT6:        {form: timespec, arg: 4, loop: true},
	unix.SYS_EPOLL_PWAIT:     {form: ms, arg: 3, loop: true},
	unix.SYS_EPOLL_PWAIT2:    {form: timespec, arg: 3, loop: true},
	unix.SYS_RT_SIGTIMEDWAIT: {form: timespec, arg: 2},
	unix.SYS_RECVMMSG:        {form: timespec, arg: 4},
	unix.SYS_IO_GETEVENTS:    {form: timespec, arg: 4},
	unix.SYS_IO_PGETEVENTS:   {form: timespec, arg: 4},
	unix.SYS_SEMTIMEDOP:      {form: timespec, arg: 3},
	unix.SYS_MQ_TIMEDRECEIVE: {form: deadline, arg: 4},
	unix.SYS_MQ_TIMEDSEND:    {form: deadline, arg: 4},
	unix.SYS_RESTART_SYSCALL: {form: unknown},
}
