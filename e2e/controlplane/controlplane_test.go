package controlplane

import (
	"bufio"
	"context"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/healthscope/healthscope/e2e/controlplane/assets"
)

// victimVariable is the environment variable that makes the test binary start a control plane, print its directory and wait to
// be killed.
const victimVariable = "HEALTHSCOPE_CONTROLPLANE_VICTIM"

// testTimeout is the timeout of every wait in the tests.
const testTimeout = time.Minute

func TestMain(m *testing.M) {
	if os.Getenv(victimVariable) != "" {
		plane, err := Start(context.Background(), Options{Name: "victim"})
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		fmt.Println(plane.home.dir)
		select {}
	}
	os.Exit(m.Run())
}

// eventually calls answer until it returns nil.
func eventually(t *testing.T, what string, answer func(context.Context) error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), testTimeout)
	defer cancel()
	if err := await(ctx, answer); err != nil {
		t.Fatalf("%s: %v", what, err)
	}
}

// nothingLeft returns an error while dir exists, or a process whose command line contains it, as for all processes of a control
// plane.
func nothingLeft(ctx context.Context, dir string) error {
	output, err := exec.CommandContext(ctx, "ps", "-axww", "-o", "command=").Output()
	if err != nil {
		return fmt.Errorf("cannot list processes: %w", err)
	}
	for line := range strings.Lines(string(output)) {
		if strings.Contains(line, dir) {
			return fmt.Errorf("a process is left: %s", line)
		}
	}
	if entries, err := filepath.Glob(dir + "*"); err != nil || len(entries) > 0 {
		return fmt.Errorf("files are left: %q", entries)
	}
	return nil
}

func TestNothingIsLeftWhenTheCallerIsKilled(t *testing.T) {
	victim := exec.CommandContext(t.Context(), os.Args[0])
	victim.Env = append(os.Environ(), victimVariable+"=1")
	victim.Stderr = t.Output()
	stdout, err := victim.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := victim.Start(); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(stdout).ReadString('\n')
	dir := strings.TrimSpace(line)
	if err != nil || dir == "" {
		t.Fatalf("the victim names no directory: %v", err)
	}
	if err := nothingLeft(t.Context(), dir); err == nil {
		t.Fatal("the victim runs nothing")
	}
	if err := victim.Process.Signal(syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	if err := victim.Wait(); err == nil {
		t.Error("the victim ended without a signal")
	}
	eventually(t, "nothing left", func(ctx context.Context) error { return nothingLeft(ctx, dir) })
}

func TestAFailedStartNamesTheProgramAndLeavesNothing(t *testing.T) {
	const forever = "exec sleep 600\n"
	for name, c := range map[string]struct {
		scripts map[string]string
		want    []string
	}{
		"etcd fails": {
			map[string]string{assets.Etcd: "echo no space >&2; exit 3\n", assets.KubeAPIServer: forever, assets.Kubectl: ""},
			[]string{`control plane "test"`, "etcd ended: exit status 3", "no space"},
		},
		"the API server fails": {
			map[string]string{assets.Etcd: forever, assets.KubeAPIServer: "echo address already in use; exit 1\n", assets.Kubectl: ""},
			[]string{`control plane "test"`, "kube-apiserver ended: exit status 1", "address already in use"},
		},
		"programs are missing": {
			map[string]string{assets.Etcd: ""},
			[]string{"missing: kube-apiserver, kubectl; unset KUBEBUILDER_ASSETS"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			temporary, programs := t.TempDir(), t.TempDir()
			t.Setenv("TMPDIR", temporary)
			t.Setenv("KUBEBUILDER_ASSETS", programs)
			for name, script := range c.scripts {
				if err := os.WriteFile(filepath.Join(programs, name), []byte("#!/bin/sh\n"+script), 0o700); err != nil {
					t.Fatal(err)
				}
			}
			_, err := Start(t.Context(), Options{Name: "test"})
			if err == nil {
				t.Fatal("want an error")
			}
			for _, want := range c.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("want %q in the error, got: %v", want, err)
				}
			}
			if err := nothingLeft(t.Context(), temporary+"/"); err != nil {
				t.Error(err)
			}
		})
	}
}

// put stores "there" under "key" through etcd's JSON gateway, and value reads it; both words are in base64.
const (
	put   = `{"key":"a2V5","value":"dGhlcmU="}`
	value = `"value":"dGhlcmU="`
)

func ask(t *testing.T, url, body string) string {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	transport := &http.Transport{}
	defer transport.CloseIdleConnections()
	response, err := transport.RoundTrip(request)
	if err != nil {
		t.Fatalf("etcd does not answer: %v", err)
	}
	defer func() { _ = response.Body.Close() }()
	var text strings.Builder
	if err := response.Write(&text); err != nil {
		t.Fatal(err)
	}
	return text.String()
}

func TestEtcdKeepsItsDataAndAddressOverAKill(t *testing.T) {
	etcd, err := StartEtcd(t.Context(), EtcdOptions{Log: t.Output()})
	if err != nil {
		t.Fatal(err)
	}
	ask(t, etcd.Endpoint()+"/v3/kv/put", put)
	if err := etcd.Kill(); err != nil {
		t.Fatal(err)
	}
	if err := etcd.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := ask(t, etcd.Endpoint()+"/v3/kv/range", `{"key":"a2V5"}`); !strings.Contains(got, value) {
		t.Errorf("after Kill and Start the value is lost: %s", got)
	}
	if err := etcd.Stop(); err != nil {
		t.Fatal(err)
	}
	if err := nothingLeft(t.Context(), etcd.home.dir); err != nil {
		t.Errorf("after Stop: %v", err)
	}
	if err := etcd.Start(t.Context()); err == nil {
		t.Error("etcd starts after Stop")
	}
}
