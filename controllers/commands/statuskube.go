package commands

import (
	"context"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/cli-runtime/pkg/printers"
	"k8s.io/client-go/dynamic"

	corev1alpha2 "github.com/healthscope/healthscope/apis/core/v1alpha2"
	"github.com/healthscope/healthscope/healthscope"
	"github.com/healthscope/healthscope/healthscope/api"
)

// watchTimeout limits the duration of one watch. The next watch finds the changes that were missed on a dead connection.
const watchTimeout = 5 * time.Minute

// scopeReader reads the HealthScopes of a target from the API server.
type scopeReader struct {
	client  dynamic.ResourceInterface
	target  target
	timeout time.Duration
}

// newScopeReader returns a reader for the scopes of a target. The reader's target has the namespace from the flags or the kubeconfig context.
func (f *statusFlags) newScopeReader(t target) (scopeReader, error) {
	config, err := loadRESTConfig(f.kubeconfig, f.context, "status")
	if err != nil {
		return scopeReader{}, errors.Wrap(err, "cannot find out how to reach the API server")
	}
	config.Timeout = 0 // A timeout would end watches. Each request has its own deadline.
	namespace := f.namespace
	if namespace == "" && !f.allNamespaces {
		if namespace, _, err = newClientConfig(f.kubeconfig, f.context).Namespace(); err != nil {
			return scopeReader{}, usageError(err)
		}
	}
	if f.allNamespaces {
		namespace = metav1.NamespaceAll
	}
	t = t.inNamespace(namespace)
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		return scopeReader{}, usageError(err)
	}
	return scopeReader{client.Resource(corev1alpha2.GroupVersion.WithResource("healthscopes")).Namespace(t.namespace()), t, f.timeout}, nil
}

// read returns the scopes of the target. For a target that is one scope it returns a list with one item.
func (s scopeReader) read(ctx context.Context) (*unstructured.UnstructuredList, error) {
	if s.target.kind != targetScope {
		return s.list(ctx)
	}
	ctx, cancel := s.withTimeout(ctx, s.timeout)
	defer cancel()
	found, err := s.client.Get(ctx, s.target.name(), metav1.GetOptions{})
	if err != nil {
		return nil, s.explainError(ctx, err)
	}
	return &unstructured.UnstructuredList{Items: []unstructured.Unstructured{*found}}, nil
}

func (s scopeReader) withTimeout(ctx context.Context, timeout time.Duration) (context.Context, context.CancelFunc) {
	return context.WithTimeoutCause(ctx, timeout, errors.Errorf("no answer within %s; increase --timeout", s.timeout))
}

// explainError returns an error of the API server with advice for the user.
func (s scopeReader) explainError(ctx context.Context, err error) error {
	var status apierrors.APIStatus
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case apierrors.IsNotFound(err) && errors.As(err, &status) && status.Status().Details != nil && status.Status().Details.Name == "":
		return errors.Errorf("%w; the cluster has no CustomResourceDefinition of HealthScopes, so this may not be a hub", err)
	}
	return requestError(ctx, err)
}

// list lists the scopes. A watch can start from the list's resource version.
func (s scopeReader) list(ctx context.Context) (*unstructured.UnstructuredList, error) {
	ctx, cancel := s.withTimeout(ctx, s.timeout)
	defer cancel()
	list, err := s.client.List(ctx, s.options(metav1.ListOptions{}))
	return list, s.explainError(ctx, err)
}

// watch calls handle for each change of the scopes after the resource version from, until the watch ends.
func (s scopeReader) watch(ctx context.Context, from string, handle func(watch.Event) error) error {
	timeoutSeconds := int64(watchTimeout.Seconds())
	ctx, cancel := s.withTimeout(ctx, watchTimeout+s.timeout)
	defer cancel()
	w, err := s.client.Watch(ctx, s.options(metav1.ListOptions{ResourceVersion: from, TimeoutSeconds: &timeoutSeconds}))
	if err != nil {
		return s.explainError(ctx, err)
	}
	defer w.Stop()
	for event := range w.ResultChan() {
		if event.Type == watch.Error {
			return apierrors.FromObject(event.Object)
		}
		if err := handle(event); err != nil {
			return err
		}
	}
	return nil
}

// options adds the selector of the target to the options of a list or watch.
func (s scopeReader) options(o metav1.ListOptions) metav1.ListOptions {
	if s.target.kind == targetScope {
		o.FieldSelector = fields.OneTermEqualSelector(metav1.ObjectNameField, s.target.name()).String()
	}
	return o
}

// scopeView prints scopes from the API server in an output format.
type scopeView struct {
	printer *statusPrinter
	// objects prints objects; nil for tables.
	objects printers.ResourcePrinter
	sortBy  *sortKey
	// lastTable is the table that was printed last.
	lastTable string
}

// print prints scopes, and returns their health.
func (v *scopeView) print(scopes *unstructured.UnstructuredList) (healthscope.Health, error) {
	page, err := v.page(scopes)
	if err != nil {
		return "", err
	}
	switch {
	case v.objects == nil:
		_, err = io.WriteString(v.printer.out, page.text(v.printer.colour))
	case v.printer.target.kind == targetScope:
		err = v.objects.PrintObj(&scopes.Items[0], v.printer.out)
	default:
		err = v.objects.PrintObj(scopes, v.printer.out)
	}
	return page.health, err
}

// page sorts scopes and returns the page that a table shows of them.
func (v *scopeView) page(scopes *unstructured.UnstructuredList) (*page, error) {
	slices.SortFunc(scopes.Items, func(a, b unstructured.Unstructured) int {
		return strings.Compare(a.GetNamespace()+"/"+a.GetName(), b.GetNamespace()+"/"+b.GetName())
	})
	if err := v.sortBy.sort(scopes.Items); err != nil {
		return nil, err
	}
	documents := make([]api.Scope, len(scopes.Items))
	for i := range scopes.Items {
		var s corev1alpha2.HealthScope
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(scopes.Items[i].Object, &s); err != nil {
			return nil, errors.Wrapf(err, "cannot read HealthScope %q", scopes.Items[i].GetNamespace()+"/"+scopes.Items[i].GetName())
		}
		documents[i] = api.NewScope(&s)
	}
	wide := v.printer.format == formatWide
	if v.printer.target.kind == targetScope {
		return scopePage(documents[0], wide, time.Now()), nil
	}
	return scopesPage(documents, wide), nil
}

// watchAttempt returns a function that prints scopes whenever they change, until the watch ends. The function reports whether it has read the scopes.
func (v *scopeView) watchAttempt(s scopeReader) func(context.Context) (bool, error) {
	known := map[string]unstructured.Unstructured{} // By UID.
	listedOnce := false
	return func(ctx context.Context) (progress bool, err error) {
		list, err := s.list(ctx)
		if err != nil {
			return false, err
		}
		if !listedOnce && s.target.kind == targetScope && len(list.Items) == 0 {
			return false, apierrors.NewNotFound(corev1alpha2.GroupVersion.WithResource("healthscopes").GroupResource(), s.target.name())
		}
		before := known
		known = map[string]unstructured.Unstructured{}
		var changed []unstructured.Unstructured
		for _, o := range list.Items {
			known[string(o.GetUID())] = o
			if old := before[string(o.GetUID())]; old.GetResourceVersion() != o.GetResourceVersion() {
				changed = append(changed, o)
			}
		}
		if err := v.printChanges(known, changed); err != nil {
			return true, err
		}
		listedOnce = true
		return true, s.watch(ctx, list.GetResourceVersion(), func(event watch.Event) error {
			o, ok := event.Object.(*unstructured.Unstructured)
			switch {
			case !ok || event.Type == watch.Bookmark:
				return nil
			case event.Type == watch.Deleted:
				delete(known, string(o.GetUID()))
			default:
				known[string(o.GetUID())] = *o
			}
			return v.printChanges(known, []unstructured.Unstructured{*o})
		})
	}
}

// printChanges prints the scopes that have changed, or the table of all scopes.
func (v *scopeView) printChanges(known map[string]unstructured.Unstructured, changed []unstructured.Unstructured) error {
	if v.objects != nil {
		for i := range changed {
			if err := v.objects.PrintObj(&changed[i], v.printer.out); err != nil {
				return errors.Wrap(errOutput, err.Error())
			}
		}
		return nil
	}
	text := v.printer.target.String() + " does not exist any more\n"
	if len(known) > 0 || v.printer.target.kind == targetScopes {
		page, err := v.page(&unstructured.UnstructuredList{Items: slices.Collect(maps.Values(known))})
		if err != nil {
			return err
		}
		text = page.text(v.printer.colour)
	}
	if text == v.lastTable {
		return nil
	}
	v.lastTable = text
	return v.printer.printNext(text)
}
