package controlplane

import (
	"net/http"
	"strings"
	"testing"

	"github.com/healthscope/healthscope/e2e/controlplane/assets"
)

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
		t.Fatalf("StartEtcd: %v", err)
	}
	dir, endpoint := etcd.work.path, etcd.Endpoint()
	ask(t, endpoint+"/v3/kv/put", put)
	if err := etcd.Kill(); err != nil {
		t.Fatalf("Kill: %v", err)
	}
	if err := refused(t.Context(), endpoint); err != nil {
		t.Errorf("after Kill: %v", err)
	}
	if err := etcd.Start(t.Context()); err != nil {
		t.Fatalf("Start after Kill: %v", err)
	}
	if got := ask(t, endpoint+"/v3/kv/range", `{"key":"a2V5"}`); !strings.Contains(got, value) {
		t.Errorf("after Kill and Start the value is lost: %s", got)
	}
	if err := etcd.Stop(); err != nil {
		t.Fatalf("Stop: %v", err)
	}
	if err := etcd.Stop(); err != nil {
		t.Errorf("second Stop: %v", err)
	}
	if err := nothingLeft(t.Context(), dir); err != nil {
		t.Errorf("after Stop: %v", err)
	}
	if err := etcd.Start(t.Context()); err == nil {
		t.Error("etcd starts after Stop")
	}
}

func TestAnEtcdThatDoesNotStartSaysWhyAndLeavesNothing(t *testing.T) {
	temporary := t.TempDir()
	t.Setenv("TMPDIR", temporary)
	useFakePrograms(t, map[string]string{assets.Etcd: "echo no space >&2; exit 3\n"})
	_, err := StartEtcd(t.Context(), EtcdOptions{})
	if err == nil || !strings.Contains(err.Error(), "cannot start etcd") || !strings.Contains(err.Error(), "no space") {
		t.Errorf("want the reason from etcd's log, got: %v", err)
	}
	checkEmpty(t, temporary)
	if _, err := StartEtcd(t.Context(), EtcdOptions{CertFile: "server.crt"}); err == nil || !strings.Contains(err.Error(), "KeyFile") {
		t.Errorf("want a complaint about the missing KeyFile, got: %v", err)
	}
}
