// Package process runs the programs of a test or a demo as child processes. On Linux, they end when the process that has started
// them ends for any reason.
package process

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"time"
)

const (
	// killTimeout is how long a killed process may take to disappear.
	killTimeout = 10 * time.Second
	// tailBytes is the number of bytes that are read from the end of a log, and tailLines the number of lines of a log in an
	// error.
	tailBytes = 16 << 10
	tailLines = 15
)

// Spec specifies a process to start.
type Spec struct {
	// Name is the name for error messages.
	Name string
	// Path is the program.
	Path string
	// Args are its arguments.
	Args []string
	// Dir is its working directory, its home and its directory for temporary files, so that files in the user's home have no
	// effect.
	Dir string
	// Env are variables of its environment, as name=value, besides PATH, HOME and TMPDIR.
	Env []string
	// LogPath is the file to which its output is appended.
	LogPath string
	// Group is the process group to join; 0 makes the process the leader of a new one.
	Group int
	// RestartOnSuccess restarts the process when it exits with code 0 without having been stopped, as a kubelet restarts a
	// container. A kubelet also restarts a container that has failed, but a test must see the failure.
	RestartOnSuccess bool
}

// Process is a child process.
type Process struct {
	spec Spec

	mu  sync.Mutex
	cmd *exec.Cmd
	// stopping is set before the process is stopped on purpose.
	stopping bool

	// exited is closed when the process is gone and is not started again.
	exited chan struct{}
	// err is the error with which the process exited. It may be read after exited is closed.
	err error
}

// Start starts a process.
func Start(spec Spec) (*Process, error) {
	p := &Process{spec: spec, exited: make(chan struct{})}
	started := make(chan error, 1)
	go p.run(started)
	if err := <-started; err != nil {
		return nil, fmt.Errorf("cannot start %s: %w", spec.Name, err)
	}
	return p, nil
}

// run starts the process and waits for its end on one OS thread, because on Linux the kernel ends the process together
// with the thread that has started it (see dieWithParent).
func (p *Process) run(started chan<- error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	cmd, err := p.start()
	started <- err
	if err != nil {
		return
	}
	for cmd != nil {
		p.err = cmd.Wait()
		cmd = p.restart()
	}
	close(p.exited)
}

// start starts the process.
func (p *Process) start() (*exec.Cmd, error) {
	log, err := os.OpenFile(p.spec.LogPath, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, err
	}
	cmd := exec.Command(p.spec.Path, p.spec.Args...) //nolint:noctx,gosec // The process lives until it is stopped, not as long as the call that starts it; what to start is the caller's.
	cmd.Dir = p.spec.Dir
	cmd.Env = append([]string{"PATH=" + os.Getenv("PATH"), "HOME=" + p.spec.Dir, "TMPDIR=" + p.spec.Dir}, p.spec.Env...)
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pgid: p.spec.Group}
	dieWithParent(cmd.SysProcAttr)
	if err := errors.Join(cmd.Start(), log.Close()); err != nil {
		return nil, err
	}
	p.cmd = cmd
	return cmd, nil
}

// restart starts the process again after its end, if it must be restarted; otherwise it returns nil.
func (p *Process) restart() (cmd *exec.Cmd) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.stopping || p.err != nil || !p.spec.RestartOnSuccess {
		return nil
	}
	cmd, p.err = p.start()
	return cmd
}

// signal records that the process is stopped on purpose, and sends it a signal. It is no error if the process has ended.
func (p *Process) signal(s os.Signal) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.stopping = true
	if err := p.cmd.Process.Signal(s); !errors.Is(err, os.ErrProcessDone) {
		return err
	}
	return nil
}

// Name returns the name of the process.
func (p *Process) Name() string { return p.spec.Name }

// PID returns its process id.
func (p *Process) PID() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.cmd.Process.Pid
}

// Exited returns a channel that is closed when the process is gone and is not started again.
func (p *Process) Exited() <-chan struct{} { return p.exited }

// Running reports whether the process has not exited yet.
func (p *Process) Running() bool {
	select {
	case <-p.exited:
		return false
	default:
		return true
	}
}

// Stop sends SIGTERM to the process, and kills it if it has not ended after grace. It returns an error if the process was killed
// or exited with a code other than 0.
func (p *Process) Stop(grace time.Duration) error {
	if err := p.signal(syscall.SIGTERM); err != nil {
		return fmt.Errorf("cannot stop %s: %w", p.spec.Name, err)
	}
	if !p.ExitsWithin(grace) {
		return errors.Join(fmt.Errorf("%s did not stop within %s; the end of its log:\n%s", p.spec.Name, grace, p.LogTail()), p.Kill())
	}
	if p.err != nil {
		return p.Failure()
	}
	return nil
}

// Kill kills the process with SIGKILL, and waits until it is gone.
func (p *Process) Kill() error {
	if err := p.signal(syscall.SIGKILL); err != nil {
		return fmt.Errorf("cannot kill %s: %w", p.spec.Name, err)
	}
	if !p.ExitsWithin(killTimeout) {
		return fmt.Errorf("cannot kill %s: process %d is still there after %s", p.spec.Name, p.PID(), killTimeout)
	}
	return nil
}

// ExitsWithin waits for the end of the process, and reports whether it has ended within limit.
func (p *Process) ExitsWithin(limit time.Duration) bool {
	timer := time.NewTimer(limit)
	defer timer.Stop()
	select {
	case <-p.exited:
		return true
	case <-timer.C:
		return false
	}
}

// Failure describes the exit of the process, with the end of its log. The process must have exited.
func (p *Process) Failure() error {
	cause := "exit status 0"
	if p.err != nil {
		cause = p.err.Error()
	}
	return fmt.Errorf("%s ended: %s; the end of its log:\n%s", p.spec.Name, cause, p.LogTail())
}

// LogTail returns the end of the log.
func (p *Process) LogTail() string {
	text, err := readEnd(p.spec.LogPath, tailBytes)
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
