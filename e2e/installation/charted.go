package installation

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/healthscope/healthscope/e2e/chart"
	"github.com/healthscope/healthscope/e2e/kubelet"
	"github.com/healthscope/healthscope/e2e/process"
)

// Ports in the chart's pods. The first two are the chart's defaults. The values of the installation add the others, for callers
// without a token.
const (
	metricsPort     = 8080
	apiPort         = 8082
	openAPIPort     = 8083
	openMetricsPort = 8084
)

// aaiSecret is the name of the Secret with user and password for A&AI.
const aaiSecret = "aai"

// Install installs the chart, or upgrades the release if it exists. values take precedence over the values that follow from the
// installation's options. Running programs are not changed before Upgrade.
func (i *Installation) Install(ctx context.Context, values ...string) error {
	verb := "upgrade"
	if _, err := i.helm(ctx, nil, "status", chart.Release); err != nil {
		verb = "install"
	}
	args := []string{verb, chart.Release, i.options.Helm.Chart()}
	if verb == "install" {
		args = append(args, "--create-namespace")
	} else {
		args = append(args, "--reset-values")
	}
	if _, err := i.helm(ctx, append([]string{i.values()}, values...), args...); err != nil {
		return err
	}
	if i.inventory == "" {
		return nil
	}
	return i.createAAISecret(ctx)
}

// Upgrade does the same for a release whose programs run. Like a kubelet, it updates the files in volumes; like a Deployment's
// controller, it replaces a program whose pod template has changed.
func (i *Installation) Upgrade(ctx context.Context, values ...string) error {
	if err := i.Install(ctx, values...); err != nil {
		return err
	}
	for _, p := range []struct {
		name  string
		stop  func() error
		start func(context.Context) error
	}{{"monitor", i.StopMonitor, i.StartMonitor}, {"controller", i.StopController, i.StartController}} {
		outdated, err := i.pods[p.name].Sync(ctx)
		if err == nil && outdated {
			err = errors.Join(p.stop(), p.start(ctx))
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// ForwardPorts makes "kubectl port-forward" to the controller's pod work. The caller must call stop.
func (i *Installation) ForwardPorts(ctx context.Context) (stop func(), err error) {
	return i.pods["controller"].ForwardPorts(ctx)
}

// Uninstall uninstalls the release, and stops the programs.
func (i *Installation) Uninstall(ctx context.Context) error {
	_, err := i.helm(ctx, nil, "uninstall", chart.Release)
	return errors.Join(err, i.StopController(), i.StopMonitor())
}

// helm runs helm for the release.
func (i *Installation) helm(ctx context.Context, values []string, args ...string) (string, error) {
	return i.options.Helm.Run(ctx, i.cp.KubeconfigPath(), values, append(args, "--namespace", Namespace)...)
}

// installChart prepares the pods of programs and installs the chart.
func (i *Installation) installChart(ctx context.Context, programs ...string) error {
	i.pods = map[string]*kubelet.Pod{}
	for _, program := range programs {
		dir := i.path("pod-" + program)
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return err
		}
		pod, err := kubelet.New(kubelet.Options{
			Plane: i.cp, Namespace: Namespace, Deployment: chart.Release + "-" + program,
			Program: filepath.Join(i.options.Bin, "healthscope"), Dir: dir, LogPath: i.LogPath(program),
		})
		if err != nil {
			return err
		}
		i.pods[program] = pod
	}
	if err := i.findAddresses(); err != nil {
		return err
	}
	return i.Install(ctx, i.options.Values...)
}

// findAddresses sets the URLs at which the pods will be reachable.
func (i *Installation) findAddresses() error {
	for _, a := range []struct {
		program string
		port    int
		format  string
		url     *string
	}{
		{"controller", openAPIPort, "http://%s", &i.API},
		{"controller", apiPort, "http://%s", &i.GuardedAPI},
		{"controller", openMetricsPort, "http://%s/metrics", &i.Metrics},
		{"controller", metricsPort, "https://%s/metrics", &i.GuardedMetrics},
		{"monitor", openMetricsPort, "http://%s/metrics", &i.MonitorMetrics},
		{"monitor", metricsPort, "https://%s/metrics", &i.GuardedMonitorMetrics},
	} {
		pod := i.pods[a.program]
		if pod == nil {
			continue
		}
		address, err := pod.Address(a.port)
		if err != nil {
			return err
		}
		*a.url = fmt.Sprintf(a.format, address)
	}
	return nil
}

// values returns the chart's values: for a hub with A&AI, or for a member without A&AI.
func (i *Installation) values() string {
	config := fmt.Sprintf("metrics:\n  anonymousBindAddress: 127.0.0.1:%d\n", openMetricsPort)
	rest := "controller: {enabled: false}\n"
	if i.inventory != "" {
		config += i.inventoryConfiguration("") + i.contextsConfiguration()
		rest = fmt.Sprintf("api: {port: %d}\ninventory: {credentialsSecret: %s}\n", openAPIPort, aaiSecret)
	}
	var text strings.Builder
	text.WriteString("config:\n")
	for line := range strings.Lines(config + i.options.Configuration) {
		text.WriteString("  " + line)
	}
	return text.String() + "logging: {format: text, verbosity: 1}\n" + rest
}

// createAAISecret creates the Secret with user and password for A&AI, and replaces an existing one.
func (i *Installation) createAAISecret(ctx context.Context) error {
	user, password, err := i.Credentials()
	if err != nil {
		return err
	}
	api, err := kubernetes.NewForConfig(i.cp.Config())
	if err != nil {
		return err
	}
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: aaiSecret}, StringData: map[string]string{"username": user, "password": password}}
	if err := api.CoreV1().Secrets(Namespace).Delete(ctx, aaiSecret, metav1.DeleteOptions{}); err != nil && !apierrors.IsNotFound(err) {
		return err
	}
	_, err = api.CoreV1().Secrets(Namespace).Create(ctx, secret, metav1.CreateOptions{})
	return err
}

// startPod starts the pod of a program, and returns when it is ready.
func (i *Installation) startPod(ctx context.Context, program string) (*process.Process, error) {
	p, err := i.pods[program].Start(ctx)
	if err != nil {
		return nil, err
	}
	url, err := i.pods[program].Readiness()
	if err == nil {
		err = ready(ctx, p, url)
	}
	if err != nil {
		return nil, errors.Join(err, p.Kill())
	}
	return p, nil
}
