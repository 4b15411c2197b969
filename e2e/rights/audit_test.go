package rights

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// Lines of an audit log in the format of the API server. Most of the fields that ReadAudit does not read are left out.
const (
	listLine    = `{"kind":"Event","apiVersion":"audit.k8s.io/v1","stage":"ResponseComplete","requestURI":"/api/v1/pods?labelSelector=a","verb":"list","user":{"username":"system:serviceaccount:shop:monitor","groups":["system:serviceaccounts"]},"objectRef":{"resource":"pods","apiVersion":"v1"},"requestReceivedTimestamp":"2026-05-01T10:00:00.000001Z","stageTimestamp":"2026-05-01T10:30:00.000000Z","responseStatus":{"code":200},"annotations":{"authorization.k8s.io/decision":"allow"}}`
	statusLine  = `{"verb":"patch","user":{"username":"system:serviceaccount:shop:controller"},"objectRef":{"resource":"healthscopes","subresource":"status","namespace":"store","name":"web","apiGroup":"core.oam.dev"},"requestReceivedTimestamp":"2026-05-01T10:00:01.500000Z","annotations":{"authorization.k8s.io/decision":"allow"}}`
	refusedLine = `{"verb":"watch","user":{"username":"system:serviceaccount:shop:monitor"},"objectRef":{"resource":"secrets"},"responseStatus":{"code":403},"annotations":{"authorization.k8s.io/decision":"forbid"}}`
	createLine  = `{"verb":"create","user":{"username":"system:serviceaccount:shop:monitor"},"objectRef":{"resource":"leases","namespace":"shop","name":"monitor","apiGroup":"coordination.k8s.io"},"responseStatus":{"code":403},"annotations":{"authorization.k8s.io/decision":"allow"}}`
	evictLine   = `{"verb":"create","user":{"username":"system:serviceaccount:shop:monitor"},"objectRef":{"resource":"pods","subresource":"eviction","namespace":"shop","name":"web"},"annotations":{"authorization.k8s.io/decision":"allow"}}`
	urlLine     = `{"requestURI":"/apis/apps/v1?timeout=32s","verb":"get","user":{"username":"system:serviceaccount:shop:monitor"},"annotations":{"authorization.k8s.io/decision":"allow"}}`
)

func writeLog(t testing.TB, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "audit.log")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestReadAuditReadsRequestsAsRBACSeesThem(t *testing.T) {
	lines := strings.Join([]string{listLine, statusLine, refusedLine, listLine, createLine, evictLine, urlLine, refusedLine}, "\n") + "\n"
	got, err := ReadAudit(writeLog(t, lines+listLine[:40]), time.Time{})
	if err != nil {
		t.Fatal(err)
	}
	refused := Use{Account: "shop/monitor", Verb: "watch", Resource: "secrets"}
	want := Log{
		Uses: []Use{
			{Account: "shop/monitor", Verb: "list", Resource: "pods"},
			{Account: "shop/controller", Verb: "patch", Group: "core.oam.dev", Resource: "healthscopes/status", Namespace: "store", Name: "web"},
			refused,
			{Account: "shop/monitor", Verb: "create", Group: "coordination.k8s.io", Resource: "leases", Namespace: "shop"},
			{Account: "shop/monitor", Verb: "create", Resource: "pods/eviction", Namespace: "shop", Name: "web"},
			{Account: "shop/monitor", Verb: "get", URL: "/apis/apps/v1"},
		},
		Refused: []Use{refused},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("log (-want +got):\n%s", diff)
	}
}

func TestReadAuditLeavesOutEarlierRequests(t *testing.T) {
	path := writeLog(t, listLine+"\n"+statusLine+"\n")
	begin := time.Date(2026, 5, 1, 10, 0, 0, 0, time.UTC)
	for name, tc := range map[string]struct {
		since time.Time
		want  []string
	}{
		"before both":           {begin, []string{"pods", "healthscopes/status"}},
		"at the first":          {begin.Add(time.Microsecond), []string{"pods", "healthscopes/status"}},
		"the first still lasts": {begin.Add(time.Second), []string{"healthscopes/status"}},
		"after both":            {begin.Add(time.Minute), nil},
	} {
		t.Run(name, func(t *testing.T) {
			log, err := ReadAudit(path, tc.since)
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, u := range log.Uses {
				got = append(got, u.Resource)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("resources (-want +got):\n%s", diff)
			}
		})
	}
}

func TestReadAuditTakesNoOtherLog(t *testing.T) {
	for name, tc := range map[string]struct{ text, want string }{
		"no JSON":        {listLine + "\nI am a line\n", "cannot read audit log"},
		"another's user": {strings.Replace(listLine, "system:serviceaccount:shop:monitor", "admin", 1) + "\n", `user.username: "admin"`},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := ReadAudit(writeLog(t, tc.text), time.Time{}); err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("want an error with %q, got %v", tc.want, err)
			}
		})
	}
	if _, err := ReadAudit(filepath.Join(t.TempDir(), "none"), time.Time{}); err == nil {
		t.Error("want an error for a log that is not there")
	}
}

// FuzzReadAudit checks that, for any log, reading returns an error or each use once, and each refused use at most once.
func FuzzReadAudit(f *testing.F) {
	for _, seed := range []string{listLine + "\n", statusLine + "\n" + refusedLine, `{"user":{"username":"system:serviceaccount:"}}` + "\n", "null\n", "\n"} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		log, err := read(data, time.Time{})
		if err != nil {
			return
		}
		seen := map[Use]bool{}
		for _, u := range log.Uses {
			if seen[u] {
				t.Errorf("%s is there twice", u)
			}
			seen[u] = true
		}
		for _, u := range log.Refused {
			if !seen[u] {
				t.Errorf("%s was refused and is no use, or is there twice", u)
			}
			delete(seen, u)
		}
		if lines := bytes.Count(data, []byte("\n")); len(log.Uses) > lines {
			t.Errorf("%d uses in %d lines", len(log.Uses), lines)
		}
	})
}
