package sync_test

import (
	"encoding/json"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/healthscope/healthscope/aai"
	"github.com/healthscope/healthscope/aai/simulator"
)

// requests returns the requests that this project sends to A&AI while do runs, such as "UPDATE a", or "GET" for a list. It omits
// the probe that a Syncer sends first, which has its own tests.
func (w *world) requests(do func()) []string {
	before := len(w.Requests())
	do()
	list := []string{}
	for _, r := range w.Requests()[before:] {
		if r.Header.Get("X-FromAppId") != "HealthScope" || isProbe(r) {
			continue
		}
		list = append(list, describe(r)...)
	}
	return list
}

// isProbe reports whether a request only checks whether A&AI accepts our requests.
func isProbe(r simulator.Request) bool { return strings.Contains(r.Path, "healthscope-probe") }

// probes returns the number of probes that are sent while do runs.
func (w *world) probes(do func()) (n int) {
	before := len(w.Requests())
	do()
	for _, r := range w.Requests()[before:] {
		if isProbe(r) {
			n++
		}
	}
	return n
}

// describe returns a description of a request. The operations of a bulk request follow it, each after a plus sign.
func describe(r simulator.Request) []string {
	name := func(method, path, version string) string {
		if method == http.MethodPut && version != "" {
			method = "UPDATE"
		}
		path, _, _ = strings.Cut(path, "?")
		_, id, _ := strings.Cut(path, "/k8s-resource/")
		return strings.TrimSpace(method + " " + strings.Replace(id, "/relationship-list/relationship", " edge", 1))
	}
	switch {
	case strings.HasSuffix(r.Path, tenant.Path()):
		return []string{"GET tenant"}
	case strings.HasSuffix(r.Path, "/vf-modules"):
		return []string{"GET modules"}
	case strings.Contains(r.Path, "/vf-module/"):
		return []string{r.Method + " module " + r.Path[strings.LastIndexByte(r.Path, '/')+1:]}
	case !strings.HasSuffix(r.Path, "/bulk/single-transaction"):
		var d aai.Document
		_ = json.Unmarshal([]byte(r.Body), &d) // A request without a body has no version.
		return []string{name(r.Method, r.Path, d.ResourceVersion)}
	}
	var body struct {
		Operations []struct {
			Action, URI string
			Body        aai.Document
		}
	}
	if err := json.Unmarshal([]byte(r.Body), &body); err != nil {
		return []string{"BULK that cannot be read"}
	}
	list := []string{"BULK " + strconv.Itoa(len(body.Operations))}
	for _, op := range body.Operations {
		list = append(list, "+ "+name(strings.ToUpper(op.Action), op.URI, op.Body.ResourceVersion))
	}
	return list
}

// sent returns the requests in a result of requests, without the operations of bulk requests.
func sent(list []string) []string {
	return slices.DeleteFunc(slices.Clone(list), func(r string) bool { return strings.HasPrefix(r, "+") })
}

// writes returns the writes in a result of requests, whether they were sent alone or in bulk.
func writes(list []string) []string {
	return slices.DeleteFunc(slices.Clone(list), func(r string) bool { return strings.HasPrefix(r, "GET") || strings.HasPrefix(r, "BULK") })
}

// acknowledged returns the ids of the objects that were written.
func acknowledged(r outcome) []string {
	var ids []string
	for k := range maps.Keys(r.Acknowledged) {
		ids = append(ids, k.ID)
	}
	slices.Sort(ids)
	return ids
}
