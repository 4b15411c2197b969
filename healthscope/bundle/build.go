package bundle

import (
	"bytes"
	"cmp"
	"encoding/json"
	"slices"
	"strings"
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
	// AllowedLabels are the keys of those labels of an object that travel into its entry of status.resources. The default is none.
	AllowedLabels []string
	// ListBudget is how many bytes of JSON the lists of whole objects may take together. Zero means DefaultListBudget.
	ListBudget int
	// HardLimit is how many bytes of JSON the whole status may take. Zero means DefaultHardLimit.
	HardLimit int
	// Unreadable are the kinds whose objects cannot be read at present: forbidden, or no answer. What the previous status says of them stays, as Unknown. The default is none.
	Unreadable []schema.GroupKind
	// User are the user's own rules. The default is none.
	User rules.UserRules
}

// Build makes the status of a bundle from its objects and its previous status,
// which is nil for a new bundle. It does not change the objects.
//
// The status does not depend on the order of the objects, and does not change
// by time alone: since is now, in whole seconds, only for an object that is new
// (by its key and uid) or in another state than before. An object given twice
// counts once.
//
// It is ready when it has resources and all that count are Ready. An empty
// bundle is not: who waits for it waits for something to be there.
//
// When the lists outgrow Options.ListBudget, or the whole outgrows
// Options.HardLimit, the largest lists are left out. When that is not enough,
// entries of resources are: first those of Ready objects. Counts stay exact, and
// truncated says that something is missing.
//
// Objects of Options.Unreadable kinds stay in the status as they were named
// before, Unknown, for that they cannot be seen does not say that they are gone.
// They count, a status that has any is not ready, and the lists leave them out.
// While there are such kinds, what a truncated previous status counted, did not
// name, and is not given stays in resourceCount, and in the summary as Unknown.
func Build(objects []*unstructured.Unstructured, previous *k8spluginv1alpha1.ResourceBundleStateStatus, now time.Time, opts Options) k8spluginv1alpha1.ResourceBundleStateStatus {
	opts.ListBudget = cmp.Or(opts.ListBudget, DefaultListBudget)
	opts.HardLimit = cmp.Or(opts.HardLimit, DefaultHardLimit)
	known := entriesOf(previous)
	items, unread := withUnreadable(itemsOf(objects, opts.User), known, opts)
	link(items)
	for i := range items {
		r := &items[i].result
		if !items[i].unread && len(opts.AllowedLabels) > 0 {
			r.Labels = allowed(labelsOf(items[i].object), opts.AllowedLabels)
		}
		if r.Since.IsZero() {
			r.Since = known.since(*r, now.UTC().Truncate(time.Second))
		}
		known.progress(r, now.UTC().Truncate(time.Second))
	}
	counted := countOf(results(items))
	hidden, hiddenCounted := unnamed(items, previous, known, opts)
	counted.Total, counted.Unknown = counted.Total+hiddenCounted, counted.Unknown+hiddenCounted
	unread = unread || hidden > 0
	summary := summaryOf(counted)
	status := k8spluginv1alpha1.ResourceBundleStateStatus{
		Ready:         !unread && summary.Total > 0 && summary.Ready == summary.Total,
		ResourceCount: int32(len(items) + hidden),
		Summary:       &summary,
		Truncated:     unread,
	}
	for i := range items {
		status.Resources = append(status.Resources, entryOf(items[i].result))
	}
	fillLists(&status, items, opts.ListBudget)
	cutToLimit(&status, opts.HardLimit)
	if forgets(&status, items) {
		return Build(objects, &status, now, opts) // As the next call would: nothing changes without a change of the objects.
	}
	return status
}

// itemsOf judges objects, and returns them sorted by key, each once.
func itemsOf(objects []*unstructured.Unstructured, user rules.UserRules) []item {
	items := make([]item, 0, len(objects))
	for _, object := range objects {
		if object != nil && len(object.Object) > 0 {
			items = append(items, evaluate("", object.Object, user))
		}
	}
	slices.SortFunc(items, compareItems)
	return slices.CompactFunc(items, func(a, b item) bool { return a.result.Key == b.result.Key })
}

// compareItems sorts items by key. Of two items with one key, which no API
// server has but a cache may for a moment, the order is at least the same every time.
func compareItems(a, b item) int {
	if c := a.result.Compare(b.result.Key); c != 0 {
		return c
	}
	if c := cmp.Or(strings.Compare(a.result.Version, b.result.Version), strings.Compare(a.result.UID, b.result.UID)); c != 0 {
		return c
	}
	return bytes.Compare(encode(a.object), encode(b.object))
}

// encode returns the JSON of a value; nothing for a value that has none.
func encode(value any) []byte {
	encoded, err := json.Marshal(value)
	if err != nil {
		return nil
	}
	return encoded
}

// allowed returns those of an object's labels that are allowed to travel; nil when there are none.
func allowed(labels map[string]string, keys []string) map[string]string {
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

// entries remembers the entries of a previous status by key.
type entries map[healthscope.Key]healthscope.Result

// entriesOf reads the entries of a previous status.
func entriesOf(previous *k8spluginv1alpha1.ResourceBundleStateStatus) entries {
	known := entries{}
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

// since returns when the object entered its state: as before if the previous
// status knew the same object in the same state, else now. A time that is still to come is that of a clock that was wrong.
func (e entries) since(r healthscope.Result, now time.Time) time.Time {
	before, ok := e[r.Key]
	if ok && before.UID == r.UID && before.State == r.State && !before.Since.IsZero() && !before.Since.After(now) {
		return before.Since.UTC().Truncate(time.Second)
	}
	return now
}

// progress notes how far an object that is Pending has got since it is, and when it was last seen to get further than ever.
func (e entries) progress(r *healthscope.Result, now time.Time) {
	before, ok := e[r.Key]
	if !ok || before.UID != r.UID || before.State != r.State || before.Progress == nil || r.Progress == nil || !advancing(*r) {
		return
	}
	progress := r.Progress.Following(*before.Progress, now)
	if progress.At.After(now) {
		progress.At = now
	}
	r.Progress = &progress
}
