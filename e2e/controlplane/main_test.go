package controlplane

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
)

// victimVariable makes the test binary a program that starts a control plane, names it on stdout and waits to be killed.
const victimVariable = "HEALTHSCOPE_CONTROLPLANE_VICTIM"

// testTimeout bounds every wait of the tests.
const testTimeout = time.Minute

func TestMain(m *testing.M) {
	if os.Getenv(victimVariable) != "" {
		err := runVictim(context.Background())
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(m.Run())
}

func runVictim(ctx context.Context) error {
	plane, err := Start(ctx, Options{Name: "victim"})
	if err != nil {
		return err
	}
	fmt.Println(plane.work.path)
	return plane.Wait(ctx)
}

// startPlane starts a control plane and stops it when the test ends.
func startPlane(t *testing.T, options Options) *ControlPlane {
	t.Helper()
	options.Log = t.Output()
	plane, err := Start(t.Context(), options)
	if err != nil {
		t.Fatalf("Start: %v", err)
	}
	t.Cleanup(func() { stopPlane(t, plane) })
	return plane
}

func stopPlane(t *testing.T, plane *ControlPlane) {
	t.Helper()
	if err := plane.Stop(); err != nil {
		t.Errorf("Stop: %v", err)
	}
}

func newClientset(t *testing.T, plane *ControlPlane) *kubernetes.Clientset {
	t.Helper()
	clientset, err := kubernetes.NewForConfig(plane.Config())
	if err != nil {
		t.Fatalf("cannot make client: %v", err)
	}
	return clientset
}

// eventually asks until the answer is nil.
func eventually(t *testing.T, what string, answer func(context.Context) error) {
	t.Helper()
	var last error
	err := wait.PollUntilContextTimeout(t.Context(), 50*time.Millisecond, testTimeout, true, func(ctx context.Context) (bool, error) {
		last = answer(ctx)
		return last == nil, nil
	})
	if err != nil {
		t.Fatalf("%s: %v; last answer: %v", what, err, last)
	}
}

// processesWith lists the command lines of living processes that name dir, as all components of a control plane do.
func processesWith(ctx context.Context, dir string) ([]string, error) {
	output, err := exec.CommandContext(ctx, "ps", "-axww", "-o", "command=").Output()
	if err != nil {
		return nil, fmt.Errorf("cannot list processes: %w", err)
	}
	var found []string
	for line := range strings.Lines(string(output)) {
		if strings.Contains(line, dir) {
			found = append(found, strings.TrimSpace(line))
		}
	}
	return found, nil
}

// noProcesses returns an error while a process that names dir is there.
func noProcesses(ctx context.Context, dir string) error {
	left, err := processesWith(ctx, dir)
	if err == nil && len(left) > 0 {
		err = fmt.Errorf("processes are left: %q", left)
	}
	return err
}

// nothingLeft returns an error while a process of the control plane in dir, or dir itself, is there.
func nothingLeft(ctx context.Context, dir string) error {
	if err := noProcesses(ctx, dir); err != nil {
		return err
	}
	if _, err := os.Stat(dir); !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("directory %q is left: %w", dir, err)
	}
	return nil
}

// refused returns nil if nobody listens where the control plane was.
func refused(ctx context.Context, url string) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
	if err != nil {
		return err
	}
	transport := &http.Transport{}
	defer transport.CloseIdleConnections()
	response, err := transport.RoundTrip(request)
	if err == nil {
		return errors.Join(errors.New("somebody answers at "+url), response.Body.Close())
	}
	if !strings.Contains(err.Error(), "connection refused") {
		return err
	}
	return nil
}
