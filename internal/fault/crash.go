package fault

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/oversell/oversell/internal/plural"
)

// crash kills a shop process with SIGKILL while one of its buyers, the holder, is stopped before COMMIT. The
// holder has its lock and an open transaction, so a lock without a TTL is never released. In a running rush (a
// burst of many buyers) a new process starts at once, as under a supervisor.
func crash() Fault {
	return Fault{
		Name: "crash", About: "the holder's process is killed (SIGKILL) between taking the lock and writing", Stock: stock,
		TwoProcesses: true, Inject: injectCrash[*Testbed], InRush: injectCrash[*RunningRush],
	}
}

func injectCrash[F Field](ctx context.Context, f F) (string, error) {
	s := f.setting()
	inside, err := f.hold(ctx, s.Write)
	if err != nil {
		return "", err
	}
	process := f.process()
	if err := process.Kill(); err != nil {
		return "", err
	}
	f.injected("SIGKILL of the holder's process")
	answers := process.Answers(ctx, 100*time.Millisecond) || !process.Ended()
	f.others(ctx, 0, s.Down)
	if err := process.StartAgain(ctx); err != nil {
		return "", fmt.Errorf("another process in the place of the one that was killed: %w", err)
	}
	switch {
	case ctx.Err() != nil:
		return "", ctx.Err()
	case inside == 0:
		return "", errors.New("a buyer was stopped in a process that has none")
	case answers:
		return "", missed("the holder's process answers after its SIGKILL")
	case s.InRush:
		return fmt.Sprintf("process 1 was killed with %s inside, one of them stopped before its write; it ended and answered no more, and another was started", plural.Count(inside, "buyer")), nil
	}
	return "the holder reported that it holds; its process was killed and answers no more", nil
}
