package commands

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"math"
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
	"k8s.io/client-go/util/jsonpath"

	corev1alpha2 "github.com/healthscope/healthscope/apis/core/v1alpha2"
	"github.com/healthscope/healthscope/healthscope"
	"github.com/healthscope/healthscope/healthscope/api"
)

// scopesResource is the resource of HealthScopes.
var scopesResource = corev1alpha2.GroupVersion.WithResource("healthscopes")

// watchTimeout limits the duration of one watch. The next watch finds the changes that were missed on a dead connection.
const watchTimeout = 5 * time.Minute

// doesNotExist follows the name of a scope that has been deleted.
const doesNotExist = " does not exist any more\n"

// scopeSource reads the HealthScopes of a target from the API server.
type scopeSource struct {
	*statusCommand

	client dynamic.ResourceInterface
	// selector is the field selector of a target that is one scope.
	selector string
	// objects prints objects; nil for tables.
	objects printers.ResourcePrinter
	// sortKey is the field by which a list is sorted; nil for the name.
	sortKey *jsonpath.JSONPath
	// known are the scopes that follow has seen, by namespace and name, nil before its first list. lastTable is the table that it has shown last.
	known     map[string]unstructured.Unstructured
	lastTable string
}

// newScopeSource returns a source that reads from the API server. The target gets the namespace of the flags or the kubeconfig context.
func (s *statusCommand) newScopeSource() (*scopeSource, error) {
	source := &scopeSource{statusCommand: s}
	var err error
	if source.objects, err = newObjectPrinter(s.output); err != nil {
		return nil, err
	}
	if s.sortBy != "" { // It needs neither braces nor a leading dot.
		field := strings.TrimPrefix(strings.TrimSuffix(strings.TrimPrefix(s.sortBy, "{"), "}"), ".")
		source.sortKey = jsonpath.New("sort-by").AllowMissingKeys(true)
		if err := source.sortKey.Parse("{." + field + "}"); err != nil {
			return nil, errors.Wrapf(err, "--sort-by is %q; it must be a JSONPath, such as .status.health", s.sortBy)
		}
	}
	config, err := loadRESTConfig(s.kubeconfig, s.context, "status")
	if err != nil {
		return nil, errors.Wrap(err, "cannot find out how to reach the API server")
	}
	config.Timeout = 0 // A timeout would end watches. Each request has its own deadline.
	namespace := s.namespace
	if s.allNamespaces {
		namespace = metav1.NamespaceAll
	} else if namespace == "" {
		if namespace, _, err = newClientConfig(s.kubeconfig, s.context).Namespace(); err != nil {
			return nil, err
		}
	}
	s.target = s.target.inNamespace(namespace)
	if len(s.target.names) > 0 {
		namespace = s.target.names[0]
	}
	if s.target.kind == targetScope {
		source.selector = fields.OneTermEqualSelector(metav1.ObjectNameField, s.target.name()).String()
	}
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	source.client = client.Resource(scopesResource).Namespace(namespace)
	return source, nil
}

// newObjectPrinter returns a printer of objects in an output format of kubectl, or nil for tables.
func newObjectPrinter(format string) (printers.ResourcePrinter, error) {
	template, isPath := strings.CutPrefix(format, "jsonpath=")
	switch {
	case format == formatTable || format == formatWide:
		return nil, nil //nolint:nilnil // Tables are printed without an object printer.
	case format == formatJSON:
		return &printers.OmitManagedFieldsPrinter{Delegate: &printers.JSONPrinter{}}, nil
	case format == formatYAML:
		return &printers.OmitManagedFieldsPrinter{Delegate: &printers.YAMLPrinter{}}, nil
	case format == "name":
		return &printers.NamePrinter{}, nil
	case isPath:
		p, err := printers.NewJSONPathPrinter(template)
		if err != nil {
			return nil, errors.Wrapf(err, "--output has JSONPath %q, which cannot be used", template)
		}
		p.AllowMissingKeys(true)
		return p, nil
	}
	return nil, errors.Errorf("--output is %q; it must be table, wide, json, yaml, name or jsonpath=TEMPLATE", format)
}

// get implements statusSource. For a target that is one scope, no right to list is needed.
func (s *scopeSource) get(ctx context.Context) (string, healthscope.Health, error) {
	var scopes []unstructured.Unstructured
	var object runtime.Object
	if s.target.kind == targetScope {
		ctx, cancel := s.withTimeout(ctx, s.timeout)
		defer cancel()
		found, err := s.client.Get(ctx, s.target.name(), metav1.GetOptions{})
		if err != nil {
			return "", "", explainError(ctx, err)
		}
		scopes, object = []unstructured.Unstructured{*found}, found
	} else {
		list, err := s.list(ctx)
		if err != nil {
			return "", "", err
		}
		scopes, object = list.Items, list
	}
	page, err := s.page(scopes)
	if err != nil {
		return "", "", printError{err}
	}
	if s.objects == nil {
		return page.String(), page.health, nil
	}
	var b strings.Builder
	if err := s.objects.PrintObj(object, &b); err != nil {
		return "", "", printError{err}
	}
	return b.String(), page.health, nil
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
func (s *scopeSource) follow(ctx context.Context) (answered bool, err error) {
	list, err := s.list(ctx)
	if err != nil {
		return false, err
	}
	if s.known == nil && s.target.kind == targetScope && len(list.Items) == 0 {
		return false, apierrors.NewNotFound(scopesResource.GroupResource(), s.target.name())
	}
	before := s.known
	s.known = map[string]unstructured.Unstructured{}
	var changed []unstructured.Unstructured
	for _, o := range list.Items {
		s.known[nameOf(o)] = o
		if old := before[nameOf(o)]; old.GetResourceVersion() != o.GetResourceVersion() {
			changed = append(changed, o)
		}
	}
	if err := s.showChanges(changed...); err != nil {
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
		o, ok := event.Object.(*unstructured.Unstructured)
		switch {
		case event.Type == watch.Error:
			return true, apierrors.FromObject(event.Object)
		case !ok || event.Type == watch.Bookmark:
			continue
		case event.Type == watch.Deleted:
			delete(s.known, nameOf(*o))
		default:
			s.known[nameOf(*o)] = *o
		}
		if err := s.showChanges(*o); err != nil {
			return true, err
		}
	}
	return true, nil
}

// showChanges shows the scopes that have changed, or the table of all scopes if it differs from the last one.
func (s *scopeSource) showChanges(changed ...unstructured.Unstructured) error {
	if s.objects != nil {
		var b strings.Builder
		for i := range changed {
			if err := s.objects.PrintObj(&changed[i], &b); err != nil {
				return printError{err}
			}
		}
		return s.show(b.String())
	}
	text := s.target.String() + doesNotExist
	if len(s.known) > 0 || s.target.kind == targetScopes {
		page, err := s.page(slices.Collect(maps.Values(s.known)))
		if err != nil {
			return err
		}
		text = page.String()
	}
	if text == s.lastTable {
		return nil
	}
	s.lastTable = text
	return s.show(text)
}

// page sorts scopes and returns the page that a table shows of them.
func (s *scopeSource) page(scopes []unstructured.Unstructured) (*page, error) {
	if err := s.sort(scopes); err != nil {
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
	if s.target.kind == targetScope {
		return s.scopePage(documents[0]), nil
	}
	return s.scopesPage(documents), nil
}

// sort sorts scopes by the field of --sort-by: those without the field, then numbers, then texts; and by name.
func (s *scopeSource) sort(scopes []unstructured.Unstructured) error {
	type key struct {
		number float64
		text   string
	}
	keys := map[string]key{}
	found := s.sortKey == nil || len(scopes) == 0
	for _, o := range scopes {
		k := key{number: math.Inf(-1)}
		if s.sortKey != nil {
			results, err := s.sortKey.FindResults(o.Object)
			if err != nil {
				return errors.Wrapf(err, "cannot sort by %q", s.sortBy)
			}
			if len(results) > 0 && len(results[0]) > 0 {
				found = true
				switch v := results[0][0].Interface().(type) {
				case int64:
					k.number = float64(v)
				case float64:
					k.number = v
				case nil:
				default:
					k = key{math.Inf(1), fmt.Sprint(v)}
				}
			}
		}
		keys[nameOf(o)] = k
	}
	if !found {
		return usageError(errors.Errorf("cannot sort by %q: no HealthScope has such a field", s.sortBy))
	}
	slices.SortFunc(scopes, func(a, b unstructured.Unstructured) int {
		x, y := keys[nameOf(a)], keys[nameOf(b)]
		return cmp.Or(cmp.Compare(x.number, y.number), strings.Compare(x.text, y.text), strings.Compare(nameOf(a), nameOf(b)))
	})
	return nil
}

func nameOf(o unstructured.Unstructured) string { return o.GetNamespace() + "/" + o.GetName() }
