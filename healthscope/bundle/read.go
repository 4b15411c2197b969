package bundle

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	k8sjson "k8s.io/apimachinery/pkg/util/json"

	k8spluginv1alpha1 "github.com/healthscope/healthscope/apis/k8splugin/v1alpha1"
	"github.com/healthscope/healthscope/healthscope"
	"github.com/healthscope/healthscope/healthscope/rules"
)

// maxMalformed is how many places Contents.Malformed names at most, because a bundle may consist of nothing else.
const maxMalformed = 100

// Contents is what a bundle says.
type Contents struct {
	// Results are the raw results of the bundle's objects, sorted by key. They are not judged yet.
	Results []healthscope.Result
	// Own is true when a HealthScope monitor has filled the bundle. Other monitors keep no time and no count that is to be trusted.
	Own bool
	// Observed is true when some monitor has reported, even if it saw nothing.
	Observed bool
	// Malformed names what could not be read, such as "summary", "podStatuses" or "podStatuses[3]"; at most 100 places.
	Malformed []string
	// Truncated is true when the bundle does not name all its objects, so that one that is not named may exist. Lists of whole objects that are left out do not make it so.
	Truncated bool
	// Unlisted counts what the bundle counts and does not name, by state: its own summary less what its named objects
	// come to at a time when nothing is too late. Of Healthy it has the ready ones. It is zero unless Truncated.
	Unlisted healthscope.Summary
}

// Read returns what a bundle of any generation says, for the cluster it is in.
//
// A bundle that a HealthScope monitor has filled, which has a summary, is taken
// at its word. The lists of other monitors are judged here, by the same rules
// and with the same links from owned to owner; their results have no Since,
// because these monitors keep no time. Trim keeps these results in
// status.resources, which counts when there is no summary and nothing in the lists.
//
// It never fails. What cannot be read is named in Malformed, and the rest counts.
//
// The lists are judged by the program's own rules; Trim knows the user's, too.
func Read(cluster string, b *k8spluginv1alpha1.ResourceBundleState) Contents {
	return read(cluster, b, nil)
}

// read is Read with rules of the user, which may be nil.
func read(cluster string, b *k8spluginv1alpha1.ResourceBundleState, user rules.UserRules) Contents {
	r := reader{cluster: cluster, user: user, malformed: slices.Clone(b.Status.Malformed)}
	for i, place := range r.malformed {
		r.malformed[i] = healthscope.Clean(place)
	}
	observed := b.Status.Summary != nil || len(b.Status.Resources) > 0 || len(b.Status.Malformed) > 0
	if b.Status.Summary == nil {
		observed = r.readLists(&b.Status) || observed
	}
	if len(r.results) == 0 {
		r.readEntries(b.Status.Resources)
	}
	slices.SortStableFunc(r.results, func(x, y healthscope.Result) int { return x.Compare(y.Key) })
	contents := Contents{
		Results: r.results, Own: b.Status.Summary != nil, Observed: observed, Malformed: r.malformed,
		Truncated: b.Status.Truncated && len(r.results) < int(b.Status.ResourceCount),
	}
	if contents.Own && contents.Truncated {
		contents.Unlisted = unlisted(*b.Status.Summary, r.results)
	}
	return contents
}

// unlisted returns what a summary counts beyond the results.
func unlisted(all k8spluginv1alpha1.ResourceCounts, listed []healthscope.Result) healthscope.Summary {
	named := summaryOf(countOf(listed))
	rest := healthscope.Summary{
		Ready: int(max(all.Ready-named.Ready, 0)), Pending: int(max(all.Pending-named.Pending, 0)),
		Failed: int(max(all.Failed-named.Failed, 0)), Unknown: int(max(all.Unknown-named.Unknown, 0)),
	}
	rest.Total = rest.Ready + rest.Pending + rest.Failed + rest.Unknown
	rest.Healthy = rest.Ready
	return rest
}

// reader reads one bundle.
type reader struct {
	cluster   string
	user      rules.UserRules
	results   []healthscope.Result
	malformed []string
}

// reportf names a place that cannot be read.
func (r *reader) reportf(format string, args ...any) {
	if len(r.malformed) < maxMalformed {
		r.malformed = append(r.malformed, fmt.Sprintf(format, args...))
	}
}

// readEntries reads status.resources as a HealthScope monitor writes it.
func (r *reader) readEntries(entries []k8spluginv1alpha1.ResourceHealth) {
	for i, entry := range entries {
		result, ok := resultOf(r.cluster, entry)
		if !ok {
			r.reportf("resources[%d]", i)
			continue
		}
		r.results = append(r.results, result)
	}
}

// readLists judges the objects in the lists of another monitor, and reports whether one has written any.
func (r *reader) readLists(status *k8spluginv1alpha1.ResourceBundleStateStatus) bool {
	var items []item
	observed := visit(status, func(object map[string]any) { items = append(items, evaluate(r.cluster, object, r.user)) }, r.reportf)
	slices.SortStableFunc(items, func(a, b item) int { return a.result.Compare(b.result.Key) })
	items = slices.CompactFunc(items, func(a, b item) bool { return a.result.Key == b.result.Key }) // The recorder puts an object into two lists.
	link(items)
	r.results = results(items)
	return observed
}

// Objects returns the whole objects in the lists of a status of any generation, list by list in the order of their names.
// What an entry leaves out because its list says it is added. What cannot be read, or has no kind or no name, is left out.
func Objects(status *k8spluginv1alpha1.ResourceBundleStateStatus) []map[string]any {
	var objects []map[string]any
	visit(status, func(object map[string]any) { objects = append(objects, object) }, func(string, ...any) {})
	return objects
}

// visit calls found with each object in the lists, and lost with each place that cannot be read. It reports whether a monitor has written any list.
func visit(status *k8spluginv1alpha1.ResourceBundleStateStatus, found func(map[string]any), lost func(format string, args ...any)) bool {
	fields := status.Lists()
	written := false
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		list := *fields[name]
		if len(list) == 0 || string(list) == "null" {
			continue
		}
		written = true
		var entries []json.RawMessage
		if json.Unmarshal(list, &entries) != nil {
			lost("%s", name)
			continue
		}
		for i, entry := range entries {
			if object := objectOf(name, entry); object != nil {
				found(object)
			} else {
				lost("%s[%d]", name, i)
			}
		}
	}
	return written
}

// objectOf returns the object in an entry of a list; nil when there is none, or it has no kind or no name.
func objectOf(list string, entry json.RawMessage) map[string]any {
	var object map[string]any
	if list == otherKinds {
		object = objectInside(entry)
	} else if k8sjson.Unmarshal(entry, &object) == nil && object != nil {
		kind := kindOf[list]
		supply(object, "apiVersion", joinAPIVersion(kind.group, kind.version))
		supply(object, "kind", kind.kind)
	}
	if text(object["kind"]) == "" || text(child(object, "metadata")["name"]) == "" {
		return nil
	}
	return object
}

// objectInside returns the object inside an entry of resourceStatuses.
func objectInside(entry json.RawMessage) map[string]any {
	var wrapper OtherResource
	var object map[string]any
	if json.Unmarshal(entry, &wrapper) != nil || k8sjson.Unmarshal(wrapper.Res, &object) != nil || object == nil {
		return nil
	}
	supply(object, "apiVersion", joinAPIVersion(wrapper.Group, wrapper.Version))
	supply(object, "kind", wrapper.Kind)
	supply(object, "metadata", map[string]any{})
	if metadata := child(object, "metadata"); metadata != nil {
		supply(metadata, "name", wrapper.Name)
		supply(metadata, "namespace", wrapper.Namespace)
	}
	return object
}

// supply sets a field that an object lacks.
func supply(object map[string]any, field string, value any) {
	if object[field] == nil && value != "" {
		object[field] = value
	}
}

// joinAPIVersion puts group and version together.
func joinAPIVersion(group, version string) string {
	if group == "" {
		return version
	}
	return group + "/" + version
}
