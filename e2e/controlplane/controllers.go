package controlplane

import (
	"context"
	_ "embed"
	"fmt"
	"os"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes"

	"github.com/healthscope/healthscope/e2e/controlplane/assets"
)

// CrashAnnotation with the value "true" on a pod makes it crash, also while it runs: its containers wait in
// CrashLoopBackOff and it is not Ready. Without the annotation it recovers and becomes Ready again. It needs
// Options.Controllers.
const CrashAnnotation = "healthscope.test/crash"

// podRange is the range of the addresses that kwok gives to pods.
const podRange = "10.244.0.0/16"

// nodeLeaseSeconds is the duration of the nodes' leases, the kubelet's default. Without leases the controller-manager
// would take the nodes for dead.
const nodeLeaseSeconds = 40

// crashStages are the kwok Stages behind CrashAnnotation.
//
//go:embed crash.yaml
var crashStages []byte

// startControllers starts controller-manager, scheduler and kwok, makes the nodes and waits until all of it works.
func (cp *ControlPlane) startControllers(ctx context.Context) error {
	cp.logf("starting %s, %s and %s with %d nodes", assets.KubeControllerManager, assets.KubeScheduler, assets.Kwok, cp.options.Nodes)
	if err := cp.startOther(assets.KubeControllerManager, cp.controllerManagerArgs()...); err != nil {
		return err
	}
	if err := cp.startOther(assets.KubeScheduler, cp.schedulerArgs()...); err != nil {
		return err
	}
	stages, err := cp.stageFiles()
	if err != nil {
		return err
	}
	if err := cp.startOther(assets.Kwok, cp.kwokArgs(stages)...); err != nil {
		return err
	}
	if err := cp.createNodes(ctx); err != nil {
		return err
	}
	if err := cp.awaitControllers(ctx); err != nil {
		return fmt.Errorf("%w%s", err, cp.otherLogs())
	}
	return nil
}

// otherLogs returns the ends of the logs of what runs beside etcd and the API server.
func (cp *ControlPlane) otherLogs() string {
	cp.mu.Lock()
	defer cp.mu.Unlock()
	var text strings.Builder
	for _, p := range cp.others {
		fmt.Fprintf(&text, "\nthe end of the log of %s:\n%s", p.Name(), p.LogTail())
	}
	return text.String()
}

// startOther starts a component besides etcd and the API server.
func (cp *ControlPlane) startOther(name string, args ...string) error {
	cp.mu.Lock()
	defer cp.mu.Unlock()
	p, err := cp.launch(name, args...)
	if err != nil {
		return err
	}
	cp.others = append(cp.others, p)
	return nil
}

func (cp *ControlPlane) controllerManagerArgs() []string {
	return []string{
		"--kubeconfig=" + cp.work.file(controllerManagerKubeconfig),
		"--use-service-account-credentials", // Each controller with its own rights, as in a cluster.
		"--service-account-private-key-file=" + cp.work.file(pkiDir, accountKeyFile),
		"--root-ca-file=" + cp.work.file(pkiDir, caFile),
		"--leader-elect=false",
		"--secure-port=0",
		"--kube-api-qps=1000", // The default, 20, makes its start three seconds longer.
		"--kube-api-burst=2000",
		"--node-monitor-grace-period=1h", // By default nodes of which kwok is late to tell on a busy machine are lost after 50 seconds, with all their pods.
	}
}

func (cp *ControlPlane) schedulerArgs() []string {
	kubeconfig := cp.work.file(schedulerKubeconfig)
	return []string{
		"--kubeconfig=" + kubeconfig,
		"--authentication-kubeconfig=" + kubeconfig,
		"--authorization-kubeconfig=" + kubeconfig,
		"--leader-elect=false",
		"--secure-port=0",
	}
}

// stageFiles returns the files with the Stages of kwok: its own, and those behind CrashAnnotation. Stages could also be
// objects in the API server. But what kwok reads of those while it starts, on a busy machine some or none, it keeps until
// one of them changes: nodes would never become Ready.
func (cp *ControlPlane) stageFiles() ([]string, error) {
	files, err := manifestFiles(cp.programs.Path(assets.KwokManifests))
	if err != nil {
		return nil, err
	}
	crash := cp.work.file("crash.yaml")
	if err := os.WriteFile(crash, crashStages, 0o600); err != nil {
		return nil, fmt.Errorf("cannot write the Stages of crashing pods: %w", err)
	}
	return append(files, crash), nil
}

func (cp *ControlPlane) kwokArgs(stages []string) []string {
	args := []string{
		"--kubeconfig=" + cp.work.file(kwokKubeconfig),
		"--manage-all-nodes",
		"--cidr=" + podRange,
		"--node-lease-duration-seconds=" + strconv.Itoa(nodeLeaseSeconds),
	}
	for _, file := range stages {
		args = append(args, "--config="+file)
	}
	return args
}

// createNodes creates the nodes, except those that are there from an earlier start.
func (cp *ControlPlane) createNodes(ctx context.Context) error {
	clientset, err := kubernetes.NewForConfig(cp.config)
	if err != nil {
		return fmt.Errorf("cannot create nodes: %w", err)
	}
	for i := range cp.options.Nodes {
		node := newNode(i)
		if _, err := clientset.CoreV1().Nodes().Create(ctx, node, metav1.CreateOptions{}); err != nil && !apierrors.IsAlreadyExists(err) {
			return fmt.Errorf("cannot create node %q: %w", node.Name, err)
		}
	}
	return nil
}

func nodeName(i int) string {
	return fmt.Sprintf("node-%d", i)
}

// newNode is a node with room for a soak test's pods. Its address is one that no machine has (RFC 5737).
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

// awaitControllers waits until the controller-manager has made the default service account, which every pod needs, and
// the nodes take pods.
func (cp *ControlPlane) awaitControllers(ctx context.Context) error {
	accounts := schema.GroupVersionResource{Version: "v1", Resource: "serviceaccounts"}
	exists := func(*unstructured.Unstructured) bool { return true }
	if err := cp.await(ctx, accounts, metav1.NamespaceDefault, "default", exists); err != nil {
		return err
	}
	nodes := schema.GroupVersionResource{Version: "v1", Resource: "nodes"}
	for i := range cp.options.Nodes {
		if err := cp.await(ctx, nodes, "", nodeName(i), takesPods); err != nil {
			return err
		}
	}
	return nil
}

// takesPods tells whether a node is Ready and the taint it was born with, not-ready, is gone.
func takesPods(node *unstructured.Unstructured) bool {
	return hasCondition(node, "Ready") && len(list(node, "spec", "taints")) == 0
}
