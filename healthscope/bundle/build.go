package bundle

import (
	"bytes"
	"cmp"
	"encoding/json"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	k8spluginv1alpha1 "github.com/healthscope/healthscope/apis/k8splugin/v1alpha1"
	"github.com/healthscope/healthscope/healthscope"
	"github.com/healthscope/healthscope/healthscope/rules"
)

// Defaults of Options.
const (
	// DefaultListBudget is the default of Options.ListBudget in bytes.
	DefaultListBudget = 256 << 10
	// DefaultHardLimit is the default of Options.HardLimit in bytes. etcd refuses requests above 1.5 MiB.
	DefaultHardLimit = 1 << 20
)

// Options of a bundle. The zero value means the defaults.
type Options struct {
	// AllowedLabels are the keys of the labels that are copied from an object to its entry of status.resources. The default is none.
	AllowedLabels []string
	// ListBudget is how many bytes of JSON the lists of whole objects may take together. Zero means DefaultListBudget.
	ListBudget int
	// HardLimit is how many bytes of JSON the whole status may take. Zero means DefaultHardLimit.
	HardLimit int
	// Unreadable are the kinds whose objects cannot be read at present, because this is forbidden or the API server does not respond. Their entries of the previous status stay, as Unknown. The default is none.
	Unreadable []schema.GroupKind
	// User are the user's own rules. The default is none.
	User rules.UserRules
}

// Build makes the status of a bundle from its objects and its previous status,
// which is nil for a new bundle. It does not change the objects, and their order
// makes no difference. An object that is passed twice counts once. since is now, in
// whole seconds, for an object that is new (by its key and uid) or in another state.
//
// The status is ready when it has resources and all that count are Ready. An empty
// bundle is not ready, because a client that waits for it waits for its objects.
//
// Above Options.ListBudget or Options.HardLimit, Build leaves out the largest lists,
// then entries of resources, those of Ready objects first. Counts stay exact, and
// truncated is true when something is missing.
//
// Objects of Options.Unreadable kinds keep their entries, as Unknown, because they
// may still exist. They count, the status is not ready, and the lists leave them out.
// While there are such kinds, objects that a truncated previous status counted but
// did not name stay in resourceCount, and in the summary as Unknown.
func Build(objects []*unstructured.Unstructured, previous *k8spluginv1alpha1.ResourceBundleStateStatus, now time.Time, opts Options) k8spluginv1alpha1.ResourceBundleStateStatus {
	opts.ListBudget = cmp.Or(opts.ListBudget, DefaultListBudget)
	opts.HardLimit = cmp.Or(opts.HardLimit, DefaultHardLimit)
	now = now.UTC().Truncate(time.Second)
	known := entriesOf(previous)
	items, incomplete := withUnreadable(itemsOf(objects, opts.User), known, opts)
	link(items)
	for i := range items {
		if items[i].object != nil && len(opts.AllowedLabels) > 0 {
			items[i].result.Labels = allowedLabels(labelsOf(items[i].object), opts.AllowedLabels)
		}
		known.carryOver(&items[i].result, now)
	}
	counted := countOf(results(items))
	unnamed, unnamedCounted := countUnnamed(items, previous, known, opts)
	counted.Total, counted.Unknown = counted.Total+unnamedCounted, counted.Unknown+unnamedCounted
	incomplete = incomplete || unnamed > 0
	summary := summaryOf(counted)
	status := k8spluginv1alpha1.ResourceBundleStateStatus{
		Ready:         !incomplete && summary.Total > 0 && summary.Ready == summary.Total,
		ResourceCount: int32(len(items) + unnamed),
		Summary:       &summary,
		Truncated:     incomplete,
	}
	for i := range items {
		status.Resources = append(status.Resources, entryOf(items[i].result))
	}
	fillLists(&status, items, opts.ListBudget)
	truncateToLimit(&status, opts.HardLimit)
	if dropsRemembered(&status, items) {
		return Build(objects, &status, now, opts) // As the next call would: nothing changes without a change of the objects.
	}
	return status
}

// itemsOf judges objects, and returns them sorted by key, each once.
func itemsOf(objects []*unstructured.Unstructured, user rules.UserRules) []item {
	items := make([]item, 0, len(objects))
	for _, object := range objects {
		items = append(items, evaluate("", object.Object, user))
	}
	slices.SortFunc(items, compareItems)
	return slices.CompactFunc(items, func(a, b item) bool { return a.result.Key == b.result.Key })
}

// compareItems sorts items by key. A cache may briefly hold two items with the same
// key; their content makes the order stable.
func compareItems(a, b item) int {
	if c := a.result.Compare(b.result.Key); c != 0 {
		return c
	}
	return bytes.Compare(encode(a.object), encode(b.object))
}

// encode returns the JSON of a value; nil when it cannot be encoded.
func encode(value any) []byte {
	encoded, err := json.Marshal(value)
	if err != nil {
		return nil
	}
	return encoded
}

// allowedLabels returns the labels of an object that may be copied to its entry; nil when there are none.
func allowedLabels(labels map[string]string, keys []string) map[string]string {
	var kept map[string]string
	for _, key := range keys {
		value, ok := labels[key]
		if !ok {
			continue
		}
		if kept == nil {
			kept = map[string]string{}
		}
		kept[key] = value
	}
	return kept
}

// previousEntries holds the entries of a previous status by key.
type previousEntries map[healthscope.Key]healthscope.Result

// entriesOf reads the entries of a previous status.
func entriesOf(previous *k8spluginv1alpha1.ResourceBundleStateStatus) previousEntries {
	known := previousEntries{}
	if previous == nil {
		return known
	}
	for _, entry := range previous.Resources {
		if r, ok := resultOf("", entry); ok {
			known[r.Key] = r
		}
	}
	return known
}

// carryOver sets since when the object is in its state, and its furthest progress since it became Pending, by what the previous status says of
// the same object in the same state. It ignores times in the future, which come from a wrong clock.
func (e previousEntries) carryOver(r *healthscope.Result, now time.Time) {
	before, ok := e[r.Key]
	same := ok && before.UID == r.UID && before.State == r.State
	if r.Since.IsZero() {
		r.Since = now
		if same && !before.Since.IsZero() && !before.Since.After(now) {
			r.Since = before.Since
		}
	}
	if same && before.Progress != nil && r.Progress != nil {
		progress := r.Progress.Merge(*before.Progress, now)
		if progress.At.After(now) {
			progress.At = now
		}
		r.Progress = &progress
	}
}
