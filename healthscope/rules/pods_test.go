package rules_test

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/healthscope/healthscope/healthscope"
	"github.com/healthscope/healthscope/healthscope/rules"
)

func TestTerminalWaitingReasonsFail(t *testing.T) {
	reasons := []string{
		"CrashLoopBackOff", "CreateContainerConfigError", "CreateContainerError", "ErrImageNeverPull", "ErrImagePull",
		"ImageInspectError", "ImagePullBackOff", "InvalidImageName", "RegistryUnavailable", "RunContainerError",
	}
	if diff := cmp.Diff(reasons, slices.Sorted(maps.Keys(rules.TerminalWaitingReasons))); diff != "" {
		t.Errorf("reasons (-tested +documented):\n%s", diff)
	}
	for _, reason := range reasons {
		for _, list := range []string{"containerStatuses", "initContainerStatuses"} {
			object := parse(t, `{apiVersion: v1, kind: Pod, spec: {containers: [{name: web}]}, status: {phase: Pending, `+list+`: [{name: web, ready: false, state: {waiting: {reason: `+reason+`}}}]}}`)
			got := rules.Evaluate(object, rules.Options{})
			if got.State != healthscope.Failed || string(got.Reason) != reason || got.Message != `container "web": `+reason {
				t.Errorf("%s in %s: got %s, %s, %q", reason, list, got.State, got.Reason, got.Message)
			}
		}
	}
}

// crashing returns a pod whose container terminated with a message.
func crashing(message string) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "Pod", "metadata": map[string]any{"name": "web"},
		"status": map[string]any{"phase": "Running", "containerStatuses": []any{map[string]any{
			"name": "app", "ready": false, "state": map[string]any{"waiting": map[string]any{"reason": "CrashLoopBackOff", "message": "back-off 5m0s restarting failed container"}},
			"lastState": map[string]any{"terminated": map[string]any{"exitCode": int64(1), "reason": "Error", "message": message}},
		}}},
	}}
}

// TestTerminationMessages asserts that the message of a crashing pod ends with the end of its container's termination message,
// in one line, with limited length, and without text that looks like a secret.
func TestTerminationMessages(t *testing.T) {
	cases := map[string]struct{ message, want string }{
		"none":                  {"", ""},
		"one line":              {"cannot open /data: permission denied", ": cannot open /data: permission denied"},
		"white space":           {"  cannot\topen\r\n\n", ": cannot open"},
		"blanks only":           {" \n \n", ""},
		"two lines":             {"starting\nno such host db.store", ": starting no such host db.store"},
		"the end of a log":      {strings.Repeat("listening on every port that there is\n", 50) + "panic: no route", ": " + strings.Repeat("listening on every port that there is ", 2) + "panic: no route"},
		"one endless line":      {"disk full " + strings.Repeat("x", 4000), ": disk full " + strings.Repeat("x", 110)},
		"not text":              {"bad \xff\x00 end", ": bad \uFFFD end"},
		"a password":            {"login failed: user=shop password=hunter2, host=db", ": login failed: user=shop password=***, host=db"},
		"a quoted password":     {`{"db_password": "hun ter2", "host": "db"}`, `: {"db_password": ***, "host": "db"}`},
		"a token that is none":  {"the token is expired", ": the token is expired"},
		"a token":               {"API_TOKEN: abc.def expired", ": API_TOKEN: *** expired"},
		"a key":                 {"AWS_SECRET_ACCESS_KEY=wJalr/x refused", ": AWS_SECRET_ACCESS_KEY=*** refused"},
		"a bearer token":        {"GET /: 401, sent Authorization: Bearer eyJh.eyJz.x-_", ": GET /: 401, sent Authorization: Bearer ***"},
		"a password in a URL":   {"dial postgres://shop:hunter2@db:5432/shop: refused", ": dial postgres://shop:***@db:5432/shop: refused"},
		"a URL without one":     {"dial https://db:5432/shop: refused", ": dial https://db:5432/shop: refused"},
		"a secret that is none": {`secret "shop-key" not found`, `: secret "shop-key" not found`},
		"a secret near the end": {strings.Repeat("y", 90) + " password=hunter2hunter2hunter2hunter2", ": " + strings.Repeat("y", 90) + " password=***"},
		"a secret before the limit": {
			"connect with password=" + strings.Repeat("z", 600) + " failed", ": connect with password=***",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			want := `container "app": CrashLoopBackOff, last exit code 1 (Error)` + tc.want
			if got := rules.Evaluate(crashing(tc.message), rules.Options{}); got.Message != want {
				t.Errorf("got  %q\nwant %q", got.Message, want)
			}
		})
	}
}
