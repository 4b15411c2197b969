package commands

import (
	"bytes"
	"encoding/pem"
	"net/http"
	"net/http/httptest"
	"net/url"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/client-go/rest"

	"github.com/healthscope/healthscope/controllers/enrol"
	"github.com/healthscope/healthscope/controllers/fleet"
)

// sampleReport returns a report at sampleTime, with one cluster in each of several states.
func sampleReport() enrol.Report {
	at := func(ago time.Duration) *time.Time { return new(sampleTime.Add(-ago)) }
	return enrol.Report{
		Controller: enrol.Controller{Running: true, LastRenewed: at(2 * time.Second)},
		Document: enrol.Document{Lease: enrol.ObjectName{Namespace: "healthscope-system", Name: "healthscope-controller"}, Clusters: []enrol.Cluster{
			{Name: "local", Local: true, State: "Connected", Since: at(49 * time.Hour)},
			{Name: "provider+edge01", State: "Connected", Since: at(90 * time.Second)},
			{Name: "provider+edge02", State: "Unreachable", Since: at(25 * time.Minute), LastSeen: at(26 * time.Minute), Message: "no answer within 10s", Maintenance: "moves to Graz"},
			{Name: "provider+edge03", State: "Refused", Message: "proxy-url is set\x1b[2J\nlocal   Connected"},
		}, RejectedSecrets: []fleet.RejectedSecret{{Name: "old", Message: "the name is taken"}}},
	}
}

var sampleTime = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func TestClustersAreListed(t *testing.T) {
	cases := map[string]struct {
		form, want string
	}{
		"table": {"table", `
NAME              STATE         AGE         LAST SEEN   MESSAGE
local             Connected     2d1h        now         -
provider+edge01   Connected     90s         now         -
provider+edge02   Unreachable   25m         26m ago     no answer within 10s
provider+edge03   Refused       <unknown>   never       proxy-url is set [2J local Connected
secret/old        Refused       <unknown>   never       the name is taken
`},
		"wide": {"wide", `
NAME              STATE         AGE         LAST SEEN   SINCE                  MAINTENANCE     MESSAGE
local             Connected     2d1h        now         2026-02-27T11:00:00Z   -               -
provider+edge01   Connected     90s         now         2026-03-01T11:58:30Z   -               -
provider+edge02   Unreachable   25m         26m ago     2026-03-01T11:35:00Z   moves to Graz   no answer within 10s
provider+edge03   Refused       <unknown>   never       <unknown>              -               proxy-url is set [2J local Connected
secret/old        Refused       <unknown>   never       <unknown>              -               the name is taken
`},
		"yaml": {"yaml", `
clusters:
- local: true
  name: local
  since: "2026-02-27T11:00:00Z"
  state: Connected
- name: provider+edge01
  since: "2026-03-01T11:58:30Z"
  state: Connected
- lastSeen: "2026-03-01T11:34:00Z"
  maintenance: moves to Graz
  message: no answer within 10s
  name: provider+edge02
  since: "2026-03-01T11:35:00Z"
  state: Unreachable
- message: "proxy-url is set\e[2J\nlocal   Connected"
  name: provider+edge03
  state: Refused
controller:
  lastRenewed: "2026-03-01T11:59:58Z"
  running: true
lease:
  name: healthscope-controller
  namespace: healthscope-system
rejectedSecrets:
- message: the name is taken
  name: old
`},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			var out, errOut bytes.Buffer
			if err := printReport(&out, &errOut, c.form, false, sampleReport(), sampleTime); err != nil || errOut.Len() > 0 {
				t.Errorf("error %v, error output %q", err, errOut.String())
			}
			if diff := cmp.Diff(strings.TrimPrefix(c.want, "\n"), out.String()); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestClustersListWarnsIfItIsStale(t *testing.T) {
	r := sampleReport()
	r.Controller = enrol.Controller{LastRenewed: new(sampleTime.Add(-3 * time.Minute)), Message: "it does not renew its Lease x/y"}
	r.Clusters, r.RejectedSecrets, r.Omitted = r.Clusters[1:2], nil, 7
	var out, errOut bytes.Buffer
	if err := printReport(&out, &errOut, formatTable, false, r, sampleTime); err != nil {
		t.Fatal(err)
	}
	if want := "warning: the controller does not run: it does not renew its Lease x/y; what follows is 3m old\nwarning: 7 clusters more are not shown: there are too many to publish\n"; errOut.String() != want {
		t.Errorf("error output %q, want %q", errOut.String(), want)
	}
	if want := "NAME              STATE       AGE   LAST SEEN   MESSAGE\nprovider+edge01   Connected   90s   3m ago      -\n"; out.String() != want {
		t.Errorf("output:\n%s", out.String())
	}
}

func TestClustersListHasNoControlCharacters(t *testing.T) {
	hostile := "x\x1b[2J\u009b2J\r\ny"
	r := enrol.Report{Controller: enrol.Controller{Running: true}, Document: enrol.Document{Clusters: []enrol.Cluster{{Name: hostile, State: "Refused", Message: hostile, Maintenance: hostile}}}}
	var out, errOut bytes.Buffer
	if err := printReport(&out, &errOut, formatWide, false, r, sampleTime); err != nil {
		t.Fatal(err)
	}
	if strings.Count(out.String(), "\n") != 2 || strings.ContainsAny(out.String(), "\x1b\r\u009b") {
		t.Errorf("output %q", out.String())
	}
}

func TestNewEnrolmentFromContext(t *testing.T) {
	server := httptest.NewTLSServer(nil)
	defer server.Close()
	authority := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	file := writeFile(t, "ca.crt", string(authority))
	proxy := func(*http.Request) (*url.URL, error) { return nil, nil } //nolint:nilnil // It is not called.
	cases := map[string]struct {
		config rest.Config
		server string
		want   enrol.Enrolment
		wrong  string
	}{
		"data":                 {rest.Config{Host: "https://a", TLSClientConfig: rest.TLSClientConfig{CAData: authority, ServerName: "b"}, BearerToken: "t"}, "", enrol.Enrolment{Server: "https://a", TLSServerName: "b", Authority: authority}, ""},
		"file":                 {rest.Config{Host: "https://a", TLSClientConfig: rest.TLSClientConfig{CAFile: file}}, "", enrol.Enrolment{Server: "https://a", Authority: authority}, ""},
		"another server":       {rest.Config{Host: "https://a"}, "https://c", enrol.Enrolment{Server: "https://c"}, ""},
		"proxy, other server":  {rest.Config{Host: "https://a", Proxy: proxy}, "https://c", enrol.Enrolment{Server: "https://c"}, ""},
		"proxy":                {rest.Config{Host: "https://a", Proxy: proxy}, "", enrol.Enrolment{}, "say with --server how the hub reaches the member"},
		"file that is missing": {rest.Config{Host: "https://a", TLSClientConfig: rest.TLSClientConfig{CAFile: filepath.Join(t.TempDir(), "none")}}, "", enrol.Enrolment{}, "cannot read the authority's certificate"},
		"not verified":         {rest.Config{Host: "https://a", TLSClientConfig: rest.TLSClientConfig{Insecure: true}}, "https://c", enrol.Enrolment{}, "insecure-skip-tls-verify is set"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			o := clustersAdd{server: c.server}
			err := o.setServer(&c.config)
			if (err == nil) != (c.wrong == "") || err != nil && !strings.Contains(err.Error(), c.wrong) {
				t.Fatalf("error %v, want %q in it", err, c.wrong)
			}
			if diff := cmp.Diff(c.want, o.Enrolment); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// contexts is a kubeconfig file of an administrator with several contexts.
const contexts = `
apiVersion: v1
kind: Config
current-context: hub
clusters:
- {name: hub, cluster: {server: "https://hub:6443"}}
- {name: edge, cluster: {server: "https://edge01.example.org:6443"}}
- {name: loopback, cluster: {server: "https://127.0.0.1:6443"}}
- {name: insecure, cluster: {server: "https://edge02:6443", insecure-skip-tls-verify: true}}
- {name: plain, cluster: {server: "http://edge03:6443"}}
users:
- {name: admin, user: {token: canary-70ken}}
contexts:
- {name: hub, context: {cluster: hub, user: admin}}
- {name: edge, context: {cluster: edge, user: admin}}
- {name: loopback, context: {cluster: loopback, user: admin}}
- {name: insecure, context: {cluster: insecure, user: admin}}
- {name: plain, context: {cluster: plain, user: admin}}
`

// TestDryRunPrintsEverythingButSecrets needs no cluster: a dry run sends no requests.
func TestDryRunPrintsEverythingButSecrets(t *testing.T) {
	clearKubeconfig(t)
	t.Setenv("KUBECONFIG", writeFile(t, "kubeconfig", contexts))
	code, out, errOut := run(t, "clusters", "add", "provider+edge01", "--context", "edge", "--namespaces", "vfw", "--dry-run")
	if code != 0 || errOut != "" || strings.Contains(out, "canary") {
		t.Fatalf("exit code %d, error output %q", code, errOut)
	}
	for _, want := range []string{
		"--- # member\napiVersion: v1\nkind: Namespace\nmetadata:\n  labels:\n    app.kubernetes.io/managed-by: healthscope\n  name: healthscope-system\n",
		"kind: Role\nmetadata:\n  labels:\n    app.kubernetes.io/managed-by: healthscope\n  name: healthscope-hub-bundles\n  namespace: vfw\n",
		"--- # hub\napiVersion: v1\nkind: Secret\nmetadata:\n  annotations:\n    healthscope.core.oam.dev/cluster-name: provider+edge01\n    healthscope.core.oam.dev/namespaces: vfw\n    healthscope.core.oam.dev/token-lifetime: 24h0m0s\n",
		"    users:\n    - name: provider+edge01\n      user:\n        token: TOKEN\n",
	} {
		if !strings.Contains(out, want) {
			t.Errorf("there is no\n%s\nin\n%s", want, out)
		}
	}
	_, _, errOut = run(t, "clusters", "add", "x", "--context", "loopback", "--dry-run")
	if want := "warning: https://127.0.0.1:6443 is an address of this machine"; !strings.Contains(errOut, want) {
		t.Errorf("error output %q, want %q in it", errOut, want)
	}
}

// TestLastSeenOfAClusterOfAnotherMonitor: a cluster with bundles of another monitor was seen when its bundles were last written,
// because that monitor has no Lease.
func TestLastSeenOfAClusterOfAnotherMonitor(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	written := now.Add(-3 * time.Hour)
	c := enrol.Cluster{Name: "edge01", State: "Connected", LastSeen: &written}
	if got := lastSeen(c, enrol.Controller{Running: true}, now); got != "3h ago" {
		t.Errorf("it was seen last %s, want when its bundles were written, 3h ago", got)
	}
}
