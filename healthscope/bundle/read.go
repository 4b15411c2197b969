package bundle

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	k8sjson "k8s.io/apimachinery/pkg/util/json"

	k8spluginv1alpha1 "github.com/healthscope/healthscope/apis/k8splugin/v1alpha1"
	"github.com/healthscope/healthscope/healthscope"
	"github.com/healthscope/healthscope/healthscope/rules"
)

// maxMalformed bounds the entries of Contents.Malformed, because a bundle may consist of nothing else.
const maxMalformed = 100

// Contents is the decoded content of a bundle.
type Contents struct {
	// Results are the raw results of the bundle's objects, sorted by key. Judge has not processed them yet.
	Results []healthscope.Result
	// Own is true when a HealthScope monitor has filled the bundle. Other monitors keep no times, and their counts are not reliable.
	Own bool
	// Observed is true when a monitor has reported, even if it found no objects.
	Observed bool
	// Malformed names the parts that could not be read, such as "summary", "podStatuses" or "podStatuses[3]"; at most 100.
	Malformed []string
	// Truncated is true when the bundle does not name all its objects, so that an object that is not named may exist. Dropped lists of whole objects do not count.
	Truncated bool
	// Unlisted counts, by state, the objects that the bundle counts but does not name: its own summary minus the summary of its
	// named objects before any time limit. Healthy is equal to Ready. It is zero unless Truncated.
	Unlisted healthscope.Summary
}

// Read returns the contents of a bundle of any generation, for the cluster it is in.
//
// Read trusts a bundle with a summary, which a HealthScope monitor has filled. It
// evaluates the lists of other monitors by the built-in rules, and finds owners as
// Build does; these results have no Since. Trim keeps such results in
// status.resources, which Read uses when the lists have no objects.
//
// Read never fails. It names the parts that it cannot read in Malformed, and returns the rest.
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
		contents.Unlisted = countUnlisted(*b.Status.Summary, r.results)
	}
	return contents
}

// countUnlisted returns the objects that a summary counts beyond the results.
func countUnlisted(all k8spluginv1alpha1.ResourceCounts, listed []healthscope.Result) healthscope.Summary {
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

// malformedf adds a part that cannot be read, up to maxMalformed.
func (r *reader) malformedf(format string, args ...any) {
	if len(r.malformed) < maxMalformed {
		r.malformed = append(r.malformed, fmt.Sprintf(format, args...))
	}
}

// readEntries reads status.resources as a HealthScope monitor writes it.
func (r *reader) readEntries(entries []k8spluginv1alpha1.ResourceHealth) {
	for i, entry := range entries {
		result, ok := resultOf(r.cluster, entry)
		if !ok {
			r.malformedf("resources[%d]", i)
			continue
		}
		r.results = append(r.results, result)
	}
}

// readLists evaluates the objects in the lists of another monitor, and reports whether any list has been written.
func (r *reader) readLists(status *k8spluginv1alpha1.ResourceBundleStateStatus) bool {
	objects, observed := r.objects(status)
	items := make([]item, len(objects))
	for i, object := range objects {
		items[i] = evaluate(r.cluster, object, r.user)
	}
	slices.SortStableFunc(items, func(a, b item) int { return a.result.Compare(b.result.Key) })
	items = slices.CompactFunc(items, func(a, b item) bool { return a.result.Key == b.result.Key }) // The recorder puts an object into two lists.
	link(items)
	r.results = results(items)
	return observed
}

// Objects returns the whole objects in the lists of a status of any generation, list by list in the order of their names.
// It adds apiVersion and kind where an entry leaves them to its list. It omits entries that cannot be read, or have no kind
// or no name.
func Objects(status *k8spluginv1alpha1.ResourceBundleStateStatus) []map[string]any {
	objects, _ := new(reader).objects(status)
	return objects
}

// objects returns the objects in the lists of a status, and reports whether a monitor has written any list.
func (r *reader) objects(status *k8spluginv1alpha1.ResourceBundleStateStatus) (objects []map[string]any, written bool) {
	fields := status.Lists()
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		list := *fields[name]
		if len(list) == 0 || string(list) == "null" {
			continue
		}
		written = true
		var entries []json.RawMessage
		if json.Unmarshal(list, &entries) != nil {
			r.malformedf("%s", name)
		}
		for i, entry := range entries {
			if object := objectOf(name, entry); object != nil {
				objects = append(objects, object)
			} else {
				r.malformedf("%s[%d]", name, i)
			}
		}
	}
	return objects, written
}

// objectOf returns the object in an entry of a list; nil when there is none, or it has no kind or no name.
func objectOf(list string, entry json.RawMessage) map[string]any {
	var object map[string]any
	if list == resourceStatusesList {
		object = unwrapObject(entry)
	} else if k8sjson.Unmarshal(entry, &object) == nil && object != nil {
		kind := kindOf[list]
		setDefault(object, "apiVersion", schema.GroupVersion{Group: kind.group, Version: kind.version}.String())
		setDefault(object, "kind", kind.kind)
	}
	if text(object["kind"]) == "" || text(child(object, "metadata")["name"]) == "" {
		return nil
	}
	return object
}

// unwrapObject returns the object in an entry of resourceStatuses.
func unwrapObject(entry json.RawMessage) map[string]any {
	var wrapper OtherResource
	var object map[string]any
	if json.Unmarshal(entry, &wrapper) != nil || k8sjson.Unmarshal(wrapper.Res, &object) != nil || object == nil {
		return nil
	}
	setDefault(object, "apiVersion", schema.GroupVersion{Group: wrapper.Group, Version: wrapper.Version}.String())
	setDefault(object, "kind", wrapper.Kind)
	setDefault(object, "metadata", map[string]any{})
	if metadata := child(object, "metadata"); metadata != nil {
		setDefault(metadata, "name", wrapper.Name)
		setDefault(metadata, "namespace", wrapper.Namespace)
	}
	return object
}

// setDefault sets a field that is absent from an object.
func setDefault(object map[string]any, field string, value any) {
	if object[field] == nil && value != "" {
		object[field] = value
	}
}

// Trim reduces a bundle, in place, to what the cache of a hub holds: the required
// metadata, the selector, and a status with resources and summary but without the
// lists. For a bundle of another monitor, Trim fills in resources; the bundle still
// has no summary, which identifies it as one of another monitor, and an empty list
// shows that it was filled. Read returns the same contents before and after.
//
// Trim evaluates the lists of another monitor by the user's rules, which may be nil, and by the built-in rules.
func Trim(b *k8spluginv1alpha1.ResourceBundleState, user rules.UserRules) {
	contents := read("", b, user)
	status := k8spluginv1alpha1.ResourceBundleStateStatus{
		Ready: b.Status.Ready, ResourceCount: b.Status.ResourceCount, Summary: b.Status.Summary,
		Truncated: contents.Truncated, Malformed: contents.Malformed,
	}
	for _, result := range contents.Results {
		status.Resources = append(status.Resources, entryOf(result))
	}
	if !contents.Own && contents.Observed {
		status.ResourceStatuses = k8spluginv1alpha1.RawList("[]")
	}
	b.ObjectMeta = metav1.ObjectMeta{
		Name: b.Name, Namespace: b.Namespace, Labels: b.Labels, UID: b.UID,
		ResourceVersion: b.ResourceVersion, Generation: b.Generation, CreationTimestamp: b.CreationTimestamp,
	}
	b.Status = status
}
