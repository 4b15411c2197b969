package controlplane

import (
	"context"
	"fmt"
	"os"

	"k8s.io/client-go/rest"

	"github.com/healthscope/healthscope/e2e/controlplane/assets"
	"github.com/healthscope/healthscope/e2e/process"
)

const (
	// serviceRange is the range of cluster IPs of Services. kubernetesServiceIP is its first address, which belongs to the
	// Service "kubernetes".
	serviceRange        = "10.96.0.0/16"
	kubernetesServiceIP = "10.96.0.1"

	// etcdSocket is the Unix socket on which etcd listens. It needs no port, and other users of the machine cannot reach the
	// data. It is relative to the directory of the control plane, which is the working directory of all programs, because a
	// path longer than about a hundred bytes is not a valid address. etcd requires names in the form host:port.
	etcdSocket     = "unix://etcd.sock:2379"
	etcdPeerSocket = "unix://etcd.sock:2380"

	auditLog = "audit.log"
)

// startStorage starts etcd.
func (cp *ControlPlane) startStorage() error {
	cp.mu.Lock()
	defer cp.mu.Unlock()
	return cp.launch(assets.Etcd, append(etcdArguments(cp.home, etcdSocket),
		"--quota-backend-bytes=4294967296", // The default of 2 GiB is too small for a long soak test.
	)...)
}

// StartAPIServer starts the API server after StopAPIServer, on the same port and with the same data and credentials. It
// returns when the API server is ready. It does nothing if the API server runs.
func (cp *ControlPlane) StartAPIServer(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	cp.mu.Lock()
	defer cp.mu.Unlock()
	if cp.stopped {
		return fmt.Errorf("cannot start the API server: control plane %q is stopped", cp.options.Name)
	}
	if cp.apiServer != nil && cp.apiServer.Running() {
		return nil
	}
	args, err := cp.apiServerArgs()
	if err != nil {
		return err
	}
	cp.logf("starting %s", assets.KubeAPIServer)
	if cp.apiServer, err = cp.home.launch(assets.KubeAPIServer, args...); err != nil {
		return err
	}
	client, err := rest.HTTPClientFor(cp.config)
	if err != nil {
		return fmt.Errorf("cannot make a client: %w", err)
	}
	return awaitReady(ctx, client, cp.config.Host+"/readyz", append([]*process.Process{cp.apiServer}, cp.processes...)...)
}

// StopAPIServer kills the API server, as in an outage: connections break and new ones are refused. All other programs
// keep running. It does nothing if the API server does not run.
func (cp *ControlPlane) StopAPIServer() error {
	cp.mu.Lock()
	defer cp.mu.Unlock()
	if cp.apiServer == nil || !cp.apiServer.Running() {
		return nil
	}
	cp.logf("stopping %s", assets.KubeAPIServer)
	return cp.apiServer.Kill()
}

// apiServerArgs returns the arguments of kube-apiserver. All other arguments have their defaults.
func (cp *ControlPlane) apiServerArgs() ([]string, error) {
	args := []string{
		"--etcd-servers=" + etcdSocket,
		"--bind-address=127.0.0.1",
		"--advertise-address=127.0.0.1",
		fmt.Sprintf("--secure-port=%d", cp.port.Number),
		"--permit-port-sharing", // The control plane holds a reservation of the port.
		"--tls-cert-file=" + cp.home.file(serverCertFile),
		"--tls-private-key-file=" + cp.home.file(serverKeyFile),
		"--client-ca-file=" + cp.home.file(caFile),
		"--service-account-issuer=https://kubernetes.default.svc",
		"--service-account-key-file=" + cp.home.file(accountKeyFile),
		"--service-account-signing-key-file=" + cp.home.file(accountKeyFile),
		"--authorization-mode=Node,RBAC",
		"--service-cluster-ip-range=" + serviceRange,
		"--endpoint-reconciler-type=none", // A loopback address is not a valid endpoint.
		"--allow-privileged",
		"--profiling=false",
	}
	if !cp.options.Controllers {
		args = append(args, "--disable-admission-plugins=ServiceAccount")
	}
	if cp.options.AuditPolicy != "" {
		policy := cp.home.file("audit-policy.yaml")
		if err := os.WriteFile(policy, []byte(cp.options.AuditPolicy), 0o600); err != nil {
			return nil, fmt.Errorf("cannot write the audit policy: %w", err)
		}
		args = append(args,
			"--audit-policy-file="+policy,
			"--audit-log-path="+cp.AuditLogPath(),
			"--audit-log-maxsize=4096") // Megabytes, so that the log is not rotated: a test reads one file.
	}
	return args, nil
}
