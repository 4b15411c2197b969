package recorder

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/healthscope/healthscope/healthscope/status"
)

func TestTextIsCompact(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"":     emptyStatus,
		"null": emptyStatus,
		`{"csrStatuses": [ {"status": {"certificate": "LS0t"}} ], "ready": true}`: `{"csrStatuses":[{"status":{"certificate":"LS0t"}}],"ready":true}`,
		`{"z": 1, "a": 12345678901234567890}`:                                     `{"z":1,"a":12345678901234567890}`,
	} {
		text, digest, err := textOf(json.RawMessage(in))
		if err != nil || text != want || len(digest) != 64 {
			t.Errorf("%s: want %s, got %s, digest %q, %v", in, want, text, digest, err)
		}
	}
	_, a, _ := textOf(json.RawMessage(`{"ready": true}`))
	_, b, _ := textOf(json.RawMessage(`{"ready":true}`))
	_, c, _ := textOf(json.RawMessage(`{"ready":false}`))
	if a != b || a == c {
		t.Errorf("what is saved alike has one digest, and nothing else has it: %q %q %q", a, b, c)
	}
	if _, _, err := textOf(json.RawMessage(`{"ready":`)); err == nil {
		t.Error("half a status is an error")
	}
}

// TestTruncate checks that truncate removes the longest list first, and marks the status as truncated.
func TestTruncate(t *testing.T) {
	t.Parallel()
	pod := `{"metadata":{"namespace":"n","name":"` + strings.Repeat("p", 60) + `"}}`
	text := `{"ready":true,"resourceCount":3,"serviceStatuses":[{"metadata":{"name":"s"}}],"podStatuses":[` + pod + `,` + pod + `],` +
		`"resources":[{"kind":"Pod","name":"p","state":"Ready"}],"summary":{"state":"Ready","total":3,"ready":3}}`
	want := []string{"podStatuses", "serviceStatuses", "resources"}
	for i, gone := range want {
		shorter, ok := truncate(text)
		if !ok || len(shorter) >= len(text) || strings.Contains(shorter, gone) || !strings.Contains(shorter, `"truncated":true`) {
			t.Fatalf("want %s without %s, got %s", text, gone, shorter)
		}
		for _, stays := range want[i+1:] {
			if !strings.Contains(shorter, stays) {
				t.Errorf("%s is to stay in %s", stays, shorter)
			}
		}
		text = shorter
	}
	if _, ok := truncate(text); ok {
		t.Errorf("there is nothing to leave out of %s", text)
	}
	if _, ok := truncate("[]"); ok {
		t.Error("there is nothing to leave out of what is no status")
	}
	if status.DecodeBundle("p+c", text, nil) == nil {
		t.Errorf("cannot read %s", text)
	}
}
