package inventory

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/healthscope/healthscope/aai"
	"github.com/healthscope/healthscope/aai/plan"
	corev1alpha2 "github.com/healthscope/healthscope/apis/core/v1alpha2"
	"github.com/healthscope/healthscope/controllers/fleet"
)

// Preview is what would be done in A&AI.
type Preview struct {
	// Tenants is what would be done in each tenant, sorted.
	Tenants []TenantPreview
	// Modules are the changes of modules, sorted; none when inventory.operationalStatus is not set.
	Modules []plan.StatusChange
	// MissingModules are modules that scopes name and A&AI does not have, sorted.
	MissingModules []aai.VFModule
}

// TenantPreview is what would be done in a tenant.
type TenantPreview struct {
	// Tenant is the tenant.
	Tenant aai.Tenant
	// Missing is true when the tenant does not exist in A&AI, so that nothing can be created in it.
	Missing bool
	// Plan is what would be done.
	Plan plan.Plan
	// Waiting is what cannot be done, as something that it needs does not exist in A&AI.
	Waiting []Waiting
	// Current are the documents that A&AI holds, as far as the plan is about them.
	Current map[aai.Key]aai.Document
}

// Waiting is an operation that cannot be done yet.
type Waiting struct {
	plan.Operation

	// Message says why.
	Message string
}

// connectGrace is how long a preview waits for clusters that are being connected to. What they hold stays as it is.
const connectGrace = 20 * time.Second

// Preview waits until every scope has been judged, and returns what would be
// done, without doing it. The manager that judges must have been started, and
// must not run this inventory: Setup is not called for a preview.
func (i *Inventory) Preview(ctx context.Context, scopes client.Reader) (Preview, error) {
	var all Preview
	if err := i.options.View.WaitSynced(ctx); err != nil {
		return all, errors.Wrap(err, "cannot read the bundles")
	}
	judged := make(chan struct{}, 1)
	i.inputs.onChange(func(aai.Tenant) {
		select {
		case judged <- struct{}{}:
		default:
		}
	})
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go i.inputs.follow(ctx)
	var list corev1alpha2.HealthScopeList
	if err := scopes.List(ctx, &list, client.UnsafeDisableDeepCopy); err != nil {
		return all, errors.Wrap(err, "cannot list HealthScopes")
	}
	for n := range list.Items {
		i.inputs.scopeChanged(&list.Items[n])
		i.inputs.modulesNamed(&list.Items[n])
	}
	tenants := i.inputs.mapping.Tenants()
	if len(tenants) > 0 { // Without tenants, judgements wake nothing.
		if err := i.awaitJudged(ctx, judged); err != nil {
			return all, err
		}
	}
	if err := i.client.Probe(ctx); err != nil {
		return all, errors.Wrap(err, "cannot use A&AI")
	}
	targetExists := map[string]bool{}
	for _, tenant := range tenants {
		p, err := i.previewTenant(ctx, tenant)
		if err == nil {
			err = i.splitWaiting(ctx, &p, targetExists)
		}
		if err != nil {
			return all, errors.Wrapf(err, "cannot plan tenant %q", tenant)
		}
		all.Tenants = append(all.Tenants, p)
	}
	return all, i.previewModules(ctx, &all)
}

// awaitJudged waits until every scope has been judged, and for a while until all clusters are connected. judged is sent
// something whenever that may be so.
func (i *Inventory) awaitJudged(ctx context.Context, judged <-chan struct{}) error {
	graceOver := time.After(connectGrace)
	inGrace := true
	for !i.inputs.allJudged(nil) || inGrace && !i.settled() {
		select {
		case <-judged:
		case <-graceOver:
			inGrace = false
		case <-ctx.Done():
			return errors.Wrap(ctx.Err(), "cannot judge every scope in time")
		}
	}
	return nil
}

// settled reports whether no cluster is being connected to for the first time, and every scope has been judged since the last
// one came into sight.
func (i *Inventory) settled() bool {
	states := i.options.View.States()
	return i.inputs.allJudged(states) && !slices.ContainsFunc(states, func(s fleet.ClusterState) bool { return s.Reachability == fleet.Connecting })
}

// previewModules adds what would be done to modules.
func (i *Inventory) previewModules(ctx context.Context, all *Preview) error {
	if !i.options.Config.OperationalStatus {
		return nil
	}
	for _, v := range i.inputs.vnfs(types.NamespacedName{}) {
		current, err := i.client.ListVFModules(ctx, v)
		if err != nil {
			return errors.Wrapf(err, "cannot plan the modules of generic-vnf %q", v)
		}
		desired, _ := i.inputs.desiredModules(v)
		changes, missing := plan.Modules(desired, current)
		all.Modules, all.MissingModules = append(all.Modules, changes...), append(all.MissingModules, missing...)
	}
	return nil
}

// splitWaiting takes out of a plan what cannot be done. targetExists caches whether the targets of relationships exist.
func (i *Inventory) splitWaiting(ctx context.Context, p *TenantPreview, targetExists map[string]bool) error {
	var possible []plan.Operation
	for _, op := range p.Plan.Operations {
		var missing []string
		if p.Missing && op.Verb == plan.Create {
			missing = append(missing, fmt.Sprintf("tenant %q", p.Tenant))
		}
		for _, r := range op.Needs() {
			exists, known := targetExists[r.Target()]
			if !known {
				var err error
				if exists, err = i.client.HasTarget(ctx, r); err != nil {
					return err
				}
				targetExists[r.Target()] = exists
			}
			if !exists {
				missing = append(missing, r.String())
			}
		}
		if len(missing) == 0 {
			possible = append(possible, op)
			continue
		}
		p.Waiting = append(p.Waiting, Waiting{op, "A&AI does not have " + strings.Join(missing, " and ")})
	}
	p.Plan.Operations = possible
	return nil
}

// previewTenant returns what would be done in one tenant.
func (i *Inventory) previewTenant(ctx context.Context, tenant aai.Tenant) (TenantPreview, error) {
	p := TenantPreview{Tenant: tenant, Current: map[aai.Key]aai.Document{}}
	n := i.inputs.take(tenant, i.options.View)
	desired, guards := map[aai.Key]aai.Document{}, plan.Guards{Keys: map[aai.Key]bool{}, Deletions: n.Deletions, Existing: n.Existing}
	for key, w := range n.Desired {
		if w.Document != nil {
			desired[key] = *w.Document
		}
		guards.Keys[key] = w.Held
	}
	options := PlanOptions(i.options.Config, i.inputs.mapping)
	list, err := i.client.ListK8sResources(ctx, tenant, options.Owner)
	if err != nil {
		return p, err
	}
	for _, d := range list {
		p.Current[aai.Key{Tenant: tenant, ID: d.ID}] = d
	}
	if len(list) == 0 {
		exists, err := i.client.HasTenant(ctx, tenant)
		if err != nil {
			return p, err
		}
		p.Missing = !exists
	}
	for _, key := range slices.SortedFunc(maps.Keys(desired), aai.Key.Compare) {
		if _, ours := p.Current[key]; ours || p.Missing {
			continue
		}
		d, taken, err := i.client.GetK8sResource(ctx, key) // The list holds only what is ours.
		if err != nil {
			return p, err
		}
		if taken {
			p.Current[key] = d
		}
	}
	p.Plan = plan.Diff(desired, p.Current, guards, options)
	return p, nil
}
