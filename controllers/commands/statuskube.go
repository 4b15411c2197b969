package commands

import (
	"context"
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
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/cli-runtime/pkg/printers"
	"k8s.io/client-go/dynamic"

	corev1alpha2 "github.com/healthscope/healthscope/apis/core/v1alpha2"
	"github.com/healthscope/healthscope/healthscope"
	"github.com/healthscope/healthscope/healthscope/api"
)

// scopesResource is the resource of HealthScopes.
var scopesResource = corev1alpha2.GroupVersion.WithResource("healthscopes")

// watchTimeout limits the duration of one watch. The next watch finds the changes that were missed on a dead connection.
const watchTimeout = 5 * time.Minute

// scopeSource reads the HealthScopes of a target from the API server.
type scopeSource struct {
	*statusView

	client  dynamic.ResourceInterface
	timeout time.Duration
	// selector is the field selector of a target that is one scope.
	selector string
	// objects prints objects; nil for tables.
	objects printers.ResourcePrinter
	sortBy  *sortKey
	// known are the scopes that follow has seen, nil before its first list. lastTable is the table that it has shown last.
	known     map[types.UID]unstructured.Unstructured
	lastTable string
}

// newScopeSource returns the source of a view. The view's target gets the namespace of the flags or the kubeconfig context.
func (f *statusFlags) newScopeSource(v *statusView) (*scopeSource, error) {
	s := &scopeSource{statusView: v, timeout: f.timeout}
	var err error
	if s.objects, err = newObjectPrinter(f.output); err != nil {
		return nil, err
	}
	if s.sortBy, err = parseSortKey(f.sortBy); err != nil {
		return nil, err
	}
	config, err := loadRESTConfig(f.kubeconfig, f.context, "status")
	if err != nil {
		return nil, errors.Wrap(err, "cannot find out how to reach the API server")
	}
	config.Timeout = 0 // A timeout would end watches. Each request has its own deadline.
	namespace := f.namespace
	if f.allNamespaces {
		namespace = metav1.NamespaceAll
	} else if namespace == "" {
		if namespace, _, err = newClientConfig(f.kubeconfig, f.context).Namespace(); err != nil {
			return nil, err
		}
	}
	v.target = v.target.inNamespace(namespace)
	if len(v.target.names) > 0 {
		namespace = v.target.names[0]
	}
	if v.target.kind == targetScope {
		s.selector = fields.OneTermEqualSelector(metav1.ObjectNameField, v.target.name()).String()
	}
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	s.client = client.Resource(scopesResource).Namespace(namespace)
	return s, nil
}

// get implements statusSource.
func (s *scopeSource) get(ctx context.Context) (string, healthscope.Health, error) {
	scopes, err := s.read(ctx)
	if err != nil {
		return "", "", err
	}
	page, err := s.page(scopes.Items)
	if err != nil {
		return "", "", printError{err}
	}
	if s.objects == nil {
		return page.text(s.colour), page.health, nil
	}
	var object runtime.Object = scopes
	if s.target.kind == targetScope {
		object = &scopes.Items[0]
	}
	var b strings.Builder
	if err := s.objects.PrintObj(object, &b); err != nil {
		return "", "", printError{err}
	}
	return b.String(), page.health, nil
}

// read returns the scopes of the target. For a target that is one scope it returns a list with one item, for which no right to list is needed.
func (s *scopeSource) read(ctx context.Context) (*unstructured.UnstructuredList, error) {
	if s.target.kind != targetScope {
		return s.list(ctx)
	}
	ctx, cancel := s.withTimeout(ctx, s.timeout)
	defer cancel()
	found, err := s.client.Get(ctx, s.target.name(), metav1.GetOptions{})
	if err != nil {
		return nil, explainError(ctx, err)
	}
	return &unstructured.UnstructuredList{Items: []unstructured.Unstructured{*found}}, nil
}

// list lists the scopes. A watch can start from the list's resource version.
func (s *scopeSource) list(ctx context.Context) (*unstructured.UnstructuredList, error) {
	ctx, cancel := s.withTimeout(ctx, s.timeout)
	defer cancel()
	list, err := s.client.List(ctx, metav1.ListOptions{FieldSelector: s.selector})
	return list, explainError(ctx, err)
}

func (s *scopeSource) withTimeout(ctx context.Context, timeout time.Duration) (context.Context, context.CancelFunc) {
	return context.WithTimeoutCause(ctx, timeout, noAnswerWithin(s.timeout))
}

// explainError returns an error of the API server with advice for the user.
func explainError(ctx context.Context, err error) error {
	if err == nil {
		return nil
	}
	var status apierrors.APIStatus
	if ctx.Err() == nil && apierrors.IsNotFound(err) && errors.As(err, &status) && status.Status().Details != nil && status.Status().Details.Name == "" {
		return errors.Errorf("%w; the cluster has no CustomResourceDefinition of HealthScopes, so this may not be a hub", err)
	}
	return requestError(ctx, err)
}

// follow implements statusSource. It lists the scopes, and watches them until the watch ends.
func (s *scopeSource) follow(ctx context.Context, show func(string) error) (answered bool, err error) {
	list, err := s.list(ctx)
	if err != nil {
		return false, err
	}
	if s.known == nil && s.target.kind == targetScope && len(list.Items) == 0 {
		return false, apierrors.NewNotFound(scopesResource.GroupResource(), s.target.name())
	}
	before := s.known
	s.known = map[types.UID]unstructured.Unstructured{}
	var changed []unstructured.Unstructured
	for _, o := range list.Items {
		s.known[o.GetUID()] = o
		if old := before[o.GetUID()]; old.GetResourceVersion() != o.GetResourceVersion() {
			changed = append(changed, o)
		}
	}
	if err := s.showChanges(show, changed...); err != nil {
		return true, err
	}
	ctx, cancel := s.withTimeout(ctx, watchTimeout+s.timeout)
	defer cancel()
	w, err := s.client.Watch(ctx, metav1.ListOptions{
		FieldSelector: s.selector, ResourceVersion: list.GetResourceVersion(), TimeoutSeconds: new(int64(watchTimeout.Seconds())),
	})
	if err != nil {
		return true, explainError(ctx, err)
	}
	defer w.Stop()
	for event := range w.ResultChan() {
		if err := s.handle(event, show); err != nil {
			return true, err
		}
	}
	return true, nil
}

// handle shows an event of the watch.
func (s *scopeSource) handle(event watch.Event, show func(string) error) error {
	o, ok := event.Object.(*unstructured.Unstructured)
	switch {
	case event.Type == watch.Error:
		return apierrors.FromObject(event.Object)
	case !ok || event.Type == watch.Bookmark:
		return nil
	case event.Type == watch.Deleted:
		delete(s.known, o.GetUID())
	default:
		s.known[o.GetUID()] = *o
	}
	return s.showChanges(show, *o)
}

// showChanges shows the scopes that have changed, or the table of all scopes if it differs from the last one.
func (s *scopeSource) showChanges(show func(string) error, changed ...unstructured.Unstructured) error {
	if s.objects != nil {
		var b strings.Builder
		for i := range changed {
			if err := s.objects.PrintObj(&changed[i], &b); err != nil {
				return printError{err}
			}
		}
		return show(b.String())
	}
	text := s.target.String() + doesNotExist
	if len(s.known) > 0 || s.target.kind == targetScopes {
		page, err := s.page(slices.Collect(maps.Values(s.known)))
		if err != nil {
			return err
		}
		text = page.text(s.colour)
	}
	if text == s.lastTable {
		return nil
	}
	s.lastTable = text
	return show(text)
}

// page sorts scopes and returns the page that a table shows of them.
func (s *scopeSource) page(scopes []unstructured.Unstructured) (*page, error) {
	slices.SortFunc(scopes, func(a, b unstructured.Unstructured) int { return strings.Compare(nameOf(a), nameOf(b)) })
	if err := s.sortBy.sort(scopes); err != nil {
		return nil, err
	}
	documents := make([]api.Scope, len(scopes))
	for i := range scopes {
		var scope corev1alpha2.HealthScope
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(scopes[i].Object, &scope); err != nil {
			return nil, errors.Wrapf(err, "cannot read HealthScope %q", nameOf(scopes[i]))
		}
		documents[i] = api.NewScope(&scope)
	}
	wide := s.format == formatWide
	if s.target.kind == targetScope {
		return scopePage(documents[0], wide, time.Now()), nil
	}
	return scopesPage(documents, wide), nil
}

func nameOf(o unstructured.Unstructured) string { return o.GetNamespace() + "/" + o.GetName() }
