package support

import (
	"context"
	"io"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// maxPods limits from how many pods logs and metrics are read.
const maxPods = 20

// addComponents adds the Leases, Deployments and pods of the namespace, and the logs and metrics of the pods of controller and monitor. Other pods
// in the namespace receive no token, and their logs are not read.
func (g *gatherer) addComponents(ctx context.Context) {
	namespace := g.options.Namespace
	g.addList(ctx, "leases.yaml", leases, namespace, "", redactMetadata)
	g.addList(ctx, "deployments.yaml", deployments, namespace, "", redactWorkload)
	g.addList(ctx, "pods.yaml", pods, namespace, "", redactWorkload)
	podList, err := g.client.CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{Limit: maxPods, LabelSelector: g.options.Selector})
	if err != nil {
		g.archive.problem("logs and metrics of pods", err)
		return
	}
	for i := range podList.Items {
		g.addLogs(ctx, &podList.Items[i])
		g.addMetrics(ctx, &podList.Items[i])
	}
}

// addLogs adds the logs of a pod's containers, and those of their previous instances.
func (g *gatherer) addLogs(ctx context.Context, pod *corev1.Pod) {
	restarted := map[string]bool{}
	for _, status := range append(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses...) {
		restarted[status.Name] = status.RestartCount > 0
	}
	for _, container := range append(pod.Spec.InitContainers, pod.Spec.Containers...) {
		g.addLog(ctx, pod, container.Name, false)
		if restarted[container.Name] {
			g.addLog(ctx, pod, container.Name, true)
		}
	}
}

// addLog adds the log of a container, or of its previous instance.
func (g *gatherer) addLog(ctx context.Context, pod *corev1.Pod, container string, previous bool) {
	name := "logs/" + pod.Name + "-" + container + ".log"
	if previous {
		name = "logs/" + pod.Name + "-" + container + "-previous.log"
	}
	o := &corev1.PodLogOptions{Container: container, TailLines: &g.options.LogLines, LimitBytes: new(int64(maxFileSize)), Timestamps: true, Previous: previous}
	body, err := g.client.CoreV1().Pods(pod.Namespace).GetLogs(pod.Name, o).Stream(ctx)
	g.addResponse(name, body, err)
}

// addResponse adds a response body, or records err as a problem.
func (g *gatherer) addResponse(name string, body io.ReadCloser, err error) {
	if err != nil {
		g.archive.problem(name, err)
		return
	}
	defer func() { _ = body.Close() }() // The body has been read.
	data, err := io.ReadAll(io.LimitReader(body, maxFileSize+1))
	if err != nil {
		g.archive.problem(name, err)
	}
	g.archive.add(name, string(data))
}
