package controlplane

import (
	"context"
	_ "embed"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/healthscope/healthscope/e2e/controlplane/assets"
)

// CrashAnnotation with the value "true" makes a pod crash, also while it runs: its containers wait in CrashLoopBackOff
// and it is not Ready. The pod becomes Ready again when the annotation is removed. It needs Options.Controllers.
const CrashAnnotation = "healthscope.test/crash"

// podRange is the range of addresses that kwok assigns to pods.
const podRange = "10.244.0.0/16"

// nodeLeaseSeconds is the duration of the nodes' Leases; 40 is the kubelet's default. Without Leases the
// controller-manager would mark the nodes as unreachable.
const nodeLeaseSeconds = 40

// crashStages are the kwok Stages behind CrashAnnotation.
//
//go:embed crash.yaml
var crashStages []byte

// startControllers starts controller-manager, scheduler and kwok, creates the nodes, and waits until pods can run.
func (cp *ControlPlane) startControllers(ctx context.Context) error {
	cp.mu.Lock()
	defer cp.mu.Unlock()
	cp.logf("starting %s, %s and %s with %d nodes", assets.KubeControllerManager, assets.KubeScheduler, assets.Kwok, cp.options.Nodes)
	if err := cp.launch(assets.KubeControllerManager, cp.controllerManagerArgs()...); err != nil {
		return err
	}
	if err := cp.launch(assets.KubeScheduler, cp.schedulerArgs()...); err != nil {
		return err
	}
	args, err := cp.kwokArgs()
	if err != nil {
		return err
	}
	if err := cp.launch(assets.Kwok, args...); err != nil {
		return err
	}
	clientset, err := kubernetes.NewForConfig(cp.config)
	if err != nil {
		return fmt.Errorf("cannot make a client: %w", err)
	}
	for i := range cp.options.Nodes {
		if _, err := clientset.CoreV1().Nodes().Create(ctx, newNode(i), metav1.CreateOptions{}); err != nil {
			return fmt.Errorf("cannot create node %d: %w", i, err)
		}
	}
	return await(ctx, func(ctx context.Context) error { return takesPods(ctx, clientset) }, cp.processes...)
}

func (cp *ControlPlane) controllerManagerArgs() []string {
	return []string{
		"--kubeconfig=" + cp.KubeconfigPath(),
		"--use-service-account-credentials", // Each controller has its own rights, as in a cluster.
		"--service-account-private-key-file=" + cp.home.file(accountKeyFile),
		"--root-ca-file=" + cp.home.file(caFile),
		"--leader-elect=false",
		"--secure-port=0",
		"--kube-api-qps=1000", // The default of 20 makes the start three seconds longer.
		"--kube-api-burst=2000",
		"--node-monitor-grace-period=1h", // With the default of 50 seconds, nodes and their pods are lost when kwok updates them late on a busy machine.
	}
}

func (cp *ControlPlane) schedulerArgs() []string {
	kubeconfig := cp.KubeconfigPath()
	return []string{
		"--kubeconfig=" + kubeconfig,
		"--authentication-kubeconfig=" + kubeconfig,
		"--authorization-kubeconfig=" + kubeconfig,
		"--leader-elect=false",
		"--secure-port=0",
	}
}

// kwokArgs returns the arguments of kwok. It reads Stages from files: its own Stages and those behind CrashAnnotation.
// Stages could also be objects in the API server. But kwok may read only some or none of these at its start on a busy
// machine, and reads them again only when one changes, so nodes would never become Ready.
func (cp *ControlPlane) kwokArgs() ([]string, error) {
	stages, err := filepath.Glob(filepath.Join(cp.home.programs.Path(assets.KwokManifests), "*.yaml"))
	if err != nil {
		return nil, fmt.Errorf("cannot find the Stages of kwok: %w", err)
	}
	crash := cp.home.file("crash.yaml")
	if err := os.WriteFile(crash, crashStages, 0o600); err != nil {
		return nil, fmt.Errorf("cannot write the Stages of crashing pods: %w", err)
	}
	args := []string{
		"--kubeconfig=" + cp.KubeconfigPath(),
		"--manage-all-nodes",
		"--cidr=" + podRange,
		"--node-lease-duration-seconds=" + strconv.Itoa(nodeLeaseSeconds),
	}
	for _, file := range append(stages, crash) {
		args = append(args, "--config="+file)
	}
	return args, nil
}

func nodeName(i int) string {
	return fmt.Sprintf("node-%d", i)
}

// newNode returns a node with enough capacity for a soak test's pods. Its address is reserved for documentation (RFC 5737), so
// no machine has it.
func newNode(i int) *corev1.Node {
	room := corev1.ResourceList{
		corev1.ResourceCPU:    resource.MustParse("256"),
		corev1.ResourceMemory: resource.MustParse("1Ti"),
		corev1.ResourcePods:   resource.MustParse("5000"),
	}
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{
			Name:        nodeName(i),
			Labels:      map[string]string{corev1.LabelHostname: nodeName(i), corev1.LabelOSStable: "linux", "type": "kwok"},
			Annotations: map[string]string{"kwok.x-k8s.io/node": "fake"},
		},
		Status: corev1.NodeStatus{
			Allocatable: room,
			Capacity:    room,
			Addresses: []corev1.NodeAddress{
				{Type: corev1.NodeInternalIP, Address: fmt.Sprintf("192.0.2.%d", 1+i%254)},
				{Type: corev1.NodeHostName, Address: nodeName(i)},
			},
		},
	}
}

// takesPods returns nil when the default service account, which every pod needs, exists, and all nodes are Ready and
// have lost their initial taint.
func takesPods(ctx context.Context, clientset kubernetes.Interface) error {
	if _, err := clientset.CoreV1().ServiceAccounts(metav1.NamespaceDefault).Get(ctx, "default", metav1.GetOptions{}); err != nil {
		return err
	}
	nodes, err := clientset.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	for _, node := range nodes.Items {
		ready := slices.ContainsFunc(node.Status.Conditions, func(c corev1.NodeCondition) bool {
			return c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue
		})
		if !ready || len(node.Spec.Taints) > 0 {
			return fmt.Errorf("node %q is not ready for pods", node.Name)
		}
	}
	return nil
}
