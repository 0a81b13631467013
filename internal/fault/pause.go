package fault

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// pause stops the whole process of the lock holder (SIGSTOP), its watchdog included, for longer than the
// holder's lease. Then the process continues. The holder is at its COMMIT, where nothing checks a lease before
// the database writes. A process that is stopped earlier may notice in time that it lost the lock.
func pause() Fault {
	return Fault{
		Name: "pause", About: "the holder's process is stopped (SIGSTOP) for longer than its lease, then resumes", Stock: stock,
		TwoProcesses: true, Inject: injectPause[*Testbed], InRush: injectPause[*RunningRush],
	}
}

func injectPause[F Field](ctx context.Context, f F) (string, error) {
	s := f.setting()
	if _, err := f.hold(ctx, s.Write); err != nil {
		return "", err
	}
	process := f.process()
	f.afterwards(func(context.Context) error { return process.Thaw() })
	if err := process.Freeze(); err != nil {
		return "", err
	}
	f.injected("SIGSTOP of the holder's process")
	frozen := time.Now()
	answer, silent := unanswered(ctx, process, s.Times)
	f.others(ctx, s.outlast()-time.Since(frozen), s.Reach())
	silent = silent && len(answer) == 0
	took := time.Since(frozen)
	if err := errors.Join(f.release(), process.Thaw()); err != nil {
		return "", err
	}
	answered := <-answer
	switch {
	case ctx.Err() != nil:
		return "", ctx.Err()
	case !silent:
		return "", missed("the holder's process answered between its SIGSTOP and its SIGCONT")
	case !answered:
		return "", missed("the holder's process did not answer after its SIGCONT")
	case s.InRush:
		return fmt.Sprintf("process 1 was stopped for %s while one of its buyers was stopped before its write, and answered nothing meanwhile; a lease is %s", took.Round(10*time.Millisecond), s.Lease), nil
	}
	return "the holder reported that it holds; its process answered a question that was asked while it was stopped only when it ran on", nil
}

// unanswered asks the process a question. A stopped process answers only when it continues. The stop signal
// takes a moment to arrive, so unanswered repeats the question after each answer, for up to two seconds.
func unanswered(ctx context.Context, process Process, times Times) (answer <-chan bool, silent bool) {
	timeout := 2*times.Reach() + times.Wait
	for deadline := time.Now().Add(2 * time.Second); !silent && time.Now().Before(deadline); {
		question := make(chan bool, 1)
		go func() { question <- process.Answers(ctx, timeout) }()
		for asked := time.Now(); len(question) == 0 && !silent; time.Sleep(time.Millisecond) {
			silent = time.Since(asked) > times.Lease/8
		}
		answer = question
	}
	return answer, silent
}
