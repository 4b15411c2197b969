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

func requestsForDeployments() map[string]request {
	guard, all := rights{may: map[string][]Access{"all": nil}}, bearer("all")
	row := func(path string, want int, detail string) request {
		return request{path: path, guard: guard, header: all, want: want, detail: detail}
	}
	rows := map[string]request{}
	for path := range posts {
		if !posts[path] {
			continue
		}
		for kind, status := range map[error]int{
			appcontext.ErrNotFound: 404, appcontext.ErrInvalid: 400, appcontext.ErrConflict: 409, appcontext.ErrMalformed: 500, appcontext.ErrUnavailable: 503,
			appcontext.ErrDenied: 503, appcontext.ErrNoSpace: 503, appcontext.ErrClosed: 503, context.DeadlineExceeded: 503, errors.New("it is not instantiated"): 409,
		} {
			r := row(path, status, "cannot do it: "+kind.Error())
			r.deploy = fmt.Errorf("cannot do it: %w", kind)
			rows[path+": "+kind.Error()] = r
		}
		r := row(path, 501, "rsync.enabled is false in the server's configuration")
		r.undeployed = true
		rows[path+" without rsync"] = r
		r = row(path, 400, `unknown query parameter "force" with value "true"; this path takes none`)
		r.target = paths[path] + "?force=true"
		rows[path+" with parameter"] = r
		r = row(path, 400, `parameter "group" has the value "a/b"`)
		r.target = strings.Replace(paths[path], "autumn", "a%2Fb", 1)
		rows[path+" of bad name"] = r
		rows[path+" without a guard"] = request{path: path, want: 403, detail: "without a token nothing can be changed; send one to the address in api.bindAddress"}
	}
	rows["update as text"] = row(groupPath+"/update", 406, "this path can be answered as application/json")
	rows["update as text"] = withAccept(rows["update as text"], "text/plain")
	rows["instantiate accepts nothing, and gets nothing"] = withAccept(row(groupPath+"/instantiate", 202, ""), "image/png")
	rows["instantiate with a body, which means nothing"] = withBody(row(groupPath+"/instantiate", 202, ""), strings.Repeat("{", 2*maxBodyBytes))
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
		"a list":                       {`[]`, 422, "cannot unmarshal array"},
		"no revision":                  {`{"spec":{}}`, 400, `spec.revision is ""; it must be the number of a revision`},
		"a revision that is no number": {`{"spec":{"revision":"latest"}}`, 400, `spec.revision is "latest"`},
		"revision 0":                   {`{"spec":{"revision":"0"}}`, 400, `spec.revision is "0"`},
		"a negative revision":          {`{"spec":{"revision":"-1"}}`, 400, `spec.revision is "-1"`},
		"a revision beyond numbers":    {`{"spec":{"revision":"` + strings.Repeat("9", 30) + `"}}`, 400, `spec.revision is "999`},
		"a body of the largest size":   {rollbackBody + strings.Repeat(" ", maxBodyBytes-len(rollbackBody)), 202, ""},
		"a body that is too large":     {rollbackBody + strings.Repeat(" ", maxBodyBytes-len(rollbackBody)+1), 413, "the body has more than 16384 bytes"},
	} {
		r := withBody(row(groupPath+"/rollback", tt.status, tt.detail), tt.body)
		r.target = groupURL + "/rollback"
		rows["rollback with "+name] = r
	}
	return rows
}

func withAccept(r request, accept string) request { r.accept = accept; return r }

func withBody(r request, body string) request { r.body = body; return r }

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
			var allowed []Access
			d := &deployments{}
			h := NewHandler(Options{Deployments: d, Guard: rights{may: map[string][]Access{"all": nil}, asked: &allowed}, Logger: slog.New(slog.NewTextHandler(&log, nil))})
			got := sendBody(t, h, http.MethodPost, groupURL+"/"+target, bearer("all"), rollbackBody)
			if got.Code != http.StatusAccepted || got.Body.String() != want.body || (got.Header().Get("Content-Type") == "") != (want.body == "") {
				t.Errorf("status %d, Content-Type %q: %s", got.Code, got.Header().Get("Content-Type"), got.Body)
			}
			if diff := cmp.Diff([]string{want.asked}, d.asked); diff != "" {
				t.Errorf("asked for (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff([]Access{{Verb: "deploy", Path: groupURL + "/" + target}}, allowed); diff != "" {
				t.Errorf("rights (-want +got):\n%s", diff)
			}
			for _, logged := range []string{"Accepted a change", "caller=caller-all", "autumn/" + target} {
				if !strings.Contains(log.String(), logged) {
					t.Errorf("the log lacks %q: %s", logged, log.String())
				}
			}
		})
	}
}

// TestWhoMayReadMayNotDeploy asserts that the right to read a path does not allow a caller to deploy.
func TestWhoMayReadMayNotDeploy(t *testing.T) {
	for path, target := range paths {
		if !posts[path] {
			continue
		}
		d := &deployments{}
		h := NewHandler(Options{Deployments: d, Guard: rights{may: map[string][]Access{"reader": {{Verb: "get", Path: target}}}}})
		got := sendBody(t, h, http.MethodPost, target, bearer("reader"), rollbackBody)
		if got.Code != http.StatusForbidden || len(d.asked) > 0 {
			t.Errorf("%s: status %d, done: %q", target, got.Code, d.asked)
		}
		checkProblem(t, got.Body.Bytes(), http.StatusForbidden, `user "caller-reader" may not deploy the URL "`+target+`"`)
	}
}
