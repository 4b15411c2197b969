package controlplane

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync/atomic"
	"syscall"
	"time"
)

const (
	// killTimeout is how long a killed process may take to disappear.
	killTimeout = 10 * time.Second
	// tailBytes is how much of the end of a failed component's log is read, and tailLines how many lines of it an error
	// carries.
	tailBytes = 16 << 10
	tailLines = 15
)

// process is a running component.
type process struct {
	name    string
	logPath string
	cmd     *exec.Cmd
	// stopping is set before the process is killed on purpose.
	stopping atomic.Bool
	// exited is closed when the process is gone.
	exited chan struct{}
	// err is what the process exited with, to be read when exited is closed.
	err error
}

// component says how to start a process.
type component struct {
	name string
	path string
	args []string
}

// startProcess starts a component in a process group (0 makes it the leader of a new one) with work as working directory
// and home, and its output appended to logs/<name>.log in there. onExit is called, in another goroutine, when
// the process exits though nobody stopped it.
func startProcess(c component, work string, group int, onExit func(*process)) (*process, error) {
	p := &process{name: c.name, logPath: filepath.Join(work, logDir, c.name+".log"), exited: make(chan struct{})}
	log, err := os.OpenFile(p.logPath, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, fmt.Errorf("cannot start %s: %w", c.name, err)
	}
	//nolint:gosec,noctx // Starting a given program is what this is for, and it runs until kill.
	p.cmd = exec.Command(c.path, c.args...)
	p.cmd.Dir = work
	// The user's home and environment must not change what a control plane does (kwok for one reads ~/.kwok).
	p.cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + work, "TMPDIR=" + work}
	p.cmd.Stdout, p.cmd.Stderr = log, log
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pgid: group}
	dieWithParent(p.cmd.SysProcAttr)
	started := make(chan error, 1)
	go p.run(started, onExit)
	if err := errors.Join(<-started, log.Close()); err != nil {
		return nil, fmt.Errorf("cannot start %s: %w", c.name, err)
	}
	return p, nil
}

// run starts the process and waits for its end on one OS thread, because on Linux the kernel ends the process together
// with the thread that has started it (see dieWithParent).
func (p *process) run(started chan<- error, onExit func(*process)) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if err := p.cmd.Start(); err != nil {
		started <- err
		return
	}
	started <- nil
	p.err = p.cmd.Wait()
	close(p.exited)
	if !p.stopping.Load() {
		onExit(p)
	}
}

// pid is the process id.
func (p *process) pid() int {
	return p.cmd.Process.Pid
}

// running tells whether the process has not exited yet.
func (p *process) running() bool {
	select {
	case <-p.exited:
		return false
	default:
		return true
	}
}

// kill ends the process at once and waits until it is gone. Components are built to survive that: etcd keeps every
// acknowledged write, and the others hold no state.
func (p *process) kill() error {
	p.stopping.Store(true)
	if err := p.cmd.Process.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("cannot kill %s: %w", p.name, err)
	}
	if !p.exitsWithin(killTimeout) {
		return fmt.Errorf("cannot kill %s: process %d is still there after %s", p.name, p.pid(), killTimeout)
	}
	return nil
}

// exitsWithin waits for the end of the process and tells whether it came in time.
func (p *process) exitsWithin(limit time.Duration) bool {
	timer := time.NewTimer(limit)
	defer timer.Stop()
	select {
	case <-p.exited:
		return true
	case <-timer.C:
		return false
	}
}

// failure describes the exit of the process, with the end of its log. The process must have exited.
func (p *process) failure() error {
	cause := "exit status 0"
	if p.err != nil {
		cause = p.err.Error()
	}
	return fmt.Errorf("%s ended: %s; the end of its log:\n%s", p.name, cause, p.logTail())
}

// logTail is the end of the log.
func (p *process) logTail() string {
	text, err := readEnd(p.logPath, tailBytes)
	if err != nil {
		return err.Error()
	}
	lines := strings.Split(strings.TrimSpace(text), "\n")
	return strings.Join(lines[max(0, len(lines)-tailLines):], "\n")
}

// readEnd reads at most limit bytes from the end of a file.
func readEnd(path string, limit int64) (_ string, err error) {
	file, err := os.Open(path)
	if err != nil {
		return "", fmt.Errorf("cannot read log: %w", err)
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	info, err := file.Stat()
	if err != nil {
		return "", fmt.Errorf("cannot read log: %w", err)
	}
	offset := max(0, info.Size()-limit)
	text := make([]byte, info.Size()-offset)
	n, err := file.ReadAt(text, offset)
	if n < len(text) {
		return "", fmt.Errorf("cannot read log: %w", err)
	}
	return string(text), nil
}
