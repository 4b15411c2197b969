package status_test

import (
	"errors"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/healthscope/healthscope/healthscope/status"
)

func parseQuery(raw string) (status.Query, error) {
	values, err := url.ParseQuery(raw)
	if err != nil {
		return status.Query{}, err
	}
	return status.ParseQuery(values)
}

func TestQueries(t *testing.T) {
	tests := map[string]status.Query{
		"":                                     {Type: status.TypeRsync, Output: status.OutputAll},
		"type=cluster&output=summary":          {Type: status.TypeCluster, Output: status.OutputSummary},
		"type=all&output=detail":               {Type: status.TypeAll, Output: status.OutputDetail},
		"health=true":                          {Type: status.TypeRsync, Output: status.OutputAll, Health: true},
		"health=false":                         {Type: status.TypeRsync, Output: status.OutputAll},
		"output=rsync":                         {Type: status.TypeRsync, Output: status.OutputDetail},
		"output=rsync&type=rsync":              {Type: status.TypeRsync, Output: status.OutputDetail},
		"output=small":                         {Type: status.TypeAll, Output: status.OutputAll, Health: true},
		"output=full":                          {Type: status.TypeAll, Output: status.OutputDetail, Health: true},
		"output=full&type=cluster&health=true": {Type: status.TypeCluster, Output: status.OutputDetail, Health: true},
		"instance":                             {Type: status.TypeRsync, Output: status.OutputAll, ListInstances: true},
		"instance=":                            {Type: status.TypeRsync, Output: status.OutputAll, ListInstances: true},
		"instance=5127746093381250097&app=web": {
			Type: status.TypeRsync, Output: status.OutputAll, Instance: "5127746093381250097", Apps: []string{"web"},
		},
		"app=web&app=cache&app=web&cluster=west%2Bbonn&resource=system:reader&resource=a.b-c": {
			Type: status.TypeRsync, Output: status.OutputAll,
			Apps: []string{"cache", "web"}, Clusters: []string{"west+bonn"}, Resources: []string{"a.b-c", "system:reader"},
		},
	}
	for raw, want := range tests {
		t.Run(raw, func(t *testing.T) {
			got, err := parseQuery(raw)
			noError(t, err)
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestBadParametersAreRefused(t *testing.T) {
	tests := map[string]struct{ raw, parameter, value, problem, allowed string }{
		"unknown":             {"namespace=web", "namespace", "web", "is unknown", "app, cluster, dialect, health, instance, output, resource, type"},
		"of EMCO":             {"status=ready", "status", "ready", "is one of EMCO 22.12", "it, with dialect=22.12"},
		"upper case":          {"Type=rsync", "Type", "rsync", "is unknown", "type"},
		"type":                {"type=pods", "type", "pods", "cannot be used", "rsync, cluster, all"},
		"empty type":          {"type=", "type", "", "cannot be used", "rsync, cluster, all"},
		"two types":           {"type=rsync&type=rsync", "type", "rsync,rsync", "is given 2 times", "one value"},
		"output":              {"output=tiny", "output", "tiny", "cannot be used", "summary, all, detail, rsync, small, full"},
		"health":              {"health=yes", "health", "yes", "cannot be used", "true, false"},
		"two instances":       {"instance=1&instance=2", "instance", "1,2", "is given 2 times", "one value"},
		"instance":            {"instance=a/b", "instance", "a/b", "cannot be the id of a context", "the id of a context"},
		"list and filter":     {"instance&app=web", "instance", "", "other parameters are given", "no other parameter"},
		"rsync of clusters":   {"output=rsync&type=cluster", "output", "rsync", "contradicts type=cluster", "type=rsync"},
		"small, unhealthy":    {"output=small&health=false", "output", "small", "contradicts health=false", "health=true"},
		"empty app":           {"app=", "app", "", "cannot be a name", "1 to 63"},
		"app with a slash":    {"app=a%2Fb", "app", "a/b", "cannot be a name", "letters"},
		"second app":          {"app=web&app=%20", "app", " ", "cannot be a name", "letters"},
		"plus sign not coded": {"cluster=west+bonn", "cluster", "west bonn", "cannot be a name", "+ is sent as %2B"},
		"cluster alone":       {"cluster=bonn", "cluster", "bonn", "cannot be a name", "<provider>+<cluster>"},
		"two plus signs":      {"cluster=a%2Bb%2Bc", "cluster", "a+b+c", "cannot be a name", "<provider>+<cluster>"},
		"cluster of nobody":   {"cluster=%2Bbonn", "cluster", "+bonn", "cannot be a name", "<provider>+<cluster>"},
		"empty resource":      {"resource", "resource", "", "cannot be a name", "253"},
		"control characters":  {"resource=a%00b", "resource", "a\x00b", "cannot be a name", "blanks"},
		"no UTF-8":            {"resource=%ff", "resource", "\xff", "cannot be a name", "blanks"},
		"long resource":       {"resource=" + strings.Repeat("x", 254), "resource", strings.Repeat("x", 200) + "...", "cannot be a name", "253"},
		"many apps":           {strings.Repeat("app=a&", 101), "app", "a,a,a", "is given 101 times", "1 to 100 values"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			_, err := parseQuery(tt.raw)
			refused, ok := errors.AsType[*status.ParameterError](err)
			if !ok {
				t.Fatalf("got error %v", err)
			}
			if refused.Parameter != tt.parameter || refused.Value != tt.value || !strings.Contains(refused.Problem, tt.problem) || !strings.Contains(refused.Allowed, tt.allowed) {
				t.Errorf("got %+v", refused)
			}
			for _, part := range []string{tt.parameter, refused.Problem, refused.Allowed} {
				if !strings.Contains(err.Error(), part) {
					t.Errorf("the text %q lacks %q", err, part)
				}
			}
		})
	}
}

// TestAHundredValuesAreTaken checks that the limit is the one in the error.
func TestAHundredValuesAreTaken(t *testing.T) {
	if _, err := parseQuery(strings.Repeat("resource="+strings.Repeat("x", 253)+"&", 100)); err != nil {
		t.Error(err)
	}
}

// written returns a query as parameters, including defaults.
func written(q status.Query) url.Values {
	if q.ListInstances {
		return url.Values{"instance": {""}}
	}
	values := url.Values{"type": {string(q.Type)}, "output": {string(q.Output)}, "health": {strconv.FormatBool(q.Health)}}
	for name, list := range map[string][]string{"app": q.Apps, "cluster": q.Clusters, "resource": q.Resources} {
		if len(list) > 0 {
			values[name] = list
		}
	}
	if q.Instance != "" {
		values.Set("instance", q.Instance)
	}
	return values
}

// FuzzParseQuery checks that any query is either parsed or rejected with a ParameterError of limited length. A parsed query is
// in canonical form, and is the same when it is written and parsed again.
func FuzzParseQuery(f *testing.F) {
	for _, raw := range []string{"", "type=cluster&output=detail", "instance", "instance=1&health=true", "output=full", "app=a&cluster=a%2Bb&resource=c", "x=%00&x"} {
		f.Add(raw)
	}
	f.Fuzz(func(t *testing.T, raw string) {
		values, err := url.ParseQuery(raw)
		if err != nil {
			return
		}
		q, err := status.ParseQuery(values)
		if err != nil {
			if refused, ok := errors.AsType[*status.ParameterError](err); !ok || len(refused.Parameter) > 203 || len(refused.Value) > 203 || refused.Problem == "" || refused.Allowed == "" {
				t.Errorf("error %q", err)
			}
			return
		}
		if !slices.Contains([]status.Type{status.TypeRsync, status.TypeCluster, status.TypeAll}, q.Type) ||
			!slices.Contains([]status.Output{status.OutputSummary, status.OutputAll, status.OutputDetail}, q.Output) {
			t.Errorf("query %+v", q)
		}
		again := written(q)
		same, err := status.ParseQuery(again)
		if diff := cmp.Diff(q, same); diff != "" || err != nil {
			t.Errorf("written again as %v: %v\n%s", again, err, diff)
		}
	})
}
