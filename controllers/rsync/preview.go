package rsync

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/healthscope/healthscope/controllers/fleet"
	"github.com/healthscope/healthscope/healthscope"
	"github.com/healthscope/healthscope/healthscope/appcontext"
	"github.com/healthscope/healthscope/healthscope/deploy"
)

// maxPreviews is how many apps in clusters are previewed at once.
const maxPreviews = 16

// PreviewAction is the action that would be taken on an object.
type PreviewAction string

// The actions.
const (
	PreviewCreate    PreviewAction = "create"
	PreviewChange    PreviewAction = "change"
	PreviewUnchanged PreviewAction = "unchanged"
	PreviewDelete    PreviewAction = "delete"
	// PreviewRefused means that the cluster would not accept the object.
	PreviewRefused PreviewAction = "refused"
	// PreviewUnknown means that the cluster does not answer.
	PreviewUnknown PreviewAction = "unknown"
)

// Preview is the action that would be taken on an object of an app in a cluster.
type Preview struct {
	App      string        `json:"app"`
	Cluster  string        `json:"cluster"`
	Resource string        `json:"resource"`
	Action   PreviewAction `json:"action"`
	// Fields are the fields that would be changed, without their values, which may be those of a Secret.
	Fields []string `json:"fields,omitempty"`
	// Problem is the reason why the object would be refused, or why its action is unknown. With other actions, it says that the
	// kind or the namespace of the object does not exist.
	Problem string `json:"problem,omitempty"`
}

// PreviewInstantiation returns the actions of an instantiation of a plan. It sends requests to the clusters that change nothing.
func PreviewInstantiation(ctx context.Context, p *deploy.Plan, access func(cluster string) (fleet.Access, bool)) []Preview {
	return preview(ctx, p, p.Targets(), newClusters(access), deploy.VerbApply)
}

// PreviewTermination returns the actions of a termination of a plan.
func PreviewTermination(ctx context.Context, p *deploy.Plan, access func(cluster string) (fleet.Access, bool)) []Preview {
	return preview(ctx, p, p.Targets(), newClusters(access), deploy.VerbDelete)
}

// PreviewUpdate returns the actions of an update: first on the resources that it would apply, then on those that it would leave as
// they are, and then on those of the replaced context that it would delete.
func PreviewUpdate(ctx context.Context, u UpdatePlan, access func(cluster string) (fleet.Access, bool)) []Preview {
	connections := newClusters(access)
	applied, left := u.update.Updated()
	previews := preview(ctx, u.update, applied, connections, deploy.VerbApply)
	for _, t := range left {
		for _, r := range t.All() {
			previews = append(previews, Preview{App: t.App, Cluster: t.Cluster, Resource: r.Name, Action: PreviewUnchanged})
		}
	}
	return append(previews, preview(ctx, u.replaced, u.replaced.Removed(), connections, deploy.VerbDelete)...)
}

// UpdatePlan holds the plan of an update, and the plan of the context that it replaces.
type UpdatePlan struct{ update, replaced *deploy.Plan }

// ReadUpdate reads the plan of an update from a context to another one. It rejects the updates that Enqueue rejects.
func ReadUpdate(ctx context.Context, store *appcontext.Store, from, to string) (UpdatePlan, error) {
	u, err := readUpdate(ctx, store, from, to)
	return u, errors.Wrapf(err, "cannot plan the update from context %q to %q", from, to)
}

func readUpdate(ctx context.Context, store *appcontext.Store, from, to string) (u UpdatePlan, err error) {
	r := request{store: store}
	if err := r.prepare(ctx, to, deploy.EventUpdate, from); err != nil {
		return u, err
	}
	l, err := deploy.ReadLifecycle(r.acted)
	if err == nil {
		_, err = l.Enqueue(deploy.EventUpdate, from)
	}
	if err != nil {
		return u, err
	}
	states, err := store.Snapshot(ctx, r.statusID)
	if err != nil {
		return u, errors.Wrap(err, "cannot read where states are kept")
	}
	u.update, err = deploy.Contexts{Acted: r.acted, Status: states, Others: []*appcontext.Snapshot{r.before}}.Plan()
	if err != nil {
		return u, err
	}
	u.update.StatusID = r.statusID // The update itself stores this id in the context.
	u.replaced, err = deploy.Contexts{Acted: r.before, Status: states, Others: []*appcontext.Snapshot{r.acted}}.Plan()
	return u, err
}

// preview previews all targets concurrently. verb is VerbApply or VerbDelete. The results are in the order of the targets.
func preview(ctx context.Context, p *deploy.Plan, targets []deploy.Target, connections *clusters, verb deploy.Verb) []Preview {
	all := newObjects(p)
	var group errgroup.Group
	group.SetLimit(maxPreviews)
	found := make([][]Preview, len(targets))
	for i, t := range targets {
		group.Go(func() error {
			c, unreachable := connections.get(t.Cluster)
			for _, r := range t.All() {
				var one Preview
				err := unreachable
				if err == nil {
					one, err = c.preview(ctx, all, t.App, r, verb == deploy.VerbDelete)
				}
				switch outcomeOf(err) {
				case deploy.Refused:
					one = Preview{Action: PreviewRefused, Problem: healthscope.Clean(err.Error())}
				case deploy.Unanswered: // No more requests are sent to the cluster.
					one, unreachable = Preview{Action: PreviewUnknown, Problem: healthscope.Clean(err.Error())}, err
				case deploy.Acknowledged:
				}
				one.App, one.Cluster, one.Resource = t.App, t.Cluster, r.Name
				found[i] = append(found[i], one)
			}
			return nil
		})
	}
	_ = group.Wait() // Problems are in the previews.
	return slices.Concat(found...)
}

// preview returns the action that would be taken on a resource. An error is the problem with it.
func (c *cluster) preview(ctx context.Context, all *objects, app string, r deploy.Resource, deletes bool) (Preview, error) {
	ctx, cancel := context.WithTimeout(ctx, stepTimeout)
	defer cancel()
	m, err := c.manifest(ctx, all, app, r)
	kindMissing := func(action PreviewAction) (Preview, error) {
		return Preview{Action: action, Problem: "its kind is not there: " + healthscope.Clean(err.Error())}, nil
	}
	switch {
	case err == nil && deletes:
		return c.previewDelete(ctx, m)
	case err == nil:
		return c.previewApply(ctx, m)
	case deletes && is[refusalError](err): // It was never applied.
		return Preview{Action: PreviewUnchanged}, nil
	case deletes && is[notServedError](err):
		return kindMissing(PreviewUnchanged)
	case !deletes && meta.IsNoMatchError(err): // The kind may exist by the time of the apply.
		return kindMissing(PreviewCreate)
	default:
		return Preview{}, err
	}
}

// previewApply applies an object in a dry run, and compares the result with the existing object.
func (c *cluster) previewApply(ctx context.Context, m *manifest) (Preview, error) {
	have := m.object()
	err := c.client.Get(ctx, m.ObjectKey, have)
	absent := isAbsent(err)
	if err != nil && !absent {
		return Preview{}, err
	}
	if !absent && m.Kind == "CustomResourceDefinition" {
		return Preview{Action: PreviewUnchanged}, nil // rsync does not change an existing CRD.
	}
	o := m.object()
	err = c.dryRunApply(ctx, m, have, o)
	switch {
	case absent && apierrors.IsNotFound(err):
		return Preview{Action: PreviewCreate, Problem: healthscope.Clean(err.Error())}, nil
	case err != nil:
		return Preview{}, err
	case absent:
		return Preview{Action: PreviewCreate}, nil
	}
	fields := changedFields("", withoutBookkeeping(have), withoutBookkeeping(o))
	if len(fields) == 0 {
		return Preview{Action: PreviewUnchanged}, nil
	}
	return Preview{Action: PreviewChange, Fields: fields}, nil
}

// previewDelete returns whether an object would be deleted: it exists, carries the label of the app, and is no CRD.
func (c *cluster) previewDelete(ctx context.Context, m *manifest) (Preview, error) {
	have := m.metadata()
	err := c.client.Get(ctx, m.ObjectKey, have)
	switch {
	case isAbsent(err):
		return Preview{Action: PreviewUnchanged}, nil
	case err != nil:
		return Preview{}, err
	case m.Kind == "CustomResourceDefinition" || have.Labels[deploymentLabel] != m.app:
		return Preview{Action: PreviewUnchanged}, nil
	}
	return Preview{Action: PreviewDelete}, nil
}

// withoutBookkeeping returns an object without its status and the metadata that the API server maintains.
func withoutBookkeeping(o *unstructured.Unstructured) map[string]any {
	object := o.DeepCopy().Object
	for _, path := range [][]string{{"metadata", "managedFields"}, {"metadata", "resourceVersion"}, {"metadata", "generation"}, {"status"}} {
		unstructured.RemoveNestedField(object, path...)
	}
	return object
}

// changedFields returns the paths at which two values differ.
func changedFields(path string, before, after any) []string {
	var fields []string
	switch old := before.(type) {
	case map[string]any:
		changed, ok := after.(map[string]any)
		if !ok {
			break
		}
		names := maps.Clone(old)
		maps.Copy(names, changed)
		for _, name := range slices.Sorted(maps.Keys(names)) {
			at := strings.TrimPrefix(path+"."+name, ".")
			fields = append(fields, changedFields(at, old[name], changed[name])...)
		}
		return fields
	case []any:
		changed, ok := after.([]any)
		if !ok || len(old) != len(changed) {
			break
		}
		for i := range old {
			fields = append(fields, changedFields(fmt.Sprintf("%s[%d]", path, i), old[i], changed[i])...)
		}
		return fields
	}
	if equality.Semantic.DeepEqual(before, after) {
		return nil
	}
	return []string{path}
}
