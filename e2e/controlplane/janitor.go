package controlplane

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"syscall"
)

// janitorScript reads the process group to watch over, waits until its input ends, which happens when the parent dies
// however it dies, then kills the group and removes the directory $1, unless that is empty.
const janitorScript = `
read -r group
while read -r ignored; do :; done
[ -z "$group" ] || kill -s KILL -- "-$group"
[ -z "$1" ] || rm -rf -- "$1"
`

// janitor is a shell that cleans up after this process has died without stopping its control plane.
type janitor struct {
	cmd   *exec.Cmd
	input io.WriteCloser
}

// startJanitor starts a janitor that will remove directory dir, or none if dir is empty. It is in a process group of its
// own, out of reach of the terminal's Ctrl-C.
func startJanitor(dir string) (*janitor, error) {
	//nolint:gosec,noctx // The script is a constant and dir not a part of it; the janitor must outlive every context.
	cmd := exec.Command("/bin/sh", "-c", janitorScript, "healthscope-controlplane-janitor", dir)
	cmd.Dir = "/"
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	input, err := cmd.StdinPipe()
	if err != nil {
		return nil, fmt.Errorf("cannot start janitor: %w", err)
	}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("cannot start janitor: %w", err)
	}
	return &janitor{cmd: cmd, input: input}, nil
}

// watch tells the janitor the process group to kill.
func (j *janitor) watch(group int) error {
	if _, err := fmt.Fprintln(j.input, group); err != nil {
		return fmt.Errorf("cannot tell janitor the process group: %w", err)
	}
	return nil
}

// dismiss ends the janitor without letting it clean up.
func (j *janitor) dismiss() error {
	if err := j.cmd.Process.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("cannot dismiss janitor: %w", err)
	}
	if err := j.cmd.Wait(); err != nil {
		if _, killed := errors.AsType[*exec.ExitError](err); !killed {
			return fmt.Errorf("cannot dismiss janitor: %w", err)
		}
	}
	return nil
}
