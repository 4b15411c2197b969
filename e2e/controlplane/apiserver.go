package controlplane

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"

	"github.com/healthscope/healthscope/e2e/controlplane/assets"
	"github.com/healthscope/healthscope/e2e/process"
)

const (
	// serviceRange is the range of cluster IPs of Services, and kubernetesServiceIP its first, which belongs to the Service
	// "kubernetes".
	serviceRange        = "10.96.0.0/16"
	kubernetesServiceIP = "10.96.0.1"

	// etcdSocket is where etcd listens, relative to the directory of the control plane, which is the working directory of
	// all components: a path longer than about a hundred bytes is no address of a Unix socket. No port, and nobody else on
	// the machine gets at the data. etcd wants the names to look like host:port.
	etcdSocket     = "unix://etcd.sock:2379"
	etcdPeerSocket = "unix://etcd.sock:2380"

	auditPolicyFile = "audit-policy.yaml"
	auditLog        = "audit.log"

	// readyInterval is the time between two questions whether the API server is ready, and readyTimeout the deadline of one.
	readyInterval = 50 * time.Millisecond
	readyTimeout  = 2 * time.Second
)

// startStorage starts etcd.
func (cp *ControlPlane) startStorage() error {
	cp.mu.Lock()
	defer cp.mu.Unlock()
	args := []string{
		"--name=etcd",
		"--data-dir=" + cp.work.file(etcdDir),
		"--listen-client-urls=" + etcdSocket,
		"--advertise-client-urls=" + etcdSocket,
		"--listen-peer-urls=" + etcdPeerSocket,
		"--initial-advertise-peer-urls=" + etcdPeerSocket,
		"--initial-cluster=etcd=" + etcdPeerSocket,
		"--quota-backend-bytes=4294967296", // The default of 2 GiB is little for a long soak test.
		"--heartbeat-interval=10",          // Milliseconds. A lone member need not wait for the votes of others,
		"--election-timeout=50",            // which with the defaults takes half a second.
		"--log-level=warn",
	}
	if !cp.options.Fsync {
		args = append(args, "--unsafe-no-fsync")
	}
	var err error
	if cp.etcd, err = cp.launch(assets.Etcd, args...); err != nil {
		return err
	}
	return cp.janitor.watch(cp.etcd.PID())
}

// StartAPIServer starts the API server after StopAPIServer, on the same port with the same data and credentials, and
// returns when it is ready. It does nothing if the API server runs.
func (cp *ControlPlane) StartAPIServer(ctx context.Context) error {
	ctx, cancel := bounded(ctx, startTimeout)
	defer cancel()
	cp.mu.Lock()
	defer cp.mu.Unlock()
	if cp.stopped {
		return fmt.Errorf("cannot start API server: control plane %q is stopped", cp.options.Name)
	}
	if cp.apiServer != nil && cp.apiServer.Running() {
		return nil
	}
	args, err := cp.apiServerArgs()
	if err != nil {
		return err
	}
	cp.logf("starting %s", assets.KubeAPIServer)
	if cp.apiServer, err = cp.launch(assets.KubeAPIServer, args...); err != nil {
		return err
	}
	return cp.awaitReady(ctx)
}

// StopAPIServer kills the API server, as in an outage: connections break and new ones are refused. Everything else keeps
// running. It does nothing if the API server does not run.
func (cp *ControlPlane) StopAPIServer() error {
	cp.mu.Lock()
	defer cp.mu.Unlock()
	if cp.apiServer == nil || !cp.apiServer.Running() {
		return nil
	}
	cp.logf("stopping %s", assets.KubeAPIServer)
	return cp.apiServer.Kill()
}

// apiServerArgs are the arguments of kube-apiserver; what is not named has its default.
func (cp *ControlPlane) apiServerArgs() ([]string, error) {
	pki := func(name string) string { return cp.work.file(pkiDir, name) }
	args := []string{
		"--etcd-servers=" + etcdSocket,
		"--bind-address=127.0.0.1",
		"--advertise-address=127.0.0.1",
		fmt.Sprintf("--secure-port=%d", cp.port.Number),
		"--permit-port-sharing", // With our own reservation of the port.
		"--tls-cert-file=" + pki(serverCertFile),
		"--tls-private-key-file=" + pki(serverKeyFile),
		"--client-ca-file=" + pki(caFile),
		"--service-account-issuer=https://kubernetes.default.svc",
		"--service-account-key-file=" + pki(accountPublicFile),
		"--service-account-signing-key-file=" + pki(accountKeyFile),
		"--authorization-mode=Node,RBAC",
		"--service-cluster-ip-range=" + serviceRange,
		"--endpoint-reconciler-type=none", // A loopback address is no valid endpoint.
		"--allow-privileged",
		"--profiling=false",
	}
	if !cp.options.Controllers {
		args = append(args, "--disable-admission-plugins=ServiceAccount")
	}
	if cp.options.AuditPolicy != "" {
		if err := writePrivateFile(cp.work.file(auditPolicyFile), []byte(cp.options.AuditPolicy)); err != nil {
			return nil, err
		}
		args = append(args,
			"--audit-policy-file="+cp.work.file(auditPolicyFile),
			"--audit-log-path="+cp.AuditLogPath(),
			"--audit-log-maxsize=4096") // Megabytes: a test reads one file, not what rotation left of it.
	}
	return args, nil
}

// awaitReady waits until /readyz says so. Nothing announces it, so it has to be asked for.
func (cp *ControlPlane) awaitReady(ctx context.Context) error {
	client, err := rest.HTTPClientFor(cp.config)
	if err != nil {
		return fmt.Errorf("cannot make client: %w", err)
	}
	client.Timeout = readyTimeout
	defer client.CloseIdleConnections()
	last := errors.New("not asked yet")
	err = wait.PollUntilContextCancel(ctx, readyInterval, true, func(ctx context.Context) (bool, error) {
		for _, p := range []*process.Process{cp.etcd, cp.apiServer} {
			if !p.Running() {
				return false, p.Failure()
			}
		}
		last = askReady(ctx, client, cp.config.Host+"/readyz")
		return last == nil, nil
	})
	if wait.Interrupted(err) {
		return fmt.Errorf("cannot get a ready API server: %w: %w; the end of its log:\n%s", context.Cause(ctx), last, cp.apiServer.LogTail())
	}
	return err
}

// askReady returns nil if the answer is 200.
func askReady(ctx context.Context, client *http.Client, url string) (err error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
	if err != nil {
		return fmt.Errorf("cannot ask %q: %w", url, err)
	}
	response, err := client.Do(request)
	if err != nil {
		return fmt.Errorf("cannot ask %q: %w", url, err)
	}
	defer func() { err = errors.Join(err, response.Body.Close()) }()
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("%q answers %s", url, response.Status)
	}
	return nil
}
