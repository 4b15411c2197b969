package controlplane

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"strconv"
	"sync"
	"syscall"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/healthscope/healthscope/e2e/controlplane/assets"
	"github.com/healthscope/healthscope/e2e/process"
)

const (
	// startTimeout bounds the start of a control plane or its API server, which takes seconds, on a machine that is busy with
	// other things.
	startTimeout = 3 * time.Minute
	// installTimeout bounds the installation of manifests.
	installTimeout = time.Minute
)

// ControlPlane is a running control plane. Its methods are safe for concurrent use.
type ControlPlane struct {
	options  Options
	programs assets.Set
	work     *workdir
	port     *process.Port
	janitor  *janitor
	config   *rest.Config
	// broken is closed when a process exits though nobody stopped it; breaker is that process, the first one.
	broken  chan struct{}
	breaker *process.Process
	once    sync.Once

	// mu guards what follows.
	mu        sync.Mutex
	etcd      *process.Process
	apiServer *process.Process
	others    []*process.Process
	stopped   bool
}

// Start starts a control plane and returns when it is ready: the API server answers /readyz, and with Controllers the
// service account "default" exists in namespace "default" and the nodes are Ready. ctx bounds the start only; the control
// plane runs until Stop. An error names the component that failed and carries the end of its log, and nothing is left
// behind; it wraps assets.ErrMissing when programs are missing.
func Start(ctx context.Context, options Options) (*ControlPlane, error) {
	options, err := options.complete()
	if err != nil {
		return nil, err
	}
	programs, err := assets.Locate()
	if err == nil {
		err = programs.Require(options.programs()...)
	}
	if err != nil {
		return nil, fmt.Errorf("cannot start control plane %q: %w", options.Name, err)
	}
	begin := time.Now()
	sweep(os.TempDir(), begin)
	cp := &ControlPlane{options: options, programs: programs, broken: make(chan struct{})}
	if err := cp.start(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("cannot start control plane %q: %w", options.Name, err), cp.Stop())
	}
	cp.logf("ready at %s after %s", cp.config.Host, time.Since(begin).Round(100*time.Millisecond))
	return cp, nil
}

// start does the work of Start; what it has begun when it fails is for Stop to undo.
func (cp *ControlPlane) start(ctx context.Context) error {
	ctx, cancel := bounded(ctx, startTimeout)
	defer cancel()
	var err error
	if cp.work, err = openWorkdir(cp.options.Dir, cp.options.KeepData); err != nil {
		return err
	}
	if err := cp.prepare(); err != nil {
		return err
	}
	if err := cp.startStorage(); err != nil {
		return err
	}
	if err := cp.StartAPIServer(ctx); err != nil {
		return err
	}
	if !cp.options.Controllers {
		return nil
	}
	return cp.startControllers(ctx)
}

// bounded gives ctx a deadline that errors name.
func bounded(ctx context.Context, limit time.Duration) (context.Context, context.CancelFunc) {
	return context.WithTimeoutCause(ctx, limit, fmt.Errorf("not done after %s", limit))
}

// prepare makes everything that the processes need: a janitor, a port and credentials. In a directory that an earlier
// control plane left, port and credentials are those from before, so that everybody who had them can continue.
func (cp *ControlPlane) prepare() error {
	remove := cp.work.path
	if cp.options.KeepData {
		remove = ""
	}
	var err error
	if cp.janitor, err = startJanitor(remove); err != nil {
		return err
	}
	number, err := cp.earlierPort()
	if err != nil {
		return err
	}
	if cp.port, err = process.ReservePort(number); err != nil {
		return err
	}
	if number == 0 {
		address := "https://127.0.0.1:" + strconv.Itoa(cp.port.Number)
		if err := writeCredentials(cp.work, cp.options.Name, address); err != nil {
			return err
		}
	}
	if cp.config, err = clientcmd.BuildConfigFromFlags("", cp.KubeconfigPath()); err != nil {
		return fmt.Errorf("cannot read kubeconfig: %w", err)
	}
	cp.config.QPS = -1 // Tests and benchmarks are not to measure the client's own brake.
	return nil
}

// earlierPort is the port of the control plane that left the directory, or 0 if the directory is new.
func (cp *ControlPlane) earlierPort() (int, error) {
	if _, err := os.Stat(cp.KubeconfigPath()); errors.Is(err, os.ErrNotExist) {
		return 0, nil
	}
	config, err := clientcmd.BuildConfigFromFlags("", cp.KubeconfigPath())
	if err != nil {
		return 0, fmt.Errorf("cannot continue in Dir %q: %w", cp.work.path, err)
	}
	address, err := url.Parse(config.Host)
	if err != nil {
		return 0, fmt.Errorf("cannot continue in Dir %q: %w", cp.work.path, err)
	}
	number, err := strconv.Atoi(address.Port())
	if err != nil {
		return 0, fmt.Errorf("cannot continue in Dir %q: port in %q: %w", cp.work.path, config.Host, err)
	}
	return number, nil
}

// Config is a new client configuration of an administrator (group system:masters) without a rate limit.
func (cp *ControlPlane) Config() *rest.Config {
	return rest.CopyConfig(cp.config)
}

// LogDir is the directory with a log file for each component. It exists until Stop.
func (cp *ControlPlane) LogDir() string {
	return cp.work.file(logDir)
}

// AuditLogPath is the path of the API server's audit log, a JSON event a line; empty without Options.AuditPolicy. An
// event may appear a moment after the client has its response.
func (cp *ControlPlane) AuditLogPath() string {
	if cp.options.AuditPolicy == "" {
		return ""
	}
	return cp.work.file(logDir, auditLog)
}

// PIDs are the process ids of the components that run, by name.
func (cp *ControlPlane) PIDs() map[string]int {
	cp.mu.Lock()
	defer cp.mu.Unlock()
	pids := map[string]int{}
	for _, p := range append([]*process.Process{cp.etcd, cp.apiServer}, cp.others...) {
		if p != nil && p.Running() {
			pids[p.Name()] = p.PID()
		}
	}
	return pids
}

// Wait waits until ctx is done and returns nil, or until a component ends that nobody stopped and returns an error with
// the end of its log.
func (cp *ControlPlane) Wait(ctx context.Context) error {
	select {
	case <-ctx.Done():
		return nil
	case <-cp.broken:
		return fmt.Errorf("control plane %q is broken: %w", cp.options.Name, cp.breaker.Failure())
	}
}

// Stop ends all processes and waits until they are gone, then removes the directory unless KeepData is set. A second Stop
// does nothing.
func (cp *ControlPlane) Stop() error {
	cp.mu.Lock()
	defer cp.mu.Unlock()
	if cp.stopped {
		return nil
	}
	cp.stopped = true
	cp.logf("stopping")
	var errs []error
	// etcd goes last: it leads the process group, and who comes before it would complain about its loss.
	for _, p := range append(cp.others, cp.apiServer, cp.etcd) {
		if p != nil {
			errs = append(errs, p.Kill())
		}
	}
	if cp.janitor != nil {
		errs = append(errs, cp.janitor.dismiss())
	}
	if cp.port != nil {
		errs = append(errs, cp.port.Release())
	}
	if cp.work != nil {
		errs = append(errs, cp.work.close())
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("cannot stop control plane %q: %w", cp.options.Name, err)
	}
	return nil
}

// launch starts a component in the control plane's process group, which etcd leads.
func (cp *ControlPlane) launch(name string, args ...string) (*process.Process, error) {
	group := 0
	if cp.etcd != nil {
		group = cp.etcd.PID()
	}
	p, err := process.Start(process.Spec{
		Name: name, Path: cp.programs.Path(name), Args: args, Dir: cp.work.path, LogPath: cp.work.file(logDir, name+".log"), Group: group,
		OnExit: func(p *process.Process) {
			cp.once.Do(func() {
				cp.breaker = p
				close(cp.broken)
			})
		},
	})
	// A group that is gone cannot be joined; the reason is then that etcd has just ended.
	if group != 0 && errors.Is(err, syscall.EPERM) && cp.etcd.ExitsWithin(time.Second) {
		return nil, cp.etcd.Failure()
	}
	return p, err
}

// logf writes a line for people.
func (cp *ControlPlane) logf(format string, args ...any) {
	fmt.Fprintf(cp.options.Log, "control plane %q: %s\n", cp.options.Name, fmt.Sprintf(format, args...))
}
