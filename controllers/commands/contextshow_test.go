package commands_test

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/healthscope/healthscope/controllers/commands"
	"github.com/healthscope/healthscope/controllers/rsync"
	"github.com/healthscope/healthscope/e2e/controlplane"
	"github.com/healthscope/healthscope/e2e/suite"
	"github.com/healthscope/healthscope/healthscope/appcontext"
	"github.com/healthscope/healthscope/healthscope/deploy"
)

func TestContextShowPrintsWhatAnAppWaitsForAsLongAsItDoes(t *testing.T) {
	suite.NeedsControlPlane(t)
	etcd, err := controlplane.StartEtcd(t.Context(), controlplane.EtcdOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = etcd.Stop() })
	store, err := appcontext.Open(appcontext.Options{Endpoints: []string{etcd.Endpoint()}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = store.Close() })
	file := filepath.Join(t.TempDir(), "config.yaml")
	if err := os.WriteFile(file, []byte("apiVersion: config.healthscope.io/v1alpha1\nkind: Configuration\nappContext: {endpoints: ['"+etcd.Endpoint()+"']}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	composite := rsync.CompositeApp{Project: "retail", Name: "shop", Version: "v1", DeploymentIntentGroup: "autumn", Namespace: "shop", Apps: []rsync.CompositeAppMember{
		{Name: "db", Clusters: []string{"p1+edge01"}, Manifests: []string{"db"}},
		{Name: "web", Clusters: []string{"p1+edge01"}, Manifests: []string{"web"}, DependsOn: []rsync.CompositeAppDependency{{App: "db", State: deploy.CriterionReady}}},
	}}
	id, err := rsync.CreateContext(t.Context(), store, composite, func(name string) ([]byte, error) {
		return []byte("{apiVersion: v1, kind: ConfigMap, metadata: {name: " + name + "}}"), nil
	}, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	write := func(writes ...appcontext.Write) {
		t.Helper()
		if err := store.WriteLevels(t.Context(), id, writes, appcontext.Condition{}); err != nil {
			t.Fatal(err)
		}
	}
	write(appcontext.Write{Handle: rsync.WaitsHandle(id, "web").Level("db"), Own: true, Value: "cluster p1+edge01: Deployment/db is Failed: CrashLoopBackOff"})
	for state, want := range map[appcontext.State]bool{appcontext.StateInstantiating: true, appcontext.StateInstantiateFailed: false} {
		write(deploy.Changes(id, deploy.Lifecycle{}, deploy.Lifecycle{Current: state, Status: state})...)
		var out, errOut bytes.Buffer
		if code := commands.Main([]string{"context", "show", id, "--config", file}, nil, &out, &errOut); code != 0 {
			t.Fatalf("exit code %d: %s", code, errOut.String())
		}
		const line = "app web waits until app db is Ready: cluster p1+edge01: Deployment/db is Failed: CrashLoopBackOff\n"
		if got := strings.Contains(out.String(), line); got != want {
			t.Errorf("%s: says what it waits for: %t, want %t:\n%s", state, got, want, out.String())
		}
	}
}
