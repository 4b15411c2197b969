package installation

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"strconv"

	"github.com/healthscope/healthscope/e2e/process"
)

// Replica is one of several processes of the same program, of which one leads:
// with the rights of the same ServiceAccount, and with ports, configuration and
// log of its own. It belongs to one goroutine; Text and LogPath are for others, too.
type Replica struct {
	// Name is the program's name with the number of the replica, such as controller-2.
	Name string

	own              *Installation
	program, metrics string
}

// Replica prepares a replica of a program, monitor or controller, without starting it. number tells replicas of a program apart.
func (i *Installation) Replica(ctx context.Context, program string, number int) (*Replica, error) {
	name := program + "-" + strconv.Itoa(number)
	own := &Installation{cp: i.cp, options: i.options, inventory: i.inventory, AAI: i.AAI, Control: i.Control}
	own.options.Dir = i.path(name)
	if err := os.Mkdir(own.options.Dir, 0o700); err != nil {
		return nil, fmt.Errorf("cannot prepare %s: %w", name, err)
	}
	if err := own.prepareFor(ctx, program); err != nil {
		return nil, fmt.Errorf("cannot prepare %s: %w", name, err)
	}
	// What is written into A&AI leads to a Service before all replicas, so it is the same in each.
	own.API, own.GuardedAPI = i.API, i.GuardedAPI
	for _, file := range []string{"aai-user", "aai-password"} {
		if err := os.Symlink(i.path(file), own.path(file)); err != nil {
			return nil, fmt.Errorf("cannot prepare %s: %w", name, err)
		}
	}
	r := &Replica{Name: name, own: own, program: program, metrics: own.Metrics}
	if program == "monitor" {
		r.metrics = own.MonitorMetrics
	}
	return r, nil
}

// process is the replica's process, nil when it has none.
func (r *Replica) process() **process.Process {
	if r.program == "monitor" {
		return &r.own.monitor
	}
	return &r.own.controller
}

// Start starts the replica, and returns when it is ready; it need not lead for that.
func (r *Replica) Start(ctx context.Context) error {
	if r.program == "monitor" {
		return r.own.StartMonitor(ctx)
	}
	return r.own.StartController(ctx)
}

// Exited returns a channel that is closed when the replica, which must have been started, is gone.
func (r *Replica) Exited() <-chan struct{} { return (*r.process()).Exited() }

// Stop stops the replica as Kubernetes would: it asks first. That it has not been started, or has been killed, is no error.
func (r *Replica) Stop() error { return stop(r.process()) }

// Kill ends the replica without warning; that it has ended already is no error.
func (r *Replica) Kill() error { return kill(r.process()) }

// Text returns the replica's metrics, as callers without a token get them.
func (r *Replica) Text(ctx context.Context) (string, error) {
	status, text, err := r.own.Text(ctx, r.metrics)
	if err == nil && status != http.StatusOK {
		err = fmt.Errorf("the answer is %d", status)
	}
	if err != nil {
		return "", fmt.Errorf("cannot read the metrics of %s: %w", r.Name, err)
	}
	return text, nil
}

// LogPath returns the path of the replica's log, which all of its processes write.
func (r *Replica) LogPath() string { return r.own.LogPath(r.program) }

// LogTails returns the end of the replica's log; empty when it has no process.
func (r *Replica) LogTails() string { return r.own.LogTails() }
