package newcomer

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/healthscope/healthscope/e2e/controlplane"
	"github.com/healthscope/healthscope/e2e/process"
)

const (
	// namespace is where the README installs HealthScope.
	namespace = "healthscope-system"
	// readyTimeout bounds the start of a program, and stopGrace its end.
	readyTimeout = time.Minute
	stopGrace    = 15 * time.Second
)

// kubelet runs the containers of HealthScope's Deployments as processes, which the simulated nodes do not.
type kubelet struct {
	plane   *controlplane.ControlPlane
	api     client.Client
	program string
	dir     string
	running map[string]*process.Process
}

// sync starts what has been deployed and is not running yet, and stops what is deployed no more. It returns when all is ready.
func (k *kubelet) sync(ctx context.Context) error {
	var deployed appsv1.DeploymentList
	if err := k.api.List(ctx, &deployed, client.InNamespace(namespace), client.MatchingLabels{"app.kubernetes.io/name": "healthscope"}); err != nil {
		return fmt.Errorf("cannot list deployments: %w", err)
	}
	wanted := map[string]bool{}
	for _, d := range deployed.Items {
		wanted[d.Name] = true
		if k.running[d.Name] == nil {
			if err := k.start(ctx, d.Name, d.Spec.Template.Spec); err != nil {
				return fmt.Errorf("cannot run a pod of deployment %q: %w", d.Name, err)
			}
		}
	}
	for name, p := range k.running {
		if !wanted[name] {
			delete(k.running, name)
			if err := p.Stop(stopGrace); err != nil {
				return err
			}
		}
	}
	return nil
}

// start runs the container of a pod, and returns when it is ready.
func (k *kubelet) start(ctx context.Context, name string, pod corev1.PodSpec) error {
	if len(pod.Containers) != 1 {
		return fmt.Errorf("it has %d containers, want 1", len(pod.Containers))
	}
	home := filepath.Join(k.dir, name)
	if err := os.Mkdir(home, 0o700); err != nil {
		return err
	}
	if err := k.mount(ctx, home, pod); err != nil {
		return err
	}
	kubeconfig := filepath.Join(home, "kubeconfig")
	if err := k.plane.ServiceAccountKubeconfig(ctx, namespace, pod.ServiceAccountName, kubeconfig); err != nil {
		return err
	}
	probe, err := freeAddress(ctx)
	if err != nil {
		return err
	}
	args := []string{"--kubeconfig=" + kubeconfig}
	for _, arg := range pod.Containers[0].Args {
		arg = strings.ReplaceAll(arg, "=/etc/", "="+home+"/etc/")
		args = append(args, strings.Replace(arg, "--health-probe-bind-address=:8081", "--health-probe-bind-address="+probe, 1))
	}
	p, err := process.Start(process.Spec{
		Name: name, Path: k.program, Args: append(args[1:], args[0]), Dir: home, LogPath: filepath.Join(home, "log"),
	})
	if err != nil {
		return err
	}
	k.running[name] = p
	return awaitReady(ctx, p, "http://"+probe+"/readyz")
}

// mount writes the files of a pod's ConfigMaps to a directory, where the program finds its configuration. Addresses to listen on become free ones of this machine.
func (k *kubelet) mount(ctx context.Context, home string, pod corev1.PodSpec) error {
	for _, m := range pod.Containers[0].VolumeMounts {
		for _, v := range pod.Volumes {
			if v.Name != m.Name {
				continue
			}
			if v.ConfigMap == nil {
				return fmt.Errorf("volume %q is not of a ConfigMap", v.Name)
			}
			var source corev1.ConfigMap
			if err := k.api.Get(ctx, client.ObjectKey{Namespace: namespace, Name: v.ConfigMap.Name}, &source); err != nil {
				return err
			}
			dir := filepath.Join(home, m.MountPath)
			if err := os.MkdirAll(dir, 0o700); err != nil {
				return err
			}
			for file, text := range source.Data {
				local, err := localAddresses(ctx, text)
				if err != nil {
					return fmt.Errorf("ConfigMap %q, %q: %w", source.Name, file, err)
				}
				if err := os.WriteFile(filepath.Join(dir, file), local, 0o600); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// localAddresses gives the servers in a configuration file addresses that nobody else has: two pods would have two.
func localAddresses(ctx context.Context, text string) ([]byte, error) {
	var configuration map[string]any
	if err := yaml.UnmarshalStrict([]byte(text), &configuration); err != nil {
		return nil, err
	}
	for _, section := range []string{"api", "metrics"} {
		server, ok := configuration[section].(map[string]any)
		if !ok {
			continue
		}
		address, err := freeAddress(ctx)
		if err != nil {
			return nil, err
		}
		server["bindAddress"] = address
	}
	return yaml.Marshal(configuration)
}

// awaitReady waits as Helm does on a real cluster, where a pod is not Ready before its program is.
func awaitReady(ctx context.Context, p *process.Process, url string) error {
	ctx, cancel := context.WithTimeout(ctx, readyTimeout)
	defer cancel()
	err := wait.PollUntilContextCancel(ctx, poll, true, func(ctx context.Context) (bool, error) {
		if !p.Running() {
			return false, p.Failure()
		}
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
		if err != nil {
			return false, err
		}
		answer, err := http.DefaultClient.Do(request)
		if err != nil {
			return false, nil //nolint:nilerr // It does not listen yet.
		}
		return answer.StatusCode == http.StatusOK, answer.Body.Close()
	})
	if err != nil {
		return fmt.Errorf("%s is not ready: %w; the end of its log:\n%s", p.Name(), err, p.LogTail())
	}
	return nil
}

// freeAddress returns a loopback address that nobody listens on right now.
func freeAddress(ctx context.Context) (string, error) {
	var lc net.ListenConfig
	l, err := lc.Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return "", fmt.Errorf("cannot find a free port: %w", err)
	}
	return l.Addr().String(), l.Close()
}
