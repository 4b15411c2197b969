package support

import (
	"context"
	"io"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
)

// maxPods is of how many pods logs and metrics are read.
const maxPods = 20

// programs adds what is known of the programs' pods: Leases, Deployments, logs and metrics. Logs of other programs in the namespace are not collected, and these get no token.
func (g *gatherer) programs(ctx context.Context) {
	namespace := g.options.Namespace
	g.list(ctx, "leases.yaml", leases, namespace, "", tidyMeta)
	g.list(ctx, "deployments.yaml", deployments, namespace, "", tidyWorkload)
	g.list(ctx, "pods.yaml", pods, namespace, "", tidyWorkload)
	running, err := g.client.CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{Limit: maxPods, LabelSelector: g.options.Selector})
	if err != nil {
		g.archive.problem("logs and metrics of pods", err)
		return
	}
	for i := range running.Items {
		g.logs(ctx, &running.Items[i])
		g.metrics(ctx, &running.Items[i])
	}
}

// logs adds the logs of a pod's containers, and of those that ran before them.
func (g *gatherer) logs(ctx context.Context, pod *corev1.Pod) {
	before := map[string]bool{}
	for _, status := range append(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses...) {
		before[status.Name] = status.RestartCount > 0
	}
	for _, container := range append(pod.Spec.InitContainers, pod.Spec.Containers...) {
		o := &corev1.PodLogOptions{Container: container.Name, TailLines: &g.options.LogLines, LimitBytes: new(int64(maxFile)), Timestamps: true}
		name := "logs/" + pod.Name + "-" + container.Name
		g.stream(ctx, name+".log", g.client.CoreV1().Pods(pod.Namespace).GetLogs(pod.Name, o))
		if before[container.Name] {
			o.Previous = true
			g.stream(ctx, name+"-previous.log", g.client.CoreV1().Pods(pod.Namespace).GetLogs(pod.Name, o))
		}
	}
}

// stream adds what a request answers.
func (g *gatherer) stream(ctx context.Context, name string, request rest.ResponseWrapper) {
	answer, err := request.Stream(ctx)
	g.keep(name, answer, err)
}

// keep adds what an answer says, if there is one.
func (g *gatherer) keep(name string, answer io.ReadCloser, err error) {
	if err != nil {
		g.archive.problem(name, err)
		return
	}
	defer func() { _ = answer.Close() }() // It has been read.
	data, err := io.ReadAll(io.LimitReader(answer, maxFile+1))
	if err != nil {
		g.archive.problem(name, err)
	}
	g.archive.add(name, string(data))
}
