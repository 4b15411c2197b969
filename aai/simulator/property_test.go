package simulator

import (
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// failer is the common part of testing.T and rapid.T.
type failer interface {
	Helper()
	Errorf(format string, args ...any)
}

// checkInvariants asserts the invariants of an inventory: every node has its parent, both ends store an edge, and no node has more
// edges than their rule allows.
func checkInvariants(t failer, v *inventory) {
	t.Helper()
	for uri, n := range v.nodes {
		if n.place.uri != uri {
			t.Errorf("node %s is stored at %s", n.place.uri, uri)
		}
		if p := n.place.parent; p != nil && v.nodes[p.uri] == nil {
			t.Errorf("%s is an orphan", uri)
		}
		used := map[*edgeRule]int{}
		for _, e := range n.edges {
			other := v.nodes[e.other]
			if other == nil || !slices.Contains(other.edges, edge{e.rule, uri}) {
				t.Errorf("edge %s -- %s is unknown to the other end", uri, e.other)
				continue
			}
			if r := ruleBetween(n.place.typ, other.place.typ, e.rule.label); r != e.rule || r.containment {
				t.Errorf("edge %s -- %s does not follow its rule", uri, e.other)
			}
			if used[e.rule]++; used[e.rule] > 1 && n.place.typ.name == e.rule.single {
				t.Errorf("%s has %d edges %s, one is allowed", uri, used[e.rule], e.rule.label)
			}
		}
	}
}

// history draws random requests on a small inventory.
type history struct {
	*harness
	rt *rapid.T
}

func (h *history) pick(label string, from ...string) string {
	return rapid.SampledFrom(from).Draw(h.rt, label)
}

// uri draws the URI of a node, which may or may not exist.
func (h *history) uri() string {
	t := h.pick("tenant", tenant, region+"/tenants/tenant/t2")
	return h.pick("uri", vnf, otherVNF, module, otherVNF+"/vf-modules/vf-module/m", t,
		t+"/k8s-resources/k8s-resource/a", t+"/k8s-resources/k8s-resource/b")
}

// versionOf draws the right resource-version, a wrong one, or none.
func (h *history) versionOf(uri string) string {
	doc, ok := h.Get(uri)
	switch choice := h.pick("version", "right", "right", "right", "wrong", "none"); {
	case choice == "right" && ok:
		return as[string](h.t, doc["resource-version"])
	case choice == "wrong":
		return "1"
	}
	return ""
}

// putBody draws the body of a PUT that is complete for any type.
func (h *history) putBody(uri string) string {
	body := `{` + podFields + `,"tenant-name":"n","vnf-type":"t"`
	if v := h.versionOf(uri); v != "" {
		body += `,"resource-version":"` + v + `"`
	}
	if rapid.Bool().Draw(h.rt, "linked") {
		body += `,` + h.relationships()
	}
	return body + `}`
}

func (h *history) relationships() string {
	list := make([]string, rapid.IntRange(0, 3).Draw(h.rt, "links"))
	for i := range list {
		list[i] = h.uri()
	}
	return relationshipsTo(list...)
}

// write draws one write as action, URI and body. It can be sent as a single request or as a bulk operation.
func (h *history) write() (action, uri, body string) {
	uri = h.uri()
	switch h.pick("action", "put", "put", "patch", "delete", "edge", "unedge") {
	case "put":
		return "put", uri, h.putBody(uri)
	case "patch":
		return "patch", uri, `{"data-owner":"` + h.pick("owner", "a", "b") + `",` + h.relationships() + `}`
	case "edge":
		return "put", uri + relationshipPath, linkTo(h.uri())
	case "unedge":
		return "delete", uri + relationshipPath, linkTo(h.uri())
	default:
		return "delete", uri + "?resource-version=" + h.versionOf(uri), `{}`
	}
}

func (h *history) request() call {
	if h.pick("form", "single", "single", "bulk") == "single" {
		action, uri, body := h.write()
		return call{method: strings.ToUpper(action), path: uri, body: body}
	}
	list := make([]string, rapid.IntRange(1, 4).Draw(h.rt, "operations"))
	for i := range list {
		list[i] = op(h.write())
	}
	return bulk1(operations(list...))
}

func TestRandomHistoriesKeepInvariants(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		h := &history{harness: newHarness(t, Options{}), rt: rt}
		versions := map[string]int64{}
		for range rapid.IntRange(1, 25).Draw(rt, "length") {
			before := h.State()
			c := h.request()
			out := h.send(c)
			checkInvariants(rt, h.inventory)
			checkVersions(rt, h.inventory, versions)
			if refused := out.status >= 400; refused && fmt.Sprint(before) != fmt.Sprint(h.State()) {
				rt.Errorf("%s %s was refused with %d and yet changed the inventory", c.method, c.path, out.status)
			}
			if out.status >= 500 {
				rt.Errorf("%s %s %s: status %d", c.method, c.path, c.body, out.status)
			}
			if rt.Failed() {
				rt.Logf("after %s %s %s", c.method, c.path, c.body)
				return
			}
		}
	})
}

// checkVersions asserts that the resource-version at a URI never decreases, not even when the node is recreated.
func checkVersions(t failer, v *inventory, last map[string]int64) {
	t.Helper()
	for uri, n := range v.nodes {
		now, err := strconv.ParseInt(n.version, 10, 64)
		if err != nil || now < last[uri] {
			t.Errorf("resource-version of %s went from %d to %q", uri, last[uri], n.version)
		}
		last[uri] = now
	}
}

// anyFault draws a fault that applies to the next request and has no delay.
func (h *history) anyFault() Fault {
	cut := h.pick("cut", "", "", "empty", "truncate", "wrong-length", "before-commit", "after-commit", "mid-body")
	f := Fault{
		Count: 1, Empty: cut == "empty", Truncate: cut == "truncate", WrongLength: cut == "wrong-length",
		XML: rapid.Bool().Draw(h.rt, "XML"), Gzip: rapid.Bool().Draw(h.rt, "gzip"),
	}
	if strings.Contains(cut, "-") && cut != "wrong-length" {
		f.Drop = Drop(cut)
		f.Manner = Manner(h.pick("manner", "", "reset"))
	}
	if f.Drop == DropNever || f.Drop == DropMidBody {
		switch h.pick("instead", "", "", "status", "code") {
		case "status":
			f.Status = 503
		case "code":
			f.Code = h.pick("code", "AAI_6134", "AAI_6131", "AAI_7406")
		}
	}
	return f
}

// TestFaultsNeverChangeTheEffectOfARequest asserts that a fault changes only the response. The request has the same effect as
// without the fault, or none.
func TestFaultsNeverChangeTheEffectOfARequest(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		h := &history{harness: newHarness(t, Options{}), rt: rt}
		twin := newHarness(t, Options{})
		for range rapid.IntRange(1, 8).Draw(rt, "length") {
			f, c := h.anyFault(), h.request()
			h.fault(f)
			_, err := h.sendInProcess(c)
			if f.Status == 0 && f.Code == "" && f.Drop != DropBeforeCommit {
				twin.send(c)
			}
			if broken := f.WrongLength || f.Drop != DropNever; broken != (err != nil) {
				rt.Fatalf("%+v: the connection ends with %v", f, err)
			}
			if want, got := fmt.Sprint(twin.State()), fmt.Sprint(h.State()); want != got {
				rt.Fatalf("after %+v on %s %s %s the inventory is\n%s\nwant\n%s", f, c.method, c.path, c.body, got, want)
			}
		}
	})
}

// FuzzRequest sends any path, query and body with any method. It checks that there is no panic, and that the invariants hold.
func FuzzRequest(f *testing.F) {
	for _, body := range []string{podBody, linked(vnf), `{"labels":{},"relationship-list":[]}`, `[]`, `null`, `{"k8s-resources":{"k8s-resource":[{}]}}`} {
		f.Add("PUT", pod, "", body)
		f.Add("PATCH", vnf, "", body)
		f.Add("PUT", podEdge, "", body)
	}
	f.Add("GET", region, "depth=all&resultIndex=1&resultSize=1", "")
	f.Add("DELETE", vnf, "resource-version=1", "")
	f.Add("POST", "/bulk/single-transaction", "", operations(op("put", pod, podBody), op("delete", vnf, "{}")))
	f.Fuzz(func(t *testing.T, method, path, query, body string) {
		target := "/aai/v32" + path + "?" + query
		u, err := url.ParseRequestURI(target)
		if err != nil || strings.ContainsAny(method, " \t\r\n") || strings.ContainsAny(target, " \r\n#") || method == "" {
			return // no HTTP request line
		}
		h := newHarness(t, Options{Strict: true})
		r := h.request(call{path: vnf})
		r.Method, r.URL = method, u
		if method == "PATCH" {
			r.Header.Set("Content-Type", "application/merge-patch+json")
		}
		rep := h.handle(newRequest(r, []byte(body)))
		if rep.status < 200 || rep.status > 599 {
			t.Errorf("status %d", rep.status)
		}
		if rep.header.Get("Content-Type") == "application/json" && len(rep.body) > 0 && !json.Valid(rep.body) {
			t.Errorf("body is no JSON: %s", rep.body)
		}
		checkInvariants(t, h.inventory)
	})
}
