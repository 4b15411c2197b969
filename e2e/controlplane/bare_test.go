package controlplane

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

func TestTwoControlPlanesAtOnceAreApart(t *testing.T) {
	planes := make([]*ControlPlane, 2)
	var group errgroup.Group
	for i := range planes {
		group.Go(func() (err error) {
			planes[i], err = Start(t.Context(), Options{Name: fmt.Sprintf("edge%02d", i), Log: t.Output()})
			return err
		})
	}
	err := group.Wait()
	for _, plane := range planes {
		if plane != nil {
			t.Cleanup(func() { stopPlane(t, plane) })
		}
	}
	if err != nil {
		t.Fatalf("Start: %v", err)
	}

	// Without controllers a pod needs no service account, so that tests can write pods as they need them.
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "web", Namespace: metav1.NamespaceDefault},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "web", Image: "web:1"}}},
	}
	if _, err := newClientset(t, planes[0]).CoreV1().Pods(pod.Namespace).Create(t.Context(), pod, metav1.CreateOptions{}); err != nil {
		t.Errorf("cannot create pod: %v", err)
	}
	if _, err := newClientset(t, planes[1]).CoreV1().Pods(pod.Namespace).Get(t.Context(), pod.Name, metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("the pod of one control plane seen in the other: want NotFound, got %v", err)
	}

	// The credentials of one open nothing in the other.
	mixed := planes[0].Config()
	mixed.Host, mixed.CAData = planes[1].Config().Host, planes[1].Config().CAData
	stranger, err := kubernetes.NewForConfig(mixed)
	if err != nil {
		t.Fatalf("cannot make client: %v", err)
	}
	if _, err := stranger.CoreV1().Pods("").List(t.Context(), metav1.ListOptions{}); !apierrors.IsUnauthorized(err) {
		t.Errorf("a stranger's certificate: want Unauthorized, got %v", err)
	}

	for _, plane := range planes {
		stopPlane(t, plane)
		if err := nothingLeft(t.Context(), plane.work.path); err != nil {
			t.Errorf("after Stop: %v", err)
		}
		if err := refused(t.Context(), plane.Config().Host); err != nil {
			t.Errorf("after Stop: %v", err)
		}
		if err := plane.StartAPIServer(t.Context()); err == nil {
			t.Error("StartAPIServer after Stop: want an error")
		}
	}
}

func TestContinuesInTheSameDir(t *testing.T) {
	options := Options{Dir: filepath.Join(t.TempDir(), "plane"), KeepData: true}
	first := startPlane(t, options)
	kubeconfig, err := os.ReadFile(first.KubeconfigPath())
	if err != nil {
		t.Fatalf("cannot read kubeconfig: %v", err)
	}
	object := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "kept", Namespace: metav1.NamespaceDefault}}
	if _, err := newClientset(t, first).CoreV1().ConfigMaps(object.Namespace).Create(t.Context(), object, metav1.CreateOptions{}); err != nil {
		t.Fatalf("cannot create config map: %v", err)
	}
	if _, err := Start(t.Context(), options); err == nil || !strings.Contains(err.Error(), "locked by another owner") {
		t.Errorf("Start in the directory of a running control plane: want a lock error, got %v", err)
	}
	stopPlane(t, first)
	if err := noProcesses(t.Context(), first.work.path); err != nil {
		t.Errorf("after Stop: %v", err)
	}

	options.KeepData = false
	second := startPlane(t, options)
	if again, err := os.ReadFile(second.KubeconfigPath()); err != nil || string(again) != string(kubeconfig) {
		t.Errorf("the kubeconfig has changed (error %v)", err)
	}
	if _, err := newClientset(t, second).CoreV1().ConfigMaps(object.Namespace).Get(t.Context(), object.Name, metav1.GetOptions{}); err != nil {
		t.Errorf("the data are lost: %v", err)
	}

	// A component that dies is reported with its log.
	if err := syscall.Kill(second.etcd.PID(), syscall.SIGKILL); err != nil {
		t.Fatalf("cannot kill etcd: %v", err)
	}
	if err := second.Wait(t.Context()); err == nil || !strings.Contains(err.Error(), "etcd ended: signal: killed") {
		t.Errorf("Wait after the death of etcd: got %v", err)
	}
	stopPlane(t, second)
	if err := nothingLeft(t.Context(), second.work.path); err != nil {
		t.Errorf("after Stop without KeepData: %v", err)
	}
}

func TestNothingIsLeftWhenTheCallerIsKilled(t *testing.T) {
	victim := exec.CommandContext(t.Context(), os.Args[0])
	victim.Env = append(os.Environ(), victimVariable+"=1")
	victim.Stderr = t.Output()
	stdout, err := victim.StdoutPipe()
	if err != nil {
		t.Fatalf("cannot make pipe: %v", err)
	}
	if err := victim.Start(); err != nil {
		t.Fatalf("cannot start the victim: %v", err)
	}
	line, err := bufio.NewReader(stdout).ReadString('\n')
	dir := strings.TrimSpace(line)
	if err != nil || dir == "" {
		t.Fatalf("the victim names no directory: %v", err)
	}
	// etcd, kube-apiserver and the janitor have the directory in their arguments.
	if alive, err := processesWith(t.Context(), dir); len(alive) < 3 {
		t.Errorf("too few processes to prove anything: %q (error %v)", alive, err)
	}
	if err := victim.Process.Signal(syscall.SIGKILL); err != nil {
		t.Fatalf("cannot kill the victim: %v", err)
	}
	if err := victim.Wait(); err == nil {
		t.Error("the victim ended without a signal")
	}
	eventually(t, "nothing left", func(ctx context.Context) error { return nothingLeft(ctx, dir) })
}
