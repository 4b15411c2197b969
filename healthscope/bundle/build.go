package bundle

import (
	"bytes"
	"cmp"
	"encoding/json"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	k8spluginv1alpha1 "github.com/healthscope/healthscope/apis/k8splugin/v1alpha1"
	"github.com/healthscope/healthscope/healthscope"
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
// bundle is not: whoever waits for it waits for something to be there.
//
// When the lists outgrow Options.ListBudget, or the whole outgrows
// Options.HardLimit, the largest lists are left out. When that is not enough,
// entries of resources are: first those of Ready objects. Counts stay exact, and
// truncated says that something is missing.
func Build(objects []*unstructured.Unstructured, previous *k8spluginv1alpha1.ResourceBundleStateStatus, now time.Time, opts Options) k8spluginv1alpha1.ResourceBundleStateStatus {
	opts.ListBudget = cmp.Or(opts.ListBudget, DefaultListBudget)
	opts.HardLimit = cmp.Or(opts.HardLimit, DefaultHardLimit)
	items := itemsOf(objects)
	link(items)
	times := timesOf(previous)
	for i := range items {
		r := &items[i].result
		r.Labels = allowedLabels(items[i].object, opts.AllowedLabels)
		r.Since = times.since(*r, now.UTC().Truncate(time.Second))
	}
	summary := summaryOf(results(items))
	status := k8spluginv1alpha1.ResourceBundleStateStatus{
		Ready:         summary.Total > 0 && summary.Ready == summary.Total,
		ResourceCount: int32(len(items)),
		Summary:       &summary,
	}
	for i := range items {
		status.Resources = append(status.Resources, entryOf(items[i].result))
	}
	fillLists(&status, items, opts.ListBudget)
	cutToLimit(&status, opts.HardLimit)
	return status
}

// itemsOf judges objects, and returns them sorted by key, each once.
func itemsOf(objects []*unstructured.Unstructured) []item {
	items := make([]item, 0, len(objects))
	for _, object := range objects {
		if object != nil && len(object.Object) > 0 {
			items = append(items, evaluate("", object.Object))
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

// allowedLabels returns those labels of an object that are allowed to travel; nil when there are none.
func allowedLabels(object map[string]any, allowed []string) map[string]string {
	if len(allowed) == 0 {
		return nil
	}
	all := child(child(object, "metadata"), "labels")
	var kept map[string]string
	for _, name := range allowed {
		value, ok := all[name].(string)
		if !ok {
			continue
		}
		if kept == nil {
			kept = map[string]string{}
		}
		kept[name] = value
	}
	return kept
}

// times remembers the entries of a previous status by key.
type times map[healthscope.Key]healthscope.Result

// timesOf reads the entries of a previous status.
func timesOf(previous *k8spluginv1alpha1.ResourceBundleStateStatus) times {
	t := times{}
	if previous == nil {
		return t
	}
	for _, entry := range previous.Resources {
		if r, ok := resultOf("", entry); ok {
			t[r.Key] = r
		}
	}
	return t
}

// since returns when the object entered its state: as before if the previous status knew the same object in the same state, else now.
func (t times) since(r healthscope.Result, now time.Time) time.Time {
	before, ok := t[r.Key]
	if ok && before.UID == r.UID && before.State == r.State && !before.Since.IsZero() {
		return before.Since.UTC().Truncate(time.Second)
	}
	return now
}
