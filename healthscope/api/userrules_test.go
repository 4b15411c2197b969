package api

import (
	"testing"

	"github.com/healthscope/healthscope/healthscope"
)

func TestUserRulesCountForSavedBundles(t *testing.T) {
	contexts, clusters := fixtures(t)
	user := &oneRule{}
	d := NewDocuments(DocumentsOptions{Contexts: contexts, Clusters: clusters, HealthChecks: user})
	state := func() string {
		t.Helper()
		return clustersOf(t, document(t, d, autumnURL+"?health=true&type=all"), "web")["berlin"].Resources[0].Health.State
	}
	if got := state(); got != "Ready" {
		t.Fatalf("state %s without a rule", got)
	}
	user.state = healthscope.Failed
	d.Reset()
	if got := state(); got != "Failed" {
		t.Errorf("state %s with a rule that says Failed", got)
	}
}
