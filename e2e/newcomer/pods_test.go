package newcomer

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"

	"github.com/healthscope/healthscope/e2e/chart"
	"github.com/healthscope/healthscope/e2e/controlplane"
	"github.com/healthscope/healthscope/e2e/kubelet"
	"github.com/healthscope/healthscope/e2e/process"
)

const (
	// readyTimeout is the maximum duration of the start of a program, and stopGrace that of its end.
	readyTimeout = time.Minute
	stopGrace    = 15 * time.Second
)

// pods are the programs that run for HealthScope's Deployments, by the Deployment's name.
type pods struct {
	plane   *controlplane.ControlPlane
	api     kubernetes.Interface
	program string
	dir     string
	pods    map[string]*kubelet.Pod
	running map[string]*process.Process
}

// sync starts the programs of new Deployments, and returns when they are ready, like Helm on a cluster with real nodes. Like a
// kubelet, it updates the files in the volumes of running programs.
func (p *pods) sync(ctx context.Context) error {
	deployed, err := p.api.AppsV1().Deployments(chart.Namespace).List(ctx, metav1.ListOptions{LabelSelector: "app.kubernetes.io/name=healthscope"})
	if err != nil {
		return fmt.Errorf("cannot list deployments: %w", err)
	}
	for _, d := range deployed.Items {
		if running := p.pods[d.Name]; running != nil {
			outdated, err := running.Sync(ctx)
			if err != nil {
				return err
			}
			if outdated {
				return fmt.Errorf("the pod of Deployment %q would be replaced, which is not supported here", d.Name)
			}
			continue
		}
		if err := p.start(ctx, d.Name); err != nil {
			return err
		}
	}
	return nil
}

func (p *pods) start(ctx context.Context, deployment string) error {
	dir := filepath.Join(p.dir, deployment)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	pod, err := kubelet.New(kubelet.Options{
		Plane: p.plane, Namespace: chart.Namespace, Deployment: deployment, Program: p.program, Dir: dir, LogPath: filepath.Join(dir, "log"),
	})
	if err != nil {
		return err
	}
	if p.running[deployment], err = pod.Start(ctx); err != nil {
		delete(p.running, deployment)
		return err
	}
	p.pods[deployment] = pod
	url, err := pod.Readiness()
	if err != nil {
		return err
	}
	return awaitReady(ctx, p.running[deployment], url)
}

// awaitReady waits until a readiness probe succeeds.
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

// logs returns the ends of the programs' logs.
func (p *pods) logs() string {
	var text strings.Builder
	for name, running := range p.running {
		text.WriteString("\n" + name + ":\n" + running.LogTail() + "\n")
	}
	return text.String()
}
