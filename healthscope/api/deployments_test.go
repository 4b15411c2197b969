package api

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/healthscope/healthscope/healthscope/appcontext"
)

// rollbackBody is the body of a request for a rollback, as EMCO's clients send it.
const rollbackBody = `{"metadata":{"description":"back"},"spec":{"revision":"3"}}`

// deployments is a Deployments that records the calls of its methods, and returns err from each of them.
type deployments struct {
	err   error
	asked []string
}

func (d *deployments) do(what string, group appcontext.DeploymentRef) error {
	d.asked = append(d.asked, what+" "+group.String())
	return d.err
}

func (d *deployments) Instantiate(_ context.Context, group appcontext.DeploymentRef) error {
	return d.do("instantiate", group)
}

func (d *deployments) Terminate(_ context.Context, group appcontext.DeploymentRef) error {
	return d.do("terminate", group)
}

func (d *deployments) Stop(_ context.Context, group appcontext.DeploymentRef) error {
	return d.do("stop", group)
}

func (d *deployments) Update(_ context.Context, group appcontext.DeploymentRef) (Revision, error) {
	return 2, d.do("update", group)
}

func (d *deployments) Rollback(_ context.Context, group appcontext.DeploymentRef, to Revision) error {
	return d.do(fmt.Sprintf("rollback to %d of", to), group)
}

// requestsForDeployments returns requests to the routes of deployments: first those that each route answers in the same way.
func requestsForDeployments() map[string]request {
	rows := map[string]request{
		"update as text": {path: groupPath + "/update", accept: "text/plain", want: 406, detail: "this path can be answered as application/json"},
		"instantiate accepts nothing, and gets nothing": {path: groupPath + "/instantiate", accept: "image/png", want: 202},
		"instantiate with a body, which means nothing":  {path: groupPath + "/instantiate", body: strings.Repeat("{", 2*maxBodyBytes), want: 202},
	}
	for path, target := range targets {
		if !changesSomething(path) {
			continue
		}
		for kind, status := range map[error]int{
			appcontext.ErrNotFound: 404, appcontext.ErrInvalid: 400, appcontext.ErrConflict: 409, appcontext.ErrMalformed: 500, appcontext.ErrUnavailable: 503,
			appcontext.ErrDenied: 503, appcontext.ErrNoSpace: 503, appcontext.ErrClosed: 503, context.DeadlineExceeded: 503, errors.New("it is not instantiated"): 409,
		} {
			rows[path+": "+kind.Error()] = request{path: path, deploy: fmt.Errorf("cannot do it: %w", kind), want: status, detail: "cannot do it: " + kind.Error()}
		}
		rows[path+" without rsync"] = request{path: path, undeployed: true, want: 501, detail: "rsync.enabled is false in the server's configuration"}
		rows[path+" with parameter"] = request{path: path, target: target + "?force=true", want: 400, detail: `unknown query parameter "force" with value "true"; this path takes none`}
		rows[path+" of bad name"] = request{path: path, target: strings.Replace(target, "autumn", "a%2Fb", 1), want: 400, detail: `parameter "group" has the value "a/b"`}
	}
	for name, tt := range map[string]struct {
		body   string
		status int
		detail string
	}{
		"no body":                      {"", 400, "the body is empty; it must be"},
		"a body that is no JSON":       {"revision=3", 422, "cannot read the body"},
		"half a body":                  {rollbackBody[:20], 422, "unexpected end of JSON input"},
		"two bodies":                   {rollbackBody + rollbackBody, 422, "after top-level value"},
		"a number":                     {`{"spec":{"revision":3}}`, 422, "cannot unmarshal number"},
		"no revision":                  {`{"spec":{}}`, 400, `spec.revision is ""; it must be the number of a revision`},
		"a revision that is no number": {`{"spec":{"revision":"latest"}}`, 400, `spec.revision is "latest"`},
		"revision 1":                   {`{"spec":{"revision":"1"}}`, 202, ""},
		"revision 0":                   {`{"spec":{"revision":"0"}}`, 400, `spec.revision is "0"`},
		"a negative revision":          {`{"spec":{"revision":"-1"}}`, 400, `spec.revision is "-1"`},
		"a revision beyond numbers":    {`{"spec":{"revision":"` + strings.Repeat("9", 30) + `"}}`, 400, `spec.revision is "999`},
		"a body of the largest size":   {rollbackBody + strings.Repeat(" ", maxBodyBytes-len(rollbackBody)), 202, ""},
		"a body that is too large":     {rollbackBody + strings.Repeat(" ", maxBodyBytes-len(rollbackBody)+1), 413, "the body has more than 16384 bytes"},
	} {
		rows["rollback with "+name] = request{path: groupPath + "/rollback", target: groupURL + "/rollback", body: tt.body, want: tt.status, detail: tt.detail}
	}
	for name, r := range rows {
		r.guard, r.header = rights{may: map[string][]Access{"all": nil}}, bearer("all")
		rows[name] = r
	}
	for path := range targets {
		if changesSomething(path) {
			rows[path+" without a guard"] = request{path: path, want: 403, detail: "without a token nothing can be changed; send one to the address in api.bindAddress"}
		}
	}
	return rows
}

func TestDeploymentRoutesAskForWhatTheyAreNamed(t *testing.T) {
	for target, want := range map[string]struct{ asked, body string }{
		"instantiate": {"instantiate retail/shop/v2/autumn", ""},
		"terminate":   {"terminate retail/shop/v2/autumn", ""},
		"stop":        {"stop retail/shop/v2/autumn", ""},
		"update":      {"update retail/shop/v2/autumn", "2\n"},
		"rollback":    {"rollback to 3 of retail/shop/v2/autumn", ""},
	} {
		t.Run(target, func(t *testing.T) {
			var log strings.Builder
			d := &deployments{}
			h := NewHandler(Options{Deployments: d, Guard: rights{may: map[string][]Access{"all": nil}}, Logger: slog.New(slog.NewTextHandler(&log, nil))})
			got := send(t.Context(), h, http.MethodPost, groupURL+"/"+target, bearer("all"), rollbackBody)
			if got.Code != http.StatusAccepted || got.Body.String() != want.body || (got.Header().Get("Content-Type") == "") != (want.body == "") {
				t.Errorf("status %d, Content-Type %q: %s", got.Code, got.Header().Get("Content-Type"), got.Body)
			}
			if diff := cmp.Diff([]string{want.asked}, d.asked); diff != "" {
				t.Errorf("asked for (-want +got):\n%s", diff)
			}
			for _, logged := range []string{"Accepted a change", "caller=caller-all", "autumn/" + target} {
				if !strings.Contains(log.String(), logged) {
					t.Errorf("the log lacks %q: %s", logged, log.String())
				}
			}
		})
	}
}
