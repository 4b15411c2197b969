package kubelet

import (
	"context"
	"fmt"
	"net"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/healthscope/healthscope/e2e/controlplane"
	"github.com/healthscope/healthscope/e2e/process"
)

// requestTimeout is the maximum duration of one request to the API server.
const requestTimeout = 30 * time.Second

// Options configure New.
type Options struct {
	// Plane is the cluster.
	Plane *controlplane.ControlPlane
	// Namespace and Deployment name the Deployment. Its pods must have one container. Only one replica runs.
	Namespace, Deployment string
	// Program is the program that runs instead of the container's image and its entrypoint.
	Program string
	// Dir is a directory for volumes and credentials.
	Dir string
	// LogPath is the file to which the program's output is appended.
	LogPath string
}

// Pod is a pod of a Deployment. It belongs to one goroutine.
type Pod struct {
	options Options
	api     kubernetes.Interface
	// ports are the ports on this machine, by port of the container. They stay the same when the process is restarted.
	ports map[int]int
	// template is the pod template from which the process was started.
	template corev1.PodTemplateSpec
	process  *process.Process
}

// New returns a pod that does not run yet. The Deployment need not exist.
func New(o Options) (*Pod, error) {
	api, err := kubernetes.NewForConfig(o.Plane.Config())
	if err != nil {
		return nil, fmt.Errorf("cannot run a pod of Deployment %q: %w", o.Deployment, err)
	}
	return &Pod{options: o, api: api, ports: map[int]int{}}, nil
}

// Address returns the address, as host:port, at which a port of the container is reachable.
func (p *Pod) Address(port int) (string, error) {
	if p.ports[port] == 0 {
		here, err := process.ReservePort()
		if err != nil {
			return "", err
		}
		p.ports[port] = here.Number
	}
	return net.JoinHostPort("127.0.0.1", strconv.Itoa(p.ports[port])), nil
}

// Start reads the Deployment and the volumes of its pods, and starts the process. It does not wait until the process is ready.
func (p *Pod) Start(ctx context.Context) (*process.Process, error) {
	started, err := p.start(ctx)
	if err != nil {
		return nil, fmt.Errorf("cannot run a pod of Deployment %q: %w", p.options.Deployment, err)
	}
	return started, nil
}

func (p *Pod) start(ctx context.Context) (*process.Process, error) {
	template, err := p.read(ctx)
	if err != nil {
		return nil, err
	}
	container, err := only(template.Spec)
	if err != nil {
		return nil, err
	}
	if err := p.writeVolumes(ctx, template.Spec, container); err != nil {
		return nil, err
	}
	kubeconfig := filepath.Join(p.options.Dir, "kubeconfig")
	if err := p.options.Plane.ServiceAccountKubeconfig(ctx, p.options.Namespace, template.Spec.ServiceAccountName, kubeconfig); err != nil {
		return nil, err
	}
	spec := process.Spec{Name: container.Name, Path: p.options.Program, Dir: p.options.Dir, LogPath: p.options.LogPath, RestartOnSuccess: true}
	for _, argument := range container.Args {
		if argument, err = p.rewrite(argument, container); err != nil {
			return nil, err
		}
		spec.Args = append(spec.Args, argument)
	}
	spec.Args = append(spec.Args, "--kubeconfig="+kubeconfig)
	for _, e := range container.Env {
		value, err := p.rewrite(valueOf(e, container), container)
		if err != nil {
			return nil, err
		}
		spec.Env = append(spec.Env, e.Name+"="+value)
	}
	if p.process, err = process.Start(spec); err != nil {
		return nil, err
	}
	p.template = template
	return p.process, nil
}

// read returns the pod template of the Deployment.
func (p *Pod) read(ctx context.Context) (corev1.PodTemplateSpec, error) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	var deployment *appsv1.Deployment
	deployment, err := p.api.AppsV1().Deployments(p.options.Namespace).Get(ctx, p.options.Deployment, metav1.GetOptions{})
	if err != nil {
		return corev1.PodTemplateSpec{}, err
	}
	return deployment.Spec.Template, nil
}

// only returns the only container of a pod. It returns an error if the pod uses anything that this kubelet does not support.
func only(pod corev1.PodSpec) (corev1.Container, error) {
	if len(pod.Containers) != 1 || len(pod.InitContainers) > 0 {
		return corev1.Container{}, fmt.Errorf("it has %d containers and %d init containers; only one container can be run", len(pod.Containers), len(pod.InitContainers))
	}
	c := pod.Containers[0]
	if len(c.Command) > 0 || len(c.EnvFrom) > 0 {
		return c, fmt.Errorf("container %q has a command or envFrom, which is not supported", c.Name)
	}
	for _, e := range c.Env {
		if e.ValueFrom != nil && !isMemoryLimit(e.ValueFrom.ResourceFieldRef) {
			return c, fmt.Errorf("container %q takes variable %q from elsewhere, which is not supported", c.Name, e.Name)
		}
	}
	if c.ReadinessProbe == nil || c.ReadinessProbe.HTTPGet == nil {
		return c, fmt.Errorf("container %q has no readiness probe by HTTP", c.Name)
	}
	return c, nil
}

// isMemoryLimit reports whether a reference is to the container's own memory limit.
func isMemoryLimit(ref *corev1.ResourceFieldSelector) bool {
	return ref != nil && ref.Resource == "limits.memory" && ref.ContainerName == ""
}

// valueOf returns the value of a variable. In it, $(NAME) is replaced if the variable NAME is a memory limit.
func valueOf(e corev1.EnvVar, container corev1.Container) string {
	if e.ValueFrom != nil {
		return memoryLimit(e.ValueFrom.ResourceFieldRef, container)
	}
	value := e.Value
	for _, other := range container.Env {
		if other.ValueFrom != nil {
			value = strings.ReplaceAll(value, "$("+other.Name+")", memoryLimit(other.ValueFrom.ResourceFieldRef, container))
		}
	}
	return value
}

// memoryLimit returns the memory limit of a container in units of the divisor, rounded up as Kubernetes does.
func memoryLimit(ref *corev1.ResourceFieldSelector, container corev1.Container) string {
	divisor := max(1, ref.Divisor.Value())
	return strconv.FormatInt((container.Resources.Limits.Memory().Value()+divisor-1)/divisor, 10)
}

// Readiness returns the URL of the readiness probe. The pod must have been started.
func (p *Pod) Readiness() (string, error) {
	container, err := only(p.template.Spec)
	if err != nil {
		return "", err
	}
	probe := container.ReadinessProbe.HTTPGet
	number := probe.Port.IntValue()
	if i := slices.IndexFunc(container.Ports, func(port corev1.ContainerPort) bool { return port.Name == probe.Port.StrVal }); i >= 0 {
		number = int(container.Ports[i].ContainerPort)
	}
	address, err := p.Address(number)
	return "http://" + address + probe.Path, err
}

// Sync reports whether the pod template of the Deployment has changed since the start of the process: the Deployment's
// controller would then replace the pod. If the template has not changed, Sync updates the files in the volumes of the process.
func (p *Pod) Sync(ctx context.Context) (outdated bool, err error) {
	template, err := p.read(ctx)
	if err != nil {
		return false, fmt.Errorf("cannot update a pod of Deployment %q: %w", p.options.Deployment, err)
	}
	if !reflect.DeepEqual(template, p.template) {
		return true, nil
	}
	container, err := only(template.Spec)
	if err == nil {
		err = p.writeVolumes(ctx, template.Spec, container)
	}
	if err != nil {
		return false, fmt.Errorf("cannot update a pod of Deployment %q: %w", p.options.Deployment, err)
	}
	return false, nil
}
