package controlplane

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"sync"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/healthscope/healthscope/e2e/controlplane/assets"
	"github.com/healthscope/healthscope/e2e/process"
)

// defaultNodes is the default number of nodes of a control plane with controllers.
const defaultNodes = 2

// Options configures Start. The zero value is a minimal control plane: etcd and kube-apiserver.
type Options struct {
	// Name is the name in log lines and errors, and the cluster's name in kubeconfigs. The default is "controlplane".
	Name string
	// Log receives a line for each step of starting and stopping. By default, these lines are discarded.
	Log io.Writer
	// Controllers adds kube-controller-manager, kube-scheduler and kwok, so that the pods of a Deployment become Ready and
	// a pod with CrashAnnotation crashes. Without them, no program updates pods.
	Controllers bool
	// Nodes is the number of nodes that kwok simulates, with Controllers. The default is 2.
	Nodes int
	// AuditPolicy is an audit policy (kind Policy of audit.k8s.io/v1) in YAML. With a policy, the API server writes the
	// events that it selects to AuditLogPath, one JSON event per line. By default, there is no audit log.
	AuditPolicy string
}

// ControlPlane is a running control plane. Its methods are safe for concurrent use.
type ControlPlane struct {
	options Options
	home    *home
	port    *process.Port
	config  *rest.Config

	// mu guards the fields below.
	mu sync.Mutex
	// processes are the processes other than the API server, etcd first.
	processes []*process.Process
	apiServer *process.Process
	stopped   bool
}

// Start starts a control plane and returns when it is ready: the API server answers /readyz, and with Controllers the
// service account "default" exists in namespace "default" and the nodes are Ready. ctx limits only the start; the control
// plane runs until Stop. If Start fails, it leaves nothing behind. The error names the program that failed and contains
// the end of its log; it wraps assets.ErrMissing if programs are missing.
func Start(ctx context.Context, options Options) (*ControlPlane, error) {
	if options.Name == "" {
		options.Name = "controlplane"
	}
	needed := []string{assets.Etcd, assets.KubeAPIServer, assets.Kubectl}
	if options.Controllers {
		needed = append(needed, assets.KubeControllerManager, assets.KubeScheduler, assets.Kwok, assets.KwokManifests)
		if options.Nodes == 0 {
			options.Nodes = defaultNodes
		}
	}
	begin := time.Now()
	h, err := newHome(options.Log, needed...)
	if err != nil {
		return nil, fmt.Errorf("cannot start control plane %q: %w", options.Name, err)
	}
	cp := &ControlPlane{options: options, home: h}
	if err := cp.start(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("cannot start control plane %q: %w", options.Name, err), cp.Stop())
	}
	cp.logf("ready at %s after %s", cp.config.Host, time.Since(begin).Round(100*time.Millisecond))
	return cp, nil
}

// start does the work of Start. If it fails, the caller must call Stop.
func (cp *ControlPlane) start(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	var err error
	if cp.port, err = process.ReservePort(); err != nil {
		return err
	}
	if err := writeCredentials(cp.home, cp.options.Name, "https://127.0.0.1:"+strconv.Itoa(cp.port.Number)); err != nil {
		return err
	}
	if cp.config, err = clientcmd.BuildConfigFromFlags("", cp.KubeconfigPath()); err != nil {
		return fmt.Errorf("cannot read the kubeconfig: %w", err)
	}
	cp.config.QPS = -1 // No limit, because tests and benchmarks must not measure the client's own limit.
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

// Config returns a new client configuration of an administrator (group system:masters) without a rate limit.
func (cp *ControlPlane) Config() *rest.Config {
	return rest.CopyConfig(cp.config)
}

// LogDir returns the directory with a log file for each program, such as etcd.log. It exists until Stop.
func (cp *ControlPlane) LogDir() string {
	return cp.home.dir
}

// AuditLogPath returns the path of the API server's audit log, with one JSON event per line. The log exists with
// Options.AuditPolicy. An event may appear shortly after the client has received its response.
func (cp *ControlPlane) AuditLogPath() string {
	return cp.home.file(auditLog)
}

// Stop ends all processes and waits until they are gone, then removes the directory. A second Stop does nothing.
func (cp *ControlPlane) Stop() error {
	cp.mu.Lock()
	defer cp.mu.Unlock()
	if cp.stopped {
		return nil
	}
	cp.stopped = true
	cp.logf("stopping")
	var errs []error
	if cp.apiServer != nil {
		errs = append(errs, cp.apiServer.Kill())
	}
	for _, p := range slices.Backward(cp.processes) {
		errs = append(errs, p.Kill())
	}
	if cp.port != nil {
		errs = append(errs, cp.port.Release())
	}
	if err := errors.Join(append(errs, cp.home.close())...); err != nil {
		return fmt.Errorf("cannot stop control plane %q: %w", cp.options.Name, err)
	}
	return nil
}

// launch starts a program that runs until Stop. cp.mu must be held.
func (cp *ControlPlane) launch(name string, args ...string) error {
	p, err := cp.home.launch(name, args...)
	if err == nil {
		cp.processes = append(cp.processes, p)
	}
	return err
}

// logf writes a line to the log.
func (cp *ControlPlane) logf(format string, args ...any) {
	fmt.Fprintf(cp.home.log, "control plane %q: %s\n", cp.options.Name, fmt.Sprintf(format, args...))
}
