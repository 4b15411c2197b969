package installation

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/healthscope/healthscope/e2e/chart"
	"github.com/healthscope/healthscope/e2e/controlplane"
	"github.com/healthscope/healthscope/e2e/kubelet"
	"github.com/healthscope/healthscope/e2e/process"
)

// Namespace is the namespace in which HealthScope is installed.
const Namespace = "healthscope-system"

// The objects in the simulated A&AI to which the cluster's resources belong.
const (
	// CloudOwner, CloudRegionID and TenantID identify the tenant in A&AI to which the cluster's resources belong.
	CloudOwner    = "k8s-provider"
	CloudRegionID = "edge-region"
	TenantID      = "vfw-tenant"
	// GenericVNFID and VFModuleID identify the VNF and its module to which resources are related.
	GenericVNFID = "vfw-1"
	VFModuleID   = "vfw-1-base"
)

const (
	// readyTimeout is the maximum duration of the start of a process.
	readyTimeout = 2 * time.Minute
	// stopTimeout is how long a process may take to stop before it is killed.
	stopTimeout = 15 * time.Second
	// poll is the interval at which the readiness of a process is checked.
	poll = 50 * time.Millisecond
)

// Options configure Start.
type Options struct {
	// Root is the root of the source tree, where the manifests are.
	Root string
	// Bin is the directory with the programs healthscope and aai-simulator.
	Bin string
	// Dir is a directory for logs, configuration and credentials.
	Dir string
	// Log receives a line for each step. By default, these lines are discarded.
	Log io.Writer
	// Configuration is added to the configuration file of both programs, in YAML.
	Configuration string
	// Regions is added to the list inventory.regions of the configuration file, in YAML indented by two spaces.
	Regions string
	// Contexts is the endpoint of the etcd with the AppContexts that the hub deploys. If it is empty, the hub deploys none.
	Contexts string
	// Inventory is added to the section inventory of the configuration file, in YAML indented by two spaces.
	Inventory string
	// InventoryNamespace is the namespace whose resources are written to A&AI. The default is all namespaces.
	InventoryNamespace string
	// Helm, if set, installs the chart instead of the manifests in config. Monitor and controller then run as the chart's
	// Deployments specify.
	Helm *chart.Helm
	// Values are values of the chart, each a YAML document. They take precedence over the values that follow from the other
	// options.
	Values []string
	// Front, if set, receives the URL of A&AI and returns the URL of a proxy, which the controller uses instead.
	Front func(url string) (string, error)
}

// Installation is a running HealthScope.
type Installation struct {
	// API is the URL of the status REST server for callers without a token, and GuardedAPI that for callers with one.
	API, GuardedAPI string
	// Metrics is the URL of the controller's metrics for callers without a token, and GuardedMetrics that for callers with one.
	Metrics, GuardedMetrics string
	// MonitorMetrics and GuardedMonitorMetrics are the same URLs for the monitor.
	MonitorMetrics, GuardedMonitorMetrics string
	// AAI is the URL of the simulated A&AI, without the path /aai.
	AAI string
	// Control is the URL of the simulator's control surface.
	Control string

	cp         *controlplane.ControlPlane
	options    Options
	inventory  string // The URL of A&AI for the controller.
	simulator  *process.Process
	monitor    *process.Process
	controller *process.Process
	ports      ports
	pods       map[string]*kubelet.Pod // The pods of the chart, by program.
}

// ports are the loopback ports of an installation. They stay the same when a process is restarted.
type ports struct {
	api, guardedAPI     int
	controller, monitor programPorts
}

// programPorts are the ports of a program.
type programPorts struct {
	metrics, guardedMetrics, probe int
}

// Start installs the CRDs and the RBAC rules, and starts A&AI, monitor and controller. It returns when they are ready. If it
// fails, it stops everything that it has started.
func Start(ctx context.Context, cp *controlplane.ControlPlane, o Options) (*Installation, error) {
	i, err := Prepare(ctx, cp, o)
	if err != nil {
		return nil, err
	}
	return i, i.steps(ctx, []step{
		{"start the monitor", i.StartMonitor},
		{"start the controller", i.StartController},
	})
}

// Prepare does the same without starting monitor and controller.
func Prepare(ctx context.Context, cp *controlplane.ControlPlane, o Options) (*Installation, error) {
	if o.Log == nil {
		o.Log = io.Discard
	}
	i := &Installation{cp: cp, options: o}
	return i, i.steps(ctx, []step{
		{"start A&AI", i.startSimulator},
		{"install CRDs and RBAC", i.install},
		{"write the configuration of the commands for contexts", func(context.Context) error {
			return os.WriteFile(i.ContextsConfiguration(), []byte(configurationHead+i.contextsConfiguration()), 0o600)
		}},
		{"write configuration and credentials", i.prepare},
	})
}

// step is a part of the start.
type step struct {
	what string
	do   func(context.Context) error
}

// steps executes steps. If one fails, it stops everything that has been started.
func (i *Installation) steps(ctx context.Context, steps []step) error {
	for _, s := range steps {
		begin := time.Now()
		if err := s.do(ctx); err != nil {
			return errors.Join(fmt.Errorf("cannot %s: %w", s.what, err), i.Stop())
		}
		fmt.Fprintf(i.options.Log, "%s: done in %s\n", s.what, time.Since(begin).Round(10*time.Millisecond))
	}
	return nil
}

// Stop stops everything that Start has started, gracefully.
func (i *Installation) Stop() error {
	return errors.Join(i.StopController(), i.StopMonitor(), stop(&i.simulator))
}

// StartMonitor starts the monitor, and returns when it is ready.
func (i *Installation) StartMonitor(ctx context.Context) (err error) {
	i.monitor, err = i.start(ctx, "monitor", i.ports.monitor)
	return err
}

// StartController starts the controller, and returns when it is ready.
func (i *Installation) StartController(ctx context.Context) (err error) {
	i.controller, err = i.start(ctx, "controller", i.ports.controller)
	return err
}

// StopMonitor stops the monitor as Kubernetes does, first with SIGTERM.
func (i *Installation) StopMonitor() error { return stop(&i.monitor) }

// StopController stops the controller as Kubernetes does, first with SIGTERM.
func (i *Installation) StopController() error { return stop(&i.controller) }

// KillMonitor kills the monitor with SIGKILL.
func (i *Installation) KillMonitor() error { return kill(&i.monitor) }

// KillController kills the controller with SIGKILL.
func (i *Installation) KillController() error { return kill(&i.controller) }

// PIDs returns the process IDs of the running processes, by name: aai, monitor and controller.
func (i *Installation) PIDs() map[string]int {
	pids := map[string]int{}
	for _, p := range []*process.Process{i.simulator, i.monitor, i.controller} {
		if p != nil && p.Running() {
			pids[p.Name()] = p.PID()
		}
	}
	return pids
}

// LogTails returns the ends of the logs of all processes that have been started and not stopped.
func (i *Installation) LogTails() string {
	var text strings.Builder
	for _, p := range []*process.Process{i.simulator, i.monitor, i.controller} {
		if p != nil {
			fmt.Fprintf(&text, "\nThe end of the log of %s:\n%s\n", p.Name(), p.LogTail())
		}
	}
	return text.String()
}

// LogPath returns the path of a process's log: monitor, controller or aai.
func (i *Installation) LogPath(name string) string {
	return filepath.Join(i.options.Dir, name+".log")
}

func stop(p **process.Process) error {
	if *p == nil {
		return nil
	}
	err := (*p).Stop(stopTimeout)
	*p = nil
	return err
}

func kill(p **process.Process) error {
	if *p == nil {
		return nil
	}
	err := (*p).Kill()
	*p = nil
	return err
}

func (i *Installation) install(ctx context.Context) error {
	if i.options.Helm != nil {
		return i.installChart(ctx, "controller", "monitor")
	}
	return i.cp.InstallManifests(ctx,
		filepath.Join(i.options.Root, "config", "crd"),
		filepath.Join(i.options.Root, "config", "rbac", "namespace.yaml"),
		filepath.Join(i.options.Root, "config", "rbac"),
	)
}

func (i *Installation) prepare(ctx context.Context) error {
	return i.prepareFor(ctx, "controller", "monitor")
}

// prepareFor reserves ports, and writes a kubeconfig for the ServiceAccount of each program. With the chart, it does nothing.
func (i *Installation) prepareFor(ctx context.Context, programs ...string) error {
	if i.options.Helm != nil {
		return nil
	}
	p := &i.ports
	for _, port := range []*int{
		&p.api, &p.guardedAPI, &p.controller.metrics, &p.controller.guardedMetrics, &p.controller.probe, &p.monitor.metrics, &p.monitor.guardedMetrics, &p.monitor.probe,
	} {
		reserved, err := process.ReservePort()
		if err != nil {
			return err
		}
		*port = reserved.Number
	}
	i.API, i.GuardedAPI = "http://"+loopback(p.api), "http://"+loopback(p.guardedAPI)
	i.Metrics, i.GuardedMetrics = p.controller.urls()
	i.MonitorMetrics, i.GuardedMonitorMetrics = p.monitor.urls()
	for _, name := range programs {
		if err := i.cp.ServiceAccountKubeconfig(ctx, Namespace, "healthscope-"+name, i.path(name+".kubeconfig")); err != nil {
			return err
		}
	}
	return nil
}

// urls returns the URLs of a program's metrics, for callers without a token and for those with one.
func (p programPorts) urls() (open, guarded string) {
	return "http://" + loopback(p.metrics) + "/metrics", "http://" + loopback(p.guardedMetrics) + "/metrics"
}

// start starts one of the commands of the program.
func (i *Installation) start(ctx context.Context, command string, ports programPorts) (*process.Process, error) {
	if i.options.Helm != nil {
		return i.startPod(ctx, command)
	}
	if err := i.writeConfiguration(); err != nil {
		return nil, err
	}
	p, err := process.Start(process.Spec{
		Name: command, Path: filepath.Join(i.options.Bin, "healthscope"), Dir: i.options.Dir, LogPath: i.LogPath(command), RestartOnSuccess: true,
		Args: []string{
			command, "--config", i.path(command + ".yaml"), "--kubeconfig", i.path(command + ".kubeconfig"), "--namespace", Namespace,
			"--health-probe-bind-address", loopback(ports.probe), "-v", "1",
		},
	})
	if err != nil {
		return nil, err
	}
	if err := ready(ctx, p, "http://"+loopback(ports.probe)+"/readyz"); err != nil {
		return nil, errors.Join(err, p.Kill())
	}
	return p, nil
}

// ready waits until a URL responds with 200. It returns an error if the process ends before.
func ready(ctx context.Context, p *process.Process, url string) error {
	ctx, cancel := context.WithTimeoutCause(ctx, readyTimeout, fmt.Errorf("%s is not ready after %s; the end of its log:\n%s", p.Name(), readyTimeout, p.LogTail()))
	defer cancel()
	err := wait.PollUntilContextCancel(ctx, poll, true, func(ctx context.Context) (bool, error) {
		if !p.Running() {
			return false, p.Failure()
		}
		status, _, err := get(ctx, url, "*/*")
		return err == nil && status == http.StatusOK, nil
	})
	if err != nil && ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}

// get reads a URL of an installation.
func get(ctx context.Context, url, accept string) (status int, body []byte, err error) {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return 0, nil, err
	}
	request.Header.Set("Accept", accept)
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return 0, nil, err
	}
	body, err = io.ReadAll(response.Body)
	return response.StatusCode, body, errors.Join(err, response.Body.Close())
}

func (i *Installation) path(name string) string { return filepath.Join(i.options.Dir, name) }

func loopback(port int) string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(port)) }

// configurationHead begins a configuration file.
const configurationHead = "apiVersion: config.healthscope.io/v1alpha1\nkind: Configuration\n"

// ContextsConfiguration returns the path of the configuration file for the commands about contexts.
func (i *Installation) ContextsConfiguration() string { return i.path("contexts.yaml") }

// contextsConfiguration returns the settings for the deployment of AppContexts; empty without Options.Contexts.
func (i *Installation) contextsConfiguration() string {
	if i.options.Contexts == "" {
		return ""
	}
	return fmt.Sprintf("appContext:\n  endpoints: [%q]\nrsync:\n  enabled: true\n", i.options.Contexts)
}

// writeConfiguration writes the configuration files of the programs, which differ in the addresses of their metrics.
func (i *Installation) writeConfiguration() error {
	text := configurationHead
	if i.inventory != "" {
		text += i.hubConfiguration()
	}
	for program, p := range map[string]programPorts{"controller": i.ports.controller, "monitor": i.ports.monitor} {
		metrics := fmt.Sprintf("metrics:\n  bindAddress: %s\n  anonymousBindAddress: %s\n", loopback(p.guardedMetrics), loopback(p.metrics))
		if err := os.WriteFile(i.path(program+".yaml"), []byte(text+metrics+i.options.Configuration), 0o600); err != nil {
			return err
		}
	}
	return nil
}

// hubConfiguration returns the settings of the REST server, of A&AI and of AppContexts.
func (i *Installation) hubConfiguration() string {
	credentials := fmt.Sprintf("  usernameFile: %s\n  passwordFile: %s\n", i.path("aai-user"), i.path("aai-password"))
	return fmt.Sprintf("api:\n  bindAddress: %s\n  anonymousBindAddress: %s\n", loopback(i.ports.guardedAPI), loopback(i.ports.api)) + i.inventoryConfiguration(credentials) + i.contextsConfiguration()
}

// inventoryConfiguration returns the section inventory of the configuration file. credentials are its lines for the credentials.
func (i *Installation) inventoryConfiguration(credentials string) string {
	regions := fmt.Sprintf("  - {cluster: local, namespace: %q, cloudOwner: %s, cloudRegionId: %s, tenantId: %s}\n",
		cmp.Or(i.options.InventoryNamespace, "*"), CloudOwner, CloudRegionID, TenantID)
	return fmt.Sprintf(`inventory:
  url: %s
  selflinkBase: %s
%s  links:
  - {namespace: default, genericVnfIds: [%s]}
  regions:
%s%s%s`, i.inventory, i.API, credentials, GenericVNFID, regions, i.options.Regions, i.options.Inventory)
}

// Text requests a URL of the installation as plain text.
func (i *Installation) Text(ctx context.Context, url string) (status int, body string, err error) {
	return i.get(ctx, url, "text/plain")
}

// JSON requests a URL of the installation as JSON.
func (i *Installation) JSON(ctx context.Context, url string) (status int, body string, err error) {
	return i.get(ctx, url, "application/json")
}

func (i *Installation) get(ctx context.Context, url, accept string) (int, string, error) {
	status, body, err := get(ctx, url, accept)
	return status, string(body), err
}
