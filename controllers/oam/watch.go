package oam

import (
	"context"
	"encoding/json"
	"reflect"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"

	corev1alpha2 "github.com/healthscope/healthscope/apis/core/v1alpha2"
	"github.com/healthscope/healthscope/controllers/observe"
)

// objectRules set how long a watch of workloads or Services may fail or take to settle.
var objectRules = observe.Rules{Grace: 10 * time.Second, CatchUp: 500 * time.Millisecond}

// maxRefused is the longest time between attempts to watch a kind that is not served.
const maxRefused = 30 * time.Second

// watchedObject holds the fields of a workload or a Service that the controller needs.
type watchedObject struct {
	name string
	uid  types.UID
	// application and component are the values of its labels.
	application, component string
	// services are the Services that a workload of OAM names in status.resources.
	services []string
	// scopes holds the scopes whose labels on a Service belong to the field manager of an ApplicationConfiguration, by field manager.
	scopes map[string][]string
	// scopeLabels are the labels of scopes on a Service, of any owner. Once another owner removes one, the Service can be labelled.
	scopeLabels map[string]string
}

// belongsTo reports whether the object has the labels that OAM runtimes set on the objects of a component.
func (o *watchedObject) belongsTo(application, component string) bool {
	return o.application == application && o.component == component
}

// kindWatch watches the objects of a kind.
type kindWatch struct {
	kind     schema.GroupVersionKind
	informer *observe.Informer
	store    *observe.Store[*watchedObject]
}

// watches watch the kinds that workloads of components may have, and Services.
type watches struct {
	kinds []*kindWatch
	// changed is called for an object that was added, changed or deleted, and with nil when it may be any objects.
	changed func(kind schema.GroupVersionKind, namespace string, o *watchedObject)
	// started is closed when changed is set.
	started chan struct{}
}

// newWatches returns watches of kinds. They begin when the manager and the controller have started.
func newWatches(mgr ctrl.Manager, kinds []schema.GroupVersionKind) (*watches, error) {
	objects, err := dynamic.NewForConfigAndClient(mgr.GetConfig(), mgr.GetHTTPClient())
	if err != nil {
		return nil, errors.Wrap(err, "cannot make a client for workloads")
	}
	metadatas, err := metadata.NewForConfigAndClient(metadata.ConfigFor(mgr.GetConfig()), mgr.GetHTTPClient())
	if err != nil {
		return nil, errors.Wrap(err, "cannot make a client for metadata")
	}
	w := &watches{started: make(chan struct{})}
	for _, kind := range kinds {
		resource, _ := meta.UnsafeGuessKindToResource(kind)
		source := observe.NewListerWatcher(metadatas.Resource(resource))
		if slices.Contains(oamKinds, kind) { // The controller reads their status too.
			source = observe.NewListerWatcher(objects.Resource(resource))
		}
		w.kinds = append(w.kinds, w.newKindWatch(kind, source))
	}
	return w, nil
}

func (w *watches) newKindWatch(kind schema.GroupVersionKind, source cache.ListerWatcher) *kindWatch {
	same := func(a, b *watchedObject) bool { return reflect.DeepEqual(a, b) }
	store := observe.NewStore(newWatchedObject, same, func(name types.NamespacedName, before, after *watchedObject) {
		for _, o := range []*watchedObject{before, after} {
			if o != nil {
				w.changed(kind, name.Namespace, o)
			}
		}
	})
	informer := observe.NewInformer(objectRules, observe.InformerOptions{
		TrackedOptions: observe.TrackedOptions{Clock: clock.RealClock{}, MaxRetryInterval: maxRefused, Describe: func(_ observe.Reason, err error) string { return err.Error() }},
		Open:           func(context.Context) (cache.ListerWatcher, error) { return source, nil },
		Store:          store, Changed: func(observe.State) { w.changed(kind, "", nil) },
	})
	return &kindWatch{kind, informer, store}
}

// Start implements manager.Runnable: it watches until ctx ends.
func (w *watches) Start(ctx context.Context) error {
	select {
	case <-w.started:
	case <-ctx.Done():
		return nil
	}
	var running sync.WaitGroup
	defer running.Wait()
	for _, k := range w.kinds {
		running.Go(func() { k.informer.Run(ctx) })
	}
	return nil
}

// synced reports whether all kinds have been read. It returns an error when one cannot be read.
func (w *watches) synced() (bool, error) {
	for _, k := range w.kinds {
		switch s := k.informer.State(); {
		case s.Status == observe.Pending:
			return false, nil
		case s.Status == observe.Problem && s.Reason != observe.NotServed:
			return false, errors.Errorf("cannot watch objects of kind %s: %s", k.kind.Kind, s.Message)
		}
	}
	return true, nil
}

// list returns the objects of a kind in a namespace that match, sorted by name; none when the kind is not served.
func (w *watches) list(kind schema.GroupVersionKind, namespace string, matches func(*watchedObject) bool) []*watchedObject {
	for _, k := range w.kinds {
		if k.kind == kind && k.informer.State().Status == observe.Ready {
			return slices.SortedFunc(slices.Values(k.store.In(namespace, matches)), func(a, b *watchedObject) int { return strings.Compare(a.name, b.name) })
		}
	}
	return nil
}

// newWatchedObject returns the fields of an object that the controller needs.
func newWatchedObject(of any) *watchedObject {
	named, err := meta.Accessor(of)
	if err != nil { // Clients return only objects with metadata.
		return &watchedObject{}
	}
	labels := named.GetLabels()
	o := &watchedObject{name: named.GetName(), uid: named.GetUID(), application: labels[corev1alpha2.LabelApplication], component: labels[corev1alpha2.LabelComponent]}
	if u, ok := of.(*unstructured.Unstructured); ok {
		o.services = servicesOf(u)
	}
	for key, value := range labels {
		if strings.HasPrefix(key, corev1alpha2.LabelScopePrefix) {
			if o.scopeLabels == nil {
				o.scopeLabels = map[string]string{}
			}
			o.scopeLabels[key] = value
		}
	}
	for _, entry := range named.GetManagedFields() {
		if scopes := scopeLabelsOf(entry); len(scopes) > 0 {
			if o.scopes == nil {
				o.scopes = map[string][]string{}
			}
			o.scopes[entry.Manager] = append(o.scopes[entry.Manager], scopes...)
		}
	}
	return o
}

// servicesOf returns the names of the Services that a workload of OAM names in status.resources.
func servicesOf(workload *unstructured.Unstructured) (names []string) {
	resources, _, _ := unstructured.NestedSlice(workload.Object, "status", "resources") // A list of another form names no Service.
	for _, item := range resources {
		entry, _ := item.(map[string]any)
		if name, ok := entry["name"].(string); ok && entry["kind"] == "Service" && entry["apiVersion"] == "v1" {
			names = append(names, name)
		}
	}
	return names
}

// scopeLabelsOf returns the scopes whose label an entry of managed fields owns, sorted; none if the field manager is not that of an
// ApplicationConfiguration.
func scopeLabelsOf(entry metav1.ManagedFieldsEntry) (scopes []string) {
	var fields struct {
		Metadata struct {
			Labels map[string]any `json:"f:labels"`
		} `json:"f:metadata"`
	}
	if !strings.HasPrefix(entry.Manager, fieldManagerPrefix) || entry.FieldsV1 == nil || json.Unmarshal(entry.FieldsV1.GetRawBytes(), &fields) != nil {
		return nil
	}
	for key := range fields.Metadata.Labels {
		if scope, ok := strings.CutPrefix(key, "f:"+corev1alpha2.LabelScopePrefix); ok {
			scopes = append(scopes, scope)
		}
	}
	slices.Sort(scopes)
	return scopes
}
